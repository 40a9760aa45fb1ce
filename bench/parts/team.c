/* SPDX-License-Identifier: Apache-2.0
 * team.c: threads that do the same at the same time. They are started once, and sleep between runs. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench/common/tool.h"
#include "bench/parts/parts.h"

typedef struct member {
  team *of;
  int number, cpu;
  pthread_t id;
} member;

struct team {
  bool (*work)(void *arg, int thread);
  void *arg;
  int threads;
  bool ends;
  atomic_bool failed;
  pthread_barrier_t begin, end; /* of the threads and the caller */
  member members[TEAM_MOST];
};

static int find_cpus(int cpus[TEAM_MOST]) {
  cpu_set_t set;
  int count = 0;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && count < TEAM_MOST; cpu++)
    if (CPU_ISSET((size_t)cpu, &set)) cpus[count++] = cpu;
  return count;
}

int team_cpus(void) {
  int cpus[TEAM_MOST];
  return find_cpus(cpus);
}

static void *live(void *arg) {
  member *m = arg;
  team *t = m->of;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((size_t)m->cpu, &one);
  (void)pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  for (;;) {
    pthread_barrier_wait(&t->begin);
    if (t->ends) return NULL;
    if (!t->work(t->arg, m->number)) atomic_store(&t->failed, true);
    pthread_barrier_wait(&t->end);
  }
}

team *team_open(int threads, bool (*work)(void *arg, int thread), void *arg) {
  int cpus[TEAM_MOST];
  const int count = find_cpus(cpus);
  team *t = calloc(1, sizeof *t);
  if (!t || count < 1) bench_die("no team of threads");
  t->work = work;
  t->arg = arg;
  t->threads = threads;
  pthread_barrier_init(&t->begin, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&t->end, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; i++) { /* spread evenly: neighbours may share a core's hardware */
    t->members[i] = (member){.of = t, .number = i, .cpu = cpus[threads <= count ? i * count / threads : i % count]};
    if (pthread_create(&t->members[i].id, NULL, live, &t->members[i]) != 0) bench_die("a thread could not start");
  }
  return t;
}

bool team_run(team *t) {
  pthread_barrier_wait(&t->begin);
  pthread_barrier_wait(&t->end);
  return !atomic_load(&t->failed);
}

void team_close(team *t) {
  if (!t) return;
  t->ends = true;
  pthread_barrier_wait(&t->begin);
  for (int i = 0; i < t->threads; i++) pthread_join(t->members[i].id, NULL);
  pthread_barrier_destroy(&t->begin);
  pthread_barrier_destroy(&t->end);
  free(t);
}
