/* SPDX-License-Identifier: Apache-2.0
 * test_telemetry.c: what the host tells of itself, from files of the kernel's form, and the calls' arguments. */
#include "tests/support/check.h"

#include <attune/attune.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/backend.h"
#include "src/host/telemetry.h"

static char folder[] = "/tmp/attune_telemetry_XXXXXX";

static void write_file(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

TEST(busy_is_what_happened_since) {
  char path[256];
  snprintf(path, sizeof path, "%s/stat", folder);
  write_file("stat", "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1\n");
  assert_int_equal(at_host_busy_percent(path), ATTUNE_NOT_KNOWN);
  assert_int_equal(at_host_busy_percent(path), ATTUNE_NOT_KNOWN); /* no time went by */
  write_file("stat", "cpu  150 5 110 730 100 2 3 5 0 0\n");
  assert_int_equal(at_host_busy_percent(path), 71); /* 75 of 105 */
  write_file("stat", "cpu  150 5 110 830 100 2 3 5 0 0\n");
  assert_int_equal(at_host_busy_percent(path), 0);
  write_file("stat", "cpux 150\n");
  assert_int_equal(at_host_busy_percent(path), ATTUNE_NOT_KNOWN);
  assert_int_equal(at_host_busy_percent("/tmp/attune_no_such_file"), ATTUNE_NOT_KNOWN);
}

static void zone(const char *name, const char *type, const char *temperature) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/type", name);
  write_file(path, type);
  snprintf(path, sizeof path, "%s/temp", name);
  if (*temperature) write_file(path, temperature);
}

TEST(the_hottest_zone_of_cpus) {
  assert_int_equal(at_host_temperature(folder), ATTUNE_NOT_KNOWN);
  zone("thermal_zone0", "acpitz\n", "90000\n");
  assert_int_equal(at_host_temperature(folder), ATTUNE_NOT_KNOWN);
  zone("thermal_zone1", "x86_pkg_temp\n", "");
  assert_int_equal(at_host_temperature(folder), ATTUNE_NOT_KNOWN);
  zone("thermal_zone2", "x86_pkg_temp\n", "-3000\n");
  assert_int_equal(at_host_temperature(folder), -3);
  zone("thermal_zone3", "cpu-thermal\n", "48500\n");
  assert_int_equal(at_host_temperature(folder), 48);
  assert_int_equal(at_host_temperature("/tmp/attune_no_such_folder"), ATTUNE_NOT_KNOWN);
}

static int hear(void *user, const attune_device_process *process) {
  (void)process;
  ++*(int *)user;
  return 0;
}

TEST(the_calls) {
  attune_device *host = NULL;
  attune_telemetry t = {0};
  int heard = 0;
  OK(attune_device_get(&host, "host"));
  OK(attune_device_get_telemetry(host, &t));
  assert_int_equal(t.memory_total_bytes, host->properties.memory_bytes);
  assert_true(t.memory_used_bytes > 0 && t.memory_used_bytes < t.memory_total_bytes);
  assert_int_equal(t.power_mw, ATTUNE_NOT_KNOWN);
  assert_int_equal(t.memory_busy_percent, ATTUNE_NOT_KNOWN);
  assert_int_equal(t.slowdown, ATTUNE_NOT_KNOWN);
  FAILS(attune_device_get_telemetry(NULL, &t), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_get_telemetry(host, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_each_process(NULL, hear, &heard), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_each_process(host, NULL, &heard), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_each_process(host, hear, &heard), ATTUNE_UNSUPPORTED);
  assert_int_equal(heard, 0);
}

FIXTURE(start) {
  return mkdtemp(folder) ? 0 : -1;
}

FIXTURE(stop) {
  char command[64];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return system(command);
}

int main(void) {
  return RUN_TESTS(start, stop);
}
