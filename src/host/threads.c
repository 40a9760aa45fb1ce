/* SPDX-License-Identifier: Apache-2.0
 * threads.c: one pool of threads for the process. A team owns the pool while it runs; who finds it owned runs alone. */
#include "src/host/threads.h"

#include "src/fork.h"
#include "src/host/capacity.h"
#include "src/host/cpu_count.h"
#include "src/host/spin.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMBERS_MAX 1024
/* Longer than waking a halted virtual CPU takes (70 us were seen): else caller and worker put each other to sleep in
 * turns, and each call of a few microseconds takes a wake-up. */
#define SPIN_NS 200000
#define SPIN_LEAST_NS 4000

/* A word that others wait for to change: they spin for a while, then sleep. How long is learned: twice what it took
 * lately, and hardly at all when it takes longer than spinning pays, for then the spinning only burns what the others
 * need. */
typedef struct gate {
  atomic_uint word;
  atomic_uint sleepers;
  _Atomic int64_t patience_ns; /* to spin at most; 0: nothing is known yet */
} gate;

typedef struct worker {
  alignas(64) gate start; /* changes when the worker has a team's work to do */
  int rank;
} worker;

/* fn, arg, size, count and workers belong to the owner; a worker reads them between its start and its finish. */
static struct {
  alignas(64) atomic_bool owned;
  void (*fn)(void *arg, const at_team *team);
  void *arg;
  int size;
  int count;                    /* workers that run */
  unsigned generation;          /* changes in a child of fork */
  worker *workers[MEMBERS_MAX]; /* rank 1 first; kept for ever */
  int cpu;                      /* where the caller of the team runs */
  alignas(64) atomic_int running;
  gate finish; /* changes once a team, by the worker that ends last */
  alignas(64) atomic_int arrived;
  gate phase; /* changes once a barrier, by the member that arrives last */
} pool;

static _Atomic int members[MEMBERS_MAX]; /* the workers' thread numbers, rank 1 first; 0: there is none */
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static _Thread_local bool inside; /* this thread runs a team's function */

