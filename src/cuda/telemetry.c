/* SPDX-License-Identifier: Apache-2.0
 * telemetry.c: what NVML says of a device's clocks and users. The library is loaded at run time and absent without
 * harm, so its few functions are declared here. Nothing is ever shut down: attune makes no such call at exit. */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "src/cuda/state.h"

/* As NVML's interface defines them. */
#define NVML_CLOCK_SM 1
#define NVML_SLOWED (0x8ull | 0x20ull | 0x40ull | 0x80ull) /* HW slowdown, SW thermal, HW thermal, HW power brake */
typedef struct nvml_process {
  unsigned int pid;
  unsigned long long memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
} nvml_process;

/* Processes that compute on the device: how many are looked at, and for how long the count is taken as still true. */
#define PROCESSES_MAX 128
#define FOREIGN_FRESH_NS 100000000

static struct nvml {
  int (*init)(void);
  int (*device_by_bus)(const char *bus, void **device);
  int (*clock_of)(void *device, int kind, unsigned int *mhz);
  int (*reasons)(void *device, unsigned long long *mask);
  int (*processes)(void *device, unsigned int *count, nvml_process *list);
  bool ready;
} nvml; /* constant after nvml_once */
static pthread_once_t nvml_once = PTHREAD_ONCE_INIT;

/* ISO C has no conversion from an object pointer to a function's; POSIX promises that the bits are the same. */
static void find_symbol(void *library, const char *name, void *slot) {
  void *symbol = dlsym(library, name);
  memcpy(slot, &symbol, sizeof symbol);
}

static void load_nvml(void) {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  find_symbol(library, "nvmlInit_v2", &nvml.init);
  find_symbol(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.device_by_bus);
  find_symbol(library, "nvmlDeviceGetClockInfo", &nvml.clock_of);
  find_symbol(library, "nvmlDeviceGetCurrentClocksEventReasons", &nvml.reasons);
  if (!nvml.reasons) find_symbol(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.reasons);
  find_symbol(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes);
  nvml.ready = nvml.init && nvml.device_by_bus && nvml.init() == 0;
}

/* The device's lock is held. */
static void *handle_of(attune_device *device) {
  at_cuda_device *state = at_cuda_device_of(device);
  if (state->nvml_sought) return state->nvml;
  state->nvml_sought = true;
  char bus[32];
  enum cudaStreamCaptureMode mode;
  at_cuda_relax(&mode);
  const cudaError_t error = cudaDeviceGetPCIBusId(bus, (int)sizeof bus, device->ordinal);
  at_cuda_restore(mode);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    return NULL;
  }
  void *handle = NULL;
  if (nvml.device_by_bus(bus, &handle) == 0) state->nvml = handle;
  return state->nvml;
}

/* Processes other than ours; -1 when ours is not in the list, because then the ids are those of another namespace. */
static int count_foreign(void *handle) {
  nvml_process list[PROCESSES_MAX];
  unsigned int count = PROCESSES_MAX;
  if (!nvml.processes || nvml.processes(handle, &count, list) != 0 || count > PROCESSES_MAX) return -1;
  int foreign = 0;
  bool own = false;
  for (unsigned int i = 0; i < count; i++) {
    if (list[i].pid == (unsigned int)getpid())
      own = true;
    else
      foreign++;
  }
  return own ? foreign : -1;
}

/* The device's lock is held. The list of processes takes NVML milliseconds, so it is not asked for at every call. */
static int foreign_of(at_cuda_device *state) {
  int64_t now = at_now_ns();
  if (state->foreign_ns == 0 || now - state->foreign_ns > FOREIGN_FRESH_NS) {
    state->foreign = count_foreign(state->nvml);
    state->foreign_ns = now;
  }
  return state->foreign;
}

attune_status at_cuda_clock_state(attune_device *device, at_clock_state *out) {
  *out = (at_clock_state){.foreign = -1};
  pthread_once(&nvml_once, load_nvml);
  if (!nvml.ready) return ATTUNE_OK;
  at_cuda_device *state = at_cuda_device_of(device);
  pthread_mutex_lock(&state->lock);
  void *handle = handle_of(device);
  if (handle) {
    unsigned int mhz = 0;
    unsigned long long reasons = 0;
    if (nvml.clock_of && nvml.clock_of(handle, NVML_CLOCK_SM, &mhz) == 0) out->clock_mhz = (int)mhz;
    if (nvml.reasons && nvml.reasons(handle, &reasons) == 0) out->slowed = (reasons & NVML_SLOWED) != 0;
    out->foreign = foreign_of(state);
  }
  pthread_mutex_unlock(&state->lock);
  return ATTUNE_OK;
}
