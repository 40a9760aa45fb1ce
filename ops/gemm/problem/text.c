/* SPDX-License-Identifier: Apache-2.0
 * text.c: a problem as text: "gemm bf16 tn 4096x16x4096 strict", then what differs from the plain case:
 * deterministic, beta (C separate) or beta=inplace, align=1..64 (without it 128 bytes or more), lda= ldb= ldc= ldd=,
 * stride_a= ... (elements or "broadcast"), workspace=bytes, pointers=host or pointers=device (arrays of pointers).
 * "bf16:f32" is bf16 inputs with f32 out; a batch is a fourth size. Texts that are read may leave the accuracy out
 * (strict) and may say row-major; those that are written are column-major. */
#include <string.h>

#include "ops/gemm/problem/arrays.h"
#include "ops/gemm/problem/epilogue.h"
#include "ops/gemm/problem/scaling.h"
#include "src/base/struct_size.h"
#include "tuning/op/problem_text.h"

static bool put_kind(const at_gemm *g, char *out, size_t size, size_t *at) {
  bool ok = at_append(out, size, at, "gemm %s", attune_dtype_name((attune_dtype)g->dtype));
  if (g->dtype_out != g->dtype)
    ok = ok && at_append(out, size, at, ":%s", attune_dtype_name((attune_dtype)g->dtype_out));
  return ok && at_append(out, size, at, " %c%c", "ntc"[g->trans_a], "ntc"[g->trans_b]);
}

static bool put_contract(const at_gemm *g, bool swap, char *out, size_t size, size_t *at) {
  bool ok = at_text_put_accuracy(out, size, at, (attune_accuracy)g->accuracy, g->deterministic);
  if (g->c != AT_C_NONE) ok = ok && at_append(out, size, at, g->c == AT_C_INPLACE ? " beta=inplace" : " beta");
  ok = ok && ((!at_gemm_8bit(g->dtype) && !g->scaling.scale_d) || at_gemm_put_scaling(g, swap, out, size, at));
  if (g->pointers) ok = ok && at_append(out, size, at, " pointers=%s", at_gemm_pointers_names[g->pointers]);
  ok = ok && (!at_gemm_has_epilogue(g) || at_gemm_put_epilogue(g, swap, out, size, at));
  return ok && at_text_put_limits(out, size, at, g->alignment, g->workspace_cap);
}

/* The matrices in the order of their names, as far as text needs them. */
typedef struct shape {
  const char *ld_name, *stride_name;
  int64_t packed, cols, ld, stride;
} shape;

enum { SHAPES = 6 };

static int shapes(const at_gemm *g, bool swap, shape out[SHAPES]) {
  int count = 0;
  const int64_t rows_a = at_gemm_rows_a(g), rows_b = at_gemm_rows_b(g);
  const shape a = {swap ? "ldb" : "lda", swap ? "stride_b" : "stride_a", rows_a, at_gemm_cols_a(g), g->lda,
                   g->stride_a},
              b = {swap ? "lda" : "ldb", swap ? "stride_a" : "stride_b", rows_b, at_gemm_cols_b(g), g->ldb,
                   g->stride_b};
  out[count++] = swap ? b : a;
  out[count++] = swap ? a : b;
  if (g->c == AT_C_SEPARATE) out[count++] = (shape){"ldc", "stride_c", g->m, g->n, g->ldc, g->stride_c};
  out[count++] = (shape){"ldd", "stride_d", at_gemm_rows_d(g), at_gemm_cols_d(g), g->ldd, g->stride_d};
  if (g->epilogue.aux)
    out[count++] =
        (shape){"ld_aux", "stride_aux", g->epilogue.aux == ATTUNE_AUX_RELU_MASK ? (g->m + 127) / 128 * 128 : g->m,
                g->n,     g->ld_aux,    g->stride_aux};
  if (g->epilogue.residual)
    out[count++] = (shape){"ld_residual",     "stride_residual", at_gemm_rows_d(g),
                           at_gemm_cols_d(g), g->ld_residual,    g->stride_residual};
  return count;
}

/* `swap`: A is called b, and B a. */
static bool put_shapes(const at_gemm *g, bool swap, char *out, size_t size, size_t *at) {
  shape each[SHAPES];
  const int count = shapes(g, swap, each);
  bool ok = true;
  for (int i = 0; i < count; i++)
    if (each[i].ld != (each[i].packed > 1 ? each[i].packed : 1))
      ok = ok && at_append(out, size, at, " %s=%lld", each[i].ld_name, (long long)each[i].ld);
  for (int i = 0; i < count && g->batch != 1 && !g->pointers; i++) {
    if (each[i].stride == 0)
      ok = ok && at_append(out, size, at, " %s=broadcast", each[i].stride_name);
    else if (each[i].stride != each[i].ld * each[i].cols)
      ok = ok && at_append(out, size, at, " %s=%lld", each[i].stride_name, (long long)each[i].stride);
  }
  return ok;
}

