/* SPDX-License-Identifier: Apache-2.0
 * samples.cuh: from a Philox block to words of the output, in the portable mode, for one kind of call: part of
 * random.cu, specialised by its macros. A wide multiplication, a logic operation and a conversion take two issue slots
 * each on an H200, an addition or a fused multiply-add one. */
#if TYPE == AT_F64
typedef double element;
#elif TYPE == AT_F32
typedef float element;
#elif TYPE == AT_I32
typedef int element;
#elif TYPE == AT_I64
typedef long long element;
#else
typedef unsigned short element;
#endif

#define HALF (TYPE == AT_F16 || TYPE == AT_BF16)
#define ELEMENTS (16 / (int)sizeof(element))
#define PER_BLOCK \
  (WIDE || TYPE == AT_F64 || TYPE == AT_I64 ? 2 : HALF && (KIND == AT_UNIFORM || KIND == AT_NORMAL) ? 8 : 4)
#define BLOCKS (ELEMENTS / PER_BLOCK)

static __device__ __forceinline__ at_u32 pack16(float low, float high, bool toward_zero) {
  at_u32 pair;
#if TYPE == AT_BF16
  if (toward_zero) return __byte_perm(AT_BITS(low), AT_BITS(high), 0x7632);
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#else
  if (toward_zero)
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
  return pair;
}

static __device__ __forceinline__ float unpack16(at_u32 bits) {
#if TYPE == AT_BF16
  return AT_FLOAT(bits << 16);
#else
  float x;
  asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "r"(bits & 0xffffu));
  return x;
#endif
}

/* ---- samples of a Philox block ---- */

static __device__ __forceinline__ float sample32(const at_random_call &call, at_u32 w) {
  switch (KIND) {
  case AT_UNIFORM:
    return PLAIN ? AT_MUL((float)(int)(w >> 8), 0x1p-24f) : at_uniform32(w, call.f[0], call.f[1], call.f[2]);
  case AT_EXPONENTIAL: return at_exponential32(w, call.f[0]);
  case AT_BERNOULLI: return w <= (at_u32)call.limit ? call.f[0] : 0.0f;
  default: return (float)at_integer32(w, call.from, call.range);
  }
}

/* The table of logarithms, if there is one (random.cu: LOGARITHMS). */
static __device__ __forceinline__ at_pair32 normal_pair(const at_random_call &call, const char *table, at_u32 v,
                                                        at_u32 w) {
  const at_u32 i = at_log_index(v);
  const float radius = at_radius32(UNROLL > 2 ? ((const at_log_row *)table)[i] : at_make_log_row(i), v);
  at_pair32 pair = at_normal32(PLAIN ? radius : AT_MUL(radius, call.f[1]), w);
  if (!PLAIN) pair.x = AT_ADD(pair.x, call.f[0]), pair.y = AT_ADD(pair.y, call.f[0]);
  return pair;
}

static __device__ __forceinline__ void samples32(const at_random_call &call, const char *table,
                                                 const at_philox_block &block, float out[4]) {
  if (KIND == AT_NORMAL || KIND == AT_LOG_NORMAL) {
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
      const at_pair32 pair = normal_pair(call, table, block.w[k], block.w[k + 1]);
      out[k] = KIND == AT_NORMAL ? pair.x : at_exp32(pair.x);
      out[k + 1] = KIND == AT_NORMAL ? pair.y : at_exp32(pair.y);
    }
  } else {
#pragma unroll
    for (int k = 0; k < 4; k++) out[k] = sample32(call, block.w[k]);
  }
}

/* Bits of a half times 2^-16: put below the exponent of 2^23, no conversion. */
static __device__ __forceinline__ float fraction16(at_u32 w, int half) {
  return AT_FMA(AT_FLOAT(__byte_perm(w, 0x4b000000u, half ? 0x7432 : 0x7410)), 0x1p-16f, -0x1p7f);
}

