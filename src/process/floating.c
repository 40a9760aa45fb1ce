/* SPDX-License-Identifier: Apache-2.0
 * floating.c: see floating.h. */
#include "src/process/floating.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

void at_floating_set(fenv_t *before) {
  (void)fegetenv(before);
  (void)fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
  _mm_setcsr(0x1f80); /* not every C library clears the bits that flush denormals */
#endif
}

void at_floating_restore(const fenv_t *before) {
  (void)fesetenv(before);
}

typedef struct beginning {
  void *(*fn)(void *arg);
  void *arg;
  sigset_t mask; /* of the thread that starts this one */
} beginning;

static _Thread_local bool own; /* attune has started this thread */
static _Thread_local sigset_t starters_mask;

static void *begin(void *arg) {
  const beginning mine = *(beginning *)arg;
  free(arg);
  own = true;
  starters_mask = mine.mask;
  return mine.fn(mine.arg);
}

void at_thread_forked(void) {
  if (own) (void)pthread_sigmask(SIG_SETMASK, &starters_mask, NULL);
}

/* A new thread has the environment and the signal mask of the one that starts it. */
int at_thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  int error = pthread_attr_init(&attributes);
  if (error) return error;
  beginning *b = malloc(sizeof *b);
  if (!b) {
    (void)pthread_attr_destroy(&attributes);
    return ENOMEM;
  }
  if (!out) (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  *b = (beginning){fn, arg, before};
  const at_floating floating = at_floating_enter();
  error = pthread_create(out ? out : &thread, &attributes, begin, b);
  at_floating_leave(&floating);
  if (error) free(b);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attributes);
  return error;
}
