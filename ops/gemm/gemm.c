/* SPDX-License-Identifier: Apache-2.0
 * gemm.c: the public calls. A hit goes: check, normalise into a key, one look-up, launch. A miss goes
 * through at_call_plan to tuning/dispatch/dispatch.c. */
#include "ops/gemm/batched/batched.h"
#include "ops/gemm/epilogue/pass.h"
#include "ops/gemm/problem/epilogue.h"
#include "ops/gemm/problem/overlap.h"
#include "ops/gemm/problem/scaling.h"
#include "ops/gemm/scaled/scaled.h"
#include "ops/gemm/watch.h"
#include "src/base/struct_size.h"
#include "src/trace/instrument.h"
#include "tuning/dispatch/plan_handle.h"
#include "tuning/dispatch/public_call.h"

#include <string.h>

/* On GPUs complex operands are aligned to whole elements. */
static attune_status check_whole(const at_gemm *g, const attune_stream *stream) {
  if (at_gemm_aligned(g) || stream->device->properties.kind == ATTUNE_DEVICE_HOST) return ATTUNE_OK;
  return AT_INVALID("the operands are aligned to %d bytes; on %s those of a %s problem should be aligned to %zu",
                    g->alignment, stream->device->name, attune_dtype_name((attune_dtype)g->dtype),
                    attune_dtype_size((attune_dtype)g->dtype));
}

/* Checks everything; *g is the normalised problem, *run the normalised operands. */
static inline attune_status prepare(const attune_gemm_problem *problem, const attune_gemm_operands *operands,
                                    const attune_stream *stream, at_gemm *g, at_gemm_operands *run, bool *swap,
                                    at_gemm_use *use) {
  if (AT_UNLIKELY(problem->pointers)) AT_TRY(at_gemm_check_sides(stream->device, problem, operands));
  attune_status status = at_gemm_check_operands(problem, operands, use);
  if (AT_LIKELY(status == ATTUNE_OK)) {
    use->alignment = at_alignment_on(stream->device, use->alignment);
    status = at_gemm_normalise(problem, *use, g, swap);
  }
  if (AT_LIKELY(status == ATTUNE_OK)) status = check_whole(g, stream);
  *run = *operands;
  run->alpha = at_gemm_scalar_in(problem->dtype, operands->alpha);
  run->beta = at_gemm_scalar_in(problem->dtype, operands->beta);
  run->alpha_imag = at_gemm_scalar_in(problem->dtype, operands->alpha_imag);
  run->beta_imag = at_gemm_scalar_in(problem->dtype, operands->beta_imag);
  if (*swap) at_gemm_swap_operands(run, operands);
  return status;
}

/* Empty sizes need no operands: the problem alone is checked. */
static attune_status check_empty(const attune_gemm_problem *problem) {
  at_gemm g;
  bool swap;
  return at_gemm_normalise(problem, (at_gemm_use){.c = AT_C_NONE, .alignment = AT_ALIGNMENT}, &g, &swap);
}

static attune_status scale_on(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run) {
#ifdef AT_WITH_CUDA
  if (stream->device->properties.kind == ATTUNE_DEVICE_CUDA) return at_gemm_scale_cuda(stream, g, run);
#endif
  return at_gemm_scale_host(stream, g, run);
}

static attune_status scale_matrices(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run, bool swap) {
  const bool epilogue = at_gemm_has_epilogue(g);
  attune_status status = at_gemm_check_apart(g, run, at_gemm_sums_inputs(g), swap);
  if (status == ATTUNE_OK && !g->gated)
    status = at_gemm_8bit(g->dtype) ? at_scaled_without_product(stream, g, run) : scale_on(stream, g, run);
  return status == ATTUNE_OK && epilogue ? at_gemm_pass(stream, g, run) : status;
}

/* Without a product: k = 0 or alpha = 0. */
static attune_status scale(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run, bool swap) {
  const attune_status status =
      AT_UNLIKELY(g->pointers) ? at_gemm_scale_arrays(stream, g, run) : scale_matrices(stream, g, run, swap);
  if (at_instrumented_races() && status == ATTUNE_OK) at_gemm_note(stream, g, run, swap, true);
  return status;
}

