/* SPDX-License-Identifier: Apache-2.0
 * elementwise_case.h: one expression with operands that lie in some way, what it should give, and whether that is what
 * a kernel gave: to the unit in the last place, and nothing written elsewhere. For kernels run by the GPU and by the
 * host. */
#ifndef AT_TESTS_ELEMENTWISE_CASE_H
#define AT_TESTS_ELEMENTWISE_CASE_H

#include <math.h>
#include <stdio.h>

#include "src/base/float8.h"
#include "tests/ops/elementwise/evaluate_views.h"
#include "tests/ops/elementwise/kernel_graph.h"

/* How an operand lies over the shape. */
typedef enum lie {
  PACKED,
  ONE,      /* the same element everywhere */
  BIAS,     /* along the innermost dimension, the same in all rows */
  COLUMN,   /* the same along the innermost dimension */
  TURNED,   /* the last two dimensions in the other order */
  SPREAD,   /* every second element of every second row */
  BACKWARD, /* against the innermost dimension */
  SHIFTED,  /* packed, one element off its alignment */
  PITCHED,  /* rows with a gap between them */
  SAME      /* input 0: the memory of output 0 */
} lie;

enum { CASE_POISON = 0xA5, CASE_EDGE = 256 };

typedef struct case_operand {
  at_view view;          /* data: in `memory` */
  unsigned char *memory; /* 256 bytes of edge on each side */
  size_t bytes;
} case_operand;

typedef struct ecase {
  const graph *g;
  at_shape shape;
  case_operand operands[AT_CUDA_TENSORS], expected[AT_EXPRESSION_OUTPUTS];
  at_constant scalars[AT_EXPRESSION_SCALARS];
  at_random_draws draws;
  at_cuda_problem problem;
} ecase;

static inline uint64_t case_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 17;
}

/* A number of the dtype: most of everyday size, some wild. `tame` leaves out NaN, infinities and the largest. */
static inline void case_number(attune_dtype dtype, unsigned char *to, uint64_t *state, bool tame) {
  static const double wild[] = {0.0,       -0.0, 1.0,   -1.0, 0.5,    2.0,  INFINITY,
                                -INFINITY, NAN,  1e-40, 3e38, -100.0, 88.0, 1e-5};
  const uint64_t r = case_random(state);
  double x = ((double)(int64_t)(r & 0xffffff) - 8388608.0) / 8388608.0 * ldexp(1.0, (int)(r >> 24 & 7) - 3);
  int64_t whole = (int64_t)(r >> 8 & 15) - (at_dtype_unsigned(dtype) ? 0 : 8);
  if ((r >> 40) % 8 == 0) x = wild[(r >> 20) % AT_COUNT(wild)];
  if (tame && !(fabs(x) < 1e4)) x = 0.75;
  if (!tame && (r >> 32 & 7) == 0) whole = (int64_t)((r << 40) ^ (r << 13) ^ r);
  if (dtype == ATTUNE_BOOL) whole &= 1;
  switch (dtype) {
  case ATTUNE_F64: memcpy(to, &x, 8); return;
  case ATTUNE_C128: memcpy(to, &x, 8), case_number(ATTUNE_F64, to + 8, state, tame); return;
  case ATTUNE_C64: case_number(ATTUNE_F32, to, state, tame), case_number(ATTUNE_F32, to + 4, state, tame); return;
  case ATTUNE_F32: memcpy(to, &(float){(float)x}, 4); return;
  case ATTUNE_F16: memcpy(to, &(uint16_t){at_f64_to_f16(x)}, 2); return;
  case ATTUNE_BF16: memcpy(to, &(uint16_t){at_f64_to_bf16(x)}, 2); return;
  case ATTUNE_F8E4M3: *to = at_f64_to_f8e4m3(x); return;
  case ATTUNE_F8E5M2: *to = at_f64_to_f8e5m2(x); return;
  default: memcpy(to, &whole, attune_dtype_size(dtype)); return;
  }
}

