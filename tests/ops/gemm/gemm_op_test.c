/* SPDX-License-Identifier: Apache-2.0
 * gemm_op_test.c: gemm as the conformance tests see it. */
#include "ops/gemm/host/host_reference.h"
#include "tests/ops/gemm/gemm_cases.h"
#include "tests/ops/op_test.h"

static bool case_at(int index, void *problem) {
  at_gemm_case c;
  bool swap = false;
  at_gemm_case_at(index, &c);
  const at_gemm_use use = {.c = c.c, .alignment = (uint8_t)c.alignment};
  at_gemm *g = problem;
  return at_gemm_normalise(&c.problem, use, g, &swap) == ATTUNE_OK && !at_gemm_empty(g) && g->k > 0;
}

static void oracle(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars) {
  const at_gemm *g = at_gemm_of(problem);
  at_gemm_operands o;
  at_gemm_op.operands->bind(problem, pointers, scalars, &o);
  for (int64_t b = 0; b < g->batch; b++) at_gemm_plain(g, &o, b, 0, g->m, 0, g->n);
}

/* The public problem: how C is used and the alignment are the operands'. */
static attune_status public_problem(attune_gemm_problem *out, const void *problem) {
  char text[AT_PROBLEM_CHARS];
  const attune_status status = at_gemm_format(problem, text, sizeof text);
  return status == ATTUNE_OK ? attune_gemm_problem_parse(out, text) : status;
}

static attune_status call(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands) {
  attune_gemm_problem p = {0};
  const attune_status status = public_problem(&p, problem);
  return status == ATTUNE_OK ? attune_gemm(tuner, stream, &p, operands) : status;
}

static attune_status plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const void *problem,
                                 const void *operands) {
  attune_gemm_problem p = {0};
  const attune_status status = public_problem(&p, problem);
  return status == ATTUNE_OK ? attune_gemm_plan_create(out, tuner, stream, &p, operands) : status;
}

static attune_status plan_run(const attune_plan *plan, attune_stream *stream, const void *operands) {
  return attune_gemm_plan_run(plan, stream, operands);
}

const at_op_test at_gemm_op_test = {.op = &at_gemm_op,
                                    .case_count = at_gemm_case_count,
                                    .case_at = case_at,
                                    .oracle = oracle,
                                    .call = call,
                                    .plan_create = plan_create,
                                    .plan_run = plan_run};
