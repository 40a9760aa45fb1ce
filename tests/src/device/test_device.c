/* SPDX-License-Identifier: Apache-2.0
 * test_device.c: the table of devices, their names and properties, and the CPU behind the host. */
#include "tests/support/check.h"

#include "src/base/backend.h"
#include "src/host/host.h"
#include "src/host/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool started;

static void *ask(void *arg) {
  while (!atomic_load(&started)) {}
  attune_device **slot = arg;
  (void)attune_device_get(slot, "host");
  return attune_stream_default(*slot);
}

/* The first test: it races to build the table. */
TEST(all_threads_see_one_device_and_default_stream) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  attune_device *seen[THREADS] = {0};
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask, &seen[i]), 0);
  atomic_store(&started, true);
  for (int i = 0; i < THREADS; i++) {
    void *stream = NULL;
    pthread_join(threads[i], &stream);
    assert_ptr_equal(seen[i], seen[0]);
    assert_non_null(stream);
    assert_ptr_equal(stream, attune_stream_default(seen[0]));
  }
}

TEST(the_host_is_last) {
  attune_device *last = NULL, *host = NULL, *best = NULL, *first = NULL;
  int count = attune_device_count();
  assert_true(count >= 1);
  assert_int_equal(attune_device_at(&last, count - 1), ATTUNE_OK);
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_ptr_equal(last, host);
  assert_string_equal(attune_device_name(host), "host");
  assert_int_equal(attune_device_at(&first, 0), ATTUNE_OK);
  assert_int_equal(attune_device_get(&best, NULL), ATTUNE_OK);
  assert_ptr_equal(best, first);
  assert_int_equal(attune_device_get(&best, "best"), ATTUNE_OK);
  assert_ptr_equal(best, first);
  for (int i = 0; i < count; i++) {
    attune_device *device = NULL, *named = NULL;
    assert_int_equal(attune_device_at(&device, i), ATTUNE_OK);
    assert_int_equal(device->index, i);
    assert_int_equal(attune_device_get(&named, attune_device_name(device)), ATTUNE_OK);
    assert_ptr_equal(named, device);
  }
}

TEST(names_that_are_none) {
  static const char *const wrong[] = {"",
                                      "Host",
                                      "host:0",
                                      "cuda:",
                                      "cuda:-1",
                                      "cuda:x",
                                      "cuda:1x",
                                      "cuda0",
                                      "cuda: 1",
                                      "gpu",
                                      "cuda:99999999999999999999"};
  attune_device *device;
  for (size_t i = 0; i < AT_COUNT(wrong); i++) {
    device = (attune_device *)&device;
    assert_int_equal(attune_device_get(&device, wrong[i]), ATTUNE_INVALID_ARGUMENT);
    assert_null(device);
    assert_non_null(strstr(attune_last_message(), "should be host, cuda, cuda:N or best"));
  }
}

TEST(a_device_that_is_not_here) {
  attune_device *device = NULL;
  assert_int_equal(attune_device_get(&device, "cuda:4000000000"), ATTUNE_NOT_FOUND);
  assert_null(device);
  assert_non_null(strstr(attune_last_message(), "there is no device cuda:4000000000; devices: "));
  assert_non_null(strstr(attune_last_message(), "host"));
  attune_device *first = NULL;
  assert_int_equal(attune_device_at(&first, 0), ATTUNE_OK);
  if (first->backend.kind == ATTUNE_DEVICE_CUDA) return;
  FAILS_SAYING(attune_device_get(&device, "cuda"), ATTUNE_NOT_FOUND, "there is no device cuda:0; devices: host");
}