static inline void case_lay(case_operand *o, attune_dtype dtype, const at_shape *shape, lie way) {
  const int n = shape->dims;
  const int64_t last = n ? shape->sizes[n - 1] : 1;
  at_view v = at_view_packed(NULL, dtype, shape);
  int64_t start = 0, reach = 1;
  if (way == ONE) v.shape.dims = 0;
  if (way == BIAS) v = at_view_packed(NULL, dtype, &(at_shape){1, {last}});
  if (way == COLUMN) {
    at_shape column = *shape;
    column.sizes[n - 1] = 1;
    v = at_view_packed(NULL, dtype, &column);
  }
  if (way == TURNED && n >= 2) {
    at_shape turned = *shape;
    turned.sizes[n - 1] = shape->sizes[n - 2], turned.sizes[n - 2] = last;
    const at_view t = at_view_packed(NULL, dtype, &turned);
    for (int d = 0; d < n; d++) v.strides[d] = t.strides[d];
    v.strides[n - 1] = t.strides[n - 2], v.strides[n - 2] = t.strides[n - 1];
  }
  if (way == SPREAD)
    for (int d = 0; d < n; d++) v.strides[d] *= d + 1 < n ? 4 : 2;
  if (way == BACKWARD) start = last - 1, v.strides[n - 1] = -1;
  if (way == SHIFTED) start = 1;
  if (way == PITCHED)
    for (int d = 0; d + 1 < n; d++) v.strides[d] = v.strides[d] / last * ((last + 31) / 16 * 16);
  for (int d = 0; d < v.shape.dims; d++)
    if (v.strides[d] > 0) reach += v.strides[d] * (v.shape.sizes[d] - 1);
  const size_t size = attune_dtype_size(dtype);
  o->bytes = 2 * CASE_EDGE + (size_t)(start + reach) * size;
  o->memory = aligned_alloc(256, (o->bytes + 255) / 256 * 256);
  memset(o->memory, CASE_POISON, o->bytes);
  v.data = o->memory + CASE_EDGE + (size_t)start * size;
  o->view = v;
}

/* Ways: of the outputs, then of the inputs. */
static inline attune_status case_make(ecase *c, const graph *g, const at_shape *shape, const lie *ways,
                                      const attune_dtype *outputs, bool reduced, bool tame, uint64_t seed) {
  at_view views[AT_CUDA_TENSORS];
  const int no = g->e.output_count, ni = g->e.input_count;
  memset(c, 0, sizeof *c);
  c->g = g;
  c->shape = *shape;
  c->draws = (at_random_draws){seed * 77 + 5, 4 * seed};
  for (int k = 0; k < no + ni; k++) {
    const attune_dtype dtype = k >= no   ? (attune_dtype)g->e.inputs[k - no].dtype
                               : outputs ? outputs[k]
                                         : (attune_dtype)g->nodes[g->e.outputs[k]].dtype;
    if (ways[k] == SAME) {
      c->operands[k] = c->operands[0];
      for (size_t b = CASE_EDGE; b + CASE_EDGE < c->operands[0].bytes; b += attune_dtype_size(dtype))
        case_number(dtype, c->operands[0].memory + b, &seed, tame);
    } else {
      case_lay(&c->operands[k], dtype, shape, ways[k]);
    }
    if (k >= no && ways[k] != SAME)
      for (size_t b = CASE_EDGE; b + CASE_EDGE < c->operands[k].bytes; b += attune_dtype_size(dtype))
        case_number(dtype, c->operands[k].memory + b, &seed, tame);
    views[k] = c->operands[k].view;
  }
  for (int s = 0; s < g->e.scalar_count; s++)
    c->scalars[s] = (at_constant){.re = 0.375 * (s + 1),
                                  .im = g->e.scalars[s].dtype == ATTUNE_C128 ? -1.25 : 0,
                                  .integer = g->e.scalars[s].dtype == ATTUNE_BOOL ? 1 : s + 3};
  attune_status status = graph_problem(&c->problem, g, shape, views);
  c->problem.reduced = reduced;
  for (int k = no; k < no + ni; k++) c->problem.in_place = c->problem.in_place || ways[k] == SAME;
  at_view expected[AT_EXPRESSION_OUTPUTS], inputs[AT_EXPRESSION_INPUTS];
  for (int k = 0; k < no; k++) {
    case_operand *e = &c->expected[k];
    *e = c->operands[k];
    e->memory = malloc(e->bytes);
    memcpy(e->memory, c->operands[k].memory, e->bytes);
    e->view.data = e->memory + ((const unsigned char *)c->operands[k].view.data - c->operands[k].memory);
    expected[k] = e->view;
  }
  for (int k = 0; k < ni; k++) inputs[k] = ways[no + k] == SAME ? expected[0] : views[no + k];
  if (status == ATTUNE_OK) status = at_evaluate_views(&g->e, expected, inputs, c->scalars, &c->draws, AT_ROUND_NODES);
  return status;
}

