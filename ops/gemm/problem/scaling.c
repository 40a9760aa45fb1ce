/* SPDX-License-Identifier: Apache-2.0
 * scaling.c: see scaling.h. */
#include "ops/gemm/problem/scaling.h"

static const char *const modes[] = {"none", "tensor", "vector", "1x128", "128x128"};

static bool is_f8(unsigned dtype) {
  return dtype == ATTUNE_F8E4M3 || dtype == ATTUNE_F8E5M2;
}

/* ---- checks ---- */

static attune_status check_values(const attune_gemm_scaling *s) {
  const struct {
    const char *name;
    uint8_t value;
  } flags[] = {{"scale_d", s->scale_d}, {"amax_d", s->amax_d}, {"zero_a", s->zero_a}, {"zero_b", s->zero_b}},
    scales[] = {{"scale_a", s->scale_a}, {"scale_b", s->scale_b}};
  for (size_t i = 0; i < AT_COUNT(scales); i++)
    if (scales[i].value > ATTUNE_SCALE_128X128)
      return AT_INVALID("problem.scaling.%s is %d; should be none (0), tensor (1), vector (2), 1x128 (3) or 128x128 "
                        "(4)",
                        scales[i].name, scales[i].value);
  for (size_t i = 0; i < AT_COUNT(flags); i++)
    if (flags[i].value > 1)
      return AT_INVALID("problem.scaling.%s is %d; should be 0 or 1", flags[i].name, flags[i].value);
  return s->reserved ? AT_INVALID("problem.scaling.reserved is %d; should be 0", s->reserved) : ATTUNE_OK;
}

static attune_status check_f8(const attune_gemm_problem *p, attune_dtype out) {
  const attune_gemm_scaling *s = &p->scaling;
  const attune_dtype b = s->dtype_b ? (attune_dtype)s->dtype_b : p->dtype;
  if (!is_f8(b))
    return AT_INVALID("problem.scaling.dtype_b is %s (%d) with %s; should be 0, f8e4m3 (14) or f8e5m2 (15)",
                      attune_dtype_name(b), (int)b, attune_dtype_name(p->dtype));
  if (p->dtype == ATTUNE_F8E5M2 && b == ATTUNE_F8E5M2)
    return AT_INVALID("problem.dtype and B's are f8e5m2, which no library multiplies; one should be f8e4m3: set "
                      "problem.scaling.dtype_b");
  const bool e5m2 = p->dtype == ATTUNE_F8E5M2 || b == ATTUNE_F8E5M2;
  if (out != ATTUNE_F32 && out != ATTUNE_F16 && out != ATTUNE_BF16 && out != ATTUNE_F8E4M3 &&
      !(out == ATTUNE_F8E5M2 && e5m2))
    return AT_INVALID("problem.dtype_out is %s for f8 inputs; should be f32, f16, bf16, f8e4m3%s",
                      attune_dtype_name(out), e5m2 ? " or f8e5m2" : ", or f8e5m2 with an input of f8e5m2");
  if (s->zero_a || s->zero_b)
    return AT_INVALID("problem.scaling.zero_%c is 1 with f8 inputs; should be 0: only i8 has zero points",
                      s->zero_a ? 'a' : 'b');
  return ATTUNE_OK;
}

