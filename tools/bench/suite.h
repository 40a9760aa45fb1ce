/* SPDX-License-Identifier: Apache-2.0
 * suite.h: the inside of a list of cases. A case of a program is a function that is called in a loop; one of a workload
 * has a loop of its own, so that what calls it costs next to nothing. */
#ifndef AT_BENCH_SUITE_H
#define AT_BENCH_SUITE_H

#include <attune/tools.h>

#include <stdbool.h>

#include "tuning/op/random_data.h"

/* A case. What `own` leads to may lack; it is that of cases of a workload. */
typedef struct at_bench_entry {
  attune_bench_case shown; /* its name is the entry's */
  bool inside;             /* its work runs in the calling thread, on the device's default stream: the clock times it */
  /* Calls number from to to-1; NULL: run, so many times. */
  attune_status (*calls)(void *arg, attune_stream *stream, int from, int to);
  /* What the next set_up draws, where operands lie, it draws from this number. NULL: it draws nothing. */
  void (*seed)(void *arg, uint64_t seed);
  /* Once it is set up: after so many calls operands come again, by then gone from the caches; 0: sooner. NULL: 0. */
  int (*turn)(void *arg);
  void (*release)(void *arg); /* with the bench; NULL: nothing */
  unsigned copies;            /* how many names were made of this one, by a number behind it */
} at_bench_entry;

struct attune_bench {
  at_bench_entry *entries;
  size_t count, capacity;
  size_t *slots, slot_count; /* by hash of the name: 1 + the entry's index; 0: free */
  at_random *random;         /* what operands of workloads are filled with, made at first use; NULL: not yet */
};

/* Adds a copy of `entry`, whose name may be taken already: then " #2" or so follows it. The caller releases what it
 * leads to after a failure only. OUT_OF_MEMORY. */
attune_status at_bench_add(attune_bench *bench, const at_bench_entry *entry);

/* Takes the entries from `count` on away. */
void at_bench_cut(attune_bench *bench, size_t count);

#define AT_BENCH_NAME_CHARS 200 /* with the end */

/* Type of a case's flops: "f32", "f32-reduced". */
#define AT_BENCH_ARITHMETIC_CHARS 16
void at_bench_arithmetic(char out[AT_BENCH_ARITHMETIC_CHARS], const attune_bench_case *c);

#endif