/* Pairs of 16-bit uniform samples; `to` gives way to `from` after the rounding. */
static __device__ __forceinline__ at_u32 uniform_pair(const at_random_call &call, at_u32 w) {
  if (PLAIN) return pack16(fraction16(w, 0), fraction16(w, 1), true);
  const float low = AT_FMA(fraction16(w, 0), call.f[1], call.f[0]),
              high = AT_FMA(fraction16(w, 1), call.f[1], call.f[0]);
  const at_u32 pair = pack16(low, high, true), from = pack16(call.f[0], call.f[0], false);
  const at_u32 a = unpack16(pair) >= call.f[2] ? from & 0xffffu : pair & 0xffffu;
  const at_u32 b = unpack16(pair >> 16) >= call.f[2] ? from & 0xffff0000u : pair & 0xffff0000u;
  return a | b;
}

/* ---- normal samples of 16 bits ---- */

static __device__ __forceinline__ float with_side(float z, at_u32 bits) {
  return AT_FLOAT(AT_BITS(z) | (bits << 16 & 0x80000000u));
}

/* The element of a sample before mean and deviation, in both halves. */
static __device__ __forceinline__ at_u32 scaled(const at_random_call &call, float z) {
  const float x = PLAIN ? z : AT_FMA(z, call.f[1], call.f[0]);
  return pack16(x, x, false);
}

/* Bits 15 and 31 tell whether the halves of w lie in the tail: their low 15 bits are at least AT_SLICES - AT_TAIL. */
static __device__ __forceinline__ at_u32 tail_flags(at_u32 w) {
  return (w & (0x8000u - AT_TAIL) * 0x10001u) + AT_TAIL * 0x10001u;
}

static __device__ __noinline__ at_u32 refined(const at_random_call &call, at_u64 seed, at_u64 block, at_u32 index,
                                              at_u32 bits) {
  return scaled(call, with_side(at_refine16(seed, block, index, bits & 0x7fffu), bits));
}

/* A table for all 16-bit words: the element, but for the tail a NaN, which no element is. */
#define TABLE_NAN 0x7fffu

static __device__ void make_table(const at_random_call &call, unsigned short *table) {
  for (at_u32 slice = threadIdx.x; slice < AT_SLICES; slice += blockDim.x) {
    const float z = at_slice16(slice);
    const bool tail = slice >= AT_SLICES - AT_TAIL;
    table[slice] = (unsigned short)(tail ? TABLE_NAN : scaled(call, z));
    table[slice + AT_SLICES] = (unsigned short)(tail ? TABLE_NAN : scaled(call, -z));
  }
}

/* Whether one of eight elements may be a NaN: sums keep it. As f16, where bf16 from 2^121 on are NaN too; such a false
 * alarm does no harm. */
