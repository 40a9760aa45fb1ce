/* SPDX-License-Identifier: Apache-2.0
 * conformance.h: what every implementation of every operation owes its stream, on any device, launched and through the
 * operation's public calls: work behind a call of the program that has not returned waits for it, and does not make its
 * caller wait; a captured call runs in each replay, on the data of then. */
#ifndef AT_TEST_CONFORMANCE_H
#define AT_TEST_CONFORMANCE_H

#include <attune/graph.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/ops/op_test.h"
#include "tests/support/check.h"
#include "tuning/dispatch/single_plan_tuner.h"
#include "tuning/measure/operand_set.h"

enum { CONFORM_POISON = 0x77 };

/* ---- cases ---- */

/* ATTUNE_TEST_ALL: all cases and configurations. */
static inline bool conform_all(void) {
  return getenv("ATTUNE_TEST_ALL") != NULL;
}

/* Calls `test` for about `most` cases of the operation, evenly chosen, folded for the device; returns how many. */
static inline int conform_cases(const at_op_test *op_test, attune_device *device, int most,
                                void (*test)(const at_op_test *op_test, const void *problem, const char *text)) {
  const at_op *op = op_test->op;
  const int wanted = getenv("AT_UNDER_VALGRIND") ? most / 4 : most, count = op_test->case_count();
  const int step = conform_all() || count < wanted ? 1 : count / wanted | 1;
  int seen = 0;
  for (int c = 0; c < count; c += step) {
    uint64_t problem[AT_PROBLEM_BYTES / 8] = {0};
    char text[AT_PROBLEM_CHARS];
    if (!op_test->case_at(c, problem)) continue;
    op->problem->fold(problem, device);
    OK(op->problem->format(problem, text, sizeof text));
    test(op_test, problem, text);
    seen++;
  }
  return seen;
}

/* ---- a call of the program that waits until it is told; or until its patience ends, so that a test never hangs
 * ---- */

typedef struct conform_gate {
  pthread_mutex_t lock;
  pthread_cond_t told;
  bool open, gave_up; /* under the lock */
  int patience_ms;
} conform_gate;

static inline void conform_wait_at_gate(void *user) {
  conform_gate *gate = user;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += gate->patience_ms / 1000;
  until.tv_nsec += gate->patience_ms % 1000 * 1000000;
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  pthread_mutex_lock(&gate->lock);
  while (!gate->open && !gate->gave_up) gate->gave_up = pthread_cond_timedwait(&gate->told, &gate->lock, &until) != 0;
  pthread_mutex_unlock(&gate->lock);
}

/* True: it was still shut. */
static inline bool conform_open(conform_gate *gate) {
  pthread_mutex_lock(&gate->lock);
  const bool shut = !gate->gave_up;
  gate->open = true;
  pthread_cond_signal(&gate->told);
  pthread_mutex_unlock(&gate->lock);
  return shut;
}

static inline bool conform_is_shut(conform_gate *gate) {
  pthread_mutex_lock(&gate->lock);
  const bool shut = !gate->gave_up;
  pthread_mutex_unlock(&gate->lock);
  return shut;
}

/* ---- one problem: two sets of data with their references, and the operands of the calls ---- */

typedef struct conform_scene {
  const at_op_test *op_test;
  const at_op *op;
  const void *problem;
  attune_stream *stream, *other; /* created; `other` reads while `stream` waits */
  at_operand_set *data[2], *set;
  void *references[2];
  unsigned char *outputs[AT_MAX_BUFFERS]; /* on the host */
  int patience_ms;
} conform_scene;

static inline void conform_open_scene(conform_scene *s, const at_op_test *op_test, const void *problem,
                                      attune_device *device, at_random *const random[2], int patience_ms) {
  const at_op *op = op_test->op;
  *s = (conform_scene){.op_test = op_test, .op = op, .problem = problem, .patience_ms = patience_ms};
  OK(attune_stream_create(&s->stream, device));
  OK(attune_stream_create(&s->other, device));
  OK(at_operand_set_create(&s->set, op, problem, s->stream, random[0], 1, SIZE_MAX, true));
  for (int d = 0; d < 2; d++) {
    OK(at_operand_set_create(&s->data[d], op, problem, s->stream, random[d], 1, SIZE_MAX, true));
    OK(op->reference->create(&s->references[d], problem, device, s->stream, s->data[d]->pointers[0]));
  }
  for (int i = 0; i < s->set->buffer_count; i++)
    if (s->set->buffers[i].output) assert_non_null(s->outputs[i] = malloc(s->set->buffers[i].bytes));
}

