/* SPDX-License-Identifier: Apache-2.0
 * span.h: the bytes that an access touches: pieces of equal length at regular distances, in several dimensions. */
#ifndef AT_CHECK_SPAN_H
#define AT_CHECK_SPAN_H

#include "src/trace/instrument.h"

typedef struct at_span_dim {
  int64_t count, step; /* count >= 2, step > 0 */
} at_span_dim;

/* Dimensions by falling step; what lies without gaps is one piece. */
typedef struct at_span {
  uintptr_t start, end; /* all of it lies between */
  int64_t run;          /* bytes of a piece */
  int dims;
  at_span_dim dim[AT_INSTRUMENT_DIMS];
} at_span;

/* False: the use touches nothing. */
bool at_span_make(at_span *out, const at_operand_access *use);

/* All bytes from start to end. */
at_span at_span_bytes(uintptr_t start, size_t bytes);

/* Is there a byte in both? Exact, except where the two are strided in different ways and over a million places would
 * have to be looked at: they are then taken as apart. */
bool at_span_meet(const at_span *a, const at_span *b);

/* Is each byte of `b` in `a`? May say no where it is so. */
bool at_span_cover(const at_span *a, const at_span *b);

#endif
