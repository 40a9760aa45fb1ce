/* SPDX-License-Identifier: Apache-2.0
 * elementwise_call.h: operands of a call, put together one by one. */
#ifndef AT_TEST_ELEMENTWISE_CALL_H
#define AT_TEST_ELEMENTWISE_CALL_H

#include <attune/attune.h>

#include <stdlib.h>
#include <string.h>

#define CALL_SIZES(...) ((const int64_t[]){__VA_ARGS__})

/* Points into itself: it stays where it is. */
typedef struct call {
  attune_elementwise_operands operands;
  attune_tensor outputs[ATTUNE_ELEMENTWISE_OUTPUTS + 1], inputs[ATTUNE_ELEMENTWISE_INPUTS + 1];
  attune_scalar scalars[ATTUNE_ELEMENTWISE_SCALARS + 1];
} call;

static inline void call_begin(call *c) {
  memset(c, 0, sizeof *c);
  c->operands.outputs = c->outputs;
  c->operands.inputs = c->inputs;
  c->operands.scalars = c->scalars;
}

static inline attune_tensor tensor_of_shape(const char *name, void *data, attune_dtype dtype, int dims,
                                            const int64_t *sizes) {
  attune_tensor t = {.name = name, .data = data, .dtype = dtype, .dims = dims};
  for (int d = 0; d < dims; d++) t.sizes[d] = sizes[d];
  return t;
}

static inline attune_tensor *call_output(call *c, void *data, attune_dtype dtype, int dims, const int64_t *sizes) {
  attune_tensor *t = &c->outputs[c->operands.output_count++];
  *t = tensor_of_shape(NULL, data, dtype, dims, sizes);
  return t;
}

static inline attune_tensor *call_input(call *c, const char *name, void *data, attune_dtype dtype, int dims,
                                        const int64_t *sizes) {
  attune_tensor *t = &c->inputs[c->operands.input_count++];
  *t = tensor_of_shape(name, data, dtype, dims, sizes);
  return t;
}

static inline attune_scalar *call_scalar(call *c, const char *name, double value) {
  attune_scalar *s = &c->scalars[c->operands.scalar_count++];
  *s = (attune_scalar){.name = name, .value = value};
  return s;
}

/* A tuner without a database. */
static inline attune_tuner *call_tuner(attune_mode mode) {
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = ":memory:", .mode = mode}));
  return tuner;
}

#endif
