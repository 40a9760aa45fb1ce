/* SPDX-License-Identifier: Apache-2.0
 * value.c: see value.h. */
#include "ops/gemm/scaled/value.h"

#include <math.h>

static double within(double x, double most) {
  return x > most ? most : x < -most ? -most : x;
}

static int8_t to_i8(double x) {
  return (int8_t)(x != x ? 0.0 : x > 127.0 ? 127.0 : x < -128.0 ? -128.0 : nearbyint(x));
}

void at_scaled_store(void *p, int64_t at, attune_dtype dtype, double x) {
  switch (dtype) {
  case ATTUNE_F8E4M3: ((uint8_t *)p)[at] = at_f64_to_f8e4m3(within(x, 448.0)); break;
  case ATTUNE_F8E5M2: ((uint8_t *)p)[at] = at_f64_to_f8e5m2(within(x, 57344.0)); break;
  case ATTUNE_I8: ((int8_t *)p)[at] = to_i8(x); break;
  case ATTUNE_F32: ((float *)p)[at] = (float)x; break;
  case ATTUNE_F16: ((uint16_t *)p)[at] = at_f64_to_f16(x); break;
  default: ((uint16_t *)p)[at] = at_f64_to_bf16(x); break;
  }
}

at_scaled_end at_scaled_end_of(const at_gemm *g, const at_gemm_operands *o) {
  const attune_gemm_scaling s = g->scaling;
  const bool product = !at_gemm_alpha_is_0((attune_dtype)g->dtype, o); /* else no scale of A or B is read */
  at_scaled_end end = {.g = g, .o = o, .alpha = (double)(float)o->alpha, .scale_d = 1.0};
  if (g->c != AT_C_NONE) end.beta = (double)(float)o->beta;
  if (product && s.scale_a == ATTUNE_SCALE_TENSOR) end.alpha *= (double)*o->scale_a;
  if (product && s.scale_b == ATTUNE_SCALE_TENSOR) end.alpha *= (double)*o->scale_b;
  if (product && s.scale_a == ATTUNE_SCALE_VECTOR) end.scale_a = o->scale_a;
  if (product && s.scale_b == ATTUNE_SCALE_VECTOR) end.scale_b = o->scale_b;
  if (s.scale_d) end.scale_d = (double)*o->scale_d;
  return end;
}

float at_scaled_put(const at_scaled_end *end, int64_t batch, int64_t i, int64_t j, double sum, float most) {
  const at_gemm *g = end->g;
  double x = end->alpha * sum;
  if (end->scale_a) x *= (double)end->scale_a[i];
  if (end->scale_b) x *= (double)end->scale_b[j];
  if (end->beta != 0.0)
    x += end->beta * at_scaled_load(end->o->c, batch * g->stride_c + j * g->ldc + i, at_gemm_dtype_c(g));
  const float size = (float)fabs(x);
  at_scaled_store(end->o->d, batch * g->stride_d + j * g->ldd + i, (attune_dtype)g->dtype_out, end->scale_d * x);
  return size > most ? size : most;
}

void at_scaled_put_i32(const at_scaled_end *end, int64_t batch, int64_t i, int64_t j, uint32_t sum) {
  const at_gemm *g = end->g;
  uint32_t x = (uint32_t)at_scaled_integer(end->o->alpha) * sum;
  if (end->beta != 0.0)
    x += (uint32_t)at_scaled_integer(end->o->beta) *
         (uint32_t)((const int32_t *)end->o->c)[batch * g->stride_c + j * g->ldc + i];
  ((int32_t *)end->o->d)[batch * g->stride_d + j * g->ldd + i] = (int32_t)x;
}

void at_scaled_raise(float *amax, float most) {
  uint32_t now = __atomic_load_n((uint32_t *)(void *)amax, __ATOMIC_RELAXED);
  const uint32_t bits = at_bits_of_f32(most);
  while (bits > now &&
         !__atomic_compare_exchange_n((uint32_t *)(void *)amax, &now, bits, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
