/* SPDX-License-Identifier: Apache-2.0
 * epilogue.c: see epilogue.h. */
#include "ops/gemm/problem/epilogue.h"

#include <math.h>

static const char *const activations[] = {"none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"};
static const char *const gradients[] = {"none", "a", "b", "m", "n"};

/* ---- checks ---- */

static attune_status fail_range(const char *field, int value, const char *expected) {
  return AT_INVALID("problem.epilogue.%s is %d; should be %s", field, value, expected);
}

static attune_status check_values(const attune_gemm_epilogue *e) {
  if (e->bias > ATTUNE_BIAS_N) return fail_range("bias", e->bias, "none (0), m (1) or n (2)");
  if (e->activation > ATTUNE_ACTIVATION_TANH)
    return fail_range("activation", e->activation,
                      "none (0), relu (1), gelu (2), gelu_tanh (3), silu (4), sigmoid (5) or tanh (6)");
  if (e->aux > ATTUNE_AUX_RELU_MASK) return fail_range("aux", e->aux, "none (0), input (1) or relu mask (2)");
  if (e->gradient > 1) return fail_range("gradient", e->gradient, "0 or 1");
  if (e->bias_gradient > ATTUNE_BIAS_GRADIENT_N)
    return fail_range("bias_gradient", e->bias_gradient, "none (0), a (1), b (2), m (3) or n (4)");
  if (e->residual > 1) return fail_range("residual", e->residual, "0 or 1");
  return e->clamp > 1 ? fail_range("clamp", e->clamp, "0 or 1") : ATTUNE_OK;
}

static attune_status check_together(const attune_gemm_problem *p) {
  const attune_gemm_epilogue *e = &p->epilogue;
  if (at_gemm_complex(p->dtype))
    return AT_INVALID("problem.epilogue is not empty, but problem.dtype is %s; complex products have no epilogue",
                      attune_dtype_name(p->dtype));
  if (at_gemm_8bit(p->dtype))
    return AT_INVALID("problem.epilogue is not empty, but problem.dtype is %s; products of 8-bit elements have no "
                      "epilogue",
                      attune_dtype_name(p->dtype));
  if (e->aux == ATTUNE_AUX_RELU_MASK && e->activation != ATTUNE_ACTIVATION_RELU)
    return AT_INVALID("problem.epilogue.aux is a relu mask (2), but the activation is %s; should be input (1)",
                      activations[e->activation]);
  if (e->gradient && e->activation == ATTUNE_ACTIVATION_NONE)
    return AT_INVALID("problem.epilogue.gradient is 1, but activation is none (0), whose gradient is 1; should be "
                      "0, or activation another one");
  if (e->gradient && e->aux == ATTUNE_AUX_NONE)
    return AT_INVALID("problem.epilogue.gradient is 1, but aux is none (0); should be input (1)%s",
                      e->activation == ATTUNE_ACTIVATION_RELU ? " or relu mask (2)" : "");
  if (e->bias_gradient && at_gemm_batch(p) > 1)
    return AT_INVALID("problem.epilogue.bias_gradient is %s (%d), but problem.batch is %lld; only one product has a "
                      "bias gradient",
                      gradients[e->bias_gradient], e->bias_gradient, (long long)p->batch);
  if (e->bias_gradient >= ATTUNE_BIAS_GRADIENT_M && (e->residual || e->clamp || p->scaling.scale_d))
    return AT_INVALID("problem.epilogue.bias_gradient is %s (%d), of D, with a %s; should be without",
                      gradients[e->bias_gradient], e->bias_gradient,
                      e->residual ? "residual"
                      : e->clamp  ? "clamp"
                                  : "scale_d");
  return ATTUNE_OK;
}

attune_status at_gemm_check_gated(const attune_gemm_problem *p, at_gemm_c c) {
  const attune_gemm_epilogue *e = &p->epilogue;
  const bool m = p->gated == ATTUNE_GATED_M;
  const int64_t halved = m ? p->m : p->n;
  if (p->gated > ATTUNE_GATED_N) return AT_INVALID("problem.gated is %d; should be none (0), m (1) or n (2)", p->gated);
  if (halved % 2)
    return AT_INVALID("problem.%c is %lld, but problem.gated is %c (%d); should be even: D = f(first half) second half",
                      m ? 'm' : 'n', (long long)halved, m ? 'm' : 'n', p->gated);
  if (p->pointers) return AT_INVALID("problem.gated is %d, with arrays of pointers; should be 0", p->gated);
  if (c != AT_C_NONE) return AT_INVALID("operands.beta is not 0, but problem.gated is %d; should be 0", p->gated);
  const char *field = e->aux ? "aux" : e->gradient ? "gradient" : e->bias_gradient ? "bias_gradient" : NULL;
  return field ? AT_INVALID("problem.epilogue.%s is not 0, but problem.gated is %d; should be 0", field, p->gated)
               : ATTUNE_OK;
}

