/* SPDX-License-Identifier: Apache-2.0
 * text.c: a problem as text: "gemm bf16 tn 4096x16x4096 strict", then what differs from the plain case:
 * deterministic, beta (C separate) or beta=inplace, align=1..64 (without it 128 bytes or more), lda= ldb= ldc= ldd=, stride_a= ... (elements or
 * "broadcast"), workspace=bytes. "bf16:f32" is bf16 inputs with f32 out; a batch is a fourth size. Texts that are read may
 * leave the accuracy out (strict) and may say row-major; those that are written are column-major. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/problem.h"

static const char *const ACCURACY[] = {"strict", "equivalent", "reduced"};

static bool put_kind(const at_gemm *g, char *out, size_t size, size_t *at) {
  bool ok = at_append(out, size, at, "gemm %s", attune_dtype_name((attune_dtype)g->dtype));
  if (g->dtype_out != g->dtype)
    ok = ok && at_append(out, size, at, ":%s", attune_dtype_name((attune_dtype)g->dtype_out));
  return ok && at_append(out, size, at, " %c%c", g->trans_a ? 't' : 'n', g->trans_b ? 't' : 'n');
}

static bool put_contract(const at_gemm *g, char *out, size_t size, size_t *at) {
  bool ok = at_append(out, size, at, " %s", ACCURACY[g->accuracy]);
  if (g->deterministic) ok = ok && at_append(out, size, at, " deterministic");
  if (g->c != AT_C_NONE) ok = ok && at_append(out, size, at, g->c == AT_C_INPLACE ? " beta=inplace" : " beta");
  if (g->alignment != AT_ALIGNMENT) ok = ok && at_append(out, size, at, " align=%d", g->alignment);
  if (g->workspace_cap != ATTUNE_WORKSPACE_DEFAULT)
    ok = ok && at_append(out, size, at, " workspace=%llu", (unsigned long long)g->workspace_cap);
  return ok;
}

/* The four matrices in the order of their names, as far as text needs them. */
typedef struct shape {
  char name;
  int64_t rows, cols, ld, stride;
} shape;

static int shapes(const at_gemm *g, shape out[4]) {
  int count = 0;
  out[count++] = (shape){'a', at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a};
  out[count++] = (shape){'b', at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b};
  if (g->c == AT_C_SEPARATE) out[count++] = (shape){'c', g->m, g->n, g->ldc, g->stride_c};
  out[count++] = (shape){'d', g->m, g->n, g->ldd, g->stride_d};
  return count;
}

/* `swap`: A is called b, and B a. */
static bool put_shapes(const at_gemm *g, bool swap, char *out, size_t size, size_t *at) {
  shape each[4];
  const int count = shapes(g, each);
  bool ok = true;
  for (int i = 0; i < 2 && swap; i++) each[i].name = i ? 'a' : 'b';
  if (swap) {
    const shape first = each[0];
    each[0] = each[1];
    each[1] = first;
  }
  for (int i = 0; i < count; i++)
    if (each[i].ld != (each[i].rows > 1 ? each[i].rows : 1))
      ok = ok && at_append(out, size, at, " ld%c=%lld", each[i].name, (long long)each[i].ld);
  for (int i = 0; i < count && g->batch != 1; i++) {
    if (each[i].stride == 0)
      ok = ok && at_append(out, size, at, " stride_%c=broadcast", each[i].name);
    else if (each[i].stride != each[i].ld * each[i].cols)
      ok = ok && at_append(out, size, at, " stride_%c=%lld", each[i].name, (long long)each[i].stride);
  }
  return ok;
}

static attune_status too_small(size_t size) {
  return at_fail(ATTUNE_INVALID_ARGUMENT, "out is %zu bytes, too small for the problem's text; give %d", size,
                 AT_PROBLEM_CHARS);
}

attune_status at_gemm_format(const void *problem, char *out, size_t size) {
  const at_gemm *g = at_gemm_of(problem);
  size_t at = 0;
  bool ok = put_kind(g, out, size, &at);
  ok = ok && at_append(out, size, &at, " %lldx%lldx%lld", (long long)g->m, (long long)g->n, (long long)g->k);
  if (g->batch != 1) ok = ok && at_append(out, size, &at, "x%lld", (long long)g->batch);
  return ok && put_contract(g, out, size, &at) && put_shapes(g, false, out, size, &at) ? ATTUNE_OK : too_small(size);
}

/* A row-major matrix is the transpose of the column-major one in the same memory, so A and B change places; the words of
 * shapes are those of the same memory. */