static __attribute__((noinline)) attune_status run_if_apart(const at_plan *plan, const at_gemm_operands *run,
                                                            attune_stream *stream, bool swap) {
  const attune_status status = at_gemm_check_apart(at_gemm_of(plan->problem), run, true, swap);
  return status == ATTUNE_OK ? plan->launch(plan, run, stream) : status;
}

/* Launches if D lies apart from what is read. */
AT_INLINE attune_status run_plan(const at_plan *plan, const at_gemm_operands *run, attune_stream *stream, bool with_c,
                                 bool swap) {
  return AT_LIKELY(at_gemm_apart_at_once(plan, run, with_c)) ? plan->launch(plan, run, stream)
                                                             : run_if_apart(plan, run, stream, swap);
}

/* True for +0 and -0. Tests the bits, so no FP register is needed. */
static inline bool zero(const double *x) {
  uint64_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits << 1 == 0;
}

/* Zero, or so small that it may become zero in a narrower type than f64. The upper half tells. */
static inline bool tiny(const double *x) {
  uint64_t bits;
  memcpy(&bits, x, sizeof bits);
  return (uint32_t)(bits >> 32) << 1 < (uint32_t)(1023 - 126) << 21;
}

/* What addresses of these elements are multiples of; 8 where they are none. */
static inline unsigned element_size(unsigned dtype) {
  static const uint8_t sizes[] = {8, 8, 4, 2, 2};
  return AT_LIKELY(dtype < AT_COUNT(sizes)) ? sizes[dtype] : 8u;
}

/* Do operands of this class suit their elements? True only if that follows from the class alone. */
/* Eight bytes, by a load of their own. */
static inline uint64_t word_at(const void *p) {
  uint64_t word;
  memcpy(&word, p, sizeof word);
  return word;
}

/* Does the problem need a second look, since more than a product of real matrices is asked for? */
static inline bool is_extended(const attune_gemm_problem *p) {
  return (word_at(&p->epilogue) | word_at(&p->scaling) | word_at(&p->pointers)) != 0;
}

static inline bool suits_at_once(const attune_gemm_problem *p, at_gemm_use use) {
  return AT_LIKELY(use.alignment >= 8) ||
         ((p->dtype_out == 0 || p->dtype_out == p->dtype) && use.alignment >= element_size((unsigned)p->dtype));
}

static bool suits(const attune_gemm_problem *p, const attune_gemm_operands *o, at_gemm_use use) {
  const uintptr_t inputs = (uintptr_t)o->a | (uintptr_t)o->b;
  const uintptr_t outputs = (uintptr_t)o->d | (use.c == AT_C_NONE ? 0 : (uintptr_t)o->c);
  const unsigned in = (unsigned)p->dtype, out = (unsigned)(p->dtype_out ? p->dtype_out : p->dtype);
  return inputs % element_size(in) == 0 && outputs % element_size(out) == 0;
}

/* How the operands are used, if nothing about them needs a second look. `with_c` is whether beta is not 0. */
AT_INLINE bool use_at_once(const attune_gemm_operands *o, const attune_stream *stream, bool with_c, at_gemm_use *use) {
  uintptr_t bits = (uintptr_t)o->a | (uintptr_t)o->b | (uintptr_t)o->d;
  if (AT_UNLIKELY(!o->a) || AT_UNLIKELY(!o->b) || AT_UNLIKELY(!o->d) || AT_UNLIKELY(tiny(&o->alpha))) return false;
  use->c = AT_C_NONE;
  if (with_c) {
    if (!o->c || tiny(&o->beta)) return false;
    bits |= (uintptr_t)o->c;
    use->c = o->c == o->d ? AT_C_INPLACE : AT_C_SEPARATE;
  }
  use->alignment = at_alignment_on(stream->device, bits);
  return true;
}

/* What a call asks: every word of the problem up to its contract but its size and the one with trans_b and the
 * padding behind it, which callers fill as they like; trans_b goes into the use. */
_Static_assert(offsetof(attune_gemm_problem, epilogue) == 16 + sizeof(at_signature_words) &&
                   offsetof(attune_gemm_problem, dtype) == 8 && offsetof(attune_gemm_problem, trans_b) == 24 &&
                   offsetof(attune_gemm_problem, m) == 32 && offsetof(attune_gemm_problem, epilogue) == 144 &&
                   sizeof(attune_contract) == 2 * sizeof(int) + sizeof(size_t),
               "the padding of a problem lies behind trans_b, and nowhere else");

