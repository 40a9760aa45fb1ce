/* SPDX-License-Identifier: Apache-2.0
 * device.c: CUDA devices: counting, properties, memory, and the backend's table. */
#include "src/cuda/context/state.h"

#include "src/comm/reduce.h"
#include "src/cuda/memory/memory.h"
#include "src/cuda/random/random_cuda.h"
#include "src/process/fork.h"
#include "src/process/library.h"
#include "src/process/vendor.h"

#include <stdlib.h>
#include <string.h>

/* Without a driver or a device the runtime reports an error; here that is no device, and the message says why. */
static int device_count(void) {
  int count = 0;
  if (at_library_none()) {
    (void)at_fail(
        ATTUNE_NOT_FOUND,
        "the program is linked with -static, but CUDA's driver must be loaded at run time; link it dynamically");
    return 0;
  }
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return (void)at_vendor_refuse(), 0;
  const cudaError_t error = cudaGetDeviceCount(&count); /* starts the driver */
  at_vendor_leave();
  at_vendor_opened();
  if (error == cudaSuccess && count > 0) return count;
  (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver)
    (void)at_fail(ATTUNE_NOT_FOUND, "there is no CUDA driver, or it is older than %d.%d; install one",
                  CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  else
    (void)at_fail(ATTUNE_NOT_FOUND, "the CUDA driver reports no GPU: %s",
                  cudaGetErrorString(error ? error : cudaErrorNoDevice));
  return 0;
}

static void fill_properties(attune_device_properties *out, const struct cudaDeviceProp *found, int driver) {
  memset(out, 0, sizeof *out);
  out->kind = ATTUNE_DEVICE_CUDA;
  at_copy_text(out->name, sizeof out->name, found->name);
  out->memory_bytes = found->totalGlobalMem;
  out->processors = found->multiProcessorCount;
  out->capability_major = found->major;
  out->capability_minor = found->minor;
  out->cache_bytes = found->l2CacheSize > 0 ? (uint64_t)found->l2CacheSize : 0;
  out->driver_version = driver;
  size_t at = 0;
  at_append(out->features, sizeof out->features, &at, "sm_%d%d", found->major, found->minor);
}

static void fill_identity(attune_device *device, const struct cudaDeviceProp *found) {
  size_t at = 0;
  (void)at_append(device->identity, sizeof device->identity, &at, "GPU-");
  for (size_t i = 0; i < sizeof found->uuid.bytes; i++)
    (void)at_append(device->identity, sizeof device->identity, &at, "%02x", (unsigned char)found->uuid.bytes[i]);
}

static attune_status device_open(attune_device *device) {
  at_cuda_device *state = calloc(1, sizeof *state);
  if (!state) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the state of %s", device->name);
  pthread_mutex_init(&state->lock, NULL);
  pthread_mutex_init(&state->pages_lock, NULL);
  pthread_mutex_init(&state->streams_lock, NULL);
  state->generation = at_fork_generation();
  device->state = state;
  struct cudaDeviceProp found;
  int driver = 0;
  /* Not in relaxed mode: no capture forbids these, and changing the mode would make the context. */
  attune_status status = ATTUNE_DEVICE_ERROR;
  if (at_vendor_enter(AT_VENDOR_DRIVER)) {
    status = at_cuda_check(device, cudaGetDeviceProperties(&found, device->ordinal), "cudaGetDeviceProperties");
    if (status == ATTUNE_OK) status = at_cuda_check(device, cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    at_vendor_leave();
  } else {
    status = at_vendor_refuse();
  }
  if (status != ATTUNE_OK) {
    device->state = NULL;
    pthread_mutex_destroy(&state->streams_lock);
    pthread_mutex_destroy(&state->pages_lock);
    pthread_mutex_destroy(&state->lock);
    free(state);
    return status;
  }
  fill_properties(&device->properties, &found, driver);
  fill_identity(device, &found);
  return ATTUNE_OK;
}

static attune_status device_synchronize(attune_device *device) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  at_vendor_wait_begin();
  const cudaError_t error = cudaDeviceSynchronize();
  at_vendor_wait_end();
  attune_status status = at_cuda_check(device, error, "cudaDeviceSynchronize");
  at_cuda_leave(&scope);
  return status;
}

/* -1: a child of fork, where CUDA is not called at all. */
static int relax(const attune_device *device) {
  enum cudaStreamCaptureMode mode;
  if (at_cuda_check_fork(device) != ATTUNE_OK) return -1;
  at_cuda_relax(&mode);
  return (int)mode;
}

static void restore(int mode) {
  if (mode >= 0) at_cuda_restore((enum cudaStreamCaptureMode)mode);
}

static attune_status enter(attune_device *device, at_entered *out) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, device);
  if (status == ATTUNE_OK) *out = (at_entered){scope.previous, (int)scope.mode, scope.relaxed, scope.context};
  return status;
}

