/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_stream.c: elementwise calls in stream order, in graphs, with generators, and from many threads. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/elementwise_call.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

static attune_device *host;
static attune_tuner *tuner;

FIXTURE(open_all) {
  OK(attune_device_get(&host, "host"));
  tuner = call_tuner(ATTUNE_MODE_CACHED);
  return 0;
}

FIXTURE(close_all) {
  attune_tuner_destroy(tuner);
  return 0;
}

static attune_stream *new_stream(void) {
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, host));
  return stream;
}

/* ---- random numbers ---- */

enum { NUMBERS = 1003 };

static uint64_t offset_of(const attune_generator *g) {
  uint64_t offset = 0;
  OK(attune_generator_get_offset(g, &offset));
  return offset;
}

typedef struct scene {
  call call;
  const char *text;
  attune_plan *plan; /* NULL: by attune_elementwise */
  float out[2][NUMBERS];
} scene;

static void begin_random(scene *s, attune_generator *g) {
  call_begin(&s->call);
  for (int i = 0; i < 2; i++) call_output(&s->call, s->out[i], ATTUNE_F32, 1, CALL_SIZES(NUMBERS));
  s->call.operands.generator = g;
  s->text = "n = randn(); u = rand(); u, n"; /* as written: but rand()'s draws come first */
  s->plan = NULL;
}

static attune_status give(void *user, attune_stream *stream) {
  const scene *s = user;
  return s->plan ? attune_elementwise_plan_run(s->plan, stream, &s->call.operands)
                 : attune_elementwise(tuner, stream, s->text, &s->call.operands);
}

static void draw_expected(attune_generator *g, attune_stream *stream, float expected[2][NUMBERS]) {
  OK(attune_random_uniform(g, stream, expected[0], ATTUNE_F32, NUMBERS, 0, 1));
  OK(attune_random_normal(g, stream, expected[1], ATTUNE_F32, NUMBERS, 0, 1));
  OK(attune_stream_synchronize(stream));
}

