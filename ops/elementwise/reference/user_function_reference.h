/* SPDX-License-Identifier: Apache-2.0
 * user_function_reference.h: what verification compares with where the problem is a function of the program's own: nobody but the
 * device can compute it, so the results are those of its plainest kernel there, bit for bit but for the bits of a NaN. */
#ifndef AT_ELEMENTWISE_USER_FUNCTION_REFERENCE_H
#define AT_ELEMENTWISE_USER_FUNCTION_REFERENCE_H

#include "ops/elementwise/problem/problem.h"

typedef struct at_user_function_reference at_user_function_reference;

/* Keeps the inputs at `pointers`. The stream outlives it. Errors: those of the kernel's compilation, OUT_OF_MEMORY. */
attune_status at_user_function_reference_create(at_user_function_reference **out, const at_elementwise *problem, attune_device *device,
                                      attune_stream *stream, void *const pointers[AT_MAX_BUFFERS]);

/* With the inputs as they were, or with `contents` of a buffer in its stead where that is not NULL. *max_error: 0, or
 * infinity. */
attune_status at_user_function_reference_compare(at_user_function_reference *reference, char *const contents[AT_MAX_BUFFERS],
                                       const double *scalars, const at_outputs *outputs, double *max_error);

/* What buffer `i` held, in host memory; NULL: it is no input. */
const char *at_user_function_reference_input(const at_user_function_reference *reference, int i);
void at_user_function_reference_destroy(at_user_function_reference *reference);

#endif
