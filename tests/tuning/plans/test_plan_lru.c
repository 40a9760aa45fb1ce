/* SPDX-License-Identifier: Apache-2.0
 * test_plan_lru.c: more problems than a tuner has places for: products stay right and what is kept stays bounded,
 * on streams that run them later, in graphs, in plans of the program, beside other threads. */
#include <attune/attune.h>
#include <attune/graph.h>

#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <malloc.h>
#include <pthread.h>

#include "tuning/tuner/tuner.h"

enum { PLACES = 16, SIDE = 24, THREADS = 4 };

static attune_device *host;
static double a[SIDE * SIDE], b[SIDE * SIDE];

static attune_tuner *new_tuner(void) {
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_CACHED}));
  tuner->plans.most = tuner->captured.most = PLACES;
  return tuner;
}

FIXTURE(open_all) {
  for (int i = 0; i < SIDE * SIDE; i++) {
    a[i] = i % 7 - 3;
    b[i] = i % 5 - 2;
  }
  return attune_device_get(&host, "host") != ATTUNE_OK;
}

/* One of SIDE^3 problems. */
static attune_gemm_problem problem_of(int number) {
  attune_gemm_problem p = {
      .dtype = ATTUNE_F64, .m = 1 + number % SIDE, .n = 1 + number / SIDE % SIDE, .k = 1 + number / SIDE / SIDE % SIDE};
  return p;
}

static attune_status multiply(attune_tuner *tuner, attune_stream *stream, int number, double *d) {
  const attune_gemm_problem p = problem_of(number);
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  return attune_gemm(tuner, stream, &p, &o);
}

/* All numbers are small and whole, so every order of adding gives the same. */
static bool is_right(int number, const double *d) {
  const attune_gemm_problem p = problem_of(number);
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < p.m; i++) {
      double sum = 0;
      for (int64_t l = 0; l < p.k; l++) sum += a[i + l * p.m] * b[l + j * p.k];
      if (d[i + j * p.m] != sum) return false;
    }
  return true;
}

/* Each product's plan is long out of the table when the stream comes to it. */
TEST(a_stream_that_lags) {
  enum { COUNT = 4000, AT_ONCE = 200 };
  static double d[AT_ONCE][SIDE * SIDE];
  attune_tuner *tuner = new_tuner();
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, host));
  for (int first = 0; first < COUNT; first += AT_ONCE) {
    for (int i = 0; i < AT_ONCE; i++) OK(multiply(tuner, stream, first + i, d[i]));
    OK(attune_stream_synchronize(stream));
    for (int i = 0; i < AT_ONCE; i++) assert_true(is_right(first + i, d[i]));
  }
  assert_int_equal(tuner->plans.count, PLACES);
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
}

/* A problem is decided once, not at each call. */
TEST(the_latest_are_kept) {
  double d[SIDE * SIDE];
  attune_tuner *tuner = new_tuner();
  attune_stream *stream = attune_stream_default(host);
  for (int i = 0; i < PLACES + 40; i++) OK(multiply(tuner, stream, i, d));
  attune_gemm_problem p = problem_of(PLACES + 39);
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  attune_plan *first = NULL, *second = NULL;
  OK(attune_gemm_plan_create(&first, tuner, stream, &p, &o));
  OK(attune_gemm_plan_create(&second, tuner, stream, &p, &o));
  assert_non_null(first->counted);
  assert_ptr_equal(first->counted, second->counted);
  attune_plan_destroy(first);
  attune_plan_destroy(second);
  attune_tuner_destroy(tuner);
}

/* A plan of the program outlives its place. */
TEST(plans_of_the_program) {
  enum { PLANS = 64 };
  static double d[PLANS][SIDE * SIDE];
  attune_plan *plans[PLANS];
  attune_tuner *tuner = new_tuner();
  attune_stream *stream = NULL;
  double other[SIDE * SIDE];
  OK(attune_stream_create(&stream, host));
  for (int i = 0; i < PLACES; i++) OK(multiply(tuner, stream, 9000 + i, other));
  for (int i = 0; i < PLANS; i++) {
    const attune_gemm_problem p = problem_of(i);
    const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d[i]};
    OK(attune_gemm_plan_create(&plans[i], tuner, stream, &p, &o));
  }
  for (int i = 1000; i < 4000; i++) OK(multiply(tuner, stream, i, other)); /* every place is taken by others */
  for (int turn = 0; turn < 2; turn++)
    for (int i = 0; i < PLANS; i++) {
      const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d[i]};
      OK(attune_gemm_plan_run(plans[i], stream, &o));
    }
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < PLANS; i++) attune_plan_destroy(plans[i]);
  for (int i = 0; i < PLANS; i++) assert_true(is_right(i, d[i]));
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
}