static inline void conform_close_scene(conform_scene *s) {
  for (int i = 0; i < AT_MAX_BUFFERS; i++) free(s->outputs[i]);
  for (int d = 0; d < 2; d++) {
    s->op->reference->destroy(s->references[d]);
    at_operand_set_destroy(s->data[d]);
  }
  at_operand_set_destroy(s->set);
  attune_stream_destroy(s->other);
  attune_stream_destroy(s->stream);
}

/* In the stream's order: the operands get data `d`, and poison where they are outputs alone. */
static inline void conform_give_data(conform_scene *s, int d) {
  for (int i = 0; i < s->set->buffer_count; i++) {
    const at_buffer *buffer = &s->set->buffers[i];
    void *const to = s->set->pointers[0][i];
    if (buffer->addresses) continue; /* they are the set's own */
    if (buffer->input)
      OK(attune_copy(s->stream, to, s->data[d]->pointers[0][i], buffer->bytes));
    else
      OK(attune_fill(s->stream, to, CONFORM_POISON, buffer->bytes));
  }
}

static inline void conform_read_outputs(conform_scene *s) {
  for (int i = 0; i < s->set->buffer_count; i++)
    if (s->outputs[i]) OK(attune_copy(s->other, s->outputs[i], s->set->pointers[0][i], s->set->buffers[i].bytes));
  OK(attune_stream_synchronize(s->other));
}

/* The outputs are as data `d` left them, before any call. */
static inline bool conform_untouched(conform_scene *s, int d) {
  bool same = true;
  conform_read_outputs(s);
  for (int i = 0; i < s->set->buffer_count; i++) {
    const at_buffer *buffer = &s->set->buffers[i];
    if (!buffer->output) continue;
    unsigned char *before = malloc(buffer->bytes);
    assert_non_null(before);
    memset(before, CONFORM_POISON, buffer->bytes);
    if (buffer->input) OK(attune_copy(s->other, before, s->data[d]->pointers[0][i], buffer->bytes));
    OK(attune_stream_synchronize(s->other));
    same = same && memcmp(s->outputs[i], before, buffer->bytes) == 0;
    free(before);
  }
  return same;
}

/* The outputs are right for data `d`. The stream's work is done. */
static inline bool conform_right(conform_scene *s, int d) {
  at_outputs outputs = {{0}, {0}};
  double error = -1.0;
  conform_read_outputs(s);
  for (int i = 0; i < s->set->buffer_count; i++) {
    outputs.bytes[i] = s->outputs[i];
    outputs.poison[i] = CONFORM_POISON;
  }
  OK(s->op->reference->compare(s->references[d], s->set->usual, &outputs, &error));
  return error <= 1.0;
}

/* ---- the ways to run a plan ---- */

typedef enum conform_way { CONFORM_LAUNCH, CONFORM_CALL, CONFORM_PLAN, CONFORM_WAYS } conform_way;

typedef struct conform_runner {
  conform_scene *scene;
  const at_plan *plan;
  at_single_plan_tuner sole; /* a tuner that knows it alone */
  attune_plan *caller;       /* of plan_create */
} conform_runner;

static inline attune_status conform_run(const conform_runner *r, conform_way way) {
  const conform_scene *s = r->scene;
  const void *operands = s->set->operands;
  if (way == CONFORM_CALL) return s->op_test->call(r->sole.tuner, s->stream, s->problem, operands);
  if (way == CONFORM_PLAN) return s->op_test->plan_run(r->caller, s->stream, operands);
  return r->plan->launch(r->plan, operands, s->stream);
}

