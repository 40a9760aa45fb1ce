/* SPDX-License-Identifier: Apache-2.0
 * test_jit.c: how kernels are found, made, kept and refused, with the real compiler and cache but a device that is made
 * up: the functions of the CUDA runtime are those of jit_runtime.h. */
#include "tests/support/check.h"
#include "tests/support/folder.h"

#include <pthread.h>
#include <sys/stat.h>

#include "tests/src/cuda/jit_runtime.h"

#define WORKERS 12
#define KINDS 4
#define ROUNDS 3

static at_cuda_device device_state;
static attune_device device = {.name = "cuda:0", .state = &device_state, .properties = {.capability_major = 9}};
static attune_device old_device = {.name = "cuda:1", .state = &device_state, .properties = {.capability_major = 2}};
static attune_device new_device = {.name = "cuda:2", .state = &device_state, .properties = {.capability_major = 99}};
static char root[64];

static const char *const macros[KINDS][2] = {{"K=0", NULL}, {"K=1", NULL}, {"K=2", NULL}, {"K=3", NULL}};

/* Tests name their own files, which makes their kernels other ones. */
static at_kernel_source source_of(const char *file, int kind) {
  return (at_kernel_source){file, "extern \"C\" __global__ void k(int *x) { *x = K; }", "k", macros[kind], false,
                            false};
}

static at_jit_counts counts(void) {
  at_jit_counts c;
  at_jit_get_counts(&c);
  return c;
}

static void fail_loads(int times, cudaError_t error) {
  runtime.failures = times;
  runtime.error = error;
}

/* A kernel of this file is asked for: so many compilations, reads from disk and loads later, it is there. */
static void expect(const char *file, uint64_t compiled, uint64_t from_disk, int loads, bool elf) {
  const at_kernel_source source = source_of(file, 0);
  const at_jit_counts before = counts();
  const int loads_before = runtime.loads;
  at_jit_kernel *kernel = NULL;
  if (at_jit_get(&kernel, &device, &source) != ATTUNE_OK) fail_msg("%s", attune_last_message());
  assert_non_null(kernel);
  assert_int_equal(counts().compiled - before.compiled, compiled);
  assert_int_equal(counts().from_disk - before.from_disk, from_disk);
  assert_int_equal(runtime.loads - loads_before, loads);
  assert_int_equal(runtime.elf, elf);
}

static void expect_failure(attune_status status, const char *file, const char *word) {
  const at_kernel_source source = source_of(file, 0);
  const int alive = runtime.alive;
  at_jit_kernel *kernel = NULL;
  assert_int_equal(at_jit_get(&kernel, &device, &source), status);
  assert_null(kernel);
  assert_non_null(strstr(attune_last_message(), word));
  assert_int_equal(runtime.alive, alive);
}

TEST(memory_comes_first) {
  expect("memory.cu", 1, 0, 1, true);
  const uint64_t before = counts().from_memory;
  expect("memory.cu", 0, 0, 0, true);
  assert_int_equal(counts().from_memory, before + 1);
}

/* Another device of the same kind loads what is on the disk. */
TEST(then_comes_the_disk) {
  static attune_device twin; /* outlives the test in the table of kernels */
  twin = device;
  at_jit_kernel *first = NULL, *second = NULL;
  const at_kernel_source source = source_of("disk.cu", 0);
  OK(at_jit_get(&first, &device, &source));
  const at_jit_counts before = counts();
  OK(at_jit_get(&second, &twin, &source));
  assert_ptr_not_equal(first, second);
  assert_int_equal(counts().compiled, before.compiled);
  assert_int_equal(counts().from_disk, before.from_disk + 1);
}

