/* SPDX-License-Identifier: Apache-2.0
 * reference.h: the trusted result of a problem, for its verification, and special values among its inputs: slots of
 * at_elementwise_op. */
#ifndef AT_ELEMENTWISE_REFERENCE_H
#define AT_ELEMENTWISE_REFERENCE_H

#include "ops/elementwise/problem/problem.h"

attune_status at_elementwise_reference_create(void **out, const void *problem, attune_device *device,
                                              attune_stream *stream, void *const pointers[AT_MAX_BUFFERS]);
attune_status at_elementwise_reference_compare(void *reference, const double *scalars, const at_outputs *outputs,
                                               double *max_error);
void at_elementwise_reference_destroy(void *reference);

int at_elementwise_special_count(const void *problem);
int at_elementwise_special_contents(const void *problem, int which, int buffer);
void at_elementwise_special_plant(const void *problem, int which, int buffer, void *bytes);
void at_elementwise_special_scalars(const void *problem, int which, double *scalars);
attune_status at_elementwise_special_compare(void *reference, int which, const at_outputs *outputs, uint32_t *lost);
const char *at_elementwise_special_name(int bit);

/* user_function_reference.c: what verification compares with where the problem is a function of the program's own:
 * nobody but the device can compute it, so the results are those of its plainest kernel there, bit for bit but for the
 * bits of a NaN. */
typedef struct at_user_function_reference at_user_function_reference;

/* Keeps the inputs at `pointers`. The stream outlives it. Errors: those of the kernel's compilation, OUT_OF_MEMORY. */
attune_status at_user_function_reference_create(at_user_function_reference **out, const at_elementwise *problem,
                                                attune_device *device, attune_stream *stream,
                                                void *const pointers[AT_MAX_BUFFERS]);

/* With the inputs as they were, or with `contents` of a buffer in its stead where that is not NULL. *max_error: 0, or
 * infinity. */
attune_status at_user_function_reference_compare(at_user_function_reference *reference,
                                                 char *const contents[AT_MAX_BUFFERS], const double *scalars,
                                                 const at_outputs *outputs, double *max_error);

/* Former contents of buffer `i`, in host memory; NULL: it is no input. */
const char *at_user_function_reference_input(const at_user_function_reference *reference, int i);
void at_user_function_reference_destroy(at_user_function_reference *reference);

#endif
