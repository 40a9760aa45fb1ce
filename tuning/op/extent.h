/* SPDX-License-Identifier: Apache-2.0
 * extent.h: where an operand's elements lie, and whether two operands share a byte: for what an operation may not
 * write where it reads. Two ranges of addresses are compared first; views that interleave are apart although their
 * ranges are not. */
#ifndef AT_EXTENT_H
#define AT_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

enum { AT_EXTENT_DIMS = 8 };

/* `element` bytes at `low`, and again at each sum of multiples of the steps. */
typedef struct at_extent {
  uintptr_t low, high; /* the first byte, and the one behind the last */
  int dims;
  int64_t element;
  int64_t sizes[AT_EXTENT_DIMS], steps[AT_EXTENT_DIMS]; /* of more than one, and positive, in bytes */
} at_extent;

/* One more dimension. A step of any sign; of size 1 or step 0 it changes nothing. */
void at_extent_add(at_extent *e, int64_t size, int64_t step);

/* Do no two elements of it share a byte? False also for some where that is not seen. */
bool at_extent_distinct(const at_extent *e);

/* Do the two share no byte, as far as a few divisions tell? False also for some that interleave in an odd way. */
bool at_extents_apart(const at_extent *a, const at_extent *b);

/* Do they share a byte? Exact; where the steps have nothing in common it takes time for each run of elements. */
bool at_extents_meet(const at_extent *a, const at_extent *b);

#endif
