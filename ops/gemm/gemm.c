/* SPDX-License-Identifier: Apache-2.0
 * gemm.c: the public calls. A hit goes: check, normalise into a key, one look-up, launch. */
#include "ops/gemm/problem.h"
#include "tuning/dispatch.h"

#include <stdlib.h>
#include <string.h>

static attune_status fail_null(const void *tuner, const void *stream, const void *problem) {
  return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL",
                 !tuner     ? "tuner"
                 : !stream  ? "stream"
                 : !problem ? "problem"
                            : "operands");
}

/* Checks everything; *g is the normalised problem, *run the normalised operands. */
static inline attune_status prepare(const attune_gemm_problem *problem, const attune_gemm_operands *operands,
                                    at_gemm *g, at_gemm_operands *run, bool *swap, at_gemm_use *use) {
  attune_status status = at_gemm_check_operands(problem, operands, use);
  if (AT_LIKELY(status == ATTUNE_OK)) status = at_gemm_normalise(problem, *use, g, swap);
  *run = *operands;
  if (*swap) {
    run->a = operands->b;
    run->b = operands->a;
  }
  return status;
}

/* Empty sizes need no operands: the problem alone is checked. */
static attune_status check_empty(const attune_gemm_problem *problem) {
  at_gemm g;
  bool swap;
  return at_gemm_normalise(problem, (at_gemm_use){AT_C_NONE, AT_GEMM_ALIGNMENT}, &g, &swap);
}

static attune_status scale(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run) {
#ifdef AT_WITH_CUDA
  if (stream->device->properties.kind == ATTUNE_DEVICE_CUDA) return at_gemm_scale_cuda(stream, g, run);
#endif
  return at_gemm_scale_host(stream, g, run);
}

/* What this thread called lately: the same problem again needs no checking, normalising or hashing. The entry's plan is
 * read anew at each call, so a newer winner is used at once; an entry of a destroyed tuner is never touched, for its id
 * does not come again. */
typedef struct recent {
  uint64_t tuner;
  const attune_device *device;
  const at_plan_entry *entry;
  attune_gemm_problem problem;
  at_gemm_use use;
  bool swap;
} recent;

enum { RECENT = 32 };
static _Thread_local recent recents[RECENT];

/* How the operands are used, if nothing about them needs a second look; false sends the call the long way, which also
 * says what is wrong. */
static inline bool use_at_once(const attune_gemm_problem *p, const attune_gemm_operands *o, at_gemm_use *use) {
  static const uint8_t low_bits[] = {0, 7, 3, 1, 1}; /* by dtype: size - 1 */
  if ((unsigned)p->dtype > 4u || (unsigned)p->dtype_out > 4u) return false;
  const uintptr_t inputs = (uintptr_t)o->a | (uintptr_t)o->b, d = (uintptr_t)o->d,
                  c = o->beta != 0.0 ? (uintptr_t)o->c : d;
  const bool bad = !o->a || !o->b || !d || !c || o->alpha == 0.0 || o->d == o->a || o->d == o->b ||
                   (inputs & low_bits[p->dtype]) || ((d | c) & low_bits[p->dtype_out ? p->dtype_out : p->dtype]);
  use->alignment = at_gemm_alignment_of(inputs | d | c);
  use->c = o->beta == 0.0 ? AT_C_NONE : c == d ? AT_C_INPLACE : AT_C_SEPARATE;
  return !bad;
}

static inline recent *recent_of(const attune_gemm_problem *p) {
  const uint64_t mix = ((uint64_t)p->m * 0x9E3779B97F4A7C15u) ^ ((uint64_t)p->n * 0xC2B2AE3D27D4EB4Fu) ^
                       ((uint64_t)p->k * 0x165667B19E3779F9u) ^ (uint64_t)p->dtype << 61;
  return &recents[mix >> 59];
}
_Static_assert(RECENT == 32, "recent_of takes five bits");

