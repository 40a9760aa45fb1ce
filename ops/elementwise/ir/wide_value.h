/* SPDX-License-Identifier: Apache-2.0
 * wide_value.h: one number of any dtype in the widest arithmetic there is, and its way to and from memory. Slow and
 * plain: what verification and tests compare with.
 *
 * Conversions, here and in all implementations:
 * - to a floating type: rounded once, to nearest even; overflow gives infinity, in f8e4m3, which has none, NaN.
 * - floating to an integer: the fraction is cut off; what is out of range becomes the nearest integer in range; NaN is
 * 0.
 * - integer to integer: the low bits, as in C.
 * - to bool: not 0; NaN is true. From complex to what is not: the real part. */
#ifndef AT_WIDE_VALUE_H
#define AT_WIDE_VALUE_H

#include "ops/elementwise/ir/expression.h"
#include "src/base/dtype.h"

typedef struct at_wide_value {
  long double re, im; /* of a floating or complex value; im is 0 for a floating one */
  int64_t integer;    /* of an integer or bool; u64 as its bits */
} at_wide_value;

/* The element of `dtype` at `memory`. */
at_wide_value at_wide_value_load(attune_dtype dtype, const void *memory);

/* `value`, which is of `dtype`, to memory, rounded to it. */
void at_wide_value_store(attune_dtype dtype, void *memory, at_wide_value value);

/* A value of dtype `from` in dtype `to`, rounded to it. */
at_wide_value at_wide_value_cast(attune_dtype to, attune_dtype from, at_wide_value value);

/* Rounded to a floating or complex dtype; an integer to its width. */
at_wide_value at_wide_value_round(attune_dtype dtype, at_wide_value value);

/* A constant or scalar: `kind` says which of its fields count, as in at_operand_name. */
at_wide_value at_wide_value_of_constant(attune_dtype dtype, attune_dtype kind, at_constant number);

/* The low bits of `integer` as a value of an integer dtype or bool. */
int64_t at_integer_wrap(attune_dtype dtype, int64_t integer);

/* Bits of an integer dtype; 1 for bool. */
int at_integer_bits(attune_dtype dtype);

#endif
