/* SPDX-License-Identifier: Apache-2.0
 * evaluation.h: the state of a described call in addition to its words. */
#ifndef AT_ELEMENTWISE_EVALUATION_H
#define AT_ELEMENTWISE_EVALUATION_H

#include <attune/tools.h>

#include "ops/elementwise/call/call_binding.h"
#include "ops/elementwise/evaluate/element.h"
#include "ops/elementwise/problem/spec.h"

/* Buffers are those of at_elementwise_buffers: outputs, then inputs in the expression's order that are no output's
 * memory. */
struct attune_evaluation {
  char *expression;
  at_spec spec;
  at_call_binding *prepared; /* of the described layout */
  at_wide_value *plain;      /* values of the nodes of the text as it is written */
  char problem[ATTUNE_PROBLEM_CHARS];
  attune_stream *stream; /* NULL: no memory yet */
  attune_generator *generator;
  at_random *random;
  at_buffer buffers[AT_MAX_BUFFERS];
  int buffer_count;
  int buffer_of[AT_TENSORS]; /* of each tensor of the expression */
  char *memory[AT_MAX_BUFFERS];
  char *before[AT_MAX_BUFFERS], *after[AT_MAX_BUFFERS]; /* in host memory; those of a check, or `memory` itself */
  bool checked;
};

/* Random numbers into all inputs, and zeros' opposite into the other outputs; the generator at its start. */
attune_status at_evaluation_fill(attune_evaluation *evaluation);

/* The scalars in the expression's order. */
void at_evaluation_scalars(const attune_evaluation *evaluation, at_constant out[AT_EXPRESSION_SCALARS]);

#endif