static inline void case_free(ecase *c) {
  const int no = c->g->e.output_count, ni = c->g->e.input_count;
  for (int k = 0; k < no; k++) free(c->expected[k].memory);
  for (int k = 0; k < no + ni; k++) {
    bool shared = false;
    for (int j = 0; j < k; j++) shared = shared || c->operands[j].memory == c->operands[k].memory;
    if (!shared) free(c->operands[k].memory);
  }
}

/* Of a complex number its real part. */
static inline double case_double(attune_dtype dtype, const unsigned char *from) {
  double x = 0;
  float f = 0;
  uint16_t h = 0;
  int64_t i = 0;
  switch (dtype) {
  case ATTUNE_C128:
  case ATTUNE_F64: memcpy(&x, from, 8); return x;
  case ATTUNE_C64:
  case ATTUNE_F32: memcpy(&f, from, 4); return (double)f;
  case ATTUNE_F16: memcpy(&h, from, 2); return (double)at_f16_to_f32(h);
  case ATTUNE_BF16: memcpy(&h, from, 2); return (double)at_bf16_to_f32(h);
  case ATTUNE_F8E4M3: return (double)at_f8e4m3_to_f32(*from);
  case ATTUNE_F8E5M2: return (double)at_f8e5m2_to_f32(*from);
  default: memcpy(&i, from, attune_dtype_size(dtype)); return (double)i;
  }
}

/* The distance of two numbers near x. */
static inline double case_unit(attune_dtype dtype, double x) {
  int bits = 24, least = -126, exponent;
  if (dtype == ATTUNE_F64) bits = 53, least = -1022;
  if (dtype == ATTUNE_F16) bits = 11, least = -14;
  if (dtype == ATTUNE_BF16) bits = 8;
  if (dtype == ATTUNE_F8E4M3) bits = 4, least = -6;
  if (dtype == ATTUNE_F8E5M2) bits = 3, least = -14;
  (void)frexp(x, &exponent);
  return ldexp(1.0, (exponent - 1 < least || x == 0 ? least : exponent - 1) - bits + 1);
}

/* Units between the two; 0 for equal ones and for two NaN; huge where only one is finite; a little for zeros
 * of two signs. A result may be the largest
 * number where infinity is expected, and the other way round. */
static inline double case_units(attune_dtype dtype, const unsigned char *got, const unsigned char *wanted) {
  if (memcmp(got, wanted, attune_dtype_size(dtype)) == 0) return 0;
  if (at_dtype_whole(dtype)) return 1e300;
  const double x = case_double(dtype, got), y = case_double(dtype, wanted);
  if (x != x && y != y) return 0;
  if (x == y) return x == 0 && !signbit(x) != !signbit(y) ? 1e-3 : 0;
  if (x != x || y != y) return 1e300;
  if (isinf(x) || isinf(y))
    return (x < 0) == (y < 0) && fabs(isinf(x) ? y : x) > (dtype == ATTUNE_F64 ? 1.7976e308 : 3.4e38) ? 1 : 1e300;
  return fabs(x - y) / case_unit(dtype, y);
}

