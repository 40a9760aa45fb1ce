/* SPDX-License-Identifier: Apache-2.0
 * workload_columns.c: a workload's row to a problem. */
#include "ops/elementwise/problem/workload_columns.h"

#include <string.h>

#include "ops/elementwise/problem/problem.h"
#include "tuning/op/columns.h"

const char *const at_elementwise_columns[] = {"expression", "shape",    "dtype", "inputs", "outputs",
                                              "scalars",    "contract", "align", NULL};

attune_status at_elementwise_describe(const at_spec_words *words, char *out, size_t size) {
  at_spec spec;
  attune_status status = at_spec_read(&spec, words);
  return status == ATTUNE_OK ? attune_elementwise_problem_format(out, size, words->expression, &spec.operands) : status;
}

static const char **word_called(at_spec_words *words, const char *name) {
  const struct {
    const char *name;
    const char **word;
  } all[] = {{"expression", &words->expression}, {"shape", &words->shape},     {"dtype", &words->dtype},
             {"inputs", &words->inputs},         {"outputs", &words->outputs}, {"scalars", &words->scalars}};
  for (size_t i = 0; i < AT_COUNT(all); i++)
    if (strcmp(all[i].name, name) == 0) return all[i].word;
  return NULL;
}

static attune_status read_field(const at_column *field, at_spec_words *words, at_contract *terms) {
  bool known = false;
  const char **word = word_called(words, field->name);
  if (word) {
    *word = field->value;
    return ATTUNE_OK;
  }
  const at_op *const op = &at_elementwise_op;
  if (!at_op_knows_column(op, field->name)) return at_fail_column(&op, 1, field->name);
  return at_column_contract(field, terms, &known);
}

attune_status at_elementwise_from_fields(const at_column *fields, int count, char *out, size_t size, char *label,
                                         size_t label_size) {
  static const char *const needed[] = {"expression", "shape"};
  at_spec_words words = {0};
  at_contract terms = AT_CONTRACT_INIT;
  attune_status status = at_columns_need(at_elementwise_op.name, fields, count, needed, AT_COUNT(needed));
  for (int i = 0; i < count && status == ATTUNE_OK; i++)
    if (fields[i].value[0]) status = read_field(&fields[i], &words, &terms);
  if (status != ATTUNE_OK) return status;
  words.alignment = terms.alignment;
  words.accuracy = terms.contract.accuracy;
  status = at_elementwise_describe(&words, out, size);
  if (status == ATTUNE_OK) (void)at_copy_text(label, label_size, out);
  return status == ATTUNE_INVALID_ARGUMENT ? ATTUNE_BAD_DATA : status; /* the message stays, with its lines */
}
