/* SPDX-License-Identifier: Apache-2.0
 * gemm_op_test.c: gemm as the conformance tests see it: the cases of gemm_cases.h, real ones with
 * epilogues, and batches whose matrices arrays of pointers name. */
#include <math.h>
#include <stdlib.h>

#include "ops/gemm/host/host_reference.h"
#include "ops/gemm/problem/epilogue.h"
#include "src/base/half.h"
#include "src/base/splitmix64.h"
#include "tests/ops/gemm/gemm_cases.h"
#include "tests/ops/op_test.h"

enum { EPILOGUES = 420, ARRAYS = 260 };

static int draw(uint64_t *state, int count) {
  return (int)(at_splitmix64(state) % (uint64_t)count);
}

/* Of a problem without C whose side is even; what gated products do not have goes. */
static void draw_scale(uint64_t *state, attune_gemm_problem *p) {
  p->scaling.scale_d = p->epilogue.bias_gradient < ATTUNE_BIAS_GRADIENT_M && draw(state, 4) == 0;
}

static void draw_gated(uint64_t *state, at_gemm_c c, attune_gemm_problem *p) {
  const uint8_t gated = (uint8_t)(1 + draw(state, 2));
  if (draw(state, 3) || c != AT_C_NONE || (gated == ATTUNE_GATED_M ? p->m : p->n) % 2) return;
  p->gated = gated;
  p->epilogue.aux = p->epilogue.gradient = p->epilogue.bias_gradient = 0;
  if (!p->epilogue.bias) p->epilogue.bias_dtype = 0;
}

/* Forward or backward, with each part now and then; a problem of a few elements has no mask, whose bits chance may set
 * right. */
static void draw_epilogue(uint64_t *state, attune_gemm_problem *p) {
  attune_gemm_epilogue *e = &p->epilogue;
  const attune_dtype out = p->dtype_out ? p->dtype_out : p->dtype;
  const bool large = p->m >= 7 && p->n >= 7;
  e->activation = (uint8_t)draw(state, ATTUNE_ACTIVATION_TANH + 1);
  e->gradient = e->activation != ATTUNE_ACTIVATION_NONE && draw(state, 3) == 0;
  e->aux = e->gradient || draw(state, 3) == 0 ? ATTUNE_AUX_INPUT : ATTUNE_AUX_NONE;
  if (e->aux && e->activation == ATTUNE_ACTIVATION_RELU && large && draw(state, 2)) e->aux = ATTUNE_AUX_RELU_MASK;
  if (draw(state, 2)) e->bias = (uint8_t)(1 + draw(state, 2));
  if (at_gemm_batch(p) == 1 && draw(state, 3) == 0) e->bias_gradient = (uint8_t)(1 + draw(state, 4));
  const bool of_d = e->bias_gradient >= ATTUNE_BIAS_GRADIENT_M;
  e->residual = !of_d && draw(state, 3) == 0;
  e->clamp = !of_d && draw(state, 4) == 0;
  if (draw(state, 3) == 0 && out != ATTUNE_F64) e->bias_dtype = ATTUNE_F32;
  if (!e->activation && !e->aux && !e->bias && !e->bias_gradient && !e->residual && !e->clamp) e->bias = ATTUNE_BIAS_N;
  const int64_t inner = p->layout == ATTUNE_ROW_MAJOR ? p->n : p->m;
  if (draw(state, 3) == 0) p->ld_residual = inner + 1 + draw(state, 9);
  if (draw(state, 3) == 0 && e->aux == ATTUNE_AUX_INPUT) p->ld_aux = inner + 1 + draw(state, 9);
  if (draw(state, 3) == 0 && e->aux == ATTUNE_AUX_RELU_MASK) p->ld_aux = (inner + 127) / 128 * 128 + 128;
}

static int case_count(void) {
  return at_gemm_case_count() + EPILOGUES + ARRAYS;
}

static bool case_at(int index, void *problem) {
  at_gemm_case c;
  bool swap = false;
  const int more = index - at_gemm_case_count();
  at_gemm_case_at(more < 0 ? index : more * 131 % at_gemm_case_count(), &c);
  if (more >= EPILOGUES) {
    attune_gemm_problem *p = &c.problem;
    p->pointers = (uint8_t)(1 + more % 2);
    p->stride_a = p->stride_b = p->stride_c = p->stride_d = 0;
  } else if (more >= 0) {
    uint64_t state = (uint64_t)more * 0x9E3779B97F4A7C15u + 777;
    if (at_gemm_complex(c.problem.dtype)) return false;
    draw_epilogue(&state, &c.problem);
    draw_gated(&state, c.c, &c.problem);
    draw_scale(&state, &c.problem);
    if (c.alignment < 4) c.alignment = 4; /* of a bias in f32 */
  }
  const at_gemm_use use = {.c = c.c, .alignment = (uint8_t)c.alignment};
  at_gemm *g = problem;
  return at_gemm_normalise(&c.problem, use, g, &swap) == ATTUNE_OK && !at_gemm_empty(g) && g->k > 0;
}

