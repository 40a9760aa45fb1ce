/* SPDX-License-Identifier: Apache-2.0
 * exit_plugin.c: a plug-in that attune is a part of. test_exit.c opens it, lets it start work and closes it;
 * test_copies.c opens two of them. */
#include <attune/attune.h>

#include <stdlib.h>

__attribute__((visibility("default"))) int exit_plugin_start(int size, int products);

int exit_plugin_start(int size, int products) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  attune_device *host = NULL;
  attune_tuner *tuner = NULL;
  static attune_stream *stream; /* never destroyed: known to leak checkers */
  const size_t elements = (size_t)size * (size_t)size;
  float *memory = calloc(3 * elements, sizeof *memory);
  options.database = ":memory:";
  p.dtype = ATTUNE_F32;
  p.m = p.n = p.k = p.lda = p.ldb = p.ldc = p.ldd = size;
  if (!memory || attune_device_get(&host, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK ||
      attune_stream_create(&stream, host) != ATTUNE_OK)
    return 1;
  const attune_gemm_operands o = {.alpha = 1.0, .a = memory, .b = memory + elements, .d = memory + 2 * elements};
  for (int i = 0; i < products; i++)
    if (attune_gemm(tuner, stream, &p, &o) != ATTUNE_OK) return 2;
  return 0;
}

__attribute__((visibility("default"))) int exit_plugin_multiply(int size);

/* One product with a tuner of its own; 0 when it is right. */
int exit_plugin_multiply(int size) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  attune_device *host = NULL;
  attune_tuner *tuner = NULL;
  const size_t elements = (size_t)size * (size_t)size;
  float *memory = calloc(3 * elements, sizeof *memory);
  options.database = ":memory:";
  p.dtype = ATTUNE_F32;
  p.m = p.n = p.k = p.lda = p.ldb = p.ldc = p.ldd = size;
  if (!memory || attune_device_get(&host, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK)
    return 1;
  for (size_t i = 0; i < 2 * elements; i++) memory[i] = 1.0f;
  const attune_gemm_operands o = {.alpha = 1.0, .a = memory, .b = memory + elements, .d = memory + 2 * elements};
  const attune_status status = attune_gemm(tuner, attune_stream_default(host), &p, &o);
  const int right = status == ATTUNE_OK && memory[2 * elements] == (float)size;
  attune_tuner_destroy(tuner);
  free(memory);
  return right ? 0 : 2;
}