AT_INLINE at_call_signature signature_of(const attune_gemm_problem *p, at_gemm_use use) {
  at_call_signature a;
  a.words.pair[0] = at_signature_pair_load(&p->dtype);
  for (size_t i = 1; i < AT_SIGNATURE_PAIRS; i++)
    a.words.pair[i] = at_signature_pair_load((const char *)p + 16 + 16 * i);
  const uint64_t bits = (uint64_t)use.alignment | (uint64_t)use.c << 8 | (uint64_t)(unsigned)p->trans_b << 16;
  a.use = at_call_signature_use(AT_OP_GEMM, bits, false);
  a.more = (uint64_t)(unsigned)p->trans_a << 17;
  a.rest = NULL;
  a.rest_bytes = 0;
  return a;
}

/* Whether alpha and beta of a complex problem are 0 takes a second look: what is remembered of its calls has a bit
 * that keeps the quick ways below from finding it. So has what is remembered of an epilogue, with the rest of the
 * problem. */
static at_call_signature signature_of_any(const attune_gemm_problem *p, at_gemm_use use) {
  at_call_signature a = signature_of(p, use);
  if (at_gemm_complex(p->dtype)) a.use |= (uint64_t)1 << 40;
  if (AT_LIKELY(!is_extended(p))) return a;
  a.use = at_call_signature_use(AT_OP_GEMM, a.use & (((uint64_t)1 << 40) - 1), true) | (uint64_t)1 << 41;
  a.rest = &p->epilogue;
  a.rest_bytes = sizeof *p - offsetof(attune_gemm_problem, epilogue);
  return a;
}

_Static_assert(sizeof(attune_gemm_problem) == 200 && sizeof(attune_gemm_operands) == 168,
               "once a field is added, a hit must refuse the shorter structs of version 0.1");

/* Larger structs never come further than here; smaller ones than version 0.1 had are no program's, and are noticed
 * where nothing like the call is remembered. */
static __attribute__((noinline)) attune_status call_other_size(attune_tuner *tuner, attune_stream *stream,
                                                               const attune_gemm_problem *problem,
                                                               const attune_gemm_operands *operands) {
  attune_gemm_problem p;
  attune_gemm_operands o;
  attune_status status = AT_TAKE(&p, problem);
  if (status == ATTUNE_OK) status = AT_TAKE(&o, operands);
  return status == ATTUNE_OK ? attune_gemm(tuner, stream, &p, &o) : status;
}

static __attribute__((noinline)) attune_status call(attune_tuner *tuner, attune_stream *stream,
                                                    const attune_gemm_problem *problem,
                                                    const attune_gemm_operands *operands) {
  if (AT_UNLIKELY(!AT_IS_OWN_SIZE(problem)) || AT_UNLIKELY(!AT_IS_OWN_SIZE(operands)))
    return call_other_size(tuner, stream, problem, operands);
  if (AT_UNLIKELY(problem->m == 0 || problem->n == 0 || problem->batch == ATTUNE_EMPTY_BATCH))
    return check_empty(problem);
  at_key key;
  at_gemm *g = at_key_problem(&key);
  at_gemm_operands run;
  at_gemm_use use;
  bool swap = false;
  attune_status status = prepare(problem, operands, stream, g, &run, &swap, &use);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  if (AT_UNLIKELY(g->k == 0 || at_gemm_alpha_is_0(problem->dtype, &run))) return scale(stream, g, &run, swap);
  if (AT_UNLIKELY(g->pointers)) return at_gemm_call_arrays(tuner, stream, &key, &run, swap);
  status = at_gemm_check_apart(g, &run, true, swap);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  const at_call_signature asked = signature_of_any(problem, use);
  const at_plan *plan = NULL;
  status = at_call_plan(tuner, stream, &at_gemm_op, &key, swap, &asked, &plan);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  return AT_UNLIKELY(at_instrumented()) ? at_gemm_run_watched(plan, g, &run, stream, swap)
                                        : plan->launch(plan, &run, stream);
}

static __attribute__((noinline)) attune_status run_swapped(const at_plan *plan, const at_gemm_operands *operands,
                                                           attune_stream *stream) {
  at_gemm_operands run;
  memcpy(&run, operands, offsetof(at_gemm_operands, bias)); /* all that a product alone has */
  run.a = operands->b;
  run.b = operands->a;
  return run_plan(plan, &run, stream, true, true);
}