static double get(const void *data, unsigned dtype, int64_t at) {
  return dtype == ATTUNE_F64   ? ((const double *)data)[at]
         : dtype == ATTUNE_F32 ? (double)((const float *)data)[at]
         : dtype == ATTUNE_F16 ? (double)at_f16_to_f32(((const uint16_t *)data)[at])
                               : (double)at_bf16_to_f32(((const uint16_t *)data)[at]);
}

static void put(void *data, unsigned dtype, int64_t at, double x) {
  if (dtype == ATTUNE_F64)
    ((double *)data)[at] = x;
  else if (dtype == ATTUNE_F32)
    ((float *)data)[at] = (float)x;
  else
    ((uint16_t *)data)[at] = dtype == ATTUNE_F16 ? at_f64_to_f16(x) : at_f64_to_bf16(x);
}

static long double function(int activation, long double x) {
  const long double pi = acosl(-1.0L);
  switch (activation) {
  case ATTUNE_ACTIVATION_RELU: return x > 0.0L ? x : 0.0L;
  case ATTUNE_ACTIVATION_GELU: return x * 0.5L * (1.0L + erfl(x * sqrtl(0.5L)));
  case ATTUNE_ACTIVATION_GELU_TANH: return 0.5L * x * (1.0L + tanhl(sqrtl(2.0L / pi) * (x + 0.044715L * x * x * x)));
  case ATTUNE_ACTIVATION_SILU: return x / (1.0L + expl(-x));
  case ATTUNE_ACTIVATION_SIGMOID: return 1.0L / (1.0L + expl(-x));
  case ATTUNE_ACTIVATION_TANH: return tanhl(x);
  default: return x;
  }
}

static long double rise(int activation, long double x, long double h) {
  return function(activation, x + h) - function(activation, x - h);
}

/* Seven points: within 1e-16 of a derivative of these functions. */
static double slope(int activation, double x) {
  const long double h = 2e-3L;
  if (activation == ATTUNE_ACTIVATION_RELU) return x > 0.0 ? 1.0 : 0.0;
  return (
      double)((45.0L * rise(activation, x, h) - 9.0L * rise(activation, x, 2.0L * h) + rise(activation, x, 3.0L * h)) /
              (60.0L * h));
}

/* One element from the product on. */
static void follow(const at_gemm *g, const attune_gemm_operands *o, int64_t b, int64_t i, int64_t j) {
  const attune_gemm_epilogue e = g->epilogue;
  const int64_t at = g->stride_d * b + g->ldd * j + i, aux = g->stride_aux * b + g->ld_aux * j + i;
  unsigned char *bits = o->aux;
  double x = get(o->d, g->dtype_out, at);
  if (e.bias) x += get(o->bias, e.bias_dtype, e.bias == ATTUNE_BIAS_M ? i : j);
  if (e.aux == ATTUNE_AUX_INPUT && !e.gradient) put(o->aux, g->dtype_out, aux, x);
  if (e.aux == ATTUNE_AUX_RELU_MASK && !e.gradient)
    bits[aux / 8] = (unsigned char)((bits[aux / 8] & ~(1 << aux % 8)) | (x > 0.0) << aux % 8);
  if (!e.gradient)
    x = (double)function(e.activation, (long double)x);
  else
    x *= e.aux == ATTUNE_AUX_INPUT ? slope(e.activation, get(o->aux, g->dtype_out, aux)) : bits[aux / 8] >> aux % 8 & 1;
  if (e.residual) x += get(o->residual, g->dtype_out, g->stride_residual * b + g->ld_residual * j + i);
  if (e.clamp) x = fmin(fmax(x, o->clamp_min), o->clamp_max);
  if (g->scaling.scale_d) x *= (double)*o->scale_d;
  put(o->d, g->dtype_out, at, x);
}

