/* SPDX-License-Identifier: Apache-2.0
 * transforms.h: from random words to samples, in the portable mode. C and CUDA read this file and must give the same
 * bits: it uses nothing but IEEE additions, multiplications, fused multiply-adds, square roots, divisions and
 * conversions, each rounded to nearest even once, in the order written; no library function. C files that include it
 * are compiled with -ffp-contract=off. */
#ifndef AT_RANDOM_TRANSFORMS_H
#define AT_RANDOM_TRANSFORMS_H

#ifdef __CUDACC__
#define AT_FMA(a, b, c) __fmaf_rn(a, b, c)
#define AT_MUL(a, b) __fmul_rn(a, b)
#define AT_ADD(a, b) __fadd_rn(a, b)
#define AT_FMA64(a, b, c) __fma_rn(a, b, c)
#define AT_MUL64(a, b) __dmul_rn(a, b)
#define AT_ADD64(a, b) __dadd_rn(a, b)
#define AT_DIV64(a, b) __ddiv_rn(a, b)
#define AT_SQRT64(a) __dsqrt_rn(a)
#define AT_BITS(x) __float_as_uint(x)
#define AT_FLOAT(bits) __uint_as_float(bits)
#define AT_BITS64(x) ((at_u64)__double_as_longlong(x))
#define AT_DOUBLE(bits) __longlong_as_double((at_i64)(bits))
#define AT_HIGH64(a, b) __umul64hi(a, b)
/* A constant that stays in a register: an instruction takes one constant operand, and for a second the compiler would
 * spend another instruction each time. Blocks have one dimension, so threadIdx.y is 0, which the compiler cannot know.
 */
