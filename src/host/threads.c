/* SPDX-License-Identifier: Apache-2.0
 * threads.c: one pool of threads for the process. A team owns the pool while it runs; a caller that finds it owned runs
 * alone.
 *
 * Work is cut into shares, one per member, and no member waits for one that has not come: one that is done with its
 * share takes one that was not begun. So a thread that gets no CPU (other programs have it, the kernel put it behind
 * the caller, it sleeps) costs its help and no more; only a share that was begun is waited for. */
#include "src/host/threads.h"

#include "src/base/support.h"
#include "src/host/cpu_capacity.h"
#include "src/host/cpu_count.h"
#include "src/host/futex_word.h"
#include "src/host/main_thread_exit.h"
#include "src/process/floating.h"
#include "src/process/fork.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MEMBERS_MAX 1024

/* Workers that came too late to every team for as long as a wake-up takes are not woken for a while: the first time,
 * twice as long each time that it happens again, at most the last. */
static const int64_t MISSED_NS = 300000, PAUSE_NS = 500000, PAUSE_MOST_NS = 16000000;

typedef struct worker {
  alignas(64) at_futex_word start; /* changes when the worker has a team's share to do */
  _Atomic uint64_t share;          /* of the team number `share / 2`; odd: taken */
  int rank;
} worker;

/* fn, arg, size, number, count, workers and what follows them belong to the owner; a thread that took a share reads
 * them until it reports that share done. */
static struct {
  alignas(64) atomic_bool owned;
  void (*fn)(void *arg, const at_team *team);
  void *arg;
  int size;
  uint64_t number;                /* of the team, from 1 */
  int count;                      /* workers that run */
  unsigned generation;            /* changes in a child of fork */
  worker *workers[MEMBERS_MAX];   /* rank 1 first; kept for ever */
  int64_t missed_ns;              /* the first of the teams in a row that no worker came to; 0: one came to the last */
  int64_t pause_ns, until_ns;     /* no worker is woken before */
  int64_t alone_since_ns;         /* no worker came to the teams since; 0: one came to the last */
  _Atomic int64_t alone_ns;       /* that callers worked alone so far */
  _Atomic int cpu;                /* where the caller of the team runs */
  _Atomic unsigned teams;         /* that woke workers */
  alignas(64) atomic_int open;    /* shares not taken yet */
  alignas(64) atomic_int running; /* shares that are not done, but the caller's own */
  at_futex_word finish;           /* changes when a worker ends the team's last share */
} pool;

static _Atomic int members[MEMBERS_MAX]; /* the workers' thread numbers, rank 1 first; 0: there is none */
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static _Thread_local bool inside; /* this thread runs a team's function */

