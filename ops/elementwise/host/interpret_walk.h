/* SPDX-License-Identifier: Apache-2.0
 * interpret_walk.h: a stretch of elements of one operand, in the order of the layout, to and from a register. */
#ifndef AT_INTERPRET_WALK_H
#define AT_INTERPRET_WALK_H

#include "ops/elementwise/layout/layout.h"

/* Where a block begins: coordinates, innermost first. */
typedef struct at_place {
  int64_t at[AT_DIMS];
} at_place;

at_place at_place_of(const at_layout *layout, int64_t element);
/* `n` elements further, n at most what is left. */
void at_place_move(at_place *place, const at_layout *layout, int64_t n);
/* The offset from the view's data of the element there, in elements. */
int64_t at_place_offset(const at_place *place, const at_layout *layout, int operand);

/* `n` elements of an operand from `place` on: out of memory, into it, and the offsets of them themselves. */
void at_walk_load(void *out, const at_layout *layout, int operand, const void *data, size_t size, at_place place,
                  int64_t n);
void at_walk_store(const void *from, const at_layout *layout, int operand, void *data, size_t size, at_place place,
                   int64_t n);
void at_walk_offsets(int64_t *out, const at_layout *layout, int operand, at_place place, int64_t n);

#endif
