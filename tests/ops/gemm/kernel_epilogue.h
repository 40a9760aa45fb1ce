/* SPDX-License-Identifier: Apache-2.0
 * kernel_epilogue.h: epilogues of cuda_gemm.h's cases, as kernels do them with their sums in registers: drawn, their
 * operands, and what they make of what is expected of the product. */
#ifndef TESTS_KERNEL_EPILOGUE_H
#define TESTS_KERNEL_EPILOGUE_H

#include "tests/support/cuda_gemm.h"

static inline int draw(int count) {
  return (int)((random_bits() >> 20) % (uint64_t)count);
}

/* Each part of an epilogue that kernels do, now and then; its matrices packed or with gaps. */
static inline void draw_epilogue(at_gemm *g) {
  attune_gemm_epilogue *e = &g->epilogue;
  *e = (attune_gemm_epilogue){.bias = (uint8_t)draw(3),
                              .activation = (uint8_t)draw(ATTUNE_ACTIVATION_TANH + 1),
                              .residual = (uint8_t)(draw(3) == 0),
                              .clamp = (uint8_t)(draw(4) == 0)};
  e->gradient = e->activation != ATTUNE_ACTIVATION_NONE && draw(3) == 0;
  e->aux = e->gradient || draw(3) == 0 ? ATTUNE_AUX_INPUT : ATTUNE_AUX_NONE;
  if (e->gradient && e->activation == ATTUNE_ACTIVATION_RELU && draw(2)) e->aux = ATTUNE_AUX_RELU_MASK;
  g->scaling.scale_d = draw(4) == 0;
  if (e->bias) e->bias_dtype = draw(2) && g->dtype_out != ATTUNE_F64 ? ATTUNE_F32 : g->dtype_out;
  if (e->residual) g->ld_residual = g->m + (draw(2) ? 0 : 8 * draw(2) + draw(2));
  if (e->aux) g->ld_aux = e->aux == ATTUNE_AUX_RELU_MASK ? (g->m + 127) / 128 * 128 : g->m + (draw(2) ? 0 : draw(9));
  if (g->batch > 1) g->stride_residual = g->ld_residual * g->n, g->stride_aux = g->ld_aux * g->n;
}

static inline long double function(int activation, long double x) {
  switch (activation) {
  case ATTUNE_ACTIVATION_RELU: return x > 0.0L ? x : isnan(x) ? x : 0.0L;
  case ATTUNE_ACTIVATION_GELU: return 0.5L * x * (1.0L + erfl(x * sqrtl(0.5L)));
  case ATTUNE_ACTIVATION_GELU_TANH:
    return 0.5L * x * (1.0L + tanhl(sqrtl(2.0L / acosl(-1.0L)) * (x + 0.044715L * x * x * x)));
  case ATTUNE_ACTIVATION_SILU: return x / (1.0L + expl(-x));
  case ATTUNE_ACTIVATION_SIGMOID: return 1.0L / (1.0L + expl(-x));
  case ATTUNE_ACTIVATION_TANH: return tanhl(x);
  default: return x;
  }
}

static inline long double rise(int activation, long double x, long double h) {
  return function(activation, x + h) - function(activation, x - h);
}

/* Seven points: within 1e-16 of a derivative of these functions. */
static inline double slope(int activation, long double x) {
  const long double h = 2e-3L;
  if (activation == ATTUNE_ACTIVATION_RELU) return x > 0.0L ? 1.0 : 0.0;
  return (
      double)((45.0L * rise(activation, x, h) - 9.0L * rise(activation, x, 2.0L * h) + rise(activation, x, 3.0L * h)) /
              (60.0L * h));
}

enum { POISON = 0xaa, BEHIND = 64 };

/* `count` elements and more behind them, to be freed: drawn, or poisoned. */
static inline unsigned char *vector_of(attune_dtype dtype, int64_t count, bool drawn) {
  const size_t element = attune_dtype_size(dtype);
  unsigned char *out = malloc(((size_t)count + BEHIND) * element);
  assert_non_null(out);
  memset(out, POISON, ((size_t)count + BEHIND) * element);
  for (int64_t i = 0; i < count && drawn; i++)
    encode(dtype, out + (size_t)i * element, random_value(dtype, DATA_NORMAL));
  return out;
}