attune_status at_gemm_format(const void *problem, char *out, size_t size) {
  const at_gemm *g = at_gemm_of(problem);
  size_t at = 0;
  bool ok = put_kind(g, out, size, &at);
  ok = ok && at_append(out, size, &at, " %lldx%lldx%lld", (long long)g->m, (long long)g->n, (long long)g->k);
  if (g->batch != 1) ok = ok && at_append(out, size, &at, "x%lld", (long long)g->batch);
  return ok && put_contract(g, false, out, size, &at) && put_shapes(g, false, out, size, &at) ? ATTUNE_OK
                                                                                              : at_text_too_small(size);
}

/* A row-major matrix is the transpose of the column-major one in the same memory, so A and B change places; the words
 * of shapes are those of the same memory. */
attune_status at_gemm_show(const void *problem, int as, char *out, size_t size) {
  if (as != 1) return at_gemm_format(problem, out, size);
  at_gemm g = *at_gemm_of(problem);
  const at_gemm *stored = at_gemm_of(problem);
  size_t at = 0;
  g.trans_a = stored->trans_b;
  g.trans_b = stored->trans_a;
  g.dtype = (uint8_t)at_gemm_dtype_b(stored);
  if (g.scaling.dtype_b) g.scaling.dtype_b = stored->dtype;
  bool ok = put_kind(&g, out, size, &at);
  ok = ok && at_append(out, size, &at, " %lldx%lldx%lld", (long long)g.n, (long long)g.m, (long long)g.k);
  if (g.batch != 1) ok = ok && at_append(out, size, &at, "x%lld", (long long)g.batch);
  ok = ok && put_contract(&g, true, out, size, &at) && at_append(out, size, &at, " row-major");
  return ok && put_shapes(stored, true, out, size, &at) ? ATTUNE_OK : at_text_too_small(size);
}

attune_status at_gemm_family(const void *problem, char *out, size_t size) {
  const at_gemm *g = at_gemm_of(problem);
  shape each[SHAPES];
  size_t at = 0;
  bool packed = true;
  const int count = shapes(g, false, each);
  for (int i = 0; i < count; i++) packed = packed && each[i].ld == each[i].packed;
  bool ok = put_kind(g, out, size, &at) && put_contract(g, false, out, size, &at);
  ok = ok && at_append(out, size, &at, "%s%s", packed ? "" : " strided", g->batch == 1 ? "" : " batched");
  return ok ? ATTUNE_OK : at_text_too_small(size);
}

/* What the words of a text say, before it is checked as a problem. */
typedef struct reading {
  attune_gemm_problem problem;
  at_contract terms;
  at_gemm_c c;
} reading;
_Static_assert(ATTUNE_BROADCAST == AT_BROADCAST, "strides are read as every operation's");

static bool read_dtypes(char *word, void *into) {
  attune_gemm_problem *p = &((reading *)into)->problem;
  const size_t in = strcspn(word, ":");
  if (!at_text_dtype(word, in, AT_GEMM_DTYPES, &p->dtype)) return false;
  return word[in] == '\0' || at_text_dtype(word + in + 1, strlen(word + in + 1), AT_GEMM_DTYPES_OUT, &p->dtype_out);
}

static bool read_transposes(char *word, void *into) {
  attune_gemm_problem *p = &((reading *)into)->problem;
  static const char letters[] = "ntc";
  if (strlen(word) != 2 || !strchr(letters, word[0]) || !strchr(letters, word[1])) return false;
  p->trans_a = (attune_transpose)(strchr(letters, word[0]) - letters);
  p->trans_b = (attune_transpose)(strchr(letters, word[1]) - letters);
  return true;
}

static bool read_sizes(char *word, void *into) {
  attune_gemm_problem *p = &((reading *)into)->problem;
  int64_t *const sizes[] = {&p->m, &p->n, &p->k, &p->batch};
  return at_text_sizes(word, sizes, 3, AT_COUNT(sizes)) && p->m > 0 && p->n > 0 && p->k > 0 && p->batch >= 0;
}

static bool read_accuracy(char *word, void *into) {
  return at_text_accuracy(word, &((reading *)into)->terms.contract.accuracy);
}