static __device__ __forceinline__ bool may_have_nan(const at_u32 pairs[4]) {
  at_u32 yes;
#if TYPE == AT_BF16
#define SUM(a, b, c) "fma.rn.bf16x2 " a ", " b ", %5, " c ";"
  const at_u32 one = 0x3f803f80u;
#else
#define SUM(a, b, c) "fma.rn.f16x2 " a ", " b ", %5, " c ";"
  const at_u32 one = 0x3c003c00u;
#endif
  asm("{ .reg .b32 a, b; .reg .pred p, q; " SUM("a", "%1", "%2") SUM("b", "%3", "%4")
          SUM("a", "a", "b") "setp.nan.f16x2 p|q, a, a; or.pred p, p, q; selp.u32 %0, 1, 0, p; }"
      : "=r"(yes)
      : "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3]), "r"(one));
#undef SUM
  return yes != 0;
}

/* The table's element for each half of w; offsets are added to themselves because a shift takes longer. */
static __device__ __forceinline__ at_u32 look_up(const char *table, at_u32 w) {
  const at_u32 low = w & 0xffffu, high = w >> 16;
  return __byte_perm(*(const unsigned short *)(table + (low + low)), *(const unsigned short *)(table + (high + high)),
                     0x5410);
}

static __device__ __forceinline__ at_u32 compute_pair(const at_random_call &call, at_u32 w) {
  const at_u32 high = w >> 16;
  return __byte_perm(scaled(call, with_side(at_slice16(w & 0x7fffu), w)),
                     scaled(call, with_side(at_slice16(high & 0x7fffu), high)), 0x5410);
}

template <bool BY_TABLE>
static __device__ __forceinline__ void normal_block(const at_random_call &call, const char *table, at_u64 seed,
                                                    at_u64 index, const at_philox_block &block, at_u32 out[4]) {
#pragma unroll
  for (int k = 0; k < 4; k++) out[k] = BY_TABLE ? look_up(table, block.w[k]) : compute_pair(call, block.w[k]);
  if (BY_TABLE && !may_have_nan(out)) return;
#pragma unroll
  for (at_u32 k = 0; k < 4; k++) {
    const at_u32 w = block.w[k], tail = tail_flags(w);
    if (tail & 0x8000u) out[k] = __byte_perm(out[k], refined(call, seed, index, 2 * k, w), 0x3254);
    if (tail & 0x80000000u) out[k] = __byte_perm(out[k], refined(call, seed, index, 2 * k + 1, w >> 16), 0x5410);
  }
}

/* ---- blocks ---- */

static __device__ __forceinline__ at_u64 sample64(const at_random_call &call, at_u64 w) {
  if (TYPE == AT_I64)
    return KIND == AT_BERNOULLI ? (w <= call.limit ? (at_u64)call.d[0] : 0u)
                                : (at_u64)at_integer64(w, call.from, call.range);
  switch (KIND) {
  case AT_UNIFORM: return AT_BITS64(at_uniform64(w, call.d[0], call.d[1], call.d[2]));
  case AT_EXPONENTIAL: return AT_BITS64(at_exponential64(w, call.d[0]));
  case AT_BERNOULLI: return AT_BITS64(w <= call.limit ? call.d[0] : 0.0);
  default: return AT_BITS64((double)at_integer64(w, call.from, call.range));
  }
}

static __device__ __forceinline__ void put64(at_u32 *out, at_u64 bits) {
  out[0] = (at_u32)bits;
  out[1] = (at_u32)(bits >> 32);
}

static __device__ __forceinline__ void block64(const at_random_call &call, at_u64 a, at_u64 b, at_u32 out[4]) {
  if (TYPE == AT_F64 && (KIND == AT_NORMAL || KIND == AT_LOG_NORMAL)) {
    const at_pair64 pair = at_normal64(a, b, call.d[0], call.d[1]);
    put64(out, AT_BITS64(KIND == AT_NORMAL ? pair.x : at_exp64(pair.x)));
    put64(out + 2, AT_BITS64(KIND == AT_NORMAL ? pair.y : at_exp64(pair.y)));
  } else {
    put64(out, sample64(call, a));
    put64(out + 2, sample64(call, b));
  }
}

/* Output of one Philox block, in words. */
template <bool BY_TABLE>
static __device__ __forceinline__ void block_out(const at_random_call &call, const char *table, at_u64 seed,
                                                 const at_philox_keys &keys, at_u64 index, at_u32 *out) {
  const at_philox_block block = at_philox_with(&keys, index, 0);
  const at_u64 a = at_join64(block.w[0], block.w[1]), b = at_join64(block.w[2], block.w[3]);
  if (TYPE == AT_F64 || TYPE == AT_I64) {
    block64(call, a, b, out);
  } else if (WIDE) { /* integers of 32 bits or fewer */
    const at_i64 x = at_integer64(a, call.from, call.range), y = at_integer64(b, call.from, call.range);
    out[0] = TYPE == AT_I32 ? (at_u32)x : AT_BITS((float)x);
    out[1] = TYPE == AT_I32 ? (at_u32)y : AT_BITS((float)y);
  } else if (HALF && KIND == AT_NORMAL) {
    normal_block<BY_TABLE>(call, table, seed, index, block, out);
  } else if (HALF && KIND == AT_UNIFORM) {
#pragma unroll
    for (int k = 0; k < 4; k++) out[k] = uniform_pair(call, block.w[k]);
  } else if (TYPE == AT_I32) {
#pragma unroll
    for (int k = 0; k < 4; k++)
      out[k] = KIND == AT_BERNOULLI ? (block.w[k] <= (at_u32)call.limit ? (at_u32)call.f[0] : 0u)
                                    : (at_u32)at_integer32(block.w[k], call.from, call.range);
  } else {
    float x[4];
    samples32(call, table, block, x);
    if (HALF) {
      out[0] = pack16(x[0], x[1], false);
      out[1] = pack16(x[2], x[3], false);
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++) out[k] = AT_BITS(x[k]);
    }
  }
}
