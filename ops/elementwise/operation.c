/* SPDX-License-Identifier: Apache-2.0
 * operation.c: elementwise as the tuner sees it: its implementations and the slots of at_op. */
#include <math.h>
#include <string.h>

#include "ops/elementwise/problem/test_cases.h"
#include "ops/elementwise/problem/workload_columns.h"
#include "ops/elementwise/reference/reference.h"
#include "tuning/op/registry.h"

#ifdef AT_WITH_CUDA
#define AT_CUDA_IMPLEMENTATION(name) extern const at_implementation name;
#else
#define AT_CUDA_IMPLEMENTATION(name)
#endif
#define AT_IMPLEMENTATION(name) extern const at_implementation name;
#include "ops/elementwise/implementations.def"
#undef AT_IMPLEMENTATION
#undef AT_CUDA_IMPLEMENTATION

static const at_implementation *const implementations[] = {
#ifdef AT_WITH_CUDA
#define AT_CUDA_IMPLEMENTATION(name) &name,
#else
#define AT_CUDA_IMPLEMENTATION(name)
#endif
#define AT_IMPLEMENTATION(name) &name,
#include "ops/elementwise/implementations.def"
};

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

const at_op at_elementwise_op = {
    .name = "elementwise",
    .id = AT_OP_ELEMENTWISE,
    .implementations = implementations,
    .implementation_count = AT_COUNT(implementations),
    .problem_bytes = AT_PROBLEM_BYTES,
    .problem_size = at_elementwise_size,
    .operands_bytes = sizeof(at_elementwise_operands),
    .plans_most = AT_ELEMENTWISE_PLANS,
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
    .buffers = at_elementwise_buffers,
    .scalars = at_elementwise_scalars,
    .bind = at_elementwise_bind,
    .call = at_elementwise_call,
    .plan_create = at_elementwise_call_plan_create,
    .plan_run = at_elementwise_call_plan_run,
    .draws = draws,
    .calls_create = at_elementwise_calls_create,
    .calls_run = at_elementwise_calls_run,
    .calls_destroy = at_elementwise_calls_destroy,
    .reference_create = at_elementwise_reference_create,
    .reference_compare = at_elementwise_reference_compare,
    .reference_destroy = at_elementwise_reference_destroy,
    .special_count = at_elementwise_special_count,
    .special_contents = at_elementwise_special_contents,
    .special_plant = at_elementwise_special_plant,
    .special_scalars = at_elementwise_special_scalars,
    .special_compare = at_elementwise_special_compare,
    .special_name = at_elementwise_special_name,
    .case_count = at_elementwise_case_count,
    .case_at = at_elementwise_case_at,
    .oracle = at_elementwise_oracle,
};
