/* SPDX-License-Identifier: Apache-2.0
 * elementwise_texts.h: problems of kernels and their texts, for tests without a device. */
#ifndef AT_TESTS_ELEMENTWISE_TEXTS_H
#define AT_TESTS_ELEMENTWISE_TEXTS_H

#include "tests/ops/elementwise/elementwise_forms.h"

/* Packed memory of a shape, at an address that is aligned so. */
static inline at_view view_at(attune_dtype dtype, const at_shape *shape, uintptr_t address) {
  return at_view_packed((const void *)address, dtype, shape);
}

static inline void make_problem(at_cuda_problem *p, const graph *g, const at_shape *shape,
                                const attune_dtype *outputs) {
  at_view views[AT_CUDA_TENSORS];
  for (int k = 0; k < g->e.output_count; k++)
    views[k] = view_at(outputs ? outputs[k] : (attune_dtype)g->nodes[g->e.outputs[k]].dtype, shape, 4096);
  for (int k = 0; k < g->e.input_count; k++)
    views[g->e.output_count + k] = view_at((attune_dtype)g->e.inputs[k].dtype, shape, 4096);
  OK(graph_problem(p, g, shape, views));
}

/* Not inline: gcc 12 takes the text for the pointer that it came through. */
__attribute__((noinline, unused)) static char *generate(const at_cuda_problem *p, const at_cuda_choice *c) {
  char *text = NULL;
  OK(at_cuda_generate(&text, p, c));
  return text;
}

#endif
