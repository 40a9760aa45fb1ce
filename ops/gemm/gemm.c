/* SPDX-License-Identifier: Apache-2.0
 * gemm.c: the public calls. A hit goes: check, normalise into a key, one look-up, launch. */
#include "ops/gemm/problem.h"
#include "tuning/dispatch.h"
#include "tuning/recent.h"

#include <stdlib.h>
#include <string.h>

static attune_status fail_null(const void *tuner, const void *stream, const void *problem) {
  return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL",
                 !tuner     ? "tuner"
                 : !stream  ? "stream"
                 : !problem ? "problem"
                            : "operands");
}

/* The class of all pointers together, as far as the device tells classes apart. */
static inline uint8_t class_of(uintptr_t bits, const attune_stream *stream) {
  const int best = at_device_alignment(stream->device);
  return at_gemm_alignment_of(bits & ((uintptr_t)best - 1));
}

/* Checks everything; *g is the normalised problem, *run the normalised operands. */
static inline attune_status prepare(const attune_gemm_problem *problem, const attune_gemm_operands *operands,
                                    const attune_stream *stream, at_gemm *g, at_gemm_operands *run, bool *swap,
                                    at_gemm_use *use) {
  attune_status status = at_gemm_check_operands(problem, operands, use);
  if (AT_LIKELY(status == ATTUNE_OK)) {
    use->alignment = class_of(use->alignment, stream);
    status = at_gemm_normalise(problem, *use, g, swap);
  }
  *run = *operands;
  run->alpha = at_gemm_scalar_in(problem->dtype, operands->alpha);
  run->beta = at_gemm_scalar_in(problem->dtype, operands->beta);
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

/* Zero of either sign, told without the floating-point unit. */
static inline bool zero(const double *x) {
  uint64_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits << 1 == 0;
}

/* Zero, or so small that it may become zero in a narrower type than f64. */
static inline bool tiny(const double *x) {
  uint64_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits << 1 < (uint64_t)(1023 - 126) << 53;
}

/* How the operands are used, if nothing about them needs a second look; false sends the call the long way, which also
 * says what is wrong. Whether they suit their elements is known where all are multiples of 8. */
static inline bool use_at_once(const attune_gemm_problem *p, const attune_gemm_operands *o, const attune_stream *stream,
                               at_gemm_use *use) {
  static const uint8_t low_bits[] = {0, 7, 3, 1, 1}; /* by dtype: size - 1 */
  const uintptr_t inputs = (uintptr_t)o->a | (uintptr_t)o->b, d = (uintptr_t)o->d;
  uintptr_t c = d;
  if (!o->a || !o->b || !d || o->d == o->a || o->d == o->b || tiny(&o->alpha)) return false;
  use->c = AT_C_NONE;
  if (!zero(&o->beta)) {
    c = (uintptr_t)o->c;
    if (!c || tiny(&o->beta)) return false;
    use->c = c == d ? AT_C_INPLACE : AT_C_SEPARATE;
  }
  use->alignment = class_of(inputs | d | c, stream);
  if (AT_LIKELY(use->alignment >= 8)) return true;
  return (unsigned)p->dtype <= 4u && (unsigned)p->dtype_out <= 4u && !(inputs & low_bits[p->dtype]) &&
         !((d | c) & low_bits[p->dtype_out ? p->dtype_out : p->dtype]);
}

/* ---- a recent call: all of the caller's problem, and how it uses the operands ---- */

/* What a call asks: every word of the problem but the one with trans_b and the padding behind it, which callers fill as
 * they like; trans_b goes into the use. */
typedef struct asked {
  at_words words;
  uint64_t use;
} asked;
_Static_assert(sizeof(attune_gemm_problem) == 8 + sizeof(at_words) && offsetof(attune_gemm_problem, trans_b) == 16 &&
                   offsetof(attune_gemm_problem, m) == 24 &&
                   sizeof(attune_contract) == 2 * sizeof(int) + sizeof(size_t),
               "the padding of a problem lies behind trans_b, and nowhere else");

static inline asked asked_of(const attune_gemm_problem *p, at_gemm_use use) {
  asked a;
  a.words.pair[0] = at_pair_load(p);
  for (size_t i = 1; i < AT_PAIRS; i++) a.words.pair[i] = at_pair_load((const char *)p + 8 + 16 * i);
  a.use = (uint64_t)use.alignment | (uint64_t)use.c << 8 | (uint64_t)(unsigned)p->trans_b << 16;
  return a;
}

static inline uint64_t hash_of(const asked *a, const attune_tuner *tuner, const attune_gemm_problem *p) {
  return at_words_hash(&a->words, a->use ^ (uint64_t)(unsigned)p->trans_a << 17 ^ tuner->id << 32);
}

/* Anywhere among the neighbours; the next call from this address is looked for there first. */
static at_recent *search_recent(at_recents *mine, const asked *a, const attune_tuner *tuner,
                                const attune_stream *stream, const attune_gemm_problem *problem) {
  const uint64_t hash = hash_of(a, tuner, problem);
  at_recent *recent = &mine->slots[at_recent_first(hash)];
  for (int i = 0; i < AT_RECENT_WAYS; i++, recent++)
    if (at_recent_is(recent, hash, tuner->id, stream->device, a->use) && at_words_equal(&recent->words, &a->words)) {
      *at_recent_guess(mine, problem) = (uint16_t)(recent - mine->slots);
      return recent;
    }
  return NULL;
}

/* A call just like this one that found its entry; NULL: none. */
static inline at_recent *recent_of(const attune_tuner *tuner, const attune_stream *stream,
                                   const attune_gemm_problem *problem, at_gemm_use use) {
  at_recents *mine = at_recents_mine();
  if (AT_UNLIKELY(!mine)) return NULL;
  const asked a = asked_of(problem, use);
  at_recent *recent = &mine->slots[*at_recent_guess(mine, problem)];
  if (AT_LIKELY(at_recent_is(recent, recent->hash, tuner->id, stream->device, a.use) &&
                at_words_equal(&recent->words, &a.words)))
    return recent;
  return search_recent(mine, &a, tuner, stream, problem);
}

static void remember(const attune_tuner *tuner, const attune_stream *stream, const attune_gemm_problem *problem,
                     at_gemm_use use, const at_plan_entry *entry) {
  const asked a = asked_of(problem, use);
  at_recent_put(hash_of(&a, tuner, problem), tuner->id, stream->device, entry, a.use, &a.words);
}

/* The entry that a call which missed has now: of its plan, or of what serves while nothing better is known. */
static const at_plan_entry *entry_after_miss(attune_tuner *tuner, const at_key *key) {
  const at_plan_entry *entry = at_plan_table_entry(&tuner->plans, key);
  return entry && at_plan_entry_plan(entry) ? entry : at_plan_table_entry(&tuner->captured, key);
}

static attune_status call(attune_tuner *tuner, attune_stream *stream, const attune_gemm_problem *problem,
                          const attune_gemm_operands *operands) {
  if (AT_UNLIKELY(problem->m == 0 || problem->n == 0 || problem->batch == 0)) return check_empty(problem);
  at_key key;
  at_gemm *g = at_key_problem(&key);
  at_gemm_operands run;
  at_gemm_use use;
  bool swap = false;
  attune_status status = prepare(problem, operands, stream, g, &run, &swap, &use);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  if (AT_UNLIKELY(g->k == 0 || run.alpha == 0.0)) return scale(stream, g, &run);
  at_key_set(&key, &at_gemm_op, stream->device);
  const at_plan_entry *entry = at_plan_table_entry(&tuner->plans, &key);
  const at_plan *plan = entry ? at_plan_entry_plan(entry) : NULL;
  if (AT_LIKELY(plan != NULL)) {
    remember(tuner, stream, problem, use, entry);
  } else {
    status = at_dispatch_miss(tuner, &at_gemm_op, &key, swap, stream, &plan);
    if (status == ATTUNE_OK && (entry = entry_after_miss(tuner, &key)) != NULL) at_plan_entry_count(entry, 1);
  }
  return AT_LIKELY(status == ATTUNE_OK) ? plan->launch(plan, &run, stream) : status;
}

/* A hit. The entry's plan is read at each call, so that a newer winner is used at once. */
attune_status attune_gemm(attune_tuner *tuner, attune_stream *stream, const attune_gemm_problem *problem,
                          const attune_gemm_operands *operands) {
  if (AT_UNLIKELY(!tuner || !stream || !problem || !operands)) return fail_null(tuner, stream, problem);
  at_gemm_use use;
  if (AT_UNLIKELY(!use_at_once(problem, operands, stream, &use))) return call(tuner, stream, problem, operands);
  at_recent *recent = recent_of(tuner, stream, problem, use);
  const at_plan *plan = AT_LIKELY(recent != NULL) ? at_plan_entry_plan(recent->entry) : NULL;
  if (AT_UNLIKELY(!plan)) return call(tuner, stream, problem, operands);
  at_recent_count(recent);
  if (AT_LIKELY(problem->layout != ATTUNE_ROW_MAJOR)) return plan->launch(plan, operands, stream);
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
  attune_status status = prepare(problem, operands, stream, g, &run, &swap, &use);
  if (status != ATTUNE_OK) return status;
  if (at_gemm_empty(g) || g->k == 0 || run.alpha == 0.0)
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "a plan needs m, n, k, batch of 1 or more and alpha other than 0; attune_gemm takes the rest");
  at_key_set(&key, &at_gemm_op, stream->device);
  const at_plan *plan = NULL;
  status = at_dispatch_as(tuner, &at_gemm_op, &key, swap, stream, &plan);
  if (status != ATTUNE_OK) return status;
  at_plan *copy = malloc(sizeof *copy);
  if (!copy) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan");
  *copy = *plan;
  copy->borrowed = true;
  static _Atomic uint64_t plans;
  const at_plan_entry *entry = entry_after_miss(tuner, &key);
  copy->id = entry ? atomic_fetch_add_explicit(&plans, 1, memory_order_relaxed) + 1 : 0;
  copy->tuner = tuner->id;
  copy->entry = entry;
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
  if (AT_UNLIKELY(tiny(&o->alpha)) &&
      at_gemm_scalar_in((attune_dtype)at_gemm_of(plan->problem)->dtype, o->alpha) == 0.0)
    return scale(stream, at_gemm_of(plan->problem), o); /* must not read A and B */
  if (AT_LIKELY(plan->id != 0)) at_recent_count_plan(plan);
  if (AT_LIKELY(!(flags & FLAG_SWAP))) return plan->launch(plan, o, stream);
  at_gemm_operands run = *o;
  run.a = o->b;
  run.b = o->a;
  return plan->launch(plan, &run, stream);
}

void attune_plan_destroy(attune_plan *plan) {
  at_plan_destroy(plan);
}
