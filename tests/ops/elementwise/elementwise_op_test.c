/* SPDX-License-Identifier: Apache-2.0
 * elementwise_op_test.c: elementwise as the conformance tests see it. Cases: rows of words, as a workload has them, of
 * every kind of expression, dtype and layout. Those that are aligned to less than 16 bytes have rows with gaps: what
 * lies in one piece is walked from its first aligned element on, where the operands allow it, and is then another
 * problem (call_bind.c). */
#include <stdlib.h>

#include <attune/elementwise_cuda.h>

#include "ops/elementwise/call/call_binding.h"
#include "ops/elementwise/call/public_call.h"
#include "ops/elementwise/evaluate/element.h"
#include "ops/elementwise/language/plain.h"
#include "ops/elementwise/problem/workload_columns.h"
#include "tests/ops/op_test.h"
#include "tuning/op/registry.h"

static const at_spec_words cases[] = {
    {"a + b", "1000", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"gelu(a + b) * b", "33x65", "bf16", "", "", "", 0, ATTUNE_STRICT},
    {"relu(a)", "17x241", "f16", "", "f16:256x1", "", 2, ATTUNE_STRICT},
    {"exp(a)", "64x63", "f64", "", "f64:65x1", "", 8, ATTUNE_STRICT},
    {"alpha * x * y + x", "2048", "f32", "", "@x", "alpha", 16, ATTUNE_STRICT},
    {"alpha * x + beta * y", "100x3", "f32", "x y:::4x1", "@y", "alpha beta", 4, ATTUNE_STRICT},
    {"x + bias", "48x96", "bf16", "x bias::96", "", "", 0, ATTUNE_STRICT},
    {"x + bias", "48x97", "f32", "x bias::48x1", "", "", 4, ATTUNE_STRICT},
    {"a + b", "64x96", "f32", "a b:::1x64", "", "", 0, ATTUNE_STRICT},
    {"a * b", "7x5x9", "f32", "a:::45x1x5 b::9:", "", "", 4, ATTUNE_STRICT},
    {"a - b", "30x20", "f32", "a:::64x1 b:::40x2", "f32:24x1", "", 4, ATTUNE_STRICT},
    {"a", "5x6x7", "i32", "", "i32:1x5x30", "", 0, ATTUNE_STRICT},
    {"a + 1", "40", "i64", "a:::-1", "", "", 0, ATTUNE_STRICT},
    {"a << 2 ^ b", "9x37", "u8", "", "u8:40x1", "", 1, ATTUNE_STRICT},
    {"a % b + a // 7", "100", "i16", "", "", "", 0, ATTUNE_STRICT},
    {"a % (b ^ b) + (a << ~(b - b)) + (a >> ~(b - b)) + a ** ~(b - b)", "99", "i16", "", "", "", 0, ATTUNE_STRICT},
    {"a < b ? a : b * 2", "77x3", "f16", "", "", "", 0, ATTUNE_STRICT},
    {"f16(a)", "500", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"f32(q) * s", "512", "f8e4m3", "", "bf16", "s", 0, ATTUNE_STRICT},
    {"f8e5m2(clamp(f32(a), -2, 2))", "10x13", "f16", "", ":14x1", "", 2, ATTUNE_STRICT},
    {"s = a + b; s, s * s, a > b", "257", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"min(a, b), max(a, b)", "16x16", "bf16", "a b::16", "@a", "", 0, ATTUNE_STRICT},
    {"rand() < p ? a / p : 0", "1025", "f32", "", "", "p", 0, ATTUNE_STRICT},
    {"a + 0.1 * randn()", "40x30", "f32", "", "f32:1x40", "", 0, ATTUNE_STRICT},
    {"f32(index())", "321", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"index(0) <= index(1) ? a : -inf", "20x30", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"index(0) + 100 * index(2)", "3x4x5", "f32", "", "i64:1x3x12", "", 0, ATTUNE_STRICT},
    {"a * b", "64", "c64", "", "", "", 0, ATTUNE_STRICT},
    {"abs(a) + real(b)", "65", "c128", "", "", "", 0, ATTUNE_STRICT},
    {"log(a) + sqrt(b)", "2000", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"tanh(a) + sigmoid(b)", "2000", "f32", "", "", "", 0, ATTUNE_REDUCED},
    {"!a || b", "90", "bool", "", "", "", 0, ATTUNE_STRICT},
    {"a + b * c - d / e", "12x13", "f32", "a b::13 c::12x1 d::1 e", "", "", 0, ATTUNE_STRICT},
    {"n * a + k", "50", "i32", "", "", "n:i64 k:bool", 0, ATTUNE_STRICT},
    {"2.5", "100x100", "f32", "", "f32:128x1", "", 0, ATTUNE_STRICT},
    {"a", "2x3x2x3x2x3x2x3", "f32", "a:::1x2x6x12x36x72x216x432", "", "", 0, ATTUNE_STRICT},
    {"softplus(a) - silu(b)", "9", "f64", "", "", "", 0, ATTUNE_STRICT},
};