TEST(wrong_arguments) {
  attune_device *device = NULL;
  attune_device_properties properties = {0};
  assert_int_equal(attune_device_at(NULL, 0), ATTUNE_INVALID_ARGUMENT);
  device = (attune_device *)(void *)&device;
  assert_int_equal(attune_device_at(&device, -1), ATTUNE_INVALID_ARGUMENT);
  assert_null(device);
  assert_int_equal(attune_device_at(&device, attune_device_count()), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_device_get(NULL, "host"), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_device_get_properties(NULL, &properties), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_device_get(&device, "host"), ATTUNE_OK);
  assert_int_equal(attune_device_get_properties(device, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_device_synchronize(NULL), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_device_name(NULL), "none");
}

TEST(properties_of_the_host) {
  attune_device *host = NULL;
  attune_device_properties p = {0};
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(attune_device_get_properties(host, &p), ATTUNE_OK);
  assert_int_equal(p.kind, ATTUNE_DEVICE_HOST);
  assert_true(p.name[0] != '\0');
  assert_true(p.memory_bytes >= (uint64_t)64 << 20);
  assert_true(p.processors >= 1 && p.processors <= sysconf(_SC_NPROCESSORS_CONF));
  assert_int_equal(p.processors, at_cpu_count());
  assert_int_equal(p.capability_major, 0);
  at_clock_state clock;
  assert_int_equal(host->backend.telemetry->clock_state(host, &clock), ATTUNE_OK);
  assert_false(clock.slowed);
}

/* A backend's tables are whole, so that only a table is asked for, and every device has some of them. */
TEST(tables_are_whole) {
  const at_backend *const backends[] = {
      &at_host_backend,
#ifdef AT_WITH_CUDA
      &at_cuda_backend,
#endif
  };
  const char *const kinds[] = {"host", "cuda"};
  for (size_t b = 0; b < AT_COUNT(backends); b++) {
#define AT_BACKEND_TABLE(name, what)                                               \
  if (backends[b]->name) {                                                         \
    uintptr_t slots[sizeof *backends[b]->name / sizeof(uintptr_t)];                \
    memcpy(slots, backends[b]->name, sizeof slots);                                \
    for (size_t i = 0; i < AT_COUNT(slots); i++)                                   \
      if (!slots[i]) fail_msg("%s: table " #name " has no slot %zu", kinds[b], i); \
  } else if (AT_TABLE_##name <= AT_TABLE_event) {                                  \
    fail_msg("%s has no table " #name, kinds[b]);                                  \
  }
    AT_BACKEND_TABLES(AT_BACKEND_TABLE)
#undef AT_BACKEND_TABLE
  }
}

/* Missing support is reported in the table's words. */
TEST(a_table_that_is_missing) {
  attune_device *host = NULL;
  int value;
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(attune_device_get_attribute(host, 1, &value), ATTUNE_UNSUPPORTED);
  assert_string_equal(
      attune_last_message(),
      "device host has no CUDA runtime; errors, attributes, limits, schedules, profiler and cuBLAS need a CUDA device");
  assert_int_equal(at_needs(host, graph), ATTUNE_OK);
  assert_int_equal(at_needs(host, peer), ATTUNE_UNSUPPORTED);
  assert_string_equal(attune_last_message(), "device host has no peers");
}

/* The kernel's list of features is the oracle: it has those that it lets programs use. */
static bool kernel_says(const char *flag) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[8192], word[64];
  bool found = false;
  snprintf(word, sizeof word, " %s ", flag);
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, "flags", 5) != 0) continue;
    line[strcspn(line, "\n")] = ' ';
    found = strstr(line, word) != NULL;
    break;
  }
  if (file) fclose(file);
  return found;
}

TEST(features_are_the_kernels) {
#if defined(__x86_64__)
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* it shows another CPU than the kernel does */
  const at_cpu *cpu = at_cpu_info();
  assert_int_equal(cpu->avx2, kernel_says("avx2"));
  assert_int_equal(cpu->fma, kernel_says("fma"));
  assert_int_equal(cpu->f16c, kernel_says("f16c"));
  assert_int_equal(cpu->avx512f, kernel_says("avx512f"));
  assert_int_equal(cpu->avx512bw, kernel_says("avx512bw"));
  assert_int_equal(cpu->avx512vl, kernel_says("avx512vl"));
  assert_int_equal(cpu->avx512dq, kernel_says("avx512dq"));
  assert_int_equal(cpu->avx512_vnni, kernel_says("avx512_vnni"));
  assert_int_equal(cpu->avx512_bf16, kernel_says("avx512_bf16"));
#else
  (void)kernel_says;
  skip();
#endif
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
