/* SPDX-License-Identifier: Apache-2.0
 * fill.c: fills with elements on CUDA: by the driver up to 4 bytes, by a kernel of attune's from 8 on. */
#include "src/cuda/memory/fill.h"

#include <cuda.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "src/cuda/context/state.h"
#include "src/cuda/jit/jit.h"
#include "src/cuda/memory/memory.h"

#include "fill_cu.h"

enum { THREADS = 256, BLOCKS_EACH = 8, ROWS_MOST = 65535, DEVICES = 65 };

/* ---- by the driver ---- */

static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static struct {
  CUresult (*one)(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t rows, CUstream stream);
  CUresult (*two)(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t rows, CUstream stream);
  CUresult (*four)(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t rows, CUstream stream);
  bool found;
} driver; /* constant after driver_once */

static void find_driver(void) {
  driver.found = at_cuda_driver_call(&driver.one, "cuMemsetD2D8Async") &&
                 at_cuda_driver_call(&driver.two, "cuMemsetD2D16Async") &&
                 at_cuda_driver_call(&driver.four, "cuMemsetD2D32Async");
}

static CUresult set_rows(const attune_box_fill *f, CUdeviceptr to, size_t pitch, size_t rows, CUstream stream) {
  unsigned short two = 0;
  unsigned four = 0;
  switch (f->element_bytes) {
  case 1: return driver.one(to, pitch, f->element[0], f->count, rows, stream);
  case 2: memcpy(&two, f->element, sizeof two); return driver.two(to, pitch, two, f->count, rows, stream);
  default: memcpy(&four, f->element, sizeof four); return driver.four(to, pitch, four, f->count, rows, stream);
  }
}

/* The driver's errors have the runtime's numbers. The device is current to the driver too after cudaSetDevice. */
static attune_status set_slices(attune_stream *stream, const attune_box_fill *f) {
  pthread_once(&driver_once, find_driver);
  if (!driver.found)
    return at_fail(ATTUNE_UNSUPPORTED, "the driver of %s has no function to fill memory", stream->device->name);
  attune_status status = at_cuda_check(stream->device, cudaSetDevice(stream->device->ordinal), "cudaSetDevice");
  /* Slices that follow each other at the pitch of rows are more rows. */
  const bool merged = f->slices == 1 || f->slice_pitch == f->rows * f->pitch;
  const size_t rows = merged ? f->rows * f->slices : f->rows, slices = merged ? 1 : f->slices;
  for (size_t i = 0; i < slices && status == ATTUNE_OK; i++) {
    const CUresult result = set_rows(f, (CUdeviceptr)(uintptr_t)f->destination + i * f->slice_pitch, f->pitch, rows,
                                     (CUstream)at_cuda_native(stream));
    status = at_cuda_check(stream->device, (cudaError_t)result, "cuMemsetD2DAsync");
  }
  return status;
}

/* ---- by the kernel ---- */

at_kernel_source at_fill_source(void) {
  static const char *const macros[] = {NULL};
  return (at_kernel_source){.file = "fill.cu", .text = at_fill_cu, .entry = "at_fill", .macros = macros};
}

/* Made at the first use on a device, kept for ever. The device is current, in the relaxed mode. */
static attune_status find(at_jit_kernel **out, attune_device *device) {
  static _Atomic(at_jit_kernel *) kernels[DEVICES];
  _Atomic(at_jit_kernel *) *place = &kernels[device->index % DEVICES];
  *out = atomic_load_explicit(place, memory_order_acquire);
  if (*out) return ATTUNE_OK;
  const at_kernel_source source = at_fill_source();
  AT_TRY(at_jit_get(out, device, &source));
  at_jit_keep(*out);
  atomic_store_explicit(place, *out, memory_order_release);
  return ATTUNE_OK;
}

static attune_status launch(attune_stream *stream, const attune_box_fill *f) {
  const size_t each = f->element_bytes / 8;
  at_fill_call call = {.to = f->destination,
                       .words = f->count * each,
                       .pitch = f->pitch / 8,
                       .slice_pitch = f->slice_pitch / 8,
                       .rows = f->rows,
                       .all_rows = f->rows * f->slices};
  memcpy(call.element, f->element, f->element_bytes);
  if (each == 1) call.element[1] = call.element[0];
  const unsigned long long most = (unsigned long long)stream->device->properties.processors * BLOCKS_EACH,
                           down = call.all_rows < ROWS_MOST ? call.all_rows : ROWS_MOST,
                           across = call.words / THREADS + 1, room = most / down + 1;
  const at_jit_config config = {.grid = {(unsigned)(across < room ? across : room), (unsigned)down},
                                .block = {THREADS}};
  at_jit_kernel *kernel = NULL;
  attune_status status = find(&kernel, stream->device);
  return status == ATTUNE_OK ? at_jit_launch(kernel, &config, &call, stream) : status;
}

attune_status at_cuda_fill_box(attune_stream *stream, const attune_box_fill *fill) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, stream->device));
  attune_status status = fill->element_bytes <= 4 ? set_slices(stream, fill) : launch(stream, fill);
  at_cuda_leave(&scope);
  return status;
}
