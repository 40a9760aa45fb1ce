/* SPDX-License-Identifier: Apache-2.0
 * cpu_capacity.h: how much CPU time the machine gives in the long run, whatever the number of CPUs that it shows: a
 * hypervisor or a quota may let two CPUs run at once for a moment and then halve both. */
#ifndef AT_HOST_CPU_CAPACITY_H
#define AT_HOST_CPU_CAPACITY_H

#include <stdint.h>

/* CPUs of full speed that threads of this process get together beyond a burst, from 1 to the number of CPUs that it may
 * use. Measured at the first call, for at most AT_CAPACITY_MS, with a thread on each CPU. The time that other programs
 * keep these waiting does not count, where the kernel tells it; elsewhere other work lowers the result. Any thread. */
double at_cpu_capacity(void);
#define AT_CAPACITY_MS 450

/* The same when it was measured, else what masks and quotas say: never measures. Any thread. */
double at_cpu_capacity_known(void);

/* For tests: this is what was measured. */
void at_cpu_capacity_set(double cpus);

/* How long a thread may wait awake for another one: most_ns, or 0 where the one that waits takes the time of the one
 * that works. Any thread. */
int64_t at_spin_limit(int64_t most_ns);

/* CPU time of all threads of the process so far. */
int64_t at_cpu_time_ns(void);

#endif
