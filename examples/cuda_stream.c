/* SPDX-License-Identifier: Apache-2.0
 * cuda_stream.c: attune in a program with its own CUDA streams and memory, which attune uses as they are. */
#include <attune/attune.h>

#include <cuda_runtime_api.h>
#include <stdio.h>

enum { SIZE = 512, BYTES = SIZE * SIZE * (int)sizeof(float) };

static int product(attune_device *device) {
  cudaStream_t mine = NULL;
  void *memory[3] = {NULL, NULL, NULL};
  attune_stream *stream = NULL;
  attune_tuner *tuner = NULL;
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  problem.m = problem.n = problem.k = SIZE;

  int ok = cudaStreamCreate(&mine) == cudaSuccess;
  for (int i = 0; i < 3; i++) ok = ok && cudaMalloc(&memory[i], BYTES) == cudaSuccess;
  for (int i = 0; i < 3; i++) ok = ok && cudaMemsetAsync(memory[i], 0, BYTES, mine) == cudaSuccess;
  if (ok) {
    attune_gemm_operands operands = {.alpha = 1.0, .a = memory[0], .b = memory[1], .d = memory[2]};
    ok = attune_tuner_create(&tuner, NULL) == ATTUNE_OK && attune_stream_wrap(&stream, device, mine) == ATTUNE_OK &&
         attune_gemm(tuner, stream, &problem, &operands) == ATTUNE_OK;
    if (!ok) fprintf(stderr, "%s\n", attune_last_message());
  }
  ok = ok && cudaStreamSynchronize(mine) == cudaSuccess;
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  for (int i = 0; i < 3; i++) cudaFree(memory[i]);
  if (mine) cudaStreamDestroy(mine);
  printf("a product on the program's own stream: %s\n", ok ? "done" : "failed");
  return ok ? 0 : 1;
}

int main(void) {
  attune_device *device = NULL;
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) {
    printf("skipped: %s\n", attune_last_message());
    return 77;
  }
  return product(device);
}