static int case_count(void) {
  return (int)AT_COUNT(cases);
}

static bool case_at(int index, void *problem) {
  char text[AT_PROBLEM_CHARS];
  return at_elementwise_describe(&cases[index], text, sizeof text) == ATTUNE_OK &&
         at_elementwise_parse(text, problem) == ATTUNE_OK;
}

/* ---- the plainest way: of the text as it is written ---- */

static void oracle(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars) {
  const at_elementwise *p = at_elementwise_of(problem);
  at_elementwise_operands o;
  at_expression *e = NULL;
  at_layout layout;
  at_elementwise_bind(p, pointers, scalars, &o);
  at_elementwise_layout_of(&layout, p);
  if (at_elementwise_expression_checked(&e, p) != ATTUNE_OK) return;
  at_wide_value *values = at_plain_values(e->plain);
  const at_elements all = {.expression = e->plain,
                           .layout = &layout,
                           .number = p->number,
                           .tensors = o.tensors,
                           .scalars = o.scalars,
                           .draws = o.draws};
  if (values) at_elements_compute(&all, p->dtypes, values);
  free(values);
  at_expression_destroy(e);
}

/* ---- the public calls ---- */

static attune_status call(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands) {
  at_written_call w;
  attune_status status = at_write_call(&w, problem, operands);
  const at_user_function *f = w.function;
  if (status == ATTUNE_OK)
    status = f ? attune_elementwise_cuda(tuner, stream, f->own_text, f->own_name, &w.operands)
               : attune_elementwise(tuner, stream, w.expression, &w.operands);
  at_written_call_finish(&w);
  return status;
}

static attune_status plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const void *problem,
                                 const void *operands) {
  at_written_call w;
  attune_status status = at_write_call(&w, problem, operands);
  const at_user_function *f = w.function;
  if (status == ATTUNE_OK)
    status = f ? attune_elementwise_cuda_plan_create(out, tuner, stream, f->own_text, f->own_name, &w.operands)
               : attune_elementwise_plan_create(out, tuner, stream, w.expression, &w.operands);
  at_written_call_finish(&w);
  return status;
}

/* The plan's problem is not folded, and its inputs and scalars may have another order than the problem that the plan
 * was made from: those of the call are in the latter's. */
static attune_status plan_run(const attune_plan *plan, attune_stream *stream, const void *operands) {
  const at_call_binding *p = plan->own;
  const int outputs = p->expression->output_count, inputs = p->expression->input_count;
  at_elementwise_operands ordered = *(const at_elementwise_operands *)operands;
  const at_elementwise_operands given = ordered;
  attune_tensor tensors[AT_EXPRESSION_INPUTS];
  attune_scalar scalars[AT_EXPRESSION_SCALARS];
  at_written_call w;
  for (int i = 0; i < inputs; i++) ordered.tensors[outputs + i] = given.tensors[outputs + p->input_of[i]];
  for (int i = 0; i < p->expression->scalar_count; i++) ordered.scalars[i] = given.scalars[p->scalar_of[i]];
  attune_status status = at_write_call(&w, p->problem, &ordered);
  for (int i = 0; i < inputs; i++) tensors[p->input_of[i]] = w.tensors[outputs + i];
  for (int i = 0; i < p->expression->scalar_count; i++) scalars[p->scalar_of[i]] = w.scalars[i];
  w.operands.inputs = tensors;
  w.operands.scalars = scalars;
  if (status == ATTUNE_OK) status = attune_elementwise_plan_run(plan, stream, &w.operands);
  at_written_call_finish(&w);
  return status;
}

const at_op_test at_elementwise_op_test = {.op = &at_elementwise_op,
                                           .case_count = case_count,
                                           .case_at = case_at,
                                           .oracle = oracle,
                                           .call = call,
                                           .plan_create = plan_create,
                                           .plan_run = plan_run};
