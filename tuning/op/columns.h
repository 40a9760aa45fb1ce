/* SPDX-License-Identifier: Apache-2.0
 * columns.h: reads the columns of a workload's row, for the from_fields of any operation. Each reader takes a field
 * that is its own and says so by *known, which starts as false; messages begin with the column's name. Words are read
 * in capitals too. */
#ifndef AT_COLUMNS_H
#define AT_COLUMNS_H

#include "tuning/op/problem_text.h"

bool at_op_knows_column(const at_op *op, const char *name);

/* BAD_DATA: none of the operations knows the column; the message has all that they know. */
attune_status at_fail_column(const at_op *const *ops, int count, const char *name);

/* BAD_DATA unless each of these columns is there and not empty. */
attune_status at_columns_need(const char *operation, const at_column *fields, int count, const char *const *names,
                              int name_count);

/* One of `numbers` by its name. */
attune_status at_column_number(const at_column *field, const at_number *numbers, size_t count, bool *known);

/* Columns of every operation. */
#define AT_CONTRACT_COLUMNS "contract", "deterministic", "align", "workspace"
attune_status at_column_contract(const at_column *field, at_contract *terms, bool *known);

/* The column `name` with one of `dtypes`: bits of AT_DTYPE_BIT. */
attune_status at_column_dtype(const at_column *field, const char *name, unsigned dtypes, attune_dtype *out,
                              bool *known);

/* The column `name` with one of `words`; *out is its position among them. */
attune_status at_column_word(const at_column *field, const char *name, const char *const *words, int count, int *out,
                             bool *known);

#endif
