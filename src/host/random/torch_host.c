/* SPDX-License-Identifier: Apache-2.0
 * torch_host.c: the numbers of PyTorch's kernels, computed by the host: cuRAND's device formulas with the C library's
 * functions. */
#include "src/random/torch.h"

#include <float.h>
#include <math.h>

/* u in (0, 1]. */
static float uniform32(uint32_t w) {
  return fmaf((float)w, 0x1p-32f, 0x1p-33f);
}
static uint64_t bits53(uint32_t low, uint32_t high) {
  return low ^ (uint64_t)high << 21;
}
static double uniform64(uint32_t low, uint32_t high) {
  return fma((double)bits53(low, high), 0x1p-53, 0x1p-54);
}

static void normal32(float out[2], uint32_t x, uint32_t y) {
  const float scale = 2.3283064e-10f * 6.2831855f;
  const float angle = fmaf((float)y, scale, scale / 2), radius = sqrtf(-2.0f * logf(uniform32(x)));
  out[0] = sinf(angle) * radius;
  out[1] = cosf(angle) * radius;
}

static void normal64(double out[2], const uint32_t w[4]) {
  const double pi = 3.14159265358979323846, turns = fma((double)bits53(w[2], w[3]), 0x1p-52, 0x1p-53);
  const double radius = sqrt(-2.0 * log(uniform64(w[0], w[1])));
  out[0] = sin(turns * pi) * radius;
  out[1] = cos(turns * pi) * radius;
}

static double exponential(const at_random_call *call, double u) {
  if (call->dtype == AT_F64) return -1.0 / call->d[1] * (u >= 1.0 - DBL_EPSILON / 2 ? -DBL_EPSILON / 2 : log(u));
  const float v = (float)u, l = v >= 1.0f - FLT_EPSILON / 2 ? -FLT_EPSILON / 2 : logf(v);
  return -1.0f / call->f[1] * l;
}

/* u or a normal sample to the value before its conversion to f16 or bf16. */
static double transformed(const at_random_call *call, double x) {
  const bool wide = call->dtype == AT_F64;
  switch (call->distribution) {
  case AT_UNIFORM: return wide ? fma(x, call->d[1], call->d[0]) : (double)fmaf((float)x, call->f[1], call->f[0]);
  case AT_NORMAL: return wide ? fma(x, call->d[1], call->d[0]) : (double)fmaf((float)x, call->f[1], call->f[0]);
  case AT_LOG_NORMAL:
    return wide ? exp(fma(x, call->d[1], call->d[0])) : (double)expf(fmaf((float)x, call->f[1], call->f[0]));
  case AT_EXPONENTIAL: return exponential(call, x);
  default: return (call->dtype == AT_F64 || call->dtype == AT_I64 ? x < call->d[1] : (float)x < call->f[1]) ? 1.0 : 0.0;
  }
}

static void store(const at_random_call *call, uint64_t i, double x) {
  const bool reverse = call->distribution == AT_UNIFORM; /* `to` becomes `from`, after the conversion */
  if (call->dtype == AT_F64) ((double *)call->out)[i] = reverse && x == call->d[2] ? call->d[0] : x;
  if (call->dtype == AT_F32) ((float *)call->out)[i] = reverse && (float)x == call->f[2] ? call->f[0] : (float)x;
  if (call->dtype == AT_I32) ((int32_t *)call->out)[i] = (int32_t)x;
  if (call->dtype == AT_I64) ((int64_t *)call->out)[i] = (int64_t)x;
  if (call->dtype == AT_F16) {
    const uint16_t h = at_f64_to_f16(x);
    ((uint16_t *)call->out)[i] = reverse && at_f16_to_f32(h) == call->f[2] ? at_f64_to_f16(call->d[0]) : h;
  }
  if (call->dtype == AT_BF16) {
    const uint16_t h = at_f64_to_bf16(x);
    ((uint16_t *)call->out)[i] = reverse && at_bf16_to_f32(h) == call->f[2] ? at_f64_to_bf16(call->d[0]) : h;
  }
}

static void samples(const at_random_call *call, const uint32_t w[4], double out[4]) {
  const bool normal = call->distribution == AT_NORMAL || call->distribution == AT_LOG_NORMAL;
  if (call->dtype == AT_F64 && normal) {
    normal64(out, w);
  } else if (call->dtype == AT_F64) {
    out[0] = uniform64(w[0], w[1]);
    out[1] = uniform64(w[2], w[3]);
  } else if (normal) {
    float pairs[4];
    normal32(pairs, w[0], w[1]);
    normal32(pairs + 2, w[2], w[3]);
    for (int k = 0; k < 4; k++) out[k] = pairs[k];
  } else {
    for (int k = 0; k < 4; k++) out[k] = uniform32(w[k]);
  }
}

static void store_integer(const at_random_call *call, uint64_t i, const uint32_t w[4], int k, int unroll) {
  const uint64_t bits = unroll == 2 ? (uint64_t)w[2 * k] << 32 | w[2 * k + 1] : w[k];
  const int64_t value = (int64_t)((call->range ? bits % call->range : bits) + (uint64_t)call->from);
  if (call->dtype == AT_I64)
    ((int64_t *)call->out)[i] = value;
  else
    store(call, i, (double)value);
}

void at_torch_fill_host(const at_random_call *call, uint64_t first, uint64_t count) {
  const int unroll = at_torch_unroll(call);
  for (uint64_t q = first; q < first + count; q++) {
    const uint64_t pass = q / call->threads, thread = q % call->threads;
    const at_philox_block block = at_philox(call->seed, call->offset / 4 + pass, thread);
    double x[4] = {0};
    if (call->distribution != AT_INTEGERS) samples(call, block.w, x);
    for (int k = 0; k < unroll; k++) {
      const uint64_t i = (pass * (uint64_t)unroll + (uint64_t)k) * call->threads + thread;
      if (i >= call->count) break;
      if (call->distribution == AT_INTEGERS)
        store_integer(call, i, block.w, k, unroll);
      else
        store(call, i, transformed(call, x[k]));
    }
  }
}
