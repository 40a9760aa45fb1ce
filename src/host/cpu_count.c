/* SPDX-License-Identifier: Apache-2.0
 * cpu_count.c: how many CPUs are ours: the affinity mask (cpusets show there), the cgroup quotas, and the bound that
 * the program or ATTUNE_THREADS sets. */
#include "src/host/cpu_count.h"

#include "src/base/settings.h"
#include "src/base/support.h"
#include "src/host/threads.h"
#include "src/process/process.h"

#include <attune/device.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int available;     /* constant after once */
static double share;      /* constant after once */
static int asked;         /* ATTUNE_THREADS, 0: none; constant after once */
static _Atomic int bound; /* attune_set_threads; 0: none */

static int affinity_count(void) {
  for (int most = 1024; most <= 1 << 18; most *= 4) {
    cpu_set_t *set = CPU_ALLOC((size_t)most);
    if (!set) break;
    size_t bytes = CPU_ALLOC_SIZE((size_t)most);
    int found = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (found > 0) return found;
  }
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int)online : 1;
}

static double quota_cpus(long long quota, long long period) {
  return quota > 0 && period > 0 ? (double)quota / (double)period : 0.0;
}

/* CPUs by the quota of one group; 0: none. */
static double quota_v2(const char *group) {
  char path[1200], text[64];
  long long quota = 0, period = 0;
  snprintf(path, sizeof path, "%s/cpu.max", group);
  if (at_read_small(path, text, sizeof text) == 0 || sscanf(text, "%lld %lld", &quota, &period) != 2) return 0.0;
  return quota_cpus(quota, period);
}

static double quota_v1(const char *group) {
  char path[1200], quota[32], period[32];
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", group);
  if (at_read_small(path, quota, sizeof quota) == 0) return 0.0;
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", group);
  if (at_read_small(path, period, sizeof period) == 0) return 0.0;
  return quota_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* The smaller of two quotas, where 0 is none. */
static double tighter(double a, double b) {
  return a <= 0.0 || (b > 0.0 && b < a) ? b : a;
}

/* The smallest quota from the group up to its root: a parent's binds too. In a container the path of the group may not
 * exist below the mount, and its own limits stand at the root. */
static double smallest_quota(const char *root, const char *group, double (*quota)(const char *)) {
  char path[1100];
  double smallest = 0.0;
  if (snprintf(path, sizeof path, "%s%s", root, group) >= (int)sizeof path) return 0.0;
  for (;;) {
    smallest = tighter(smallest, quota(path));
    char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) < strlen(root)) return smallest;
    *slash = '\0';
  }
}

/* A line of /proc/self/cgroup is "hierarchy:controllers:path"; hierarchy 0 is version 2. */
static double line_quota(const char *root, char *line) {
  char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!group) return 0.0;
  *controllers++ = '\0';
  *group++ = '\0';
  if (strcmp(line, "0") == 0) return smallest_quota(root, group, quota_v2);
  char mount[512] = "", *rest = NULL;
  snprintf(mount, sizeof mount, "%.400s/%.64s", root, controllers);
  for (char *word = strtok_r(controllers, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    if (strcmp(word, "cpu") != 0) continue;
    const double cpus = smallest_quota(mount, group, quota_v1);
    snprintf(mount, sizeof mount, "%.400s/cpu", root);
    return cpus > 0.0 ? cpus : smallest_quota(mount, group, quota_v1);
  }
  return 0.0;
}

enum { MEMBERSHIP_BYTES = 8192 };

double at_cgroup_quota(const char *root, const char *membership) {
  char *text = malloc(MEMBERSHIP_BYTES), *rest = NULL; /* the stack may be small */
  double smallest = 0.0;
  if (text && at_read_small(membership, text, MEMBERSHIP_BYTES) > 0)
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
      smallest = tighter(smallest, line_quota(root, line));
  free(text);
  return smallest;
}

static void read_count(void) {
  const int mask = affinity_count();
  const double quota = at_cgroup_quota("/sys/fs/cgroup", "/proc/self/cgroup");
  const bool limited = quota > 0.0 && quota < (double)mask;
  share = limited ? quota : (double)mask;
  available = limited && quota <= (double)(mask - 1) ? (int)quota + ((double)(int)quota < quota) : mask;
  if (at_settings_threads(&asked) != ATTUNE_OK) asked = 0; /* said when a tuner is made */
}

int at_thread_bound(void) {
  pthread_once(&once, read_count);
  const int set = atomic_load_explicit(&bound, memory_order_relaxed);
  return set > 0 ? set : asked;
}

int at_cpu_count(void) {
  const int limit = at_thread_bound();
  return limit > 0 && limit < available ? limit : available;
}

double at_cpu_share(void) {
  pthread_once(&once, read_count);
  return share;
}

attune_status attune_set_threads(int threads) {
  if (threads < 0 || threads > AT_THREADS_MAX)
    return AT_INVALID("threads is %d; should be 1 to %d, or 0 for the number of CPUs", threads, AT_THREADS_MAX);
  atomic_store(&bound, threads);
  return ATTUNE_OK;
}

int attune_get_threads(void) {
  return at_cpu_count();
}
