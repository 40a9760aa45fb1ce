/* SPDX-License-Identifier: Apache-2.0
 * thread_times.h: how long one thread ran, and how long it was kept waiting. */
#ifndef AT_HOST_THREAD_TIMES_H
#define AT_HOST_THREAD_TIMES_H

#include <stdint.h>

/* CPU time of the calling thread so far. Work of one thread that took longer by the clock was kept waiting. */
int64_t at_thread_time_ns(void);

/* How long one thread of this process, by its number, was ready to run and did not, so far; -1: the kernel does not
 * tell. */
int64_t at_thread_waited_ns(int thread);

/* The same of a folder `tasks` (/proc/self/task) and the thread's name there. */
int64_t at_task_waited_ns(int tasks, const char *thread);

#endif