static attune_status check_bias_dtype(const attune_gemm_epilogue *e, attune_dtype out, uint8_t *dtype) {
  const attune_dtype asked = e->bias_dtype ? (attune_dtype)e->bias_dtype : out;
  *dtype = e->bias || e->bias_gradient ? (uint8_t)asked : 0;
  if (asked == out || (asked == ATTUNE_F32 && out != ATTUNE_F64)) return ATTUNE_OK;
  const char *name = attune_dtype_name(asked);
  const bool wide = out == ATTUNE_F64 || out == ATTUNE_F32;
  return AT_INVALID("problem.epilogue.bias_dtype is %s (%d); should be 0%s%s%s", name ? name : "unknown", (int)asked,
                    wide ? " or " : ", ", attune_dtype_name(out), wide ? "" : " or f32");
}

/* The pitches of a matrix of the epilogue as the caller sees it: `inner` elements lie side by side, `outer` such runs
 * are ld apart. A written one must not overlap itself. */
static attune_status check_pitches(const char *name, int64_t packed, int64_t unit, const at_gemm *g, bool written,
                                   int64_t *ld, int64_t *stride) {
  const int64_t inner = at_gemm_rows_d(g), outer = at_gemm_cols_d(g), batch = g->batch, limit = (int64_t)1 << 59;
  if (*ld == 0) *ld = packed;
  if (*ld < inner || *ld % unit)
    return AT_INVALID("problem.ld_%s is %lld; should be at least %lld%s, or 0 for packed", name, (long long)*ld,
                      (long long)inner, unit > 1 ? " and a multiple of 8 bits" : "");
  int64_t one, all;
  if (__builtin_mul_overflow(*ld, outer, &one) || one >= limit)
    return AT_INVALID("problem.ld_%s is %lld, so that the matrix is larger than 2^59 elements", name, (long long)*ld);
  const bool broadcast = *stride == ATTUNE_BROADCAST;
  if (broadcast && written)
    return AT_INVALID("problem.stride_%s is ATTUNE_BROADCAST, but the matrices are written; should be 1 or more, or 0 "
                      "for packed",
                      name);
  if (*stride == 0) *stride = one;
  if (broadcast) *stride = 0;
  if (*stride < 0 || *stride % unit || (written && batch > 1 && *stride < *ld * (outer - 1) + inner))
    return AT_INVALID("problem.stride_%s is %lld; should be at least %lld%s, or 0 for packed", name, (long long)*stride,
                      (long long)(written ? *ld * (outer - 1) + inner : 1),
                      unit > 1 ? " and a multiple of 8 bits" : "");
  if (__builtin_mul_overflow(*stride, batch, &all) || all >= limit)
    return AT_INVALID("problem.stride_%s is %lld, so that the matrices are larger than 2^59 elements", name,
                      (long long)*stride);
  if (batch == 1) *stride = 0;
  return ATTUNE_OK;
}

static attune_status check_matrices(const attune_gemm_problem *p, at_gemm *g) {
  const int64_t rows = at_gemm_rows_d(g), least = rows > 1 ? rows : 1;
  if (g->epilogue.aux) {
    const bool mask = g->epilogue.aux == ATTUNE_AUX_RELU_MASK;
    g->ld_aux = p->ld_aux, g->stride_aux = p->stride_aux;
    AT_TRY(check_pitches("aux", mask ? (least + 127) / 128 * 128 : least, mask ? 8 : 1, g, at_gemm_writes_aux(g),
                         &g->ld_aux, &g->stride_aux));
  }
  if (!g->epilogue.residual) return ATTUNE_OK;
  g->ld_residual = p->ld_residual, g->stride_residual = p->stride_residual;
  return check_pitches("residual", least, 1, g, false, &g->ld_residual, &g->stride_residual);
}