static inline double case_complex_units(attune_dtype real, const unsigned char *got, const unsigned char *wanted) {
  const size_t half = attune_dtype_size(real);
  const double a = case_double(real, got), b = case_double(real, got + half), x = case_double(real, wanted),
               y = case_double(real, wanted + half), size = fmax(fabs(x), fabs(y));
  if (!isfinite(x) || !isfinite(y)) return isfinite(a) && isfinite(b) ? 1e300 : 0; /* which infinity or NaN is open */
  return fmax(fabs(a - x), fabs(b - y)) / case_unit(real, size);
}

/* The worst difference in units; what lies between and around the elements must be untouched, or it is 1e301. `place`
 * tells where. */
static inline double case_compare(const ecase *c, int k, const unsigned char *got, int64_t *place) {
  const attune_dtype dtype = c->expected[k].view.dtype;
  const size_t size = attune_dtype_size(dtype), bytes = c->expected[k].bytes;
  double worst = 0;
  *place = -1;
  for (size_t b = 0; b < bytes; b += b < CASE_EDGE ? 1 : size) {
    const unsigned char *wanted = c->expected[k].memory + b;
    const size_t length = b < CASE_EDGE || b + CASE_EDGE >= bytes ? 1 : size;
    double units = memcmp(got + b, wanted, b + length <= bytes ? length : bytes - b) == 0 ? 0 : 1e301;
    if (units != 0 && length == size && b >= CASE_EDGE && b + CASE_EDGE < bytes)
      units = dtype == ATTUNE_C64    ? case_complex_units(ATTUNE_F32, got + b, wanted)
              : dtype == ATTUNE_C128 ? case_complex_units(ATTUNE_F64, got + b, wanted)
                                     : case_units(dtype, got + b, wanted);
    if (units > worst) worst = units, *place = (int64_t)((b - CASE_EDGE) / size);
  }
  return worst;
}

/* One of the arguments, or of them and 0, 1 and -1, or exact: the sign of a zero, too, is the reference's. */
static inline bool case_is_exact(at_function f) {
  switch (f) {
  case AT_FN_MINIMUM:
  case AT_FN_MAXIMUM:
  case AT_FN_FMINIMUM:
  case AT_FN_FMAXIMUM:
  case AT_FN_CLAMP:
  case AT_FN_RELU:
  case AT_FN_HARDTANH:
  case AT_FN_SIGN:
  case AT_FN_ABS:
  case AT_FN_NEGATE:
  case AT_FN_COPYSIGN:
  case AT_FN_FMOD:
  case AT_FN_FLOOR:
  case AT_FN_CEIL:
  case AT_FN_TRUNC:
  case AT_FN_ROUND:
  case AT_FN_SELECT: return true;
  default: return false;
  }
}

/* Units that a function may be off in a dtype of results. */
static inline double case_allowed(at_function f, attune_dtype d) {
  if (at_dtype_whole(d)) return 0;
  if (case_is_exact(f) && at_dtype_kind_of(d) == AT_KIND_FLOAT) return 0;
  if (d == ATTUNE_C128) return f == AT_FN_POWER ? 4000 : 16; /* the exponent's error, and it is up to 1000 */
  if (d == ATTUNE_C64) return 4;
  if (d == ATTUNE_F32) return 2.5; /* 2, and the reference is rounded */
  if (d == ATTUNE_F64) return 2.5;
  return 1;
}

/* Arguments for which the function says little about the kernel: beyond them errors of arguments count. */
static inline bool case_is_tame(at_function f) {
  return f == AT_FN_LDEXP || f == AT_FN_LGAMMA || f == AT_FN_POWER;
}

#endif
