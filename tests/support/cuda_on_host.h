/* SPDX-License-Identifier: Apache-2.0
 * cuda_on_host.h: the words of CUDA that generated kernels use, as C++ of the host: a test compiles kernels with it and
 * runs them block after block. A block's threads take turns at __syncthreads. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "src/base/half.h"

#define AT_ON_HOST 1
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static

struct uint2 {
  unsigned x, y;
} __attribute__((aligned(8), may_alias));
struct uint4 {
  unsigned x, y, z, w;
} __attribute__((aligned(16), may_alias));
static inline uint2 make_uint2(unsigned x, unsigned y) {
  return uint2{x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return uint4{x, y, z, w};
}

static struct place { unsigned x, y, z; } blockIdx, threadIdx, gridDim, blockDim;

template <class To, class From> static inline To bits_as(From from) {
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __uint_as_float(unsigned x) {
  return bits_as<float>(x);
}
static inline unsigned __float_as_uint(float x) {
  return bits_as<unsigned>(x);
}
static inline float __int_as_float(int x) {
  return bits_as<float>(x);
}
static inline int __float_as_int(float x) {
  return bits_as<int>(x);
}
static inline double __longlong_as_double(long long x) {
  return bits_as<double>(x);
}
static inline long long __double_as_longlong(double x) {
  return bits_as<long long>(x);
}
static inline float __double2float_rz(double x) {
  const float y = (float)x;
  return fabs((double)y) > fabs(x) ? nextafterf(y, 0.0f) : y;
}
static inline int __clz(int x) {
  return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __clzll(long long x) {
  return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline float __fadd_rn(float x, float y) {
  return x + y;
}
static inline float __fmul_rn(float x, float y) {
  return x * y;
}
static inline float __fdiv_rn(float x, float y) {
  return x / y;
}
static inline float __fdividef(float x, float y) {
  return x / y;
}
static inline float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}
static inline float __fsqrt_rn(float x) {
  return sqrtf(x);
}
static inline double __dadd_rn(double x, double y) {
  return x + y;
}
static inline double __dmul_rn(double x, double y) {
  return x * y;
}
static inline double __ddiv_rn(double x, double y) {
  return x / y;
}
static inline double __fma_rn(double x, double y, double z) {
  return fma(x, y, z);
}
static inline double __dsqrt_rn(double x) {
  return sqrt(x);
}
static inline float __frcp_rn(float x) {
  return 1.0f / x;
}
#define __ldg(p) (*(p))
#define __expf expf
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __sinf sinf
#define __cosf cosf
/* Newton's steps from Winitzki's formula. */
static inline double erfinv(double x) {
  if (!(fabs(x) < 1.0)) return fabs(x) == 1.0 ? copysign(INFINITY, x) : NAN;
  if (fabs(x) < 1e-12) return x * 0.88622692545275801;
  const long double l = logl((1.0L - x) * (1.0L + x)), b = 2.0L / (3.14159265358979324L * 0.147L) + l / 2;
  long double y = copysignl(sqrtl(sqrtl(b * b - l / 0.147L) - b), x);
  for (int i = 0; i < 8; i++) {
    const long double off =
        fabs(x) < 0.5 ? erfl(y) - x : (x < 0 ? -1 : 1) * ((1.0L - fabsl((long double)x)) - erfcl(fabsl(y)));
    const long double u = off / (1.12837916709551257L * expl(-y * y));
    y -= u / (1.0L + y * u);
  }
  return (double)y;
}
static inline float erfinvf(float x) {
  return (float)erfinv((double)x);
}

/* From here on the random headers' words of 64 bits are the kernels'. */
#define uint64_t unsigned long long
#define int64_t long long

typedef unsigned long long at_u64;
typedef long long at_i64;

/* ---- blocks ---- */

enum { FIBER_THREADS = 1024, FIBER_BYTES = 32768 };
static ucontext_t fiber_main, fibers[FIBER_THREADS];
static char fiber_stacks[FIBER_THREADS][FIBER_BYTES] __attribute__((aligned(16)));
static unsigned fiber_current;
static bool fiber_done[FIBER_THREADS];
static void (*fiber_body)(const void *);
static const void *fiber_argument;

static inline void __syncthreads() {
  swapcontext(&fibers[fiber_current], &fiber_main);
}

static void fiber_start() {
  fiber_body(fiber_argument);
  fiber_done[fiber_current] = true;
}

static void run_block(unsigned threads) {
  for (unsigned t = 0; t < threads; t++) {
    getcontext(&fibers[t]);
    fibers[t].uc_stack.ss_sp = fiber_stacks[t];
    fibers[t].uc_stack.ss_size = FIBER_BYTES;
    fibers[t].uc_link = &fiber_main;
    makecontext(&fibers[t], fiber_start, 0);
    fiber_done[t] = false;
  }
  for (bool more = true; more;) {
    more = false;
    for (fiber_current = 0; fiber_current < threads; fiber_current++) {
      if (fiber_done[fiber_current]) continue;
      threadIdx.x = fiber_current;
      swapcontext(&fiber_main, &fibers[fiber_current]);
      more = more || !fiber_done[fiber_current];
    }
  }
}

static void run_grid(void (*body)(const void *), const void *argument, unsigned blocks, unsigned threads, bool syncs) {
  gridDim = place{blocks, 1, 1};
  blockDim = place{threads, 1, 1};
  fiber_body = body;
  fiber_argument = argument;
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
    if (syncs)
      run_block(threads);
    else
      for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) body(argument);
  }
}
