/* SPDX-License-Identifier: Apache-2.0
 * scaled_oracle.h: random products of 8-bit elements as memory to run them on, and the right answers by loops of their
 * own: conversions, layouts, scales and tolerances are written a second time here. */
#ifndef AT_TEST_SCALED_ORACLE_H
#define AT_TEST_SCALED_ORACLE_H

#include "tests/support/check.h"

#include <attune/attune.h>
#include <math.h>

#include "src/base/splitmix64.h"

enum { SCALED_GUARD = 64, SCALED_BLOCKS = 10 };

/* Memory of one operand, between guards. */
typedef struct scaled_block {
  unsigned char *raw, *before;
  size_t bytes; /* with both guards */
} scaled_block;

/* The right value of an element, the sum of the sizes of its terms, and what an addition of 32 products loses that cuts
 * each of them where the largest number has its last bit: 33 times that number for each 32. */
typedef struct scaled_answer {
  double v, size, cut;
  uint32_t i32;
} scaled_answer;

typedef struct scaled_case {
  attune_gemm_problem p;
  attune_gemm_operands o; /* in host memory */
  scaled_block block[SCALED_BLOCKS];
  int blocks;
  size_t offset; /* of all operands, from a multiple of 64 bytes: a multiple of 4 */
  bool special;
  int grain;              /* leading dimensions have multiples of it more than they must; 0: 1 */
  bool loose;             /* results beyond D's numbers may be of any kind: a library applies scales in its own order */
  double gamma, last_bit; /* the last bit of such an addition, of a number below 2; 0: there are none */
  scaled_answer *answers; /* of the first check, for all that follow */
  char name[256];
} scaled_case;

static inline uint64_t scaled_draw(uint64_t *state, uint64_t count) {
  return at_splitmix64(state) % count;
}

/* ---- elements ---- */

static inline double scaled_f8(unsigned byte, int mantissa, int bias, bool infinities) {
  const int exponent = (int)(byte & 0x7f) >> mantissa, fraction = (int)(byte & ((1u << mantissa) - 1));
  double x =
      exponent ? ldexp(fraction + (1 << mantissa), exponent - bias - mantissa) : ldexp(fraction, 1 - bias - mantissa);
  if (infinities && exponent == 31) x = fraction ? (double)NAN : (double)INFINITY;
  if (!infinities && (byte & 0x7f) == 0x7f) x = (double)NAN;
  return byte & 0x80 ? -x : x;
}

static inline double scaled_value(const void *data, int64_t at, attune_dtype dtype) {
  union {
    uint32_t bits;
    float f32;
  } word;
  switch (dtype) {
  case ATTUNE_F8E4M3: return scaled_f8(((const uint8_t *)data)[at], 3, 7, false);
  case ATTUNE_F8E5M2: return scaled_f8(((const uint8_t *)data)[at], 2, 15, true);
  case ATTUNE_I8: return ((const int8_t *)data)[at];
  case ATTUNE_I32: return ((const int32_t *)data)[at];
  case ATTUNE_F32: return (double)((const float *)data)[at];
  case ATTUNE_BF16: word.bits = (uint32_t)((const uint16_t *)data)[at] << 16; return (double)word.f32;
  default: break;
  }
  const unsigned half = ((const uint16_t *)data)[at]; /* f16 */
  const int exponent = (int)(half & 0x7fff) >> 10, fraction = (int)(half & 0x3ff);
  const double x = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent     ? ldexp(fraction + 1024, exponent - 25)
                                  : ldexp(fraction, -24);
  return half & 0x8000 ? -x : x;
}

