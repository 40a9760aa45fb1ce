/* SPDX-License-Identifier: Apache-2.0
 * cpu.c: the CPU as found at run time: model, features that the system lets us use, caches. */
#include "src/host/host.h"

#include "src/process/process.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define HAVE_CPUID 1
#endif

static pthread_once_t cpu_once = PTHREAD_ONCE_INIT;
static at_cpu cpu; /* constant after cpu_once */

static void copy_trimmed(char *out, size_t size, const char *text) {
  while (isspace((unsigned char)*text)) text++;
  (void)at_copy_text(out, size, text);
  for (size_t n = strlen(out); n > 0 && isspace((unsigned char)out[n - 1]); n--) out[n - 1] = '\0';
}

#ifdef HAVE_CPUID
static unsigned enabled_states(void) {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/* A feature counts only when the system saves its registers: XCR0 bits 1-2 for AVX, 5-7 as well for AVX-512. */
static void read_features(at_cpu *out) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX)) return;
  unsigned states = enabled_states();
  if ((states & 0x06) != 0x06) return;
  bool avx512 = (states & 0xe6) == 0xe6;
  out->fma = c & bit_FMA;
  out->f16c = c & bit_F16C;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
  unsigned subleaves = a;
  out->avx2 = b & bit_AVX2;
  out->avx512f = avx512 && (b & bit_AVX512F);
  if (!out->avx512f) return;
  out->avx512dq = b & bit_AVX512DQ;
  out->avx512bw = b & bit_AVX512BW;
  out->avx512vl = b & bit_AVX512VL;
  out->avx512_vnni = c & bit_AVX512VNNI;
  if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) out->avx512_bf16 = a & (1u << 5);
}

static bool read_brand(char *out, size_t size) {
  unsigned words[13] = {0};
  if ((unsigned)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u) return false;
  for (unsigned i = 0; i < 3; i++) {
    unsigned *w = words + 4 * i;
    __get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3]);
  }
  copy_trimmed(out, size, (const char *)words);
  return out[0] != '\0';
}
#else
static void read_features(at_cpu *out) {
  (void)out;
}
static bool read_brand(char *out, size_t size) {
  (void)out;
  (void)size;
  return false;
}
#endif

static bool read_cpuinfo(char *out, size_t size) {
  char text[4096];
  if (at_read_small("/proc/cpuinfo", text, sizeof text) == 0) return false;
  char *line = strstr(text, "model name");
  char *colon = line ? strchr(line, ':') : NULL;
  if (!colon) return false;
  char *end = strchr(colon, '\n');
  if (end) *end = '\0';
  copy_trimmed(out, size, colon + 1);
  return out[0] != '\0';
}

/* "32K" or "1M" in bytes; 0 for anything else. */
static size_t parse_size(const char *text) {
  char *end = NULL;
  unsigned long long value = strtoull(text, &end, 10);
  if (end == text) return 0;
  unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  return (size_t)(value << shift);
}

static bool read_cache_file(char *out, size_t size, int index, const char *file) {
  char path[96];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, file);
  return at_read_small(path, out, size) > 0;
}

static void read_caches(at_cpu *out) {
  char level[16], type[32], size[32];
  for (int i = 0; read_cache_file(level, sizeof level, i, "level"); i++) {
    if (!read_cache_file(type, sizeof type, i, "type") || !read_cache_file(size, sizeof size, i, "size")) continue;
    if (level[0] == '1' && type[0] == 'D') out->l1d_bytes = parse_size(size);
    if (level[0] == '2' && type[0] != 'I') out->l2_bytes = parse_size(size);
    if (level[0] == '3' && type[0] != 'I') out->l3_bytes = parse_size(size);
  }
}

static void read_cpu(void) {
  if (!read_brand(cpu.model, sizeof cpu.model) && !read_cpuinfo(cpu.model, sizeof cpu.model))
    (void)at_copy_text(cpu.model, sizeof cpu.model, "unknown CPU");
  read_features(&cpu);
  read_caches(&cpu);
}

const at_cpu *at_cpu_info(void) {
  pthread_once(&cpu_once, read_cpu);
  return &cpu;
}
