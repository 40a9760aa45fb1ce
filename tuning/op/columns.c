/* SPDX-License-Identifier: Apache-2.0
 * columns.c: see columns.h. */
#include "tuning/op/columns.h"

#include <string.h>
#include <strings.h>

/* BAD_DATA: "m is "x"; should be SHOULD". */
static attune_status fail_field(const at_column *field, const char *should) {
  if (strspn(field->value, "0123456789") == strlen(field->value) && at_text_too_large(field->value))
    return at_fail(ATTUNE_BAD_DATA, "%s is \"%.40s\", which is too large; should be at most 9223372036854775807",
                   field->name, field->value);
  return at_fail(ATTUNE_BAD_DATA, "%s is \"%.40s\"; should be %s", field->name, field->value, should);
}

/* "a, b LAST c" */
static void list(const char *const *words, int count, const char *last, char *out, size_t size) {
  size_t at = 0;
  out[0] = '\0';
  for (int i = 0; i < count; i++)
    at_append(out, size, &at, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : last, words[i]);
}

bool at_op_knows_column(const at_op *op, const char *name) {
  for (const char *const *known = op->problem->columns; *known; known++)
    if (strcmp(*known, name) == 0) return true;
  return false;
}

attune_status at_fail_column(const at_op *const *ops, int count, const char *name) {
  char all[400] = "", names[64] = "";
  size_t at = 0, named = 0;
  for (int i = 0; i < count; i++) {
    at_append(names, sizeof names, &named, "%s%s", i ? ", " : "", ops[i]->name);
    if (count > 1) at_append(all, sizeof all, &at, "%s%s: ", i ? "; " : "", ops[i]->name);
    for (const char *const *known = ops[i]->problem->columns; *known; known++)
      at_append(all, sizeof all, &at, "%s%s", known == ops[i]->problem->columns ? "" : ", ", *known);
  }
  return at_fail(ATTUNE_BAD_DATA, "\"%.40s\" is not a column of %s; should be name, op, count or one of %s", name,
                 names, all);
}

attune_status at_columns_need(const char *operation, const at_column *fields, int count, const char *const *names,
                              int name_count) {
  char all[256];
  for (int i = 0; i < name_count; i++) {
    bool there = false;
    for (int j = 0; j < count; j++) there = there || (strcmp(fields[j].name, names[i]) == 0 && fields[j].value[0]);
    if (there) continue;
    list(names, name_count, " and ", all, sizeof all);
    return at_fail(ATTUNE_BAD_DATA, "column %s is missing; %s needs %s", names[i], operation, all);
  }
  return ATTUNE_OK;
}

attune_status at_column_number(const at_column *field, const at_number *numbers, size_t count, bool *known) {
  for (size_t i = 0; i < count; i++) {
    const at_number *number = &numbers[i];
    if (strcmp(field->name, number->name) != 0) continue;
    *known = true;
    if (number->kind == AT_NUMBER_STRIDE && strcasecmp(field->value, "broadcast") == 0) {
      *number->value = AT_BROADCAST;
      return ATTUNE_OK;
    }
    const bool size = number->kind == AT_NUMBER_SIZE;
    if (!at_parse_i64(number->value, field->value) || *number->value < (size ? 1 : 0))
      return fail_field(field, size                              ? "a whole number of 1 or more"
                               : number->kind == AT_NUMBER_BATCH ? "a whole number of 1 or more, or 0 for one"
                                                                 : "a whole number of 1 or more, or 0 for packed");
    return ATTUNE_OK;
  }
  return ATTUNE_OK;
}

attune_status at_column_word(const at_column *field, const char *name, const char *const *words, int count, int *out,
                             bool *known) {
  char all[256];
  if (strcmp(field->name, name) != 0) return ATTUNE_OK;
  *known = true;
  for (int i = 0; i < count; i++)
    if (strcasecmp(field->value, words[i]) == 0) {
      *out = i;
      return ATTUNE_OK;
    }
  list(words, count, " or ", all, sizeof all);
  return fail_field(field, all);
}

attune_status at_column_dtype(const at_column *field, const char *name, unsigned dtypes, attune_dtype *out,
                              bool *known) {
  const char *names[AT_DTYPE_LAST];
  attune_dtype each[AT_DTYPE_LAST];
  int count = 0, found = -1;
  if (strcmp(field->name, name) == 0 && at_text_dtype(field->value, strlen(field->value), dtypes, out)) {
    *known = true; /* also by the names that others have for it */
    return ATTUNE_OK;
  }
  for (int dtype = ATTUNE_F64; dtype <= AT_DTYPE_LAST; dtype++)
    if (dtypes & AT_DTYPE_BIT(dtype)) {
      each[count] = (attune_dtype)dtype;
      names[count++] = attune_dtype_name((attune_dtype)dtype);
    }
  const attune_status status = at_column_word(field, name, names, count, &found, known);
  if (status == ATTUNE_OK && found >= 0) *out = each[found];
  return status;
}

static attune_status read_alignment(const at_column *field, uint8_t *out) {
  int64_t bytes = 0;
  if (!at_parse_i64(&bytes, field->value) || bytes < 1 || bytes > AT_ALIGNMENT || (bytes & (bytes - 1)))
    return fail_field(field, "a power of two from 1 to 128: the alignment of every operand's address in bytes");
  *out = (uint8_t)bytes;
  return ATTUNE_OK;
}

static attune_status read_workspace(const at_column *field, size_t *out) {
  int64_t bytes = 0;
  if (!at_parse_i64(&bytes, field->value) || bytes < 1) return fail_field(field, "a whole number of bytes, 1 or more");
  *out = (size_t)bytes;
  return ATTUNE_OK;
}

attune_status at_column_contract(const at_column *field, at_contract *terms, bool *known) {
  static const char *const accuracies[] = {"strict", "equivalent", "reduced"}, *const no_or_yes[] = {"0", "1"};
  const char *value = field->value; /* spreadsheets write TRUE and FALSE */
  const at_column flag = {field->name,
                          strcasecmp(value, "true") == 0    ? "1"
                          : strcasecmp(value, "false") == 0 ? "0"
                                                            : value,
                          field->column};
  if ((*known = strcmp(field->name, "align") == 0)) return read_alignment(field, &terms->alignment);
  if ((*known = strcmp(field->name, "workspace") == 0)) return read_workspace(field, &terms->contract.workspace_cap);
  int word = (int)terms->contract.accuracy;
  attune_status status = at_column_word(field, "contract", accuracies, 3, &word, known);
  terms->contract.accuracy = (attune_accuracy)word;
  if (!*known) status = at_column_word(&flag, "deterministic", no_or_yes, 2, &terms->contract.deterministic, known);
  return status;
}
