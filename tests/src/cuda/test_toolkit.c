/* SPDX-License-Identifier: Apache-2.0
 * test_toolkit.c: which cuBLAS and NVRTC are opened, and when: the program's own copy first, however it was loaded; of
 * a machine that has none, what is said. Needs no GPU. Each case is a process of its own. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/stat.h>

#include "ops/gemm/problem/problem.h"
#include "src/base/backend.h"
#include "src/cuda/jit/kernel_compile.h"
#include "src/cuda/library/toolkit.h"
#include "tests/support/child.h"
#include "tuning/op/registry.h"

extern const at_implementation at_gemm_cublas, at_gemm_cublaslt;

/* Loaded files whose name begins with `user`'s. */
typedef struct counted {
  const char *name;
  int count;
} counted;

static int count_one(struct dl_phdr_info *info, size_t size, void *user) {
  counted *c = user;
  (void)size;
  const char *slash = strrchr(info->dlpi_name, '/'), *file = slash ? slash + 1 : info->dlpi_name;
  c->count += strncmp(file, c->name, strlen(c->name)) == 0;
  return 0;
}

static int loaded(const char *name) {
  counted c = {name, 0};
  dl_iterate_phdr(count_one, &c);
  return c.count;
}

/* What is told of one library. */
typedef struct told {
  const char *name;
  char version[64], path[512], problem[512];
  int by_program, found;
} told;

static int take(void *user, const attune_library *library) {
  told *t = user;
  if (strcmp(library->name, t->name) != 0) return 0;
  snprintf(t->version, sizeof t->version, "%s", library->version);
  snprintf(t->path, sizeof t->path, "%s", library->path);
  snprintf(t->problem, sizeof t->problem, "%s", library->problem);
  t->by_program = library->loaded_by_program;
  return t->found = 1;
}

static told tell(const char *name) {
  told t = {.name = name};
  if (at_cublas_each(take, &t) == 0) (void)at_nvrtc_each(take, &t);
  return t;
}

static bool same_folder(const char *a, const char *b) {
  return strrchr(a, '/') - a == strrchr(b, '/') - b && strncmp(a, b, (size_t)(strrchr(a, '/') - a)) == 0;
}

