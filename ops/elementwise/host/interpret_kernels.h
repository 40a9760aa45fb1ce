/* SPDX-License-Identifier: Apache-2.0
 * interpret_kernels.h: the interpreter's loops: one for each function and dtype, and for each conversion. Built for
 * several instruction sets from the same text. */
#ifndef AT_INTERPRET_KERNELS_H
#define AT_INTERPRET_KERNELS_H

#include "ops/elementwise/ir/expression.h"

#include <stdbool.h>

typedef struct at_interpret_isa at_interpret_isa;

/* out[i] = f(x[i], y[i], z[i]) for i < n; arguments that f lacks point to x too. out may be the very memory of an
 * argument whose elements have the same size; otherwise nothing overlaps. */
typedef void (*at_kernel)(void *out, const void *x, const void *y, const void *z, size_t n);

struct at_interpret_isa {
  const char *name;
  /* The loop of a function whose (last) argument has `dtype`; NULL: the dtype lacks it, or it is in at_libm_kernel.
   * Half and 8-bit floats have none: they are converted first. */
  at_kernel (*function)(at_function function, attune_dtype dtype);
  /* The loop of a conversion; NULL: none in one step. */
  at_kernel (*convert)(attune_dtype to, attune_dtype from);
  void (*stream)(void *to, const void *from, size_t bytes); /* a copy that writes past the caches */
  void (*fence)(void);                                      /* after the last stream: others may see what it wrote */
};

extern const at_interpret_isa at_interpret_portable;
#if defined(__x86_64__)
extern const at_interpret_isa at_interpret_avx2;   /* AVX2, FMA, F16C */
extern const at_interpret_isa at_interpret_avx512; /* those, and AVX-512 F, BW, DQ, VL */
#endif

/* Loops that call the C library for each element, the same for all instruction sets. NULL: none. */
at_kernel at_libm_kernel(at_function function, attune_dtype dtype);

/* The C library's functions of whole vectors (glibc's libmvec), opened when a program first needs one. Those that are
 * used are within 2 units in the last place on every input that was tried (docs/accuracy.md). The function `name`, as
 * the vector ABI of x86-64 writes it (_ZGVeN8v_log), into *function_out, a pointer to a function pointer; false, with
 * NULL there: this machine lacks it. Any thread. */
bool at_libmvec_function(const char *name, void *function_out);

#endif
