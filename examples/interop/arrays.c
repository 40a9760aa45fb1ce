/* SPDX-License-Identifier: Apache-2.0
 * arrays.c: pitched memory and arrays of three dimensions, of several levels and of two planes: filled from attune's
 * memory on attune's stream and read back into it; and what CUDA says of their memory. */
#include "examples/interop/interop.h"

#include <string.h>

enum { WIDTH = 64, HEIGHT = 16, DEPTH = 4, ROW = WIDTH * (int)sizeof(float), COUNT = WIDTH * HEIGHT * DEPTH };

static attune_stream *stream;
static float *source, *out;

static struct cudaChannelFormatDesc one_float(void) {
  return cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
}

static void check_format(cudaArray_const_t array, int bits) {
  struct cudaChannelFormatDesc found;
  CUDA(cudaGetChannelDesc(&found, array));
  MUST(found.x == bits && found.y == 0);
}

static struct cudaPitchedPtr dense(void *memory) {
  return (struct cudaPitchedPtr){.ptr = memory, .pitch = ROW, .xsize = WIDTH, .ysize = HEIGHT};
}

static void pitched_memory(void) {
  struct cudaPitchedPtr box;
  CUDA(cudaMalloc3D(&box, (struct cudaExtent){ROW, HEIGHT, DEPTH}));
  MUST(box.pitch >= ROW);
  OK(attune_fill(stream, out, 0, COUNT * sizeof(float)));
  for (int y = 0; y < HEIGHT * DEPTH; y++)
    OK(attune_copy(stream, (char *)box.ptr + (size_t)y * box.pitch, source + (size_t)y * WIDTH, ROW));
  OK(attune_copy_2d(stream, out, ROW, box.ptr, box.pitch, ROW, (size_t)HEIGHT * DEPTH));
  interop_check(stream, out, COUNT, 1.0f, 1.0f);
  CUDA(cudaFree(box.ptr));
}

static void three_dimensions(void) {
  const struct cudaChannelFormatDesc format = one_float();
  const struct cudaExtent extent = {WIDTH, HEIGHT, DEPTH};
  cudaArray_t array = NULL;
  CUDA(cudaMalloc3DArray(&array, &format, extent, cudaArrayDefault));
  check_format(array, 32);
  OK(attune_fill(stream, out, 0, COUNT * sizeof(float)));
  const struct cudaMemcpy3DParms in = {
      .srcPtr = dense(source), .dstArray = array, .extent = extent, .kind = cudaMemcpyDeviceToDevice};
  const struct cudaMemcpy3DParms back = {
      .srcArray = array, .dstPtr = dense(out), .extent = extent, .kind = cudaMemcpyDeviceToDevice};
  CUDA(cudaMemcpy3DAsync(&in, interop_native(stream)));
  CUDA(cudaMemcpy3DAsync(&back, interop_native(stream)));
  interop_check(stream, out, COUNT, 1.0f, 1.0f);
  CUDA(cudaFreeArray(array));
}

/* The second level is filled, copied into an array, and read back; these calls take no stream. */
static void levels(void) {
  const struct cudaChannelFormatDesc format = one_float();
  cudaMipmappedArray_t levels = NULL;
  cudaArray_t half = NULL, copy = NULL;
  CUDA(cudaMallocMipmappedArray(&levels, &format, (struct cudaExtent){2 * WIDTH, 2 * HEIGHT, 0}, 2, cudaArrayDefault));
  const cudaMipmappedArray_const_t seen = levels;
  CUDA(cudaGetMipmappedArrayLevel(&half, seen, 1));
  CUDA(cudaMallocArray(&copy, &format, WIDTH, HEIGHT, cudaArrayDefault));
  OK(attune_fill(stream, out, 0, COUNT * sizeof(float)));
  OK(attune_stream_synchronize(stream));
  CUDA(cudaMemcpy2DToArray(half, 0, 0, source, ROW, ROW, HEIGHT, cudaMemcpyDeviceToDevice));
  CUDA(cudaMemcpy2DArrayToArray(copy, 0, 0, half, 0, 0, ROW, HEIGHT, cudaMemcpyDeviceToDevice));
  CUDA(cudaMemcpy2DFromArray(out, ROW, copy, 0, 0, ROW, HEIGHT, cudaMemcpyDeviceToDevice));
  CUDA(cudaDeviceSynchronize());
  interop_check(stream, out, WIDTH * HEIGHT, 1.0f, 1.0f);
  CUDA(cudaFreeArray(copy));
  CUDA(cudaFreeMipmappedArray(levels));
}

