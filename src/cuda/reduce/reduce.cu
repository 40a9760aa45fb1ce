/* SPDX-License-Identifier: Apache-2.0
 * reduce.cu: several arrays reduced into one. A thread takes 16 bytes of each where all of them are aligned so (WIDE),
 * else one element. OP is the reduction: 0 sum, 1 product, 2 smallest, 3 largest, 4 mean. Compiled at run time;
 * reduce.h has the arguments. It is also C, so that a test can run it on the host. */
#ifndef DTYPE
#define DTYPE 2
#endif
#ifndef WIDE
#define WIDE 1
#endif
#ifndef OP
#define OP 0
#endif

/* types.h's numbers; complex numbers come as twice as many real ones. Sums and products of signed integers are made of
 * unsigned ones, which wrap; small integers are widened, so that C's own promotion to int cannot overflow. */
#if OP == 2 || OP == 3
#define SIGNED(type) signed type
#else
#define SIGNED(type) unsigned type
#endif
#if DTYPE == 1
typedef double element;
typedef double wider;
#elif DTYPE == 2
typedef float element;
typedef float wider;
#elif DTYPE == 3 || DTYPE == 4
typedef unsigned short element;
typedef float wider;
#elif DTYPE == 5
typedef SIGNED(int) element;
typedef SIGNED(int) wider;
#elif DTYPE == 6
typedef SIGNED(long long) element;
typedef SIGNED(long long) wider;
#elif DTYPE == 7
typedef SIGNED(char) element;
typedef SIGNED(int) wider;
#elif DTYPE == 8
typedef SIGNED(short) element;
typedef SIGNED(int) wider;
#elif DTYPE == 9
typedef unsigned char element;
typedef unsigned int wider;
#elif DTYPE == 10
typedef unsigned short element;
typedef unsigned int wider;
#elif DTYPE == 11
typedef unsigned int element;
typedef unsigned int wider;
#elif DTYPE == 12
typedef unsigned long long element;
typedef unsigned long long wider;
#else
#error "DTYPE should be 1 to 12"
#endif

#if WIDE
#define EACH (16 / (int)sizeof(element))
#else
#define EACH 1
#endif

struct at_reduce_arguments {
  element *out;
  unsigned long long count;
  int inputs;
  short dtype, reduction;
  const element *in[64];
};

struct piece {
  element at[EACH];
}
#if WIDE
__attribute__((aligned(16)))
#endif
;

#if DTYPE == 3 && !defined(AT_ON_HOST)
static __device__ __forceinline__ float load(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
static __device__ __forceinline__ unsigned short store(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
#elif DTYPE == 4 && !defined(AT_ON_HOST)
static __device__ __forceinline__ float load(unsigned short x) {
  return __uint_as_float((unsigned int)x << 16);
}
static __device__ __forceinline__ unsigned short store(float x) {
  const unsigned int bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (unsigned short)((bits >> 16) | 0x40u);
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#elif DTYPE == 3
#define load(x) at_f16_to_f32(x)
#define store(x) at_f32_to_f16(x)
#elif DTYPE == 4
#define load(x) at_bf16_to_f32(x)
#define store(x) at_f32_to_bf16(x)
#else
#define load(x) (x)
#define store(x) (x)
#endif

/* Of a NaN and a number the smallest and the largest are the number. */
static __device__ __forceinline__ wider combine(wider x, wider y) {
#if OP == 1
  return x * y;
#elif OP == 2 && DTYPE <= 4
  return y < x || x != x ? y : x;
#elif OP == 3 && DTYPE <= 4
  return y > x || x != x ? y : x;
#elif OP == 2
  return y < x ? y : x;
#elif OP == 3
  return y > x ? y : x;
#else
  return x + y;
#endif
}

#if OP == 4
#define finish(x, a) store((x) / (wider)(a)->inputs)
#else
#define finish(x, a) store(x)
#endif

static __device__ __forceinline__ void take_one(const struct at_reduce_arguments *a, unsigned long long i) {
  wider all = load(a->in[0][i]);
  for (int k = 1; k < a->inputs; k++) all = combine(all, load(a->in[k][i]));
  a->out[i] = (element)finish(all, a);
}

static __device__ __forceinline__ void take_piece(const struct at_reduce_arguments *a, unsigned long long i) {
  wider all[EACH];
  const struct piece first = ((const struct piece *)a->in[0])[i];
  struct piece out;
#pragma unroll
  for (int j = 0; j < EACH; j++) all[j] = load(first.at[j]);
  for (int k = 1; k < a->inputs; k++) {
    const struct piece next = ((const struct piece *)a->in[k])[i];
#pragma unroll
    for (int j = 0; j < EACH; j++) all[j] = combine(all[j], load(next.at[j]));
  }
#pragma unroll
  for (int j = 0; j < EACH; j++) out.at[j] = (element)finish(all[j], a);
  ((struct piece *)a->out)[i] = out;
}

#ifdef __cplusplus
extern "C"
#endif
    __global__ void
    __launch_bounds__(256) at_reduce(const __grid_constant__ struct at_reduce_arguments a) {
  const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x, pieces = a.count / EACH;
  const unsigned long long own = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned long long i = own; i < pieces; i += threads) take_piece(&a, i);
  for (unsigned long long i = pieces * EACH + own; i < a.count; i += threads) take_one(&a, i);
}
