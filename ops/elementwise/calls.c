/* SPDX-License-Identifier: Apache-2.0
 * calls.c: a table of each thread's own, found by a hash of all that a call asks. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ops/elementwise/calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
  SLOTS = 64,
  WAYS = 4,
  MOST_BYTES = 4096 /* of what a call asks: longer ones are made ready each time */
};

typedef struct calls {
  at_call_slot slots[SLOTS];
  unsigned turn;
  char asked[MOST_BYTES]; /* of the call that is being looked for */
  size_t bytes;
  uint64_t hash;
} calls;

static _Thread_local calls *mine;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its value is `mine`, so that the end of a thread frees it */
static bool key_made;

static void empty(at_call_slot *slot) {
  at_prepared_destroy(slot->prepared);
  free(slot->asked);
  *slot = (at_call_slot){0};
}

static void thread_ends(void *value) {
  calls *c = value;
  for (int i = 0; i < SLOTS; i++) empty(&c->slots[i]);
  free(c);
  mine = NULL;
}

static void make_key(void) {
  key_made = pthread_key_create(&key, thread_ends) == 0;
}

/* attune may be closed while threads go on. */
__attribute__((destructor)) static void stop(void) {
  if (key_made) pthread_key_delete(key);
}

static calls *calls_of_thread(void) {
  if (AT_LIKELY(mine != NULL)) return mine;
  pthread_once(&key_once, make_key);
  calls *c = key_made ? calloc(1, sizeof *c) : NULL;
  if (c && pthread_setspecific(key, c) != 0) {
    free(c);
    c = NULL;
  }
  mine = c;
  return c;
}

/* ---- what a call asks ---- */

static bool put(calls *c, const void *bytes, size_t count) {
  if (count > MOST_BYTES - c->bytes) return false;
  memcpy(c->asked + c->bytes, bytes, count);
  c->bytes += count;
  return true;
}

static bool put_name(calls *c, const char *name) {
  return name ? put(c, name, strnlen(name, AT_EXPRESSION_NAME) + 1) : put(c, "", 1);
}

/* How the addresses matter: their alignment, and which input an output is. */
static bool put_addresses(calls *c, const attune_elementwise_operands *o) {
  uint8_t bits[AT_TENSORS + AT_EXPRESSION_OUTPUTS * AT_EXPRESSION_INPUTS];
  size_t count = 0;
  for (int i = 0; i < o->output_count; i++) bits[count++] = (uintptr_t)o->outputs[i].data & (AT_ALIGNMENT - 1);
  for (int i = 0; i < o->input_count; i++) bits[count++] = (uintptr_t)o->inputs[i].data & (AT_ALIGNMENT - 1);
  for (int i = 0; i < o->output_count; i++)
    for (int k = 0; k < o->input_count; k++) bits[count++] = o->outputs[i].data == o->inputs[k].data;
  return put(c, bits, count);
}

static bool put_all(calls *c, uint64_t tuner, const attune_device *device, const char *expression,
                    const attune_elementwise_operands *o) {
  at_geometry geometry;
  const uint64_t words[] = {tuner, (uint64_t)(uintptr_t)device, (uint64_t)o->accuracy};
  c->bytes = 0;
  if (!at_geometry_of(&geometry, o)) return false;
  bool ok = put(c, words, sizeof words) && put(c, geometry.words, (size_t)geometry.count * sizeof *geometry.words) &&
            put_addresses(c, o);
  for (int i = 0; i < o->input_count; i++) ok = ok && put_name(c, o->inputs[i].name);
  for (int i = 0; i < o->scalar_count; i++)
    ok = ok && put(c, &o->scalars[i].kind, sizeof o->scalars[i].kind) && put_name(c, o->scalars[i].name);
  return ok && put(c, expression, strnlen(expression, MOST_BYTES));
}

bool at_calls_find(at_call_slot **slot, uint64_t tuner, const attune_device *device, const char *expression,
                   const attune_elementwise_operands *operands) {
  calls *c = calls_of_thread();
  *slot = NULL;
  if (!c || !put_all(c, tuner, device, expression, operands)) return false;
  c->hash = XXH3_64bits(c->asked, c->bytes);
  for (unsigned way = 0; way < WAYS; way++) {
    at_call_slot *s = &c->slots[(c->hash + way) % SLOTS];
    if (s->prepared && s->hash == c->hash && s->bytes == c->bytes && memcmp(s->asked, c->asked, c->bytes) == 0) {
      *slot = s;
      return true;
    }
    if (!*slot && !s->prepared) *slot = s;
  }
  if (!*slot) *slot = &c->slots[(c->hash + c->turn++ % WAYS) % SLOTS];
  return false;
}

void at_calls_put(at_call_slot *slot, at_prepared *prepared, const at_plan_entry *entry) {
  const calls *c = mine;
  if (slot->room < c->bytes) {
    char *room = malloc(c->bytes);
    if (!room) {
      at_prepared_destroy(prepared);
      return;
    }
    free(slot->asked);
    slot->asked = room;
    slot->room = c->bytes;
  }
  at_prepared_destroy(slot->prepared);
  memcpy(slot->asked, c->asked, c->bytes);
  slot->bytes = c->bytes;
  slot->hash = c->hash;
  slot->prepared = prepared;
  slot->entry = entry;
  slot->plan = NULL;
}

void at_calls_note_plan(at_call_slot *slot, const at_plan *plan) {
  if (AT_LIKELY(slot->plan == plan)) return;
  slot->plan = plan;
  atomic_store_explicit(&slot->prepared->kept.owner, 0, memory_order_relaxed);
  atomic_store_explicit(&slot->prepared->kept.taken, false, memory_order_relaxed);
}
