/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_toolkit.c: on a GPU: products by the cuBLAS that the program has loaded, and a machine that has a driver
 * and no cuBLAS or NVRTC. Each case is a process of its own. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <dlfcn.h>
#include <link.h>

#include "src/base/support.h"
#include "tests/support/child.h"

static attune_device *device;
static attune_stream *stream;

static int count_cublas(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size;
  *(int *)user += strstr(info->dlpi_name, "/libcublas.so") != NULL;
  return 0;
}

static int copies(void) {
  int count = 0;
  dl_iterate_phdr(count_cublas, &count);
  return count;
}

static int open_device(void) {
  EXPECT(attune_device_get(&device, "cuda:0") == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_stream_create(&stream, device) == ATTUNE_OK, "%s", attune_last_message());
  return 0;
}

/* D = A B of ones: each element is 64. */
static attune_status multiply(float *out) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *tuner = NULL;
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  static float ones[64 * 64];
  void *a = NULL, *d = NULL;
  for (size_t i = 0; i < AT_COUNT(ones); i++) ones[i] = 1.0f;
  options.database = "";
  options.mode = ATTUNE_MODE_OFF;
  problem.m = problem.n = problem.k = 64;
  attune_status status = attune_tuner_create(&tuner, &options);
  if (status == ATTUNE_OK) status = attune_alloc(&a, stream, sizeof ones);
  if (status == ATTUNE_OK) status = attune_alloc(&d, stream, sizeof ones);
  if (status == ATTUNE_OK) status = attune_copy(stream, a, ones, sizeof ones);
  const attune_gemm_operands operands = {.alpha = 1.0, .a = a, .b = a, .d = d};
  if (status == ATTUNE_OK) status = attune_gemm(tuner, stream, &problem, &operands);
  if (status == ATTUNE_OK) status = attune_copy(stream, out, d, sizeof *out);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  attune_tuner_destroy(tuner);
  return status;
}

static int first_path(void *user, const attune_library *library) {
  if (strcmp(library->name, "cublas") != 0) return 0;
  snprintf(user, 512, "%s%s", library->loaded_by_program ? "program: " : "", library->path);
  return 1;
}

/* By its path and RTLD_LOCAL, as an extension of Python has it. */
static int the_programs(void) {
  char path[512] = "", want[600];
  float found = 0.0f;
  void *handle = dlopen(CUBLAS, RTLD_NOW | RTLD_LOCAL);
  EXPECT(handle, "%s", dlerror());
  if (open_device() != 0) return 1;
  EXPECT(multiply(&found) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(found == 64.0f && copies() == 1, "%g, %d copies", (double)found, copies());
  EXPECT(attune_device_libraries(device, first_path, path) == ATTUNE_OK, "%s", attune_last_message());
  snprintf(want, sizeof want, "program: %s", CUBLAS);
  EXPECT(strcmp(path, want) == 0, "%s", path);
  return 0;
}

static int nothing_before_use(void) {
  float found = 0.0f;
  void *memory = NULL;
  if (open_device() != 0) return 1;
  EXPECT(attune_alloc(&memory, stream, 1 << 20) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(copies() == 0, "cuBLAS was opened for memory");
  EXPECT(multiply(&found) == ATTUNE_OK && found == 64.0f && copies() == 1, "%s", attune_last_message());
  return 0;
}

/* Memory, streams and, with NVRTC, random numbers work; products say what is missing. */
static int memory_works(void) {
  unsigned char byte = 0;
  void *memory = NULL;
  if (open_device() != 0) return 1;
  EXPECT(attune_alloc(&memory, stream, 4096) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_fill(stream, memory, 7, 4096) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_copy(stream, &byte, memory, 1) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_stream_synchronize(stream) == ATTUNE_OK && byte == 7, "%d", byte);
  return 0;
}

static attune_status draw(void) {
  attune_generator *generator = NULL;
  void *memory = NULL;
  attune_status status = attune_generator_create(&generator, 1);
  if (status == ATTUNE_OK) status = attune_alloc(&memory, stream, 4096);
  if (status == ATTUNE_OK) status = attune_random_uniform(generator, stream, memory, ATTUNE_F32, 1024, 0.0, 1.0);
  attune_generator_destroy(generator);
  return status;
}

static int without_cublas(void) {
  float found = 0.0f;
  if (memory_works() != 0) return 1;
  EXPECT(draw() == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(multiply(&found) == ATTUNE_UNSUPPORTED && strstr(attune_last_message(), "cuBLAS is missing"), "%s",
         attune_last_message());
  return 0;
}

static int without_nvrtc(void) {
  float found = 0.0f;
  if (memory_works() != 0) return 1;
  EXPECT(draw() == ATTUNE_UNSUPPORTED && strstr(attune_last_message(), "NVRTC is missing"), "%s",
         attune_last_message());
  EXPECT(multiply(&found) == ATTUNE_OK && found == 64.0f, "%s", attune_last_message());
  return 0;
}

static const part parts[] = {{"the_programs", the_programs},
                             {"nothing_before_use", nothing_before_use},
                             {"without_cublas", without_cublas},
                             {"without_nvrtc", without_nvrtc}};

static void run(void **state) {
  assert_int_equal(run_part(*state), 0);
}

static void run_hidden(const char *part_name, const char *words) {
  setenv("LD_PRELOAD", HIDE, 1);
  setenv("HIDE_LIBRARIES", words, 1);
  const int code = run_part(part_name);
  unsetenv("LD_PRELOAD");
  unsetenv("HIDE_LIBRARIES");
  assert_int_equal(code, 0);
}

static void a_driver_and_no_cublas(void **state) {
  (void)state;
  run_hidden("without_cublas", "libcublas");
}

static void a_driver_and_no_nvrtc(void **state) {
  (void)state;
  run_hidden("without_nvrtc", "libnvrtc");
}

int main(int count, char **words) {
  if (count > 1) return run_named(parts, AT_COUNT(parts), words[1]);
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("no CUDA device");
  const struct CMUnitTest tests[] = {
      {"the_programs", run, NULL, NULL, (char *)(uintptr_t) "the_programs"},
      {"nothing_before_use", run, NULL, NULL, (char *)(uintptr_t) "nothing_before_use"},
      cmocka_unit_test(a_driver_and_no_cublas),
      cmocka_unit_test(a_driver_and_no_nvrtc),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
