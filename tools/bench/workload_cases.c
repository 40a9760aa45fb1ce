/* SPDX-License-Identifier: Apache-2.0
 * workload_cases.c: a case for each problem of a workload: the operation's public function, called as a program calls
 * it (at_op.calls_*). Where an operation has no such calls, and where they may not be captured, it is the plan that the
 * tuner dispatches to, launched. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/suite.h"
#include "tuning/dispatch/plan_handle.h"
#include "tuning/op/problem_text.h"

enum { DATA_SEED = 20261122 };

typedef struct problem_case {
  attune_tuner *tuner;
  attune_device *device;
  const at_op *op;
  bool cold, called;   /* by the public function, with the problem as it is; else it is folded */
  uint64_t seed;       /* of the operands' placement */
  attune_bench *bench; /* has the random data */
  at_operand_set *set;
  void *calls;       /* of the public function */
  attune_plan *plan; /* in their place */
  uint64_t problem[AT_PROBLEM_BYTES / 8];
} problem_case;

/* ---- set up ---- */

/* One copy; or as many as are four times the cache, if there may be so many. */
static int copies_wanted(const problem_case *c, size_t one) {
  if (!c->cold || !one) return 1;
  const size_t copies = (4 * (size_t)c->device->properties.cache_bytes + one - 1) / one;
  return copies > AT_MAX_COPIES ? 1 : (int)copies;
}

static attune_status make_operands(problem_case *c) {
  size_t one = 0;
  attune_status status = at_operand_bytes(c->op, c->problem, &one);
  if (status == ATTUNE_OK) status = at_operand_room(c->device, one);
  if (status == ATTUNE_OK && !c->bench->random) status = at_random_create(&c->bench->random, DATA_SEED);
  if (status == ATTUNE_OK)
    status = at_operand_set_create(&c->set, c->op, c->problem, attune_stream_default(c->device), c->bench->random,
                                   copies_wanted(c, one), (size_t)c->device->properties.memory_bytes / 4, false);
  if (status == ATTUNE_OK) at_operand_set_place(c->set, c->seed);
  return status;
}

static at_bare_calls calls_of(const problem_case *c, int from, int to) {
  return (at_bare_calls){c->set->operands, c->set->operands_stride, c->set->copies, from, to};
}

static attune_status make_plan(problem_case *c) {
  at_key key;
  memcpy(at_key_problem(&key), c->problem, at_problem_bytes(c->op, c->problem));
  return at_plan_handle_create(&c->plan, c->tuner, attune_stream_default(c->device), c->op, &key, 0, 0);
}

static attune_status make_calls(void *arg, attune_stream *stream, int from, int to) {
  problem_case *c = arg;
  if (c->calls) return c->op->calls->run(c->calls, stream, from, to);
  const at_bare_calls calls = calls_of(c, from, to);
  attune_status status = ATTUNE_OK;
  int copy = from % calls.copies;
  for (int i = from; i < to && status == ATTUNE_OK; i++) {
    status = c->plan->launch(c->plan, at_bare_operands(&calls, copy), stream);
    if (++copy == calls.copies) copy = 0;
  }
  return status;
}

static void tear_down(void *arg) {
  problem_case *c = arg;
  if (c->calls) c->op->calls->destroy(c->calls);
  attune_plan_destroy(c->plan);
  at_operand_set_destroy(c->set);
  c->calls = NULL;
  c->plan = NULL;
  c->set = NULL;
}

/* The first call is made here: it decides, and may tune or compile. */
static attune_status set_up(void *arg) {
  problem_case *c = arg;
  attune_stream *stream = attune_stream_default(c->device);
  attune_status status = make_operands(c);
  if (status == ATTUNE_OK) {
    const at_bare_calls calls = calls_of(c, 0, 0);
    status = c->called ? c->op->calls->create(&c->calls, c->tuner, c->problem, &calls) : make_plan(c);
  }
  if (status == ATTUNE_OK) status = make_calls(c, stream, 0, 1);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  if (status != ATTUNE_OK) {
    const at_message kept = at_message_keep();
    tear_down(c);
    (void)at_message_settle(&kept, ATTUNE_OK);
  }
  return status;
}

static attune_status run(void *arg, attune_stream *stream) {
  return make_calls(arg, stream, 0, 1);
}

/* As many as are twice the cache. */
static int turn(void *arg) {
  const problem_case *c = arg;
  const double bytes = (double)c->set->set_bytes, all = 2.0 * (double)c->device->properties.cache_bytes;
  return c->cold && bytes * (double)c->set->copies >= all ? (int)ceil(all / bytes) : 0;
}

static void seed(void *arg, uint64_t number) {
  ((problem_case *)arg)->seed = number;
}

