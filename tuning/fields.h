/* SPDX-License-Identifier: Apache-2.0
 * fields.h: reads the columns of a workload's row, for the from_fields of any operation. Each reader takes a field that
 * is its own and says so by *known, which starts as false; messages begin with the column's name. Words are read in
 * capitals too. */
#ifndef AT_FIELDS_H
#define AT_FIELDS_H

#include "tuning/problem_text.h"

bool at_op_knows_column(const at_op *op, const char *name);

/* BAD_DATA: none of the operations knows the column; the message has all that they know. */
attune_status at_fail_column(const at_op *const *ops, int count, const char *name);

/* BAD_DATA unless each of these columns is there and not empty. */
attune_status at_fields_need(const char *operation, const at_field *fields, int count, const char *const *names,
                             int name_count);

/* One of `numbers` by its name. */
attune_status at_field_number(const at_field *field, const at_number *numbers, size_t count, bool *known);

/* What any operation knows. */
#define AT_TERM_COLUMNS "contract", "deterministic", "align", "workspace"
attune_status at_field_term(const at_field *field, at_terms *terms, bool *known);

/* The column `name` with one of `dtypes`: bits of AT_DTYPE_BIT. */
attune_status at_field_dtype(const at_field *field, const char *name, unsigned dtypes, attune_dtype *out, bool *known);

/* The column `name` with one of `words`; *out is its position among them. */
attune_status at_field_word(const at_field *field, const char *name, const char *const *words, int count, int *out,
                            bool *known);

#endif