static attune_status check_i8(const attune_gemm_problem *p, attune_dtype out) {
  const attune_gemm_scaling *s = &p->scaling;
  const uint8_t coarsest = s->scale_a > s->scale_b ? s->scale_a : s->scale_b;
  if (s->dtype_b && s->dtype_b != ATTUNE_I8)
    return AT_INVALID("problem.scaling.dtype_b is %s (%d) with i8; should be 0 or i8 (7)",
                      attune_dtype_name((attune_dtype)s->dtype_b), s->dtype_b);
  if (out != ATTUNE_I32 && out != ATTUNE_I8 && out != ATTUNE_F32 && out != ATTUNE_F16 && out != ATTUNE_BF16)
    return AT_INVALID("problem.dtype_out is %s for i8 inputs; should be i32, i8, f32, f16 or bf16",
                      attune_dtype_name(out));
  if (coarsest > ATTUNE_SCALE_VECTOR)
    return AT_INVALID("problem.scaling.scale_%c is %s with i8; should be none, tensor or vector: blocks are for f8",
                      coarsest == s->scale_a ? 'a' : 'b', modes[coarsest]);
  if (out == ATTUNE_I32 && (coarsest || s->amax_d))
    return AT_INVALID("problem.scaling.%s is not 0 with an i32 D; should be 0, or D i8, f32, f16 or bf16",
                      s->scale_a   ? "scale_a"
                      : s->scale_b ? "scale_b"
                                   : "amax_d");
  return ATTUNE_OK;
}

/* Other types have a scale of D that an epilogue makes, and no more. */
static attune_status check_wide(const attune_gemm_problem *p) {
  attune_gemm_problem others = *p;
  others.scaling.scale_d = 0;
  if (at_gemm_asks_scaling(&others) || (p->scaling.scale_d && at_gemm_complex(p->dtype)))
    return AT_INVALID("problem.scaling is not 0 with %s inputs; should be zeros%s: scales are for f8e4m3, f8e5m2 and "
                      "i8",
                      attune_dtype_name(p->dtype), at_gemm_complex(p->dtype) ? "" : " but for scale_d");
  return check_values(&p->scaling);
}

attune_status at_gemm_check_scaling(const attune_gemm_problem *p, attune_dtype out) {
  const attune_gemm_scaling *s = &p->scaling;
  if (!at_gemm_8bit(p->dtype)) return at_gemm_asks_scaling(p) ? check_wide(p) : ATTUNE_OK;
  AT_TRY(check_values(s));
  AT_TRY(p->dtype == ATTUNE_I8 ? check_i8(p, out) : check_f8(p, out));
  if (s->scale_d && out != ATTUNE_I8 && !is_f8(out))
    return AT_INVALID("problem.scaling.scale_d is 1, but D is %s; should be 0, or D of 8 bits", attune_dtype_name(out));
  if (at_gemm_batch(p) > 1 && (s->scale_a > ATTUNE_SCALE_TENSOR || s->scale_b > ATTUNE_SCALE_TENSOR))
    return AT_INVALID("problem.scaling.scale_%c is %s, but problem.batch is %lld; a batch has scales of its tensors "
                      "only",
                      s->scale_a > ATTUNE_SCALE_TENSOR ? 'a' : 'b',
                      modes[s->scale_a > ATTUNE_SCALE_TENSOR ? s->scale_a : s->scale_b], (long long)p->batch);
  return ATTUNE_OK;
}

static attune_gemm_scaling swapped(attune_gemm_scaling s) {
  return (attune_gemm_scaling){.dtype_b = s.dtype_b,
                               .scale_a = s.scale_b,
                               .scale_b = s.scale_a,
                               .scale_d = s.scale_d,
                               .amax_d = s.amax_d,
                               .zero_a = s.zero_b,
                               .zero_b = s.zero_a};
}

attune_status at_gemm_normalise_scaling(const attune_gemm_problem *p, bool row, at_gemm *g) {
  const uint8_t other = p->scaling.dtype_b ? p->scaling.dtype_b : (uint8_t)p->dtype;
  g->scaling = row ? swapped(p->scaling) : p->scaling;
  g->scaling.dtype_b = 0;
  if (other != p->dtype) {
    g->dtype = row ? other : (uint8_t)p->dtype;
    g->scaling.dtype_b = row ? (uint8_t)p->dtype : other;
  }
  if (at_gemm_dtype_c(g) != g->dtype_out && g->c == AT_C_INPLACE)
    return AT_INVALID("operands.c is operands.d, but C is bf16 and D %s; should be another matrix",
                      attune_dtype_name((attune_dtype)g->dtype_out));
  if (g->m <= INT32_MAX && g->n <= INT32_MAX && g->k <= INT32_MAX && g->batch <= INT32_MAX) return ATTUNE_OK;
  return at_fail(ATTUNE_UNSUPPORTED, "a size of the problem is above 2^31 - 1, which products of %s do not have",
                 attune_dtype_name(p->dtype));
}

