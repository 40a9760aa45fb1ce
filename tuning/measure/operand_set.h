/* SPDX-License-Identifier: Apache-2.0
 * operand_set.h: private copies of a problem's operands, filled with random data, for timing and verification. */
#ifndef AT_OPERAND_SET_H
#define AT_OPERAND_SET_H

#include "src/base/backend.h"
#include "tuning/op/op.h"
#include "tuning/op/random_data.h"

#define AT_MAX_COPIES 512
#define AT_GUARD_BYTES 512 /* before and after each buffer of a guarded set */
#define AT_GUARD_BYTE 0xA5

typedef struct at_operand_set {
  const at_op *op;
  const void *problem; /* borrowed */
  attune_stream *stream;
  at_buffer buffers[AT_MAX_BUFFERS];
  int buffer_count;
  at_scalar scalars[AT_MAX_SCALARS];
  int scalar_count;
  double usual[AT_MAX_SCALARS]; /* what the operands hold of them */
  int copies;
  size_t set_bytes; /* one copy's buffers; guarded: with guards, all of the arena */
  size_t stride;    /* from one copy to the next in the arena */
  size_t slack;     /* how far a buffer may move in its slot; 0: it never does */
  char *arena;
  bool plain;                        /* the arena is the C library's: on the host, where it is measured in */
  void *(*pointers)[AT_MAX_BUFFERS]; /* by copy */
  void *(*on_host)[AT_MAX_BUFFERS];  /* by copy: what launches get for a buffer of the device's; NULL: nothing else */
  char *operands;                    /* by copy: what launch takes; see at_operand_set_operands */
  size_t operands_stride;            /* bytes from one copy's to the next one's */
} at_operand_set;

/* Arguments of a launch on a copy. */
static inline void *at_operand_set_operands(const at_operand_set *set, int copy) {
  return set->operands + (size_t)copy * set->operands_stride;
}

/* The operands of a launch on a copy, with these scalars. */
void at_operand_set_bind(const at_operand_set *set, int copy, const double *scalars, void *operands);

/* `copies` sets, as many as fit into at least one and at most `most_bytes`. `guarded`: one copy, each buffer at exactly
 * its alignment class between guard zones, for verification; else each buffer lies somewhere in a slot that is larger
 * than it, at a first placement. Inputs are random; outputs too. `problem` stays the caller's for the set's life. */
attune_status at_operand_set_create(at_operand_set **out, const at_op *op, const void *problem, attune_stream *stream,
                                    at_random *random, int copies, size_t most_bytes, bool guarded);
void at_operand_set_destroy(at_operand_set *set);

/* Moves the buffers of every copy to the placement that `seed` stands for: how far they lie from each other and from a
 * page's start is drawn, alike for all copies but for a shift of each copy as a whole. Addresses are multiples of the
 * problem's alignment class and, below the device's best class, that of one operand at least is no better. What work
 * that was launched reads stays where it is; contents of outputs are lost. Nothing happens to a guarded set. */
void at_operand_set_place(at_operand_set *set, uint64_t seed);

/* OUT_OF_MEMORY, with what is needed and what there is, where a problem with so many bytes of operands cannot be
 * measured and verified. On the host what is free counts, as the system would end the process for more; elsewhere all
 * that there is, for there an allocation fails in time. */
attune_status at_operand_room(attune_device *device, size_t operand_bytes);

/* Bytes of one set of operands, with no allocation. */
attune_status at_operand_bytes(const at_op *op, const void *problem, size_t *out);

#endif