static bool read_option(char *word, void *into) {
  reading *r = into;
  at_number numbers[AT_GEMM_PITCHES];
  at_gemm_pitches(&r->problem, numbers);
  if (at_text_number(word, numbers, AT_COUNT(numbers)) || at_text_term(word, &r->terms)) return true;
  if (strcmp(word, "row-major") == 0)
    r->problem.layout = ATTUNE_ROW_MAJOR;
  else if (strcmp(word, "beta") == 0)
    r->c = AT_C_SEPARATE;
  else if (strcmp(word, "beta=inplace") == 0)
    r->c = AT_C_INPLACE;
  else if (strncmp(word, "pointers=", 9) == 0)
    return at_gemm_read_pointers(word + 9, &r->problem.pointers);
  else
    return at_gemm_read_scaling(word, &r->problem) || at_gemm_read_epilogue(word, &r->problem);
  return true;
}

static attune_status read_text(const char *text, reading *r, at_gemm *g) {
  static const at_word_kind kinds[] = {
      {"a dtype such as f32 or bf16:f32", read_dtypes, false},
      {"nn, nt, tn or tt (c: conjugated and transposed)", read_transposes, false},
      {"sizes as MxNxK or MxNxKxBATCH, each 1 or more; a batch of 0 is one matrix", read_sizes, false},
      {"strict, equivalent or reduced", read_accuracy, true},
      {"deterministic, row-major, beta, beta=inplace, align=, lda= ... ldd= (1 or more), stride_a= ... stride_d= (1 or "
       "more, or broadcast), workspace=, pointers=host or device; of 8-bit types " AT_GEMM_SCALING_WORDS
       "; of an epilogue " AT_GEMM_EPILOGUE_WORDS ", and ld_aux= ... stride_residual=",
       read_option, true}};
  bool swap = false;
  *r = (reading){.problem = ATTUNE_GEMM_PROBLEM_INIT, .terms = AT_CONTRACT_INIT};
  attune_status status = at_text_read(text, at_gemm_op.name, kinds, AT_COUNT(kinds), r);
  if (status == ATTUNE_OK) status = at_gemm_check_words(ATTUNE_INVALID_ARGUMENT, "the problem", text);
  r->problem.contract = r->terms.contract;
  if (status == ATTUNE_OK && r->c == AT_C_INPLACE) { /* C is D */
    r->problem.ldc = r->problem.ldd;
    r->problem.stride_c = r->problem.stride_d;
  }
  r->problem.batch = at_gemm_batch(&r->problem);
  const at_gemm_use use = {.c = r->c, .alignment = r->terms.alignment};
  if (status == ATTUNE_OK) status = at_gemm_normalise(&r->problem, use, g, &swap);
  if (status == ATTUNE_OK && (at_gemm_empty(g) || g->k == 0))
    status = AT_INVALID("a size of the problem is 0; should be 1 or more for tuning");
  if (status == ATTUNE_OK && g->pointers == ATTUNE_POINTERS_DEVICE)
    r->problem.alignment = at_gemm_promised_alignment(g->dtype, g->dtype_out, g->alignment);
  return status == ATTUNE_OK ? at_gemm_check_alignment(g) : status;
}

attune_status at_gemm_parse(const char *text, void *problem) {
  reading r;
  return read_text(text, &r, problem);
}

attune_status attune_gemm_problem_parse(attune_gemm_problem *out, const char *text) {
  AT_REQUIRE(out, text);
  reading r;
  at_gemm g;
  const attune_status status = read_text(text, &r, &g);
  return status == ATTUNE_OK ? AT_GIVE(out, &r.problem) : status;
}

attune_status attune_gemm_problem_format(char *out, size_t size, const attune_gemm_problem *problem,
                                         const attune_gemm_operands *operands) {
  AT_REQUIRE(out, problem);
  at_gemm_use use = {.c = AT_C_NONE, .alignment = AT_ALIGNMENT};
  attune_gemm_problem p;
  attune_gemm_operands o;
  at_gemm g;
  bool swap = false;
  attune_status status = AT_TAKE(&p, problem);
  if (status == ATTUNE_OK) status = AT_TAKE(&o, operands);
  if (status == ATTUNE_OK) status = at_gemm_normalise(&p, use, &g, &swap);
  if (status == ATTUNE_OK && operands) status = at_gemm_check_operands(&p, &o, &use);
  if (status == ATTUNE_OK && operands) status = at_gemm_normalise(&p, use, &g, &swap);
  if (status == ATTUNE_OK && g.batch == 0)
    status = AT_INVALID("problem.batch is ATTUNE_EMPTY_BATCH, which has no text; should be 0 or more");
  if (status == ATTUNE_OK && (at_gemm_empty(&g) || g.k == 0))
    status = AT_INVALID("problem.%c is 0, which has no text; should be 1 or more", !p.m ? 'm' : !p.n ? 'n' : 'k');
  return status == ATTUNE_OK ? at_gemm_format(&g, out, size) : status;
}
