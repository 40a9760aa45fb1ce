/* SPDX-License-Identifier: Apache-2.0
 * torch.cu: the numbers of PyTorch's kernels: its mapping of elements to threads and Philox blocks (torch.h), and the
 * device formulas of cuRAND and PyTorch, with the same intrinsics and the same contraction to fused multiply-adds.
 * Specialised by macros. */
#ifndef AT_EMBEDDED
/* in this order */
#include "src/random/philox.h"

#include "src/random/transforms.h"

#include "src/random/call.h"
#endif

#ifndef KIND
#define KIND 1   /* AT_UNIFORM ... */
#define TYPE 2   /* AT_F64 ... */
#define UNROLL 4 /* samples used of a Philox block; 2: computed in 64 bits */
#endif

#define NORMAL (KIND == AT_NORMAL || KIND == AT_LOG_NORMAL)

static __device__ __forceinline__ float torch_uniform32(at_u32 w) {
  return __fmaf_rn((float)w, 0x1p-32f, 0x1p-33f);
}
static __device__ __forceinline__ at_u64 bits53(at_u32 low, at_u32 high) {
  return low ^ (at_u64)high << 21;
}
static __device__ __forceinline__ double torch_uniform64(at_u32 low, at_u32 high) {
  return __fma_rn((double)bits53(low, high), 0x1p-53, 0x1p-54);
}

static __device__ __forceinline__ void torch_normal32(at_u32 x, at_u32 y, float *first, float *second) {
  const float scale = 2.3283064e-10f * 6.2831855f;
  float sine, cosine;
  const float angle = __fmaf_rn((float)y, scale, scale / 2), radius = sqrtf(-2.0f * logf(torch_uniform32(x)));
  __sincosf(angle, &sine, &cosine);
  *first = __fmul_rn(sine, radius);
  *second = __fmul_rn(cosine, radius);
}

static __device__ __forceinline__ void torch_normal64(const at_philox_block &block, double *first, double *second) {
  double sine, cosine;
  const double turns = __fma_rn((double)bits53(block.w[2], block.w[3]), 0x1p-52, 0x1p-53);
  const double radius = sqrt(-2.0 * log(torch_uniform64(block.w[0], block.w[1])));
  sincospi(turns, &sine, &cosine);
  *first = __dmul_rn(sine, radius);
  *second = __dmul_rn(cosine, radius);
}

static __device__ __forceinline__ float transform32(const at_random_call &call, float x) {
  switch (KIND) {
  case AT_UNIFORM:
  case AT_NORMAL: return __fmaf_rn(x, call.f[1], call.f[0]);
  case AT_LOG_NORMAL: return __expf(__fmaf_rn(x, call.f[1], call.f[0]));
  case AT_EXPONENTIAL: return __fmul_rn(__fdiv_rn(-1.0f, call.f[1]), x >= 1.0f - 0x1p-24f ? -0x1p-24f : __logf(x));
  default: return x < call.f[1] ? 1.0f : 0.0f;
  }
}

static __device__ __forceinline__ double transform64(const at_random_call &call, double x) {
  switch (KIND) {
  case AT_UNIFORM:
  case AT_NORMAL: return __fma_rn(x, call.d[1], call.d[0]);
  case AT_LOG_NORMAL: return exp(__fma_rn(x, call.d[1], call.d[0]));
  case AT_EXPONENTIAL: return __dmul_rn(__ddiv_rn(-1.0, call.d[1]), x >= 1.0 - 0x1p-53 ? -0x1p-53 : log(x));
  default: return x < call.d[1] ? 1.0 : 0.0;
  }
}

#if TYPE == AT_F16 || TYPE == AT_BF16
static __device__ __forceinline__ unsigned short to_half(float x) {
  unsigned short h;
#if TYPE == AT_F16
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
#else
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
#endif
  return h;
}
#endif

/* Uniform samples that became `to` become `from`, after the conversion. */
static __device__ __forceinline__ void store32(const at_random_call &call, at_u64 i, float x) {
#if TYPE == AT_F16 || TYPE == AT_BF16
  const unsigned short h = to_half(x);
  ((unsigned short *)call.out)[i] = KIND == AT_UNIFORM && h == to_half(call.f[2]) ? to_half(call.f[0]) : h;
#elif TYPE == AT_I32
  ((int *)call.out)[i] = (int)x;
#else
  ((float *)call.out)[i] = KIND == AT_UNIFORM && x == call.f[2] ? call.f[0] : x;
#endif
}

static __device__ __forceinline__ void store64(const at_random_call &call, at_u64 i, double x) {
#if TYPE == AT_I64
  ((long long *)call.out)[i] = (long long)x;
#else
  ((double *)call.out)[i] = KIND == AT_UNIFORM && x == call.d[2] ? call.d[0] : x;
#endif
}

static __device__ __forceinline__ void store_integer(const at_random_call &call, at_u64 i, at_u64 bits) {
  const at_u64 rest =
      UNROLL == 2 ? (call.range ? bits % call.range : bits) : (at_u64)((at_u32)bits % (at_u32)call.range);
  const at_i64 value = (at_i64)(rest + (at_u64)call.from);
#if TYPE == AT_I64
  ((long long *)call.out)[i] = value;
#elif TYPE == AT_F64
  ((double *)call.out)[i] = (double)value;
#elif TYPE == AT_I32
  ((int *)call.out)[i] = (int)value;
#else
  store32(call, i, (float)value);
#endif
}

/* Sample k of a block to element i. */
static __device__ __forceinline__ void put(const at_random_call &call, const at_philox_block &block, int k,
                                           const float *x, const double *y, at_u64 i) {
  if (KIND == AT_INTEGERS)
    store_integer(call, i, UNROLL == 2 ? (at_u64)block.w[2 * k] << 32 | block.w[2 * k + 1] : block.w[k]);
  else if (TYPE == AT_F64 || TYPE == AT_I64) /* i64 compares its f32 sample in f64 */
    store64(call, i, transform64(call, y[k]));
  else
    store32(call, i, transform32(call, x[k]));
}

extern "C" __global__ void __launch_bounds__(256) at_random_torch(const __grid_constant__ at_random_call call) {
  const at_u64 seed = call.state ? call.state[0] : call.seed,
               offset = call.state ? call.state[1] + call.offset : call.offset;
  const at_u64 thread = (at_u64)blockIdx.x * blockDim.x + threadIdx.x;
  at_u64 counter = offset / 4u;
  for (at_u64 first = thread; first < call.count; first += call.threads * UNROLL, counter++) {
    const at_philox_block block = at_philox(seed, counter, thread);
    float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    double y[4] = {0.0, 0.0, 0.0, 0.0};
    if (TYPE == AT_F64 && NORMAL) {
      torch_normal64(block, &y[0], &y[1]);
    } else if (TYPE == AT_F64) {
      y[0] = torch_uniform64(block.w[0], block.w[1]);
      y[1] = torch_uniform64(block.w[2], block.w[3]);
    } else if (NORMAL) {
      torch_normal32(block.w[0], block.w[1], &x[0], &x[1]);
      torch_normal32(block.w[2], block.w[3], &x[2], &x[3]);
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++) y[k] = x[k] = torch_uniform32(block.w[k]);
    }
#pragma unroll
    for (int k = 0; k < UNROLL; k++)
      if (first + call.threads * (at_u64)k < call.count) put(call, block, k, x, y, first + call.threads * (at_u64)k);
  }
}
