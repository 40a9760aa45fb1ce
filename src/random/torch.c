/* SPDX-License-Identifier: Apache-2.0
 * torch.c: the split of a call in launches and offsets that PyTorch makes. */
#include "src/random/torch.h"

#include <attune/device.h>

#include <limits.h>

#define H200_PROCESSORS 132
#define H200_THREADS 2048

int at_torch_unroll(const at_random_call *call) {
  if (call->distribution == AT_INTEGERS)
    return call->range - 1u >= AT_TORCH_WIDE_RANGE - 1u ? 2 : 4; /* range 0 is 2^64 */
  return call->dtype == AT_F64 ? 2 : 4;
}

/* Multiprocessors and their threads of the GPU to draw as. */
static void find_grid(const attune_device *device, const at_generator_view *view, int *processors, int *threads) {
  attune_device *gpu = NULL;
  *processors = view->processors;
  *threads = view->threads;
  if (*processors) return;
  *processors = H200_PROCESSORS;
  *threads = H200_THREADS;
  if (device->backend.kind == ATTUNE_DEVICE_HOST) {
    if (attune_device_at(&gpu, 0) != ATTUNE_OK || gpu->backend.kind == ATTUNE_DEVICE_HOST) return;
    device = gpu;
  }
  *processors = device->properties.processors;
  if (device->backend.runtime) *threads = device->backend.runtime->threads_per_processor(device);
}

/* One launch over `count` elements from `out`. */
static attune_status launch(attune_generator *generator, attune_stream *stream, const at_random_call *whole,
                            uint64_t most_threads, void *out, uint64_t count, bool draw) {
  at_random_call call = *whole;
  const uint64_t unroll = (uint64_t)at_torch_unroll(&call), blocks = (count + AT_TORCH_BLOCK - 1) / AT_TORCH_BLOCK;
  call.out = out;
  call.count = count;
  call.threads = blocks * AT_TORCH_BLOCK < most_threads ? blocks * AT_TORCH_BLOCK : most_threads;
  attune_status status = at_generator_take(generator, stream, 4 * ((count - 1) / (call.threads * unroll) + 1), &call);
  return status == ATTUNE_OK && draw ? stream->device->backend.random->run(stream, &call) : status;
}

static bool fits_in_32_bits(const at_random_call *call, uint64_t count) {
  return count <= INT32_MAX && (count - 1) * attune_dtype_size((attune_dtype)call->dtype) + 1 <= INT32_MAX;
}

/* Torch's kernels index in 32 bits: it halves what is larger until it fits. */
static attune_status launch_pieces(attune_generator *generator, attune_stream *stream, const at_random_call *whole,
                                   uint64_t most_threads, char *out, uint64_t count) {
  if (fits_in_32_bits(whole, count)) return launch(generator, stream, whole, most_threads, out, count, true);
  const uint64_t half = count / 2;
  AT_TRY(launch_pieces(generator, stream, whole, most_threads, out, half));
  out += half * attune_dtype_size((attune_dtype)whole->dtype);
  return launch_pieces(generator, stream, whole, most_threads, out, count - half);
}

attune_status at_torch_run(attune_generator *generator, attune_stream *stream, const at_generator_view *view,
                           at_random_call *call) {
  int processors, threads;
  find_grid(stream->device, view, &processors, &threads);
  const uint64_t most_threads = (uint64_t)processors * (uint64_t)(threads / (int)AT_TORCH_BLOCK) * AT_TORCH_BLOCK;
  attune_status status = ATTUNE_OK; /* torch takes the offsets of the whole before it looks at the size */
  if (!fits_in_32_bits(call, call->count))
    status = launch(generator, stream, call, most_threads, call->out, call->count, false);
  return status == ATTUNE_OK ? launch_pieces(generator, stream, call, most_threads, call->out, call->count) : status;
}