/* A kernel on disk that does not load is compiled again. */
TEST(a_stale_entry_is_replaced) {
  static attune_device twin, third;
  twin = third = device;
  at_jit_kernel *kernel = NULL;
  const at_kernel_source source = source_of("stale.cu", 0);
  OK(at_jit_get(&kernel, &device, &source));
  at_jit_counts before = counts();
  fail_loads(1, cudaErrorInvalidKernelImage);
  OK(at_jit_get(&kernel, &twin, &source));
  assert_int_equal(counts().compiled, before.compiled + 1);
  before = counts();
  OK(at_jit_get(&kernel, &third, &source));
  assert_int_equal(counts().from_disk, before.from_disk + 1);
}

TEST(ptx_comes_last) {
  fail_loads(1, cudaErrorNoKernelImageForDevice);
  expect("ptx.cu", 2, 0, 2, false);
}

TEST(nothing_loads) {
  fail_loads(2, cudaErrorUnsupportedPtxVersion);
  expect_failure(ATTUNE_UNSUPPORTED, "none.cu", "compute_90");
  expect("none.cu", 1, 0, 1, true); /* the failure is forgotten */
}

TEST(other_errors_are_final) {
  const int loads = runtime.loads;
  fail_loads(1, cudaErrorMemoryAllocation);
  expect_failure(ATTUNE_OUT_OF_MEMORY, "memory-error.cu", "loading a kernel");
  assert_int_equal(runtime.loads, loads + 1);
  at_kernel_source source = source_of("absent.cu", 0);
  at_jit_kernel *kernel = NULL;
  const int alive = runtime.alive;
  source.entry = "absent";
  assert_int_equal(at_jit_get(&kernel, &device, &source), ATTUNE_DEVICE_ERROR);
  assert_null(kernel);
  assert_int_equal(runtime.alive, alive);
}

TEST(devices_that_the_compiler_does_not_know) {
  const at_kernel_source source = source_of("devices.cu", 0);
  at_jit_kernel *kernel = NULL;
  FAILS_SAYING(at_jit_get(&kernel, &old_device, &source), ATTUNE_UNSUPPORTED, "2.0");
  OK(at_jit_get(&kernel, &new_device, &source));
  assert_false(runtime.elf);
}

static pthread_barrier_t start;

static void *get_some(void *number) {
  const int kind = (int)((uintptr_t)number % KINDS);
  const at_kernel_source source = source_of("threads.cu", kind);
  at_jit_kernel *kernel = NULL;
  pthread_barrier_wait(&start);
  for (int i = 0; i < ROUNDS; i++)
    if (at_jit_get(&kernel, &device, &source) != ATTUNE_OK) return NULL;
  return kernel;
}

static void *get_a_bad_one(void *number) {
  const at_kernel_source source = {"bad.cu", "void f() { x }", "f", NULL, false, false};
  at_jit_kernel *kernel = NULL;
  pthread_barrier_wait(&start);
  if (at_jit_get(&kernel, &device, &source) != ATTUNE_INTERNAL) return NULL;
  return strstr(attune_last_message(), "bad.cu(1)") ? (char *)number + 1 : NULL;
}

static void run_threads(void *(*work)(void *), void *results[WORKERS]) {
  pthread_t threads[WORKERS];
  assert_int_equal(pthread_barrier_init(&start, NULL, WORKERS), 0);
  for (uintptr_t i = 0; i < WORKERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_join(threads[i], &results[i]), 0);
  pthread_barrier_destroy(&start);
}

TEST(each_kernel_is_made_once) {
  void *results[WORKERS];
  const at_jit_counts before = counts();
  run_threads(get_some, results);
  for (int i = 0; i < WORKERS; i++) {
    assert_non_null(results[i]);
    assert_ptr_equal(results[i], results[i % KINDS]);
  }
  assert_int_equal(counts().compiled, before.compiled + KINDS);
  assert_int_equal(counts().from_memory, before.from_memory + WORKERS * ROUNDS - KINDS);
}

TEST(a_failure_is_everybodys) {
  void *results[WORKERS];
  run_threads(get_a_bad_one, results);
  for (int i = 0; i < WORKERS; i++) assert_non_null(results[i]);
}

