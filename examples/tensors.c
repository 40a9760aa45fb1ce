/* SPDX-License-Identifier: Apache-2.0
 * tensors.c: the everyday calls on tensors: a transposed view, bias and activation, sums, dropout. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4, COLUMNS = 6, COUNT = ROWS * COLUMNS, BYTES = COUNT * (int)sizeof(float) };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

static attune_tensor matrix(attune_stream *stream, int64_t rows, int64_t columns) {
  attune_tensor out = {.dtype = ATTUNE_F32, .dims = 2, .sizes = {rows, columns}};
  check(attune_alloc(&out.data, stream, (size_t)(rows * columns) * sizeof(float)));
  return out;
}

int main(void) {
  static float numbers[COUNT], result[COUNT], kept[COUNT];
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_tuner *tuner = NULL;
  attune_generator *generator = NULL;
  int64_t strides[2];
  for (int i = 0; i < COUNT; i++) numbers[i] = (float)i;
  check(attune_device_get(&device, "best"));
  check(attune_stream_create(&stream, device));
  check(attune_tuner_create(&tuner, NULL));
  check(attune_generator_create(&generator, 3));

  attune_tensor x = matrix(stream, ROWS, COLUMNS), y = matrix(stream, COLUMNS, ROWS), bias = matrix(stream, 1, ROWS),
                turned = {0};
  check(attune_copy(stream, x.data, numbers, BYTES));
  check(attune_tensor_permute(&turned, strides, &x, (const int[]){1, 0})); /* a view: no data moves */
  check(attune_tensor_copy(tuner, stream, &y, &turned));                   /* y = x, transposed */
  check(attune_tensor_fill(tuner, stream, &bias, -10.0));
  check(attune_tensor_bias_activation(tuner, stream, &y, &y, &bias, ATTUNE_ACTIVATION_RELU));
  check(attune_tensor_add(tuner, stream, &x, &x, &x));               /* x = 2 x */
  check(attune_tensor_axpby(tuner, stream, -0.5, &turned, 1.0, &y)); /* y -= 0.5 x, that is the original x */
  check(attune_copy(stream, result, y.data, BYTES));
  check(attune_tensor_fill(tuner, stream, &y, 1.0));
  check(attune_tensor_dropout(tuner, stream, &y, &y, 0.5, generator)); /* half of them; the others count twice */
  check(attune_copy(stream, kept, y.data, BYTES));
  check(attune_stream_synchronize(stream));

  int wrong = 0, dropped = 0;
  for (int i = 0; i < COUNT; i++) {
    const float before = numbers[i % ROWS * COLUMNS + i / ROWS], active = before > 10.0f ? before - 10.0f : 0.0f;
    wrong += result[i] != active - before || (kept[i] != 0.0f && kept[i] != 2.0f);
    dropped += kept[i] == 0.0f;
  }
  printf("%s: %d of %d are wrong, %d were dropped\n", attune_device_name(device), wrong, COUNT, dropped);
  check(attune_free(x.data, stream));
  check(attune_free(y.data, stream));
  check(attune_free(bias.data, stream));
  attune_generator_destroy(generator);
  attune_tuner_destroy(tuner);
  attune_stream_destroy(stream);
  return wrong || dropped == 0 || dropped == COUNT ? 1 : 0;
}
