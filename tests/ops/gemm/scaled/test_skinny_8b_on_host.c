/* SPDX-License-Identifier: Apache-2.0
 * test_skinny_8b_on_host.c: the text of sm90_skinny_ring_8b's kernels, compiled by the C++ compiler with gemm_on_host.h
 * and run on the host: drawn problems and configurations against scaled_oracle.h. What only a GPU shows is left: PTX,
 * races, speed. ATTUNE_TEST_PROBLEMS: how many (12); ATTUNE_TEST_SEED. */
#include "tests/support/check.h"

#include <dlfcn.h>
#include <unistd.h>

#include "tests/ops/gemm/scaled/skinny_case.h"
#include "tests/support/child.h"

enum { MOST = 2000, MOST_THREADS = 512, LIST = 64 };

typedef struct job {
  scaled_case c;
  at_gemm g;
  attune_gemm_operands run;
  at_configuration configuration;
  at_gemm_launch_spec spec;
} job;

static job jobs[MOST];
static int problems = 12;
static uint64_t state = 20261128;
static at_machine machine;

/* Takes back what the text defined. */
static void write_undefines(FILE *file, const char *text) {
  for (const char *at = text; (at = strstr(at, "#define ")); at += 8) {
    const int length = (int)strspn(at + 8, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    if (at == text || at[-1] == '\n') fprintf(file, "#undef %.*s\n", length, at + 8);
  }
}

static void write_kernel(FILE *file, const job *j, int number) {
  const at_gemm_kernels *family = at_gemm_kernels_of(&at_gemm_sm90_skinny_ring_8b);
  char *text = NULL;
  OK(at_gemm_text(&text, family, &j->spec, false));
  fprintf(file, "#define at_ring kernel_%d\nnamespace n%d {\n%s\n", number, number, text);
  fprintf(file,
          "static void body(const void *a) { kernel_%d(*(const at_ring_arguments *)a); }\n}\n#undef at_ring\n"
          "extern \"C\" void run_%d(const void *a, const unsigned *grid, unsigned ranks, unsigned threads) {\n"
          "  host_run(n%d::body, a, grid, ranks, threads);\n}\n",
          number, number, number);
  write_undefines(file, text);
  free(text);
}

/* A configuration that the problem has and that the host can run. */
static void choose(job *j) {
  static at_configuration list[LIST];
  const at_gemm_kernels *family = at_gemm_kernels_of(&at_gemm_sm90_skinny_ring_8b);
  if (!family->supports(&j->g, &machine)) fail_msg("%s is not taken", j->c.name);
  const int count = family->candidates(&j->g, &machine, list, LIST, scaled_draw(&state, 2) == 0);
  assert_true(count > 0);
  for (int tries = 0; tries < 1000; tries++) {
    j->configuration = list[scaled_draw(&state, (uint64_t)count)];
    if (tries % 4) skinny_draw_configuration(&j->configuration, &state);
    if (!at_gemm_launch_spec_of(&j->spec, family, &j->g, &machine, &j->configuration)) continue;
    const unsigned ranks = j->spec.config.cluster[0] ? j->spec.config.cluster[0] : 1;
    if (ranks * j->spec.config.block[0] <= MOST_THREADS) return;
  }
  fail_msg("%s has no configuration", j->c.name);
}

typedef void (*run_function)(const void *, const unsigned *, unsigned, unsigned);

static void check_job(job *j, void *library, int number) {
  char name[24], what[256];
  run_function run = NULL;
  snprintf(name, sizeof name, "run_%d", number);
  snprintf(what, sizeof what, "number %d, \"%.200s\"", number, j->configuration.text);
  *(void **)&run = dlsym(library, name);
  assert_non_null(run);
  const bool swapped = j->spec.swapped;
  at_gemm_scaled_arguments a = {.arguments = j->spec.arguments,
                                .scale_l = swapped ? j->run.scale_b : j->run.scale_a,
                                .scale_s = swapped ? j->run.scale_a : j->run.scale_b,
                                .scale_d = j->run.scale_d,
                                .amax = j->run.amax_d};
  at_gemm_bind(&a.arguments, &j->g, swapped, &j->run);
  if (a.amax) *a.amax = 0.0f;
  const at_jit_config *c = &j->spec.config;
  const unsigned grid[3] = {c->grid[0], c->grid[1] ? c->grid[1] : 1, c->grid[2] ? c->grid[2] : 1};
  if (getenv("ATTUNE_TEST_VERBOSE")) print_message("%s: %s\n", j->c.name, what);
  run(&a, grid, c->cluster[0] ? c->cluster[0] : 1, c->block[0]);
  scaled_check(&j->c, what);
}

static void compile(const char *source, const char *library) {
  static char output[1 << 16];
  char include[128];
  snprintf(include, sizeof include, "-I%s", AT_SOURCE_DIR);
  const char *const words[] = {
      CXX,  "-std=c++17", "-w",   "-O0", "-fno-strict-aliasing", "-ffp-contract=off", "-fPIC", "-shared", include,
      "-o", library,      source, NULL};
  output[0] = 0;
  if (run_program(words, output, sizeof output) != 0) fail_msg("%s: %.4000s", source, output);
}

TEST(kernels_are_right) {
  char folder[] = "/tmp/attune_skinny_XXXXXX", source[96], path[96];
  assert_non_null(mkdtemp(folder));
  snprintf(source, sizeof source, "%s/kernels.cc", folder);
  snprintf(path, sizeof path, "%s/kernels.so", folder);
  FILE *file = fopen(source, "w");
  assert_non_null(file);
  fputs("#include \"tests/support/gemm_on_host.h\"\n", file);
  for (int i = 0; i < problems; i++) {
    skinny_draw_case(&jobs[i].c, 150, i % 4 ? 900 : 2100, &state);
    skinny_normalise(&jobs[i].c, &jobs[i].c.o, &jobs[i].g, &jobs[i].run);
    choose(&jobs[i]);
    write_kernel(file, &jobs[i], i);
  }
  assert_int_equal(fclose(file), 0);
  compile(source, path);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  for (int i = 0; i < problems; i++) {
    check_job(&jobs[i], library, i);
    scaled_close(&jobs[i].c);
  }
  dlclose(library);
  unlink(source), unlink(path), rmdir(folder);
}

int main(void) {
  machine = at_machine_make(90, 132, "NVIDIA H200");
  if (getenv("ATTUNE_TEST_PROBLEMS")) problems = atoi(getenv("ATTUNE_TEST_PROBLEMS"));
  if (getenv("ATTUNE_TEST_SEED")) state = (uint64_t)atoll(getenv("ATTUNE_TEST_SEED"));
  if (access(CXX, X_OK) != 0) return skip_all("no C++ compiler");
  return RUN_TESTS(NULL, NULL);
}
