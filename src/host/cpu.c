/* SPDX-License-Identifier: Apache-2.0
 * cpu.c: the CPU as found at run time: model, features that the system lets us use, caches, how many CPUs are ours. */
#include "src/host/host.h"
#include "src/host/threads.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define HAVE_CPUID 1
#endif

static pthread_once_t cpu_once = PTHREAD_ONCE_INIT, count_once = PTHREAD_ONCE_INIT;
static at_cpu cpu;    /* constant after cpu_once */
static int cpu_count; /* constant after count_once */

/* The start of a small file as text; false when it cannot be read. */
static bool read_text(char *out, size_t size, const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  size_t length = 0;
  while (length < size - 1) {
    ssize_t got = read(fd, out + length, size - 1 - length);
    if (got <= 0) break;
    length += (size_t)got;
  }
  close(fd);
  out[length] = '\0';
  return length > 0;
}

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
  if (!read_text(text, sizeof text, "/proc/cpuinfo")) return false;
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
  return read_text(out, size, path);
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

static int affinity_count(void) {
  for (int most = 1024; most <= 1 << 18; most *= 4) {
    cpu_set_t *set = CPU_ALLOC((size_t)most);
    if (!set) break;
    size_t bytes = CPU_ALLOC_SIZE((size_t)most);
    int found = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (found > 0) return found;
  }
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int)online : 1;
}

static int quota_cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  long long cpus = (quota + period - 1) / period;
  return cpus < 1 << 20 ? (int)cpus : 0;
}

/* CPUs by the quota of one group, rounded up; 0: none. */
static int quota_v2(const char *group) {
  char path[1200], text[64];
  long long quota = 0, period = 0;
  snprintf(path, sizeof path, "%s/cpu.max", group);
  if (!read_text(text, sizeof text, path) || sscanf(text, "%lld %lld", &quota, &period) != 2) return 0;
  return quota_cpus(quota, period);
}

static int quota_v1(const char *group) {
  char path[1200], quota[32], period[32];
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", group);
  if (!read_text(quota, sizeof quota, path)) return 0;
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", group);
  if (!read_text(period, sizeof period, path)) return 0;
  return quota_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* The smallest quota from the group up to its root: a parent's binds too. In a container the path of the group may not
 * exist below the mount, and its own limits stand at the root. */
static int smallest_quota(const char *root, const char *group, int (*quota)(const char *)) {
  char path[1100];
  int smallest = 0;
  if (snprintf(path, sizeof path, "%s%s", root, group) >= (int)sizeof path) return 0;
  for (;;) {
    int cpus = quota(path);
    if (cpus > 0 && (smallest == 0 || cpus < smallest)) smallest = cpus;
    char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) < strlen(root)) return smallest;
    *slash = '\0';
  }
}

/* A line of /proc/self/cgroup is "hierarchy:controllers:path"; hierarchy 0 is version 2. */
static int line_quota(char *line) {
  char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!group) return 0;
  *controllers++ = '\0';
  *group++ = '\0';
  if (strcmp(line, "0") == 0) return smallest_quota("/sys/fs/cgroup", group, quota_v2);
  char mount[96] = "", *rest = NULL;
  snprintf(mount, sizeof mount, "/sys/fs/cgroup/%.64s", controllers);
  for (char *word = strtok_r(controllers, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    if (strcmp(word, "cpu") != 0) continue;
    int cpus = smallest_quota(mount, group, quota_v1);
    return cpus > 0 ? cpus : smallest_quota("/sys/fs/cgroup/cpu", group, quota_v1);
  }
  return 0;
}

static void read_count(void) {
  char text[8192], *rest = NULL;
  cpu_count = affinity_count();
  if (!read_text(text, sizeof text, "/proc/self/cgroup")) return;
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    int cpus = line_quota(line);
    if (cpus > 0 && cpus < cpu_count) cpu_count = cpus;
  }
}

int at_cpu_count(void) {
  pthread_once(&count_once, read_count);
  return cpu_count;
}