#define AT_ADDRESS_TABLE __device__ const
#define AT_ALIGN8 __attribute__((aligned(8)))
#define AT_HELD(x) AT_FLOAT(AT_BITS(x) ^ threadIdx.y)
#define AT_HELD_BITS(bits) ((bits) ^ threadIdx.y)
#else
#include "src/base/half.h"
#include "src/random/philox.h"
#define AT_FMA(a, b, c) __builtin_fmaf(a, b, c)
#define AT_MUL(a, b) ((a) * (b))
#define AT_ADD(a, b) ((a) + (b))
#define AT_FMA64(a, b, c) __builtin_fma(a, b, c)
#define AT_MUL64(a, b) ((a) * (b))
#define AT_ADD64(a, b) ((a) + (b))
#define AT_DIV64(a, b) ((a) / (b))
#define AT_SQRT64(a) __builtin_sqrt(a)
#define AT_BITS(x) at_bits_of_f32(x)
#define AT_FLOAT(bits) at_f32_of_bits(bits)
#define AT_BITS64(x) at_bits_of_f64(x)
#define AT_DOUBLE(bits) at_f64_of_bits(bits)
#define AT_ADDRESS_TABLE const
#define AT_ALIGN8
#define AT_HELD(x) (x)
#define AT_HELD_BITS(bits) (bits)
#define AT_HIGH64(a, b) ((at_u64)(((at_u128)(a) * (b)) >> 64))
__extension__ typedef unsigned __int128 at_u128;
static inline double at_f64_of_bits(at_u64 bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
#endif

/* The square root of x, 2^-60 < x < 2^60, correctly rounded. On CUDA by hand: the compiler's own has a branch for
 * operands outside. */
AT_BOTH float at_sqrt32(float x) {
#ifdef __CUDACC__
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  const float root = AT_MUL(x, y), half = AT_MUL(y, 0.5f);
  return AT_FMA(AT_FMA(-root, root, x), half, root);
#else
  return __builtin_sqrtf(x);
#endif
}

/* ---- f32 ---- */

/* (0, 1): 2^-33 to 1 - 2^-24; the factor is a little below 2^-32 so that 1 is not reached and no logarithm is zero. */
AT_BOTH float at_open32(at_u32 w) {
  return AT_FMA((float)w, AT_HELD(0x1.fffffep-33f), 0x1p-33f);
}

/* -2 ln(u) for a normal u in (0, 1): u = 2^e (1 + f), |f| <= 1/3; relative error below 1.2e-6. */
AT_BOTH float at_log32(float u) {
  const at_u32 bits = AT_BITS(u), k = (bits - 0x3f2aaaabu) & 0xff800000u;
  const float f = AT_ADD(AT_FLOAT(bits - k), -1.0f), e = (float)(int)k; /* e: the exponent times 2^23 */
  float p = AT_HELD(-0x1.66a5e8p-2f);
  p = AT_FMA(p, f, 0x1.8d79cp-2f);
  p = AT_FMA(p, f, -0x1.9408aep-2f);
  p = AT_FMA(p, f, 0x1.fcc19ep-2f);
  p = AT_FMA(p, f, -0x1.5568d6p-1f);
  p = AT_FMA(p, f, 0x1.0002fp+0f);
  p = AT_FMA(p, f, -0x1.fffff4p+0f);
  return AT_FMA(e, -0x1.62e43p-23f, AT_MUL(f, p));
}

/* -2 ln(u) of normal f32 samples, u = w / 2^32, by a table that the caller makes once: a row for each exponent and the
 * highest five bits of the fraction of (float)w, which selects c near u with u / c - 1 = r, |r| <= 1/64, and gives 1 /
 * c and -2 ln(c); c is 1 just below u = 1, so that what is near zero is exact. Relative error below 1.2e-6. On CUDA it
 * lies in shared memory: look-ups take few issue slots from the arithmetic. */
#define AT_LOG_SEGMENTS 32u
#define AT_LOG_ROWS (64u * AT_LOG_SEGMENTS)
typedef struct AT_ALIGN8 at_log_row {
  float inverse, base;
} at_log_row;

/* 1 / c and -2 ln(c) for c in [1, 2]. */
static AT_ADDRESS_TABLE float at_log_segments[AT_LOG_SEGMENTS][2] = {
    {0x1.f82ec8p-1f, -0x1.f829d2p-6f}, {0x1.e9210ep-1f, -0x1.765be8p-4f}, {0x1.daf2ccp-1f, -0x1.33af5cp-3f},
    {0x1.cd9122p-1f, -0x1.a8bec8p-3f}, {0x1.c0eb38p-1f, -0x1.0d46b8p-2f}, {0x1.b4f20cp-1f, -0x1.44a42p-2f},
    {0x1.a99826p-1f, -0x1.7a8c5ap-2f}, {0x1.9ed16cp-1f, -0x1.af129p-2f},  {0x1.9492f4p-1f, -0x1.e24884p-2f},
    {0x1.8ad2e8p-1f, -0x1.0a1f44p-1f}, {0x1.818856p-1f, -0x1.2281fcp-1f}, {0x1.78ab26p-1f, -0x1.3a5376p-1f},
    {0x1.7033fap-1f, -0x1.519a4ap-1f}, {0x1.681c12p-1f, -0x1.685caep-1f}, {0x1.605d4ep-1f, -0x1.7ea05ap-1f},
    {0x1.58f208p-1f, -0x1.946abap-1f}, {0x1.51d518p-1f, -0x1.a9c0dap-1f}, {0x1.4b01bcp-1f, -0x1.bea77cp-1f},
    {0x1.447398p-1f, -0x1.d3231p-1f},  {0x1.3e26a2p-1f, -0x1.e737ccp-1f}, {0x1.38172p-1f, -0x1.fae9a8p-1f},
    {0x1.3241a2p-1f, -0x1.071e2ap+0f}, {0x1.2ca2f2p-1f, -0x1.1099b6p+0f}, {0x1.27381cp-1f, -0x1.19e91ap+0f},
    {0x1.21fe6p-1f, -0x1.230decp+0f},  {0x1.1cf32cp-1f, -0x1.2c09acp+0f}, {0x1.18142p-1f, -0x1.34ddcp+0f},
    {0x1.135efep-1f, -0x1.3d8b86p+0f}, {0x1.0ed1b4p-1f, -0x1.461444p+0f}, {0x1.0a6a52p-1f, -0x1.4e792cp+0f},
    {0x1.062702p-1f, -0x1.56bb6ep+0f}, {0x1.0p-1f, -0x1.62e43p+0f}};

/* Row i: the lowest six bits of the exponent, which tell 0 (w = 1) to 32 (w rounded to 2^32) apart, and the segment.
 * For w = 0 the row of exponent 1 gives 46.6: u between 2^-33 and 2^-34. */
AT_BOTH at_log_row at_make_log_row(at_u32 i) {
  const int high = (int)(i / AT_LOG_SEGMENTS), e = high == 63 ? 0 : high + 1;
  const float *segment = at_log_segments[i % AT_LOG_SEGMENTS];
  at_log_row row = {0x1p-32f, 0x1p-25f};
  if (e >= 32) return row;
  row.inverse = AT_MUL(segment[0], AT_FLOAT((at_u32)(127 - e) << 23));
  row.base = AT_FMA((float)(e - 32), -0x1.62e43p+0f, segment[1]);
  return row;
}

/* Two normal samples of two words (Box and Muller): the first gives the radius, up to 6.83. */
typedef struct at_pair32 {
  float x, y;
} at_pair32;

AT_BOTH at_u32 at_log_index(at_u32 w) {
  return AT_BITS((float)w) >> 18 & (AT_LOG_ROWS - 1u);
}

/* `row` is the one of at_log_index(w). */
AT_BOTH float at_radius32(at_log_row row, at_u32 w) {
  const float r = AT_FMA((float)w, row.inverse, -1.0f);
  float p = AT_FMA(r, -0x1.555556p-1f, 1.0f);
  p = AT_FMA(p, r, -2.0f);
  return at_sqrt32(AT_FMA(p, r, row.base));
}

/* The second gives the angle: sine s and cosine c, each times the square root of 2, of its half, pi/2 t with t in
 * [-1, 1]; the angle's are s c and c^2 - 1. Errors below 1.3e-6 of the radius. */
AT_BOTH at_pair32 at_normal32(float radius, at_u32 w) {
  const float t = AT_MUL((float)(int)w, 0x1p-31f), q = AT_MUL(t, t);
  float s = AT_HELD(-0x1.951d2cp-8f), c = AT_HELD(0x1.3e27acp-10f);
  s = AT_FMA(s, q, 0x1.cc8458p-4f);
  c = AT_FMA(c, q, -0x1.e2313p-6f);
  s = AT_FMA(s, q, -0x1.d3b34ap-1f);
  c = AT_FMA(c, q, 0x1.6f5356p-2f);
  s = AT_FMA(s, q, 0x1.1c5824p+1f);
  c = AT_FMA(c, q, -0x1.bea58p+0f);
  c = AT_FMA(c, q, 0x1.6a09e4p+0f);
  const float along = AT_MUL(radius, c);
  const at_pair32 pair = {AT_FMA(along, c, -radius), AT_MUL(along, AT_MUL(t, s))};
  return pair;
}

/* exp(x), relative error below 1e-7; overflow gives infinity, below -104 zero. */
AT_BOTH float at_exp32(float x) {
  x = x > 128.0f ? 128.0f : x;
  x = x < -128.0f ? -128.0f : x;
  const float shifted = AT_FMA(x, 0x1.715476p+0f, 0x1.8p23f), n = AT_ADD(shifted, -0x1.8p23f);
  const float r = AT_FMA(n, -0x1.7f7d1cp-20f, AT_FMA(n, -0x1.62e4p-1f, x));
  float p = 0x1.6ab8cep-10f;
  p = AT_FMA(p, r, 0x1.126dbep-7f);
  p = AT_FMA(p, r, 0x1.55589ep-5f);
  p = AT_FMA(p, r, 0x1.55540ap-3f);
  p = AT_FMA(p, r, 0x1.fffffap-2f);
  p = AT_FMA(p, r, 1.0f);
  p = AT_FMA(p, r, 1.0f);
  const int e = (int)n, half = e >> 1; /* 2^e in two factors: it may be outside of the normal numbers */
  return AT_MUL(AT_MUL(p, AT_FLOAT((at_u32)(half + 127) << 23)), AT_FLOAT((at_u32)(e - half + 127) << 23));
}

/* ---- f64 ---- */

/* [0, 1), a multiple of 2^-53, and (0, 1), an odd multiple of 2^-54. */
AT_BOTH double at_unit64(at_u64 w) {
  return AT_MUL64((double)(at_i64)(w >> 11), 0x1p-53);
}
AT_BOTH double at_open64(at_u64 w) {
  return AT_FMA64((double)(at_i64)(w >> 12), 0x1p-52, 0x1p-53);
}

/* -2 ln(u) for a normal u in (0, 1), by the inverse hyperbolic tangent of f / (2 + f). */
AT_BOTH double at_log64(double u) {
  const at_u64 bits = AT_BITS64(u), k = (bits - 0x3fe5555555555555ull) & 0xfff0000000000000ull;
  const double f = AT_ADD64(AT_DOUBLE(bits - k), -1.0), e = (double)((at_i64)k >> 52);
  const double s = AT_DIV64(f, AT_ADD64(f, 2.0)), q = AT_MUL64(s, s);
  double p = 0x1.16c2998fbb9cep-3;
  p = AT_FMA64(p, q, 0x1.0e8738271b21dp-3);
  p = AT_FMA64(p, q, 0x1.3b2a14a8cff62p-3);
  p = AT_FMA64(p, q, 0x1.745caa7fc7fb2p-3);
  p = AT_FMA64(p, q, 0x1.c71c72e550845p-3);
  p = AT_FMA64(p, q, 0x1.24924923d9a4fp-2);
  p = AT_FMA64(p, q, 0x1.9999999999f45p-2);
  p = AT_FMA64(p, q, 0x1.5555555555555p-1);
  const double log1 = AT_FMA64(AT_MUL64(s, q), p, AT_ADD64(s, s));
  return AT_FMA64(e, -0x1.62e42fefa39efp+0, AT_MUL64(log1, -2.0));
}

typedef struct at_pair64 {
  double x, y;
} at_pair64;

AT_BOTH at_pair64 at_normal64(at_u64 w0, at_u64 w1, double mean, double deviation) {
  const double radius = AT_MUL64(AT_SQRT64(at_log64(at_open64(w0))), deviation);
  const double t = AT_MUL64((double)(at_i64)(w1 << 1), 0x1p-63), q = AT_MUL64(t, t);
  double s = 0x1.9d46b06fc620dp-38, c = -0x1.20852fb0cee98p-41;
  s = AT_FMA64(s, q, -0x1.6f7ad23b8333cp-31);
  c = AT_FMA64(c, q, 0x1.209de3d756bbep-34);
  s = AT_FMA64(s, q, 0x1.e8f3677c34baap-25);
  c = AT_FMA64(c, q, -0x1.b6e192352e403p-28);
  s = AT_FMA64(s, q, -0x1.e3074dfb5bb7ep-19);
  c = AT_FMA64(c, q, 0x1.f9d3881ea1cb8p-22);
  s = AT_FMA64(s, q, 0x1.50783485523f5p-13);
  c = AT_FMA64(c, q, -0x1.a6d1f29e550b0p-16);
  s = AT_FMA64(s, q, -0x1.32d2cce627c9ep-8);
  c = AT_FMA64(c, q, 0x1.e1f5068913c76p-11);
  s = AT_FMA64(s, q, 0x1.466bc6775aa7dp-4);
  c = AT_FMA64(c, q, -0x1.55d3c7e3cbf5fp-6);
  s = AT_FMA64(s, q, -0x1.4abbce625be52p-1);
  c = AT_FMA64(c, q, 0x1.03c1f081b5ac3p-2);
  s = AT_FMA64(s, q, 0x1.921fb54442d18p+0);
  c = AT_FMA64(c, q, -0x1.3bd3cc9be45dep+0);
  c = AT_FMA64(c, q, 1.0);
  const double side = AT_DOUBLE(AT_BITS64(radius) ^ (w1 & 0x8000000000000000ull));
  const at_pair64 pair = {AT_FMA64(side, c, mean), AT_FMA64(radius, AT_MUL64(t, s), mean)};
  return pair;
}

/* exp(x), relative error about 2e-16; overflow gives infinity, below -746 zero. */
AT_BOTH double at_exp64(double x) {
  x = x > 1000.0 ? 1000.0 : x;
  x = x < -1000.0 ? -1000.0 : x;
  const double shifted = AT_FMA64(x, 0x1.71547652b82fep+0, 0x1.8p52), n = AT_ADD64(shifted, -0x1.8p52);
  const double r = AT_FMA64(n, -0x1.a39ef35793c76p-33, AT_FMA64(n, -0x1.62e42feep-1, x));
  double p = 0x1.ad6594b2caf70p-26;
  p = AT_FMA64(p, r, 0x1.28b37af6d2ff3p-22);
  p = AT_FMA64(p, r, 0x1.71df4635bef53p-19);
  p = AT_FMA64(p, r, 0x1.a019925fe1bdap-16);
  p = AT_FMA64(p, r, 0x1.a01a010f784e3p-13);
  p = AT_FMA64(p, r, 0x1.6c16c187ab0d4p-10);
  p = AT_FMA64(p, r, 0x1.11111111311f0p-7);
  p = AT_FMA64(p, r, 0x1.555555554f2a8p-5);
  p = AT_FMA64(p, r, 0x1.55555555554a0p-3);
  p = AT_FMA64(p, r, 0x1.0000000000010p-1);
  p = AT_FMA64(p, r, 1.0);
  p = AT_FMA64(p, r, 1.0);
  const int e = (int)n, half = e >> 1;
  return AT_MUL64(AT_MUL64(p, AT_DOUBLE((at_u64)(half + 1023) << 52)), AT_DOUBLE((at_u64)(e - half + 1023) << 52));
}

/* ---- normal samples of 16 bits ---- */

/* 16 bits are a side and one of 32768 equal slices of the half line's probability; a sample is the slice's median. The
 * last AT_TAIL slices, beyond 3.84, are refined by a word of the blocks 2^64 and 2^65 further on, up to 8.0. */
#define AT_SLICES 32768u
#define AT_TAIL 4u /* a power of two */

/* The z > 0 that is exceeded with probability (rest + (w + 1/2) / 2^32) / 2^16, 0 <= rest < 4096. */
AT_BOTH float at_tail16(at_u32 rest, at_u32 w) {
  const float p = AT_FMA((float)w, 0x1p-48f, AT_FMA((float)(int)rest, 0x1p-16f, 0x1p-49f));
  const float s = AT_ADD(at_sqrt32(at_log32(p)), -5.0f);
  float z = 0x1.d57192p-25f;
  z = AT_FMA(z, s, -0x1.d78a64p-22f);
  z = AT_FMA(z, s, 0x1.7960a4p-20f);
  z = AT_FMA(z, s, -0x1.8e8566p-18f);
  z = AT_FMA(z, s, 0x1.68335cp-15f);
  z = AT_FMA(z, s, -0x1.18c00cp-12f);
  z = AT_FMA(z, s, 0x1.a4329ap-10f);
  z = AT_FMA(z, s, -0x1.498792p-7f);
  z = AT_FMA(z, s, 0x1.113042p+0f);
  return AT_FMA(z, s, 0x1.1ebd76p+2f);
}

/* The median of a slice. */
AT_BOTH float at_slice16(at_u32 slice) {
  const float x = AT_MUL((float)(int)(2u * slice + 1u), 0x1p-17f), q = AT_MUL(x, x);
  if (slice >= 28672u) return at_tail16(AT_SLICES - 1u - slice, 0x80000000u);
  float p = 0x1.1fb546p+22f;
  p = AT_FMA(p, q, -0x1.9e7d12p+21f);
  p = AT_FMA(p, q, 0x1.0148b4p+20f);
  p = AT_FMA(p, q, -0x1.5a521cp+17f);
  p = AT_FMA(p, q, 0x1.164d68p+14f);
  p = AT_FMA(p, q, -0x1.eeac76p+9f);
  p = AT_FMA(p, q, 0x1.8fb372p+5f);
  p = AT_FMA(p, q, 0x1.4cf796p+2f);
  p = AT_FMA(p, q, 0x1.507586p+1f);
  p = AT_FMA(p, q, 0x1.40d912p+1f);
  return AT_MUL(x, p);
}

/* Sample `index` (0-7) of the block at counter `block`, once its slice is known to be one of the tail. */
AT_BOTH float at_refine16(at_u64 seed, at_u64 block, at_u32 index, at_u32 slice) {
  const at_philox_block more = at_philox(seed, block, 1u + (index >> 2));
  const at_u32 w = index & 2u ? (index & 1u ? more.w[3] : more.w[2]) : (index & 1u ? more.w[1] : more.w[0]);
  return at_tail16(AT_SLICES - 1u - slice, w);
}

#endif