/* The child has none of the workers; a team that the parent was running does not exist there. */
static void after_fork(void *unused, bool child) {
  (void)unused;
  if (!child) return;
  pool.generation++;
  pool.count = 0;
  pool.missed_ns = pool.pause_ns = pool.until_ns = pool.alone_since_ns = 0;
  atomic_store(&pool.running, 0);
  atomic_store(&pool.open, 0);
  at_futex_word_reset(&pool.finish);
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

static bool take(worker *of, uint64_t number) {
  uint64_t open = 2 * number;
  if (atomic_load_explicit(&of->share, memory_order_relaxed) != open ||
      !atomic_compare_exchange_strong_explicit(&of->share, &open, open + 1, memory_order_acquire, memory_order_relaxed))
    return false;
  atomic_fetch_sub_explicit(&pool.open, 1, memory_order_relaxed);
  return true;
}

/* Runs share `rank`, and then each that was not begun. False: fn forked, and this is the child. */
static bool run_shares(int rank, void (*fn)(void *arg, const at_team *team), void *arg, int size, uint64_t number,
                       int *done) {
  const unsigned generation = pool.generation;
  for (int next = rank, tried = 0;;) {
    fn(arg, &(at_team){next, size});
    if (pool.generation != generation) return false;
    ++*done;
    do {
      if (++tried == size || atomic_load_explicit(&pool.open, memory_order_relaxed) <= 0) return true;
      next = next + 1 < size ? next + 1 : 0;
    } while (next == 0 || !take(pool.workers[next - 1], number));
  }
}

/* One of the workers is enough to look whether the process has come to its end. */
static unsigned wait_for_team(worker *self, unsigned seen) {
  unsigned now;
  while ((now = at_futex_word_wait(&self->start, seen, self->rank == 1 ? AT_MAIN_THREAD_EXIT_LOOK_NS : 0)) == seen)
    at_main_thread_exit_look();
  return now;
}

static void *run_worker(void *arg) {
  worker *self = arg;
  unsigned seen = 0;
  inside = true;
  atomic_store(&members[self->rank - 1], gettid());
  for (;;) {
    seen = wait_for_team(self, seen);
    step_aside(atomic_load_explicit(&pool.cpu, memory_order_relaxed));
    const uint64_t share = atomic_load_explicit(&self->share, memory_order_relaxed);
    int done = 0;
    if (share % 2 != 0 || !take(self, share / 2)) continue;                                   /* it came too late */
    if (!run_shares(self->rank, pool.fn, pool.arg, pool.size, share / 2, &done)) return NULL; /* no team, no pool */
    if (atomic_fetch_sub(&pool.running, done) == done) at_futex_word_open(&pool.finish);
  }
}

static bool start_worker(int rank) {
  worker **slot = &pool.workers[rank - 1];
  if (!*slot && !(*slot = aligned_alloc(alignof(worker), sizeof(worker)))) return false;
  at_futex_word_reset(&(*slot)->start);
  atomic_store(&(*slot)->share, 1);
  (*slot)->rank = rank;
  return at_thread_start(NULL, run_worker, *slot) == 0;
}

/* The team's size: `wanted`, or less when threads cannot be had. */
static int grow_pool(int wanted) {
  if (wanted > MEMBERS_MAX) wanted = MEMBERS_MAX;
  while (pool.count < wanted - 1 && start_worker(pool.count + 1)) pool.count++;
  return wanted <= pool.count + 1 ? wanted : pool.count + 1;
}

static void run_alone(int size, void (*fn)(void *arg, const at_team *team), void *arg) {
  const bool before = inside;
  const unsigned generation = at_fork_generation();
  inside = true;
  for (int rank = 0; rank < size && at_fork_generation() == generation; rank++) fn(arg, &(at_team){rank, size});
  inside = before;
}

/* The caller worked alone until now, and before too. */
static void note_alone(int64_t now) {
  if (pool.alone_since_ns) atomic_fetch_add_explicit(&pool.alone_ns, now - pool.alone_since_ns, memory_order_relaxed);
  pool.alone_since_ns = now;
}

/* Whether a worker came to the last team. The caller owns the pool. */
static void note_help(bool came) {
  if (came) {
    pool.missed_ns = pool.pause_ns = pool.alone_since_ns = 0;
    return;
  }
  const int64_t now = at_now_ns();
  note_alone(now);
  if (pool.missed_ns == 0) pool.missed_ns = now;
  if (now - pool.missed_ns < MISSED_NS) return;
  pool.pause_ns = pool.pause_ns == 0 ? PAUSE_NS : pool.pause_ns < PAUSE_MOST_NS ? 2 * pool.pause_ns : PAUSE_MOST_NS;
  pool.until_ns = now + pool.pause_ns;
  pool.missed_ns = 0;
}

/* Whether to leave the workers alone this time. The caller owns the pool. */
static bool pausing(void) {
  if (pool.until_ns == 0) return false;
  const int64_t now = at_now_ns();
  if (now >= pool.until_ns) {
    pool.until_ns = 0;
    return false;
  }
  note_alone(now);
  return true;
}

/* The caller owns the pool. */
static void run_team(int size, void (*fn)(void *arg, const at_team *team), void *arg) {
  const uint64_t number = ++pool.number;
  int done = 0;
  pool.fn = fn;
  pool.arg = arg;
  pool.size = size;
  atomic_store_explicit(&pool.cpu, sched_getcpu(), memory_order_relaxed);
  atomic_fetch_add_explicit(&pool.teams, 1, memory_order_relaxed);
  atomic_store_explicit(&pool.running, size - 1, memory_order_relaxed);
  atomic_store_explicit(&pool.open, size - 1, memory_order_relaxed);
  for (int rank = 1; rank < size; rank++) {
    worker *w = pool.workers[rank - 1];
    atomic_store_explicit(&w->share, 2 * number, memory_order_release);
    at_futex_word_open(&w->start);
  }
  inside = true;
  const bool here = run_shares(0, fn, arg, size, number, &done);
  inside = false;
  if (!here) return;
  note_help(done < size);
  atomic_fetch_sub(&pool.running, done - 1);
  for (;;) {
    const unsigned finish = atomic_load(&pool.finish.word); /* first: it changes after `running` */
    if (atomic_load(&pool.running) == 0) break;
    (void)at_futex_word_wait(&pool.finish, finish, 0);
  }
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
  return atomic_load_explicit(&pool.teams, memory_order_relaxed);
}

int64_t at_team_alone_ns(void) {
  return atomic_load_explicit(&pool.alone_ns, memory_order_relaxed);
}

static void run_shared(int wanted, void (*fn)(void *arg, const at_team *team), void *arg) {
  pthread_once(&pool_once, open_pool);
  const int most = at_thread_bound();
  if (most > 0 && wanted > most) wanted = most;
  if (wanted <= 1 || atomic_exchange_explicit(&pool.owned, true, memory_order_acquire)) {
    run_alone(1, fn, arg);
    return;
  }
  const int size = grow_pool(wanted);
  if (size > 1 && !pausing()) {
    run_team(size, fn, arg);
    return;
  }
  atomic_store_explicit(&pool.owned, false, memory_order_release);
  run_alone(size, fn, arg);
}

/* Which thread does a share is chance, and its result must not be: the caller has the environment of the others. */
void at_parallel(int wanted, void (*fn)(void *arg, const at_team *team), void *arg) {
  if (wanted <= 1 || inside) {
    run_alone(1, fn, arg);
    return;
  }
  const at_floating floating = at_floating_enter();
  run_shared(wanted, fn, arg);
  at_floating_leave(&floating);
}

enum { PAGE = 4096, LEAST = 8 << 20 };

typedef struct touching {
  char *memory;
  size_t bytes;
} touching;

/* Neighbouring pages by one thread: they may be one huge page. */
static void touch_share(void *arg, const at_team *team) {
  const touching *t = arg;
  const size_t pages = t->bytes / PAGE, first = pages * (size_t)team->rank / (size_t)team->size,
               end = pages * (size_t)(team->rank + 1) / (size_t)team->size;
  for (size_t page = first; page < end; page++) ((volatile char *)t->memory)[page * PAGE] = 0;
}

void *at_alloc_touched(size_t bytes) {
  touching t = {.memory = at_alloc_large(bytes), .bytes = bytes};
  if (t.memory && bytes >= LEAST) at_parallel(at_cpu_count(), touch_share, &t);
  return t.memory;
}
