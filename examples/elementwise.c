/* SPDX-License-Identifier: Apache-2.0
 * elementwise.c: relu(alpha * x + bias), any expression, as one kernel on the best device here; the bias is
 * broadcast. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 256, COUNT = ROWS * COLUMNS };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

/* Memory of the device with a copy of `count` numbers. */
static float *put(attune_stream *stream, const float *numbers, size_t count) {
  void *out = NULL;
  check(attune_alloc(&out, stream, count * sizeof *numbers));
  check(attune_copy(stream, out, numbers, count * sizeof *numbers));
  return out;
}

int main(void) {
  static float x[COUNT], bias[COLUMNS], y[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = (float)(i % 17) - 8.0f;
  for (int i = 0; i < COLUMNS; i++) bias[i] = 0.25f * (float)(i % 5);

  attune_device *device = NULL;
  attune_tuner *tuner = NULL;
  attune_stream *stream = NULL;
  check(attune_device_get(&device, "best"));
  check(attune_tuner_create(&tuner, NULL)); /* the database and the mode of the environment */
  check(attune_stream_create(&stream, device));

  float *device_x = put(stream, x, COUNT), *device_bias = put(stream, bias, COLUMNS), *device_y = put(stream, y, COUNT);
  const attune_tensor inputs[] = {
      {.name = "x", .data = device_x, .dtype = ATTUNE_F32, .dims = 2, .sizes = {ROWS, COLUMNS}},
      {.name = "bias", .data = device_bias, .dtype = ATTUNE_F32, .dims = 1, .sizes = {COLUMNS}}};
  const attune_tensor output = {.data = device_y, .dtype = ATTUNE_F32, .dims = 2, .sizes = {ROWS, COLUMNS}};
  const attune_scalar alpha = {.name = "alpha", .value = 0.5};
  const attune_elementwise_operands operands = {
      .outputs = &output, .output_count = 1, .inputs = inputs, .input_count = 2, .scalars = &alpha, .scalar_count = 1};
  check(attune_elementwise(tuner, stream, "relu(alpha * x + bias)", &operands));

  check(attune_copy(stream, y, device_y, sizeof y));
  check(attune_stream_synchronize(stream));
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) {
    const float sum = 0.5f * x[i] + bias[i % COLUMNS];
    wrong += y[i] != (sum > 0.0f ? sum : 0.0f);
  }
  printf("%s: y[8] = %g, %d of %d elements are wrong\n", attune_device_name(device), (double)y[8], wrong, (int)COUNT);

  check(attune_free(device_x, stream));
  check(attune_free(device_bias, stream));
  check(attune_free(device_y, stream));
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return wrong ? 1 : 0;
}
