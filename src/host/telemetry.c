/* SPDX-License-Identifier: Apache-2.0
 * telemetry.c: what the kernel tells of the host: how busy its CPUs were, its memory, temperature and clock. */
#include "src/host/telemetry.h"

#include "src/host/memory.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A whole number at the beginning of a file. */
static int64_t number_in(const char *path) {
  long long value = 0;
  FILE *file = fopen(path, "re");
  const bool found = file && fscanf(file, "%lld", &value) == 1;
  if (file) (void)fclose(file);
  return found ? (int64_t)value : ATTUNE_NOT_KNOWN;
}

static int64_t scaled(int64_t value, int64_t by) {
  return value == ATTUNE_NOT_KNOWN ? value : value / by;
}

static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows; held for a moment */
static unsigned long long busy_before, all_before;            /* the CPUs' time at the latest look; 0: there was none */

/* The first line of /proc/stat: user, nice, system, idle, waiting for disks, interrupts (two), taken by other
 * machines. */
int64_t at_host_busy_percent(const char *path) {
  unsigned long long t[8] = {0};
  int64_t percent = ATTUNE_NOT_KNOWN;
  FILE *file = fopen(path, "re");
  const bool whole = file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
                                    &t[4], &t[5], &t[6], &t[7]) >= 4;
  if (file) (void)fclose(file);
  if (!whole) return percent;
  const unsigned long long idle = t[3] + t[4], busy = t[0] + t[1] + t[2] + t[5] + t[6] + t[7], all = busy + idle;
  pthread_mutex_lock(&busy_lock);
  if (all_before > 0 && all > all_before && busy >= busy_before)
    percent = (int64_t)((busy - busy_before) * 100 / (all - all_before));
  busy_before = busy;
  all_before = all;
  pthread_mutex_unlock(&busy_lock);
  return percent > 100 ? 100 : percent;
}

/* The zone of the CPUs' package, else the hottest of those that belong to CPUs. */
int64_t at_host_temperature(const char *folder) {
  static const char *const types[] = {"x86_pkg_temp", "cpu", "soc", "k10temp", "coretemp"};
  int64_t hottest = ATTUNE_NOT_KNOWN;
  DIR *zones = opendir(folder);
  for (struct dirent *zone; zones && (zone = readdir(zones)) != NULL;) {
    char path[512], type[64] = "";
    if (strncmp(zone->d_name, "thermal_zone", 12) != 0) continue;
    snprintf(path, sizeof path, "%s/%.200s/type", folder, zone->d_name);
    FILE *file = fopen(path, "re");
    const bool named = file && fscanf(file, "%63s", type) == 1;
    if (file) (void)fclose(file);
    bool of_cpu = false;
    for (size_t i = 0; i < AT_COUNT(types) && named; i++) of_cpu |= strncmp(type, types[i], strlen(types[i])) == 0;
    if (!of_cpu) continue;
    snprintf(path, sizeof path, "%s/%.200s/temp", folder, zone->d_name);
    const int64_t now = scaled(number_in(path), 1000);
    if (now > hottest) hottest = now; /* not known is the least of all */
  }
  if (zones) (void)closedir(zones);
  return hottest;
}

void at_host_telemetry(attune_device *device, attune_telemetry *out) {
  uint64_t available = 0, total = 0;
  if (at_host_memory_info(device, &available, &total) == ATTUNE_OK && total > 0) {
    out->memory_total_bytes = (int64_t)total;
    out->memory_used_bytes = (int64_t)(total > available ? total - available : 0);
  }
  out->busy_percent = at_host_busy_percent("/proc/stat");
  out->temperature_c = at_host_temperature("/sys/class/thermal");
  out->clock_mhz = scaled(number_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"), 1000);
  out->clock_most_mhz = scaled(number_in("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"), 1000);
}
