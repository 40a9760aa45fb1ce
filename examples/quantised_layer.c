/* SPDX-License-Identifier: Apache-2.0
 * quantised_layer.c: two linear layers of f8e4m3, Y = X W1^T and Z = Y W2^T, with bf16 results. X and the weights have
 * a scale for each row. The first product also gives the largest |Y|, of which the scale of Y for the second one is
 * made: on the device, in stream order. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 32, IN = 256, HIDDEN = 128, OUT = 64, MOST_ROWS = 128, LARGEST = 448 /* of f8e4m3 */ };

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

static float size_of(float x) {
  return x < 0.0f ? -x : x;
}

static void *allocate(size_t bytes) {
  void *out = NULL;
  check(attune_alloc(&out, stream, bytes));
  return out;
}

static float *copy_of(const float *numbers, size_t count) {
  float *out = allocate(count * sizeof *numbers);
  check(attune_copy(stream, out, numbers, count * sizeof *numbers));
  return out;
}

/* f8 = x / scale; `scales` holds one for each row, or a single one. */
static void quantise(void *f8, void *x, attune_dtype dtype, float *scale, int rows, int columns, int scales) {
  const attune_tensor inputs[] = {
      {.name = "x", .data = x, .dtype = dtype, .dims = 2, .sizes = {rows, columns}},
      {.name = "scale", .data = scale, .dtype = ATTUNE_F32, .dims = 2, .sizes = {scales, 1}}};
  const attune_tensor output = {.data = f8, .dtype = ATTUNE_F8E4M3, .dims = 2, .sizes = {rows, columns}};
  const attune_elementwise_operands operands = {
      .outputs = &output, .output_count = 1, .inputs = inputs, .input_count = 2};
  check(attune_elementwise(tuner, stream, "f8e4m3(f32(x) / scale)", &operands));
}

/* A matrix of the host as f8 on the device, with a scale for each row, which makes its largest element 448. */
static void *quantised(const float *x, int rows, int columns, float **scales) {
  float each[MOST_ROWS] = {0.0f};
  for (int i = 0; i < rows * columns; i++)
    if (each[i / columns] < size_of(x[i]) / LARGEST) each[i / columns] = size_of(x[i]) / LARGEST;
  *scales = copy_of(each, (size_t)rows);
  float *wide = copy_of(x, (size_t)rows * (size_t)columns);
  void *f8 = allocate((size_t)rows * (size_t)columns);
  quantise(f8, wide, ATTUNE_F32, *scales, rows, columns, rows);
  check(attune_free(wide, stream));
  check(attune_stream_synchronize(stream)); /* `each` has been copied */
  return f8;
}

/* D = X W^T in bf16. Both matrices are contiguous along k, as the fast kernels of 8-bit elements want them. */
static attune_gemm_problem layer(int outputs, int inputs, attune_scale scale_x) {
  attune_gemm_problem problem = {.dtype = ATTUNE_F8E4M3, .dtype_out = ATTUNE_BF16, .layout = ATTUNE_ROW_MAJOR};
  problem.m = TOKENS, problem.n = outputs, problem.k = inputs;
  problem.trans_b = ATTUNE_T;
  problem.scaling.scale_a = (uint8_t)scale_x;
  problem.scaling.scale_b = ATTUNE_SCALE_VECTOR;
  return problem;
}

static void fill(float *out, int count, uint32_t seed) {
  for (int i = 0; i < count; i++) out[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1.0f;
}

/* out = x w^T in f32, to compare with. */
static void multiply(float *out, const float *x, const float *w, int outputs, int inputs) {
  for (int i = 0; i < TOKENS * outputs; i++) {
    out[i] = 0.0f;
    for (int p = 0; p < inputs; p++) out[i] += x[i / outputs * inputs + p] * w[i % outputs * inputs + p];
  }
}

int main(void) {
  static float x[TOKENS * IN], w1[HIDDEN * IN], w2[OUT * HIDDEN], y[TOKENS * HIDDEN], z[TOKENS * OUT],
      result[TOKENS * OUT];
  check(attune_device_get(&device, "best"));
  check(attune_stream_create(&stream, device));
  check(attune_tuner_create(&tuner, NULL));
  fill(x, TOKENS * IN, 1), fill(w1, HIDDEN * IN, 2), fill(w2, OUT * HIDDEN, 3);
  float *scale_x, *scale_w1, *scale_w2, *scale_y = allocate(sizeof *scale_y), *largest_y = allocate(sizeof *largest_y);
  void *x8 = quantised(x, TOKENS, IN, &scale_x), *w18 = quantised(w1, HIDDEN, IN, &scale_w1),
       *w28 = quantised(w2, OUT, HIDDEN, &scale_w2), *y16 = allocate(2 * TOKENS * HIDDEN),
       *y8 = allocate(TOKENS * HIDDEN), *z16 = allocate(2 * TOKENS * OUT);

  attune_gemm_problem first = layer(HIDDEN, IN, ATTUNE_SCALE_VECTOR);
  first.scaling.amax_d = 1;
  const attune_gemm_operands into_y = {
      .alpha = 1.0, .a = x8, .b = w18, .d = y16, .scale_a = scale_x, .scale_b = scale_w1, .amax_d = largest_y};
  check(attune_gemm(tuner, stream, &first, &into_y));

  const attune_tensor largest = {.name = "largest", .data = largest_y, .dtype = ATTUNE_F32};
  const attune_tensor scale = {.data = scale_y, .dtype = ATTUNE_F32};
  const attune_elementwise_operands next = {.outputs = &scale, .output_count = 1, .inputs = &largest, .input_count = 1};
  check(attune_elementwise(tuner, stream, "max(largest, 1e-12) / 448", &next));
  quantise(y8, y16, ATTUNE_BF16, scale_y, TOKENS, HIDDEN, 1);

  const attune_gemm_problem second = layer(OUT, HIDDEN, ATTUNE_SCALE_TENSOR);
  const attune_gemm_operands into_z = {
      .alpha = 1.0, .a = y8, .b = w28, .d = z16, .scale_a = scale_y, .scale_b = scale_w2};
  check(attune_gemm(tuner, stream, &second, &into_z));

  check(attune_copy_converted(tuner, stream, result, ATTUNE_F32, z16, ATTUNE_BF16, TOKENS * OUT));
  check(attune_stream_synchronize(stream));
  multiply(y, x, w1, HIDDEN, IN);
  multiply(z, y, w2, OUT, HIDDEN);
  float error = 0.0f, size = 0.0f;
  for (int i = 0; i < TOKENS * OUT; i++) {
    error += size_of(result[i] - z[i]);
    size += size_of(z[i]);
  }
  printf("%s: relative error %.3f; should be below 0.1\n", attune_device_name(device), (double)(error / size));
  void *const all[] = {scale_x, scale_w1, scale_w2, scale_y, largest_y, x8, w18, w28, y16, y8, z16};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(attune_free(all[i], stream));
  attune_tuner_destroy(tuner);
  attune_stream_destroy(stream);
  return error < 0.1f * size ? 0 : 1;
}