static void planes(void) {
  const struct cudaChannelFormatDesc format = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindNV12);
  cudaArray_t array = NULL, plane = NULL;
  if (cudaMallocArray(&array, &format, WIDTH, HEIGHT, cudaArrayDefault) == cudaErrorInvalidValue) {
    (void)cudaGetLastError();
    puts("no arrays of planes on this device");
    return;
  }
  CUDA(cudaArrayGetPlane(&plane, array, 0));
  check_format(plane, 8);
  CUDA(cudaFreeArray(array));
}

/* Arrays whose memory comes later, and sparse ones. */
static void memory_of_arrays(void) {
  const struct cudaChannelFormatDesc format = one_float();
  const struct cudaExtent extent = {1024, 1024, 0};
  cudaArray_t array = NULL;
  cudaMipmappedArray_t levels = NULL;
  struct cudaArrayMemoryRequirements needs;
  struct cudaArraySparseProperties sparse;
  memset(&needs, 0, sizeof needs);
  memset(&sparse, 0, sizeof sparse);
  CUDA(cudaMallocArray(&array, &format, 1024, 1024, cudaArrayDeferredMapping));
  CUDA(cudaArrayGetMemoryRequirements(&needs, array, 0));
  MUST(needs.size >= 1024 * 1024 * sizeof(float) && needs.alignment > 0);
  CUDA(cudaFreeArray(array));
  CUDA(cudaMallocMipmappedArray(&levels, &format, extent, 2, cudaArrayDeferredMapping));
  CUDA(cudaMipmappedArrayGetMemoryRequirements(&needs, levels, 0));
  MUST(needs.size >= 1280 * 1024 * sizeof(float));
  CUDA(cudaFreeMipmappedArray(levels));
  CUDA(cudaMallocArray(&array, &format, 1024, 1024, cudaArraySparse));
  CUDA(cudaArrayGetSparseProperties(&sparse, array));
  MUST(sparse.tileExtent.width > 0 && sparse.tileExtent.height > 0);
  CUDA(cudaFreeArray(array));
  CUDA(cudaMallocMipmappedArray(&levels, &format, extent, 2, cudaArraySparse));
  CUDA(cudaMipmappedArrayGetSparseProperties(&sparse, levels));
  MUST(sparse.tileExtent.width > 0 && sparse.tileExtent.height > 0);
  CUDA(cudaFreeMipmappedArray(levels));
}

int main(void) {
  int deferred = 0, sparse = 0;
  stream = interop_begin();
  source = interop_numbers(stream, COUNT, 1.0f);
  out = interop_numbers(stream, COUNT, 0.0f);
  pitched_memory();
  three_dimensions();
  levels();
  planes();
  OK(attune_device_get_attribute(interop_device, cudaDevAttrDeferredMappingCudaArraySupported, &deferred));
  OK(attune_device_get_attribute(interop_device, cudaDevAttrSparseCudaArraySupported, &sparse));
  if (!deferred || !sparse) interop_skip("the device has no sparse arrays or none whose memory comes later");
  memory_of_arrays();
  OK(attune_free(source, stream));
  OK(attune_free(out, stream));
  return interop_end(stream, "arrays of more dimensions, levels and planes");
}