/* The kernel comes all the same, and a successful call leaves the thread's message alone. */
TEST(without_a_folder) {
  char folder[96];
  snprintf(folder, sizeof folder, "%s/kernels", root);
  assert_int_equal(chmod(folder, 0777), 0);
  (void)at_fail(ATTUNE_NOT_FOUND, "mine");
  expect("no-folder.cu", 1, 0, 1, true);
  assert_string_equal(attune_last_message(), "mine");
  assert_int_equal(chmod(folder, 0700), 0);
}

/* Into the cache, and nowhere else; once. Then it is loaded without the compiler. */
TEST(compiled_ahead) {
  const at_kernel_source source = source_of("ahead.cu", 0);
  const int loads = runtime.loads;
  bool made = false;
  assert_int_equal(at_jit_compile(&device, &source, NULL), ATTUNE_NOT_FOUND);
  OK(at_jit_compile(&device, &source, &made));
  assert_true(made);
  OK(at_jit_compile(&device, &source, &made));
  assert_false(made);
  OK(at_jit_compile(&device, &source, NULL));
  assert_int_equal(runtime.loads, loads);
  expect("ahead.cu", 0, 1, 1, true);
}

/* A loaded kernel needs no compiler, even if the cache has lost it. */
TEST(what_is_loaded_is_compiled) {
  char command[128];
  const at_kernel_source source = source_of("lost.cu", 0);
  expect("lost.cu", 1, 0, 1, true);
  snprintf(command, sizeof command, "rm -rf %s/kernels", root);
  assert_int_equal(system(command), 0);
  OK(at_jit_compile(&device, &source, NULL));
}

TEST(what_cannot_be_compiled_ahead) {
  char folder[96];
  const at_kernel_source bad = {"bad.cu", "void f() { x }", "f", NULL, false, false},
                         good = source_of("no-folder-ahead.cu", 0);
  bool made = true;
  assert_int_equal(at_jit_compile(&device, &bad, &made), ATTUNE_INTERNAL);
  assert_false(made);
  assert_int_equal(at_jit_compile(&old_device, &good, &made), ATTUNE_UNSUPPORTED);
  snprintf(folder, sizeof folder, "%s/kernels", root);
  OK(at_jit_compile(&device, &good, &made));
  assert_int_equal(chmod(folder, 0777), 0);
  const at_kernel_source other = source_of("no-folder-ahead.cu", 1);
  FAILS_SAYING(at_jit_compile(&device, &other, &made), ATTUNE_IO_ERROR, "is writable by others");
  assert_int_equal(chmod(folder, 0700), 0);
}

/* Half of the threads compile ahead what the other half wants now: the compiler runs once for each. */
static void *ahead_or_now(void *number) {
  const uintptr_t i = (uintptr_t)number;
  const at_kernel_source source = source_of("both.cu", (int)(i / 2 % KINDS));
  at_jit_kernel *kernel = NULL;
  bool made = false;
  pthread_barrier_wait(&start);
  if (i % 2) return at_jit_compile(&device, &source, &made) == ATTUNE_OK ? &start : NULL;
  return at_jit_get(&kernel, &device, &source) == ATTUNE_OK ? kernel : NULL;
}

TEST(nothing_is_compiled_twice) {
  void *results[WORKERS];
  const at_jit_counts before = counts();
  run_threads(ahead_or_now, results);
  for (int i = 0; i < WORKERS; i++) assert_non_null(results[i]);
  assert_int_equal(counts().compiled, before.compiled + KINDS);
}

int main(void) {
  snprintf(root, sizeof root, "/tmp/attune-jit-XXXXXX");
  if (!mkdtemp(root) || setenv("ATTUNE_CACHE_DIR", root, 1) != 0) return 1;
  const int failures = RUN_TESTS(NULL, NULL);
  return folder_remove(root) == 0 ? failures : 1;
}