/* Unit roundoff, half of the smallest number, and the largest one. */
static inline void scaled_format(attune_dtype dtype, double *u, double *least, double *most) {
  *u = dtype == ATTUNE_F8E4M3   ? 0x1p-4
       : dtype == ATTUNE_F8E5M2 ? 0x1p-3
       : dtype == ATTUNE_F16    ? 0x1p-11
       : dtype == ATTUNE_BF16   ? 0x1p-8
       : dtype == ATTUNE_F32    ? 0x1p-24
                                : 0.0;
  *least = dtype == ATTUNE_F8E4M3   ? 0x1p-10
           : dtype == ATTUNE_F8E5M2 ? 0x1p-17
           : dtype == ATTUNE_F16    ? 0x1p-25
           : dtype == ATTUNE_I8     ? 0.5
                                    : 0x1p-126;
  *most = dtype == ATTUNE_F8E4M3 ? 448.0 : dtype == ATTUNE_F8E5M2 ? 57344.0 : dtype == ATTUNE_I8 ? 128.0 : INFINITY;
}

static inline attune_dtype scaled_b(const attune_gemm_problem *p) {
  return p->scaling.dtype_b ? (attune_dtype)p->scaling.dtype_b : p->dtype;
}
static inline attune_dtype scaled_d(const attune_gemm_problem *p) {
  return p->dtype_out ? p->dtype_out : p->dtype;
}
static inline attune_dtype scaled_c(const attune_gemm_problem *p) {
  const attune_dtype d = scaled_d(p);
  return d == ATTUNE_F8E4M3 || d == ATTUNE_F8E5M2 ? ATTUNE_BF16 : d;
}

/* ---- memory ---- */

static inline void *scaled_memory(scaled_case *c, size_t bytes, uint64_t *state) {
  scaled_block *b = &c->block[c->blocks++];
  assert_true(c->blocks <= SCALED_BLOCKS);
  b->bytes = bytes + c->offset + 2 * SCALED_GUARD;
  b->raw = aligned_alloc(64, (b->bytes + 63) / 64 * 64);
  b->before = malloc(b->bytes);
  assert_true(b->raw && b->before);
  for (size_t i = 0; i < b->bytes; i++) b->raw[i] = (unsigned char)at_splitmix64(state);
  return b->raw + SCALED_GUARD + c->offset;
}

static inline void scaled_freeze(scaled_case *c) {
  for (int i = 0; i < c->blocks; i++) memcpy(c->block[i].before, c->block[i].raw, c->block[i].bytes);
}
static inline void scaled_thaw(scaled_case *c) {
  for (int i = 0; i < c->blocks; i++) memcpy(c->block[i].raw, c->block[i].before, c->block[i].bytes);
}
static inline void scaled_close(scaled_case *c) {
  for (int i = 0; i < c->blocks; i++) {
    free(c->block[i].raw);
    free(c->block[i].before);
  }
  free(c->answers);
  c->answers = NULL;
}

/* Where element (row, column) of a stored matrix lies. */
static inline int64_t scaled_at(const attune_gemm_problem *p, int64_t ld, int64_t row, int64_t column) {
  return p->layout == ATTUNE_ROW_MAJOR ? row * ld + column : row + column * ld;
}
static inline int64_t scaled_at_a(const attune_gemm_problem *p, int64_t i, int64_t q) {
  return p->trans_a ? scaled_at(p, p->lda, q, i) : scaled_at(p, p->lda, i, q);
}
static inline int64_t scaled_at_b(const attune_gemm_problem *p, int64_t q, int64_t j) {
  return p->trans_b ? scaled_at(p, p->ldb, j, q) : scaled_at(p, p->ldb, q, j);
}

/* Numbers below 2 in f8, or all of the type. */
static inline void scaled_fill(void *data, size_t count, attune_dtype dtype, bool special, uint64_t *state) {
  for (size_t i = 0; i < count; i++) {
    const uint64_t x = at_splitmix64(state);
    if (dtype == ATTUNE_I8) ((uint8_t *)data)[i] = (uint8_t)x;
    if (dtype == ATTUNE_F8E4M3 || dtype == ATTUNE_F8E5M2) {
      ((uint8_t *)data)[i] = (uint8_t)((x & 0x80) | (x >> 8) % 0x40);
      if (special && x >> 58 == 0)
        ((uint8_t *)data)[i] = (uint8_t)(0x7c + (x >> 20 & 3)); /* NaN, and e5m2's infinity */
    }
    if (dtype == ATTUNE_F32) ((float *)data)[i] = (float)((double)(x >> 40) * 0x1p-22 - 2.0);
    if (dtype == ATTUNE_BF16) ((uint16_t *)data)[i] = (uint16_t)((x & 0x8000) | 0x3e00u | (x >> 20 & 0x1ff));
    if (dtype == ATTUNE_F16) ((uint16_t *)data)[i] = (uint16_t)((x & 0x8000) | 0x3000u | (x >> 20 & 0xfff));
    if (dtype == ATTUNE_I32) ((uint32_t *)data)[i] = (uint32_t)x;
  }
}