AT_INLINE attune_status run_as_written(const at_plan *plan, const attune_gemm_problem *problem,
                                       const at_gemm_operands *operands, attune_stream *stream, bool with_c) {
  return AT_LIKELY(problem->layout != ATTUNE_ROW_MAJOR) ? run_plan(plan, operands, stream, with_c, false)
                                                        : run_swapped(plan, operands, stream);
}

/* A complex problem, whose scalars have two parts each. */
static __attribute__((noinline)) attune_status call_complex(attune_tuner *tuner, attune_stream *stream,
                                                            const attune_gemm_problem *problem,
                                                            const attune_gemm_operands *o) {
  const uintptr_t read = (uintptr_t)o->a | (uintptr_t)o->b;
  const bool with_c = !at_gemm_beta_is_0(problem->dtype, o);
  if (!o->a || !o->b || !o->d || (with_c && !o->c) || at_gemm_alpha_is_0(problem->dtype, o))
    return call(tuner, stream, problem, o);
  const uintptr_t bits = read | (uintptr_t)o->d | (with_c ? (uintptr_t)o->c : 0);
  at_gemm_use use = {!with_c        ? AT_C_NONE
                     : o->c == o->d ? AT_C_INPLACE
                                    : AT_C_SEPARATE,
                     at_alignment_on(stream->device, bits)};
  if (bits % attune_dtype_size(at_gemm_part(problem->dtype))) return call(tuner, stream, problem, o);
  const at_call_signature asked = signature_of_any(problem, use);
  const at_plan *plan = at_call_searched(tuner, stream, problem, &asked);
  return AT_LIKELY(plan != NULL) ? run_as_written(plan, problem, o, stream, with_c) : call(tuner, stream, problem, o);
}

/* A problem with an epilogue: its operands are checked in full. So are pointers, with nothing remembered. */
static __attribute__((noinline)) attune_status call_extended(attune_tuner *tuner, attune_stream *stream,
                                                             const attune_gemm_problem *problem,
                                                             const attune_gemm_operands *o) {
  at_gemm_use use;
  at_gemm_operands run = *o;
  if (problem->pointers || problem->k < 1 || at_gemm_alpha_is_0(problem->dtype, o) ||
      at_gemm_check_operands(problem, o, &use) != ATTUNE_OK)
    return call(tuner, stream, problem, o);
  use.alignment = at_alignment_on(stream->device, use.alignment);
  const at_call_signature asked = signature_of_any(problem, use);
  const at_plan *plan = at_call_searched(tuner, stream, problem, &asked);
  if (!plan) return call(tuner, stream, problem, o);
  const bool swap = problem->layout == ATTUNE_ROW_MAJOR;
  if (swap) at_gemm_swap_operands(&run, o);
  return run_if_apart(plan, &run, stream, swap);
}

/* What was asked from the problem's address last held another problem, or the operands need every check. A call that
 * needs more goes through call(), which also reports errors. */
static __attribute__((noinline)) attune_status call_searched(attune_tuner *tuner, attune_stream *stream,
                                                             const attune_gemm_problem *problem,
                                                             const attune_gemm_operands *operands) {
  at_gemm_use use;
  if (AT_UNLIKELY(is_extended(problem))) return call_extended(tuner, stream, problem, operands);
  if (AT_UNLIKELY(at_gemm_complex(problem->dtype))) return call_complex(tuner, stream, problem, operands);
  if (!use_at_once(operands, stream, !zero(&operands->beta), &use) || !suits(problem, operands, use))
    return call(tuner, stream, problem, operands);
  const at_call_signature asked = signature_of(problem, use);
  const at_plan *plan = at_call_searched(tuner, stream, problem, &asked);
  return AT_LIKELY(plan != NULL) ? run_as_written(plan, problem, operands, stream, true)
                                 : call(tuner, stream, problem, operands);
}

/* A call like the last one from the problem's address. Everything else is done by others, so that this needs few
 * registers and no stack, whose loads would wait for the count's store; for that the hint comes first, too. */
