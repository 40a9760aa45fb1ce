/* SPDX-License-Identifier: Apache-2.0
 * elementwise_host.c: the host's interpreter beside memcpy, in turns: GB/s that the operands amount to, and their share of
 * the copy's. elementwise_host [ELEMENTS [THREADS]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tool.h"
#include "ops/elementwise/compile.h"
#include "ops/elementwise/interpret.h"
#include "src/host/threads.h"

enum { ROUNDS = 15 };

typedef struct row {
  const char *text;
  int inputs;
  at_interpreter *program;
  at_layout layout;
  double ns[2][ROUNDS]; /* through the caches, and past them */
} row;

typedef struct copy {
  char *to;
  const char *from;
  size_t bytes;
} copy;

static void copy_part(void *arg, const at_team *team) {
  const copy *c = arg;
  const size_t each = c->bytes / (size_t)team->size / 64 * 64, first = each * (size_t)team->rank;
  memcpy(c->to + first, c->from + first, team->rank + 1 == team->size ? c->bytes - first : each);
}

static void prepare(row *r, const at_shape *shape) {
  at_operand_name names[2] = {{.name = "a", .dtype = ATTUNE_F32}, {.name = "b", .dtype = ATTUNE_F32}};
  const at_signature signature = {.tensors = names, .tensor_count = r->inputs};
  at_expression *expression;
  bench_check(at_expression_create(&expression, r->text, strlen(r->text), &signature), r->text);
  bench_check(at_interpreter_create(&r->program, expression, NULL, NULL), r->text);
  at_expression_destroy(expression);
  const at_view view = at_view_packed(NULL, ATTUNE_F32, shape), views[2] = {view, view};
  bench_check(at_interpreter_layout(&r->layout, r->program, &view, views), r->text);
}

int main(int argc, char **argv) {
  const int64_t count = argc > 1 ? atoll(argv[1]) : INT64_C(1) << 24;
  const int threads = argc > 2 ? atoi(argv[2]) : at_cpu_count();
  if (count < 1 || threads < 1) bench_die("usage: elementwise_host [ELEMENTS [THREADS]]");
  const size_t bytes = (size_t)count * sizeof(float);
  float *a = at_alloc_large(bytes), *b = at_alloc_large(bytes), *out = at_alloc_large(bytes);
  if (!a || !b || !out) bench_die("no memory for %lld elements", (long long)count);
  for (int64_t i = 0; i < count; i++) {
    a[i] = (float)(i % 2003) / 200.0f - 5.0f;
    b[i] = (float)(i % 1009) / 100.0f - 5.0f;
  }
  memset(out, 0, bytes);
  row rows[] = {{.text = "a + b", .inputs = 2},
                {.text = "exp(a)", .inputs = 1},
                {.text = "gelu(a)", .inputs = 1},
                {.text = "gelu(a + b) * b", .inputs = 2}};
  const at_shape shape = {1, {count}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) prepare(&rows[i], &shape);
  const int repeat = (int)((INT64_C(1) << 22) / count) + 1;
  double copy_ns[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    copy c = {(char *)out, (const char *)a, bytes};
    double start = bench_now_ns();
    for (int k = 0; k < repeat; k++) at_parallel(threads, copy_part, &c);
    copy_ns[round] = (bench_now_ns() - start) / repeat;
    for (size_t i = 0; i < AT_COUNT(rows); i++)
      for (int past = 0; past < 2; past++) {
        const at_interpreter_call call = {.outputs = {out}, .inputs = {a, b}, .threads = threads, .stream = past != 0};
        start = bench_now_ns();
        for (int k = 0; k < repeat; k++) at_interpreter_run(rows[i].program, &rows[i].layout, &call);
        rows[i].ns[past][round] = (bench_now_ns() - start) / repeat;
      }
  }
  const double copied = 2.0 * (double)bytes / bench_median(copy_ns, ROUNDS);
  bench_line("%lld f32, %d threads, medians of %d rounds in turns", (long long)count, threads, ROUNDS);
  bench_line("%-18s %8.2f GB/s", "memcpy", copied);
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    const double moved = (double)(rows[i].inputs + 1) * (double)bytes;
    const double cached = moved / bench_median(rows[i].ns[0], ROUNDS),
                 past = moved / bench_median(rows[i].ns[1], ROUNDS);
    bench_line("%-18s %8.2f GB/s  %5.2f of memcpy    past the caches %8.2f GB/s  %5.2f", rows[i].text, cached,
               cached / copied, past, past / copied);
    at_interpreter_destroy(rows[i].program);
  }
  free(a);
  free(b);
  free(out);
}