/* All but the padding before the sizes, which the caller's compiler fills as it likes. */
static inline bool same_problem(const attune_gemm_problem *x, const attune_gemm_problem *y) {
  enum {
    HEAD = offsetof(attune_gemm_problem, trans_b) + sizeof(attune_transpose),
    TAIL = offsetof(attune_gemm_problem, m)
  };
  return memcmp(x, y, HEAD) == 0 && memcmp(&x->m, &y->m, sizeof *x - TAIL) == 0;
}
_Static_assert(sizeof(attune_contract) == 2 * sizeof(int) + sizeof(size_t) &&
                   sizeof(attune_gemm_problem) ==
                       offsetof(attune_gemm_problem, m) + 12 * sizeof(int64_t) + sizeof(attune_contract),
               "same_problem knows all padding");

/* The plan of a call just like a recent one; NULL: look it up. */
static inline const at_plan *plan_of_recent(const recent *r, const attune_tuner *tuner, const attune_stream *stream,
                                            const attune_gemm_problem *problem, at_gemm_use use) {
  if (r->tuner != tuner->id || r->device != stream->device || r->use.c != use.c || r->use.alignment != use.alignment ||
      !same_problem(&r->problem, problem))
    return NULL;
  return at_plan_entry_plan(r->entry);
}

static attune_status call(attune_tuner *tuner, attune_stream *stream, const attune_gemm_problem *problem,
                          const attune_gemm_operands *operands) {
  if (AT_UNLIKELY(problem->m == 0 || problem->n == 0 || problem->batch == 0)) return check_empty(problem);
  at_key key;
  at_gemm *g = at_key_problem(&key);
  at_gemm_operands run;
  at_gemm_use use;
  bool swap = false;
  attune_status status = prepare(problem, operands, g, &run, &swap, &use);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  if (AT_UNLIKELY(g->k == 0 || run.alpha == 0.0)) return scale(stream, g, &run);
  at_key_set(&key, &at_gemm_op, stream->device);
  const at_plan_entry *entry = at_plan_table_entry(&tuner->plans, &key);
  const at_plan *plan = entry ? at_plan_entry_plan(entry) : NULL;
  if (AT_LIKELY(plan != NULL))
    *recent_of(problem) = (recent){tuner->id, stream->device, entry, *problem, use, swap};
  else
    status = at_dispatch_miss(tuner, &at_gemm_op, &key, stream, &plan);
  return AT_LIKELY(status == ATTUNE_OK) ? plan->launch(plan, &run, stream) : status;
}

attune_status attune_gemm(attune_tuner *tuner, attune_stream *stream, const attune_gemm_problem *problem,
                          const attune_gemm_operands *operands) {
  if (AT_UNLIKELY(!tuner || !stream || !problem || !operands)) return fail_null(tuner, stream, problem);
  at_gemm_use use;
  if (AT_UNLIKELY(!use_at_once(problem, operands, &use))) return call(tuner, stream, problem, operands);
  const recent *r = recent_of(problem);
  const at_plan *plan = plan_of_recent(r, tuner, stream, problem, use);
  if (AT_UNLIKELY(!plan)) return call(tuner, stream, problem, operands);
  if (AT_LIKELY(!r->swap)) return plan->launch(plan, operands, stream);
  at_gemm_operands run = *operands;
  run.a = operands->b;
  run.b = operands->a;
  return plan->launch(plan, &run, stream);
}

/* caller_flags of a plan handed out: alignment - 1 in the low bits, how C is used, whether A and B change places. */
enum { FLAG_ALIGNMENT = AT_GEMM_ALIGNMENT - 1, FLAG_C_SHIFT = 7, FLAG_C = 3 << FLAG_C_SHIFT, FLAG_SWAP = 1 << 9 };

/* What a plan demands of later operands: the least that the device does not tell from what it was made with. */
static int least_alignment(int alignment, const attune_device *device) {
  const int best = at_device_alignment(device);
  return alignment < best ? alignment : best;
}

