/* SPDX-License-Identifier: Apache-2.0
 * cpu_preemption.h: whether threads of this process were kept from the CPUs while they had work, by other programs,
 * other threads of this one, or the hypervisor. A time measured then says nothing about the machine. */
#ifndef AT_HOST_CPU_PREEMPTION_H
#define AT_HOST_CPU_PREEMPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "src/host/thread_times.h"

/* How long each thread of the process was ready to run and did not, so far. */
enum { AT_WAITS_MOST = 128 }; /* threads that are looked at */
typedef struct at_waits {
  struct {
    int thread;
    bool pool; /* it is of the pool of threads.h */
    int64_t ns;
  } each[AT_WAITS_MOST];
  int count;        /* 0: the kernel does not tell */
  int64_t alone_ns; /* that callers of teams worked alone so far: the others were kept waiting, or not even woken */
  unsigned teams;   /* that the pool has run so far */
} at_waits;

/* Takes some microseconds for each thread. */
void at_waits_look(at_waits *out);

/* How long the thread that waited longest was kept waiting between two looks of the calling thread. Where the pool ran
 * a team meanwhile, of its threads and the caller; else of the caller and all others, which a library may have at work.
 * 0 where the kernel does not tell. */
int64_t at_waits_most(const at_waits *before, const at_waits *after);

/* Time that the CPUs of this process were busy so far, whoever used them, and that a hypervisor took, all CPUs
 * together, in steps of a hundredth of a second; -1: the kernel does not tell. */
int64_t at_busy_time_ns(void);

#endif