static void leave(const at_entered *entered) {
  at_cuda_scope scope = {entered->previous, entered->relaxed, (enum cudaStreamCaptureMode)entered->mode,
                         entered->context};
  at_cuda_leave(&scope);
}

static attune_status device_alloc(attune_device *device, void **out, size_t bytes) {
  *out = NULL;
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = at_cuda_check(device, cudaMalloc(out, bytes), "cudaMalloc");
  if (status == ATTUNE_OUT_OF_MEMORY) {
    size_t available = 0, total = 0;
    if (cudaMemGetInfo(&available, &total) != cudaSuccess) (void)cudaGetLastError();
    at_fail(status, "%zu bytes do not fit into the %zu free bytes of %s", bytes, available, device->name);
  }
  at_cuda_leave(&scope);
  return status;
}

static attune_status device_free(attune_device *device, void *pointer) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = at_cuda_check(device, cudaFree(pointer), "cudaFree");
  at_cuda_leave(&scope);
  return status;
}

static attune_status device_fill(attune_stream *stream, void *destination, int value, size_t bytes) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, stream->device));
  cudaError_t error = cudaMemsetAsync(destination, value, bytes, at_cuda_native(stream));
  attune_status status = at_cuda_check(stream->device, error, "cudaMemsetAsync");
  at_cuda_leave(&scope);
  return status;
}

static attune_status stream_blas(attune_stream *stream, void **out) {
  at_cuda_scope scope;
  cublasHandle_t handle = NULL;
  AT_TRY(at_cuda_enter(&scope, stream->device));
  attune_status status = at_cuda_blas(stream, &handle);
  at_cuda_leave(&scope);
  at_cuda_stream *state = at_cuda_stream_of(stream);
  state->blas_bytes = SIZE_MAX; /* the program may change what attune set */
  state->math = (cublasMath_t)-1;
  *out = (void *)handle;
  return status;
}

/* Functions in stream order run on threads of the driver, which attune does not know. */
static bool stream_runs_here(const attune_stream *stream) {
  (void)stream;
  return false;
}

static const at_backend_device device_table = {
    .count = device_count,
    .open = device_open,
    .synchronize = device_synchronize,
    .wait_streams = at_cuda_wait_streams,
    .relax = relax,
    .restore = restore,
    .enter = enter,
    .leave = leave,
    .initialize = at_cuda_initialize,
    .is_initialized = at_cuda_is_initialized,
    .details = at_cuda_details,
    .each_library = at_nvrtc_each,
};

static const at_backend_telemetry telemetry_table = {
    .clock_state = at_cuda_clock_state,
    .read = at_cuda_telemetry,
    .each_process = at_cuda_each_process,
};

static const at_backend_memory memory_table = {
    .alloc = device_alloc,
    .free = device_free,
    .info = at_cuda_memory_info,
    .pointer_info = at_cuda_pointer_info,
    .copy = at_cuda_copy,
    .copy_between = at_cuda_copy_between,
    .fill = device_fill,
    .copy_rows = at_cuda_copy_rows,
    .reduce = at_reduce_cuda,
    .copy_box = at_cuda_copy_box,
    .fill_box = at_cuda_fill_box,
};

static const at_backend_stream stream_table = {
    .open = at_cuda_stream_open,
    .close = at_cuda_stream_close,
    .runs_here = stream_runs_here,
    .query = at_cuda_stream_query,
    .synchronize = at_cuda_stream_synchronize,
    .wait = at_cuda_stream_wait,
    .capturing = at_cuda_stream_capturing,
    .joins = at_cuda_stream_joins,
    .call = at_cuda_stream_call,
};

