/* SPDX-License-Identifier: Apache-2.0
 * cpu_count.h: what CPU time this process can have. */
#ifndef AT_HOST_CPU_COUNT_H
#define AT_HOST_CPU_COUNT_H

/* Logical CPUs whose time this process may use all the while: the affinity mask, or a cgroup quota below it, such as
 * 1.5. attune_set_threads does not change it. Any thread. */
double at_cpu_share(void);

/* The smallest CPU quota of the groups that the file `membership` (/proc/self/cgroup) names, up to their roots below
 * `root` (/sys/fs/cgroup), in CPUs; 0: none. Any thread. */
double at_cgroup_quota(const char *root, const char *membership);

/* The most threads of a team by attune_set_threads, else by ATTUNE_THREADS; 0: no bound. Any thread. */
int at_thread_bound(void);

#endif