static void futex(atomic_uint *word, int operation, unsigned value) {
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Sequentially consistent: either the opener sees the sleeper or the sleeper sees the new word. */
static void gate_open(gate *g) {
  atomic_fetch_add(&g->word, 1);
  if (atomic_load(&g->sleepers) > 0) futex(&g->word, FUTEX_WAKE, INT_MAX);
}

static int64_t patience(gate *g) {
  const int64_t most = at_spin_limit(SPIN_NS), learned = atomic_load_explicit(&g->patience_ns, memory_order_relaxed);
  return learned > 0 && learned < most ? learned : most;
}

/* Grows at once and shrinks slowly: one long wait among short ones changes little. */
static void learn(gate *g, int64_t waited_ns) {
  const int64_t now = atomic_load_explicit(&g->patience_ns, memory_order_relaxed), old = now > 0 ? now : SPIN_NS;
  int64_t right = waited_ns > SPIN_NS ? SPIN_LEAST_NS : 2 * waited_ns;
  if (right > SPIN_NS) right = SPIN_NS;
  if (right < SPIN_LEAST_NS) right = SPIN_LEAST_NS;
  atomic_store_explicit(&g->patience_ns, right > old ? right : (7 * old + right) / 8, memory_order_relaxed);
}

static unsigned gate_wait(gate *g, unsigned old) {
  unsigned now = atomic_load_explicit(&g->word, memory_order_acquire);
  if (now != old) return now;
  const int64_t start = at_now_ns();
  at_spin spin = {.limit_ns = patience(g)};
  while (at_spin_turn(&spin)) {
    now = atomic_load_explicit(&g->word, memory_order_acquire);
    if (now != old) break;
  }
  if (now == old) {
    atomic_fetch_add(&g->sleepers, 1);
    while ((now = atomic_load(&g->word)) == old) futex(&g->word, FUTEX_WAIT, old);
    atomic_fetch_sub(&g->sleepers, 1);
  }
  learn(g, at_now_ns() - start);
  return now;
}

static void gate_reset(gate *g) {
  atomic_store(&g->word, 0);
  atomic_store(&g->sleepers, 0);
  atomic_store(&g->patience_ns, 0);
}

/* The child has none of the workers; a team that the parent was running does not exist there. */
static void after_fork(void *unused, bool child) {
  (void)unused;
  if (!child) return;
  pool.generation++;
  pool.count = 0;
  atomic_store(&pool.running, 0);
  atomic_store(&pool.arrived, 0);
  gate_reset(&pool.finish);
  gate_reset(&pool.phase);
  for (int i = 0; i < MEMBERS_MAX && atomic_load(&members[i]); i++) atomic_store(&members[i], 0);
  atomic_store(&pool.owned, false);
}

static void open_pool(void) {
  static at_fork_watch watch = {.after = after_fork};
  at_fork_watch_add(&watch);
}

/* The kernel wakes a thread on its waker's CPU, where it would share the time of the caller until the scheduler
 * balances: often longer than the team lives. Leaving that CPU out of the mask for a moment moves the thread at once.
 */
static void step_aside(int cpu) {
  cpu_set_t all, others;
  if (cpu < 0 || sched_getcpu() != cpu || sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR((size_t)cpu, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  (void)sched_setaffinity(0, sizeof all, &all);
}

static void *run_worker(void *arg) {
  worker *self = arg;
  unsigned seen = 0;
  unsigned generation = pool.generation;
  inside = true;
  atomic_store(&members[self->rank - 1], gettid());
  for (;;) {
    seen = gate_wait(&self->start, seen);
    step_aside(pool.cpu);
    at_team team = {self->rank, pool.size, &pool};
    pool.fn(pool.arg, &team);
    if (pool.generation != generation) return NULL; /* fn forked, and this is the child: no team, no pool */
    if (atomic_fetch_sub(&pool.running, 1) == 1) gate_open(&pool.finish);
  }
}

/* The program's signal handlers must not run on our threads. */
static bool start_worker(int rank) {
  worker **slot = &pool.workers[rank - 1];
  if (!*slot && !(*slot = aligned_alloc(alignof(worker), sizeof(worker)))) return false;
  gate_reset(&(*slot)->start);
  (*slot)->rank = rank;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  bool started = pthread_create(&thread, NULL, run_worker, *slot) == 0;
  if (started) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

/* The team's size: `wanted`, or less when threads cannot be had. */
static int grow_pool(int wanted) {
  if (wanted > MEMBERS_MAX) wanted = MEMBERS_MAX;
  while (pool.count < wanted - 1 && start_worker(pool.count + 1)) pool.count++;
  return wanted <= pool.count + 1 ? wanted : pool.count + 1;
}

static void run_alone(void (*fn)(void *arg, const at_team *team), void *arg) {
  bool before = inside;
  at_team team = {0, 1, &pool};
  inside = true;
  fn(arg, &team);
  inside = before;
}

static void run_team(int size, void (*fn)(void *arg, const at_team *team), void *arg) {
  unsigned generation = pool.generation, finish = atomic_load_explicit(&pool.finish.word, memory_order_relaxed);
  at_team team = {0, size, &pool};
  pool.fn = fn;
  pool.arg = arg;
  pool.size = size;
  pool.cpu = sched_getcpu();
  atomic_store_explicit(&pool.running, size - 1, memory_order_relaxed);
  for (int rank = 1; rank < size; rank++) gate_open(&pool.workers[rank - 1]->start);
  inside = true;
  fn(arg, &team);
  inside = false;
  if (pool.generation != generation) return; /* fn forked, and this is the child */
  (void)gate_wait(&pool.finish, finish);
  atomic_store_explicit(&pool.owned, false, memory_order_release);
}

bool at_in_pool(int thread) {
  for (int i = 0; i < MEMBERS_MAX; i++) {
    const int member = atomic_load_explicit(&members[i], memory_order_relaxed);
    if (!member || member == thread) return member != 0;
  }
  return false;
}

unsigned at_team_count(void) {
  return atomic_load_explicit(&pool.finish.word, memory_order_relaxed);
}

void at_parallel(int wanted, void (*fn)(void *arg, const at_team *team), void *arg) {
  if (wanted <= 1 || inside) {
    run_alone(fn, arg);
    return;
  }
  pthread_once(&pool_once, open_pool);
  const int most = at_thread_bound();
  if (most > 0 && wanted > most) wanted = most;
  if (wanted <= 1 || atomic_exchange_explicit(&pool.owned, true, memory_order_acquire)) {
    run_alone(fn, arg);
    return;
  }
  int size = grow_pool(wanted);
  if (size > 1) {
    run_team(size, fn, arg);
    return;
  }
  atomic_store_explicit(&pool.owned, false, memory_order_release);
  run_alone(fn, arg);
}

/* The phase is read before the arrival: after it the last member may change it at any time. */
void at_team_barrier(const at_team *team) {
  if (team->size <= 1) return;
  unsigned phase = atomic_load_explicit(&pool.phase.word, memory_order_relaxed);
  if (atomic_fetch_add(&pool.arrived, 1) + 1 == team->size) {
    atomic_store_explicit(&pool.arrived, 0, memory_order_relaxed);
    gate_open(&pool.phase);
  } else {
    (void)gate_wait(&pool.phase, phase);
  }
}
