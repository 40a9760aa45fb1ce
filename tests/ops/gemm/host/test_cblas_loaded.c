/* SPDX-License-Identifier: Apache-2.0
 * test_cblas_loaded.c: an OpenBLAS that the program has loaded is the one that attune calls. Each case is a process of
 * its own. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <dlfcn.h>

#include "ops/gemm/host/cblas/cblas_library.h"
#include "src/base/support.h"
#include "tests/support/child.h"

static void *load(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fprintf(stderr, "%s\n", dlerror());
  return handle;
}

static int find_fake(void *user, const attune_library *library) {
  const char *path = user;
  return strcmp(library->path, path) == 0 && library->loaded_by_program && strcmp(library->version, "9.8.7") == 0;
}

static int find_path(void *user, const attune_library *library) {
  return strcmp(library->path, (const char *)user) == 0;
}

/* One product of the whole library by the program's copy, whose number no other gives. */
static int the_programs(void) {
  static char path[] = FAKES "/libmyblas.so";
  void *fake = load(path);
  EXPECT(fake, "no fake");
  at_cblas *library = at_cblas_find("openblas-9.8.7");
  EXPECT(library && library->was_loaded, "not taken");
  EXPECT((void *)(uintptr_t)library->dgemm == dlsym(fake, "cblas_dgemm"), "another function");
  EXPECT(library->default_threads == 3 && library->gate.set_threads, "its threads are not known");
  for (int i = 0; i < at_cblas_count(); i++)
    EXPECT(at_cblas_at(i) == library || strncmp(at_cblas_at(i)->id, "openblas", 8) != 0, "a second OpenBLAS");
  attune_device *host = NULL;
  EXPECT(attune_device_get(&host, "host") == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(at_cblas_each(find_fake, path) != 0, "not told");
  char text[4096];
  EXPECT(attune_device_fingerprint(host, text, sizeof text) == ATTUNE_OK && strstr(text, "openblas-9.8.7"), "%s", text);
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *tuner = NULL;
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  static double a[64 * 64], b[64 * 64], d[64 * 64];
  const attune_gemm_operands operands = {.alpha = 1.0, .a = a, .b = b, .d = d};
  options.database = "";
  options.mode = ATTUNE_MODE_OFF;
  problem.dtype = ATTUNE_F64;
  problem.m = problem.n = problem.k = 64;
  EXPECT(attune_tuner_create(&tuner, &options) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_gemm(tuner, attune_stream_default(host), &problem, &operands) == ATTUNE_OK, "%s",
         attune_last_message());
  attune_tuner_destroy(tuner);
  EXPECT(d[0] == 12345.0, "%g", d[0]);
  return 0;
}

static int not_taken(const char *path) {
  EXPECT(load(path), "no fake");
  EXPECT(at_cblas_find("openblas-9.8.7") == NULL, "%s was taken", path);
  EXPECT(at_cblas_each(find_path, (char *)(uintptr_t)path) == 0, "%s is told", path);
  return 0;
}

static int other_names(void) {
  return not_taken(FAKES "/libscipy_openblas.so");
}

static int wide_integers(void) {
  return not_taken(FAKES "/libopenblas64.so");
}

static const part parts[] = {
    {"the_programs", the_programs}, {"other_names", other_names}, {"wide_integers", wide_integers}};

static void run(void **state) {
  assert_int_equal(run_part(*state), 0);
}

int main(int count, char **words) {
  if (count > 1) return run_named(parts, AT_COUNT(parts), words[1]);
  const struct CMUnitTest tests[] = {
      {"the_programs", run, NULL, NULL, (char *)(uintptr_t) "the_programs"},
      {"other_names", run, NULL, NULL, (char *)(uintptr_t) "other_names"},
      {"wide_integers", run, NULL, NULL, (char *)(uintptr_t) "wide_integers"},
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
