/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_telemetry.c: a GPU's telemetry and processes by the public calls, beside what the allocator took. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include "tests/support/gpu.h"

enum { MIB = 1 << 20 };

static attune_device *device;

TEST(telemetry) {
  attune_telemetry before = {0}, t = {0};
  attune_stream *stream = NULL;
  void *p = NULL;
  OK(attune_stream_create(&stream, device));
  OK(attune_device_get_telemetry(device, &before));
  OK(attune_alloc(&p, stream, (size_t)1024 * MIB));
  OK(attune_device_get_telemetry(device, &t));
  assert_true(t.memory_used_bytes >= (int64_t)1024 * MIB && t.memory_used_bytes <= t.memory_total_bytes);
  assert_int_equal(t.memory_total_bytes, before.memory_total_bytes);
  assert_in_range(t.busy_percent, 0, 100);
  assert_in_range(t.memory_busy_percent, 0, 100);
  assert_in_range(t.temperature_c, 1, 120);
  assert_in_range(t.power_mw, 1000, 2000000);
  assert_true(t.clock_mhz > 0 && t.clock_mhz <= t.clock_most_mhz);
  OK(attune_free(p, stream));
  attune_stream_destroy(stream);
}

static int hear(void *user, const attune_device_process *process) {
  ++*(int *)user;
  return process->pid > 0 ? 0 : 1;
}

/* A container may hide them all. */
TEST(processes) {
  int heard = 0;
  OK(attune_device_initialize(device));
  OK(attune_device_each_process(device, hear, &heard));
  assert_true(heard >= 0);
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  return RUN_TESTS(NULL, NULL);
}
