/* SPDX-License-Identifier: Apache-2.0
 * call_cache.c: a table of each thread's own, found by a hash of the expression and the first sizes. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ops/elementwise/call/call_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
  SLOTS = 64,
  WAYS = 4,
  ALIASED_OUTPUTS = 64 / AT_EXPRESSION_INPUTS /* of calls with more outputs none is remembered */
};

typedef struct calls {
  at_call_slot slots[SLOTS];
  uint8_t hints[SLOTS]; /* by where the text lies: the slot where such a call was found last */
  unsigned turn;
} calls;

static _Thread_local calls *mine;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;    /* its value is `mine`, so that the end of a thread frees it */
static atomic_bool key_made; /* read at the exit too, while threads may go on */

static void empty(at_call_slot *slot) {
  at_call_binding_destroy(slot->prepared);
  free(slot->text);
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

static bool is_sound(const attune_elementwise_operands *o) {
  return (unsigned)o->output_count - 1u < ALIASED_OUTPUTS && (unsigned)o->input_count <= AT_EXPRESSION_INPUTS &&
         (unsigned)o->scalar_count <= AT_EXPRESSION_SCALARS && o->outputs && (o->inputs || !o->input_count) &&
         (o->scalars || !o->scalar_count);
}

static uint64_t hash_of(uint64_t tuner, const char *expression, size_t bytes, const attune_elementwise_operands *o) {
  const attune_tensor *t = &o->outputs[0];
  const uint64_t mixed = tuner * 0x9E3779B97F4A7C15u + (uint64_t)t->sizes[0] * 0xC2B2AE3D27D4EB4Fu +
                         (uint64_t)t->sizes[1] * 0x165667B19E3779F9u +
                         ((uint64_t)t->dtype << 8 | (uint64_t)(unsigned)t->dims);
  return XXH3_64bits_withSeed(expression, bytes, mixed);
}

static uint64_t aliases_of(const attune_elementwise_operands *o) {
  uint64_t bits = 0;
  for (int i = 0; i < o->output_count; i++)
    for (int k = 0; k < o->input_count; k++)
      bits |= (uint64_t)(o->outputs[i].data == o->inputs[k].data) << (AT_EXPRESSION_INPUTS * i + k);
  return bits;
}

static uint8_t low_bits(const attune_tensor *t) {
  return (uint8_t)((uintptr_t)t->data & (AT_ALIGNMENT - 1));
}

static bool are_low_bits(const uint8_t *low, const attune_elementwise_operands *o) {
  bool same = true;
  for (int i = 0; i < o->output_count; i++) same = same && low_bits(&o->outputs[i]) == *low++;
  for (int i = 0; i < o->input_count; i++) same = same && low_bits(&o->inputs[i]) == *low++;
  return same;
}

/* The names are one after the other in `at`. */
static bool are_names(const char *at, const attune_elementwise_operands *o) {
  for (int i = 0; i < o->input_count + o->scalar_count; i++) {
    const char *name = i < o->input_count ? o->inputs[i].name : o->scalars[i - o->input_count].name;
    if (!name || strcmp(at, name) != 0) return false;
    at += strlen(at) + 1;
  }
  return true;
}

/* The operands are like; all else. */
static bool is_same(const at_call_slot *s, const at_formula *formula, const attune_elementwise_operands *o) {
  return s->prepared->expression->function == formula->function && strcmp(s->text, formula->text) == 0 &&
         are_low_bits(s->low, o) && aliases_of(o) == s->aliases && are_names(s->text + s->expression_bytes + 1, o);
}

static bool is_like(const at_call_slot *s, at_small_call *small, bool *bound, uint64_t tuner,
                    const attune_stream *stream, const at_formula *formula, const attune_elementwise_operands *o) {
  if (!s->prepared || s->tuner != tuner || s->device != stream->device || s->accuracy != o->accuracy) return false;
  *bound = at_small_bind(s->prepared, stream, o, small);
  return (*bound || (at_call_binding_is_like(s->prepared, o) && at_call_binding_has_kinds(s->prepared, o))) &&
         is_same(s, formula, o);
}

static uint8_t *hint_of(calls *c, const at_formula *formula, const attune_elementwise_operands *o) {
  const uint64_t from = (uint64_t)(uintptr_t)formula->text + (uint64_t)o->outputs[0].sizes[0] * 0xC2B2AE3D27D4EB4Fu;
  return &c->hints[from * 0x9E3779B97F4A7C15u >> 58];
}
_Static_assert(SLOTS == 1 << 6, "hint_of takes six bits");

bool at_elementwise_call_cache_find(at_call_slot **slot, at_small_call *small, bool *bound, uint64_t tuner,
                                    const attune_stream *stream, const at_formula *formula,
                                    const attune_elementwise_operands *o) {
  calls *c = calls_of_thread();
  *slot = NULL;
  *bound = false;
  if (!c || !is_sound(o)) return false;
  uint8_t *hint = hint_of(c, formula, o);
  *slot = &c->slots[*hint];
  if (AT_LIKELY(is_like(*slot, small, bound, tuner, stream, formula, o))) return true;
  *slot = NULL;
  const uint64_t hash = hash_of(tuner, formula->text, strnlen(formula->text, AT_EXPRESSION_CHARS), o);
  for (unsigned way = 0; way < WAYS; way++) {
    at_call_slot *s = &c->slots[(hash + way) % SLOTS];
    if (s->hash == hash && is_like(s, small, bound, tuner, stream, formula, o)) {
      *slot = s;
      *hint = (uint8_t)(s - c->slots);
      return true;
    }
    if (!*slot && !s->prepared) *slot = s;
  }
  if (!*slot) *slot = &c->slots[(hash + c->turn++ % WAYS) % SLOTS];
  *bound = false;
  return false;
}

/* ---- remembering ---- */

static bool keep_text(at_call_slot *s, const at_formula *formula, const attune_elementwise_operands *o) {
  const size_t bytes = strlen(formula->text);
  size_t all = bytes + 1;
  for (int i = 0; i < o->input_count; i++) all += strlen(o->inputs[i].name) + 1;
  for (int i = 0; i < o->scalar_count; i++) all += strlen(o->scalars[i].name) + 1;
  if (s->text_bytes < all) {
    char *text = malloc(all);
    if (!text) return false;
    free(s->text);
    s->text = text;
    s->text_bytes = all;
  }
  char *at = stpcpy(s->text, formula->text) + 1;
  for (int i = 0; i < o->input_count; i++) at = stpcpy(at, o->inputs[i].name) + 1;
  for (int i = 0; i < o->scalar_count; i++) at = stpcpy(at, o->scalars[i].name) + 1;
  s->expression_bytes = bytes;
  return true;
}

void at_elementwise_call_cache_put(at_call_slot *slot, at_call_binding *prepared, const at_plan_entry *entry,
                                   uint64_t tuner, const attune_device *device, const at_formula *formula,
                                   const attune_elementwise_operands *o) {
  uint8_t *low = slot->low;
  at_call_binding_destroy(slot->prepared);
  slot->prepared = NULL;
  if (!keep_text(slot, formula, o)) {
    at_call_binding_destroy(prepared);
    return;
  }
  slot->hash = hash_of(tuner, formula->text, slot->expression_bytes, o);
  slot->tuner = tuner;
  slot->device = device;
  slot->accuracy = o->accuracy;
  slot->aliases = aliases_of(o);
  for (int i = 0; i < o->output_count; i++) *low++ = low_bits(&o->outputs[i]);
  for (int i = 0; i < o->input_count; i++) *low++ = low_bits(&o->inputs[i]);
  prepared->small.plan = NULL; /* until a plan is noted */
  slot->prepared = prepared;
  slot->entry = entry;
  slot->plan = NULL;
}

void at_elementwise_call_cache_note_plan(at_call_slot *slot, const at_plan *plan) {
  if (AT_LIKELY(slot->plan == plan)) return;
  slot->plan = plan;
  at_small_attach(slot->prepared, plan, 1); /* are_low_bits looks at the addresses */
  atomic_store_explicit(&slot->prepared->kept.owner, 0, memory_order_relaxed);
  atomic_store_explicit(&slot->prepared->kept.taken, false, memory_order_relaxed);
}
