/* SPDX-License-Identifier: Apache-2.0
 * fill.h: the host's portable mode, built for several instruction sets; all give the same bits. */
#ifndef AT_RANDOM_FILL_H
#define AT_RANDOM_FILL_H

#include "src/random/call.h"

typedef struct at_fill_isa {
  const char *name;
  /* Philox blocks low, low + 1, ... at `high` into words[4 * count]. */
  void (*philox)(at_u32 *words, at_u64 seed, at_u64 low, at_u64 high, size_t count);
  /* The samples of blocks first, first + 1, ... of the call (whose state is resolved) into out: whole blocks. Not for
   * permutations. */
  void (*fill)(const at_random_call *call, at_u64 first, size_t count, void *out);
} at_fill_isa;

extern const at_fill_isa at_fill_portable;
#if defined(__x86_64__)
extern const at_fill_isa at_fill_avx2;   /* AVX2, FMA, F16C */
extern const at_fill_isa at_fill_avx512; /* those, and AVX-512 F, BW, DQ, VL */
#endif

/* The fastest on this CPU, and all that run on it, ended by NULL. */
const at_fill_isa *at_fill_best(void);
void at_fill_all(const at_fill_isa *out[4]);

/* The medians of the slices of 16-bit normal samples; made at the first call. */
const float *at_normal_slices(void);

/* The table of logarithms of normal f32 samples; made at the first call. */
const at_log_row *at_log_rows(void);

#endif
