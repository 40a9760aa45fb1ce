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

#endif
