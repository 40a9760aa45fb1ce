/* SPDX-License-Identifier: Apache-2.0
 * fields.c: a workload's row to a problem. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ops/gemm/problem.h"

static attune_status bad(const at_field *field, const char *should) {
  return at_fail(ATTUNE_BAD_DATA, "%s is \"%.40s\"; should be %s", field->name, field->value, should);
}

/* One of `words`, which are numbered from `first`. */
static bool word_of(const char *value, const char *const *words, int count, int first, int *out) {
  for (int i = 0; i < count; i++)
    if (strcasecmp(value, words[i]) == 0) {
      *out = first + i;
      return true;
    }
  return false;
}

static attune_status read_number(const at_field *field, attune_gemm_problem *p, bool *known) {
  const struct {
    const char *name;
    int64_t *value;
    bool size;
  } numbers[] = {{"m", &p->m, true},
                 {"n", &p->n, true},
                 {"k", &p->k, true},
                 {"batch", &p->batch, true},
                 {"lda", &p->lda, false},
                 {"ldb", &p->ldb, false},
                 {"ldc", &p->ldc, false},
                 {"ldd", &p->ldd, false},
                 {"stride_a", &p->stride_a, false},
                 {"stride_b", &p->stride_b, false},
                 {"stride_c", &p->stride_c, false},
                 {"stride_d", &p->stride_d, false}};
  for (size_t i = 0; i < AT_COUNT(numbers); i++) {
    if (strcmp(field->name, numbers[i].name) != 0) continue;
    *known = true;
    if (i >= 8 && strcmp(field->value, "broadcast") == 0) {
      *numbers[i].value = ATTUNE_BROADCAST;
      return ATTUNE_OK;
    }
    if (!at_parse_i64(numbers[i].value, field->value) || *numbers[i].value < (numbers[i].size ? 1 : 0))
      return bad(field, numbers[i].size ? "a whole number of 1 or more" : "a whole number, 0 for packed");
    return ATTUNE_OK;
  }
  return ATTUNE_OK;
}

static attune_status read_alignment(const at_field *field, at_gemm_use *use) {
  int64_t bytes = 0;
  if (!at_parse_i64(&bytes, field->value) || bytes < 1 || bytes > AT_ALIGNMENT || (bytes & (bytes - 1)))
    return bad(field, "a power of two from 1 to 128, the bytes that every operand's address is a multiple of");
  use->alignment = (uint8_t)bytes;
  return ATTUNE_OK;
}

static attune_status read_field(const at_field *field, attune_gemm_problem *p, at_gemm_use *use) {
  static const char *const dtypes[] = {"f64", "f32", "f16", "bf16"}, *const transposes[] = {"n", "t"},
                           *const accuracies[] = {"strict", "equivalent", "reduced"},
                           *const layouts[] = {"column-major", "row-major"};
  int word = 0;
  bool known = false;
  const attune_status status = read_number(field, p, &known);
  if (known || status != ATTUNE_OK) return status;
  if (strcmp(field->name, "align") == 0) return read_alignment(field, use);
  if (strcmp(field->name, "dtype") == 0 || strcmp(field->name, "dtype_out") == 0) {
    if (!word_of(field->value, dtypes, 4, ATTUNE_F64, &word)) return bad(field, "f64, f32, f16 or bf16");
    *(field->name[5] ? &p->dtype_out : &p->dtype) = (attune_dtype)word;
  } else if (strcmp(field->name, "transa") == 0 || strcmp(field->name, "transb") == 0) {
    if (!word_of(field->value, transposes, 2, ATTUNE_N, &word)) return bad(field, "n or t");
    *(field->name[5] == 'a' ? &p->trans_a : &p->trans_b) = (attune_transpose)word;
  } else if (strcmp(field->name, "contract") == 0) {
    if (!word_of(field->value, accuracies, 3, ATTUNE_STRICT, &word)) return bad(field, "strict, equivalent or reduced");
    p->contract.accuracy = (attune_accuracy)word;
  } else if (strcmp(field->name, "layout") == 0) {
    if (!word_of(field->value, layouts, 2, ATTUNE_COLUMN_MAJOR, &word)) return bad(field, "column-major or row-major");
    p->layout = (attune_layout)word;
  } else {
    return at_fail(ATTUNE_BAD_DATA,
                   "%.40s is a column that gemm does not know; should be dtype, dtype_out, contract, layout, transa, "
                   "transb, m, n, k, batch, align, lda, ldb, ldc, ldd or stride_a ... stride_d",
                   field->name);
  }
  return ATTUNE_OK;
}

/* A row-major problem as its caller wrote it; sizes that only fit row-major leave the stored text. */
static void write_label(const attune_gemm_problem *p, at_gemm_use use, const char *text, char *label, size_t size) {
  attune_gemm_problem same = *p;
  at_gemm g;
  bool swap = false;
  same.layout = ATTUNE_COLUMN_MAJOR;
  if (p->layout == ATTUNE_ROW_MAJOR && at_gemm_normalise(&same, use, &g, &swap) == ATTUNE_OK &&
      at_gemm_format(&g, label, size) == ATTUNE_OK) {
    size_t at = strlen(label);
    if (at_append(label, size, &at, " row-major")) return;
  }
  at_copy_text(label, size, text);
}

attune_status at_gemm_from_fields(const at_field *fields, int count, char *out, size_t size, char *label,
                                  size_t label_size) {
  static const char *const needed[] = {"dtype", "m", "n", "k"};
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  at_gemm_use use = {AT_C_NONE, AT_ALIGNMENT};
  for (size_t i = 0; i < AT_COUNT(needed); i++) {
    bool there = false;
    for (int j = 0; j < count; j++) there = there || strcmp(fields[j].name, needed[i]) == 0;
    if (!there) return at_fail(ATTUNE_BAD_DATA, "column %s is missing; gemm needs dtype, m, n and k", needed[i]);
  }
  for (int i = 0; i < count; i++) {
    if (!fields[i].value[0]) continue; /* an empty optional field keeps its default */
    const attune_status status = read_field(&fields[i], &p, &use);
    if (status != ATTUNE_OK) return status;
  }
  if (p.m == 0 || p.n == 0 || p.k == 0)
    return at_fail(ATTUNE_BAD_DATA, "%s is empty; should be a whole number of 1 or more",
                   !p.m   ? "m"
                   : !p.n ? "n"
                          : "k");
  at_gemm g;
  bool swap = false;
  attune_status status = at_gemm_normalise(&p, use, &g, &swap);
  if (status == ATTUNE_OK) status = at_gemm_check_alignment(&g);
  if (status == ATTUNE_OK) status = at_gemm_format(&g, out, size);
  if (status == ATTUNE_OK) write_label(&p, use, out, label, label_size);
  return status;
}
