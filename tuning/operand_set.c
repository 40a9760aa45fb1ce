/* SPDX-License-Identifier: Apache-2.0
 * operand_set.c: lays buffers out in one arena, fills them with random data.
 *
 * Random data is made once on the host (a prime number of elements, so that no row length divides it) and copied to the
 * first buffer of each dtype; device copies do the rest, which takes a memory-bandwidth's time and no kernel. */
#include "tuning/operand_set.h"

#include <stdlib.h>
#include <string.h>

static size_t align_up(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

/* Where buffer i starts in a copy that starts at `base`; returns the end. Guarded: guard, then exactly the alignment
 * class. */
static size_t place(const at_buffer *buffer, size_t base, bool guarded, size_t *start) {
  base = align_up(base, 256);
  if (!guarded) {
    *start = base + (buffer->alignment < 16 ? buffer->alignment : 0);
    return *start + buffer->bytes;
  }
  *start = base + AT_GUARD_BYTES + (buffer->alignment < 256 ? buffer->alignment : 0);
  return *start + buffer->bytes + AT_GUARD_BYTES;
}

static size_t set_bytes(const at_buffer *buffers, int count, bool guarded) {
  size_t end = 0, start = 0;
  for (int i = 0; i < count; i++) end = place(&buffers[i], end, guarded, &start);
  return align_up(end, 256);
}

attune_status at_operand_bytes(const at_op *op, const void *problem, size_t *out) {
  at_buffer buffers[AT_MAX_BUFFERS];
  int count = 0;
  const attune_status status = op->buffers(problem, buffers, &count);
  if (status == ATTUNE_OK) *out = set_bytes(buffers, count, false);
  return status;
}

/* Fills one buffer: the pool once from the host for the first buffer of its dtype, then copies of what is there. */
static attune_status fill_buffer(at_operand_set *set, int index, at_random *random, size_t skip) {
  const at_buffer *buffer = &set->buffers[index];
  const void *pool = NULL;
  size_t pool_bytes = 0;
  attune_status status = at_random_data(random, buffer->dtype, &pool, &pool_bytes);
  char *to = set->pointers[0][index];
  size_t done = 0;
  const size_t element = attune_dtype_size(buffer->dtype);
  skip = skip * element % pool_bytes;
  while (status == ATTUNE_OK && done < buffer->bytes && done < pool_bytes) { /* one turn of the pool, from `skip` */
    const size_t from = (skip + done) % pool_bytes;
    size_t chunk = pool_bytes - from;
    if (chunk > pool_bytes - done) chunk = pool_bytes - done;
    if (chunk > buffer->bytes - done) chunk = buffer->bytes - done;
    status = attune_copy(set->stream, to + done, (const char *)pool + from, chunk);
    done += chunk;
  }
  while (status == ATTUNE_OK && done < buffer->bytes) { /* then doubling */
    const size_t chunk = done < buffer->bytes - done ? done : buffer->bytes - done;
    status = attune_copy(set->stream, to + done, to, chunk);
    done += chunk;
  }
  return status;
}

static attune_status fill(at_operand_set *set, at_random *random, size_t one, bool guarded) {
  attune_status status = ATTUNE_OK;
  if (guarded) status = attune_fill(set->stream, set->arena, AT_GUARD_BYTE, one);
  for (int i = 0; i < set->buffer_count && status == ATTUNE_OK; i++)
    status = fill_buffer(set, i, random, (size_t)i * 1048583u);
  for (int copy = 1; copy < set->copies && status == ATTUNE_OK; copy++) {
    const size_t from = (size_t)((char *)set->pointers[0][0] - set->arena);
    status = attune_copy(set->stream, (char *)set->pointers[copy][0], set->arena + from, one - from);
  }
  if (status == ATTUNE_OK) status = attune_stream_synchronize(set->stream);
  return status;
}

static attune_status lay_out(at_operand_set *set, const void *problem, size_t one, bool guarded) {
  set->pointers = calloc((size_t)set->copies, sizeof *set->pointers);
  set->operands = calloc((size_t)set->copies, sizeof *set->operands);
  if (!set->pointers || !set->operands)
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %d operand sets", set->copies);
  for (int copy = 0; copy < set->copies; copy++) {
    size_t end = (size_t)copy * one, start = 0;
    for (int i = 0; i < set->buffer_count; i++) {
      end = place(&set->buffers[i], end, guarded, &start);
      set->pointers[copy][i] = set->arena + start;
    }
    set->op->bind(problem, set->pointers[copy], set->operands[copy]);
  }
  return ATTUNE_OK;
}

attune_status at_operand_set_create(at_operand_set **out, const at_op *op, const void *problem, attune_stream *stream,
                                    at_random *random, int copies, size_t most_bytes, bool guarded) {
  *out = NULL;
  at_operand_set *set = calloc(1, sizeof *set);
  if (!set) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an operand set");
  set->op = op;
  set->stream = stream;
  attune_status status = op->buffers(problem, set->buffers, &set->buffer_count);
  const size_t one = status == ATTUNE_OK ? set_bytes(set->buffers, set->buffer_count, guarded) : 0;
  set->set_bytes = one;
  set->copies = guarded || copies < 1 ? 1 : copies > AT_MAX_COPIES ? AT_MAX_COPIES : copies;
  while (set->copies > 1 && one > most_bytes / (size_t)set->copies) set->copies--;
  void *arena = NULL;
  if (status == ATTUNE_OK) status = attune_alloc(&arena, stream, one * (size_t)set->copies);
  set->arena = arena;
  if (status == ATTUNE_OK) status = lay_out(set, problem, one, guarded);
  if (status == ATTUNE_OK) status = fill(set, random, one, guarded);
  if (status != ATTUNE_OK) {
    at_operand_set_destroy(set);
    return status;
  }
  *out = set;
  return ATTUNE_OK;
}

void at_operand_set_destroy(at_operand_set *set) {
  if (!set) return;
  if (set->arena) attune_free(set->arena, set->stream);
  free(set->pointers);
  free(set->operands);
  free(set);
}
