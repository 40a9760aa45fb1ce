/* SPDX-License-Identifier: Apache-2.0
 * textures.c: arrays, textures and surfaces on attune's stream: filled from attune's memory, read back into it. */
#include "examples/interop/kernels.h"

#include <string.h>

enum { WIDTH = 128, HEIGHT = 40, COUNT = WIDTH * HEIGHT, ROW = WIDTH * (int)sizeof(float) };

static void look(attune_stream *stream, cudaTextureObject_t texture, float *out) {
  const cudaKernel_t kernel = kernels_load(KERNELS_HEAD KERNEL_LOOK, "look");
  void *arguments[] = {&out, &texture};
  const dim3 grid = {HEIGHT, 1, 1}, block = {WIDTH, 1, 1};
  OK(attune_fill(stream, out, 0, COUNT * sizeof(float)));
  CUDA(cudaLaunchKernel((const void *)kernel, grid, block, arguments, 0, interop_native(stream)));
}

int main(void) {
  attune_stream *stream = interop_begin();
  cudaStream_t native = interop_native(stream);
  const struct cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  struct cudaChannelFormatDesc told;
  struct cudaExtent extent;
  cudaArray_t array = NULL;
  unsigned flags = 0;
  float *source = interop_numbers(stream, COUNT, 1.0f), *out = interop_numbers(stream, COUNT, 0.0f);

  /* An array: to it and back in stream order. */
  CUDA(cudaMallocArray(&array, &format, WIDTH, HEIGHT, cudaArraySurfaceLoadStore));
  CUDA(cudaArrayGetInfo(&told, &extent, &flags, array));
  MUST(extent.width == WIDTH && extent.height == HEIGHT && told.x == 32);
  CUDA(cudaMemcpy2DToArrayAsync(array, 0, 0, source, ROW, ROW, HEIGHT, cudaMemcpyDeviceToDevice, native));
  CUDA(cudaMemcpy2DFromArrayAsync(out, ROW, array, 0, 0, ROW, HEIGHT, cudaMemcpyDeviceToDevice, native));
  interop_check(stream, out, COUNT, 1.0f, 1.0f);

  /* A texture of the array, then one of attune's memory itself. */
  cudaTextureObject_t texture = 0;
  struct cudaResourceDesc of_array = {.resType = cudaResourceTypeArray, .res = {.array = {.array = array}}};
  struct cudaTextureDesc plain;
  memset(&plain, 0, sizeof plain);
  const struct cudaResourceViewDesc view = {.format = cudaResViewFormatFloat1, .width = WIDTH, .height = HEIGHT};
  struct cudaResourceViewDesc seen;
  struct cudaTextureDesc described;
  CUDA(cudaCreateTextureObject(&texture, &of_array, &plain, &view));
  CUDA(cudaGetTextureObjectResourceViewDesc(&seen, texture));
  MUST(seen.format == cudaResViewFormatFloat1 && seen.width == WIDTH);
  CUDA(cudaGetTextureObjectTextureDesc(&described, texture));
  MUST(described.readMode == cudaReadModeElementType && described.addressMode[0] == plain.addressMode[0]);
  look(stream, texture, out);
  interop_check(stream, out, COUNT, 1.0f, 1.0f);
  CUDA(cudaDestroyTextureObject(texture));
  struct cudaResourceDesc of_memory = {
      .resType = cudaResourceTypePitch2D,
      .res = {.pitch2D = {.devPtr = source, .desc = format, .width = WIDTH, .height = HEIGHT, .pitchInBytes = ROW}}};
  CUDA(cudaCreateTextureObject(&texture, &of_memory, &plain, NULL));
  look(stream, texture, out);
  interop_check(stream, out, COUNT, 1.0f, 1.0f);
  struct cudaResourceDesc found;
  CUDA(cudaGetTextureObjectResourceDesc(&found, texture));
  MUST(found.res.pitch2D.devPtr == source);
  CUDA(cudaDestroyTextureObject(texture));

  cudaSurfaceObject_t surface = 0;
  CUDA(cudaCreateSurfaceObject(&surface, &of_array));
  CUDA(cudaGetSurfaceObjectResourceDesc(&found, surface));
  MUST(found.res.array.array == array);
  CUDA(cudaDestroySurfaceObject(surface));

  /* Pitched memory of CUDA's, filled row by row by attune. */
  char *pitched = NULL;
  size_t pitch = 0, widest = 0;
  CUDA(cudaMallocPitch((void **)&pitched, &pitch, ROW, HEIGHT));
  for (int y = 0; y < HEIGHT; y++) OK(attune_copy(stream, pitched + (size_t)y * pitch, source + y * WIDTH, ROW));
  CUDA(cudaMemcpy2DAsync(out, ROW, pitched, pitch, ROW, HEIGHT, cudaMemcpyDeviceToDevice, native));
  interop_check(stream, out, COUNT, 1.0f, 1.0f);
  CUDA(cudaFree(pitched));
  CUDA(cudaDeviceGetTexture1DLinearMaxWidth(&widest, &format, 0));
  MUST(widest >= COUNT);

  CUDA(cudaFreeArray(array));
  OK(attune_free(source, stream));
  OK(attune_free(out, stream));
  return interop_end(stream, "arrays, textures and surfaces");
}
