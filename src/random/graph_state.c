/* SPDX-License-Identifier: Apache-2.0
 * graph_state.c: where the graphs' generators keep {seed, base offset} on the device: slots of memory that is taken
 * once and never given back. So a generator leaves a graph without waiting for the device, which giving memory back
 * does, and in the middle of any capture; and most join without asking it. */
#include "src/random/generator.h"

#include "src/base/backend.h"

#include <stdatomic.h>
#include <stdlib.h>

#define SLOTS 64
#define SLOT_WORDS 8 /* a cache line of the device: a replay writes to no other's */

/* Never freed, so that the list needs no lock: a fork may come at any time. */
typedef struct chunk {
  struct chunk *next;
  attune_device *device;
  uint64_t *memory;
  _Atomic uint64_t used; /* a bit for each slot */
} chunk;

static _Atomic(chunk *) list;

static uint64_t *take_from(chunk *c) {
  uint64_t used = atomic_load_explicit(&c->used, memory_order_relaxed);
  while (~used != 0) {
    const int slot = __builtin_ctzll(~used);
    if (atomic_compare_exchange_weak_explicit(&c->used, &used, used | UINT64_C(1) << slot, memory_order_acquire,
                                              memory_order_relaxed))
      return c->memory + slot * SLOT_WORDS;
  }
  return NULL;
}

static attune_status add_chunk(chunk **out, attune_device *device) {
  chunk *made = calloc(1, sizeof *made);
  if (!made) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for generators in graphs");
  void *memory = NULL;
  attune_status status = device->backend.memory->alloc(device, &memory, SLOTS * SLOT_WORDS * sizeof(uint64_t));
  if (status != ATTUNE_OK) {
    free(made);
    return status;
  }
  made->device = device;
  made->memory = memory;
  atomic_init(&made->used, 1); /* the caller's */
  made->next = atomic_load(&list);
  while (!atomic_compare_exchange_weak(&list, &made->next, made)) continue;
  *out = made;
  return ATTUNE_OK;
}

attune_status at_graph_state_take(uint64_t **out, attune_device *device) {
  *out = NULL;
  for (chunk *c = atomic_load(&list); c && !*out; c = c->next)
    if (c->device == device) *out = take_from(c);
  if (*out) return ATTUNE_OK;
  chunk *made = NULL;
  attune_status status = add_chunk(&made, device);
  if (status == ATTUNE_OK) *out = made->memory;
  return status;
}

void at_graph_state_give(uint64_t *state) {
  for (chunk *c = atomic_load(&list); c; c = c->next) {
    const uintptr_t offset = (uintptr_t)state - (uintptr_t)c->memory;
    if (offset >= SLOTS * SLOT_WORDS * sizeof *state) continue;
    const uint64_t bit = UINT64_C(1) << offset / (SLOT_WORDS * sizeof *state);
    atomic_fetch_and_explicit(&c->used, ~bit, memory_order_release);
    return;
  }
}
