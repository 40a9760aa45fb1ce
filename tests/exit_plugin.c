/* SPDX-License-Identifier: Apache-2.0
 * exit_plugin.c: a plug-in that attune is a part of. test_exit.c opens it, lets it start work and closes it. */
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