typedef struct extras {
  unsigned char *bias, *residual, *aux;
  long double *z, *z_weight; /* the aux that is expected, where it is written */
} extras;

/* The epilogue's operands into the case, to be freed; what is expected becomes what follows, and the errors grow. */
static inline extras follow(gemm_case *t) {
  const at_gemm *g = &t->g;
  const attune_gemm_epilogue *e = &g->epilogue;
  const attune_dtype out = (attune_dtype)g->dtype_out, vector = e->bias ? (attune_dtype)e->bias_dtype : ATTUNE_F32;
  const int64_t columns = g->n * g->batch;
  const size_t element = attune_dtype_size(out), all = (size_t)(g->m * columns);
  const extras x = {vector_of(vector, g->m > g->n ? g->m : g->n, true), vector_of(out, g->ld_residual * columns, true),
                    vector_of(out, g->ld_aux * columns, e->gradient), calloc(all, sizeof *x.z),
                    calloc(all, sizeof *x.z)};
  assert_true(x.z && x.z_weight);
  t->operands.bias = x.bias, t->operands.residual = x.residual, t->operands.aux = x.aux;
  static const float scale = -1.75f;
  t->operands.scale_d = &scale;
  t->operands.clamp_min = -0.5, t->operands.clamp_max = 2.0;
  for (int64_t at = 0; at < g->m * columns; at++) {
    const int64_t row = at % g->m, column = at / g->m, aux = g->ld_aux * column + row;
    const int64_t i = e->bias == ATTUNE_BIAS_M ? row : column % g->n;
    const double bias = e->bias ? decode(vector, x.bias + (size_t)i * attune_dtype_size(vector)) : 0.0,
                 z = (double)t->expected[at] + bias;
    double steep = 1.13, y = (double)function(e->activation, z);
    x.z[at] = z, x.z_weight[at] = t->weight[at] + (long double)fabs(bias);
    if (e->gradient) {
      steep = e->aux == ATTUNE_AUX_RELU_MASK ? x.aux[aux / 8] >> aux % 8 & 1
                                             : slope(e->activation, decode(out, x.aux + (size_t)aux * element));
      y = z * steep;
    }
    const double more = e->residual ? decode(out, x.residual + (size_t)(g->ld_residual * column + row) * element) : 0.0;
    t->expected[at] = y + more;
    t->weight[at] =
        fmaxl(fabsl(steep), 0.1L) * x.z_weight[at] + 2.0L * (long double)fmax(fabs(z), 1.0) + (long double)fabs(more);
    if (e->clamp) t->expected[at] = fminl(fmaxl(t->expected[at], -0.5L), 2.0L);
    if (g->scaling.scale_d) t->expected[at] *= (long double)scale, t->weight[at] *= fabsl((long double)scale);
  }
  return x;
}

/* Of aux where it is written: its elements, and that nothing else was. */
static inline bool aux_is_right(const gemm_case *t, const extras *x) {
  const at_gemm *g = &t->g;
  const attune_dtype out = (attune_dtype)g->dtype_out;
  const size_t element = attune_dtype_size(out);
  const double unit = g->dtype == ATTUNE_F32 && g->accuracy == ATTUNE_REDUCED ? 0x1p-10
                      : out == ATTUNE_BF16                                    ? 0x1p-8
                      : out == ATTUNE_F16                                     ? 0x1p-11
                      : out == ATTUNE_F32                                     ? 0x1p-22
                                                                              : 0x1p-50;
  const int64_t all = g->ld_aux * g->n * g->batch;
  if (!g->epilogue.aux || g->epilogue.gradient) return true;
  for (int64_t at = 0; at < all + BEHIND; at++) {
    const int64_t row = at % g->ld_aux, place = at / g->ld_aux * g->m + row;
    const unsigned char *is = x->aux + (size_t)at * element;
    bool right = true;
    if (at < all && row < g->m)
      right = fabs(decode(out, is) - (double)x->z[place]) <= 16.0 * unit * (double)x->z_weight[place] + 1e-7;
    else
      for (size_t i = 0; i < element; i++) right = right && is[i] == POISON;
    if (!right) return false;
  }
  return true;
}

static inline void free_extras(extras *x) {
  free(x->bias), free(x->residual), free(x->aux), free(x->z), free(x->z_weight);
}

#endif
