/* SPDX-License-Identifier: Apache-2.0
 * promote.h: the dtype that a function of several values has: torch's promotion, with numbers that promote no more than
 * their kind. */
#ifndef AT_ELEMENTWISE_PROMOTE_H
#define AT_ELEMENTWISE_PROMOTE_H

#include "ops/elementwise/ir/expression.h"
#include "src/base/dtype.h"

/* A value of the text. Its dtype is what torch would say; the node's is what it is computed in: f32 for the half and
 * 8-bit floats, which are rounded only where they are cast or stored. Weak: a number of the text or a scalar, or made
 * of such alone; bool, i64, u64, f64 or c128. Written: made of numbers of the text alone; what the operands or a
 * rewrite make a constant, as in b ^ b, is none. */
typedef struct at_value {
  int node;  /* below 0: none, after an error */
  int plain; /* the same of the graph without rewrites, where that is kept */
  attune_dtype dtype;
  bool weak;
  bool written;
} at_value;

/* Type in which values of the dtype are computed. */
static inline attune_dtype at_compute_dtype(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F16:
  case ATTUNE_BF16:
  case ATTUNE_F8E4M3:
  case ATTUNE_F8E5M2: return ATTUNE_F32;
  default: return dtype;
  }
}

/* Of all the values; false: two of them, *one and *other, have none. */
bool at_common(const at_value *values, int count, at_value *out, attune_dtype *one, attune_dtype *other);

/* True if `wide` holds every value of `narrow`, NaN and infinities included. */
bool at_holds(attune_dtype wide, attune_dtype narrow);

#endif
