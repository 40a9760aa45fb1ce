/* SPDX-License-Identifier: Apache-2.0
 * parts_interpret.c: the host's interpreter of expressions beside memcpy of one operand (the first case): by one thread
 * in its cache, and by all threads in memory, through the caches and past them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/parts/parts.h"
#include "ops/elementwise/host/interpret.h"
#include "ops/elementwise/language/compile.h"
#include "src/host/threads.h"

typedef struct interpreting {
  const char *text; /* NULL: memcpy */
  int inputs, threads;
  bool past; /* the caches */
  int64_t count;
  float *a, *b, *out;
  at_interpreter *program;
  at_layout layout;
} interpreting;

static attune_status compile(interpreting *e) {
  at_operand_name names[2] = {{.name = "a", .dtype = ATTUNE_F32}, {.name = "b", .dtype = ATTUNE_F32}};
  const at_signature signature = {.tensors = names, .tensor_count = e->inputs};
  const at_shape shape = {1, {e->count}};
  const at_view view = at_view_packed(NULL, ATTUNE_F32, &shape), views[2] = {view, view};
  at_expression *expression = NULL;
  attune_status status = at_expression_create(&expression, e->text, strlen(e->text), &signature);
  if (status == ATTUNE_OK) status = at_interpreter_create(&e->program, expression, NULL, NULL);
  at_expression_destroy(expression);
  return status == ATTUNE_OK ? at_interpreter_layout(&e->layout, e->program, &view, views) : status;
}

static attune_status make(void *arg) {
  interpreting *e = arg;
  const size_t bytes = (size_t)e->count * sizeof(float);
  e->a = at_alloc_large(bytes), e->b = at_alloc_large(bytes), e->out = at_alloc_large(bytes);
  if (!e->a || !e->b || !e->out) bench_die("no memory for %lld elements", (long long)e->count);
  for (int64_t i = 0; i < e->count; i++) {
    e->a[i] = (float)(i % 2003) / 200.0f - 5.0f;
    e->b[i] = (float)(i % 1009) / 100.0f - 5.0f;
  }
  memset(e->out, 0, bytes);
  return e->text ? compile(e) : ATTUNE_OK;
}

static void drop(void *arg) {
  interpreting *e = arg;
  if (e->program) at_interpreter_destroy(e->program);
  free(e->a);
  free(e->b);
  free(e->out);
  e->program = NULL;
}

static void copy_part(void *arg, const at_team *t) {
  const interpreting *e = arg;
  const size_t bytes = (size_t)e->count * sizeof(float), each = bytes / (size_t)t->size / 64 * 64,
               first = each * (size_t)t->rank;
  memcpy((char *)e->out + first, (const char *)e->a + first, t->rank + 1 == t->size ? bytes - first : each);
}

static attune_status run(void *arg, attune_stream *stream) {
  interpreting *e = arg;
  const at_interpreter_call call = {
      .outputs = {e->out}, .inputs = {e->a, e->b}, .threads = e->threads, .stream = e->past};
  (void)stream;
  if (e->text)
    at_interpreter_run(e->program, &e->layout, &call);
  else
    at_parallel(e->threads, copy_part, e);
  return ATTUNE_OK;
}

static void add(attune_bench *bench, const char *name, const char *peer_of, const interpreting *e) {
  const part_case c = {.name = name,
                       .peer_of = peer_of,
                       .set_up = make,
                       .run = run,
                       .tear_down = drop,
                       .bytes = (e->inputs + 1.0) * (double)e->count * sizeof(float)};
  parts_add(bench, &c, e, sizeof *e);
}

void parts_interpret(attune_bench *bench) {
  static const struct {
    const char *text;
    int inputs;
  } expressions[] = {{"a + b", 2}, {"exp(a)", 1}, {"gelu(a)", 1}, {"gelu(a + b) * b", 2}};
  for (int large = 0; large < 2; large++) {
    interpreting e = {.inputs = 1, .threads = large ? at_cpu_count() : 1, .count = INT64_C(1) << (large ? 24 : 15)};
    char copy_name[64], name[64];
    snprintf(copy_name, sizeof copy_name, "interpret/%lld f32", (long long)e.count);
    add(bench, copy_name, NULL, &e);
    for (size_t i = 0; i < AT_COUNT(expressions); i++)
      for (int past = 0; past <= large; past++) {
        e.text = expressions[i].text, e.inputs = expressions[i].inputs, e.past = past;
        snprintf(name, sizeof name, "%s%s", e.text, past ? ", past the caches" : "");
        add(bench, name, copy_name, &e);
      }
  }
}
