/* SPDX-License-Identifier: Apache-2.0
 * plan_lru.c: the plans beyond a table's bound. Callers get a plan whose launch runs the real one and counts a use
 * less when that is done: on the host in the order of the stream, for queued work keeps a pointer to the plan. A host
 * stream's capture keeps one too, for as long as its graph lives, which is not reported: such a plan stays. */
#include "tuning/plans/plan_lru.h"

#include "src/process/cancel.h"

#include <assert.h>
#include <stdlib.h>

enum { SETS = 128, WAYS = 8 };

/* `uses`: the slot's, each call's, each plan's that a caller made of it. All under the table's lock. */
typedef struct at_counted_plan {
  at_plan plan; /* what callers see */
  at_plan *real;
  at_plan_lru *lru;
  int uses;
  bool pinned; /* a graph has it */
  struct at_counted_plan *next, *previous;
} at_counted_plan;

/* Key of a slot's plan and the reason for its choice, in one piece: the key, then a kept decision. */
typedef struct slot {
  at_counted_plan *plan; /* NULL: free, and the two below too */
  at_key *key;
  attune_decision *decision;
  uint64_t hash, used_at;
} slot;

struct at_plan_lru {
  pthread_mutex_t *lock;    /* the table's; guards all below */
  _Atomic uint64_t *others; /* calls, for the table */
  uint64_t clock;
  at_counted_plan *plans; /* all that exist */
  slot slots[SETS][WAYS];
};

/* Takes it out of the list when it was the last use; then the caller frees it, without the lock. */
static at_counted_plan *count_down(at_counted_plan *counted) {
  assert(at_is_locked(counted->lru->lock) && counted->uses > 0);
  if (--counted->uses > 0) return NULL;
  if (counted->next) counted->next->previous = counted->previous;
  if (counted->previous)
    counted->previous->next = counted->next;
  else
    counted->lru->plans = counted->next;
  return counted;
}

static void release(at_counted_plan *counted) {
  if (!counted) return;
  at_plan_destroy(counted->real);
  free(counted);
}

static void drop_use(at_counted_plan *counted) {
  pthread_mutex_t *lock = counted->lru->lock;
  pthread_mutex_lock(lock);
  at_counted_plan *last = count_down(counted);
  pthread_mutex_unlock(lock);
  release(last);
}

static void drop_in_order(void *user) {
  drop_use(user);
}

void at_plan_lru_release(const at_plan *plan) {
  if (plan && plan->counted) drop_use(plan->counted);
}

/* Work on a GPU has all it needs once it is launched. */
static attune_status drop_after(at_counted_plan *counted, attune_stream *stream) {
  const bool host = stream->device->backend.kind == ATTUNE_DEVICE_HOST;
  if (host && !stream->capture) return stream->device->backend.stream->call(stream, drop_in_order, counted);
  bool stays = false;
  if (host) {
    pthread_mutex_lock(counted->lru->lock);
    stays = !counted->pinned;
    counted->pinned = true;
    pthread_mutex_unlock(counted->lru->lock);
  }
  if (!stays) drop_use(counted);
  return ATTUNE_OK;
}

/* A plan that a caller made has a use of its own, which does not end with the launch. */
static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  at_counted_plan *counted = plan->counted;
  atomic_fetch_add_explicit(counted->lru->others, 1, memory_order_relaxed);
  if (plan->borrowed) {
    pthread_mutex_lock(counted->lru->lock);
    counted->uses++;
    pthread_mutex_unlock(counted->lru->lock);
  }
  const attune_status status = counted->real->launch(counted->real, operands, stream);
  const attune_status dropped = drop_after(counted, stream);
  return status != ATTUNE_OK ? status : dropped;
}

/* One that a caller made. */
static void release_borrowed(at_plan *plan) {
  if (plan->borrowed) at_plan_lru_release(plan);
}

static at_counted_plan *count(at_plan_lru *lru, at_plan *real) {
  at_counted_plan *counted = malloc(sizeof *counted);
  if (!counted) return NULL;
  *counted = (at_counted_plan){.plan = *real, .real = real, .lru = lru, .uses = 1, .next = lru->plans};
  counted->plan.launch = launch;
  counted->plan.release = release_borrowed;
  counted->plan.counted = counted;
  if (counted->next) counted->next->previous = counted;
  lru->plans = counted;
  return counted;
}

