/* SPDX-License-Identifier: Apache-2.0
 * fill_portable.c: the host's portable mode in plain C, which the others are tested against, and the choice among them.
 */
#include "src/host/random/fill.h"

#include "src/host/host.h"

#include <pthread.h>

static void philox_blocks(at_u32 *words, at_u64 seed, at_u64 low, at_u64 high, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const at_philox_block block = at_philox(seed, low + i, high);
    for (int k = 0; k < 4; k++) words[4 * i + (size_t)k] = block.w[k];
  }
}

static uint16_t f16_toward_zero(float x) {
  const uint32_t bits = at_bits_of_f32(x), sign = bits >> 16 & 0x8000u;
  const float magnitude = at_f32_of_bits(bits & 0x7fffffffu);
  if (magnitude >= 65504.0f) return (uint16_t)(sign | 0x7bffu);
  if (magnitude < 0x1p-14f) return (uint16_t)(sign | (uint32_t)(magnitude * 0x1p24f));
  return (uint16_t)(sign | ((bits & 0x7fffffffu) - (112u << 23)) >> 13);
}

static void f16_of(uint16_t *out, const float *x, size_t count, int toward_zero) {
  for (size_t i = 0; i < count; i++) out[i] = toward_zero ? f16_toward_zero(x[i]) : at_f32_to_f16(x[i]);
}

#include "src/host/random/fill_template.h"

const at_fill_isa at_fill_portable = {.name = "portable", .philox = philox_blocks, .fill = fill};

static float slices[AT_SLICES];
static pthread_once_t slices_once = PTHREAD_ONCE_INIT;

static void make_slices(void) {
  for (at_u32 i = 0; i < AT_SLICES; i++) slices[i] = at_slice16(i);
}

const float *at_normal_slices(void) {
  pthread_once(&slices_once, make_slices);
  return slices;
}

static at_log_row rows[AT_LOG_ROWS];
static pthread_once_t rows_once = PTHREAD_ONCE_INIT;

static void make_rows(void) {
  for (at_u32 i = 0; i < AT_LOG_ROWS; i++) rows[i] = at_make_log_row(i);
}

const at_log_row *at_log_rows(void) {
  pthread_once(&rows_once, make_rows);
  return rows;
}

void at_fill_all(const at_fill_isa *out[4]) {
  int count = 0;
#if defined(__x86_64__)
  const at_cpu *cpu = at_cpu_info();
  const bool avx2 = cpu->avx2 && cpu->fma && cpu->f16c;
  if (avx2 && cpu->avx512f && cpu->avx512bw && cpu->avx512dq && cpu->avx512vl) out[count++] = &at_fill_avx512;
  if (avx2) out[count++] = &at_fill_avx2;
#endif
  out[count++] = &at_fill_portable;
  out[count] = NULL;
}

const at_fill_isa *at_fill_best(void) {
  const at_fill_isa *all[4];
  at_fill_all(all);
  return all[0];
}
