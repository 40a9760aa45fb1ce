/* SPDX-License-Identifier: Apache-2.0
 * nvml.c: see nvml.h. NVML's few functions and constants are declared here as its interface defines them. */
#include "src/cuda/library/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/library.h"
#include "src/process/loading.h"
#include "src/process/vendor.h"

enum { TOO_SMALL = 7, CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0, THRESHOLD_SLOWDOWN = 1 };

typedef struct nvml_rates {
  unsigned int gpu, memory;
} nvml_rates;
typedef struct nvml_memory {
  unsigned long long total, free, used;
} nvml_memory;
typedef struct nvml_process {
  unsigned int pid;
  unsigned long long memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
} nvml_process;

static struct nvml {
  int (*init)(void);
  int (*count)(unsigned int *count);
  int (*device_by_index)(unsigned int index, void **device);
  int (*device_by_bus)(const char *bus, void **device);
  int (*uuid)(void *device, char *text, unsigned int size);
  int (*rates)(void *device, nvml_rates *out);
  int (*memory)(void *device, nvml_memory *out);
  int (*temperature)(void *device, int sensor, unsigned int *celsius);
  int (*threshold)(void *device, int kind, unsigned int *celsius);
  int (*power)(void *device, unsigned int *milliwatts);
  int (*power_limit)(void *device, unsigned int *milliwatts);
  int (*clock)(void *device, int kind, unsigned int *mhz);
  int (*clock_most)(void *device, int kind, unsigned int *mhz);
  int (*reasons)(void *device, unsigned long long *mask);
  int (*processes)(void *device, unsigned int *count, nvml_process *list);
  bool ready;
} nvml; /* constant after nvml_once; a function that is missing is NULL */
static pthread_once_t nvml_once = PTHREAD_ONCE_INIT;

static void open_nvml(void) {
  at_library library;
  if (!at_loading_begin()) {
    at_loading_end();
    return;
  }
  if (at_library_open(&library, "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    (void)at_library_function(&library, "nvmlInit_v2", &nvml.init);
    (void)at_library_function(&library, "nvmlDeviceGetCount_v2", &nvml.count);
    (void)at_library_function(&library, "nvmlDeviceGetHandleByIndex_v2", &nvml.device_by_index);
    (void)at_library_function(&library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.device_by_bus);
    (void)at_library_function(&library, "nvmlDeviceGetUUID", &nvml.uuid);
    (void)at_library_function(&library, "nvmlDeviceGetUtilizationRates", &nvml.rates);
    (void)at_library_function(&library, "nvmlDeviceGetMemoryInfo", &nvml.memory);
    (void)at_library_function(&library, "nvmlDeviceGetTemperature", &nvml.temperature);
    (void)at_library_function(&library, "nvmlDeviceGetTemperatureThreshold", &nvml.threshold);
    (void)at_library_function(&library, "nvmlDeviceGetPowerUsage", &nvml.power);
    (void)at_library_function(&library, "nvmlDeviceGetEnforcedPowerLimit", &nvml.power_limit);
    (void)at_library_function(&library, "nvmlDeviceGetClockInfo", &nvml.clock);
    (void)at_library_function(&library, "nvmlDeviceGetMaxClockInfo", &nvml.clock_most);
    if (!at_library_function(&library, "nvmlDeviceGetCurrentClocksEventReasons", &nvml.reasons))
      (void)at_library_function(&library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.reasons);
    (void)at_library_function(&library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes);
    nvml.ready = nvml.init && nvml.init() == 0;
    at_vendor_opened();
  }
  at_loading_end();
}

bool at_nvml_ready(void) {
  pthread_once(&nvml_once, open_nvml);
  return nvml.ready;
}

void *at_nvml_device(const char *bus) {
  void *handle = NULL;
  if (!at_nvml_ready() || !nvml.device_by_bus || !at_vendor_enter(AT_VENDOR_LIBRARY)) return NULL;
  if (nvml.device_by_bus(bus, &handle) != 0) handle = NULL;
  at_vendor_leave();
  return handle;
}

int at_nvml_count(void) {
  unsigned int count = 0;
  if (!at_nvml_ready() || !nvml.count || !at_vendor_enter(AT_VENDOR_LIBRARY)) return -1;
  const bool told = nvml.count(&count) == 0;
  at_vendor_leave();
  return told ? (int)count : -1;
}

bool at_nvml_uuid(int index, char *out, size_t size) {
  void *handle = NULL;
  if (!at_nvml_ready() || !nvml.device_by_index || !nvml.uuid || !at_vendor_enter(AT_VENDOR_LIBRARY)) return false;
  const bool told =
      nvml.device_by_index((unsigned int)index, &handle) == 0 && nvml.uuid(handle, out, (unsigned int)size) == 0;
  at_vendor_leave();
  return told;
}

/* A figure of one number; not known stays as it was. */
static void ask(int64_t *out, int (*function)(void *, unsigned int *), void *handle) {
  unsigned int value = 0;
  if (function && function(handle, &value) == 0) *out = value;
}

static void ask_kind(int64_t *out, int (*function)(void *, int, unsigned int *), void *handle, int kind) {
  unsigned int value = 0;
  if (function && function(handle, kind, &value) == 0) *out = value;
}

/* NVML's bits, and ours. */
static int64_t slowdown_of(unsigned long long mask) {
  static const struct {
    unsigned long long theirs;
    int64_t ours;
  } bits[] = {{0x1, ATTUNE_SLOW_IDLE},     {0x2, ATTUNE_SLOW_SETTING},       {0x4, ATTUNE_SLOW_POWER_CAP},
              {0x8, ATTUNE_SLOW_HARDWARE}, {0x10, ATTUNE_SLOW_SYNCHRONIZED}, {0x20, ATTUNE_SLOW_HEAT},
              {0x40, ATTUNE_SLOW_HEAT},    {0x80, ATTUNE_SLOW_POWER_BRAKE},  {0x100, ATTUNE_SLOW_SETTING}};
  int64_t out = 0;
  for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
    if (mask & bits[i].theirs) out |= bits[i].ours;
    mask &= ~bits[i].theirs;
  }
  return mask ? out | ATTUNE_SLOW_OTHER : out;
}

