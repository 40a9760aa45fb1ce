/* SPDX-License-Identifier: Apache-2.0
 * workload_columns.c: a workload's row to a problem. */
#include <string.h>

#include "ops/gemm/problem/arrays.h"
#include "ops/gemm/problem/epilogue.h"
#include "ops/gemm/problem/scaling.h"
#include "tuning/op/columns.h"

const char *const at_gemm_columns[] = {"dtype",
                                       "dtype_out",
                                       "transa",
                                       "transb",
                                       "m",
                                       "n",
                                       "k",
                                       "batch",
                                       "layout",
                                       "lda",
                                       "ldb",
                                       "ldc",
                                       "ldd",
                                       "stride_a",
                                       "stride_b",
                                       "stride_c",
                                       "stride_d",
                                       "epilogue",
                                       "scaling",
                                       "ld_aux",
                                       "ld_residual",
                                       "stride_aux",
                                       "stride_residual",
                                       "pointers",
                                       AT_CONTRACT_COLUMNS,
                                       NULL};

static attune_status read_number(const at_column *field, attune_gemm_problem *p, bool *known) {
  const at_number sizes[] = {{"m", &p->m, AT_NUMBER_SIZE},
                             {"n", &p->n, AT_NUMBER_SIZE},
                             {"k", &p->k, AT_NUMBER_SIZE},
                             {"batch", &p->batch, AT_NUMBER_BATCH}};
  at_number pitches[AT_GEMM_PITCHES];
  at_gemm_pitches(p, pitches);
  const attune_status status = at_column_number(field, sizes, AT_COUNT(sizes), known);
  return *known ? status : at_column_number(field, pitches, AT_COUNT(pitches), known);
}

static attune_status read_words(const at_column *field, attune_gemm_problem *p, bool *known) {
  static const char *const transposes[] = {"n", "t", "c"}, *const layouts[] = {"column-major", "row-major"};
  int trans_a = (int)p->trans_a, trans_b = (int)p->trans_b, layout = (int)p->layout, pointers = p->pointers;
  attune_status status = at_column_dtype(field, "dtype", AT_GEMM_DTYPES, &p->dtype, known);
  if (!*known) status = at_column_dtype(field, "dtype_out", AT_GEMM_DTYPES_OUT, &p->dtype_out, known);
  if (!*known) status = at_column_word(field, "transa", transposes, 3, &trans_a, known);
  if (!*known) status = at_column_word(field, "transb", transposes, 3, &trans_b, known);
  if (!*known) status = at_column_word(field, "layout", layouts, 2, &layout, known);
  if (!*known) status = at_column_word(field, "pointers", at_gemm_pointers_names, 3, &pointers, known);
  p->trans_a = (attune_transpose)trans_a;
  p->trans_b = (attune_transpose)trans_b;
  p->layout = (attune_layout)layout;
  p->pointers = (uint8_t)pointers;
  return status;
}

static attune_status read_field(const at_column *field, attune_gemm_problem *p, at_contract *terms) {
  bool known = false;
  attune_status status = read_number(field, p, &known);
  if (!known) status = read_words(field, p, &known);
  if (!known) status = at_gemm_epilogue_column(field, p, &known);
  if (!known) status = at_gemm_scaling_column(field, p, &known);
  if (!known) status = at_column_contract(field, terms, &known);
  if (known) return status;
  const at_op *const gemm = &at_gemm_op;
  return at_fail_column(&gemm, 1, field->name);
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

attune_status at_gemm_from_fields(const at_column *fields, int count, char *out, size_t size, char *label,
                                  size_t label_size) {
  static const char *const needed[] = {"dtype", "m", "n", "k"};
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  at_contract terms = AT_CONTRACT_INIT;
  attune_status status = at_columns_need(at_gemm_op.name, fields, count, needed, AT_COUNT(needed));
  for (int i = 0; i < count && status == ATTUNE_OK; i++)
    if (fields[i].value[0]) status = read_field(&fields[i], &p, &terms); /* an empty one keeps its default */
  if (status != ATTUNE_OK) return status;
  p.contract = terms.contract;
  const at_gemm_use use = {.c = AT_C_NONE, .alignment = terms.alignment};
  at_gemm g;
  bool swap = false;
  status = at_gemm_normalise(&p, use, &g, &swap);
  if (status == ATTUNE_OK) status = at_gemm_check_alignment(&g);
  if (status == ATTUNE_OK) status = at_gemm_format(&g, out, size);
  if (status == ATTUNE_OK) write_label(&p, use, out, label, label_size);
  return status;
}