/* One f32, aligned to 4 bytes. */
static inline float *scaled_single(scaled_case *c, uint64_t *state) {
  float *out = scaled_memory(c, 4 * sizeof *out, state);
  return out + scaled_draw(state, 4);
}

static inline float *scaled_scales(scaled_case *c, uint8_t mode, int64_t lines, uint64_t *state) {
  static const float specials[] = {0.0f, -0.0f, INFINITY, NAN, -INFINITY};
  const int64_t depth = (c->p.k + 127) / 128;
  const int64_t count = mode == ATTUNE_SCALE_NONE     ? 0
                        : mode == ATTUNE_SCALE_TENSOR ? 1
                        : mode == ATTUNE_SCALE_VECTOR ? lines
                        : mode == ATTUNE_SCALE_1X128  ? lines * depth
                                                      : (depth + 3) / 4 * 4 * ((lines + 127) / 128);
  if (count == 0) return NULL;
  float *out =
      mode == ATTUNE_SCALE_TENSOR ? scaled_single(c, state) : scaled_memory(c, (size_t)count * sizeof *out, state);
  for (int64_t i = 0; i < count; i++) {
    out[i] = (float)(at_splitmix64_uniform(state) * 3.0 - 1.5);
    if (c->special && scaled_draw(state, 8) == 0) out[i] = specials[scaled_draw(state, 5)];
  }
  return out;
}

static inline double scaled_scale(const float *scale, uint8_t mode, int64_t lines, int64_t k, int64_t line, int64_t q) {
  switch (mode) {
  case ATTUNE_SCALE_NONE: return 1.0;
  case ATTUNE_SCALE_TENSOR: return (double)scale[0];
  case ATTUNE_SCALE_VECTOR: return (double)scale[line];
  case ATTUNE_SCALE_1X128: return (double)scale[line + q / 128 * lines];
  default: return (double)scale[q / 128 + line / 128 * (((k + 127) / 128 + 3) / 4 * 4)];
  }
}

/* ---- a case ---- */

/* Sizes are set, and all else of the problem but leading dimensions. */
static inline void scaled_open(scaled_case *c, bool with_c, uint64_t *state) {
  attune_gemm_problem *p = &c->p;
  const bool row = p->layout == ATTUNE_ROW_MAJOR;
  const int64_t a_inner = (p->trans_a != ATTUNE_N) != row ? p->k : p->m, a_outer = p->m + p->k - a_inner,
                b_inner = (p->trans_b != ATTUNE_N) != row ? p->n : p->k, b_outer = p->n + p->k - b_inner,
                inner = row ? p->n : p->m, outer = p->m + p->n - inner, batch = p->batch ? p->batch : 1;
  const int64_t pad = scaled_draw(state, 2) ? 0 : (int64_t)scaled_draw(state, 5) * (c->grain ? c->grain : 1);
  p->lda = a_inner + pad, p->ldb = b_inner + pad, p->ldc = inner + pad, p->ldd = inner + pad;
  p->stride_a = p->lda * a_outer, p->stride_b = p->ldb * b_outer, p->stride_c = p->ldc * outer,
  p->stride_d = p->ldd * outer;
  const size_t a = (size_t)(p->stride_a * batch), b = (size_t)(p->stride_b * batch), d = (size_t)(p->stride_d * batch);
  void *data_a = scaled_memory(c, a, state), *data_b = scaled_memory(c, b, state),
       *data_d = scaled_memory(c, d * attune_dtype_size(scaled_d(p)), state),
       *data_c = with_c ? scaled_memory(c, d * attune_dtype_size(scaled_c(p)), state) : NULL;
  scaled_fill(data_a, a, p->dtype, c->special, state);
  scaled_fill(data_b, b, scaled_b(p), c->special, state);
  if (with_c) scaled_fill(data_c, d, scaled_c(p), false, state);
  c->o = (attune_gemm_operands){.alpha = scaled_draw(state, 2) ? 1.0 : -1.5,
                                .a = data_a,
                                .b = data_b,
                                .beta = with_c ? 2.0 : 0.0,
                                .c = data_c,
                                .d = data_d};
  c->o.scale_a = scaled_scales(c, p->scaling.scale_a, p->m, state);
  c->o.scale_b = scaled_scales(c, p->scaling.scale_b, p->n, state);
  c->o.scale_d = scaled_scales(c, p->scaling.scale_d, 1, state);
  if (p->scaling.amax_d) c->o.amax_d = scaled_single(c, state);
  if (p->scaling.zero_a) c->o.zero_a = scaled_memory(c, 1, state);
  if (p->scaling.zero_b) c->o.zero_b = scaled_memory(c, 1, state);
  c->gamma = (double)(p->k + 16) * 0x1p-23;
  scaled_freeze(c);
  if (attune_gemm_problem_format(c->name, sizeof c->name, p, &c->o) != ATTUNE_OK) strcpy(c->name, "what is refused");
}

