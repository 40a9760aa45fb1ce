/* SPDX-License-Identifier: Apache-2.0
 * managed.c: managed memory on CUDA: its location, its readers and its prefetches. */
#include <string.h>

#include "src/cuda/context/state.h"
#include "src/cuda/memory/memory.h"

static attune_status leave(at_cuda_scope *scope, attune_device *device, cudaError_t error, const char *what) {
  attune_status status = at_cuda_check(device, error, what);
  at_cuda_leave(scope);
  return status;
}

attune_status at_cuda_managed_check(attune_device *device, bool advised) {
  int managed = 0, concurrent = 0;
  AT_TRY(at_cuda_attribute(device, cudaDevAttrManagedMemory, &managed));
  AT_TRY(at_cuda_attribute(device, cudaDevAttrConcurrentManagedAccess, &concurrent));
  if (!managed) return at_fail(ATTUNE_UNSUPPORTED, "%s has no managed memory", device->name);
  if (advised && !concurrent)
    return at_fail(ATTUNE_UNSUPPORTED,
                   "%s cannot use managed memory at the same time as the CPU, so it takes no advice for it",
                   device->name);
  return ATTUNE_OK;
}

attune_status at_cuda_managed_alloc(attune_device *device, void **out, size_t bytes) {
  at_cuda_scope scope;
  *out = NULL;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  return leave(&scope, device, cudaMallocManaged(out, bytes, cudaMemAttachGlobal), "cudaMallocManaged");
}

/* ---- advice ---- */

static int place_of(const attune_device *device) {
  return device->backend.kind == ATTUNE_DEVICE_HOST ? cudaCpuDeviceId : device->ordinal;
}

/* CUDA 13 names places by a struct. */
static cudaError_t advise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, int place) {
#if CUDART_VERSION >= 13000
  const struct cudaMemLocation location = {.type = place == cudaCpuDeviceId ? cudaMemLocationTypeHost
                                                                            : cudaMemLocationTypeDevice,
                                           .id = place == cudaCpuDeviceId ? 0 : place};
  return cudaMemAdvise(pointer, bytes, advice, location);
#else
  return cudaMemAdvise(pointer, bytes, advice, place);
#endif
}

static bool is_accessed_by(const attune_managed_options *o, int place) {
  for (int i = 0; i < o->accessed_by_count; i++)
    if (place_of(o->accessed_by[i]) == place) return true;
  return false;
}

/* From the CPU (-1) to the last GPU. Where it may be used from is taken back before it is set: a place that is
 * preferred keeps a mapping of its own. */
static cudaError_t advise_all(const void *pointer, size_t bytes, const attune_managed_options *o, int places) {
  cudaError_t error = advise(pointer, bytes, o->read_mostly ? cudaMemAdviseSetReadMostly : cudaMemAdviseUnsetReadMostly,
                             places > 0 ? 0 : cudaCpuDeviceId);
  if (error == cudaSuccess)
    error =
        advise(pointer, bytes, o->preferred ? cudaMemAdviseSetPreferredLocation : cudaMemAdviseUnsetPreferredLocation,
               o->preferred ? place_of(o->preferred) : 0);
  for (int place = cudaCpuDeviceId; place < places && error == cudaSuccess; place++)
    error = advise(pointer, bytes, is_accessed_by(o, place) ? cudaMemAdviseSetAccessedBy : cudaMemAdviseUnsetAccessedBy,
                   place);
  return error;
}

attune_status at_cuda_managed_advise(attune_device *device, void *pointer, size_t bytes,
                                     const attune_managed_options *o) {
  at_cuda_scope scope;
  int places = 0;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  cudaError_t error = cudaGetDeviceCount(&places);
  if (error == cudaSuccess) error = advise_all(pointer, bytes, o, places);
  return leave(&scope, device, error, "cudaMemAdvise");
}

attune_status at_cuda_managed_prefetch(attune_stream *stream, void *pointer, size_t bytes, attune_device *to) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, stream->device));
  const int place = place_of(to);
#if CUDART_VERSION >= 13000
  const struct cudaMemLocation location = {.type = place == cudaCpuDeviceId ? cudaMemLocationTypeHost
                                                                            : cudaMemLocationTypeDevice,
                                           .id = place == cudaCpuDeviceId ? 0 : place};
  cudaError_t error = cudaMemPrefetchAsync(pointer, bytes, location, 0, at_cuda_native(stream));
#else
  cudaError_t error = cudaMemPrefetchAsync(pointer, bytes, place, at_cuda_native(stream));
#endif
  return leave(&scope, stream->device, error, "cudaMemPrefetchAsync");
}

/* ---- what it has ---- */

static attune_device *device_of(int place) {
  attune_device *device = NULL;
  const at_message kept = at_message_keep();
  if (place == cudaCpuDeviceId) (void)attune_device_get(&device, "host");
  if (place >= 0) device = at_cuda_device_at(place);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return device;
}

attune_status at_cuda_managed_state(attune_device *device, attune_managed_state *out, const void *pointer,
                                    size_t bytes) {
  at_cuda_scope scope;
  int read_mostly = 0, preferred = cudaInvalidDeviceId, prefetched = cudaInvalidDeviceId,
      accessed_by[ATTUNE_MANAGED_DEVICES];
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  cudaError_t error =
      cudaMemRangeGetAttribute(&read_mostly, sizeof(int), cudaMemRangeAttributeReadMostly, pointer, bytes);
  if (error == cudaSuccess)
    error = cudaMemRangeGetAttribute(&preferred, sizeof(int), cudaMemRangeAttributePreferredLocation, pointer, bytes);
  if (error == cudaSuccess)
    error =
        cudaMemRangeGetAttribute(&prefetched, sizeof(int), cudaMemRangeAttributeLastPrefetchLocation, pointer, bytes);
  if (error == cudaSuccess)
    error = cudaMemRangeGetAttribute(accessed_by, sizeof accessed_by, cudaMemRangeAttributeAccessedBy, pointer, bytes);
  AT_TRY(leave(&scope, device, error, "cudaMemRangeGetAttribute"));
  out->read_mostly = read_mostly != 0;
  out->preferred = device_of(preferred);
  out->prefetched = device_of(prefetched);
  for (size_t i = 0; i < AT_COUNT(accessed_by); i++)
    if (accessed_by[i] != cudaInvalidDeviceId && (out->accessed_by[out->accessed_by_count] = device_of(accessed_by[i])))
      out->accessed_by_count++;
  return ATTUNE_OK;
}
