/* SPDX-License-Identifier: Apache-2.0
 * elementwise.c: the public calls for expressions, and the runs of plans. */
#include <attune/elementwise.h>

#include <string.h>

#include "ops/elementwise/call/dispatch.h"
#include "ops/elementwise/call/small_fast_path.h"
#include "src/base/struct_size.h"
#include "src/trace/instrument.h"
#include "tuning/dispatch/plan_handle.h"

static __attribute__((noinline)) attune_status run_other_size(attune_tuner *tuner, attune_stream *stream,
                                                              const char *expression,
                                                              const attune_elementwise_operands *operands) {
  attune_elementwise_operands full;
  AT_TRY(AT_TAKE(&full, operands));
  return attune_elementwise(tuner, stream, expression, &full);
}

attune_status attune_elementwise(attune_tuner *tuner, attune_stream *stream, const char *expression,
                                 const attune_elementwise_operands *operands) {
  AT_REQUIRE(tuner, stream, expression, operands);
  if (AT_UNLIKELY(!AT_IS_OWN_SIZE(operands))) return run_other_size(tuner, stream, expression, operands);
  const at_formula formula = {.text = expression};
  return at_run(tuner, stream, &formula, operands);
}

attune_status attune_elementwise_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                             const char *expression, const attune_elementwise_operands *operands) {
  AT_REQUIRE_AS(out, "point to an attune_plan *");
  *out = NULL;
  AT_REQUIRE(tuner, stream, expression, operands);
  attune_elementwise_operands full;
  AT_TRY(AT_TAKE(&full, operands));
  const at_formula formula = {.text = expression};
  return at_run_plan_create(out, tuner, stream, &formula, &full);
}

attune_status attune_elementwise_problem_format(char *out, size_t size, const char *expression,
                                                const attune_elementwise_operands *operands) {
  AT_REQUIRE(out, expression, operands);
  if (size > 0) out[0] = '\0';
  attune_elementwise_operands full;
  if (AT_TAKE(&full, operands) != ATTUNE_OK) return ATTUNE_INVALID_ARGUMENT;
  const at_formula formula = {.text = expression};
  return at_run_format(out, size, &formula, &full);
}

/* ---- runs of plans ---- */

static attune_status check_run(const attune_plan *plan, const at_call_binding *prepared,
                               const attune_elementwise_operands *operands) {
  if (!at_call_binding_is_like(prepared, operands)) return at_call_binding_fail_unlike(prepared, operands);
  attune_status status = at_call_binding_check_scalars(prepared, operands);
  if (status != ATTUNE_OK) return status;
  if (!at_call_binding_apart(prepared, operands)) {
    status = at_call_binding_check(prepared, operands);
    if (status != ATTUNE_OK) return status;
    if (at_call_binding_elsewhere(prepared, operands))
      return AT_INVALID("an output shares the memory of an input, but did not when the plan was created; create one "
                        "with these operands");
  }
  const int least = at_alignment_least(plan->device, prepared->problem->alignment);
  if (!at_call_binding_aligned(prepared, operands, least))
    return at_call_binding_fail_aligned(prepared, operands, least);
  return at_call_binding_check_generator(prepared->expression, operands->generator);
}

static __attribute__((noinline)) attune_status run_usually(const attune_plan *plan, attune_stream *stream,
                                                           const attune_elementwise_operands *operands) {
  at_call_binding *prepared = plan->own;
  at_small_call small;
  if (AT_LIKELY(!at_instrumented()) && at_small_bind(prepared, stream, operands, &small)) {
    at_plan_handle_count(plan, stream);
    at_small_run(prepared, &small);
    return ATTUNE_OK;
  }
  const attune_status status = check_run(plan, prepared, operands);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  at_plan_handle_count(plan, stream);
  if (AT_UNLIKELY(at_instrumented())) return at_elementwise_run_watched(plan->origin, prepared, operands, stream);
  return at_run_launch(plan->origin, prepared, operands, stream);
}

static __attribute__((noinline)) attune_status run_plan_other_size(const attune_plan *plan, attune_stream *stream,
                                                                   const attune_elementwise_operands *operands) {
  attune_elementwise_operands full;
  const attune_status status = AT_TAKE(&full, operands);
  return status == ATTUNE_OK ? attune_elementwise_plan_run(plan, stream, &full) : status;
}

attune_status attune_elementwise_plan_run(const attune_plan *plan, attune_stream *stream,
                                          const attune_elementwise_operands *operands) {
  if (AT_UNLIKELY(!at_plan_handle_fits(plan, &at_elementwise_op, stream, operands)))
    return at_plan_handle_fail(plan, &at_elementwise_op, stream, operands);
  if (AT_UNLIKELY(!AT_IS_OWN_SIZE(operands))) return run_plan_other_size(plan, stream, operands);
  if (AT_UNLIKELY(!at_call_binding_accuracy_is_one(operands))) return at_call_binding_accuracy_fail(operands);
  at_small_quick_call quick;
  if (AT_UNLIKELY(at_instrumented()) || AT_UNLIKELY(!at_small_quick(plan->own, stream, operands, &quick)) ||
      AT_UNLIKELY(!at_plan_handle_count_at_once(plan, stream)))
    return run_usually(plan, stream, operands);
  at_small_quick_run(plan->own, &quick);
  return ATTUNE_OK;
}
