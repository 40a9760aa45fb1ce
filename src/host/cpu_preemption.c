/* SPDX-License-Identifier: Apache-2.0
 * cpu_preemption.c: see cpu_preemption.h. What the CPUs did is in /proc/stat. */
#include "src/host/cpu_preemption.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/host/thread_times.h"
#include "src/host/threads.h"

void at_waits_look(at_waits *out) {
  out->count = 0;
  out->teams = at_team_count();
  out->alone_ns = at_team_alone_ns();
  DIR *tasks = opendir("/proc/self/task");
  if (!tasks) return;
  for (const struct dirent *entry; out->count < AT_WAITS_MOST && (entry = readdir(tasks));) {
    const int thread = atoi(entry->d_name);
    const int64_t ns = thread > 0 ? at_task_waited_ns(dirfd(tasks), entry->d_name) : -1;
    if (ns < 0) continue;
    out->each[out->count].thread = thread;
    out->each[out->count].pool = at_in_pool(thread);
    out->each[out->count++].ns = ns;
  }
  closedir(tasks);
}

static int64_t ns_of(const at_waits *waits, int thread) {
  for (int i = 0; i < waits->count; i++)
    if (waits->each[i].thread == thread) return waits->each[i].ns;
  return 0; /* it began later */
}

int64_t at_waits_most(const at_waits *before, const at_waits *after) {
  const bool pool = before->teams != after->teams;
  const int caller = gettid();
  int64_t most = after->alone_ns - before->alone_ns;
  for (int i = 0; i < after->count && before->count > 0; i++) {
    const int thread = after->each[i].thread;
    if (thread != caller && after->each[i].pool != pool) continue;
    const int64_t ns = after->each[i].ns - ns_of(before, thread);
    if (ns > most) most = ns;
  }
  return most;
}

/* The fields after "cpuN ": user nice system idle iowait irq softirq steal. */
static int64_t busy_ticks(const char *fields) {
  long long user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, steal = 0;
  if (sscanf(fields, "%lld %lld %lld %lld %lld %lld %lld %lld", &user, &nice, &system, &idle, &wait, &irq, &softirq,
             &steal) < 4)
    return 0;
  return user + nice + system + irq + softirq + steal;
}

int64_t at_busy_time_ns(void) {
  char line[256];
  cpu_set_t ours;
  int64_t ticks = 0;
  int cpus = 0;
  const long ticks_s = sysconf(_SC_CLK_TCK);
  const bool masked = sched_getaffinity(0, sizeof ours, &ours) == 0; /* false: more CPUs than the set has room for */
  FILE *file = fopen("/proc/stat", "re");
  if (!file) return -1;
  while (fgets(line, sizeof line, file) && strncmp(line, "cpu", 3) == 0) {
    char *end = NULL;
    const unsigned long cpu = strtoul(line + 3, &end, 10);
    if (end == line + 3 || (masked && (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &ours)))) continue;
    ticks += busy_ticks(end);
    cpus++;
  }
  fclose(file);
  return cpus > 0 && ticks > 0 && ticks_s > 0 ? ticks * (1000000000 / ticks_s) : -1;
}
