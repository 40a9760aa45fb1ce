/* SPDX-License-Identifier: Apache-2.0
 * main.c: the smallest useful program of the installed library: one product and one expression on the host, checked. */
#include <attune/attune.h>

#include <stdio.h>

int main(void) {
  const float a[4] = {1, 2, 3, 4};
  const float b[4] = {5, 6, 7, 8};
  float d[4] = {0, 0, 0, 0};
  const float want[4] = {23, 34, 31, 46};
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  attune_gemm_operands operands = {.alpha = 1.0, .a = a, .b = b, .d = d};
  attune_device *host;
  attune_tuner *tuner;

  options.database = ":memory:";
  options.mode = ATTUNE_MODE_CACHED;
  problem.m = problem.n = problem.k = 2;
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK) {
    fprintf(stderr, "%s\n", attune_last_message());
    return 1;
  }
  if (attune_gemm(tuner, attune_stream_default(host), &problem, &operands) != ATTUNE_OK) {
    fprintf(stderr, "%s\n", attune_last_message());
    return 1;
  }
  {
    /* sum = relu(a - d) + d, which is the larger one */
    float sum[4] = {0, 0, 0, 0};
    attune_tensor inputs[2] = {{"a", NULL, ATTUNE_F32, 1, {4}, NULL}, {"d", NULL, ATTUNE_F32, 1, {4}, NULL}};
    attune_tensor output = {NULL, NULL, ATTUNE_F32, 1, {4}, NULL};
    attune_elementwise_operands e = {.outputs = &output, .output_count = 1, .inputs = inputs, .input_count = 2};
    inputs[0].data = (void *)a, inputs[1].data = d, output.data = sum;
    if (attune_elementwise(tuner, attune_stream_default(host), "relu(a - d) + d", &e) != ATTUNE_OK || sum[0] != d[0]) {
      fprintf(stderr, "sum[0] is %g; should be %g. %s\n", (double)sum[0], (double)d[0], attune_last_message());
      return 1;
    }
  }
  attune_tuner_destroy(tuner);
  for (int i = 0; i < 4; i++) {
    if (d[i] != want[i]) {
      fprintf(stderr, "d[%d] is %g; should be %g\n", i, (double)d[i], (double)want[i]);
      return 1;
    }
  }
  printf("attune %s, %d device(s)\n", attune_version(), attune_device_count());
  return 0;
}