/* M for N, and A for B, where a row-major caller's matrices have changed places. */
static attune_gemm_epilogue swapped(attune_gemm_epilogue e) {
  static const uint8_t other_bias[] = {0, ATTUNE_BIAS_N, ATTUNE_BIAS_M};
  static const uint8_t other_gradient[] = {0, ATTUNE_BIAS_GRADIENT_B, ATTUNE_BIAS_GRADIENT_A, ATTUNE_BIAS_GRADIENT_N,
                                           ATTUNE_BIAS_GRADIENT_M};
  e.bias = other_bias[e.bias];
  e.bias_gradient = other_gradient[e.bias_gradient];
  return e;
}

attune_status at_gemm_normalise_epilogue(const attune_gemm_problem *p, bool row, at_gemm *g) {
  AT_TRY(check_values(&p->epilogue));
  AT_TRY(check_together(p));
  g->epilogue = row ? swapped(p->epilogue) : p->epilogue;
  g->scaling.scale_d = p->scaling.scale_d;
  AT_TRY(check_bias_dtype(&p->epilogue, (attune_dtype)g->dtype_out, &g->epilogue.bias_dtype));
  return check_matrices(p, g);
}

size_t at_gemm_aux_bytes(const at_gemm *g) {
  if (!g->epilogue.aux) return 0;
  const size_t elements = (size_t)(g->stride_aux * (g->batch - 1) + g->ld_aux * (g->n - 1) + g->m);
  return g->epilogue.aux == ATTUNE_AUX_RELU_MASK ? (elements + 7) / 8
                                                 : elements * attune_dtype_size((attune_dtype)g->dtype_out);
}

at_gemm_summed at_gemm_summed_of(const at_gemm *g, const at_gemm_operands *o) {
  const attune_dtype in = (attune_dtype)g->dtype, out = (attune_dtype)g->dtype_out;
  const int64_t step_a = g->trans_a ? 1 : g->lda, step_b = g->trans_b ? g->ldb : 1;
  switch (g->epilogue.bias_gradient) {
  case ATTUNE_BIAS_GRADIENT_A: return (at_gemm_summed){o->a, in, g->m, g->k, step_a, g->trans_a ? g->lda : 1};
  case ATTUNE_BIAS_GRADIENT_B: return (at_gemm_summed){o->b, in, g->n, g->k, step_b, g->trans_b ? 1 : g->ldb};
  case ATTUNE_BIAS_GRADIENT_M: return (at_gemm_summed){o->d, out, g->m, g->n, g->ldd, 1};
  default: return (at_gemm_summed){o->d, out, g->n, g->m, 1, g->ldd};
  }
}

/* ---- operands ---- */

static attune_status check_pointer(const char *name, const void *pointer, size_t element, bool needed,
                                   uintptr_t *bits) {
  if (!needed) return ATTUNE_OK;
  if (!pointer) return AT_INVALID("operands.%s is NULL, but problem.epilogue.%s is not 0", name, name);
  if ((uintptr_t)pointer % element)
    return AT_INVALID("operands.%s is %p, which is not aligned for its elements; should be a multiple of %zu", name,
                      pointer, element);
  *bits |= (uintptr_t)pointer;
  return ATTUNE_OK;
}

attune_status at_gemm_check_epilogue_operands(const attune_gemm_epilogue *e, const attune_gemm_operands *o,
                                              attune_dtype dtype_out, uintptr_t *bits) {
  const size_t out = attune_dtype_size(dtype_out),
               vector = e->bias_dtype == ATTUNE_F32 ? sizeof(float) : attune_dtype_size(dtype_out);
  AT_TRY(check_pointer("bias", o->bias, vector, e->bias != 0, bits));
  AT_TRY(check_pointer("bias_gradient", o->bias_gradient, vector, e->bias_gradient != 0, bits));
  AT_TRY(check_pointer("residual", o->residual, out, e->residual != 0, bits));
  AT_TRY(check_pointer("aux", o->aux, e->aux == ATTUNE_AUX_RELU_MASK ? 1 : out, e->aux != 0, bits));
  if (!e->clamp || o->clamp_min <= o->clamp_max) return ATTUNE_OK;
  return AT_INVALID("operands.clamp_min is %g and clamp_max %g; should be numbers, the first at most the second",
                    o->clamp_min, o->clamp_max);
}

/* ---- words ---- */

