/* SPDX-License-Identifier: Apache-2.0
 * workload.h: what a workload's reader must know of the operations. */
#ifndef AT_WORKLOAD_H
#define AT_WORKLOAD_H

#include <attune/workload.h>

#include "tuning/op/op.h"

typedef struct at_workload_ops {
  const at_op *const *each;
  int count;
  const at_op *unnamed; /* of rows that have neither an `op` nor a problem's text; must not be NULL */
} at_workload_ops;

/* Columns that belong to the workload, not to an operation. */
enum { AT_WORKLOAD_COLUMNS = 4 };
extern const char *const at_workload_columns[AT_WORKLOAD_COLUMNS];

/* attune_workload_read for these operations; ops.c makes that of it. */
attune_status at_workload_read(attune_workload **out, const char *path, const at_workload_ops *ops);

#endif
