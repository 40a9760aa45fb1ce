/* SPDX-License-Identifier: Apache-2.0
 * interpret_libmvec.h: the C library's functions of whole vectors (glibc's libmvec), opened when a program first needs
 * one. Those that are used are within 2 units in the last place on every input that was tried (docs/accuracy.md). */
#ifndef AT_INTERPRET_LIBMVEC_H
#define AT_INTERPRET_LIBMVEC_H

#include <stdbool.h>

/* The function `name`, as the vector ABI of x86-64 writes it (_ZGVeN8v_log), into *function_out, a pointer to a function
 * pointer; false, with NULL there: this machine lacks it. Any thread. */
bool at_libmvec_function(const char *name, void *function_out);

#endif
