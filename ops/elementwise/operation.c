/* SPDX-License-Identifier: Apache-2.0
 * operation.c: elementwise as the tuner sees it: its implementations and the slots of at_op. */
#include <math.h>
#include <string.h>

#include "ops/elementwise/call/public_call.h"
#include "ops/elementwise/problem/workload_columns.h"
#include "ops/elementwise/reference/reference.h"

#define AT_IMPLEMENTATIONS "ops/elementwise/implementations.def"
#include "tuning/op/implementations.h"

/* One for each node that is computed, for operands are only read; a copy counts as one. */
static double flops(const void *problem) {
  const at_elementwise *p = at_elementwise_of(problem);
  const int computed = p->nodes - p->input_count - p->scalar_count;
  return (double)(computed > 0 ? computed : 1) * (double)at_elementwise_count(p);
}

/* Each element of each tensor once. */
static double bytes(const void *problem) {
  const at_elementwise *p = at_elementwise_of(problem);
  double sum = 0.0;
  for (int k = 0; k < at_elementwise_tensors(p); k++) {
    double elements = 1.0;
    for (int d = 0; d < p->dims; d++)
      if (at_elementwise_strides(p, k)[d] != 0) elements *= (double)p->numbers[d];
    sum += elements * (double)attune_dtype_size((attune_dtype)p->dtypes[k]);
  }
  return sum;
}

/* Each element is computed alone, in one order. */
static bool deterministic(const void *problem) {
  (void)problem;
  return false; /* nothing that needs to be asked for: every implementation is */
}

static bool draws(const void *problem) {
  return at_elementwise_draws(at_elementwise_of(problem)) > 0;
}

static double distance(const void *problem, const void *other) {
  const at_elementwise *p = at_elementwise_of(problem), *q = at_elementwise_of(other);
  double sum = 0.0;
  if (p->dims != q->dims) return (double)INFINITY;
  for (int d = 0; d < p->dims; d++) sum += fabs(log2((double)p->numbers[d] / (double)q->numbers[d]));
  return sum;
}

_Static_assert(sizeof(at_elementwise_operands) <= AT_OPERANDS_BYTES, "operands fit into an operand set");

static const at_problem_type problem_type = {
    .format = at_elementwise_format,
    .parse = at_elementwise_parse,
    .family = at_elementwise_family,
    .distance = distance,
    .columns = at_elementwise_columns,
    .from_fields = at_elementwise_from_fields,
    .flops = flops,
    .bytes = bytes,
    .fold = at_elementwise_fold,
    .deterministic = deterministic,
    .draws = draws,
};

static const at_operand_type operand_type = {
    .buffers = at_elementwise_buffers,
    .scalars = at_elementwise_scalars,
    .bind = at_elementwise_bind,
};

static const at_reference_type reference_type = {
    .create = at_elementwise_reference_create,
    .compare = at_elementwise_reference_compare,
    .destroy = at_elementwise_reference_destroy,
};

static const at_special_values special_values = {
    .count = at_elementwise_special_count,
    .contents = at_elementwise_special_contents,
    .plant = at_elementwise_special_plant,
    .scalars = at_elementwise_special_scalars,
    .compare = at_elementwise_special_compare,
    .name = at_elementwise_special_name,
};

const at_op at_elementwise_op = {
    .name = "elementwise",
    .id = AT_OP_ELEMENTWISE,
    .implementations = implementations,
    .implementation_count = AT_COUNT(implementations),
    .problem_bytes = AT_PROBLEM_BYTES,
    .problem_size = at_elementwise_size,
    .operands_bytes = sizeof(at_elementwise_operands),
    .plans_most = AT_ELEMENTWISE_PLANS,
    .problem = &problem_type,
    .operands = &operand_type,
    .reference = &reference_type,
    .specials = &special_values,
    .calls = &at_elementwise_prepared_calls,
};
