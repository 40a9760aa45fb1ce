/* SPDX-License-Identifier: Apache-2.0
 * interop.h: what the programs of this folder share. Each proves that some functions of CUDA's runtime work with
 * attune's handles and memory as they are. It exits with 0 if they do, with 1 if not, with 77 if the machine cannot
 * show it. */
#ifndef INTEROP_H
#define INTEROP_H

#include <attune/attune.h>

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

/* A call of CUDA: its error becomes attune's status and message. */
#define CUDA(call)                                                                                        \
  do {                                                                                                    \
    if (attune_cuda_check(interop_device, (int)(call), #call) != ATTUNE_OK) interop_fail(__LINE__, NULL); \
  } while (0)
/* A call of attune. */
#define OK(call)                                            \
  do {                                                      \
    if ((call) != ATTUNE_OK) interop_fail(__LINE__, #call); \
  } while (0)
/* What has to be true. */
#define MUST(what)                                                     \
  do {                                                                 \
    if (!(what)) {                                                     \
      fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #what); \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

static attune_device *interop_device;

static inline void interop_fail(int line, const char *call) {
  fprintf(stderr, "line %d: %s%s%s\n", line, call ? call : "", call ? ": " : "", attune_last_message());
  exit(1);
}

static inline void interop_skip(const char *why) {
  printf("skipped: %s\n", why);
  exit(77);
}

/* The first GPU, and a stream of attune on it. */
static inline attune_stream *interop_begin(void) {
  attune_stream *stream = NULL;
  if (attune_device_get(&interop_device, "cuda:0") != ATTUNE_OK) interop_skip(attune_last_message());
  OK(attune_device_initialize(interop_device));
  CUDA(cudaSetDevice(0));
  OK(attune_stream_create(&stream, interop_device));
  return stream;
}

/* The same handle for CUDA. */
static inline cudaStream_t interop_native(attune_stream *stream) {
  return (cudaStream_t)attune_stream_native(stream);
}

/* Memory of attune with `count` numbers from `first` on, by a copy of attune. */
static inline float *interop_numbers(attune_stream *stream, int count, float first) {
  void *memory = NULL;
  float *numbers = malloc((size_t)count * sizeof *numbers);
  MUST(numbers);
  for (int i = 0; i < count; i++) numbers[i] = first + (float)i;
  OK(attune_alloc(&memory, stream, (size_t)count * sizeof *numbers));
  OK(attune_copy(stream, memory, numbers, (size_t)count * sizeof *numbers));
  OK(attune_stream_synchronize(stream));
  free(numbers);
  return memory;
}

/* Each of `count` numbers in memory of the device is factor * (first + its place). */
static inline void interop_check(attune_stream *stream, const float *memory, int count, float first, float factor) {
  float *numbers = malloc((size_t)count * sizeof *numbers);
  MUST(numbers);
  OK(attune_copy(stream, numbers, memory, (size_t)count * sizeof *numbers));
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < count; i++)
    if (numbers[i] != factor * (first + (float)i)) {
      fprintf(stderr, "number %d is %g; should be %g\n", i, (double)numbers[i], (double)(factor * (first + (float)i)));
      exit(1);
    }
  free(numbers);
}

static inline int interop_end(attune_stream *stream, const char *what) {
  OK(attune_stream_synchronize(stream));
  OK(attune_device_synchronize(interop_device));
  attune_stream_destroy(stream);
  MUST(cudaGetLastError() == cudaSuccess);
  printf("%s: attune's handles work with them\n", what);
  return 0;
}

#endif