/* Any problem that is allowed, of these sizes at most. */
static inline void scaled_draw_case(scaled_case *c, int64_t most, int64_t most_k, uint64_t *state) {
  static const attune_dtype f8_out[] = {ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16, ATTUNE_F8E4M3, ATTUNE_F8E5M2},
                            i8_out[] = {ATTUNE_I32, ATTUNE_I8, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16};
  *c = (scaled_case){.p = ATTUNE_GEMM_PROBLEM_INIT};
  attune_gemm_problem *p = &c->p;
  const bool i8 = scaled_draw(state, 3) == 0;
  const unsigned mix = (unsigned)scaled_draw(state, 3);
  p->dtype = i8 ? ATTUNE_I8 : mix == 1 ? ATTUNE_F8E5M2 : ATTUNE_F8E4M3;
  if (!i8 && mix) p->scaling.dtype_b = mix == 1 ? ATTUNE_F8E4M3 : ATTUNE_F8E5M2;
  p->dtype_out = i8 ? i8_out[scaled_draw(state, 5)] : f8_out[scaled_draw(state, mix ? 5 : 4)];
  p->layout = (attune_layout)scaled_draw(state, 2);
  p->trans_a = (attune_transpose)scaled_draw(state, 2);
  p->trans_b = (attune_transpose)scaled_draw(state, 2);
  p->m = 1 + (int64_t)scaled_draw(state, (uint64_t)most);
  p->n = 1 + (int64_t)scaled_draw(state, (uint64_t)most);
  p->k = 1 + (int64_t)scaled_draw(state, scaled_draw(state, 4) ? 40 : (uint64_t)most_k);
  p->batch = scaled_draw(state, 4) ? 1 : 1 + (int64_t)scaled_draw(state, 3);
  c->special = !i8 && scaled_draw(state, 4) == 0;
  if (p->dtype_out != ATTUNE_I32) {
    const uint64_t modes = p->batch > 1 ? 2 : i8 ? 3 : 5;
    p->scaling.scale_a = (uint8_t)scaled_draw(state, modes);
    p->scaling.scale_b = (uint8_t)scaled_draw(state, modes);
    p->scaling.amax_d = (uint8_t)scaled_draw(state, 2);
    const bool narrow = attune_dtype_size(p->dtype_out) == 1;
    p->scaling.scale_d = (uint8_t)(narrow && scaled_draw(state, 2));
  }
  if (i8) p->scaling.zero_a = (uint8_t)scaled_draw(state, 2), p->scaling.zero_b = (uint8_t)scaled_draw(state, 2);
  scaled_open(c, scaled_draw(state, 2) == 0, state);
}

/* ---- the right answer ---- */

