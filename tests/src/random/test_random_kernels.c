/* SPDX-License-Identifier: Apache-2.0
 * test_random_kernels.c: every kernel of random numbers compiles for every architecture that we care for, without
 * spilling. Needs no GPU. Of the two ways of a portable kernel one in turn, with ATTUNE_TEST_ALL both. */
#include "tests/support/check.h"

#include "src/cuda/jit/kernel_compile.h"
#include "src/random/call.h"

#include "permutation_cu.h"
#include "philox_h.h"
#include "random_call_h.h"
#include "random_cu.h"
#include "random_samples_h.h"
#include "torch_cu.h"
#include "transforms_h.h"

static char *with_headers(const char *samples, const char *text) {
  const char *parts[] = {"#define AT_EMBEDDED 1\n", at_philox_h, at_transforms_h, at_random_call_h, samples, text};
  char *all = calloc(1, 1 << 18);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) strcat(all, parts[i]);
  return all;
}

/* False when this compiler does not know the architecture. */
static int compile(const char *text, const char *entry, const char *architecture, const char *const *macros) {
  at_kernel_source source = {.file = "test.cu", .text = text, .entry = entry, .macros = macros};
  at_architecture target;
  at_kernel_code code = {NULL, 0};
  char *report = NULL;
  snprintf(target.name, sizeof target.name, "%s", architecture);
  const attune_status status = at_kernel_compile(&code, &source, &target, &report);
  if (status == ATTUNE_UNSUPPORTED) return 0;
  if (status != ATTUNE_OK) fail_msg("%s %s: %s", entry, architecture, attune_last_message());
  for (const char *at = report; at && (at = strstr(at, "bytes spill stores")); at++)
    if (at[-2] != '0' || at[-3] != ' ') fail_msg("%s %s spills: %s", entry, architecture, report);
  assert_true(code.size > 0);
  free(report);
  at_kernel_code_free(&code);
  return 1;
}

static int makes_sense(int kind, int type) {
  return kind >= AT_BERNOULLI || type <= AT_BF16;
}

static int compile_fill(const char *text, const char *entry, const char *architecture, int kind, int type, int wide,
                        int plain, int aligned, int in_graph) {
  char words[7][24];
  const char *macros[8] = {words[0], words[1], words[2], words[3], words[4], words[5], words[6], NULL};
  const char *names[] = {"KIND", "TYPE", "WIDE", "PLAIN", "ALIGNED", "IN_GRAPH", "UNROLL"};
  const int large = aligned && (kind == AT_NORMAL || kind == AT_LOG_NORMAL || kind == AT_EXPONENTIAL),
            unroll = !large || type == AT_F64 ? 2
                     : type == AT_F32         ? 6
                                              : 3; /* random_cuda.c: unroll_of */
  const int values[] = {kind, type, wide, plain, aligned, in_graph, unroll};
  for (int i = 0; i < 7; i++) snprintf(words[i], sizeof words[i], "%s=%d", names[i], values[i]);
  return compile(text, entry, architecture, macros);
}

TEST(portable_kernels) {
  const int all = getenv("ATTUNE_TEST_ALL") != NULL;
  char *text = with_headers(at_random_samples_h, at_random_cu);
  for (int kind = AT_UNIFORM; kind <= AT_INTEGERS; kind++)
    for (int type = AT_F64; type <= AT_I64; type++) {
      if (!makes_sense(kind, type)) continue;
      const int way = (kind + type) % 2;
      if (all || way == 0) compile_fill(text, "at_random_fill", "sm_90a", kind, type, 0, kind <= AT_LOG_NORMAL, 1, 0);
      if (all || way == 1) compile_fill(text, "at_random_fill", "sm_90a", kind, type, kind == AT_INTEGERS, 0, 0, 1);
    }
  free(text);
}

TEST(all_architectures) {
  const char *all[] = {"sm_80", "sm_90a", "sm_100", "sm_120", "compute_80"};
  char *text = with_headers(at_random_samples_h, at_random_cu), *torch = with_headers("", at_torch_cu),
       *permutation = with_headers("", at_permutation_cu);
  for (size_t a = 0; a < sizeof all / sizeof *all; a++) {
    if (!compile_fill(text, "at_random_fill", all[a], AT_NORMAL, AT_F32, 0, 1, 1, 0)) {
      print_message("%s: not known to this compiler\n", all[a]);
      continue;
    }
    compile_fill(text, "at_random_fill_by_table", all[a], AT_NORMAL, AT_BF16, 0, 0, 1, 0);
    compile_fill(text, "at_random_fill", all[a], AT_UNIFORM, AT_F16, 0, 0, 1, 0);
    compile_fill(text, "at_random_fill", all[a], AT_NORMAL, AT_F64, 0, 0, 1, 1);
    const char *types[][2] = {{"TYPE=5", NULL}, {"TYPE=6", NULL}};
    for (int t = 0; t < 2; t++) {
      compile(permutation, "at_random_rank", all[a], types[t]);
      compile(permutation, "at_random_permute", all[a], types[t]);
    }
    const char *normal[] = {"KIND=1", "TYPE=4", "UNROLL=4", NULL};
    compile(torch, "at_random_torch", all[a], normal);
  }
  free(text);
  free(torch);
  free(permutation);
}

TEST(torch_kernels) {
  char *text = with_headers("", at_torch_cu);
  for (int kind = AT_UNIFORM; kind <= AT_INTEGERS; kind++)
    for (int type = AT_F64; type <= AT_I64; type++)
      for (int unroll = 2; unroll <= 4; unroll += 2) {
        const int wide = type == AT_F64 || (kind == AT_BERNOULLI && type == AT_I64);
        char words[3][24];
        const char *macros[] = {words[0], words[1], words[2], NULL};
        if (!makes_sense(kind, type) || (kind != AT_INTEGERS && wide != (unroll == 2))) continue;
        snprintf(words[0], sizeof words[0], "KIND=%d", kind);
        snprintf(words[1], sizeof words[1], "TYPE=%d", type);
        snprintf(words[2], sizeof words[2], "UNROLL=%d", unroll);
        compile(text, "at_random_torch", "sm_90a", macros);
      }
  free(text);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
