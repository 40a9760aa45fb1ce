/* SPDX-License-Identifier: Apache-2.0
 * threads.h: the process's pool of CPU threads, for work that is split in the moment. Fork-safe: a child starts a pool
 * of its own. */
#ifndef AT_HOST_THREADS_H
#define AT_HOST_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct at_team {
  int rank; /* the share: 0 to size - 1 */
  int size;
} at_team;

/* Cuts work into `wanted` shares: runs fn(arg, team) once for each rank, on as many threads at once, the caller's
 * included, and returns when all are done. Rank 0 is the caller's, which comes first there; a share whose thread does
 * not come in time runs on another thread of the team, so one share must never wait for another. `team->size` may be
 * smaller than wanted (the pool is busy, a thread could not start): fn must work for any size >= 1. Never allocates
 * once the pool has grown to `wanted`. Any thread; calls from inside fn get size 1. */
void at_parallel(int wanted, void (*fn)(void *arg, const at_team *team), void *arg);

/* Is that thread, by its number, one of the pool? And how many teams woke threads of the pool so far (it may wrap). Any
 * thread. */
bool at_in_pool(int thread);
unsigned at_team_count(void);

/* For how long callers of teams worked alone so far, since no other thread came in time or was worth waking. Any
 * thread. */
int64_t at_team_alone_ns(void);

/* CPU threads that one operation may use: logical CPUs (affinity mask, cgroup quota rounded up), at most as many as
 * attune_set_threads or ATTUNE_THREADS say; at least 1. */
int at_cpu_count(void);

/* at_alloc_large, and all CPUs touch it, each its share: who fills it then waits for no page. For what one thread, or a
 * driver, fills. Release it with free(). */
void *at_alloc_touched(size_t bytes);

#endif
