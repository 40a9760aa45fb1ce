/* SPDX-License-Identifier: Apache-2.0
 * tensor.c: everyday calls as expressions. */
#include <attune/elementwise.h>

#include <string.h>

#include "src/base/support.h"

enum { MOST_INPUTS = 2 };

/* One output, inputs named in their order by the letters of `names`, and scalars. */
static attune_status run(attune_tuner *tuner, attune_stream *stream, const char *expression, const attune_tensor *out,
                         const char *const *names, const attune_tensor *const *inputs, int input_count,
                         const attune_scalar *scalars, int scalar_count, attune_generator *generator) {
  attune_tensor named[MOST_INPUTS], output;
  AT_REQUIRE_AS(out, "be a tensor");
  output = *out;
  output.name = NULL;
  for (int i = 0; i < input_count; i++) {
    if (!inputs[i]) return AT_INVALID("%s is NULL; should be a tensor", names[i]);
    named[i] = *inputs[i];
    named[i].name = names[i];
  }
  const attune_elementwise_operands operands = {.outputs = &output,
                                                .output_count = 1,
                                                .inputs = named,
                                                .input_count = input_count,
                                                .scalars = scalars,
                                                .scalar_count = scalar_count,
                                                .generator = generator};
  return attune_elementwise(tuner, stream, expression, &operands);
}

attune_status attune_tensor_copy(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                 const attune_tensor *in) {
  return run(tuner, stream, "in", out, (const char *const[]){"in"}, &in, 1, NULL, 0, NULL);
}

/* A scalar alone is f32: these would lose digits, and bool tiny numbers. */
static bool wider_than_f32(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F64:
  case ATTUNE_C128:
  case ATTUNE_I32:
  case ATTUNE_U32:
  case ATTUNE_I64:
  case ATTUNE_U64:
  case ATTUNE_BOOL: return true;
  default: return false;
  }
}

attune_status attune_tensor_fill(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out, double value) {
  const attune_scalar scalar = {.name = "value", .value = value};
  return run(tuner, stream, out && wider_than_f32(out->dtype) ? "f64(value)" : "value", out, NULL, NULL, 0, &scalar, 1,
             NULL);
}

attune_status attune_tensor_add(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                const attune_tensor *a, const attune_tensor *b) {
  return run(tuner, stream, "a + b", out, (const char *const[]){"a", "b"}, (const attune_tensor *const[]){a, b}, 2,
             NULL, 0, NULL);
}

attune_status attune_tensor_axpby(attune_tuner *tuner, attune_stream *stream, double alpha, const attune_tensor *x,
                                  double beta, const attune_tensor *y) {
  const attune_scalar scalars[] = {{.name = "alpha", .value = alpha}, {.name = "beta", .value = beta}};
  return run(tuner, stream, "alpha * x + beta * y", y, (const char *const[]){"x", "y"},
             (const attune_tensor *const[]){x, y}, 2, scalars, 2, NULL);
}

attune_status attune_tensor_bias_activation(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                            const attune_tensor *x, const attune_tensor *bias,
                                            attune_activation activation) {
  static const char *const expressions[] = {
      [ATTUNE_ACTIVATION_NONE] = "x + bias",       [ATTUNE_ACTIVATION_RELU] = "relu(x + bias)",
      [ATTUNE_ACTIVATION_GELU] = "gelu(x + bias)", [ATTUNE_ACTIVATION_GELU_TANH] = "gelu_tanh(x + bias)",
      [ATTUNE_ACTIVATION_SILU] = "silu(x + bias)", [ATTUNE_ACTIVATION_SIGMOID] = "sigmoid(x + bias)",
      [ATTUNE_ACTIVATION_TANH] = "tanh(x + bias)"};
  if ((unsigned)activation >= AT_COUNT(expressions))
    return AT_INVALID("activation is %d; should be an attune_activation", (int)activation);
  return run(tuner, stream, expressions[activation], out, (const char *const[]){"x", "bias"},
             (const attune_tensor *const[]){x, bias}, 2, NULL, 0, NULL);
}

attune_status attune_tensor_dropout(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                    const attune_tensor *in, double p, attune_generator *generator) {
  if (!(p >= 0.0 && p < 1.0)) return AT_INVALID("p is %g; should be 0 or more and less than 1", p);
  const attune_scalar scalars[] = {{.name = "keep", .value = 1.0 - p}, {.name = "scale", .value = 1.0 / (1.0 - p)}};
  return run(tuner, stream, "rand() < keep ? in * scale : 0", out, (const char *const[]){"in"}, &in, 1, scalars, 2,
             generator);
}

attune_status attune_tensor_permute(attune_tensor *out, int64_t *strides, const attune_tensor *in, const int *order) {
  int64_t own[ATTUNE_DIMS], stride = 1;
  bool seen[ATTUNE_DIMS] = {false};
  AT_REQUIRE(out, strides, in, order);
  if (in->dims < 0 || in->dims > ATTUNE_DIMS) return AT_INVALID("in has %d dimensions; should be 0 to 8", in->dims);
  for (int d = 0; d < in->dims; d++) {
    if (order[d] < 0 || order[d] >= in->dims || seen[order[d]])
      return AT_INVALID("order[%d] is %d; should be each of 0 to %d once", d, order[d], in->dims - 1);
    seen[order[d]] = true;
  }
  for (int d = in->dims - 1; d >= 0; d--) {
    if (in->sizes[d] < 0)
      return AT_INVALID("in has size %lld in dimension %d; should be 0 or more", (long long)in->sizes[d], d);
    own[d] = in->strides ? in->strides[d] : stride;
    if (!in->strides && !at_mul_i64(&stride, stride, in->sizes[d])) return AT_INVALID("in has more than 2^63 elements");
  }
  attune_tensor view = *in;
  for (int d = 0; d < in->dims; d++) {
    view.sizes[d] = in->sizes[order[d]];
    strides[d] = own[order[d]];
  }
  view.strides = strides;
  *out = view;
  return ATTUNE_OK;
}