bool at_gemm_put_epilogue(const at_gemm *g, bool swap, char *out, size_t size, size_t *at) {
  const attune_gemm_epilogue e = swap ? swapped(g->epilogue) : g->epilogue;
  const char *wide = e.bias_dtype && e.bias_dtype != g->dtype_out ? ":f32" : "";
  const bool along_m = (g->gated == ATTUNE_GATED_M) != swap;
  bool ok = true;
  if (g->gated) ok = ok && at_append(out, size, at, " gated=%c", along_m ? 'm' : 'n');
  if (e.bias) ok = ok && at_append(out, size, at, " bias=%c%s", e.bias == ATTUNE_BIAS_M ? 'm' : 'n', wide);
  if (e.activation) ok = ok && at_append(out, size, at, " %s", activations[e.activation]);
  if (e.gradient) ok = ok && at_append(out, size, at, " gradient");
  if (e.aux) ok = ok && at_append(out, size, at, e.aux == ATTUNE_AUX_INPUT ? " aux=input" : " aux=mask");
  if (e.bias_gradient) ok = ok && at_append(out, size, at, " bias-gradient=%s%s", gradients[e.bias_gradient], wide);
  if (e.residual) ok = ok && at_append(out, size, at, " residual");
  if (e.clamp) ok = ok && at_append(out, size, at, " clamp");
  return ok;
}

/* "bias=m", "bias=m:f32": the position of the letter's name among `names`. */
static bool read_vector(const char *value, const char *const *names, int count, uint8_t *out, uint8_t *dtype) {
  for (int i = 1; i < count; i++) {
    const size_t chars = strlen(names[i]);
    if (strncmp(value, names[i], chars) != 0) continue;
    if (value[chars] != '\0' && strcmp(value + chars, ":f32") != 0) continue;
    *out = (uint8_t)i;
    if (value[chars]) *dtype = ATTUNE_F32;
    return true;
  }
  return false;
}

attune_status at_gemm_check_words(attune_status failure, const char *subject, const char *words) {
  return at_text_check_once(failure, subject, words, activations + 1, AT_COUNT(activations) - 1);
}

bool at_gemm_read_epilogue(const char *word, attune_gemm_problem *p) {
  static const char *const sides[] = {"none", "m", "n"};
  attune_gemm_epilogue *e = &p->epilogue;
  for (size_t i = 1; i < AT_COUNT(activations); i++)
    if (strcmp(word, activations[i]) == 0) return (e->activation = (uint8_t)i) != 0;
  if (strncmp(word, "bias=", 5) == 0) return read_vector(word + 5, sides, AT_COUNT(sides), &e->bias, &e->bias_dtype);
  if (strncmp(word, "bias-gradient=", 14) == 0)
    return read_vector(word + 14, gradients, AT_COUNT(gradients), &e->bias_gradient, &e->bias_dtype);
  if (strcmp(word, "aux=input") == 0) return (e->aux = ATTUNE_AUX_INPUT) != 0;
  if (strcmp(word, "aux=mask") == 0) return (e->aux = ATTUNE_AUX_RELU_MASK) != 0;
  if (strcmp(word, "gated=m") == 0) return (p->gated = ATTUNE_GATED_M) != 0;
  if (strcmp(word, "gated=n") == 0) return (p->gated = ATTUNE_GATED_N) != 0;
  if (strcmp(word, "gradient") == 0) return (e->gradient = 1) != 0;
  if (strcmp(word, "clamp") == 0) return (e->clamp = 1) != 0;
  return strcmp(word, "residual") == 0 && (e->residual = 1) != 0;
}

attune_status at_gemm_epilogue_column(const at_column *field, attune_gemm_problem *p, bool *known) {
  char words[AT_PROBLEM_CHARS], *rest = NULL;
  if (strcmp(field->name, "epilogue") != 0) return ATTUNE_OK;
  *known = true;
  if (!at_copy_text(words, sizeof words, field->value))
    return at_fail(ATTUNE_BAD_DATA, "epilogue is longer than %zu characters", sizeof words - 1);
  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    if (!at_gemm_read_epilogue(word, p))
      return at_fail(ATTUNE_BAD_DATA, "epilogue is \"%.40s\"; should be words of " AT_GEMM_EPILOGUE_WORDS, word);
  return at_gemm_check_words(ATTUNE_BAD_DATA, field->name, field->value);
}