static inline double scaled_a_at(const scaled_case *c, int64_t i, int64_t q) {
  return scaled_scale(c->o.scale_a, c->p.scaling.scale_a, c->p.m, c->p.k, i, q);
}
static inline double scaled_b_at(const scaled_case *c, int64_t j, int64_t q) {
  return scaled_scale(c->o.scale_b, c->p.scaling.scale_b, c->p.n, c->p.k, j, q);
}

/* Scales of blocks belong to elements, others to sums. */
static inline scaled_answer scaled_expect(const scaled_case *c, int64_t batch, int64_t i, int64_t j) {
  const attune_gemm_problem *p = &c->p;
  const attune_gemm_scaling s = p->scaling;
  const double zero_a = s.zero_a ? *c->o.zero_a : 0, zero_b = s.zero_b ? *c->o.zero_b : 0;
  double sum = 0.0, size = 0.0, cut = 0.0, most = 0.0;
  for (int64_t q = 0; q < p->k && c->o.alpha != 0.0; q++) {
    const double x = scaled_value(c->o.a, batch * p->stride_a + scaled_at_a(p, i, q), p->dtype) - zero_a,
                 y = scaled_value(c->o.b, batch * p->stride_b + scaled_at_b(p, q, j), scaled_b(p)) - zero_b;
    const double term = (s.scale_a >= ATTUNE_SCALE_1X128 ? x * scaled_a_at(c, i, q) : x) *
                        (s.scale_b >= ATTUNE_SCALE_1X128 ? y * scaled_b_at(c, j, q) : y);
    if (q % 32 == 0) cut += 33.0 * most, most = fabs(sum);
    most = fmax(most, fabs(term));
    sum += term;
    size += fabs(term);
  }
  const double outside = c->o.alpha == 0.0
                             ? 0.0
                             : c->o.alpha * (s.scale_a < ATTUNE_SCALE_1X128 ? scaled_a_at(c, i, 0) : 1.0) *
                                   (s.scale_b < ATTUNE_SCALE_1X128 ? scaled_b_at(c, j, 0) : 1.0);
  const int64_t at = batch * p->stride_c + scaled_at(p, p->ldc, i, j);
  const double added = c->o.beta != 0.0 ? c->o.beta * scaled_value(c->o.c, at, scaled_c(p)) : 0.0;
  scaled_answer out = {.v = outside * sum + added,
                       .size = fabs(outside) * size + fabs(added),
                       .cut = fabs(outside) * (cut + 33.0 * most)};
  if (scaled_d(p) != ATTUNE_I32) return out;
  out.i32 = (uint32_t)(int32_t)c->o.alpha * (uint32_t)(int64_t)sum;
  if (c->o.beta != 0.0) out.i32 += (uint32_t)(int32_t)c->o.beta * ((const uint32_t *)c->o.c)[at];
  return out;
}

static inline double scaled_slack(const scaled_case *c, scaled_answer e) {
  return c->gamma * e.size + (c->last_bit > 0.0 ? c->last_bit * e.cut : 0.0) + 0x1p-120;
}

static inline const scaled_answer *scaled_answers(scaled_case *c) {
  const attune_gemm_problem *p = &c->p;
  const int64_t batch = p->batch ? p->batch : 1;
  if (c->answers) return c->answers;
  scaled_answer *next = c->answers = malloc((size_t)(batch * p->n * p->m) * sizeof *c->answers);
  assert_non_null(next);
  for (int64_t b = 0; b < batch; b++)
    for (int64_t j = 0; j < p->n; j++)
      for (int64_t i = 0; i < p->m; i++) *next++ = scaled_expect(c, b, i, j);
  return c->answers;
}

