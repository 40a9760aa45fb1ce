/* SPDX-License-Identifier: Apache-2.0
 * parts_hot.c: what attune itself costs: a hit of attune_gemm and a plan run, in one thread and in several. The plan
 * launches nothing, so that only attune is measured: for that this file looks inside the library. */
#include <stdio.h>
#include <string.h>

#include "bench/parts/parts.h"
#include "ops/gemm/problem/problem.h"
#include "tuning/tuner/tuner.h"

enum { CALLS = 1000, LONG = 1000, MANY_PROBLEMS = 64, MANY_MASK = MANY_PROBLEMS - 1 };

/* The implementation that does nothing. */
static bool no_op_supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self, (void)problem, (void)device;
  return true;
}

static int no_op_configurations(const at_implementation *self, const void *problem, attune_device *device,
                                at_configuration *out, int max) {
  (void)self, (void)problem, (void)device;
  if (max > 0) out[0].text[0] = 0;
  return max > 0 ? 1 : 0;
}

static attune_status no_op_prepare(at_plan *plan) {
  (void)plan;
  return ATTUNE_OK;
}

static attune_status no_op_launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  (void)plan, (void)operands, (void)stream;
  return ATTUNE_OK;
}

static void no_op_destroy(at_plan *plan) {
  (void)plan;
}

static const at_implementation no_op = {.name = "no_op",
                                        .version = 1,
                                        .backend = "host",
                                        .supports = no_op_supports,
                                        .configurations = no_op_configurations,
                                        .prepare = no_op_prepare,
                                        .launch = no_op_launch,
                                        .destroy = no_op_destroy};

typedef struct scene {
  attune_tuner *tuner;
  attune_stream *stream;
  attune_plan *plan; /* as a caller has it */
  at_launch_fn volatile launch;
  attune_gemm_problem problems[MANY_PROBLEMS], pair[2]; /* the pair: nn and nt, else the same */
  attune_gemm_operands operands;
} scene;

/* Room for the largest: operands that overlap are refused. */
static float data[3][(64 + MANY_PROBLEMS) * 64] __attribute__((aligned(128)));

/* Puts a plan that does nothing where attune_gemm will find it. */
static void plant(scene *s, const attune_gemm_problem *problem) {
  at_key key = {{0}};
  char text[AT_PROBLEM_CHARS];
  attune_device *device = attune_stream_device(s->stream);
  at_plan *plan = NULL;
  at_configuration configuration = {""};
  attune_decision decision = {.source = ATTUNE_SOURCE_TUNED};
  bench_check(attune_gemm_problem_format(text, sizeof text, problem, NULL), "attune_gemm_problem_format");
  bench_check(at_gemm_op.problem->parse(text, at_key_problem(&key)), text);
  at_key_set(&key, &at_gemm_op, device);
  bench_check(at_plan_create(&plan, &at_gemm_op, &no_op, &configuration, at_key_problem(&key), device),
              "at_plan_create");
  bench_check(at_plan_table_put(&s->tuner->plans, &key, &plan, &decision, false), "at_plan_table_put");
}

static void open_scene(scene *s) {
  attune_device *host = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_check(attune_tuner_create(&s->tuner, &options), "attune_tuner_create");
  s->stream = attune_stream_default(host);
  s->launch = no_op_launch;
  s->operands = (attune_gemm_operands){.alpha = 1.0, .a = data[0], .b = data[1], .d = data[2]};
  for (int i = 0; i < MANY_PROBLEMS; i++) {
    s->problems[i] = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
    s->problems[i].m = 64 + i;
    s->problems[i].n = s->problems[i].k = 64;
    plant(s, &s->problems[i]);
  }
  for (int i = 0; i < 2; i++) {
    s->pair[i] = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
    s->pair[i].m = s->pair[i].n = s->pair[i].k = 48;
    s->pair[i].trans_b = i ? ATTUNE_T : ATTUNE_N;
    plant(s, &s->pair[i]);
  }
  bench_check(attune_gemm_plan_create(&s->plan, s->tuner, s->stream, &s->problems[0], &s->operands),
              "attune_gemm_plan_create");
}

static void close_scene(scene *s) {
  attune_plan_destroy(s->plan);
  attune_tuner_destroy(s->tuner);
}

/* CALLS of them each; false: one failed. */
typedef bool (*path)(const scene *s, const attune_gemm_operands *operands);

#define PATH(name, call)                                                   \
  static bool name(const scene *s, const attune_gemm_operands *operands) { \
    const attune_gemm_problem one = s->problems[0];                        \
    int failed = 0;                                                        \
    for (int i = 0; i < CALLS; i++) failed |= (int)call;                   \
    (void)one;                                                             \
    return !failed;                                                        \
  }
PATH(launch, s->launch(s->plan, operands, s->stream))
PATH(hit, attune_gemm(s->tuner, s->stream, &one, operands))
PATH(hit_many, attune_gemm(s->tuner, s->stream, &s->problems[i * 37 & MANY_MASK], operands))
PATH(hit_two, attune_gemm(s->tuner, s->stream, &s->pair[i & 1], operands))
PATH(plan_run, attune_gemm_plan_run(s->plan, s->stream, operands))

static scene shared; /* by the threads; of the case that is open */

static attune_status make(void *arg) {
  (void)arg;
  open_scene(&shared);
  return ATTUNE_OK;
}

static void drop(void *arg) {
  (void)arg;
  close_scene(&shared);
}

static bool work(void *arg, int thread) {
  const attune_gemm_operands operands = shared.operands; /* of its own: threads share nothing that is written */
  (void)thread;
  return (*(path *)arg)(&shared, &operands);
}

/* Long enough that starting the threads does not show. */
static bool long_work(void *arg, int thread) {
  bool good = true;
  for (int i = 0; i < LONG; i++) good &= work(arg, thread);
  return good;
}

void parts_hot(attune_bench *bench) {
  static const struct {
    path path;
    const char *name;
  } paths[] = {{hit, "hot/attune_gemm, a hit"},
               {plan_run, "attune_gemm_plan_run"},
               {launch, "the launch alone"},
               {hit_two, "nn and nt in turn"},
               {hit_many, "64 problems in turn"}};
  part_case c = {.set_up = make, .tear_down = drop, .repeats = CALLS, .work = work};
  for (size_t i = 0; i < AT_COUNT(paths); i++) {
    c.name = paths[i].name;
    c.peer_of = i ? paths[0].name : NULL;
    parts_add(bench, &c, &paths[i].path, sizeof paths[i].path);
  }
  c.repeats = CALLS * LONG;
  c.work = long_work;
  for (c.threads = 2; c.threads <= team_cpus() && c.threads <= 16; c.threads *= 2)
    for (size_t i = 0; i < 3; i++) {
      char first[96];
      snprintf(first, sizeof first, "%s, %d threads", paths[0].name, c.threads);
      c.name = i ? paths[i].name : first;
      c.peer_of = i ? first : NULL;
      parts_add(bench, &c, &paths[i].path, sizeof paths[i].path);
    }
}
