/* SPDX-License-Identifier: Apache-2.0
 * fill_template.h: words to samples, compiled once for each instruction set by a file that defines philox_blocks() and
 * f16_of() first. Loops over samples without branches: the compiler makes vectors of them. */
#include <string.h>

#define CHUNK 128 /* Philox blocks at a time: words and samples stay in the L1 cache */

static void to_bf16(uint16_t *out, const float *x, size_t count, int toward_zero) {
  if (toward_zero)
    for (size_t i = 0; i < count; i++) out[i] = (uint16_t)(at_bits_of_f32(x[i]) >> 16);
  else
    for (size_t i = 0; i < count; i++) out[i] = at_f32_to_bf16(x[i]);
}

/* f32 samples to f32, f16 or bf16. */
static void put32(const at_random_call *call, void *out, const float *x, size_t count, int toward_zero) {
  if (call->dtype == AT_F32) memcpy(out, x, count * sizeof *x);
  if (call->dtype == AT_F16) f16_of(out, x, count, toward_zero);
  if (call->dtype == AT_BF16) to_bf16(out, x, count, toward_zero);
}

static void uniform(const at_random_call *call, const at_u32 *w, size_t blocks, float *restrict x) {
  const float from = call->f[0], extent = call->f[1], to = call->f[2];
  for (size_t i = 0; i < 4 * blocks; i++) x[i] = at_uniform32(w[i], from, extent, to);
}

/* Rounds toward zero, then `to` gives way to `from`. */
static void uniform_half(const at_random_call *call, const at_u32 *w, size_t blocks, float *restrict x,
                         uint16_t *restrict out) {
  const float from = call->f[0], extent = call->f[1], to = call->f[2];
  for (size_t i = 0; i < 4 * blocks; i++) {
    x[2 * i] = at_uniform16(w[i] & 0xffffu, from, extent);
    x[2 * i + 1] = at_uniform16(w[i] >> 16, from, extent);
  }
  put32(call, out, x, 8 * blocks, 1);
  const uint16_t first = call->dtype == AT_F16 ? at_f32_to_f16(from) : at_f32_to_bf16(from);
  for (size_t i = 0; i < 8 * blocks; i++) {
    const float y = call->dtype == AT_F16 ? at_f16_to_f32(out[i]) : at_bf16_to_f32(out[i]);
    out[i] = y >= to ? first : out[i];
  }
}

/* The look-ups in a loop of their own: the other one becomes vectors. */
static void normal(const at_random_call *call, const at_u32 *w, size_t blocks, float *restrict x) {
  const float mean = call->f[0], deviation = call->f[1];
  const at_log_row *rows = at_log_rows();
  at_u32 index[2 * CHUNK];
  at_log_row picked[2 * CHUNK];
  for (size_t i = 0; i < 2 * blocks; i++) index[i] = at_log_index(w[2 * i]);
  for (size_t i = 0; i < 2 * blocks; i++) memcpy(&picked[i], &rows[index[i]], sizeof *rows);
  for (size_t i = 0; i < 2 * blocks; i++) {
    const at_pair32 pair = at_normal32(at_radius32(picked[i], w[2 * i]) * deviation, w[2 * i + 1]);
    x[2 * i] = pair.x + mean;
    x[2 * i + 1] = pair.y + mean;
  }
}

/* By table; the tail, which is rare, afterwards. */
static void normal_half(const at_random_call *call, const at_u32 *w, at_u64 block, size_t blocks, float *restrict x) {
  const float mean = call->f[0], deviation = call->f[1], *slices = at_normal_slices();
  at_u32 most = 0;
  for (size_t i = 0; i < 8 * blocks; i++) {
    const at_u32 bits = w[i / 2] >> 16 * (i % 2), slice = bits & 0x7fffu;
    most = slice > most ? slice : most;
    x[i] = at_f32_of_bits(at_bits_of_f32(slices[slice]) | (bits & 0x8000u) << 16);
  }
  for (size_t i = 0; most >= AT_SLICES - AT_TAIL && i < 8 * blocks; i++) {
    const at_u32 bits = w[i / 2] >> 16 * (i % 2), slice = bits & 0x7fffu;
    if (slice < AT_SLICES - AT_TAIL) continue;
    const float z = at_refine16(call->seed, block + i / 8, (at_u32)(i % 8), slice);
    x[i] = at_f32_of_bits(at_bits_of_f32(z) | (bits & 0x8000u) << 16);
  }
  for (size_t i = 0; i < 8 * blocks; i++) x[i] = __builtin_fmaf(x[i], deviation, mean);
}

static void bernoulli(const at_random_call *call, const at_u32 *w, size_t count, float *restrict x) {
  const at_u32 limit = (at_u32)call->limit;
  const float one = call->f[0];
  for (size_t i = 0; i < count; i++) x[i] = w[i] <= limit ? one : 0.0f;
}

