/* SPDX-License-Identifier: Apache-2.0
 * precompile.h: kernels compiled ahead of the problems that will be measured, by threads of low priority, and which
 * problem is measured next. attune/tools.h has the contract. */
#ifndef AT_PRECOMPILE_H
#define AT_PRECOMPILE_H

#include <attune/tools.h>

#include "tuning/tuner/tuner.h"

/* How many threads compile: one a CPU but for the one that measures, no more than the free memory (0: not known) is
 * enough for, and no more than there is work; at least 1. */
int at_precompile_threads(int cpus, uint64_t free_bytes, size_t work);

/* In what order kernels are wanted. */
typedef enum at_precompile_rank {
  AT_PRECOMPILE_PROVEN, /* the default's, and what is a winner in a database */
  AT_PRECOMPILE_BEST,   /* the first guesses of each implementation */
  AT_PRECOMPILE_REST,
  AT_PRECOMPILE_RANKS
} at_precompile_rank;

typedef struct at_precompile_kernel {
  const at_implementation *implementation;
  at_configuration configuration;
  at_precompile_rank rank;
} at_precompile_kernel;

/* precompile_list.c: what is a winner in the tuner's databases, of whatever problem: configurations that have proven
 * good. */
typedef struct at_proven at_proven;
at_proven *at_proven_read(attune_tuner *tuner); /* NULL: none */
void at_proven_free(at_proven *proven);

/* precompile_list.c: the kernels that a search for the problem may want on the device, by rank, into *out, to be freed;
 * their number. `text` is the problem's, folded. Gives the device no work. */
size_t at_precompile_list(at_precompile_kernel **out, const at_op *op, const void *problem, const char *text,
                          attune_device *device, const at_proven *proven);

#endif
