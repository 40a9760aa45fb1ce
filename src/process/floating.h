/* SPDX-License-Identifier: Apache-2.0
 * floating.h: attune's threads, and the floating-point environment that they have: the default one, rounding to
 * nearest with denormals kept and no traps, whatever the thread has that starts them. What is measured, verified,
 * compiled or opened in a thread of the program is done in that environment, too, since its results outlast the
 * call. */
#ifndef AT_FLOATING_H
#define AT_FLOATING_H

#include <fenv.h>
#include <pthread.h>
#include <stdbool.h>

#include "src/base/support.h"

/* Previous state of the thread, for at_floating_leave. */
typedef struct at_floating {
  fenv_t before;
  bool changed;
} at_floating;

/* Has the thread the default environment? A few instructions; false where that is not known. */
AT_INLINE bool at_floating_usual(void) {
#if defined(__x86_64__)
  unsigned control = 0;
  unsigned short old = 0; /* of the x87 unit, which has long double */
  __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(control), "=m"(old));
  return (control & 0xffc0u) == 0x1f80u && (old & 0x0f3fu) == 0x033fu;
#else
  return false;
#endif
}

void at_floating_set(fenv_t *before);
void at_floating_restore(const fenv_t *before);

/* From enter to leave the thread has the default environment. May be nested. */
AT_INLINE at_floating at_floating_enter(void) {
  at_floating f;
  f.changed = !at_floating_usual();
  if (AT_UNLIKELY(f.changed)) at_floating_set(&f.before);
  return f;
}

AT_INLINE void at_floating_leave(const at_floating *f) {
  if (AT_UNLIKELY(f->changed)) at_floating_restore(&f->before);
}

/* Starts a thread of attune's own: the only way to one. It has the default environment, and the program's signal
 * handlers do not run on it. `out` NULL: it is detached. 0, or an error number. */
int at_thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg);

/* In a child of fork: a thread of attune's own has the signal mask of the thread that started it, as what goes on in
 * the child is the program's. */
void at_thread_forked(void);

#endif
