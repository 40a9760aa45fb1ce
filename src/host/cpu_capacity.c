/* SPDX-License-Identifier: Apache-2.0
 * cpu_capacity.c: a thread on each CPU computes for a while; what they do together in the last part, beside what one
 * CPU does at its best, is how many CPUs there really are. Arithmetic throughput is compared, so two hardware threads
 * of one core count as the one core that products of matrices find there. */
#include "src/host/cpu_capacity.h"

#include "src/base/support.h"
#include "src/host/cpu_count.h"
#include "src/host/thread_times.h"
#include "src/host/threads.h"
#include "src/process/floating.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 256, LANES = 32 };
static const int64_t ALONE_NS = 40000000,
                     WINDOW_NS = 1000000; /* one thread, and the windows of which the best counts */
static const int64_t LOAD_NS = 240000000, TOGETHER_NS = 150000000; /* all: until a burst is over, and what counts */

static const double LEAST_RAN = 0.02; /* of the time: what ran less than this says nothing */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic double capacity; /* 0: not measured */

typedef struct burner {
  alignas(64) _Atomic uint64_t units;
  _Atomic int thread; /* its number; 0: it has not begun */
  _Atomic bool *stop;
} burner;

/* A microsecond or so of multiplications and additions that do not wait for each other. */
static void burn_unit(double lanes[LANES]) {
  for (int round = 0; round < 100; round++)
    for (int i = 0; i < LANES; i++) lanes[i] = lanes[i] * 0.999 + 0.001;
}

static void *burn(void *arg) {
  burner *b = arg;
  double lanes[LANES] = {0.0};
  volatile double sink = 0.0;
  atomic_store(&b->thread, gettid());
  while (!atomic_load_explicit(b->stop, memory_order_relaxed)) {
    burn_unit(lanes);
    sink = lanes[0];
    atomic_fetch_add_explicit(&b->units, 1, memory_order_relaxed);
  }
  (void)sink;
  return NULL;
}

/* The most units a nanosecond that one thread reached in a window. */
static double rate_alone(void) {
  double lanes[LANES] = {0.0}, best = 0.0;
  volatile double sink = 0.0;
  const int64_t end = at_now_ns() + ALONE_NS;
  for (int64_t start = at_now_ns(); start < end;) {
    int units = 0;
    int64_t now = start;
    for (; now - start < WINDOW_NS; now = at_now_ns(), units++) {
      burn_unit(lanes);
      sink = lanes[0];
    }
    const double rate = (double)units / (double)(now - start);
    if (rate > best) best = rate;
    start = now;
  }
  (void)sink;
  return best;
}

static uint64_t units_of(const burner *burners, int count) {
  uint64_t units = 0;
  for (int i = 0; i < count; i++)
    units += atomic_load_explicit(&((burner *)(uintptr_t)&burners[i])->units, memory_order_relaxed);
  return units;
}

/* How long they were kept waiting for a CPU so far, together: other work had it, or another one of them. 0 where the
 * kernel does not tell. */
static int64_t waited_ns(burner *burners, int count) {
  int64_t sum = 0;
  for (int i = 0; i < count; i++) {
    const int64_t ns = at_thread_waited_ns(atomic_load(&burners[i].thread));
    if (ns > 0) sum += ns;
  }
  return sum;
}

static void sleep_ns(int64_t ns) {
  struct timespec left = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
  while (nanosleep(&left, &left) != 0) continue;
}

/* The units a nanosecond of `count` threads together, beyond the burst, as if no other work had kept them waiting; 0
 * when not all of them could be had. */
static double rate_together(burner *burners, int count) {
  pthread_t threads[MOST_THREADS];
  _Atomic bool stop = false;
  int started = 0;
  for (; started < count; started++) {
    atomic_init(&burners[started].units, 0);
    atomic_init(&burners[started].thread, 0);
    burners[started].stop = &stop;
    if (at_thread_start(&threads[started], burn, &burners[started]) != 0) break;
  }
  double rate = 0.0;
  if (started == count) {
    sleep_ns(LOAD_NS);
    const int64_t start = at_now_ns(), waited = waited_ns(burners, count);
    const uint64_t units = units_of(burners, count);
    sleep_ns(TOGETHER_NS);
    const double done = (double)(units_of(burners, count) - units), time = (double)(at_now_ns() - start) * count,
                 ran = time - (double)(waited_ns(burners, count) - waited);
    rate = count * done / (ran > LEAST_RAN * time ? ran : LEAST_RAN * time);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  return rate;
}

static double measured(void) {
  double most = at_cpu_share(), found = 1.0;
  const int count = most < MOST_THREADS ? (int)most + ((double)(int)most < most) : MOST_THREADS;
  burner *burners = count > 1 ? aligned_alloc(alignof(burner), (size_t)count * sizeof *burners) : NULL;
  if (burners) {
    const double alone = rate_alone(), together = rate_together(burners, count);
    if (alone > 0.0 && together > alone) found = together / alone;
    if (found > most) found = most;
    free(burners);
  }
  return found;
}

static void measure(void) {
  const at_floating floating = at_floating_enter(); /* the caller may trap what is inexact */
  if (atomic_load(&capacity) == 0.0) atomic_store(&capacity, measured());
  at_floating_leave(&floating);
}

double at_cpu_capacity(void) {
  pthread_once(&once, measure);
  return atomic_load(&capacity);
}

double at_cpu_capacity_known(void) {
  const double found = atomic_load_explicit(&capacity, memory_order_relaxed);
  return found > 0.0 ? found : at_cpu_share();
}

void at_cpu_capacity_set(double cpus) {
  atomic_store(&capacity, cpus);
}

/* Two must really run at once, with a little to spare for what a measurement loses. */
int64_t at_spin_limit(int64_t most_ns) {
  static const double TWO = 1.7;
  return at_cpu_count() > 1 && at_cpu_capacity_known() >= TWO ? most_ns : 0;
}

int64_t at_cpu_time_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