/* ---- operands ---- */

attune_status at_gemm_check_scaling_operands(const attune_gemm_scaling *s, attune_dtype out, bool reads_c, bool swap,
                                             const attune_gemm_operands *o, uintptr_t *bits) {
  const struct {
    const char *name;
    const void *pointer;
    uintptr_t low;
    bool needed;
  } each[] = {{swap ? "scale_b" : "scale_a", o->scale_a, 3, s->scale_a != 0},
              {swap ? "scale_a" : "scale_b", o->scale_b, 3, s->scale_b != 0},
              {"scale_d", o->scale_d, 3, s->scale_d != 0},
              {"amax_d", o->amax_d, 3, s->amax_d != 0},
              {swap ? "zero_b" : "zero_a", o->zero_a, 0, s->zero_a != 0},
              {swap ? "zero_a" : "zero_b", o->zero_b, 0, s->zero_b != 0}};
  for (size_t i = 0; i < AT_COUNT(each); i++) {
    if (!each[i].needed) continue;
    if (!each[i].pointer)
      return AT_INVALID("operands.%s is NULL, but problem.scaling.%s is not 0", each[i].name, each[i].name);
    if ((uintptr_t)each[i].pointer & each[i].low)
      return AT_INVALID("operands.%s is %p, which is not aligned for its elements; should be a multiple of 4",
                        each[i].name, each[i].pointer);
  }
  if (s->scale_a > ATTUNE_SCALE_TENSOR) *bits |= (uintptr_t)o->scale_a;
  if (s->scale_b > ATTUNE_SCALE_TENSOR) *bits |= (uintptr_t)o->scale_b;
  if (is_f8(out) && reads_c && ((uintptr_t)o->c & 1))
    return AT_INVALID("operands.c is %p, which is not aligned for its elements, bf16; should be a multiple of 2", o->c);
  return ATTUNE_OK;
}

static int64_t blocks_of(int64_t k) {
  return (k + AT_SCALE_BLOCK - 1) / AT_SCALE_BLOCK;
}

at_scale_layout at_gemm_scale_layout(uint8_t scale, int64_t lines, int64_t k) {
  switch (scale) {
  case ATTUNE_SCALE_VECTOR: return (at_scale_layout){1, 1, 0};
  case ATTUNE_SCALE_1X128: return (at_scale_layout){1, 1, lines};
  case ATTUNE_SCALE_128X128: return (at_scale_layout){AT_SCALE_BLOCK, (blocks_of(k) + 3) / 4 * 4, 1};
  default: return (at_scale_layout){1, 0, 0};
  }
}

size_t at_gemm_scale_count(const at_gemm *g, bool b) {
  const int64_t lines = b ? g->n : g->m, depth = blocks_of(g->k);
  switch (b ? g->scaling.scale_b : g->scaling.scale_a) {
  case ATTUNE_SCALE_NONE: return 0;
  case ATTUNE_SCALE_TENSOR: return 1;
  case ATTUNE_SCALE_VECTOR: return (size_t)lines;
  case ATTUNE_SCALE_1X128: return (size_t)(lines * depth);
  default: return (size_t)((depth + 3) / 4 * 4 * blocks_of(lines));
  }
}

