/* SPDX-License-Identifier: Apache-2.0
 * elementwise_ulp.c: how far the functions of expressions are off, in units in the last place of the result, beside
 * long double: on the host with each instruction set of this CPU, and on the first CUDA device if there is one.
 * elementwise_ulp [--count N] [--only FUNCTIONS] [--markdown FILE]. f16 and bf16: all 65536 inputs. f32: N random bit
 * patterns (10^7). f64: N / 20. Of functions of two arguments: N / 10 pairs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/tool.h"
#include "bench/elementwise/elementwise_ulp.h"
#include "ops/elementwise/host/interpret.h"
#include "ops/elementwise/ir/evaluate.h"
#include "ops/elementwise/language/compile.h"
#include "src/base/splitmix64.h"
#include "src/host/threads.h"

typedef struct subject {
  const char *text; /* of x, or of x and y */
  at_function function;
  int arguments;
} subject;

static const subject subjects[] = {
#define ONE(name, F) \
  { #name "(x)", AT_FN_##F, 1 }
#define TWO(name, F) \
  { #name "(x, y)", AT_FN_##F, 2 }
    {"x / y", AT_FN_DIVIDE, 2},
    {"x ** y", AT_FN_POWER, 2},
    TWO(hypot, HYPOT),
    TWO(atan2, ATAN2),
    ONE(sqrt, SQRT),
    ONE(rsqrt, RSQRT),
    ONE(cbrt, CBRT),
    ONE(reciprocal, RECIPROCAL),
    ONE(exp, EXP),
    ONE(exp2, EXP2),
    ONE(expm1, EXPM1),
    ONE(log, LOG),
    ONE(log2, LOG2),
    ONE(log10, LOG10),
    ONE(log1p, LOG1P),
    ONE(sin, SIN),
    ONE(cos, COS),
    ONE(tan, TAN),
    ONE(asin, ASIN),
    ONE(acos, ACOS),
    ONE(atan, ATAN),
    ONE(sinh, SINH),
    ONE(cosh, COSH),
    ONE(tanh, TANH),
    ONE(asinh, ASINH),
    ONE(acosh, ACOSH),
    ONE(atanh, ATANH),
    ONE(erf, ERF),
    ONE(erfc, ERFC),
    ONE(erfinv, ERFINV),
    ONE(lgamma, LGAMMA),
    ONE(tgamma, TGAMMA),
    ONE(gelu, GELU),
    ONE(gelu_tanh, GELU_TANH),
    ONE(sigmoid, SIGMOID),
    ONE(silu, SILU),
    ONE(softplus, SOFTPLUS),
    ONE(softsign, SOFTSIGN),
    ONE(mish, MISH),
    ONE(logit, LOGIT),
    TWO(elu, ELU),
    ONE(hardsigmoid, HARDSIGMOID),
    ONE(hardswish, HARDSWISH),
};
static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16, ATTUNE_F64};

enum { WAYS = 4 }; /* up to three instruction sets, and CUDA */

typedef struct work {
  const subject *s;
  attune_dtype dtype;
  int64_t n;
  unsigned char *x, *y, *out[WAYS];
  double worst[WAYS], where[WAYS], part_worst[64][WAYS], part_where[64][WAYS];
  int ways;
} work;

static void compare_part(void *arg, const at_team *team) {
  work *w = arg;
  const size_t size = attune_dtype_size(w->dtype);
  const int64_t each = (w->n + team->size - 1) / team->size, from = each * team->rank,
                to = from + each < w->n ? from + each : w->n;
  const attune_dtype computed = w->dtype == ATTUNE_F64 ? ATTUNE_F64 : ATTUNE_F32;
  for (int k = 0; k < w->ways; k++) w->part_worst[team->rank][k] = 0.0;
  for (int64_t i = from; i < to; i++) {
    const at_wide_value v[3] = {at_wide_value_load(w->dtype, w->x + (size_t)i * size),
                                at_wide_value_load(w->dtype, w->y + (size_t)i * size)};
    const long double exact = at_evaluate_real(w->s->function, computed, v).re;
    for (int k = 0; k < w->ways; k++) {
      const double off = ulp_units(w->dtype, at_wide_value_load(w->dtype, w->out[k] + (size_t)i * size).re, exact);
      if (!(off > w->part_worst[team->rank][k])) continue;
      w->part_worst[team->rank][k] = off;
      w->part_where[team->rank][k] = (double)v[0].re;
    }
  }
}

static void run_host(void *out, const at_expression *e, attune_dtype dtype, const at_interpret_isa *isa,
                     const work *w) {
  at_interpreter *program;
  at_layout layout;
  const at_shape shape = {1, {w->n}};
  const at_view view = at_view_packed(out, dtype, &shape),
                views[2] = {at_view_packed(w->x, dtype, &shape), at_view_packed(w->y, dtype, &shape)};
  const at_interpreter_call call = {.outputs = {out}, .inputs = {w->x, w->y}, .threads = at_cpu_count()};
  bench_check(at_interpreter_create(&program, e, &dtype, isa), w->s->text);
  bench_check(at_interpreter_layout(&layout, program, &view, views), w->s->text);
  at_interpreter_run(program, &layout, &call);
  at_interpreter_destroy(program);
}

/* The worst of each way; of pairs fewer. */
static void measure(work *w, int64_t count, const at_interpret_isa *const *isas) {
  const size_t size = attune_dtype_size(w->dtype);
  uint64_t state = 1;
  w->n = size == 2 && w->s->arguments == 1 ? 65536 : w->s->arguments == 2 ? count / 10 : size == 8 ? count / 20 : count;
  w->x = malloc((size_t)w->n * size);
  w->y = malloc((size_t)w->n * size);
  if (!w->x || !w->y) bench_die("no memory for %lld elements", (long long)w->n);
  for (int64_t i = 0; i < w->n; i++)
    for (int k = 0; k < 2; k++)
      ulp_put_number(w->dtype, w->s->arguments, (k ? w->y : w->x) + (size_t)i * size, i,
                     size == 2 && w->s->arguments == 1 ? (uint64_t)i : at_splitmix64(&state));
  const at_operand_name names[2] = {{.name = "x", .dtype = (uint8_t)w->dtype},
                                    {.name = "y", .dtype = (uint8_t)w->dtype}};
  const at_signature signature = {.tensors = names, .tensor_count = w->s->arguments};
  at_expression *e = NULL;
  bench_check(at_expression_create(&e, w->s->text, strlen(w->s->text), &signature), w->s->text);
  for (int k = 0; k < w->ways; k++) {
    w->out[k] = malloc((size_t)w->n * size);
    if (!w->out[k]) bench_die("no memory for %lld elements", (long long)w->n);
    if (isas[k]) run_host(w->out[k], e, w->dtype, isas[k], w);
#ifdef BENCH_WITH_CUDA
    if (!isas[k]) ulp_run(w->out[k], e, w->dtype, w->x, w->y, w->n);
#endif
  }
  at_expression_destroy(e);
  const int threads = at_cpu_count() < 64 ? at_cpu_count() : 64;
  at_parallel(threads, compare_part, w);
  for (int k = 0; k < w->ways; k++) {
    w->worst[k] = 0.0;
    for (int t = 0; t < threads; t++)
      if (w->part_worst[t][k] > w->worst[k]) w->worst[k] = w->part_worst[t][k], w->where[k] = w->part_where[t][k];
    free(w->out[k]);
  }
  free(w->x);
  free(w->y);
}

/* Whether the text begins with one of the names, which commas part. */
static bool is_named(const char *names, const char *text) {
  for (const char *at = names; at; at = strchr(at, ','), at += at != NULL) {
    const size_t length = strcspn(at, ",");
    if (strncmp(text, at, length) == 0 && (text[length] == '(' || text[length] == 0)) return true;
  }
  return false;
}

static void put_introduction(int count, const char *device) {
  bench_line("# Accuracy of elementwise functions\n");
  bench_line(
      "The worst distance from the exact result found, in units in the last place (ulp) of the result's dtype; 0.5 is "
      "what\nrounding alone makes. `strict` aims at 2. Written by `bench_elementwise_ulp --markdown "
      "docs/accuracy.md`.\n");
  bench_line(
      "- f16 and bf16: all 65536 inputs. f32: %lld random bit patterns; f64: %lld. Functions of two arguments: %lld "
      "pairs.\n  Of f64 and of pairs half are of everyday size, and one in eight is next to 1, or a pair of the "
      "smallest numbers.",
      (long long)count, (long long)(count / 20), (long long)(count / 10));
  bench_line("- Exact means long double of the C library, which has 11 bits more than f64.");
  bench_line("- The host's columns are its instruction sets, one interpreter each. CUDA: %s.\n",
             device ? device : "not measured here; run it on a machine with a GPU");
}

/* The first `host` ways are the host's interpreters. */
static void put_head(const work *w, attune_dtype dtype, const at_interpret_isa *const *isas, int host) {
  char head[160], rule[80];
  size_t at = 0, under = 0;
  (void)at_append(head, sizeof head, &at, "| %s |", attune_dtype_name(dtype));
  (void)at_append(rule, sizeof rule, &under, "|---|");
  for (int k = 0; k < w->ways; k++) {
    (void)at_append(head, sizeof head, &at, " %s |", k < host ? at_interpret_isa_name(isas[k]) : "CUDA");
    (void)at_append(rule, sizeof rule, &under, "---|");
  }
  bench_line("%s worst at |\n%s---|", head, rule);
}

/* How many of the row's figures are above 2. */
static int put_row(const work *w) {
  char row[160];
  size_t at = 0;
  int bad = 0, worst = 0;
  (void)at_append(row, sizeof row, &at, "| `%s` |", w->s->text);
  for (int k = 0; k < w->ways; k++) {
    (void)at_append(row, sizeof row, &at, " %.2f |", w->worst[k]);
    if (w->worst[k] > w->worst[worst]) worst = k;
    bad += !(w->worst[k] <= 2.0);
  }
  bench_line("%s %.9g |", row, w->where[worst]);
  return bad;
}

int main(int argc, char **argv) {
  int count = 10000000;
  const char *markdown = NULL, *only = NULL;
  const bench_option table[] = {{"count", BENCH_WHOLE, &count, 1000, 1e9},
                                {"markdown", BENCH_TEXT, &markdown, 0, 0},
                                {"only", BENCH_TEXT, &only, 0, 0},
                                {NULL, BENCH_FLAG, NULL, 0, 0}};
  const at_interpret_isa *isas[WAYS + 1] = {NULL};
  work w = {0};
  (void)bench_read_options(argc, argv, table,
                           "usage: bench_elementwise_ulp [--count N] [--only FUNCTIONS] [--markdown FILE]\n", NULL, 0);
  bench_markdown_open(markdown);
  at_interpret_isas(isas);
  while (isas[w.ways]) w.ways++;
  const char *device = NULL;
#ifdef BENCH_WITH_CUDA
  device = ulp_device();
#endif
  put_introduction(count, device);
  const int host = w.ways;
  if (device) w.ways++;
  int bad = 0;
  for (size_t d = 0; d < AT_COUNT(dtypes); d++) {
    put_head(&w, dtypes[d], isas, host);
    for (size_t i = 0; i < AT_COUNT(subjects); i++) {
      if (only && !is_named(only, subjects[i].text)) continue;
      w.s = &subjects[i];
      w.dtype = dtypes[d];
      measure(&w, count, isas);
      bad += put_row(&w);
    }
    bench_line("%s", "");
  }
  bench_line("%d of the figures are above 2.", bad);
  bench_markdown_close();
}