/* D of a gated problem: the product goes elsewhere. */
static void gate(const at_gemm *g, const attune_gemm_operands *o) {
  at_gemm product = *g;
  attune_gemm_operands into = *o;
  const bool rows = g->gated == ATTUNE_GATED_M;
  product.ldd = g->m, product.stride_d = g->m * g->n;
  into.d = malloc((size_t)(product.stride_d * g->batch) * attune_dtype_size((attune_dtype)g->dtype_out));
  for (int64_t b = 0; b < g->batch; b++) at_gemm_plain(&product, &into, b, 0, g->m, 0, g->n);
  for (int64_t b = 0; b < g->batch; b++)
    for (int64_t j = 0; j < (rows ? g->n : g->n / 2); j++)
      for (int64_t i = 0; i < (rows ? g->m / 2 : g->m); i++) {
        double half[2];
        for (int h = 0; h < 2; h++) {
          const int64_t row = i + (rows && h ? g->m / 2 : 0), column = j + (!rows && h ? g->n / 2 : 0);
          half[h] = get(into.d, g->dtype_out, product.stride_d * b + g->m * column + row);
          if (g->epilogue.bias)
            half[h] += get(o->bias, g->epilogue.bias_dtype, g->epilogue.bias == ATTUNE_BIAS_M ? row : column);
        }
        double x = (double)function(g->epilogue.activation, (long double)half[0]) * half[1];
        if (g->epilogue.residual) x += get(o->residual, g->dtype_out, g->stride_residual * b + g->ld_residual * j + i);
        if (g->epilogue.clamp) x = fmin(fmax(x, o->clamp_min), o->clamp_max);
        if (g->scaling.scale_d) x *= (double)*o->scale_d;
        put(o->d, g->dtype_out, g->stride_d * b + g->ldd * j + i, x);
      }
  free(into.d);
}

static void sum_up(const at_gemm *g, const attune_gemm_operands *o) {
  const int which = g->epilogue.bias_gradient;
  const bool rows = which == ATTUNE_BIAS_GRADIENT_A || which == ATTUNE_BIAS_GRADIENT_M;
  for (int64_t x = 0; x < (rows ? g->m : g->n); x++) {
    double sum = 0.0;
    if (which == ATTUNE_BIAS_GRADIENT_A)
      for (int64_t k = 0; k < g->k; k++) sum += get(o->a, g->dtype, g->trans_a ? x * g->lda + k : k * g->lda + x);
    else if (which == ATTUNE_BIAS_GRADIENT_B)
      for (int64_t k = 0; k < g->k; k++) sum += get(o->b, g->dtype, g->trans_b ? k * g->ldb + x : x * g->ldb + k);
    else if (which == ATTUNE_BIAS_GRADIENT_M)
      for (int64_t j = 0; j < g->n; j++) sum += get(o->d, g->dtype_out, j * g->ldd + x);
    else
      for (int64_t i = 0; i < g->m; i++) sum += get(o->d, g->dtype_out, x * g->ldd + i);
    put(o->bias_gradient, g->epilogue.bias_dtype, x, sum);
  }
}

static void oracle(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars) {
  const at_gemm *g = at_gemm_of(problem);
  at_gemm_operands o;
  at_gemm_op.operands->bind(problem, pointers, scalars, &o);
  if (g->pointers) {
    o.a = pointers[AT_GEMM_A];
    o.b = pointers[AT_GEMM_B];
    o.d = pointers[AT_GEMM_D];
    o.c = pointers[g->c == AT_C_SEPARATE ? AT_GEMM_C : AT_GEMM_D];
  }
  if (g->gated) {
    gate(g, &o);
    return;
  }
  for (int64_t b = 0; b < g->batch; b++) at_gemm_plain(g, &o, b, 0, g->m, 0, g->n);
  if (!at_gemm_has_epilogue(g)) return;
  for (int64_t b = 0; b < g->batch; b++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) follow(g, &o, b, i, j);
  if (g->epilogue.bias_gradient) sum_up(g, &o);
}

/* The public problem: how C is used and the alignment are the operands'. */
static attune_status public_problem(attune_gemm_problem *out, const void *problem) {
  char text[AT_PROBLEM_CHARS];
  const attune_status status = at_gemm_format(problem, text, sizeof text);
  return status == ATTUNE_OK ? attune_gemm_problem_parse(out, text) : status;
}

static attune_status call(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands) {
  attune_gemm_problem p = {0};
  const attune_status status = public_problem(&p, problem);
  return status == ATTUNE_OK ? attune_gemm(tuner, stream, &p, operands) : status;
}

static attune_status plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const void *problem,
                                 const void *operands) {
  attune_gemm_problem p = {0};
  const attune_status status = public_problem(&p, problem);
  return status == ATTUNE_OK ? attune_gemm_plan_create(out, tuner, stream, &p, operands) : status;
}

static attune_status plan_run(const attune_plan *plan, attune_stream *stream, const void *operands) {
  return attune_gemm_plan_run(plan, stream, operands);
}

const at_op_test at_gemm_op_test = {.op = &at_gemm_op,
                                    .case_count = case_count,
                                    .case_at = case_at,
                                    .oracle = oracle,
                                    .call = call,
                                    .plan_create = plan_create,
                                    .plan_run = plan_run};