/* f32, f16 and bf16, all but integers. */
static void fill32(const at_random_call *call, const at_u32 *w, at_u64 block, size_t blocks, void *out) {
  float x[8 * CHUNK];
  const int half = call->dtype != AT_F32;
  size_t count = 4 * blocks;
  switch (call->distribution) {
  case AT_UNIFORM:
    if (half) {
      uniform_half(call, w, blocks, x, out);
      return;
    }
    uniform(call, w, blocks, x);
    break;
  case AT_NORMAL:
    if (half) {
      normal_half(call, w, block, blocks, x);
      count *= 2;
    } else {
      normal(call, w, blocks, x);
    }
    break;
  case AT_LOG_NORMAL:
    normal(call, w, blocks, x);
    for (size_t i = 0; i < count; i++) x[i] = at_exp32(x[i]);
    break;
  case AT_EXPONENTIAL:
    for (size_t i = 0; i < count; i++) x[i] = at_exponential32(w[i], call->f[0]);
    break;
  default: bernoulli(call, w, count, x);
  }
  put32(call, out, x, count, 0);
}

static void fill64(const at_random_call *call, const at_u32 *w, size_t blocks, double *out) {
  for (size_t i = 0; i < 2 * blocks; i += 2) {
    const at_u64 a = at_join64(w[2 * i], w[2 * i + 1]), b = at_join64(w[2 * i + 2], w[2 * i + 3]);
    at_pair64 pair = {0.0, 0.0};
    if (call->distribution == AT_NORMAL || call->distribution == AT_LOG_NORMAL)
      pair = at_normal64(a, b, call->d[0], call->d[1]);
    if (call->distribution == AT_LOG_NORMAL) pair = (at_pair64){at_exp64(pair.x), at_exp64(pair.y)};
    if (call->distribution == AT_UNIFORM)
      pair = (at_pair64){at_uniform64(a, call->d[0], call->d[1], call->d[2]),
                         at_uniform64(b, call->d[0], call->d[1], call->d[2])};
    if (call->distribution == AT_EXPONENTIAL)
      pair = (at_pair64){at_exponential64(a, call->d[0]), at_exponential64(b, call->d[0])};
    if (call->distribution == AT_BERNOULLI)
      pair = (at_pair64){a <= call->limit ? call->d[0] : 0.0, b <= call->limit ? call->d[0] : 0.0};
    out[i] = pair.x;
    out[i + 1] = pair.y;
  }
}

/* Integers into any type, and Bernoulli samples into integer types. */
static void fill_integers(const at_random_call *call, const at_u32 *w, size_t blocks, void *out) {
  const int wide = at_random_wide(call->distribution, call->dtype, call->range);
  const size_t count = (wide ? 2 : 4) * blocks;
  at_i64 x[4 * CHUNK];
  if (call->distribution == AT_BERNOULLI)
    for (size_t i = 0; i < count; i++)
      x[i] = (wide ? at_join64(w[2 * i], w[2 * i + 1]) <= call->limit : w[i] <= call->limit) ? (at_i64)call->d[0] : 0;
  else if (wide)
    for (size_t i = 0; i < count; i++) x[i] = at_integer64(at_join64(w[2 * i], w[2 * i + 1]), call->from, call->range);
  else
    for (size_t i = 0; i < count; i++) x[i] = at_integer32(w[i], call->from, call->range);
  for (size_t i = 0; i < count; i++) {
    if (call->dtype == AT_I32) ((int32_t *)out)[i] = (int32_t)x[i];
    if (call->dtype == AT_I64) ((int64_t *)out)[i] = x[i];
    if (call->dtype == AT_F64) ((double *)out)[i] = (double)x[i];
    if (call->dtype == AT_F32) ((float *)out)[i] = (float)x[i];
    if (call->dtype == AT_F16) ((uint16_t *)out)[i] = at_f32_to_f16((float)x[i]);
    if (call->dtype == AT_BF16) ((uint16_t *)out)[i] = at_f32_to_bf16((float)x[i]);
  }
}

static void fill(const at_random_call *call, at_u64 first, size_t count, void *out) {
  at_u32 words[4 * CHUNK];
  static const unsigned char size_of[] = {0, 8, 4, 2, 2, 4, 8};
  const size_t bytes = size_of[call->dtype] * at_random_per_block(call->distribution, call->dtype, call->range);
  const at_u64 base = call->offset / 4;
  for (size_t done = 0; done < count; done += CHUNK) {
    const size_t blocks = count - done < CHUNK ? count - done : CHUNK;
    const at_u64 block = base + first + done;
    char *at = (char *)out + done * bytes;
    philox_blocks(words, call->seed, block, 0, blocks);
    if (call->distribution == AT_INTEGERS || call->dtype == AT_I32 || call->dtype == AT_I64)
      fill_integers(call, words, blocks, at);
    else if (call->dtype == AT_F64)
      fill64(call, words, blocks, (void *)at);
    else
      fill32(call, words, block, blocks, at);
  }
}
