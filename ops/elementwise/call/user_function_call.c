/* SPDX-License-Identifier: Apache-2.0
 * user_function_call.c: the public calls for functions of the program's own. */
#include <attune/elementwise_cuda.h>

#include <string.h>

#include "ops/elementwise/call/dispatch.h"
#include "ops/elementwise/ir/canonical.h"
#include "ops/elementwise/ir/user_function.h"
#include "src/base/backend.h"
#include "src/base/struct_size.h"

static const char *const scalar_names[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
_Static_assert(AT_COUNT(scalar_names) == AT_EXPRESSION_SCALARS, "a name for each");

/* The operands under the names that they have in a canonical text: only their places identify them. */
typedef struct named {
  attune_elementwise_operands operands;
  attune_tensor inputs[AT_EXPRESSION_INPUTS];
  attune_scalar scalars[AT_EXPRESSION_SCALARS];
} named;

/* Wrong counts and pointers stay as they are, and are reported later. */
static attune_status name_operands(named *out, const attune_elementwise_operands *operands) {
  attune_elementwise_operands *o = &out->operands;
  AT_TRY(AT_TAKE(o, operands));
  out->operands.generator = NULL;
  if (o->inputs && o->input_count > 0 && o->input_count <= AT_EXPRESSION_INPUTS) {
    memcpy(out->inputs, o->inputs, (size_t)o->input_count * sizeof *o->inputs);
    for (int i = 0; i < o->input_count; i++) out->inputs[i].name = at_canonical_tensor(i);
    out->operands.inputs = out->inputs;
  }
  if (o->scalars && o->scalar_count > 0 && o->scalar_count <= AT_EXPRESSION_SCALARS) {
    memcpy(out->scalars, o->scalars, (size_t)o->scalar_count * sizeof *o->scalars);
    for (int i = 0; i < o->scalar_count; i++) out->scalars[i].name = scalar_names[i];
    out->operands.scalars = out->scalars;
  }
  return ATTUNE_OK;
}

static attune_status check(const attune_tuner *tuner, const attune_stream *stream,
                           const attune_elementwise_operands *operands) {
  AT_REQUIRE(tuner, stream, operands);
  if (stream->device->backend.kind == ATTUNE_DEVICE_CUDA) return ATTUNE_OK;
  return at_fail(
      ATTUNE_UNSUPPORTED,
      "a function in CUDA C needs a CUDA device, but the stream is of %s; use an expression (attune_elementwise) there",
      stream->device->name);
}

attune_status attune_elementwise_cuda(attune_tuner *tuner, attune_stream *stream, const char *source, const char *name,
                                      const attune_elementwise_operands *operands) {
  named n;
  at_user_function *raw = NULL;
  AT_TRY(check(tuner, stream, operands));
  AT_TRY(at_user_function_get(&raw, source, name));
  attune_status status = name_operands(&n, operands);
  const at_formula formula = {.text = raw->hash, .function = raw};
  if (status == ATTUNE_OK) status = at_run(tuner, stream, &formula, &n.operands);
  at_user_function_release(raw);
  return status;
}

attune_status attune_elementwise_cuda_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                                  const char *source, const char *name,
                                                  const attune_elementwise_operands *operands) {
  named n;
  at_user_function *raw = NULL;
  AT_REQUIRE_AS(out, "point to an attune_plan *");
  *out = NULL;
  AT_TRY(check(tuner, stream, operands));
  AT_TRY(at_user_function_get(&raw, source, name));
  attune_status status = name_operands(&n, operands);
  const at_formula formula = {.text = raw->hash, .function = raw};
  if (status == ATTUNE_OK) status = at_run_plan_create(out, tuner, stream, &formula, &n.operands);
  at_user_function_release(raw);
  return status;
}

attune_status attune_elementwise_cuda_problem_format(char *out, size_t size, const char *source, const char *name,
                                                     const attune_elementwise_operands *operands) {
  named n;
  at_user_function *raw = NULL;
  AT_REQUIRE(out, operands);
  if (size > 0) out[0] = '\0';
  AT_TRY(at_user_function_get(&raw, source, name));
  attune_status status = name_operands(&n, operands);
  const at_formula formula = {.text = raw->hash, .function = raw};
  if (status == ATTUNE_OK) status = at_run_format(out, size, &formula, &n.operands);
  at_user_function_release(raw);
  return status;
}
