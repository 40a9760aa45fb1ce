/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_kernels.c: the CUDA kernels of expressions compile for every architecture that we care for, without
 * spilling: each function with each dtype, each form with its tunables. Their texts are the same each time and have
 * nothing but what the generator wrote. Needs no GPU. Of the functions one in turn on each architecture; with
 * ATTUNE_TEST_ALL all on each. */
#include "tests/check.h"

#include <ctype.h>
#include <stdio.h>

#include "src/cuda/kernel_compile.h"
#include "tests/elementwise_graph.h"

static const char *const architectures[] = {"sm_80", "sm_90a", "sm_100", "sm_120"};
static const int capabilities[] = {80, 90, 100, 120};

/* Registers; 0 when this compiler does not know the architecture. */
static int compile(const char *text, const char *architecture, const char *what) {
  const at_kernel_source source = {.file = "elementwise.cu", .text = text, .entry = AT_CUDA_ENTRY};
  at_architecture target;
  at_kernel_code code = {NULL, 0};
  char *report = NULL;
  snprintf(target.name, sizeof target.name, "%s", architecture);
  const attune_status status = at_kernel_compile(&code, &source, &target, &report);
  if (status == ATTUNE_UNSUPPORTED) return 0;
  if (status != ATTUNE_OK) {
    const char *dump = getenv("ATTUNE_TEST_DUMP");
    FILE *file = dump ? fopen(dump, "w") : NULL;
    if (file) fputs(text, file), fclose(file);
    fail_msg("%s for %s: %s", what, architecture, attune_last_message());
  }
  for (const char *at = report; at && (at = strstr(at, "bytes spill stores")); at++)
    if (at[-2] != '0' || at[-3] != ' ') fail_msg("%s for %s spills: %s", what, architecture, report);
  const char *used = report ? strstr(report, "Used ") : NULL;
  const int registers = used ? atoi(used + 5) : 1;
  assert_true(code.size > 0);
  free(report);
  at_kernel_code_free(&code);
  return registers;
}

/* Packed memory of a shape, at an address that is aligned so. */
static at_view view_at(attune_dtype dtype, const at_shape *shape, uintptr_t address) {
  return at_view_packed((const void *)address, dtype, shape);
}

static void make_problem(at_cuda_problem *p, const graph *g, const at_shape *shape, const attune_dtype *outputs) {
  at_view views[AT_CUDA_TENSORS];
  for (int k = 0; k < g->e.output_count; k++)
    views[k] = view_at(outputs ? outputs[k] : (attune_dtype)g->nodes[g->e.outputs[k]].dtype, shape, 4096);
  for (int k = 0; k < g->e.input_count; k++)
    views[g->e.output_count + k] = view_at((attune_dtype)g->e.inputs[k].dtype, shape, 4096);
  OK(graph_problem(p, g, shape, views));
}

static char *generate(const at_cuda_problem *p, const at_cuda_choice *c) {
  char *text = NULL;
  OK(at_cuda_generate(&text, p, c));
  return text;
}

/* ---- each function with each dtype ---- */

static void functions(void **state) {
  (void)state;
  static graph g;
  const bool all = getenv("ATTUNE_TEST_ALL") != NULL;
  const at_shape shape = {1, {1000}};
  int number = 0, most = 0, compiled = 0;
  for (int f = 0; f < AT_FN_COUNT; f++)
    for (int d = 1; d <= AT_DTYPE_LAST; d++) {
      at_cuda_problem p;
      const at_cuda_choice c = {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 1, .block = 256};
      char what[64];
      if (!graph_of_function(&g, (at_function)f, (attune_dtype)d)) continue;
      number++;
      if (!all && number % 12 != 0) continue;
      snprintf(what, sizeof what, "%s of %s", graph_functions[f].id, attune_dtype_name((attune_dtype)d));
      make_problem(&p, &g, &shape, NULL);
      for (size_t a = 0; a < AT_COUNT(architectures); a++) {
        if (!all && (size_t)(number / 12) % AT_COUNT(architectures) != a) continue;
        p.reduced = number % 2 == 0;
        char *text = generate(&p, &c);
        const int registers = compile(text, architectures[a], what);
        if (registers > most) most = registers;
        if (all) print_message("%-28s %-8s %d registers\n", what, architectures[a], registers);
        compiled++;
        free(text);
      }
    }
  print_message("%d functions with a dtype, %d kernels; up to %d registers\n", number, compiled, most);
  assert_true(number > 900);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