TEST(graphs_keep_theirs) {
  enum { NODES = 40 };
  static double d[NODES][SIDE * SIDE];
  double other[SIDE * SIDE];
  attune_tuner *tuner = new_tuner();
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  OK(attune_stream_create(&stream, host));
  for (int i = 0; i < PLACES; i++) OK(multiply(tuner, stream, 9000 + i, other));
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  for (int i = 0; i < NODES; i++) OK(multiply(tuner, stream, i, d[i]));
  OK(attune_graph_capture_end(graph, stream));
  for (int i = 1000; i < 4000; i++) OK(multiply(tuner, stream, i, other));
  for (int turn = 0; turn < 3; turn++) {
    memset(d, 0, sizeof d);
    OK(attune_graph_replay(graph, stream));
    OK(attune_stream_synchronize(stream));
    for (int i = 0; i < NODES; i++) assert_true(is_right(i, d[i]));
  }
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
}

/* Repeated problems, and modes that withdraw guesses: memory does not grow. */
TEST(nothing_grows) {
  enum { PROBLEMS = 3000, TURNS = 6 };
  double d[SIDE * SIDE];
  size_t before = 0;
  attune_tuner *tuner = new_tuner();
  attune_stream *stream = attune_stream_default(host);
  for (int turn = 0; turn < TURNS; turn++) {
    for (int i = 0; i < PROBLEMS; i++) OK(multiply(tuner, stream, i, d));
    OK(attune_tuner_set_mode(tuner, turn & 1 ? ATTUNE_MODE_OFF : ATTUNE_MODE_CACHED));
    const size_t now = mallinfo2().uordblks;
    if (turn == 1) before = now;
    if (turn > 1) assert_true(now < before + 128 * 1024);
  }
  attune_tuner_destroy(tuner);
}

/* A winner found beyond the bound is reported like any other choice. */
TEST(choices_are_told) {
  double d[SIDE * SIDE];
  char text[256];
  attune_tuner *tuner = new_tuner();
  attune_stream *stream = attune_stream_default(host);
  attune_decision decision;
  for (int i = 0; i < PLACES; i++) OK(multiply(tuner, stream, 9000 + i, d));
  const attune_gemm_problem p = problem_of(1234);
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  OK(attune_gemm(tuner, stream, &p, &o));
  OK(attune_gemm_problem_format(text, sizeof text, &p, &o));
  OK(attune_tune(tuner, host, text, &(attune_tune_options){.budget_ms = 5.0}, &decision));
  OK(attune_explain(tuner, host, text, &decision));
  assert_int_equal(decision.source, ATTUNE_SOURCE_TUNED);
  OK(multiply(tuner, stream, 1234, d));
  assert_true(is_right(1234, d));
  attune_tuner_destroy(tuner);
}

typedef struct worker {
  attune_tuner *tuner;
  int index;
  bool right;
} worker;

static void *work(void *arg) {
  worker *w = arg;
  static _Thread_local double d[64][SIDE * SIDE];
  attune_stream *stream = NULL;
  if (attune_stream_create(&stream, host) != ATTUNE_OK) return NULL;
  w->right = true;
  for (int turn = 0; turn < 12; turn++) {
    for (int i = 0; i < 64; i++)
      w->right = multiply(w->tuner, stream, 64 * turn + i + 16 * w->index, d[i]) == ATTUNE_OK && w->right;
    w->right = attune_stream_synchronize(stream) == ATTUNE_OK && w->right;
    for (int i = 0; i < 64; i++) w->right = is_right(64 * turn + i + 16 * w->index, d[i]) && w->right;
    if (w->index == 0) (void)attune_tuner_set_mode(w->tuner, turn & 1 ? ATTUNE_MODE_OFF : ATTUNE_MODE_CACHED);
  }
  attune_stream_destroy(stream);
  return NULL;
}

TEST(threads_share_the_rest) {
  pthread_t threads[THREADS];
  worker workers[THREADS];
  attune_tuner *tuner = new_tuner();
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){tuner, i, false};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) assert_true(workers[i].right);
  attune_tuner_destroy(tuner);
}

int main(void) {
  return RUN_TESTS(open_all, NULL);
}