AT_INLINE attune_status call_hinted(attune_tuner *tuner, attune_stream *stream, const attune_gemm_problem *problem,
                                    const attune_gemm_operands *operands, bool with_c) {
  at_gemm_use use;
  at_cached_call *cached = at_call_hinted(problem);
  if (AT_UNLIKELY(!cached)) return call_searched(tuner, stream, problem, operands);
  __asm__("" : "+r"(cached)); /* one register from here on, where the compiler would keep three for later */
  if (AT_UNLIKELY(!use_at_once(operands, stream, with_c, &use)) || AT_UNLIKELY(!suits_at_once(problem, use)) ||
      AT_UNLIKELY(is_extended(problem)))
    return call_searched(tuner, stream, problem, operands);
  const at_call_signature asked = signature_of(problem, use);
  const at_plan *plan = at_call_of_hint(cached, tuner, stream, &asked);
  return AT_LIKELY(plan != NULL) ? run_as_written(plan, problem, operands, stream, with_c)
                                 : call_searched(tuner, stream, problem, operands);
}

static __attribute__((noinline)) attune_status call_with_c(attune_tuner *tuner, attune_stream *stream,
                                                           const attune_gemm_problem *problem,
                                                           const attune_gemm_operands *operands) {
  return call_hinted(tuner, stream, problem, operands, true);
}

attune_status attune_gemm(attune_tuner *tuner, attune_stream *stream, const attune_gemm_problem *problem,
                          const attune_gemm_operands *operands) {
  AT_REQUIRE(tuner, stream, problem, operands);
  if (AT_UNLIKELY(problem->size > sizeof *problem) || AT_UNLIKELY(operands->size > sizeof *operands))
    return call_other_size(tuner, stream, problem, operands);
  if (AT_UNLIKELY(at_instrumented())) return call(tuner, stream, problem, operands);
  if (!zero(&operands->beta)) return call_with_c(tuner, stream, problem, operands);
  return call_hinted(tuner, stream, problem, operands, false);
}

/* caller_flags of a plan handed out: alignment - 1 in the low bits, how C is used, whether A and B change places,
 * whether the caller's arrays of pointers are in host memory. */
enum {
  FLAG_ALIGNMENT = AT_ALIGNMENT - 1,
  FLAG_C_SHIFT = 7,
  FLAG_C = 3 << FLAG_C_SHIFT,
  FLAG_SWAP = 1 << 9,
  FLAG_HOST_ARRAYS = 1 << 10
};

attune_status attune_gemm_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                      const attune_gemm_problem *problem, const attune_gemm_operands *operands) {
  AT_REQUIRE_AS(out, "point to an attune_plan *");
  *out = NULL;
  AT_REQUIRE(tuner, stream, problem, operands);
  at_key key;
  at_gemm *g = at_key_problem(&key);
  attune_gemm_problem full;
  at_gemm_operands example, run;
  at_gemm_use use;
  bool swap = false;
  AT_TRY(AT_TAKE(&full, problem));
  AT_TRY(AT_TAKE(&example, operands));
  AT_TRY(prepare(&full, &example, stream, g, &run, &swap, &use));
  if (at_gemm_empty(g) || g->k == 0 || at_gemm_alpha_is_0(full.dtype, &run))
    return AT_INVALID("a plan needs m, n and k of 1 or more, a batch that is not empty and alpha other than 0; "
                      "otherwise call attune_gemm");
  const int flags = (at_alignment_least(stream->device, use.alignment) - 1) | (int)use.c << FLAG_C_SHIFT |
                    (swap ? FLAG_SWAP : 0) | (g->pointers == ATTUNE_POINTERS_HOST ? FLAG_HOST_ARRAYS : 0);
  AT_TRY(at_plan_handle_create(out, tuner, stream, &at_gemm_op, &key, swap, flags));
  if (!(flags & (FLAG_C | FLAG_SWAP)) && !at_gemm_complex(g->dtype) && !at_gemm_extended(g))
    (*out)->plain = stream->device;
  return ATTUNE_OK;
}