void at_gemm_add_scaling_buffers(const at_gemm *g, at_buffer *out, int *count) {
  const attune_gemm_scaling *s = &g->scaling;
  const at_buffer scale = {.bytes = sizeof(float),
                           .alignment = g->alignment > sizeof(float) ? g->alignment : sizeof(float),
                           .dtype = ATTUNE_F32,
                           .input = true},
                  zero = {.bytes = 1, .alignment = 1, .dtype = ATTUNE_I8, .input = true};
  for (int b = 0; b < 2; b++)
    if (b ? s->scale_b : s->scale_a) {
      out[*count] = scale;
      out[(*count)++].bytes = at_gemm_scale_count(g, b != 0) * sizeof(float);
    }
  if (s->scale_d) out[(*count)++] = scale;
  if (s->amax_d) {
    out[*count] = scale;
    out[*count].input = false;
    out[(*count)++].output = true;
  }
  if (s->zero_a) out[(*count)++] = zero;
  if (s->zero_b) out[(*count)++] = zero;
}

/* ---- words ---- */

bool at_gemm_put_scaling(const at_gemm *g, bool swap, char *out, size_t size, size_t *at) {
  const attune_gemm_scaling s = swap ? swapped(g->scaling) : g->scaling;
  bool ok = true;
  if (s.dtype_b) ok = at_append(out, size, at, " dtype_b=%s", attune_dtype_name((attune_dtype)s.dtype_b));
  if (s.scale_a) ok = ok && at_append(out, size, at, " scale_a=%s", modes[s.scale_a]);
  if (s.scale_b) ok = ok && at_append(out, size, at, " scale_b=%s", modes[s.scale_b]);
  if (s.scale_d) ok = ok && at_append(out, size, at, " scale_d");
  if (s.amax_d) ok = ok && at_append(out, size, at, " amax_d");
  if (s.zero_a) ok = ok && at_append(out, size, at, " zero_a");
  if (s.zero_b) ok = ok && at_append(out, size, at, " zero_b");
  return ok;
}

static bool read_mode(const char *value, uint8_t *out) {
  for (size_t i = 1; i < AT_COUNT(modes); i++)
    if (strcmp(value, modes[i]) == 0) return (*out = (uint8_t)i) != 0;
  return false;
}

bool at_gemm_read_scaling(const char *word, attune_gemm_problem *p) {
  attune_gemm_scaling *s = &p->scaling;
  attune_dtype b;
  if (strncmp(word, "scale_a=", 8) == 0) return read_mode(word + 8, &s->scale_a);
  if (strncmp(word, "scale_b=", 8) == 0) return read_mode(word + 8, &s->scale_b);
  if (strncmp(word, "dtype_b=", 8) == 0) {
    if (!at_text_dtype(word + 8, strlen(word + 8), AT_GEMM_DTYPES, &b)) return false;
    s->dtype_b = (uint8_t)b;
    return true;
  }
  const struct {
    const char *name;
    uint8_t *flag;
  } flags[] = {{"scale_d", &s->scale_d}, {"amax_d", &s->amax_d}, {"zero_a", &s->zero_a}, {"zero_b", &s->zero_b}};
  for (size_t i = 0; i < AT_COUNT(flags); i++)
    if (strcmp(word, flags[i].name) == 0) return (*flags[i].flag = 1) != 0;
  return false;
}

attune_status at_gemm_scaling_column(const at_column *field, attune_gemm_problem *p, bool *known) {
  char words[AT_PROBLEM_CHARS], *rest = NULL;
  if (strcmp(field->name, "scaling") != 0) return ATTUNE_OK;
  *known = true;
  if (!at_copy_text(words, sizeof words, field->value))
    return at_fail(ATTUNE_BAD_DATA, "scaling is longer than %zu characters", sizeof words - 1);
  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    if (!at_gemm_read_scaling(word, p))
      return at_fail(ATTUNE_BAD_DATA, "scaling is \"%.40s\"; should be words of " AT_GEMM_SCALING_WORDS, word);
  return at_text_check_once(ATTUNE_BAD_DATA, field->name, field->value, NULL, 0);
}
