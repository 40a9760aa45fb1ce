/* SPDX-License-Identifier: Apache-2.0
 * precompile_list.c: which kernels a search for a problem may want, and which of them first. */
#include <stdlib.h>
#include <string.h>

#include "tuning/compile/precompile.h"

enum {
  MOST_CONFIGURATIONS = 256, /* asked of an implementation: as many as a search asks for */
  BEST = 4,                  /* its first guesses */
  MOST_PROVEN = 1024,        /* winners that are looked at */
};

/* ---- what has proven good ---- */

typedef struct proof {
  char implementation[32];
  int version;
  at_configuration configuration;
  char *problem;
} proof;

struct at_proven {
  int count, room;
  proof proofs[];
};

static int note(void *user, const char *fingerprint, const attune_decision *row) {
  at_proven *p = user;
  proof *one = &p->proofs[p->count];
  (void)fingerprint;
  if (!row->configuration[0] ||
      !at_copy_text(one->configuration.text, sizeof one->configuration.text, row->configuration))
    return 0;
  at_copy_text(one->implementation, sizeof one->implementation, row->implementation);
  one->version = row->implementation_version;
  one->problem = strdup(row->problem);
  if (one->problem) p->count++;
  return p->count == p->room;
}

at_proven *at_proven_read(attune_tuner *tuner) {
  at_proven *p = malloc(sizeof *p + MOST_PROVEN * sizeof *p->proofs);
  if (!p) return NULL;
  p->count = 0;
  p->room = MOST_PROVEN;
  const at_message kept = at_message_keep(); /* a database that cannot be read proves nothing */
  if (tuner->user) (void)at_store_each_winner(tuner->user, note, p);
  if (tuner->system && p->count < p->room) (void)at_store_each_winner(tuner->system, note, p);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return p;
}

void at_proven_free(at_proven *p) {
  for (int i = 0; p && i < p->count; i++) free(p->proofs[i].problem);
  free(p);
}

static bool is_of(const proof *p, const at_implementation *implementation) {
  return p->version == implementation->version && strcmp(p->implementation, implementation->name) == 0;
}

static bool is_proven(const at_proven *p, const at_implementation *implementation, const at_configuration *c) {
  for (int i = 0; p && i < p->count; i++)
    if (is_of(&p->proofs[i], implementation) && strcmp(p->proofs[i].configuration.text, c->text) == 0) return true;
  return false;
}

/* ---- the list ---- */

typedef struct list {
  at_precompile_kernel *kernels;
  size_t count, room;
} list;

static void add(list *l, const at_implementation *implementation, const at_configuration *c, at_precompile_rank rank) {
  for (size_t i = 0; i < l->count; i++)
    if (l->kernels[i].implementation == implementation && strcmp(l->kernels[i].configuration.text, c->text) == 0)
      return;
  if (l->count == l->room) {
    const size_t room = l->room ? 2 * l->room : 32;
    at_precompile_kernel *larger = realloc(l->kernels, room * sizeof *larger);
    if (!larger) return; /* it is compiled later */
    l->kernels = larger;
    l->room = room;
  }
  l->kernels[l->count++] = (at_precompile_kernel){implementation, *c, rank};
}

/* Winners of this very problem are raced again, whatever configurations there are now. */
static void add_own_winners(list *l, const at_proven *p, const at_implementation *implementation, const char *text) {
  for (int i = 0; p && i < p->count; i++)
    if (is_of(&p->proofs[i], implementation) && strcmp(p->proofs[i].problem, text) == 0)
      add(l, implementation, &p->proofs[i].configuration, AT_PRECOMPILE_PROVEN);
}

static int by_rank(const void *left, const void *right) {
  const at_precompile_kernel *a = left, *b = right;
  return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Of each rank in the order in which they came: a stable sort of few ranks. */
static void sort(list *l) {
  at_precompile_kernel *sorted = malloc(l->count * sizeof *sorted);
  if (!sorted) { /* the order within a rank is lost */
    qsort(l->kernels, l->count, sizeof *l->kernels, by_rank);
    return;
  }
  size_t at = 0;
  for (int rank = 0; rank < AT_PRECOMPILE_RANKS; rank++)
    for (size_t i = 0; i < l->count; i++)
      if ((int)l->kernels[i].rank == rank) sorted[at++] = l->kernels[i];
  free(l->kernels);
  l->kernels = sorted;
}

size_t at_precompile_list(at_precompile_kernel **out, const at_op *op, const void *problem, const char *text,
                          attune_device *device, const at_proven *proven) {
  list l = {NULL, 0, 0};
  at_configuration *room = malloc(MOST_CONFIGURATIONS * sizeof *room);
  const at_implementation *base = at_registry_default(op, problem, device);
  for (size_t i = 0; room && i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (!implementation->compile || !implementation->prepare_many ||
        !at_registry_usable(implementation, problem, device) || (implementation->fallback && implementation != base))
      continue;
    add_own_winners(&l, proven, implementation, text);
    const int count = implementation->configurations(implementation, problem, device, room, MOST_CONFIGURATIONS);
    for (int j = 0; j < count; j++) {
      const bool first = implementation == base && j == 0;
      add(&l, implementation, &room[j],
          first || is_proven(proven, implementation, &room[j]) ? AT_PRECOMPILE_PROVEN
          : j < BEST                                           ? AT_PRECOMPILE_BEST
                                                               : AT_PRECOMPILE_REST);
    }
  }
  free(room);
  if (l.count > 1) sort(&l);
  *out = l.kernels;
  return l.count;
}
