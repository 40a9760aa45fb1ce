/* SPDX-License-Identifier: Apache-2.0
 * linear_layer.c: a linear layer with bias and relu, forward and back, in one product each: Y = relu(X W + bias) keeps
 * the bits of what was positive, and the gradient of the layer before it is (dY2 W2^T) where those bits are set. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 32, IN = 64, OUT = 48, NEXT = 16 };

static attune_device *device;
static attune_stream *stream;

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

/* `count` numbers of the device, all `value`. */
static float *filled(int count, float value) {
  void *out = NULL;
  check(attune_alloc(&out, stream, (size_t)count * sizeof(float)));
  check(attune_fill_elements(stream, out, &value, sizeof value, (size_t)count));
  return out;
}

int main(void) {
  attune_tuner *tuner = NULL;
  check(attune_device_get(&device, "best"));
  check(attune_stream_create(&stream, device));
  check(attune_tuner_create(&tuner, NULL));
  float *x = filled(TOKENS * IN, 0.5f), *w = filled(IN * OUT, 0.25f), *bias = filled(OUT, -7.0f),
        *y = filled(TOKENS * OUT, 0.0f), *dy = filled(TOKENS * NEXT, 1.0f), *w2 = filled(OUT * NEXT, 2.0f),
        *dx = filled(TOKENS * OUT, 0.0f), *dbias = filled(OUT, 0.0f);
  void *positive = NULL;
  check(attune_alloc(&positive, stream, 128 / 8 * TOKENS)); /* rows of 128 bits */

  attune_gemm_problem forward = {.dtype = ATTUNE_F32, .layout = ATTUNE_ROW_MAJOR, .m = TOKENS, .n = OUT, .k = IN};
  forward.epilogue.bias = ATTUNE_BIAS_N;
  forward.epilogue.activation = ATTUNE_ACTIVATION_RELU;
  forward.epilogue.aux = ATTUNE_AUX_RELU_MASK;
  const attune_gemm_operands first = {.alpha = 1.0, .a = x, .b = w, .d = y, .bias = bias, .aux = positive};
  check(attune_gemm(tuner, stream, &forward, &first));

  attune_gemm_problem back = {.dtype = ATTUNE_F32, .layout = ATTUNE_ROW_MAJOR, .m = TOKENS, .n = OUT, .k = NEXT};
  back.trans_b = ATTUNE_T;
  back.epilogue.activation = ATTUNE_ACTIVATION_RELU;
  back.epilogue.gradient = 1;
  back.epilogue.aux = ATTUNE_AUX_RELU_MASK;
  back.epilogue.bias_gradient = ATTUNE_BIAS_GRADIENT_N;
  const attune_gemm_operands second = {
      .alpha = 1.0, .a = dy, .b = w2, .d = dx, .aux = positive, .bias_gradient = dbias};
  check(attune_gemm(tuner, stream, &back, &second));

  float results[3];
  check(attune_copy(stream, &results[0], y, sizeof(float)));
  check(attune_copy(stream, &results[1], dx, sizeof(float)));
  check(attune_copy(stream, &results[2], dbias, sizeof(float)));
  check(attune_stream_synchronize(stream));
  printf("y %g, its gradient %g, the bias's %g\n", (double)results[0], (double)results[1], (double)results[2]);
  if (results[0] != 1.0f || results[1] != 32.0f || results[2] != 32.0f * TOKENS) return 1;
  void *const all[] = {x, w, bias, y, dy, w2, dx, dbias, positive};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(attune_free(all[i], stream));
  attune_tuner_destroy(tuner);
  attune_stream_destroy(stream);
  return 0;
}