static slot *find(at_plan_lru *lru, const at_key *key, uint64_t hash) {
  slot *set = lru->slots[hash % SETS];
  for (int i = 0; i < WAYS; i++)
    if (set[i].plan && set[i].hash == hash && at_key_equal(set[i].key, key)) return &set[i];
  return NULL;
}

/* A free slot of the set, or that which was used least lately. */
static slot *make_room(at_plan_lru *lru, uint64_t hash) {
  slot *set = lru->slots[hash % SETS], *oldest = &set[0];
  for (int i = 0; i < WAYS && oldest->plan; i++)
    if (!set[i].plan || set[i].used_at < oldest->used_at) oldest = &set[i];
  return oldest;
}

static at_plan *use(at_plan_lru *lru, slot *s) {
  assert(at_is_locked(lru->lock) && s->plan->uses > 0 && s->plan->lru == lru);
  s->used_at = ++lru->clock;
  s->plan->uses++;
  return &s->plan->plan;
}

/* The slot's plan gives its place up; *unused is that plan if it has no user. */
static void empty(slot *s, at_plan **unused) {
  at_counted_plan *last = s->plan ? count_down(s->plan) : NULL;
  if (last) {
    *unused = last->real;
    free(last);
  }
  free(s->key);
  *s = (slot){.plan = NULL};
}

static bool describe(slot *s, const at_key *key, const attune_decision *decision) {
  const size_t key_bytes = at_key_bytes(key);
  char *both = malloc(key_bytes + at_decision_bytes(decision));
  if (!both) return false;
  s->key = memcpy(both, key, key_bytes);
  s->decision = (attune_decision *)(void *)(both + key_bytes);
  at_decision_keep(s->decision, decision);
  return true;
}

at_plan_lru *at_plan_lru_open(pthread_mutex_t *lock, _Atomic uint64_t *others) {
  at_plan_lru *lru = calloc(1, sizeof *lru);
  if (!lru) return NULL;
  lru->lock = lock;
  lru->others = others;
  return lru;
}

const at_plan *at_plan_lru_retain(at_plan_lru *lru, const at_key *key, uint64_t hash) {
  slot *s = find(lru, key, hash);
  return s ? use(lru, s) : NULL;
}

attune_status at_plan_lru_put(at_plan_lru *lru, const at_key *key, uint64_t hash, at_plan **plan,
                              const attune_decision *decision, bool keep, at_plan **unused) {
  slot *s = find(lru, key, hash);
  if (s && keep) {
    *unused = *plan;
  } else {
    slot made = {.hash = hash};
    if (!describe(&made, key, decision) || !(made.plan = count(lru, *plan))) {
      free(made.key);
      return ATTUNE_OUT_OF_MEMORY;
    }
    if (!s) s = make_room(lru, hash);
    assert(!s->plan || s->hash % SETS == hash % SETS);
    empty(s, unused);
    *s = made;
  }
  *plan = use(lru, s);
  return ATTUNE_OK;
}

bool at_plan_lru_decision(at_plan_lru *lru, const at_key *key, uint64_t hash, attune_decision *out) {
  const slot *s = find(lru, key, hash);
  if (s) at_decision_give(out, s->decision);
  return s != NULL;
}

void at_plan_lru_drop_hints(at_plan_lru *lru) {
  for (int i = 0; i < SETS * WAYS; i++) {
    slot *s = &lru->slots[i / WAYS][i % WAYS];
    at_plan *unused = NULL;
    if (s->plan && s->decision->source <= ATTUNE_SOURCE_NEIGHBOUR) empty(s, &unused);
    at_plan_destroy(unused);
  }
}

void at_plan_lru_close(at_plan_lru *lru) {
  while (lru && lru->plans) {
    at_counted_plan *counted = lru->plans;
    lru->plans = counted->next;
    release(counted);
  }
  for (int i = 0; lru && i < SETS * WAYS; i++) free(lru->slots[i / WAYS][i % WAYS].key);
  free(lru);
}
