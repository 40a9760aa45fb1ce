/* SPDX-License-Identifier: Apache-2.0
 * gemm.c: one matrix product on the best device here, from the program's own memory to its result. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 256, BYTES = SIZE * SIZE * (int)sizeof(float) };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

int main(void) {
  static float a[SIZE * SIZE], b[SIZE * SIZE], d[SIZE * SIZE];
  for (int i = 0; i < SIZE * SIZE; i++) a[i] = 0.5f, b[i] = 0.25f;

  attune_device *device = NULL;
  attune_tuner *tuner = NULL;
  attune_stream *stream = NULL;
  check(attune_device_get(&device, "best"));
  check(attune_tuner_create(&tuner, NULL)); /* the database and the mode of the environment */
  check(attune_stream_create(&stream, device));

  void *device_a = NULL, *device_b = NULL, *device_d = NULL;
  check(attune_alloc(&device_a, stream, BYTES));
  check(attune_alloc(&device_b, stream, BYTES));
  check(attune_alloc(&device_d, stream, BYTES));
  check(attune_copy(stream, device_a, a, BYTES));
  check(attune_copy(stream, device_b, b, BYTES));

  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT; /* f32, column-major, not transposed */
  problem.m = problem.n = problem.k = SIZE;
  attune_gemm_operands operands = {.alpha = 1.0, .a = device_a, .b = device_b, .d = device_d};
  check(attune_gemm(tuner, stream, &problem, &operands));

  check(attune_copy(stream, d, device_d, BYTES));
  check(attune_stream_synchronize(stream));
  printf("%s: d[0] = %g, d[last] = %g; both should be %g\n", attune_device_name(device), (double)d[0],
         (double)d[SIZE * SIZE - 1], 0.5 * 0.25 * SIZE);

  check(attune_free(device_a, stream));
  check(attune_free(device_b, stream));
  check(attune_free(device_d, stream));
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return d[0] == 0.125f * SIZE && d[SIZE * SIZE - 1] == 0.125f * SIZE ? 0 : 1;
}
