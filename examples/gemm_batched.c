/* SPDX-License-Identifier: Apache-2.0
 * gemm_batched.c: tiles of one large matrix updated at once, as in a blocked factorisation: each D -= A B, where arrays
 * of pointers name the tiles. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { TILE = 16, TILES = 8, SIZE = TILE * TILES, BATCH = (TILES - 1) * (TILES - 1) };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

static float *tile(float *matrix, int row, int column) {
  return matrix + row * TILE + column * TILE * SIZE;
}

int main(void) {
  static float values[SIZE * SIZE];
  attune_device *device = NULL;
  attune_tuner *tuner = NULL;
  attune_stream *stream = NULL;
  void *matrix = NULL;
  for (int i = 0; i < SIZE * SIZE; i++) values[i] = 0.5f;
  check(attune_device_get(&device, "best"));
  check(attune_tuner_create(&tuner, NULL));
  check(attune_stream_create(&stream, device));
  check(attune_alloc(&matrix, stream, sizeof values));
  check(attune_copy(stream, matrix, values, sizeof values));

  const void *a[BATCH], *b[BATCH];
  void *d[BATCH];
  for (int i = 0; i < BATCH; i++) {
    const int row = 1 + i % (TILES - 1), column = 1 + i / (TILES - 1);
    a[i] = tile(matrix, row, 0);
    b[i] = tile(matrix, 0, column);
    d[i] = tile(matrix, row, column);
  }

  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  problem.m = problem.n = problem.k = TILE;
  problem.lda = problem.ldb = problem.ldc = problem.ldd = SIZE;
  problem.batch = BATCH;
  problem.pointers = ATTUNE_POINTERS_HOST;
  const attune_gemm_batched_operands operands = {
      .alpha = -1.0, .beta = 1.0, .a = a, .b = b, .c = (const void *const *)d, .d = d};
  check(attune_gemm_batched(tuner, stream, &problem, &operands));

  check(attune_copy(stream, values, matrix, sizeof values));
  check(attune_stream_synchronize(stream));
  const float last = values[SIZE * SIZE - 1], expected = 0.5f - 0.25f * TILE;
  printf("%s: the last element is %g; should be %g\n", attune_device_name(device), (double)last, (double)expected);
  check(attune_free(matrix, stream));
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return last == expected ? 0 : 1;
}
