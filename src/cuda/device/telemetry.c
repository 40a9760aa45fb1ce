/* SPDX-License-Identifier: Apache-2.0
 * telemetry.c: what NVML says of a device: for the program, and of its clock and users for measurements. */
#include <stdlib.h>
#include <unistd.h>

#include "src/cuda/context/state.h"
#include "src/cuda/library/nvml.h"
#include "src/process/vendor.h"

/* For how long the count of processes is taken as still true. */
#define FOREIGN_FRESH_NS 100000000

/* The device's lock is held. */
static void *find_handle(attune_device *device) {
  at_cuda_device *state = at_cuda_device_of(device);
  if (state->nvml_sought) return state->nvml;
  state->nvml_sought = true;
  state->constants = (at_nvml_constants)AT_NVML_CONSTANTS_INIT;
  char bus[32];
  enum cudaStreamCaptureMode mode;
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return NULL;
  at_cuda_relax(&mode);
  const cudaError_t error = cudaDeviceGetPCIBusId(bus, (int)sizeof bus, device->ordinal);
  at_cuda_restore(mode);
  at_vendor_leave();
  if (error == cudaSuccess)
    state->nvml = at_nvml_device(bus);
  else
    (void)cudaGetLastError();
  return state->nvml;
}

static void *handle_of(attune_device *device) {
  if (!at_nvml_ready()) return NULL;
  at_cuda_device *state = at_cuda_device_of(device);
  pthread_mutex_lock(&state->lock);
  void *handle = find_handle(device);
  pthread_mutex_unlock(&state->lock);
  return handle;
}

/* Processes other than ours; -1 when ours is not in the list, because then the ids are those of another namespace. */
static int count_foreign(void *handle) {
  attune_device_process *list = NULL;
  const int count = at_nvml_processes(handle, &list);
  int foreign = 0;
  bool own = false;
  for (int i = 0; i < count; i++) {
    if (list[i].pid == getpid())
      own = true;
    else
      foreign++;
  }
  free(list);
  return own ? foreign : -1;
}

/* The list of processes takes NVML milliseconds, so it is not asked for at every call. */
static int foreign_of(at_cuda_device *state, void *handle) {
  pthread_mutex_lock(&state->lock);
  int64_t now = at_now_ns();
  if (state->foreign_ns == 0 || now - state->foreign_ns > FOREIGN_FRESH_NS) {
    state->foreign = count_foreign(handle);
    state->foreign_ns = now;
  }
  const int foreign = state->foreign;
  pthread_mutex_unlock(&state->lock);
  return foreign;
}

attune_status at_cuda_clock_state(attune_device *device, at_clock_state *out) {
  *out = (at_clock_state){.foreign = -1};
  void *handle = handle_of(device);
  if (!handle) return ATTUNE_OK;
  out->clock_mhz = at_nvml_clock(handle);
  out->slowed = at_nvml_slowed(handle);
  out->foreign = foreign_of(at_cuda_device_of(device), handle);
  return ATTUNE_OK;
}

void at_cuda_telemetry(attune_device *device, attune_telemetry *out) {
  void *handle = handle_of(device);
  at_cuda_device *state = at_cuda_device_of(device);
  if (!handle) return;
  pthread_mutex_lock(&state->lock);
  at_nvml_constants constants = state->constants;
  pthread_mutex_unlock(&state->lock);
  at_nvml_telemetry(handle, &constants, out);
  pthread_mutex_lock(&state->lock);
  state->constants = constants;
  pthread_mutex_unlock(&state->lock);
}

attune_status at_cuda_each_process(attune_device *device, attune_device_process_fn fn, void *user) {
  attune_device_process *list = NULL;
  void *handle = handle_of(device);
  const int count = handle ? at_nvml_processes(handle, &list) : -1;
  if (count == -2) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the list of processes on %s", device->name);
  if (count < 0)
    return at_unsupported(device, "list of processes: NVML, which comes with the driver, does not report it");
  for (int i = 0; i < count && fn(user, &list[i]) == 0; i++) continue;
  free(list);
  return ATTUNE_OK;
}