/* NULL, or what is wrong. */
static inline const char *conform_behind_gate(const conform_runner *r, conform_way way) {
  conform_scene *s = r->scene;
  conform_gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false, s->patience_ms};
  conform_give_data(s, 0);
  OK(attune_stream_synchronize(s->stream));
  OK(attune_stream_call(s->stream, conform_wait_at_gate, &gate));
  conform_give_data(s, 1);
  const attune_status status = conform_run(r, way);
  const bool blocked = !conform_is_shut(&gate), early = !blocked && !conform_untouched(s, 0);
  const bool shut = conform_open(&gate);
  OK(attune_stream_synchronize(s->stream));
  if (status != ATTUNE_OK) return "fails behind a call that waits";
  if (blocked) return "makes its caller wait for the stream";
  if (early && shut) return "runs before its turn in the stream";
  return conform_right(s, 1) ? NULL : "gives wrong numbers behind a call that waits";
}

static inline const char *conform_replay(const conform_runner *r, attune_graph *graph) {
  conform_scene *s = r->scene;
  if (!conform_untouched(s, 0)) return "runs while it is captured";
  for (int turn = 0; turn < 2; turn++) {
    const int d = 1 - turn; /* not what it was captured with, then that */
    conform_give_data(s, d);
    OK(attune_graph_replay(graph, s->stream));
    OK(attune_stream_synchronize(s->stream));
    if (!conform_right(s, d))
      return turn ? "gives wrong numbers in a second replay" : "gives wrong numbers in a replay";
  }
  return NULL;
}

static inline const char *conform_in_graph(const conform_runner *r, conform_way way) {
  conform_scene *s = r->scene;
  attune_graph *graph = NULL;
  conform_give_data(s, 0);
  OK(attune_stream_synchronize(s->stream));
  OK(attune_graph_create(&graph, s->stream->device));
  OK(attune_graph_capture_begin(graph, s->stream, NULL));
  const attune_status status = conform_run(r, way), ended = attune_graph_capture_end(graph, s->stream);
  const char *why = status != ATTUNE_OK || ended != ATTUNE_OK ? "cannot be captured" : conform_replay(r, graph);
  attune_graph_destroy(graph);
  return why;
}

/* All of it for one plan; NULL, or what is wrong. *out_way (may be NULL): how it was run then. */
static inline const char *conform_plan(conform_scene *s, const at_plan *plan, conform_way *out_way) {
  conform_runner r = {.scene = s, .plan = plan};
  const char *why = NULL;
  OK(at_single_plan_tuner_open(&r.sole, plan));
  if (s->op_test->plan_create(&r.caller, r.sole.tuner, s->stream, s->problem, s->set->operands) != ATTUNE_OK)
    why = "has no plan by plan_create";
  else if (r.caller->implementation != plan->implementation)
    why = "is not what plan_create comes to";
  for (int way = 0; way < CONFORM_WAYS && !why; way++) {
    if (out_way) *out_way = (conform_way)way;
    (void)conform_run(&r, (conform_way)way); /* the first one may load code and make a workspace: it may wait */
    why = conform_behind_gate(&r, (conform_way)way);
    const bool draws = way != CONFORM_LAUNCH && s->op->problem->draws && s->op->problem->draws(s->problem);
    if (!why && !draws) why = conform_in_graph(&r, (conform_way)way);
  }
  if (!why && !at_single_plan_tuner_hit(&r.sole)) why = "is not what the public call comes to";
  attune_plan_destroy(r.caller);
  at_single_plan_tuner_close(&r.sole);
  return why;
}

/* The first configurations that an implementation offers, `most` of them; returns how many. */
static inline int conform_implementation(conform_scene *s, const at_implementation *implementation, int most,
                                         const char *text) {
  static const char *const ways[] = {"launch", "call", "plan_run"};
  enum { ROOM = 256 };
  static at_configuration room[ROOM];
  attune_device *device = s->stream->device;
  const int count = implementation->configurations(implementation, s->problem, device, room, ROOM);
  assert_in_range(count, 1, ROOM);
  int done = 0;
  for (; done < count && (conform_all() || done < most); done++) {
    at_plan *plan = NULL;
    conform_way way = CONFORM_LAUNCH;
    OK(at_plan_create(&plan, s->op, implementation, &room[done], s->problem, device));
    const char *why = conform_plan(s, plan, &way);
    if (why)
      fail_msg("%s: %s %s, by %s, %s (%s)", text, implementation->name, room[done].text, ways[way], why,
               attune_last_message());
    at_plan_destroy(plan);
  }
  return done;
}

#endif
