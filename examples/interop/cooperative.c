/* SPDX-License-Identifier: Apache-2.0
 * cooperative.c: a cooperative launch on attune's stream and memory: all blocks run at once and wait for each other. */
#include "examples/interop/kernels.h"

int main(void) {
  attune_stream *stream = interop_begin();
  attune_device_properties about = {0};
  attune_device_details details = {0};
  OK(attune_device_get_properties(interop_device, &about));
  OK(attune_device_get_details(interop_device, &details));
  if (details.cooperative_launch != 1) interop_skip("the device has no cooperative launch");
  const cudaKernel_t kernel = kernels_load(KERNELS_HEAD KERNEL_MEET, "meet");
  const int blocks = about.processors;
  void *memory = NULL, *counter = NULL;
  OK(attune_alloc(&memory, stream, 2 * (size_t)blocks * sizeof(float)));
  OK(attune_alloc(&counter, stream, sizeof(unsigned)));

  void *arguments[] = {&memory, &counter};
  const dim3 grid = {(unsigned)blocks, 1, 1}, block = {1, 1, 1};
  for (int way = 0; way < 2; way++) {
    OK(attune_fill(stream, memory, 0, 2 * (size_t)blocks * sizeof(float)));
    OK(attune_fill(stream, counter, 0, sizeof(unsigned)));
    if (way == 0) {
      CUDA(cudaLaunchCooperativeKernel((const void *)kernel, grid, block, arguments, 0, interop_native(stream)));
    } else {
      cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeCooperative, .val = {.cooperative = 1}};
      cudaLaunchConfig_t config = {
          .gridDim = grid, .blockDim = block, .stream = interop_native(stream), .attrs = &attribute, .numAttrs = 1};
      CUDA(cudaLaunchKernelExC(&config, (const void *)kernel, arguments));
    }
    interop_check(stream, memory, blocks, 1.0f, 1.0f);
    interop_check(stream, (float *)memory + blocks, blocks - 1, 2.0f, 1.0f);
  }
  OK(attune_free(counter, stream));
  OK(attune_free(memory, stream));
  return interop_end(stream, "cooperative launches");
}
