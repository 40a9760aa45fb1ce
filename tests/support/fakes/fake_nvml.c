/* SPDX-License-Identifier: Apache-2.0
 * fake_nvml.c: a libnvidia-ml.so.1 with two GPUs whose figures a test knows. FAKE_NVML: broken (it does not start),
 * refusing (every question fails), hidden (processes without memory), crowded (many processes). FAKE_OLD: few
 * functions. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fakes/fake_end.h"

#define EXPORT __attribute__((visibility("default")))

static bool mode(const char *name) {
  const char *value = getenv("FAKE_NVML");
  return value && strcmp(value, name) == 0;
}

static int gpus[2];

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void) {
  return mode("broken") ? 9 : 0;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
  if (strcmp(bus, "0000:01:00.0") != 0) return 6;
  *device = &gpus[0];
  return 0;
}

EXPORT int nvmlDeviceGetClockInfo(void *device, int kind, unsigned int *mhz);
EXPORT int nvmlDeviceGetClockInfo(void *device, int kind, unsigned int *mhz) {
  fake_work();
  if (device != &gpus[0] || mode("refusing")) return 3;
  *mhz = kind == 1 ? 1755 : kind == 2 ? 3201 : 0;
  return 0;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *mask);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *mask) {
  const char *value = getenv("FAKE_REASONS");
  (void)device;
  if (mode("refusing")) return 3;
  *mask = value ? strtoull(value, NULL, 0) : 0;
  return 0;
}

#ifdef FAKE_DRIVER /* a libcuda.so.1 that is only looked for */
EXPORT int cuInit(unsigned flags);
EXPORT int cuInit(unsigned flags) {
  (void)flags;
  abort();
}
#endif

#ifndef FAKE_OLD
EXPORT int nvmlDeviceGetCount_v2(unsigned int *count);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *count) {
  *count = 2;
  return mode("refusing") ? 3 : 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
  if (index > 1) return 2;
  *device = &gpus[index];
  return 0;
}

EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned int size);
EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned int size) {
  if (mode("refusing")) return 3;
  snprintf(text, size, "GPU-%d1111111-2222-3333-4444-555555555555", device == &gpus[1]);
  return 0;
}

typedef struct rates {
  unsigned int gpu, memory;
} rates;
EXPORT int nvmlDeviceGetUtilizationRates(void *device, rates *out);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, rates *out) {
  (void)device;
  *out = (rates){87, 34};
  return mode("refusing") ? 3 : 0;
}

typedef struct memory {
  unsigned long long total, free, used;
} memory;
EXPORT int nvmlDeviceGetMemoryInfo(void *device, memory *out);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, memory *out) {
  (void)device;
  *out = (memory){80000000000ull, 60000000000ull, 20000000000ull};
  return mode("refusing") ? 3 : 0;
}

static int figure(unsigned int *out, unsigned int value) {
  *out = value;
  return mode("refusing") ? 3 : 0;
}

EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *out);
EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *out) {
  (void)device;
  return sensor == 0 ? figure(out, 61) : 2;
}
EXPORT int nvmlDeviceGetTemperatureThreshold(void *device, int kind, unsigned int *out);
EXPORT int nvmlDeviceGetTemperatureThreshold(void *device, int kind, unsigned int *out) {
  static int asked;
  (void)device;
  if (getenv("FAKE_ONCE") && asked++) return 3;
  return kind == 1 ? figure(out, 89) : figure(out, 92);
}
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned int *out);
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned int *out) {
  (void)device;
  return figure(out, 412345);
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *out);
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *out) {
  (void)device;
  return figure(out, 700000);
}
EXPORT int nvmlDeviceGetMaxClockInfo(void *device, int kind, unsigned int *out);
EXPORT int nvmlDeviceGetMaxClockInfo(void *device, int kind, unsigned int *out) {
  static int asked[3];
  (void)device;
  if (getenv("FAKE_ONCE") && asked[kind]++) return 3;
  return figure(out, kind == 1 ? 1980 : 3210);
}

typedef struct process {
  unsigned int pid;
  unsigned long long bytes;
  unsigned int gpu_instance, compute_instance;
} process;
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, process *out);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, process *out) {
  const unsigned int have = mode("crowded") ? 200 : 2, room = *count;
  (void)device;
  if (mode("refusing")) return 3;
  *count = have;
  if (room < have) return 7;
  for (unsigned int i = 0; i < have; i++)
    out[i] = (process){1000 + i, mode("hidden") ? ~0ull : 1000000ull * (i + 1), 0, 0};
  return 0;
}
#endif
