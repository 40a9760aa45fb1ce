/* SPDX-License-Identifier: Apache-2.0
 * copy.c: copies on CUDA. The driver sees by the addresses where they lead. Memory of two GPUs is copied as such:
 * mapped memory of a device that is no peer is not to be reached in any other way. */
#include "src/cuda/memory/memory.h"

#include <limits.h>

#include "src/cuda/context/state.h"
#include "src/stream/sync_debug.h"

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

/* Copies other memory than a device's like copy_bytes. */
attune_status at_cuda_copy_between(attune_stream *stream, void *destination, const attune_device *to,
                                   const void *source, const attune_device *from, size_t bytes) {
  two_ends ends = {to ? to->ordinal : -1, from ? from->ordinal : -1};
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  cudaStream_t native = at_cuda_native(stream);
  const bool known = (to || lie_on(&ends.to, destination)) && (from || lie_on(&ends.from, source));
  if (known && ends.to != ends.from)
    status = at_cuda_check(stream->device, cudaMemcpyPeerAsync(destination, ends.to, source, ends.from, bytes, native),
                           "cudaMemcpyPeerAsync");
  else
    status = at_cuda_check(stream->device, cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, native),
                           "cudaMemcpyAsync");
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

/* ---- boxes ---- */

static attune_status copy_slices(attune_stream *stream, const attune_box_copy *c) {
  attune_status status = ATTUNE_OK;
  for (size_t i = 0; i < c->slices && status == ATTUNE_OK; i++) {
    const rows r = {(char *)c->destination + i * c->destination_slice_pitch,
                    (const char *)c->source + i * c->source_slice_pitch,
                    c->destination_pitch,
                    c->source_pitch,
                    c->bytes,
                    c->rows};
    status = copy_all_rows(stream, &r);
  }
  return status;
}

/* CUDA takes a slice pitch as a number of rows. */
static attune_status copy_at_once(attune_stream *stream, const attune_box_copy *c) {
  two_ends ends;
  const struct cudaPitchedPtr from = {(void *)(uintptr_t)c->source, c->source_pitch, c->bytes,
                                      c->source_slice_pitch / c->source_pitch};
  const struct cudaPitchedPtr to = {c->destination, c->destination_pitch, c->bytes,
                                    c->destination_slice_pitch / c->destination_pitch};
  const struct cudaExtent all = {c->bytes, c->rows, c->slices};
  if (of_two_devices(&ends, stream, c->destination, c->source)) {
    const struct cudaMemcpy3DPeerParms p = {
        .srcPtr = from, .dstPtr = to, .srcDevice = ends.from, .dstDevice = ends.to, .extent = all};
    return at_cuda_check(stream->device, cudaMemcpy3DPeerAsync(&p, at_cuda_native(stream)), "cudaMemcpy3DPeerAsync");
  }
  const struct cudaMemcpy3DParms p = {.srcPtr = from, .dstPtr = to, .extent = all, .kind = cudaMemcpyDefault};
  return at_cuda_check(stream->device, cudaMemcpy3DAsync(&p, at_cuda_native(stream)), "cudaMemcpy3DAsync");
}

static bool fits_at_once(const attune_box_copy *c) {
  return c->slices > 1 && c->destination_pitch <= INT_MAX && c->source_pitch <= INT_MAX &&
         c->destination_slice_pitch % c->destination_pitch == 0 && c->source_slice_pitch % c->source_pitch == 0;
}

/* Rows without a gap are one, and so are slices: the driver is asked for as few dimensions as there are. */
static attune_box_copy fold(const attune_box_copy *copy) {
  attune_box_copy c = *copy;
  if (c.rows == 1) {
    c.rows = c.slices;
    c.slices = 1;
    c.destination_pitch = c.destination_slice_pitch;
    c.source_pitch = c.source_slice_pitch;
  }
  if (c.destination_slice_pitch == c.rows * c.destination_pitch && c.source_slice_pitch == c.rows * c.source_pitch) {
    c.rows *= c.slices;
    c.slices = 1;
  }
  if (c.slices == 1 && c.destination_pitch == c.bytes && c.source_pitch == c.bytes) {
    c.bytes *= c.rows;
    c.rows = 1;
  }
  return c;
}

attune_status at_cuda_copy_box(attune_stream *stream, const attune_box_copy *copy) {
  const attune_box_copy c = fold(copy);
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  if (at_sync_debug_on() && !at_cuda_stream_capturing(stream)) status = check_pageable(stream, c.destination, c.source);
  if (status == ATTUNE_OK && c.rows == 1 && c.slices == 1)
    status = copy_bytes(stream, c.destination, c.source, c.bytes);
  else if (status == ATTUNE_OK)
    status = fits_at_once(&c) ? copy_at_once(stream, &c) : copy_slices(stream, &c);
  at_cuda_leave(&scope);
  return status;
}