static const at_backend_event event_table = {
    .open = at_cuda_event_open,
    .close = at_cuda_event_close,
    .record = at_cuda_event_record,
    .query = at_cuda_event_query,
    .synchronize = at_cuda_event_synchronize,
    .elapsed = at_cuda_event_elapsed,
};

static const at_backend_graph graph_table = {
    .capture_begin = at_cuda_capture_begin,
    .capture_end = at_cuda_capture_end,
    .capture_info = at_cuda_capture_info,
    .launch = at_cuda_graph_launch,
    .destroy = at_cuda_graph_destroy,
    .instantiate = at_cuda_graph_instantiate,
    .update = at_cuda_graph_update,
    .nodes = at_cuda_graph_nodes,
    .dump = at_cuda_graph_dump,
    .native = at_cuda_graph_native,
    .node = at_cuda_graph_node,
    .edges = at_cuda_graph_edges,
    .get_parameters = at_cuda_graph_get_parameters,
    .set_parameters = at_cuda_graph_set_parameters,
    .set_enabled = at_cuda_graph_set_enabled,
    .clone = at_cuda_graph_clone,
    .upload = at_cuda_graph_upload,
    .trim = at_cuda_graph_trim,
    .memory = at_cuda_graph_memory,
};

static const at_backend_random random_table = {
    .run = at_random_run_cuda,
    .state = at_random_state_cuda,
};

static const at_backend_pinned pinned_table = {
    .alloc = at_cuda_pinned_alloc,
    .free = at_cuda_pinned_free,
    .pin = at_cuda_pinned_register,
    .unpin = at_cuda_pinned_unregister,
};

static const at_backend_async async_table = {
    .check = at_cuda_async_check,
    .alloc = at_cuda_alloc_async,
    .free = at_cuda_free_async,
};

static const at_backend_managed managed_table = {
    .check = at_cuda_managed_check,
    .alloc = at_cuda_managed_alloc,
    .advise = at_cuda_managed_advise,
    .prefetch = at_cuda_managed_prefetch,
    .state = at_cuda_managed_state,
};

static const at_backend_vm vm_table = {
    .granularity = at_cuda_vm_granularity,
    .reserve = at_cuda_vm_reserve,
    .release = at_cuda_vm_release,
    .map = at_cuda_vm_map,
    .unmap = at_cuda_vm_unmap,
};

static const at_backend_ipc ipc_table = {
    .page_export = at_cuda_vm_export,
    .page_import = at_cuda_vm_import,
    .memory_export = at_cuda_ipc_export,
    .memory_open = at_cuda_ipc_open,
    .memory_close = at_cuda_ipc_close,
    .event_export = at_cuda_event_export,
    .event_import = at_cuda_event_import,
};

static const at_backend_peer peer_table = {
    .query = at_cuda_peer_query,
    .enable = at_cuda_peer_enable,
    .disable = at_cuda_peer_disable,
};

#ifdef AT_CUDA_NVTX
static const at_backend_notes notes_table = {
    .segment = at_cuda_note_segment,
    .forget_segment = at_cuda_forget_segment,
    .block = at_cuda_note_block,
    .forget_block = at_cuda_forget_block,
};
#endif

static const at_backend_runtime runtime_table = {
    .check_error = at_cuda_check_number,
    .attribute = at_cuda_attribute,
    .get_limit = at_cuda_get_limit,
    .set_limit = at_cuda_set_limit,
    .get_schedule = at_cuda_get_schedule,
    .set_schedule = at_cuda_set_schedule,
    .profiler = at_cuda_profiler,
    .blas = stream_blas,
    .priorities = at_cuda_stream_priorities,
    .threads_per_processor = at_random_threads_per_processor_cuda,
};

const at_backend at_cuda_backend = {
    .name = "cuda",
    .kind = ATTUNE_DEVICE_CUDA,
    .nccl = true,
    .cufile = true,
    .device = &device_table,
    .telemetry = &telemetry_table,
    .memory = &memory_table,
    .stream = &stream_table,
    .event = &event_table,
    .graph = &graph_table,
    .random = &random_table,
    .pinned = &pinned_table,
    .async = &async_table,
    .managed = &managed_table,
    .vm = &vm_table,
    .ipc = &ipc_table,
    .peer = &peer_table,
#ifdef AT_CUDA_NVTX
    .notes = &notes_table,
#endif
    .runtime = &runtime_table,
};
