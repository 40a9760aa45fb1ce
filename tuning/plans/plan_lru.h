/* SPDX-License-Identifier: Apache-2.0
 * plan_lru.h: plans of problems beyond the bound of a plan table: the latest used of them are kept, found under
 * the table's lock, and counted, so that one goes when it is used no more and its last call is done. */
#ifndef AT_PLAN_LRU_H
#define AT_PLAN_LRU_H

#include <pthread.h>
#include <stdatomic.h>

#include "tuning/op/registry.h"
#include "tuning/plans/key.h"
#include "tuning/store/decision.h"

typedef struct at_plan_lru at_plan_lru;

/* A use less of a plan that dispatch gave and that is not launched; others are left alone. */
void at_plan_lru_release(const at_plan *plan);

/* `lock` is the table's: callers of what follows hold it, but for at_plan_lru_close. A launch of a plan takes it
 * too, and adds to `others`. NULL: no memory. */
at_plan_lru *at_plan_lru_open(pthread_mutex_t *lock, _Atomic uint64_t *others);

/* Frees all, also what is in use: the work is done. */
void at_plan_lru_close(at_plan_lru *lru);

/* The key's plan with a use counted for the caller, which launches it once or hands it to at_plan_lru_release; NULL:
 * none. */
const at_plan *at_plan_lru_retain(at_plan_lru *lru, const at_key *key, uint64_t hash);

/* As at_plan_table_put, but `plan` stays the caller's after a failure; *plan comes back with a use counted. `unused`:
 * what the caller destroys without the lock. */
attune_status at_plan_lru_put(at_plan_lru *lru, const at_key *key, uint64_t hash, at_plan **plan,
                              const attune_decision *decision, bool keep, at_plan **unused);

bool at_plan_lru_decision(at_plan_lru *lru, const at_key *key, uint64_t hash, attune_decision *out);
void at_plan_lru_drop_hints(at_plan_lru *lru);

#endif
