/* SPDX-License-Identifier: Apache-2.0
 * copy.c: copies on CUDA. The driver sees by the addresses where they lead. Memory of two GPUs is copied as such: mapped
 * memory of a device that is no peer is not to be reached in any other way. */
#include "src/cuda/memory.h"

#include <limits.h>

#include "src/cuda/state.h"
#include "src/sync_debug.h"

/* CUDA takes pageable host memory piece by piece through memory of its own, and waits. */
static attune_status check_pageable(attune_stream *stream, const void *destination, const void *source) {
  const void *const ends[] = {destination, source};
  for (int i = 0; i < 2; i++) {
    struct cudaPointerAttributes found;
    if (cudaPointerGetAttributes(&found, ends[i]) != cudaSuccess) {
      (void)cudaGetLastError();
      continue;
    }
    if (found.type == cudaMemoryTypeUnregistered)
      return at_sync_check(stream->device, "attune_copy waits for pageable host memory");
  }
  return ATTUNE_OK;
}

/* The devices that two pieces of memory lie on, where those are two. Pageable memory has none. */
typedef struct two_ends {
  int to, from;
} two_ends;

static bool lie_on(int *device, const void *pointer) {
  struct cudaPointerAttributes found;
  if (cudaPointerGetAttributes(&found, pointer) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  *device = found.device;
  return found.type == cudaMemoryTypeDevice;
}

/* Not asked with one GPU, nor in a capture, where such a copy between devices cannot be written down. */
static bool of_two_devices(two_ends *out, attune_stream *stream, const void *destination, const void *source) {
  if (attune_device_count() <= 2) return false;
  return lie_on(&out->to, destination) && lie_on(&out->from, source) && out->to != out->from &&
         !at_cuda_stream_capturing(stream);
}

/* The device is current, in the relaxed mode. */
static attune_status copy_bytes(attune_stream *stream, void *destination, const void *source, size_t bytes) {
  two_ends ends;
  if (of_two_devices(&ends, stream, destination, source))
    return at_cuda_check(stream->device,
                         cudaMemcpyPeerAsync(destination, ends.to, source, ends.from, bytes, at_cuda_native(stream)),
                         "cudaMemcpyPeerAsync");
  cudaError_t error = cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, at_cuda_native(stream));
  return at_cuda_check(stream->device, error, "cudaMemcpyAsync");
}

attune_status at_cuda_copy(attune_stream *stream, void *destination, const void *source, size_t bytes) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  if (at_sync_debug_on() && !at_cuda_stream_capturing(stream)) status = check_pageable(stream, destination, source);
  if (status == ATTUNE_OK) status = copy_bytes(stream, destination, source, bytes);
  at_cuda_leave(&scope);
  return status;
}

/* ---- rows ---- */

typedef struct rows {
  char *destination;
  const char *source;
  size_t destination_pitch, source_pitch, bytes, count;
} rows;

static attune_status copy_peer_rows(attune_stream *stream, const rows *r, const two_ends *ends) {
  struct cudaMemcpy3DPeerParms p = {
      .srcPtr = {.ptr = (void *)(uintptr_t)r->source, .pitch = r->source_pitch, .xsize = r->bytes, .ysize = r->count},
      .dstPtr = {.ptr = r->destination, .pitch = r->destination_pitch, .xsize = r->bytes, .ysize = r->count},
      .srcDevice = ends->from,
      .dstDevice = ends->to,
      .extent = {r->bytes, r->count, 1}};
  return at_cuda_check(stream->device, cudaMemcpy3DPeerAsync(&p, at_cuda_native(stream)), "cudaMemcpy3DPeerAsync");
}

/* Rows that are too far apart for the driver go one by one. */
static attune_status copy_all_rows(attune_stream *stream, const rows *r) {
  two_ends ends;
  attune_status status = ATTUNE_OK;
  if (r->destination_pitch <= INT_MAX && r->source_pitch <= INT_MAX) {
    if (of_two_devices(&ends, stream, r->destination, r->source)) return copy_peer_rows(stream, r, &ends);
    cudaError_t error = cudaMemcpy2DAsync(r->destination, r->destination_pitch, r->source, r->source_pitch, r->bytes,
                                          r->count, cudaMemcpyDefault, at_cuda_native(stream));
    return at_cuda_check(stream->device, error, "cudaMemcpy2DAsync");
  }
  for (size_t i = 0; i < r->count && status == ATTUNE_OK; i++)
    status = copy_bytes(stream, r->destination + i * r->destination_pitch, r->source + i * r->source_pitch, r->bytes);
  return status;
}

attune_status at_cuda_copy_rows(attune_stream *stream, void *destination, size_t destination_pitch, const void *source,
                                size_t source_pitch, size_t bytes, size_t count) {
  const rows r = {destination, source, destination_pitch, source_pitch, bytes, count};
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  if (at_sync_debug_on() && !at_cuda_stream_capturing(stream)) status = check_pageable(stream, destination, source);
  if (status == ATTUNE_OK) status = copy_all_rows(stream, &r);
  at_cuda_leave(&scope);
  return status;
}
