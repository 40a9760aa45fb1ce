/* SPDX-License-Identifier: Apache-2.0
 * floating.c: see floating.h. */
#include "src/process/floating.h"

#include <signal.h>

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

/* A new thread has the environment and the signal mask of the one that starts it. */
int at_thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg) {
  at_floating floating;
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  int error = pthread_attr_init(&attributes);
  if (error) return error;
  if (!out) (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  at_floating_enter(&floating);
  error = pthread_create(out ? out : &thread, &attributes, fn, arg);
  at_floating_leave(&floating);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attributes);
  return error;
}
