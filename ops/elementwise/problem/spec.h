/* SPDX-License-Identifier: Apache-2.0
 * spec.h: a call described in words: what a row of a workload and the command line say.
 *
 * - shape: "64x1024", the outermost dimension first; "" is one element.
 * - inputs: "a b:bf16 c:f32:1024 d::1024x64:1x1024", blanks between: a name, its dtype, its shape, its strides in
 *   elements; what is left out or empty is `dtype`, the whole shape, packed. Names that are left out altogether are
 * those
 *   that the expression uses.
 * - outputs: "bf16 f32:1x64 @a": a dtype and strides, or an input whose memory it is. What is left out is the
 * expression's own
 *   dtype, packed.
 * - scalars: "alpha=0.5 n:i64=3 flag:bool=true z:c128=1-2j": a name, its kind and its value. What is left out is f64
 * and a
 *   number of attune's own. No problem depends on the values. */
#ifndef AT_ELEMENTWISE_SPEC_H
#define AT_ELEMENTWISE_SPEC_H

#include "ops/elementwise/problem/problem.h"

/* The words; NULL is as good as "". */
typedef struct at_spec_words {
  const char *expression, *shape, *dtype, *inputs, *outputs, *scalars;
  int alignment; /* of all data; 0: the best */
  attune_accuracy accuracy;
} at_spec_words;

/* A call as the public functions take it. Addresses are made up: aligned as asked, and equal where an output is an
 * input. It points into itself: it must not be copied. */
typedef struct at_spec {
  attune_elementwise_operands operands;
  attune_tensor outputs[AT_EXPRESSION_OUTPUTS], inputs[AT_EXPRESSION_INPUTS];
  attune_scalar scalars[AT_EXPRESSION_SCALARS];
  int64_t strides[AT_TENSORS][AT_DIMS];
  char names[AT_EXPRESSION_INPUTS + AT_EXPRESSION_SCALARS][AT_EXPRESSION_NAME];
  int in_place[AT_EXPRESSION_OUTPUTS]; /* the input whose memory it is; -1: none */
  int name_count;
} at_spec;

/* Errors: INVALID_ARGUMENT: what of which word is wrong, or of the expression. */
attune_status at_spec_read(at_spec *out, const at_spec_words *words);

#endif
