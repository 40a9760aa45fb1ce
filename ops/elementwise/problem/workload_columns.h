/* SPDX-License-Identifier: Apache-2.0
 * workload_columns.h: a workload's row to a problem: slots of at_elementwise_op. */
#ifndef AT_ELEMENTWISE_WORKLOAD_COLUMNS_H
#define AT_ELEMENTWISE_WORKLOAD_COLUMNS_H

#include "ops/elementwise/problem/spec.h"

extern const char *const at_elementwise_columns[];
attune_status at_elementwise_from_fields(const at_column *fields, int count, char *out, size_t size, char *label,
                                         size_t label_size);

/* Converts columns or options to a problem's text. */
attune_status at_elementwise_describe(const at_spec_words *words, char *out, size_t size);

#endif