/* Each question costs NVML some microseconds. */
static void ask_once(int64_t *out, int64_t *kept, int (*function)(void *, int, unsigned int *), void *handle,
                     int kind) {
  if (*kept == ATTUNE_NOT_KNOWN) ask_kind(kept, function, handle, kind);
  if (*kept != ATTUNE_NOT_KNOWN) *out = *kept;
}

void at_nvml_telemetry(void *handle, at_nvml_constants *constants, attune_telemetry *out) {
  nvml_rates rates = {0};
  nvml_memory memory = {0};
  unsigned long long mask = 0;
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return;
  if (nvml.rates && nvml.rates(handle, &rates) == 0) {
    out->busy_percent = rates.gpu;
    out->memory_busy_percent = rates.memory;
  }
  if (nvml.memory && nvml.memory(handle, &memory) == 0) {
    out->memory_used_bytes = (int64_t)memory.used;
    out->memory_total_bytes = (int64_t)memory.total;
  }
  ask_kind(&out->temperature_c, nvml.temperature, handle, SENSOR_GPU);
  ask_once(&out->temperature_slow_c, &constants->temperature_slow_c, nvml.threshold, handle, THRESHOLD_SLOWDOWN);
  ask(&out->power_mw, nvml.power, handle);
  ask(&out->power_limit_mw, nvml.power_limit, handle);
  ask_kind(&out->clock_mhz, nvml.clock, handle, CLOCK_SM);
  ask_once(&out->clock_most_mhz, &constants->clock_most_mhz, nvml.clock_most, handle, CLOCK_SM);
  ask_kind(&out->memory_clock_mhz, nvml.clock, handle, CLOCK_MEMORY);
  ask_once(&out->memory_clock_most_mhz, &constants->memory_clock_most_mhz, nvml.clock_most, handle, CLOCK_MEMORY);
  if (nvml.reasons && nvml.reasons(handle, &mask) == 0) out->slowdown = slowdown_of(mask);
  at_vendor_leave();
}

int at_nvml_clock(void *handle) {
  int64_t mhz = 0;
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return 0;
  ask_kind(&mhz, nvml.clock, handle, CLOCK_SM);
  at_vendor_leave();
  return (int)mhz;
}

bool at_nvml_slowed(void *handle) {
  unsigned long long mask = 0;
  if (!nvml.reasons || !at_vendor_enter(AT_VENDOR_LIBRARY)) return false;
  if (nvml.reasons(handle, &mask) != 0) mask = 0;
  at_vendor_leave();
  return (slowdown_of(mask) & (ATTUNE_SLOW_HARDWARE | ATTUNE_SLOW_HEAT | ATTUNE_SLOW_POWER_BRAKE)) != 0;
}

int at_nvml_processes(void *handle, attune_device_process **out) {
  unsigned int count = 64, room = 0;
  nvml_process *list = NULL;
  int error = TOO_SMALL;
  *out = NULL;
  if (!nvml.processes) return -1;
  for (int i = 0; i < 4 && error == TOO_SMALL; i++) { /* there may be more of them each time */
    nvml_process *more = realloc(list, (room = count + 16) * sizeof *list);
    if (!more) {
      free(list);
      return -2;
    }
    list = more;
    count = room;
    if (!at_vendor_enter(AT_VENDOR_LIBRARY)) break;
    error = nvml.processes(handle, &count, list);
    at_vendor_leave();
  }
  *out = error == 0 ? calloc((size_t)count + 1, sizeof **out) : NULL;
  for (unsigned int i = 0; *out && i < count; i++)
    (*out)[i] = (attune_device_process){
        list[i].pid, list[i].memory > INT64_MAX ? ATTUNE_NOT_KNOWN : (int64_t)list[i].memory}; /* all ones: not known */
  free(list);
  return error != 0 ? -1 : *out ? (int)count : -2;
}
