/* SPDX-License-Identifier: Apache-2.0
 * cblas_gate.h: calls into a library whose thread count is one setting of the process. Calls that want the same count
 * run at once, others wait; the setting found is put back when the last one leaves, so that the host program's own
 * choice stands. */
#ifndef AT_GEMM_CBLAS_GATE_H
#define AT_GEMM_CBLAS_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct at_cblas_gate {
  int (*get_threads)(void);
  void (*set_threads)(int threads);
  _Atomic uint64_t state; /* see cblas_gate.c */
  int previous;           /* the setting found; written while the gate is closed */
  pthread_mutex_t mutex;  /* guards waiters */
  pthread_cond_t changed;
  int waiters;
} at_cblas_gate;

void at_cblas_gate_init(at_cblas_gate *gate, int (*get_threads)(void), void (*set_threads)(int));

/* Between these the library runs with `threads` (1..65535). A gate without setter lets everyone through. Any thread. */
void at_cblas_gate_enter(at_cblas_gate *gate, int threads);
void at_cblas_gate_leave(at_cblas_gate *gate);

/* In a child after fork: nobody is inside, and the setting found is put back. */
void at_cblas_gate_after_fork(at_cblas_gate *gate);

#endif