static attune_status fail_run(const attune_plan *plan, const attune_gemm_operands *o) {
  const int c = (plan->caller_flags & FLAG_C) >> FLAG_C_SHIFT;
  if (!o->a || !o->b || !o->d)
    return AT_INVALID("operands.%s is NULL; should point to the matrix", !o->a ? "a" : !o->b ? "b" : "d");
  if (c == AT_C_NONE && !at_gemm_beta_is_0((attune_dtype)at_gemm_of(plan->problem)->dtype, o))
    return AT_INVALID(
        "operands.beta%s is %g, but the plan was created with beta = 0; create one with beta other than 0",
        o->beta != 0.0 ? "" : "_imag", o->beta != 0.0 ? o->beta : o->beta_imag);
  if (c != AT_C_NONE && (c == AT_C_INPLACE) != (o->c == o->d))
    return AT_INVALID("operands.c and operands.d are %s memory, but the plan was created for %s",
                      o->c == o->d ? "the same" : "separate", c == AT_C_INPLACE ? "the same" : "separate");
  if (c != AT_C_NONE && !o->c) return AT_INVALID("operands.c is NULL; should point to the matrix");
  const struct {
    const char *name;
    const void *pointer;
  } each[] = {{"a", o->a}, {"b", o->b}, {"d", o->d}, {"c", o->c}};
  size_t i = 0; /* C is the one where no other is */
  while (i < AT_COUNT(each) - 1 && !((uintptr_t)each[i].pointer & (uintptr_t)(plan->caller_flags & FLAG_ALIGNMENT)))
    i++;
  const uintptr_t address = (uintptr_t)each[i].pointer;
  return AT_INVALID("operands.%s is aligned to %d byte%s; should be aligned to %d, like the operands that the plan was "
                    "created with, or create one with these",
                    each[i].name, (int)(address & -address), address & 1 ? "" : "s",
                    (plan->caller_flags & FLAG_ALIGNMENT) + 1);
}

/* Is the plan, which uses C so, for these operands? What is wrong is said by fail_run. */
AT_INLINE bool run_fits(const attune_plan *plan, const attune_gemm_operands *o, int c) {
  uintptr_t bits = (uintptr_t)o->a | (uintptr_t)o->b | (uintptr_t)o->d;
  bool c_fits = zero(&o->beta);
  if (c != AT_C_NONE) {
    bits |= (uintptr_t)o->c;
    c_fits = o->c && (o->c == o->d) == (c == AT_C_INPLACE);
  }
  return c_fits && !(bits & (uintptr_t)(plan->caller_flags & FLAG_ALIGNMENT)) && o->a && o->b && o->d;
}

/* The operands of the epilogue and the scaling of a plan that has them. */
static attune_status check_run_extras(const attune_plan *plan, const attune_gemm_operands *o) {
  const at_gemm *g = at_gemm_of(plan->problem);
  uintptr_t bits = 0;
  const bool swap = (plan->caller_flags & FLAG_SWAP) != 0;
  at_gemm_operands run = *o;
  if (swap) at_gemm_swap_operands(&run, o);
  AT_TRY(at_gemm_check_epilogue_operands(&g->epilogue, o, (attune_dtype)g->dtype_out, &bits));
  AT_TRY(at_gemm_check_scaling_operands(&g->scaling, (attune_dtype)g->dtype_out, g->c != AT_C_NONE, swap, &run, &bits));
  if (!(bits & (uintptr_t)(plan->caller_flags & FLAG_ALIGNMENT))) return ATTUNE_OK;
  return AT_INVALID("an operand of the epilogue or the scaling is aligned to %d bytes; should be aligned to %d, like "
                    "the operands that "
                    "the plan was created with, or create one with these",
                    (int)(bits & -bits), (plan->caller_flags & FLAG_ALIGNMENT) + 1);
}

/* Without a product: A and B are not read, whatever they point to. */
static attune_status run_scaled(const attune_plan *plan, attune_stream *stream, const attune_gemm_operands *o) {
  const at_gemm *g = at_gemm_of(plan->problem);
  const bool extended = at_gemm_extended(g);
  attune_gemm_operands read = *o;
  if (!at_gemm_sums_inputs(g)) read.a = read.b = o->d;
  if (!run_fits(plan, &read, (plan->caller_flags & FLAG_C) >> FLAG_C_SHIFT) ||
      (!(plan->caller_flags & FLAG_C) && !at_gemm_beta_is_0((attune_dtype)at_gemm_of(plan->problem)->dtype, o)))
    return o->d ? fail_run(plan, &read) : AT_INVALID("operands.d is NULL; should point to the matrix");
  if (extended) AT_TRY(check_run_extras(plan, o));
  const bool swap = (plan->caller_flags & FLAG_SWAP) != 0;
  if (swap) at_gemm_swap_operands(&read, o);
  return scale(stream, g, &read, swap);
}