attune_status at_gemm_show(const void *problem, int as, char *out, size_t size) {
  if (as != 1) return at_gemm_format(problem, out, size);
  at_gemm g = *at_gemm_of(problem);
  const at_gemm *stored = at_gemm_of(problem);
  size_t at = 0;
  g.trans_a = stored->trans_b;
  g.trans_b = stored->trans_a;
  bool ok = put_kind(&g, out, size, &at);
  ok = ok && at_append(out, size, &at, " %lldx%lldx%lld", (long long)g.n, (long long)g.m, (long long)g.k);
  if (g.batch != 1) ok = ok && at_append(out, size, &at, "x%lld", (long long)g.batch);
  ok = ok && put_contract(&g, out, size, &at) && at_append(out, size, &at, " row-major");
  return ok && put_shapes(stored, true, out, size, &at) ? ATTUNE_OK : too_small(size);
}

attune_status at_gemm_family(const void *problem, char *out, size_t size) {
  const at_gemm *g = at_gemm_of(problem);
  shape each[4];
  size_t at = 0;
  bool packed = true;
  const int count = shapes(g, each);
  for (int i = 0; i < count; i++) packed = packed && each[i].ld == each[i].rows;
  bool ok = put_kind(g, out, size, &at) && put_contract(g, out, size, &at);
  ok = ok && at_append(out, size, &at, "%s%s", packed ? "" : " strided", g->batch == 1 ? "" : " batched");
  return ok ? ATTUNE_OK : too_small(size);
}

/* What the words of a text say, before it is checked as a problem. */
typedef struct reading {
  attune_gemm_problem problem;
  at_gemm_use use;
} reading;

static bool read_dtype(const char *word, size_t chars, attune_dtype *out) {
  for (int dtype = ATTUNE_F64; dtype <= ATTUNE_BF16; dtype++) {
    const char *name = attune_dtype_name((attune_dtype)dtype);
    if (strlen(name) == chars && strncmp(name, word, chars) == 0) {
      *out = (attune_dtype)dtype;
      return true;
    }
  }
  return false;
}

static bool read_dtypes(const char *word, reading *r) {
  const size_t in = strcspn(word, ":");
  if (!read_dtype(word, in, &r->problem.dtype)) return false;
  return word[in] == '\0' || read_dtype(word + in + 1, strlen(word + in + 1), &r->problem.dtype_out);
}

static bool read_transposes(const char *word, reading *r) {
  if (strlen(word) != 2 || !strchr("nt", word[0]) || !strchr("nt", word[1])) return false;
  r->problem.trans_a = word[0] == 't' ? ATTUNE_T : ATTUNE_N;
  r->problem.trans_b = word[1] == 't' ? ATTUNE_T : ATTUNE_N;
  return true;
}

static bool read_sizes(char *word, reading *r) {
  int64_t *sizes[] = {&r->problem.m, &r->problem.n, &r->problem.k, &r->problem.batch};
  size_t count = 0;
  for (char *size = word; size; count++) {
    char *next = strchr(size, 'x');
    if (next) *next++ = '\0';
    if (count == AT_COUNT(sizes) || !at_parse_i64(sizes[count], size)) return false;
    size = next;
  }
  return count >= 3;
}

static bool read_accuracy(const char *word, reading *r) {
  for (size_t i = 0; i < AT_COUNT(ACCURACY); i++)
    if (strcmp(word, ACCURACY[i]) == 0) {
      r->problem.contract.accuracy = (attune_accuracy)i;
      return true;
    }
  return false;
}

static bool read_number(const char *value, int64_t *out) {
  return at_parse_i64(out, value) && *out > 0;
}

static bool read_option(const char *word, reading *r) {
  attune_gemm_problem *p = &r->problem;
  const struct {
    const char *key;
    int64_t *value;
  } numbers[] = {{"lda=", &p->lda},           {"ldb=", &p->ldb},           {"ldc=", &p->ldc},
                 {"ldd=", &p->ldd},           {"stride_a=", &p->stride_a}, {"stride_b=", &p->stride_b},
                 {"stride_c=", &p->stride_c}, {"stride_d=", &p->stride_d}};
  int64_t number = 0;
  for (size_t i = 0; i < AT_COUNT(numbers); i++) {
    const size_t key = strlen(numbers[i].key);
    if (strncmp(word, numbers[i].key, key) != 0) continue;
    if (i >= 4 && strcmp(word + key, "broadcast") == 0) {
      *numbers[i].value = ATTUNE_BROADCAST;
      return true;
    }
    return read_number(word + key, numbers[i].value);
  }
  if (strncmp(word, "align=", 6) == 0) {
    if (!read_number(word + 6, &number) || number > AT_ALIGNMENT || (number & (number - 1))) return false;
    r->use.alignment = (uint8_t)number;
    return true;
  }
  if (strncmp(word, "workspace=", 10) == 0) {
    if (!read_number(word + 10, &number)) return false;
    p->contract.workspace_cap = (size_t)number;
    return true;
  }
  if (strcmp(word, "deterministic") == 0)
    p->contract.deterministic = 1;
  else if (strcmp(word, "row-major") == 0)
    p->layout = ATTUNE_ROW_MAJOR;
  else if (strcmp(word, "beta") == 0)
    r->use.c = AT_C_SEPARATE;
  else if (strcmp(word, "beta=inplace") == 0)
    r->use.c = AT_C_INPLACE;
  else
    return false;
  return true;
}