static inline void scaled_check_element(const scaled_case *c, const char *who, int64_t batch, int64_t i, int64_t j,
                                        scaled_answer e) {
  const attune_gemm_problem *p = &c->p;
  const attune_dtype dtype = scaled_d(p);
  const int64_t at = batch * p->stride_d + scaled_at(p, p->ldd, i, j);
  double u, least, most;
  if (dtype == ATTUNE_I32) {
    if (((const uint32_t *)c->o.d)[at] != e.i32)
      fail_msg("%s, %s: (%lld,%lld,%lld) is %d, not %d", c->name, who, (long long)i, (long long)j, (long long)batch,
               ((const int *)c->o.d)[at], (int)e.i32);
    return;
  }
  scaled_format(dtype, &u, &least, &most);
  const double scale_d = p->scaling.scale_d ? (double)*c->o.scale_d : 1.0, value = scaled_value(c->o.d, at, dtype);
  double expected = scale_d * e.v;
  if (expected > most) expected = dtype == ATTUNE_I8 ? 127.0 : most;
  if (expected < -most) expected = -most;
  bool right;
  if (isnan(expected))
    right = dtype == ATTUNE_I8 ? value == 0.0 : isnan(value) != 0;
  else if (isinf(expected))
    right = value == expected;
  else
    right = fabs(value - expected) <= u * fabs(expected) * 1.001 + fabs(scale_d) * scaled_slack(c, e) + least * 1.001;
  if (dtype == ATTUNE_F16 && isinf(value) && fabs(expected) > 65500.0) right = value * expected > 0.0;
  if (dtype == ATTUNE_I8 && !isnan(expected) && expected > 127.0) right = value == 127.0;
  if (c->loose && !isfinite(e.v * scale_d)) right = dtype == ATTUNE_I8 || !isfinite(value) || fabs(value) == most;
  if (!right)
    fail_msg("%s, %s: (%lld,%lld,%lld) is %g, not %g (slack %g)", c->name, who, (long long)i, (long long)j,
             (long long)batch, value, expected, fabs(scale_d) * scaled_slack(c, e));
}

/* Is byte `at` of the data of D one of an element? */
static inline bool scaled_in_d(const scaled_case *c, size_t at) {
  const attune_gemm_problem *p = &c->p;
  const int64_t element = (int64_t)(at / attune_dtype_size(scaled_d(p))) % p->stride_d,
                inner = p->layout == ATTUNE_ROW_MAJOR ? p->n : p->m;
  return element % p->ldd < inner;
}

static inline void scaled_check_bytes(const scaled_case *c, const char *who) {
  for (int b = 0; b < c->blocks; b++) {
    const scaled_block *k = &c->block[b];
    for (size_t i = 0; i < k->bytes; i++) {
      if (k->raw[i] == k->before[i]) continue;
      const size_t begin = SCALED_GUARD + c->offset;
      const bool inside = i >= begin && i < k->bytes - SCALED_GUARD;
      const unsigned char *data = k->raw + begin;
      const unsigned char *amax = (const unsigned char *)c->o.amax_d;
      if (amax && k->raw + i >= amax && k->raw + i < amax + sizeof(float)) continue;
      if (inside && data == c->o.d && scaled_in_d(c, i - begin)) continue;
      fail_msg("%s, %s: byte %zu of block %d was written", c->name, who, i, b);
    }
  }
}

/* After a run, with D and amax in host memory. */
static inline void scaled_check(scaled_case *c, const char *who) {
  const attune_gemm_problem *p = &c->p;
  const scaled_answer *next = scaled_answers(c);
  double amax = 0.0, slack = 0.0;
  bool odd = false;
  for (int64_t b = 0; b < (p->batch ? p->batch : 1); b++)
    for (int64_t j = 0; j < p->n; j++)
      for (int64_t i = 0; i < p->m; i++) {
        const scaled_answer e = *next++;
        scaled_check_element(c, who, b, i, j, e);
        odd = odd || !isfinite(e.v);
        if (!isnan(e.v)) amax = fmax(amax, fabs(e.v)), slack = fmax(slack, scaled_slack(c, e));
      }
  scaled_check_bytes(c, who);
  if (!p->scaling.amax_d) return;
  const double found = (double)*c->o.amax_d;
  if (c->loose && (isinf(amax) || (odd && isinf(found)))) return;
  if (!(isinf(amax) ? isinf(found) : fabs(found - amax) <= slack + 0x1p-22 * amax))
    fail_msg("%s, %s: amax is %g, not %g (slack %g)", c->name, who, found, amax, slack);
}

#endif
