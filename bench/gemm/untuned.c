/* SPDX-License-Identifier: Apache-2.0
 * untuned.c: bench_untuned: what host_small's rule for problems of which nothing is known picks, beside the default,
 * in turns. Each problem of the rule, or with --beyond the next larger ones, one product and a batch; CPU time of
 * the thread, so that other programs count less. OPENBLAS_CORETYPE lets OpenBLAS use another CPU's kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/common/tool.h"
#include "bench/common/turns.h"
#include "ops/gemm/problem/problem.h"
#include "tuning/op/registry.h"

enum { BATCH = 200, ROUNDS_MOST = 99, COUNT_MOST = 4096, BYTES = 1 << 22 };

extern const at_implementation at_gemm_host_small, at_gemm_host_cblas;

typedef struct settings {
  attune_device *host;
  const char *library; /* of the default's name; NULL: the first */
  int rounds;
  void *operand[3];
} settings;

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The default with one thread, as the library's own choice is at these sizes. */
static void configure_default(const settings *s, const at_gemm *g, at_configuration *out) {
  at_configuration list[64];
  const int count = at_gemm_host_cblas.configurations(&at_gemm_host_cblas, g, s->host, list, 64);
  for (int i = 0; i < count; i++) {
    int64_t threads = 0;
    *out = list[i];
    if (at_configuration_get(out, "threads", &threads) && threads == 1 &&
        (!s->library || strstr(out->text, s->library)))
      return;
  }
  bench_die("no library %s that runs with one thread was found", s->library ? s->library : "");
}

static int calls_of(const at_plan *plan, const at_gemm_operands *o, attune_stream *stream) {
  int calls = 0;
  const double start = cpu_ns();
  do bench_check(plan->launch(plan, o, stream), "launch");
  while (++calls < 1000000 && cpu_ns() - start < 1e5);
  return calls;
}

static double time_of(const at_plan *plan, const at_gemm_operands *o, attune_stream *stream, int calls) {
  const double start = cpu_ns();
  for (int i = 0; i < calls; i++) (void)plan->launch(plan, o, stream);
  return (cpu_ns() - start) / calls;
}

/* The default's time over the rule's, median of the rounds; both through attune. */
static double ratio_of(const settings *s, const at_gemm *g, const at_configuration *rule) {
  at_configuration base;
  at_plan *plans[2] = {NULL, NULL};
  double ratios[ROUNDS_MOST];
  int calls[2];
  const at_gemm_operands o = {.alpha = 1.0, .a = s->operand[0], .b = s->operand[1], .d = s->operand[2]};
  attune_stream *stream = attune_stream_default(s->host);
  configure_default(s, g, &base);
  bench_check(at_plan_create(&plans[0], &at_gemm_op, &at_gemm_host_cblas, &base, g, s->host), base.text);
  bench_check(at_plan_create(&plans[1], &at_gemm_op, &at_gemm_host_small, rule, g, s->host), rule->text);
  for (int way = 0; way < 2; way++) calls[way] = calls_of(plans[way], &o, stream);
  for (int i = 0; i < s->rounds; i++) {
    double ns[2];
    for (int turn = 0; turn < 2; turn++)
      ns[(i + turn) % 2] = time_of(plans[(i + turn) % 2], &o, stream, calls[(i + turn) % 2]);
    ratios[i] = ns[0] / ns[1];
  }
  for (int way = 0; way < 2; way++) at_plan_destroy(plans[way]);
  return bench_median(ratios, s->rounds);
}

/* Where it looks like a loss, or nearly, other work may have been the cause: the median of three looks. */
static double settled_ratio(const settings *s, const at_gemm *g, const at_configuration *rule) {
  double looks[3] = {ratio_of(s, g, rule)};
  if (looks[0] >= 1.1) return looks[0];
  for (int i = 1; i < 3; i++) looks[i] = ratio_of(s, g, rule);
  return bench_median(looks, 3);
}