static attune_status read_words(char *text, reading *r) {
  static const char *const expected[] = {
      "gemm",
      "a dtype such as f32 or bf16:f32",
      "nn, nt, tn or tt",
      "sizes as MxNxK or MxNxKxBATCH",
      "strict, equivalent or reduced",
      "deterministic, row-major, beta, beta=inplace, align=, lda= ... ldd=, stride_a= ... stride_d=, workspace="};
  int index = 0, number = 0; /* of the expected word, of the word read */
  char *rest = NULL;
  for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest), index++) {
    char shown[48];
    at_copy_text(shown, sizeof shown, word);
    number++;
    const bool skipped = index == 4 && !read_accuracy(word, r); /* it may be left out: strict */
    if (skipped) index++;
    const bool ok = index == 0   ? strcmp(word, "gemm") == 0
                    : index == 1 ? read_dtypes(word, r)
                    : index == 2 ? read_transposes(word, r)
                    : index == 3 ? read_sizes(word, r)
                                 : index == 4 || read_option(word, r);
    if (!ok)
      return at_fail(ATTUNE_INVALID_ARGUMENT, "word %d of the problem is \"%s\"; should be %s%s%s", number, shown,
                     skipped ? expected[4] : "", skipped ? ", or one of " : "", expected[index < 5 ? index : 5]);
  }
  if (index < 4)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "the problem ends after %d words; should go on with %s", index,
                   expected[index]);
  return ATTUNE_OK;
}

attune_status at_gemm_check_alignment(const at_gemm *g) {
  const size_t element = attune_dtype_size((attune_dtype)g->dtype_out), in = attune_dtype_size((attune_dtype)g->dtype);
  if (g->alignment >= element && g->alignment >= in) return ATTUNE_OK;
  return at_fail(ATTUNE_INVALID_ARGUMENT, "align=%d is below the size of an element; should be %zu or more",
                 g->alignment, element > in ? element : in);
}

static attune_status read_text(const char *text, reading *r, at_gemm *g) {
  char words[AT_PROBLEM_CHARS];
  bool swap = false;
  *r = (reading){.problem = ATTUNE_GEMM_PROBLEM_INIT, .use = {AT_C_NONE, AT_ALIGNMENT}};
  if (!at_copy_text(words, sizeof words, text))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "the problem's text is %zu characters long; should be shorter than %d",
                   strlen(text), AT_PROBLEM_CHARS);
  attune_status status = read_words(words, r);
  if (status == ATTUNE_OK && r->use.c == AT_C_INPLACE) { /* C is D */
    r->problem.ldc = r->problem.ldd;
    r->problem.stride_c = r->problem.stride_d;
  }
  if (status == ATTUNE_OK) status = at_gemm_normalise(&r->problem, r->use, g, &swap);
  if (status == ATTUNE_OK && (at_gemm_empty(g) || g->k == 0))
    status = at_fail(ATTUNE_INVALID_ARGUMENT, "a size of the problem is 0; should be 1 or more to be tuned");
  if (status != ATTUNE_OK) return status;
  return at_gemm_check_alignment(g);
}

attune_status at_gemm_parse(const char *text, void *problem) {
  reading r;
  return read_text(text, &r, problem);
}

attune_status attune_gemm_problem_parse(attune_gemm_problem *out, const char *text) {
  if (!out || !text) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", out ? "text" : "out");
  reading r;
  at_gemm g;
  const attune_status status = read_text(text, &r, &g);
  if (status == ATTUNE_OK) *out = r.problem;
  return status;
}

attune_status attune_gemm_problem_format(char *out, size_t size, const attune_gemm_problem *problem,
                                         const attune_gemm_operands *operands) {
  if (!out || !problem) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", out ? "problem" : "out");
  at_gemm_use use = {AT_C_NONE, AT_ALIGNMENT};
  at_gemm g;
  bool swap = false;
  attune_status status = at_gemm_normalise(problem, use, &g, &swap);
  if (status == ATTUNE_OK && operands) status = at_gemm_check_operands(problem, operands, &use);
  if (status == ATTUNE_OK && operands) status = at_gemm_normalise(problem, use, &g, &swap);
  return status == ATTUNE_OK ? at_gemm_format(&g, out, size) : status;
}