/* ---- adding ---- */

static void name_of(char out[AT_BENCH_NAME_CHARS], const attune_workload_entry *entry) {
  enum {
    SHORT = 62
  }; /* where a row's own words are longer, the problem's text, which is one however a row writes it */
  (void)at_copy_text(out, AT_BENCH_NAME_CHARS, strlen(entry->name) <= SHORT ? entry->name : entry->problem);
  at_one_line(out);
}

/* Type of the arithmetic. */
static attune_dtype dtype_of(const problem_case *c) {
  at_buffer buffers[AT_MAX_BUFFERS];
  int count = 0;
  if (c->op->operands->buffers(c->problem, buffers, &count) != ATTUNE_OK || count == 0) return ATTUNE_F32;
  for (int i = 0; i < count; i++)
    if (buffers[i].input) return buffers[i].dtype;
  return buffers[0].dtype;
}

/* The word of the problem's text that is one. */
static attune_accuracy accuracy_of(const problem_case *c) {
  char text[AT_PROBLEM_CHARS], *rest = NULL;
  attune_accuracy out = ATTUNE_STRICT;
  if (c->op->problem->format(c->problem, text, sizeof text) != ATTUNE_OK) return out;
  for (char *word = strtok_r(text, " ", &rest); word && *word != ':'; word = strtok_r(NULL, " ", &rest))
    if (at_text_accuracy(word, &out)) break;
  return out;
}

static attune_status read_problem(problem_case *c, const char *text, unsigned flags) {
  c->op = at_tuner_op(c->tuner, text);
  AT_TRY(c->op ? c->op->problem->parse(text, c->problem) : ATTUNE_INVALID_ARGUMENT);
  const bool draws = c->op->problem->draws && c->op->problem->draws(c->problem);
  c->called = c->op->calls && !(draws && (flags & ATTUNE_BENCH_GRAPH));
  if (!c->called) c->op->problem->fold(c->problem, c->device);
  return ATTUNE_OK;
}

static attune_status add(attune_bench *bench, problem_case *c, const attune_workload_entry *entry, unsigned flags) {
  char name[AT_BENCH_NAME_CHARS];
  name_of(name, entry);
  return at_bench_add(bench, &(at_bench_entry){.shown = {.name = name,
                                                         .device = c->device,
                                                         .set_up = set_up,
                                                         .run = run,
                                                         .tear_down = tear_down,
                                                         .arg = c,
                                                         .bytes = c->op->problem->bytes(c->problem),
                                                         .flops = c->op->problem->flops(c->problem),
                                                         .dtype = dtype_of(c),
                                                         .flags = flags,
                                                         .accuracy = accuracy_of(c)},
                                               .inside = c->device->properties.kind == ATTUNE_DEVICE_HOST,
                                               .calls = make_calls,
                                               .seed = seed,
                                               .turn = turn,
                                               .release = free});
}

static attune_status add_problem(attune_bench *bench, attune_tuner *tuner, attune_device *device,
                                 const attune_workload_entry *entry, size_t number, unsigned flags) {
  char shown[AT_SHOWN_CHARS];
  problem_case *c = calloc(1, sizeof *c);
  if (!c) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu cases", number);
  c->tuner = tuner;
  c->device = device;
  c->bench = bench;
  c->cold = flags & ATTUNE_BENCH_COLD;
  attune_status status = read_problem(c, entry->problem, flags);
  if (status != ATTUNE_OK && status != ATTUNE_OUT_OF_MEMORY)
    status = at_fail_prefix(ATTUNE_BAD_DATA, "problem %zu, \"%.100s\": ", number, at_shown(shown, entry->problem));
  if (status == ATTUNE_OK) status = add(bench, c, entry, flags);
  if (status != ATTUNE_OK) free(c);
  return status;
}

attune_status attune_bench_add_workload(attune_bench *bench, attune_tuner *tuner, attune_device *device,
                                        const attune_workload *workload, unsigned flags) {
  AT_REQUIRE(bench, tuner, device, workload);
  if (flags & ~(unsigned)(ATTUNE_BENCH_COLD | ATTUNE_BENCH_GRAPH))
    return AT_INVALID("flags is 0x%x; should contain no bits but ATTUNE_BENCH_COLD and ATTUNE_BENCH_GRAPH", flags);
  const size_t before = bench->count;
  attune_status status = ATTUNE_OK;
  for (size_t i = 0; i < attune_workload_size(workload) && status == ATTUNE_OK; i++)
    status = add_problem(bench, tuner, device, attune_workload_at(workload, i), i + 1, flags);
  if (status != ATTUNE_OK) at_bench_cut(bench, before);
  return status;
}