/* The caller's arrays, as the plan was created for. */
static attune_status run_arrays(const attune_plan *plan, attune_stream *stream, const attune_gemm_operands *o) {
  const int flags = plan->caller_flags, least = (flags & FLAG_ALIGNMENT) + 1, c = (flags & FLAG_C) >> FLAG_C_SHIFT;
  const bool swap = (flags & FLAG_SWAP) != 0;
  at_gemm g = *at_gemm_of(plan->problem);
  at_gemm_operands run = *o;
  at_gemm_use use;
  g.pointers = flags & FLAG_HOST_ARRAYS ? ATTUNE_POINTERS_HOST : ATTUNE_POINTERS_DEVICE;
  AT_TRY(at_gemm_check_run_arrays(stream, &g, o, least, &use));
  if ((int)use.c != c && (c == AT_C_NONE || use.c != AT_C_NONE))
    return AT_INVALID("operands.beta and c are not as the plan was created for; create one with these");
  if (swap) run.a = o->b, run.b = o->a;
  if (at_gemm_alpha_is_0((attune_dtype)g.dtype, o)) return scale(stream, &g, &run, swap);
  at_plan_handle_count(plan, stream);
  return at_gemm_launch_arrays(plan->origin, &g, &run, stream, swap);
}

static __attribute__((noinline)) attune_status run_usually(const attune_plan *plan, attune_stream *stream,
                                                           const attune_gemm_operands *operands) {
  if (!at_plan_handle_fits(plan, &at_gemm_op, stream, operands))
    return at_plan_handle_fail(plan, &at_gemm_op, stream, operands);
  attune_gemm_operands full;
  const attune_gemm_operands *o = AT_IS_OWN_SIZE(operands) ? operands : &full;
  if (o == &full && AT_TAKE(&full, operands) != ATTUNE_OK) return ATTUNE_INVALID_ARGUMENT;
  if (at_gemm_of(plan->problem)->pointers) return run_arrays(plan, stream, o);
  const attune_dtype dtype = (attune_dtype)at_gemm_of(plan->problem)->dtype;
  if (tiny(&o->alpha) && at_gemm_alpha_is_0(dtype, o)) return run_scaled(plan, stream, o);
  if (!run_fits(plan, o, (plan->caller_flags & FLAG_C) >> FLAG_C_SHIFT) ||
      (!(plan->caller_flags & FLAG_C) && at_gemm_complex(dtype) && !zero(&o->beta_imag)))
    return fail_run(plan, o);
  const bool extended = at_gemm_extended(at_gemm_of(plan->problem));
  if (extended) AT_TRY(check_run_extras(plan, o));
  at_plan_handle_count(plan, stream);
  const bool swap = (plan->caller_flags & FLAG_SWAP) != 0;
  if (AT_LIKELY(!at_instrumented() && !extended))
    return swap ? run_swapped(plan->origin, o, stream) : run_plan(plan->origin, o, stream, true, false);
  at_gemm_operands run = *o;
  if (swap) at_gemm_swap_operands(&run, o);
  const attune_status status = at_gemm_check_apart(at_gemm_of(plan->problem), &run, true, swap);
  if (status != ATTUNE_OK) return status;
  return AT_LIKELY(!at_instrumented())
             ? plan->origin->launch(plan->origin, &run, stream)
             : at_gemm_run_watched(plan->origin, at_gemm_of(plan->problem), &run, stream, swap);
}

/* A plain plan (without C, A and B in their places), not the first run of the thread: no stack is needed
 * (call_hinted). D is compared before the run is counted, while the addresses are in registers: the count's store
 * would have them read again. */
attune_status attune_gemm_plan_run(const attune_plan *plan, attune_stream *stream, const attune_gemm_operands *o) {
  if (AT_UNLIKELY(!plan) || AT_UNLIKELY(!stream) || AT_UNLIKELY(!o) || AT_UNLIKELY(plan->plain != stream->device) ||
      AT_UNLIKELY(at_instrumented()) || AT_UNLIKELY(o->size > sizeof *o) ||
      AT_UNLIKELY(!run_fits(plan, o, AT_C_NONE)) || AT_UNLIKELY(tiny(&o->alpha)) ||
      AT_UNLIKELY(!at_gemm_apart_at_once(plan, o, false)) || AT_UNLIKELY(!at_plan_handle_count_at_once(plan, stream)))
    return run_usually(plan, stream, o);
  const at_plan *origin = plan->origin;
  return origin->launch(origin, o, stream);
}
