/* SPDX-License-Identifier: Apache-2.0
 * elementwise_cuda.c: a function of one element in CUDA C as a kernel, for loops that no expression has: steps until a
 * point leaves the circle of radius 2 (the Mandelbrot set), over a broadcast row and column. Use it only with
 * sources that you trust. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 64, STEPS = 50 };

static const char source[] = "template <typename T> T steps(T re, T im, T most) {\n"
                             "  T x = 0, y = 0, n = 0;\n"
                             "  while (n < most && x * x + y * y <= 4) {\n"
                             "    const T next = x * x - y * y + re;\n"
                             "    y = 2 * x * y + im, x = next, n += 1;\n"
                             "  }\n"
                             "  return n;\n"
                             "}\n";

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

int main(void) {
  static float row[SIDE], column[SIDE];
  static int picture[SIDE][SIDE];
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_tuner *tuner = NULL;
  void *device_row = NULL, *device_column = NULL, *out = NULL;
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) {
    printf("skipped: %s\n", attune_last_message());
    return 77;
  }
  check(attune_stream_create(&stream, device));
  check(attune_tuner_create(&tuner, NULL));
  for (int i = 0; i < SIDE; i++) {
    row[i] = -2.0f + 3.0f * (float)i / SIDE;
    column[i] = -1.5f + 3.0f * (float)i / SIDE;
  }
  check(attune_alloc(&device_row, stream, sizeof row));
  check(attune_alloc(&device_column, stream, sizeof column));
  check(attune_alloc(&out, stream, sizeof picture));
  check(attune_copy(stream, device_row, row, sizeof row));
  check(attune_copy(stream, device_column, column, sizeof column));

  const attune_tensor inputs[] = {{.data = device_row, .dtype = ATTUNE_F32, .dims = 1, .sizes = {SIDE}},
                                  {.data = device_column, .dtype = ATTUNE_F32, .dims = 2, .sizes = {SIDE, 1}}};
  const attune_tensor output = {.data = out, .dtype = ATTUNE_I32, .dims = 2, .sizes = {SIDE, SIDE}};
  const attune_scalar most = {.value = STEPS};
  const attune_elementwise_operands operands = {
      .outputs = &output, .output_count = 1, .inputs = inputs, .input_count = 2, .scalars = &most, .scalar_count = 1};
  char text[ATTUNE_PROBLEM_CHARS];
  check(attune_elementwise_cuda_problem_format(text, sizeof text, source, "steps", &operands)); /* for attune_tune */
  printf("%s\n", text);
  check(attune_elementwise_cuda(tuner, stream, source, "steps", &operands));

  attune_plan *plan = NULL; /* for the same picture many times, without a look-up */
  check(attune_elementwise_cuda_plan_create(&plan, tuner, stream, source, "steps", &operands));
  check(attune_elementwise_plan_run(plan, stream, &operands));
  attune_plan_destroy(plan);
  check(attune_copy(stream, picture, out, sizeof picture));
  check(attune_stream_synchronize(stream));
  for (int y = 0; y < SIDE; y += 2) {
    for (int x = 0; x < SIDE; x++) putchar(" .:-=+*%#@"[picture[y][x] * 9 / STEPS]);
    putchar('\n');
  }
  const int inside = picture[SIDE / 2][SIDE / 2]; /* -0.5 + 0i never leaves */
  check(attune_free(device_row, stream));
  check(attune_free(device_column, stream));
  check(attune_free(out, stream));
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return inside == STEPS ? 0 : 1;
}
