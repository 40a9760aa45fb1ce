/* SPDX-License-Identifier: Apache-2.0
 * fake_cublas.c: a cuBLAS (or with FAKE_LT its cuBLASLt) that computes nothing and counts its calls: a program loads
 * it, and attune must call this copy. FAKE_MAJOR is its version; FAKE_INCOMPLETE leaves out what cuBLASLt has. */
#define _GNU_SOURCE
#include <cublasLt.h>
#include <cublas_v2.h>

#include <stdint.h>
#include <string.h>

#include "tests/support/fakes/fake_end.h"

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define JOIN_OF(a, b) a##b
#define JOIN(a, b) JOIN_OF(a, b)

#ifdef FAKE_LT
#define CALLS fake_cublaslt_calls
#else
#define CALLS fake_cublas_calls
#endif
extern __attribute__((visibility("default"))) int CALLS;
int CALLS;

static size_t answer(const char *name, uintptr_t first, int *second) {
  CALLS++;
  if (strcmp(name, "cublasLtMatmulAlgoGetHeuristic") == 0) fake_work();
  if (strcmp(name, "cublasLtGetVersion") == 0) return FAKE_MAJOR * 10000 + 807;
  if (strcmp(name, "cublasGetProperty") == 0) *second = (int[]){FAKE_MAJOR, 8, 7}[first];
  return 0;
}

/* One form for all: the first two words are looked at where they are known, and a status fits into the result. */
#define FAKE(name)                                                                                                   \
  __attribute__((visibility("default"))) size_t JOIN(fake_, name)(uintptr_t first, int *second) __asm__(TEXT(name)); \
  size_t JOIN(fake_, name)(uintptr_t first, int *second) {                                                           \
    return answer(TEXT(name), first, second);                                                                        \
  }
#define NOTHING(name)
#ifdef FAKE_LT
#define AT_CUBLAS NOTHING
#define AT_CUBLASLT FAKE
#else
#define AT_CUBLAS FAKE
#define AT_CUBLASLT NOTHING
#endif
#include "src/cuda/library/cublas_functions.def"
