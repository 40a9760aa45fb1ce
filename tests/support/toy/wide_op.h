/* SPDX-License-Identifier: Apache-2.0
 * wide_op.h: an operation at the bounds of op.h: problems of different lengths, nearly 4 KB, with texts of up to
 * 4,000 characters; 16 inputs and 8 outputs; operands of 640 bytes. Its recipe, a word of letters, digits, '+' and
 * '*', says how the inputs are added up:
 *     y_j[i] = sum over k of (recipe[(k + 7 j) % length] % 32) x_k[i],     all of it exact in f64
 * With `seal`, the last word of its operands, which launch checks, it sees whether all of them were copied.
 *
 * Implementations "base", the default, and "spin", with the configurations of the test; "ns=1000" is what a call
 * takes. */
#ifndef AT_TEST_WIDE_OP_H
#define AT_TEST_WIDE_OP_H

#include <stdatomic.h>

#include "tests/ops/op_test.h"
#include "tuning/dispatch/public_call.h"

enum {
  WIDE_ALIGNMENT = 128,
  WIDE_INPUTS = 16,
  WIDE_OUTPUTS = 8,
  WIDE_HEAD = 16,
  WIDE_MOST = 3960, /* letters of a recipe */
  WIDE_BYTES = WIDE_HEAD + WIDE_MOST,
  WIDE_ROOM = 55
};

typedef struct wide {
  int32_t elements;
  uint16_t letters;
  uint8_t inputs, outputs;
  uint8_t alignment, zero[7];
  char recipe[]; /* zeros up to a multiple of 8 */
} wide;

typedef struct wide_operands {
  const double *x[WIDE_INPUTS];
  double *y[WIDE_OUTPUTS];
  uint64_t room[WIDE_ROOM];
  uint64_t seal;
} wide_operands;
_Static_assert(sizeof(wide) == WIDE_HEAD && sizeof(wide_operands) == AT_OPERANDS_BYTES && WIDE_BYTES % 8 == 0 &&
                   WIDE_BYTES <= AT_PROBLEM_BYTES,
               "at the bounds, and not beyond");

extern at_op wide_op;
extern const at_op_test wide_op_test;
extern const at_op *const wide_ops[1];
extern at_implementation wide_base, wide_spin;
extern const char *const *wide_spins; /* spin's configurations, up to NULL */
extern _Atomic int wide_launches, wide_unsealed;
extern _Atomic int wide_alive; /* plans */

/* "wide ELEMENTS IN:OUT strict RECIPE" into out, with a recipe of so many letters that `number` makes. */
const char *wide_text(char out[AT_PROBLEM_CHARS], int elements, int letters, int number);
at_key wide_key(const char *problem, const attune_device *device);
/* As it is at the start of a program. */
void wide_reset(void);

/* wide_numbers.c */
void wide_compute(const wide *g, const wide_operands *operands);
attune_status wide_reference_create(void **out, const void *problem, attune_device *device, attune_stream *stream,
                                    void *const pointers[AT_MAX_BUFFERS]);
attune_status wide_reference_compare(void *reference, const double *scalars, const at_outputs *outputs,
                                     double *max_error);
void wide_reference_destroy(void *reference);
void wide_oracle(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars);

/* wide_text.c */
attune_status wide_format(const void *problem, char *out, size_t size);
attune_status wide_parse(const char *text, void *problem);
attune_status wide_family(const void *problem, char *out, size_t size);
attune_status wide_from_fields(const at_column *fields, int count, char *out, size_t size, char *label,
                               size_t label_size);
extern const char *const wide_columns[];

#endif