attune_status attune_gemm_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                      const attune_gemm_problem *problem, const attune_gemm_operands *operands) {
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to an attune_plan *");
  *out = NULL;
  if (!tuner || !stream || !problem || !operands) return fail_null(tuner, stream, problem);
  at_key key;
  at_gemm *g = at_key_problem(&key);
  at_gemm_operands run;
  at_gemm_use use;
  bool swap = false;
  attune_status status = prepare(problem, operands, g, &run, &swap, &use);
  if (status != ATTUNE_OK) return status;
  if (at_gemm_empty(g) || g->k == 0 || run.alpha == 0.0)
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "a plan needs m, n, k, batch of 1 or more and alpha other than 0; attune_gemm takes the rest");
  at_key_set(&key, &at_gemm_op, stream->device);
  const at_plan *plan = NULL;
  status = at_dispatch(tuner, &at_gemm_op, &key, stream, &plan);
  if (status != ATTUNE_OK) return status;
  at_plan *copy = malloc(sizeof *copy);
  if (!copy) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan");
  *copy = *plan;
  copy->borrowed = true;
  copy->caller_flags =
      (least_alignment(use.alignment, stream->device) - 1) | (int)use.c << FLAG_C_SHIFT | (swap ? FLAG_SWAP : 0);
  *out = copy;
  return ATTUNE_OK;
}

static attune_status fail_run(const attune_plan *plan, const attune_stream *stream, const attune_gemm_operands *o) {
  const int c = (plan->caller_flags & FLAG_C) >> FLAG_C_SHIFT;
  if (stream->device != plan->device)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "stream is of %s, the plan of %s; should be of the same device",
                   stream->device->name, plan->device->name);
  if (!o->a || !o->b || !o->d)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "operands.%s is NULL; should point to the matrix",
                   !o->a   ? "a"
                   : !o->b ? "b"
                           : "d");
  if (c == AT_C_NONE && o->beta != 0.0)
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "operands.beta is %g, but the plan was made with beta = 0; make one with beta other than 0",
                   o->beta);
  if (c != AT_C_NONE && (c == AT_C_INPLACE) != (o->c == o->d))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "operands.c and operands.d are %s memory; the plan was made for %s",
                   o->c == o->d ? "the same" : "separate", c == AT_C_INPLACE ? "the same" : "separate");
  if (c != AT_C_NONE && !o->c)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "operands.c is NULL; should point to the matrix");
  return at_fail(
      ATTUNE_INVALID_ARGUMENT,
      "operands are not all aligned to %d bytes, as those were that the plan was made with; make one with these",
      (plan->caller_flags & FLAG_ALIGNMENT) + 1);
}

attune_status attune_plan_run(const attune_plan *plan, attune_stream *stream, const attune_gemm_operands *o) {
  if (AT_UNLIKELY(!plan || !stream || !o))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", !plan ? "plan" : !stream ? "stream" : "operands");
  const int flags = plan->caller_flags, c = (flags & FLAG_C) >> FLAG_C_SHIFT;
  const uintptr_t bits = (uintptr_t)o->a | (uintptr_t)o->b | (uintptr_t)o->d | (c == AT_C_NONE ? 0 : (uintptr_t)o->c);
  const bool c_fits = c == AT_C_NONE ? o->beta == 0.0 : o->c && (o->c == o->d) == (c == AT_C_INPLACE);
  if (AT_UNLIKELY((bits & (uintptr_t)(flags & FLAG_ALIGNMENT)) || !c_fits || !o->a || !o->b || !o->d ||
                  stream->device != plan->device))
    return fail_run(plan, stream, o);
  if (AT_UNLIKELY(o->alpha == 0.0)) return scale(stream, at_gemm_of(plan->problem), o); /* must not read A and B */
  if (AT_LIKELY(!(flags & FLAG_SWAP))) return plan->launch(plan, o, stream);
  at_gemm_operands run = *o;
  run.a = o->b;
  run.b = o->a;
  return plan->launch(plan, &run, stream);
}

void attune_plan_destroy(attune_plan *plan) {
  at_plan_destroy(plan);
}
