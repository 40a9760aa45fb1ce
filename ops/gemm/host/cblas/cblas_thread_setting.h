/* SPDX-License-Identifier: Apache-2.0
 * cblas_thread_setting.h: calls into a library whose thread count is one setting of the process. Calls that want the
 * same count run at once, others wait; the setting found is put back when the last one leaves, so that the host
 * program's own choice stands.
 *
 * A fork and the process's end must find no thread inside: OpenBLAS ends its threads at both, and a call in flight
 * would then hang or crash. So both close the gate and wait for the calls inside to end. */
#ifndef AT_GEMM_CBLAS_THREAD_SETTING_H
#define AT_GEMM_CBLAS_THREAD_SETTING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct at_visitor;

typedef struct at_cblas_thread_setting {
  int (*get_threads)(void);
  _Atomic(const volatile int *) setting; /* what get_threads returns, where the library shows it; NULL: it is called */
  void (*set_threads)(int threads);
  _Atomic uint64_t state; /* see cblas_thread_setting.c */
  atomic_int calm;        /* calls since the setting was changed, while it is */
  int previous;           /* the setting found; written while the gate is closed */
  int most;               /* calls inside at once; 0: any number */
  pthread_mutex_t mutex;  /* guards waiters */
  pthread_cond_t changed;
  int waiters;
} at_cblas_thread_setting;

void at_cblas_thread_setting_init(at_cblas_thread_setting *gate, int (*get_threads)(void), void (*set_threads)(int));

/* The variable where the library keeps its setting: reading it is much cheaper than asking. It is no part of the
 * library's interface, so nothing comes of it unless it holds what get_threads says, now and after each change. */
void at_cblas_thread_setting_show(at_cblas_thread_setting *gate, const volatile int *setting);

/* At most so many calls inside at once from now on: for each of them the library has memory, and it may get no more.
 * Before the first call. */
void at_cblas_thread_setting_limit(at_cblas_thread_setting *gate, int most);

/* The same limit, which costs nothing until more than `most` threads that live have called such libraries. Before the
 * first call of any gate. */
void at_cblas_thread_setting_bound(at_cblas_thread_setting *gate, int most);

/* Between these the library runs with `threads` (1..65535); a gate without setter takes no notice of them. Any thread.
 * NULL: the process ends, the library must not be called, and there is nothing to leave. */
struct at_visitor *at_cblas_thread_setting_enter(at_cblas_thread_setting *gate, int threads);
void at_cblas_thread_setting_leave(at_cblas_thread_setting *gate);

/* The same with what enter returned, which saves looking for it. */
void at_cblas_thread_setting_leave_as(at_cblas_thread_setting *gate, struct at_visitor *mine);

/* From hold to release no thread enters. hold returns when no thread is inside but the calling thread itself (whose
 * signal handler forks), or when what is inside does not compute and will never leave. Forks of several threads may
 * overlap. */
void at_cblas_thread_setting_hold(at_cblas_thread_setting *gate);
void at_cblas_thread_setting_release(at_cblas_thread_setting *gate);

/* Holds the gate for ever: the process ends. */
void at_cblas_thread_setting_end(at_cblas_thread_setting *gate);

/* In a child after fork: no thread is inside, and the setting found is put back. */
void at_cblas_thread_setting_after_fork(at_cblas_thread_setting *gate);

#endif