TEST(the_generators_numbers) {
  static float expected[2][NUMBERS];
  static scene s;
  attune_generator *g = NULL;
  attune_stream *streams[] = {attune_stream_default(host), new_stream()};
  OK(attune_generator_create(&g, 42));
  begin_random(&s, g);
  for (int i = 0; i < 6; i++) {
    attune_stream *stream = streams[i % 2];
    const uint64_t offset = offset_of(g);
    OK(give(&s, stream));
    OK(attune_stream_synchronize(stream));
    const uint64_t after = offset_of(g);
    OK(attune_generator_set_offset(g, offset));
    draw_expected(g, stream, expected);
    assert_int_equal(offset_of(g), after);
    assert_memory_equal(s.out, expected, sizeof expected);
    OK(give(&s, stream));
    OK(attune_stream_synchronize(stream));
    assert_memory_not_equal(s.out, expected, sizeof expected);
    if (i == 3) OK(attune_elementwise_plan_create(&s.plan, tuner, stream, s.text, &s.call.operands));
  }
  const uint64_t offset = offset_of(g);
  s.call.operands.generator = NULL; /* also where the call is remembered, and for the plan */
  FAILS(give(&s, streams[0]), ATTUNE_INVALID_ARGUMENT);
  attune_plan_destroy(s.plan);
  s.plan = NULL;
  FAILS_SAYING(give(&s, streams[0]), ATTUNE_INVALID_ARGUMENT, "generator is NULL");
  s.call.operands.generator = g;
  OK(attune_generator_set_mode(g, ATTUNE_RANDOM_TORCH));
  FAILS_SAYING(give(&s, streams[0]), ATTUNE_INVALID_ARGUMENT, "mode torch");
  assert_int_equal(offset_of(g), offset);
  OK(attune_generator_set_mode(g, ATTUNE_RANDOM_PORTABLE));
  s.call.outputs[1].data = s.out[0]; /* overlap: nothing is drawn */
  FAILS(give(&s, streams[0]), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(offset_of(g), offset);
  attune_stream_destroy(streams[1]);
  attune_generator_destroy(g);
}

TEST(replays_draw_fresh_numbers) {
  static float expected[2][NUMBERS];
  static scene s;
  attune_generator *g = NULL;
  attune_graph *graph = NULL;
  attune_stream *stream = new_stream();
  OK(attune_generator_create(&g, 43));
  OK(attune_graph_create(&graph, host));
  begin_random(&s, g);
  FAILS(attune_graph_capture_callback(graph, stream, NULL, give, &s), ATTUNE_CAPTURING);
  assert_int_equal(offset_of(g), 0);
  OK(attune_graph_register_generator(graph, g));
  OK(attune_graph_capture_callback(graph, stream, NULL, give, &s));
  for (int i = 0; i < 5; i++) {
    const uint64_t offset = offset_of(g);
    OK(attune_graph_replay(graph, i == 2 ? attune_stream_default(host) : stream));
    OK(attune_stream_synchronize(stream));
    const uint64_t after = offset_of(g);
    assert_true(after > offset);
    OK(attune_generator_set_offset(g, offset));
    draw_expected(g, stream, expected);
    assert_int_equal(offset_of(g), after);
    assert_memory_equal(s.out, expected, sizeof expected);
  }
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  attune_generator_destroy(g);
}

/* ---- operands that do not travel by value ---- */

enum { DIMS = 8, ELEMENTS = 256 };

typedef struct large {
  call call;
  char text[1024], names[16][16];
  int64_t strides[24][DIMS];
  float in[16][2 * ELEMENTS], out[8][2 * ELEMENTS];
} large;

/* Strides under which no two dimensions are walked as one. */
static void make_large(large *l, int outputs, int inputs, int scalars) {
  static const int64_t sizes[DIMS] = {2, 2, 2, 2, 2, 2, 2, 2};
  static const char *const scalar_names[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
  memset(l, 0, sizeof *l);
  call_begin(&l->call);
  for (int i = 0; i < outputs; i++) call_output(&l->call, l->out[i], ATTUNE_F32, DIMS, sizes);
  for (int i = 0; i < inputs; i++) {
    snprintf(l->names[i], sizeof l->names[i], "x%d", i);
    attune_tensor *t = call_input(&l->call, l->names[i], l->in[i], ATTUNE_F32, DIMS, sizes);
    for (int d = 0; d < DIMS; d++) l->strides[i][d] = (int64_t)1 << (d * 3 + i) % DIMS;
    t->strides = l->strides[i];
  }
  for (int i = 0; i < scalars; i++) call_scalar(&l->call, scalar_names[i], i + 1);
  size_t at = 0;
  for (int o = 0; o < outputs; o++) {
    at += (size_t)snprintf(l->text + at, sizeof l->text - at, "%s%d", o ? ", " : "", o);
    for (int i = 0; i < inputs; i++) at += (size_t)snprintf(l->text + at, sizeof l->text - at, " + x%d", i);
    for (int i = 0; i < scalars && o == 0; i++) at += (size_t)snprintf(l->text + at, sizeof l->text - at, " + s%d", i);
  }
}

static void set_inputs(large *l, int round) {
  for (int i = 0; i < 16; i++)
    for (int e = 0; e < 2 * ELEMENTS; e++) l->in[i][e] = (float)((e * (i + 3) + round) % 64);
}

static void check_large(const large *l, int first, double scalars) {
  const attune_elementwise_operands *o = &l->call.operands;
  for (int e = 0; e < ELEMENTS; e++) {
    float sum = 0;
    for (int i = 0; i < o->input_count; i++) {
      int64_t at = 0;
      for (int d = 0; d < DIMS; d++) at += (e >> (DIMS - 1 - d) & 1) * l->strides[i][d];
      sum += l->in[i][at];
    }
    for (int k = 0; k < o->output_count; k++)
      if (l->out[k][first + e] != sum + (float)k + (k ? 0 : (float)scalars))
        fail_msg("output %d, element %d: %g; should be %g", k, e, (double)l->out[k][first + e], (double)sum + k);
  }
}

typedef struct work {
  const large *large;
  attune_plan *plan;
} work;

static attune_status give_large(void *user, attune_stream *stream) {
  const work *w = user;
  return w->plan ? attune_elementwise_plan_run(w->plan, stream, &w->large->call.operands)
                 : attune_elementwise(tuner, stream, w->large->text, &w->large->call.operands);
}

static const int counts[][3] = {{8, 16, 8}, {8, 16, 0}, {1, 16, 8}, {1, 4, 1}, {1, 1, 0}, {1, 7, 2}};

/* Queued behind work that does not end before all are given; what the caller has changes meanwhile. */
static atomic_bool gate;
static void wait_at_gate(void *user) {
  (void)user;
  while (!atomic_load(&gate)) sched_yield();
}

TEST(queued) {
  static large l;
  for (size_t which = 0; which < sizeof counts / sizeof *counts; which++) {
    attune_stream *stream = new_stream();
    make_large(&l, counts[which][0], counts[which][1], counts[which][2]);
    set_inputs(&l, 1);
    work w = {&l, NULL};
    OK(attune_elementwise_plan_create(&w.plan, tuner, stream, l.text, &l.call.operands));
    atomic_store(&gate, false);
    OK(attune_stream_call(stream, wait_at_gate, NULL));
    OK(give_large(&w, stream));
    for (int k = 0; k < counts[which][0]; k++) l.call.outputs[k].data = l.out[k] + ELEMENTS;
    l.call.scalars[0].value += 100;
    OK(give_large(&w, stream));
    attune_plan_destroy(w.plan);
    for (int k = 0; k < counts[which][0]; k++) assert_true(l.out[k][0] == 0 && l.out[k][ELEMENTS] == 0);
    call_begin(&l.call); /* the operands are gone */
    atomic_store(&gate, true);
    OK(attune_stream_synchronize(stream));
    l.call.operands.output_count = counts[which][0];
    l.call.operands.input_count = counts[which][1];
    const double scalars = counts[which][2] * (counts[which][2] + 1) / 2.0;
    check_large(&l, 0, scalars);
    check_large(&l, ELEMENTS, counts[which][2] ? scalars + 100 : scalars);
    attune_stream_destroy(stream);
  }
}

/* Plans may go before the replays; the tuner may not. */
TEST(captured) {
  static large l;
  for (size_t which = 0; which < 2 * sizeof counts / sizeof *counts; which++) {
    const int *c = counts[which / 2];
    attune_stream *stream = new_stream();
    attune_graph *graph = NULL;
    make_large(&l, c[0], c[1], c[2]);
    work w = {&l, NULL};
    if (which % 2) OK(attune_elementwise_plan_create(&w.plan, tuner, stream, l.text, &l.call.operands));
    OK(attune_graph_create(&graph, host));
    OK(attune_graph_capture_callback(graph, stream, NULL, give_large, &w));
    assert_int_equal(attune_graph_node_count(graph), 1);
    attune_plan_destroy(w.plan);
    const double scalars = c[2] * (c[2] + 1) / 2.0;
    l.call.scalars[0].value = 1e6; /* a graph keeps the numbers that it was captured with */
    for (int round = 0; round < 100; round++) {
      set_inputs(&l, round);
      OK(attune_graph_replay(graph, round % 3 ? stream : attune_stream_default(host)));
      OK(attune_stream_synchronize(stream));
      check_large(&l, 0, scalars);
    }
    attune_graph_destroy(graph);
    attune_stream_destroy(stream);
  }
}

/* Memory that a graph captured is freed with it. (Another allocator has no figures.) */
TEST(graphs_go_with_their_calls) {
  static large l;
  attune_stream *stream = new_stream();
  size_t before = 0;
  make_large(&l, 8, 16, 8);
  work w = {&l, NULL};
  OK(attune_elementwise_plan_create(&w.plan, tuner, stream, l.text, &l.call.operands));
  for (int round = 0; round < 320; round++) {
    attune_graph *graph = NULL;
    if (round == 20) before = mallinfo2().uordblks;
    OK(attune_graph_create(&graph, host));
    OK(attune_graph_capture_callback(graph, stream, NULL, give_large, &w));
    attune_graph_destroy(graph);
  }
  assert_true(mallinfo2().uordblks < before + 100000); /* a call has more than 500 bytes */
  attune_plan_destroy(w.plan);
  attune_stream_destroy(stream);
}

/* ---- many ---- */

static float a[64], b[64];

/* a * i + b + j, and whether it came. */
static bool run_one(attune_tuner *own, attune_stream *stream, int i, int j, float *out) {
  char text[64];
  call k;
  call_begin(&k);
  call_output(&k, out, ATTUNE_F32, 1, CALL_SIZES(64));
  call_input(&k, "a", a, ATTUNE_F32, 1, CALL_SIZES(64));
  call_input(&k, "b", b, ATTUNE_F32, 1, CALL_SIZES(64));
  call_scalar(&k, "s", j);
  snprintf(text, sizeof text, "a * %d.5 + b + s", i);
  if (attune_elementwise(own, stream, text, &k.operands) != ATTUNE_OK || attune_stream_synchronize(stream) != ATTUNE_OK)
    return false;
  for (int e = 0; e < 64; e++)
    if (out[e] != a[e] * ((float)i + 0.5f) + b[e] + (float)j) return false;
  return true;
}

static void fill_inputs(void) {
  for (int e = 0; e < 64; e++) {
    a[e] = (float)(2 * (e % 8));
    b[e] = (float)e;
  }
}

/* More than a thread remembers, in turn, so that each is forgotten before it comes again. */
TEST(more_than_are_remembered) {
  float out[64];
  fill_inputs();
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 300; i++) assert_true(run_one(tuner, attune_stream_default(host), i, round, out));
}

enum { THREADS = 8 };
static atomic_bool running;

static void *run_many(void *user) {
  const int rank = (int)(intptr_t)user;
  attune_stream *stream = NULL;
  float out[64];
  bool good = attune_stream_create(&stream, host) == ATTUNE_OK;
  for (int i = 0; i < 200 && good; i++) {
    good = run_one(tuner, rank % 2 ? stream : attune_stream_default(host), i * (rank % 4 + 1), rank, out);
    if (good && i % 3 == 0) good = run_one(tuner, stream, 5, i, out);
  }
  attune_stream_destroy(stream);
  return good ? NULL : user ? user : &running;
}

/* Others come and go meanwhile, with calls of the same text. */
static void *make_tuners(void *user) {
  float out[64];
  bool good = true;
  for (int i = 0; good && (i < 3 || atomic_load(&running)) && i < 1000; i++) {
    attune_tuner_options options = {.database = ":memory:", .mode = i % 2 ? ATTUNE_MODE_OFF : ATTUNE_MODE_CACHED};
    attune_tuner *own = NULL;
    good = attune_tuner_create(&own, &options) == ATTUNE_OK;
    for (int k = 0; k < 5 && good; k++) good = run_one(own, attune_stream_default(host), 5, k, out);
    attune_tuner_destroy(own);
  }
  return good ? NULL : user;
}

TEST(from_many_threads) {
  pthread_t threads[THREADS], other;
  fill_inputs();
  atomic_store(&running, true);
  assert_int_equal(pthread_create(&other, NULL, make_tuners, &running), 0);
  for (intptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_many, (void *)i), 0);
  void *wrong = NULL;
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  atomic_store(&running, false);
  pthread_join(other, &wrong);
  assert_null(wrong);
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
