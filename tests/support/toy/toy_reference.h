/* SPDX-License-Identifier: Apache-2.0
 * toy_reference.h: private to toy_*.c: the toy operation's texts (toy_text.c), what is right (toy_reference.c), and
 * where operands lay (toy_launch.c). */
#ifndef AT_TEST_TOY_REFERENCE_H
#define AT_TEST_TOY_REFERENCE_H

#include "tests/support/toy/toy_op.h"

attune_status toy_format(const void *problem, char *out, size_t size);
attune_status toy_parse(const char *text, void *problem);
attune_status toy_family(const void *problem, char *out, size_t size);
extern const char *const toy_columns[];
attune_status toy_from_fields(const at_column *fields, int count, char *out, size_t size, char *label,
                              size_t label_size);

attune_status toy_reference_make(void **out, const void *problem, attune_stream *stream,
                                 void *const pointers[AT_MAX_BUFFERS]);
attune_status toy_reference_compare(void *reference, const double *scalars, const at_outputs *outputs,
                                    double *max_error);
void toy_reference_destroy(void *reference);

int toy_special_count(const void *problem);
int toy_special_contents(const void *problem, int which, int buffer);
void toy_special_plant(const void *problem, int which, int buffer, void *bytes);
void toy_special_scalars(const void *problem, int which, double *scalars);
attune_status toy_special_compare(void *reference, int which, const at_outputs *outputs, uint32_t *lost);
const char *toy_special_name(int bit);

int toy_case_count(void);
bool toy_case_at(int index, void *problem);
void toy_oracle(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars);

void toy_forget_places(void);

#endif
