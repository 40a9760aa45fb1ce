/* SPDX-License-Identifier: Apache-2.0
 * gpu.h: the GPU that a test runs on. ATTUNE_TEST_GPU=cuda:1 runs it on the second one while the first is the thread's
 * current device, as in a program that never calls cudaSetDevice. ATTUNE_TEST_PATIENCE=20 makes budgets and limits of
 * time 20 times as long, for runs under compute-sanitizer. */
#ifndef AT_TEST_GPU_H
#define AT_TEST_GPU_H

#include <stdlib.h>

static inline const char *test_gpu(void) {
  const char *name = getenv("ATTUNE_TEST_GPU");
  return name && *name ? name : "cuda:0";
}

static inline int test_patience(void) {
  const char *text = getenv("ATTUNE_TEST_PATIENCE");
  const int times = text ? atoi(text) : 1;
  return times > 0 ? times : 1;
}

#endif
