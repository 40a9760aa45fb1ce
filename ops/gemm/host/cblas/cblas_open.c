/* SPDX-License-Identifier: Apache-2.0
 * cblas_open.c: see cblas_library.h. */
#include "ops/gemm/host/cblas/cblas_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "src/process/floating.h"

/* ---- CPUs ---- */

enum { CPUS_MOST = 8192 };
typedef struct cpus {
  unsigned long words[CPUS_MOST / (8 * sizeof(unsigned long))];
} cpus;

int at_cblas_cpus(void) {
  cpus mine = {{0}};
  if (sched_getaffinity(0, sizeof mine, (cpu_set_t *)&mine) != 0) return 1;
  const int count = CPU_COUNT_S(sizeof mine, (const cpu_set_t *)&mine);
  return count > 1 ? count : 1;
}

/* The affinity of this thread alone: no other sees a change, as all would of an environment variable. */
static bool narrow(cpus *before) {
  cpus one = {{0}};
  *before = one;
  if (sched_getaffinity(0, sizeof *before, (cpu_set_t *)before) != 0) return false;
  for (size_t i = 0; i < sizeof one.words / sizeof *one.words; i++) {
    if (before->words[i] == 0) continue;
    one.words[i] = before->words[i] & -before->words[i];
    return sched_setaffinity(0, sizeof one, (const cpu_set_t *)&one) == 0;
  }
  return false;
}

/* ---- may threads be started? ---- */

static void *at_wait_for_end(void *lock) {
  pthread_mutex_lock(lock);
  pthread_mutex_unlock(lock);
  return NULL;
}

/* Limits of the user, of a container and of memory all count, so nothing but trying tells. */
int at_cblas_startable(int most) {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_t *threads = most > 0 ? malloc((size_t)most * sizeof *threads) : NULL;
  int started = 0;
  if (!threads) return 0;
  pthread_mutex_lock(&lock);
  while (started < most && at_thread_start(&threads[started], at_wait_for_end, &lock) == 0) started++;
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  free(threads);
  return started;
}

/* ---- SIGINT ---- */

/* Takes what came while the signal was blocked. True: this process sent it to itself. Any other is sent on. What is
 * sent to the process and not to this thread may meet another thread: looking before is what protects, and this where
 * limits are reached between the two. */
static bool take_interrupts(const sigset_t *interrupt) {
  siginfo_t info;
  bool raised = false, others = false;
  while (sigtimedwait(interrupt, &info, &(struct timespec){0}) == SIGINT) {
    const bool own = (info.si_code == SI_TKILL || info.si_code == SI_USER) && info.si_pid == getpid();
    raised = raised || own;
    others = others || !own;
  }
  if (others) (void)kill(getpid(), SIGINT);
  return raised;
}

void *at_cblas_open(const char *file, int flags, bool alone, bool *refused) {
  sigset_t interrupt, before;
  cpus all;
  if (alone && !narrow(&all)) {
    *refused = true;
    return NULL;
  }
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  void *handle = dlopen(file, flags);
  const bool raised = take_interrupts(&interrupt);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (alone) (void)sched_setaffinity(0, sizeof all, (const cpu_set_t *)&all);
  if (!handle) (void)dlerror(); /* the program's next dlerror is not about this */
  *refused = *refused || raised;
  return raised ? NULL : handle;
}
