/* SPDX-License-Identifier: Apache-2.0
 * test_nvml.c: what attune makes of NVML's answers, of its errors, of an old one, and of none. Each way is a process of
 * its own with a made libnvidia-ml.so.1: fake_nvml.c. */
#include "tests/support/check.h"

#include <dlfcn.h>
#include <unistd.h>

#include "src/base/support.h"
#include "src/cuda/library/nvml.h"

static const char *program;

enum { FIELDS = (sizeof(attune_telemetry) - offsetof(attune_telemetry, busy_percent)) / sizeof(int64_t) };

static attune_telemetry unknown(void) {
  attune_telemetry t = {0};
  int64_t *fields = &t.busy_percent;
  for (size_t i = 0; i < FIELDS; i++) fields[i] = ATTUNE_NOT_KNOWN;
  return t;
}

/* ---- in the child ---- */

static int tell(void) {
  attune_telemetry t = unknown();
  const int64_t *fields = &t.busy_percent;
  char uuid[96] = "none";
  attune_device_process *list = NULL;
  void *handle = at_nvml_device("0000:01:00.0");
  (void)at_nvml_uuid(1, uuid, sizeof uuid);
  printf("ready %d count %d uuid %s other %d\n", at_nvml_ready(), at_nvml_count(), uuid,
         at_nvml_device("0000:02:00.0") != NULL);
  if (!handle) return 0;
  at_nvml_constants constants = AT_NVML_CONSTANTS_INIT;
  if (getenv("FAKE_ONCE")) at_nvml_telemetry(handle, &constants, &t);
  t = unknown();
  at_nvml_telemetry(handle, &constants, &t);
  for (size_t i = 0; i < FIELDS; i++)
    if (fields[i] == ATTUNE_NOT_KNOWN)
      printf("- ");
    else
      printf("%lld ", (long long)fields[i]);
  const int count = at_nvml_processes(handle, &list);
  printf("\nclock %d slowed %d processes %d", at_nvml_clock(handle), at_nvml_slowed(handle), count);
  if (count > 0)
    printf(" first %lld %lld last %lld", (long long)list[0].pid,
           list[0].memory_bytes == ATTUNE_NOT_KNOWN ? -1ll : (long long)list[0].memory_bytes,
           (long long)list[count - 1].pid);
  printf("\n");
  free(list);
  return 0;
}

static int count(void) {
  int found = -1;
  const attune_status status = attune_cuda_count(&found);
  printf("%s %d, initialized %d\n", attune_status_string(status), found, attune_is_initialized());
  return 0;
}

/* ---- in the test ---- */

static void expect_of(const char *way, const char *folder, const char *variables, const char *words) {
  char command[2048], told[1024];
  snprintf(command, sizeof command, "LD_LIBRARY_PATH='%s/%s' %s '%s' %s", FAKES, folder, variables, program, way);
  FILE *from = popen(command, "r");
  assert_non_null(from);
  const size_t got = fread(told, 1, sizeof told - 1, from);
  told[got] = '\0';
  assert_int_equal(pclose(from), 0);
  assert_string_equal(told, words);
}

static void expect(const char *folder, const char *variables, const char *words) {
  expect_of("tell", folder, variables, words);
}

#define HEAD "ready 1 count 2 uuid GPU-11111111-2222-3333-4444-555555555555 other 0\n"
#define FIGURES "87 34 20000000000 80000000000 61 89 412345 700000 1755 1980 3201 3210 "

TEST(every_field) {
  expect("nvml", "FAKE_REASONS=0", HEAD FIGURES "0 \nclock 1755 slowed 0 processes 2 first 1000 1000000 last 1001\n");
  /* Constants are queried once: the fake answers once only. */
  expect("nvml", "FAKE_ONCE=1 FAKE_REASONS=0",
         HEAD FIGURES "0 \nclock 1755 slowed 0 processes 2 first 1000 1000000 last 1001\n");
  expect("nvml", "FAKE_NVML=hidden", HEAD FIGURES "0 \nclock 1755 slowed 0 processes 2 first 1000 -1 last 1001\n");
  expect("nvml", "FAKE_NVML=crowded",
         HEAD FIGURES "0 \nclock 1755 slowed 0 processes 200 first 1000 1000000 last 1199\n");
}

TEST(every_reason) {
  static const struct {
    unsigned mask;
    int bits, slowed;
  } cases[] = {{0x1, ATTUNE_SLOW_IDLE, 0},
               {0x2, ATTUNE_SLOW_SETTING, 0},
               {0x4, ATTUNE_SLOW_POWER_CAP, 0},
               {0x8, ATTUNE_SLOW_HARDWARE, 1},
               {0x10, ATTUNE_SLOW_SYNCHRONIZED, 0},
               {0x20, ATTUNE_SLOW_HEAT, 1},
               {0x40, ATTUNE_SLOW_HEAT, 1},
               {0x80, ATTUNE_SLOW_POWER_BRAKE, 1},
               {0x100, ATTUNE_SLOW_SETTING, 0},
               {0x4000, ATTUNE_SLOW_OTHER, 0},
               {0x5, ATTUNE_SLOW_IDLE | ATTUNE_SLOW_POWER_CAP, 0}};
  for (size_t i = 0; i < AT_COUNT(cases); i++) {
    char variables[64], words[512];
    snprintf(variables, sizeof variables, "FAKE_REASONS=%u", cases[i].mask);
    snprintf(words, sizeof words, "%s%s%d \nclock 1755 slowed %d processes 2 first 1000 1000000 last 1001\n", HEAD,
             FIGURES, cases[i].bits, cases[i].slowed);
    expect("nvml", variables, words);
  }
}

/* Where a machine has the real one, no fake makes it absent. */
static bool is_here(const char *library) {
  void *handle = dlopen(library, RTLD_LAZY);
  if (handle) dlclose(handle);
  return handle != NULL;
}

TEST(errors_and_absence) {
  expect("nvml", "FAKE_NVML=refusing",
         "ready 1 count -1 uuid none other 0\n- - - - - - - - - - - - - \nclock 0 slowed 0 processes -1\n");
  expect("nvml", "FAKE_NVML=broken", "ready 0 count -1 uuid none other 0\n");
  expect("nvml_old", "FAKE_REASONS=8",
         "ready 1 count -1 uuid none other 0\n- - - - - - - - 1755 - 3201 - 32 \nclock 1755 slowed 1 processes -1\n");
  if (!is_here("libnvidia-ml.so.1")) expect("nowhere", "", "ready 0 count -1 uuid none other 0\n");
}

/* Nothing of CUDA is started: the driver's only function would abort. */
TEST(gpus_are_counted_without_cuda) {
  expect_of("count", "nvml", "", "ok 2, initialized 0\n");
  expect_of("count", "nvml", "CUDA_VISIBLE_DEVICES=1", "ok 1, initialized 0\n");
  expect_of("count", "nvml", "CUDA_VISIBLE_DEVICES=", "ok 0, initialized 0\n");
  expect_of("count", "nvml", "CUDA_VISIBLE_DEVICES=GPU-1", "ok 1, initialized 0\n");
  expect_of("count", "nvml", "CUDA_VISIBLE_DEVICES=MIG-1", "unsupported 0, initialized 0\n");
  expect_of("count", "nvml", "FAKE_NVML=refusing", "unsupported 0, initialized 0\n");
  if (!is_here("libcuda.so.1")) expect_of("count", "nvml_old", "", "ok 0, initialized 0\n");
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "count") == 0) return count();
  if (argc == 2 && strcmp(argv[1], "tell") == 0) return tell();
  program = argv[0];
  return RUN_TESTS(NULL, NULL);
}