/* One line: a type and its transposes over all sizes; the least, with its problem. */
static void report(const settings *s, attune_dtype dtype, const attune_transpose trans[2], int batch, bool beyond) {
  static double ratios[COUNT_MOST];
  char text[AT_PROBLEM_CHARS], worst[AT_PROBLEM_CHARS] = "";
  double least = 1e30;
  int count = 0, slower = 0;
  static const int within[] = {2, 3, 4, 5, 7, 8}, depths[] = {1, 2, 4, 7, 8, 12, 16}, above[] = {9, 12, 13, 16, 17, 24};
  for (size_t m = 0; m < AT_COUNT(within); m++)
    for (size_t n = 0; n < AT_COUNT(within); n++)
      for (size_t k = 0; k < (beyond ? 1 : AT_COUNT(depths)); k++) {
        const int size = above[m];
        const attune_gemm_problem p = {.dtype = dtype,
                                       .trans_a = trans[0],
                                       .trans_b = trans[1],
                                       .m = beyond ? size : within[m],
                                       .n = beyond ? above[n] : within[n],
                                       .k = beyond ? size : depths[k],
                                       .batch = batch};
        at_gemm g;
        at_configuration rule = {""};
        bool swap = false;
        bench_check(at_gemm_normalise(&p, (at_gemm_use){.c = AT_C_NONE, .alignment = AT_ALIGNMENT}, &g, &swap),
                    "the problem");
        if (beyond)
          (void)at_gemm_host_small.configurations(&at_gemm_host_small, &g, s->host, &rule, 1);
        else if (!at_gemm_host_small.untuned(&at_gemm_host_small, &g, s->host, &rule))
          bench_die("the rule does not apply here: this CPU has no AVX2");
        if (beyond && batch > 1) {
          char *threads = strstr(rule.text, "threads=");
          if (threads) snprintf(threads, 10, "threads=1");
        }
        const double ratio = settled_ratio(s, &g, &rule);
        ratios[count++] = ratio;
        if (ratio < 1.0) slower++;
        if (ratio >= least) continue;
        least = ratio;
        bench_check(at_gemm_format(&g, text, sizeof text), "the problem");
        (void)at_copy_text(worst, sizeof worst, text);
      }
  bench_line("| %s %c%c | %d | %d | %.2f | %.2f | %d | %s |", attune_dtype_name(dtype), "ntc"[trans[0]],
             "ntc"[trans[1]], batch, count, bench_median(ratios, count), least, slower, worst);
}

static const char usage[] =
    "usage: bench_untuned [--rounds N] [--library NAME] [--complex] [--beyond] [--markdown FILE]\n"
    "Compares the choice of host_small's rule for untuned problems with the default of this machine, in turns.\n"
    "  --rounds N        number of rounds (default: 9)\n"
    "  --library NAME    compare with this library, such as openblas\n"
    "  --complex         complex types, instead of the real ones\n"
    "  --beyond          larger problems, for which the rule chooses the default\n"
    "  --markdown FILE   also write the tables as Markdown\n";

int main(int argc, char **argv) {
  settings s = {.rounds = 9};
  const char *markdown = NULL;
  bool beyond = false, is_complex = false;
  const bench_option table[] = {
      {"rounds", BENCH_WHOLE, &s.rounds, 1, ROUNDS_MOST}, {"library", BENCH_TEXT, &s.library, 0, 0},
      {"complex", BENCH_FLAG, &is_complex, 0, 0},         {"beyond", BENCH_FLAG, &beyond, 0, 0},
      {"markdown", BENCH_TEXT, &markdown, 0, 0},          {NULL, BENCH_FLAG, NULL, 0, 0}};
  (void)bench_read_options(argc, argv, table, usage, NULL, 0);
  bench_markdown_open(markdown);
  bench_check(attune_device_get(&s.host, "host"), "attune_device_get");
  for (int i = 0; i < 3; i++) {
    float *x = s.operand[i] = aligned_alloc(128, BYTES);
    if (!x) bench_die("no memory for operands");
    for (size_t at = 0; at < BYTES / sizeof *x; at++) x[at] = 1.0f + (float)(at % 7) * 0.125f;
  }
  const char *core = getenv("OPENBLAS_CORETYPE");
  char libraries[128];
  snprintf(libraries, sizeof libraries, "%s, OPENBLAS_CORETYPE=%s", s.library ? s.library : "the default's",
           core ? core : "(not set)");
  bench_head(
      "What the rule for untuned problems picks, beside the default", s.host, libraries,
      "hot operands of one's own, CPU time of the thread, the two in turns; a ratio is the default's time over the "
      "rule's, the median of the rounds; where that is below 1.1 the median of three such looks");
  bench_table("| type | batch >| problems >| median >| least >| slower >| the least is |");
  static const attune_dtype types[2][2] = {{ATTUNE_F64, ATTUNE_F32}, {ATTUNE_C128, ATTUNE_C64}};
  const int transposes = is_complex ? 3 : 2;
  for (int i = 0; i < transposes * transposes; i++)
    for (int type = 0; type < 2; type++)
      for (int batch = 1; batch <= BATCH; batch += BATCH - 1)
        report(&s, types[is_complex][type],
               (const attune_transpose[2]){(attune_transpose)(i % transposes), (attune_transpose)(i / transposes)},
               batch, beyond);
  bench_markdown_close();
  for (int i = 0; i < 3; i++) free(s.operand[i]);
  return 0;
}