/* A program that has loaded none: the machine's, at first use and not before. */
static int the_machines(void) {
  EXPECT(loaded("libcublas") == 0 && loaded("libnvrtc") == 0 && loaded("libcudart") == 0, "loaded at the start");
  EXPECT(at_cublas_open() == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(loaded("libcublas.so") == 1 && loaded("libcublasLt.so") == 1, "copies");
  EXPECT(loaded("libnvrtc") == 0, "NVRTC is not needed yet");
  const told blas = tell("cublas"), lt = tell("cublaslt"), nvrtc = tell("nvrtc");
  EXPECT(!blas.by_program && same_folder(blas.path, lt.path), "%s, %s", blas.path, lt.path);
  EXPECT(atoi(blas.version) == CUBLAS_VER_MAJOR && atoi(lt.version) / 10000 == CUBLAS_VER_MAJOR, "%s, %s", blas.version,
         lt.version);
  EXPECT(nvrtc.version[0] && nvrtc.path[0] == '/' && !nvrtc.problem[0], "%s", nvrtc.problem);
  EXPECT(strcmp(at_cublas_version(), blas.version) == 0 && strcmp(at_cublaslt_version(), lt.version) == 0, "%s, %s",
         at_cublas_version(), at_cublaslt_version());
  EXPECT(strcmp(at_nvrtc_version(), nvrtc.version) == 0, "%s", at_nvrtc_version());
  return 0;
}

static void *load(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fprintf(stderr, "%s\n", dlerror());
  return handle;
}

/* The program's functions are the ones in the table, and nothing else of that name is loaded. */
static int check_fake(void *blas) {
  EXPECT(at_cublas_open() == ATTUNE_OK, "%s", attune_last_message());
  EXPECT((void *)(uintptr_t)at_cublas.cublasCreate == dlsym(blas, "cublasCreate_v2"), "another cuBLAS");
  EXPECT((void *)(uintptr_t)at_cublas.cublasLtMatmul == dlsym(blas, "cublasLtMatmul"), "another cuBLASLt");
  EXPECT(loaded("libcublas.so") == 1 && loaded("libcublasLt.so") == 1, "a second copy");
  const int *calls = dlsym(blas, "fake_cublas_calls"), *lt_calls = dlsym(blas, "fake_cublaslt_calls");
  const int before = *calls, lt_before = *lt_calls;
  cublasHandle_t handle = NULL;
  cublasLtHandle_t lt_handle = NULL;
  (void)at_cublas.cublasCreate(&handle);
  (void)at_cublas.cublasLtCreate(&lt_handle);
  EXPECT(*calls == before + 1 && *lt_calls == lt_before + 1, "%d and %d calls", *calls - before, *lt_calls - lt_before);
  const told told_blas = tell("cublas"), told_lt = tell("cublaslt");
  EXPECT(strcmp(told_blas.path, FAKES "/13/libcublas.so.13") == 0, "%s", told_blas.path);
  EXPECT(strcmp(told_lt.path, FAKES "/13/libcublasLt.so.13") == 0, "%s", told_lt.path);
  EXPECT(strcmp(told_blas.version, "13.8.7") == 0 && strcmp(told_lt.version, "130807") == 0, "%s, %s",
         told_blas.version, told_lt.version);
  return 0;
}

static int the_programs(void) {
  void *blas = load(FAKES "/13/libcublas.so.13");
  EXPECT(blas && check_fake(blas) == 0, "not the program's");
  EXPECT(tell("cublas").by_program == 1, "not told as the program's");
  return 0;
}

/* A program that uses cuBLASLt alone: the cuBLAS of the same folder fits it. */
static int beside_the_programs_lt(void) {
  EXPECT(load(FAKES "/13/libcublasLt.so.13"), "no fake");
  EXPECT(at_cublas_open() == ATTUNE_OK, "%s", attune_last_message());
  void *blas = load(FAKES "/13/libcublas.so.13");
  return blas ? check_fake(blas) : 1;
}

static int refuse(const char *path, const char *first, const char *second) {
  EXPECT(load(path), "no fake");
  EXPECT(at_cublas_open() == ATTUNE_UNSUPPORTED && at_cublas_open() == ATTUNE_UNSUPPORTED, "taken");
  const char *message = attune_last_message();
  EXPECT(strstr(message, path) && strstr(message, first) && strstr(message, second), "%s", message);
  EXPECT(loaded("libcublas.so") == 1, "a second copy");
  EXPECT(strcmp(tell("cublas").problem, message) == 0 && !tell("cublaslt").found, "told otherwise");
  return 0;
}

static int an_old_one(void) {
  return refuse(FAKES "/11/libcublas.so.11", "11.8", "should be 12.4");
}

static int an_incomplete_one(void) {
  return refuse(FAKES "/incomplete/libcublas.so.13", "has no cublasLt", "should be 12.4");
}

/* A copy in a folder that the loader does not search, loaded RTLD_LOCAL, as Python loads extensions: it compiles. */
static int the_programs_nvrtc(void) {
  static const char *const macros[] = {"N=3", NULL};
  const at_kernel_source source = {"k.cu", "extern \"C\" __global__ void k(float *x) { x[0] = N; }", "k", macros, false,
                                   false};
  const at_architecture architecture = {"compute_80"};
  at_kernel_code code;
  EXPECT(load(FAKES "/libnvrtc.so." NVRTC_MAJOR), "no link to NVRTC");
  EXPECT(at_kernel_compile(&code, &source, &architecture, NULL) == ATTUNE_OK, "%s", attune_last_message());
  at_kernel_code_free(&code);
  const told nvrtc = tell("nvrtc");
  EXPECT(nvrtc.by_program && strcmp(nvrtc.path, FAKES "/libnvrtc.so." NVRTC_MAJOR) == 0, "%s", nvrtc.path);
  EXPECT(loaded("libnvrtc.so") == 1, "a second copy");
  return 0;
}

/* A machine on which nothing of the toolkit is installed, with a driver: what needs it says what is missing. */
static int none_installed(void) {
  attune_device device = {.backend = at_cuda_backend, .name = "cuda:0", .properties.kind = ATTUNE_DEVICE_CUDA};
  at_gemm g = {.dtype = ATTUNE_F32, .dtype_out = ATTUNE_F32, .m = 8, .n = 8, .k = 8, .batch = 1};
  EXPECT(at_cublas_open() == ATTUNE_UNSUPPORTED, "opened");
  EXPECT(strstr(attune_last_message(), "libcublas.so") && strstr(attune_last_message(), "install it"), "%s",
         attune_last_message());
  EXPECT(at_nvrtc_open() == ATTUNE_UNSUPPORTED && strstr(attune_last_message(), "libnvrtc.so"), "%s",
         attune_last_message());
  at_architecture none[2];
  at_kernel_code code;
  const at_kernel_source source = {"k.cu", "", "k", NULL, false, false};
  EXPECT(at_architectures(none, 90) == 0 && strcmp(at_kernel_compiler(), "none") == 0, "an architecture");
  EXPECT(at_kernel_compile(&code, &source, &none[0], NULL) == ATTUNE_UNSUPPORTED, "compiled");
  EXPECT(!at_gemm_cublas.supports(&at_gemm_cublas, &g, &device) &&
             !at_gemm_cublaslt.supports(&at_gemm_cublaslt, &g, &device),
         "supported");
  EXPECT(at_registry_fail(&at_gemm_op, "gemm f32", &device) == ATTUNE_UNSUPPORTED, "supported");
  EXPECT(strstr(attune_last_message(), "cuda:0: cuBLAS is missing"), "%s", attune_last_message());
  EXPECT(strcmp(at_cublas_version(), "none") == 0 && strcmp(at_cublaslt_version(), "none") == 0 &&
             strcmp(at_nvrtc_version(), "none") == 0,
         "a version");
  EXPECT(loaded("libcublas") == 0 && loaded("libnvrtc") == 0, "loaded");
  return 0;
}

static void *open_both(void *wrong) {
  if (at_cublas_open() != ATTUNE_OK || !at_cublas.cublasGemmEx_64 || at_nvrtc_open() != ATTUNE_OK ||
      !at_nvrtc.nvrtcVersion)
    (*(_Atomic int *)wrong)++;
  return NULL;
}

static int by_threads(void) {
  pthread_t threads[8];
  _Atomic int wrong = 0;
  EXPECT(load(FAKES "/13/libcublas.so.13"), "no fake");
  for (size_t i = 0; i < AT_COUNT(threads); i++) pthread_create(&threads[i], NULL, open_both, &wrong);
  for (size_t i = 0; i < AT_COUNT(threads); i++) pthread_join(threads[i], NULL);
  EXPECT(wrong == 0 && loaded("libcublas.so") == 1, "%d wrong", wrong);
  return 0;
}

static const part parts[] = {
    {"the_machines", the_machines},
    {"the_programs", the_programs},
    {"beside_the_programs_lt", beside_the_programs_lt},
    {"an_old_one", an_old_one},
    {"an_incomplete_one", an_incomplete_one},
    {"the_programs_nvrtc", the_programs_nvrtc},
    {"none_installed", none_installed},
    {"by_threads", by_threads},
};

static void run(void **state) {
  assert_int_equal(run_part(*state), 0);
}

/* Preloaded in the part only: the parent's own dlopen stays as it is. */
static void hide(const char *words) {
  setenv("LD_PRELOAD", HIDE, 1);
  setenv("HIDE_LIBRARIES", words, 1);
}

static void show_all(void) {
  unsetenv("LD_PRELOAD");
  unsetenv("HIDE_LIBRARIES");
}

static void nothing_is_installed(void **state) {
  (void)state;
  hide("libcublas libnvrtc libcudart");
  const int code = run_part("none_installed");
  show_all();
  assert_int_equal(code, 0);
}

/* The command, of a build with CUDA, as it starts on a machine without. */
static void the_command_runs_without(void **state) {
  (void)state;
  static char text[1 << 16];
  hide("libcu libnv");
  const int code = run_program((const char *const[]){AT_COMMAND, "devices", "--json", NULL}, text, sizeof text);
  show_all();
  assert_int_equal(code, 0);
  assert_non_null(strstr(text, "\"host\""));
  assert_non_null(strstr(text, "\"libraries\""));
}

int main(int count, char **words) {
  if (count > 1) return run_named(parts, AT_COUNT(parts), words[1]);
  char link[512];
  struct stat found;
  snprintf(link, sizeof link, "%s/libnvrtc.so.%s", FAKES, NVRTC_MAJOR);
  if (lstat(link, &found) != 0 && symlink(NVRTC, link) != 0) return 1;
  const struct CMUnitTest tests[] = {
      {"the_machines", run, NULL, NULL, (char *)(uintptr_t) "the_machines"},
      {"the_programs", run, NULL, NULL, (char *)(uintptr_t) "the_programs"},
      {"beside_the_programs_lt", run, NULL, NULL, (char *)(uintptr_t) "beside_the_programs_lt"},
      {"an_old_one", run, NULL, NULL, (char *)(uintptr_t) "an_old_one"},
      {"an_incomplete_one", run, NULL, NULL, (char *)(uintptr_t) "an_incomplete_one"},
      {"the_programs_nvrtc", run, NULL, NULL, (char *)(uintptr_t) "the_programs_nvrtc"},
      {"by_threads", run, NULL, NULL, (char *)(uintptr_t) "by_threads"},
      cmocka_unit_test(nothing_is_installed),
      cmocka_unit_test(the_command_runs_without),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
