/* SPDX-License-Identifier: Apache-2.0
 * batched.c: see batched.h. */
#include "ops/gemm/batched/batched.h"

#include "ops/gemm/watch.h"
#include "src/base/struct_size.h"
#include "src/trace/instrument.h"

attune_status attune_gemm_batched(attune_tuner *tuner, attune_stream *stream, const attune_gemm_problem *problem,
                                  const attune_gemm_batched_operands *operands) {
  AT_REQUIRE(tuner, stream, problem, operands);
  attune_gemm_problem p;
  attune_gemm_batched_operands o;
  AT_TRY(AT_TAKE(&p, problem));
  AT_TRY(AT_TAKE(&o, operands));
  if (!p.pointers) return AT_INVALID("problem.pointers is none (0); should be host (1) or device (2)");
  const attune_gemm_operands all = {.alpha = o.alpha,
                                    .alpha_imag = o.alpha_imag,
                                    .beta = o.beta,
                                    .beta_imag = o.beta_imag,
                                    .a = (const void *)o.a,
                                    .b = (const void *)o.b,
                                    .c = (const void *)o.c,
                                    .d = (void *)(uintptr_t)o.d};
  return attune_gemm(tuner, stream, &p, &all);
}

attune_status at_gemm_check_run_arrays(attune_stream *stream, const at_gemm *g, const attune_gemm_operands *o,
                                       int least, at_gemm_use *use) {
  const attune_gemm_problem p = {.dtype = (attune_dtype)g->dtype,
                                 .dtype_out = (attune_dtype)g->dtype_out,
                                 .k = g->k,
                                 .batch = g->batch,
                                 .contract = ATTUNE_CONTRACT_INIT,
                                 .pointers = g->pointers,
                                 .alignment = g->pointers == ATTUNE_POINTERS_DEVICE
                                                  ? at_gemm_promised_alignment(g->dtype, g->dtype_out, least)
                                                  : 0};
  AT_TRY(at_gemm_check_sides(stream->device, &p, o));
  AT_TRY(at_gemm_check_operands(&p, o, use));
  return use->alignment >= least ? ATTUNE_OK : at_gemm_fail_array_alignment(&p, o, least);
}

/* ---- launches ---- */

static attune_status check_apart(const at_gemm *g, const at_gemm_operands *run, bool products, bool swap) {
  return g->pointers == ATTUNE_POINTERS_HOST ? at_gemm_check_arrays_apart(g, run, products, swap) : ATTUNE_OK;
}

static attune_status launch(const at_plan *plan, const at_gemm *g, const at_gemm_operands *run, attune_stream *stream,
                            bool swap) {
  if (AT_LIKELY(!at_instrumented())) return plan->launch(plan, run, stream);
  const attune_status status = at_instrumented_launch(plan, "attune_gemm_batched", run, stream, swap);
  if (status == ATTUNE_OK && at_instrumented_races()) at_gemm_note(stream, g, run, swap, false);
  return status;
}

attune_status at_gemm_launch_arrays(const at_plan *plan, const at_gemm *g, const at_gemm_operands *run,
                                    attune_stream *stream, bool swap) {
  AT_TRY(check_apart(g, run, true, swap));
  return launch(plan, g, run, stream, swap);
}

attune_status at_gemm_call_arrays(attune_tuner *tuner, attune_stream *stream, at_key *key, const at_gemm_operands *run,
                                  bool swap) {
  const at_gemm g = *at_gemm_of(at_key_problem(key)); /* the key's is folded by the look-up */
  const at_plan *plan = NULL;
  AT_TRY(check_apart(&g, run, true, swap));
  AT_TRY(at_call_plan(tuner, stream, &at_gemm_op, key, swap, NULL, &plan));
  return launch(plan, &g, run, stream, swap);
}

/* ---- without a product ---- */

static attune_status scale_on_host(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run) {
  const at_gemm one = at_gemm_one_of(g);
  attune_status status = ATTUNE_OK;
  for (int64_t i = 0; i < g->batch && status == ATTUNE_OK; i++) {
    const at_gemm_operands each = at_gemm_operands_at(g, run, i);
    status = at_gemm_scale_host(stream, &one, &each);
  }
  return status;
}

attune_status at_gemm_scale_arrays(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run) {
  at_gemm_operands outputs = *run;
  outputs.a = outputs.b = NULL;
  AT_TRY(check_apart(g, &outputs, false, false));
#ifdef AT_WITH_CUDA
  if (stream->device->properties.kind == ATTUNE_DEVICE_CUDA) return at_gemm_cublas_scale_arrays(stream, g, &outputs);
#endif
  return scale_on_host(stream, g, &outputs);
}
