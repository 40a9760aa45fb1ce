/* SPDX-License-Identifier: Apache-2.0
 * datum.h: one number of any dtype in the widest arithmetic there is, and its way to and from memory. Slow and plain: what
 * verification and tests compare with.
 *
 * Conversions, here and in all implementations:
 * - to a floating type: rounded once, to nearest even; overflow gives infinity, in f8e4m3, which has none, NaN.
 * - floating to an integer: the fraction is cut off; what is out of range becomes the nearest integer in range; NaN is 0.
 * - integer to integer: the low bits, as in C.
 * - to bool: not 0; NaN is true. From complex to what is not: the real part. */
#ifndef AT_DATUM_H
#define AT_DATUM_H

#include "ops/elementwise/expression.h"
#include "src/dtype.h"

typedef struct at_datum {
  long double re, im; /* of a floating or complex value; im is 0 for a floating one */
  int64_t integer;    /* of an integer or bool; u64 as its bits */
} at_datum;

/* The element of `dtype` at `memory`. */
at_datum at_datum_load(attune_dtype dtype, const void *memory);

/* `value`, which is of `dtype`, to memory, rounded to it. */
void at_datum_store(attune_dtype dtype, void *memory, at_datum value);

/* A value of dtype `from` in dtype `to`, rounded to it. */
at_datum at_datum_cast(attune_dtype to, attune_dtype from, at_datum value);

/* Rounded to a floating or complex dtype; an integer to its width. */
at_datum at_datum_round(attune_dtype dtype, at_datum value);

/* A constant or scalar: `kind` says which of its fields count, as in at_operand_name. */
at_datum at_datum_of_constant(attune_dtype dtype, attune_dtype kind, at_constant number);

/* The low bits of `integer` as a value of an integer dtype or bool. */
int64_t at_integer_wrap(attune_dtype dtype, int64_t integer);

/* Bits of an integer dtype; 1 for bool. */
int at_integer_bits(attune_dtype dtype);

#endif
