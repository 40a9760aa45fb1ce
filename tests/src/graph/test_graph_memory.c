/* SPDX-License-Identifier: Apache-2.0
 * test_graph_memory.c: what a graph allocates and multiplies, on the host: memory that lives with the graph, is shared
 * among graphs and goes with the last of them; GEMMs that never tune in a capture. */
#include "tests/support/check.h"
#include "tests/support/decision.h"

#include <attune/attune.h>
#include <attune/graph.h>

enum { SIDE = 48, COUNT = SIDE * SIDE };
#define BYTES (COUNT * sizeof(float))

static attune_device *host;
static attune_stream *stream;
static attune_tuner *tuner;
static float a[COUNT], b[COUNT], d[COUNT];

FIXTURE(open_all) {
  attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_CACHED};
  for (int i = 0; i < COUNT; i++) {
    a[i] = (float)((i * 7919) % 1000) / 1000.0f - 0.5f;
    b[i] = (float)((i * 104729) % 1000) / 1000.0f - 0.5f;
  }
  return attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&stream, host) != ATTUNE_OK ||
         attune_tuner_create(&tuner, &options) != ATTUNE_OK;
}

FIXTURE(close_all) {
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return 0;
}

static attune_graph *new_graph(void) {
  attune_graph *graph = NULL;
  OK(attune_graph_create(&graph, host));
  return graph;
}

static attune_status multiply(attune_stream *on, const float *left, const float *right, float *out) {
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = SIDE, .n = SIDE, .k = SIDE};
  const attune_gemm_operands o = {.alpha = 1.0, .a = left, .b = right, .d = out};
  return attune_gemm(tuner, on, &p, &o);
}

/* d = (a b) b through memory that is allocated and freed on the way. */
static attune_status with_memory(void *user, attune_stream *on) {
  float *between = NULL, *copy = NULL;
  (void)user;
  attune_status status = attune_alloc((void **)&between, on, BYTES);
  if (status == ATTUNE_OK) status = attune_alloc((void **)&copy, on, BYTES);
  if (status == ATTUNE_OK) status = attune_fill(on, between, 0xff, BYTES);
  if (status == ATTUNE_OK) status = multiply(on, a, b, between);
  if (status == ATTUNE_OK) status = attune_copy(on, copy, between, BYTES);
  if (status == ATTUNE_OK) status = attune_free(between, on);
  if (status == ATTUNE_OK) status = multiply(on, copy, b, d);
  if (status == ATTUNE_OK) status = attune_free(copy, on);
  return status;
}

TEST(replay_is_eager) {
  static float eager[COUNT];
  attune_graph *graph = new_graph();
  OK(with_memory(NULL, stream));
  OK(attune_stream_synchronize(stream));
  memcpy(eager, d, BYTES);
  memset(d, 0, BYTES);
  OK(attune_graph_capture_callback(graph, stream, NULL, with_memory, NULL));
  OK(attune_stream_synchronize(stream));
  assert_true(d[0] == 0.0f && d[COUNT - 1] == 0.0f);
  assert_true(attune_graph_node_count(graph) >= 4);
  OK(attune_memory_empty_cache(host));
  for (int turn = 0; turn < 20; turn++) {
    memset(d, 0, BYTES);
    unsigned char *noise[8]; /* eager memory never meets the graph's: a replay leaves it as it is */
    for (int i = 0; i < 8; i++) OK(attune_alloc((void **)&noise[i], stream, BYTES));
    for (int i = 0; i < 8; i++) OK(attune_fill(stream, noise[i], 0x7f, BYTES));
    OK(attune_graph_replay(graph, stream));
    OK(attune_stream_synchronize(stream));
    for (int i = 0; i < 8; i++)
      for (size_t byte = 0; byte < BYTES; byte++) assert_int_equal(noise[i][byte], 0x7f);
    for (int i = 0; i < 8; i++) OK(attune_free(noise[i], stream));
    assert_memory_equal(d, eager, BYTES);
  }
  attune_graph_destroy(graph);
}

static uint64_t reserved(void) {
  attune_memory_statistics statistics = {0};
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_get_statistics(host, &statistics));
  return statistics.reserved_bytes[ATTUNE_MEMORY_ALL].current;
}

TEST(memory_goes_with_the_last_graph) {
  OK(attune_stream_synchronize(stream));
  const uint64_t before = reserved();
  attune_graph *first = new_graph(), *second = new_graph(), *other = NULL;
  attune_capture_options share = ATTUNE_CAPTURE_OPTIONS_INIT;
  unsigned char *kept = NULL;
  OK(attune_graph_capture_begin(first, stream, NULL));
  OK(attune_alloc((void **)&kept, stream, 1 << 20));
  OK(attune_fill(stream, kept, 5, 1 << 20));
  OK(attune_graph_capture_end(first, stream));
  share.share = first;
  OK(attune_graph_capture_begin(second, stream, &share));
  OK(attune_copy(stream, d, kept, BYTES));
  OK(attune_graph_capture_end(second, stream));
  const uint64_t during = reserved();
  assert_true(during > before);
  OK(attune_graph_replay(first, stream));
  OK(attune_graph_replay(second, stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(((unsigned char *)d)[BYTES - 1], 5);
  OK(attune_free(kept, stream)); /* the graphs still hold it */
  attune_graph_destroy(first);
  OK(attune_stream_synchronize(stream));
  assert_int_equal(reserved(), during);
  OK(attune_graph_replay(second, stream));
  OK(attune_stream_synchronize(stream));
  attune_graph_destroy(second);
  OK(attune_stream_synchronize(stream));
  assert_int_equal(reserved(), before);
  /* A graph with a pool of its own takes no other one. */
  first = new_graph();
  other = new_graph();
  share.share = other;
  OK(attune_graph_capture_callback(first, stream, &share, with_memory, NULL));
  OK(attune_graph_capture_callback(other, stream, NULL, with_memory, NULL)); /* the shared one, made for the first */
  attune_graph_destroy(first);
  attune_graph_destroy(other);
  assert_int_equal(reserved(), before);
}

/* A capture that fails gives its memory back; what the program still holds of it can be freed. */
static attune_status allocate_and_refuse(void *user, attune_stream *on) {
  OK(attune_alloc(user, on, 3 << 20));
  return attune_fill(on, *(void **)user, 300, 1); /* fails: no byte */
}

TEST(a_failed_capture_keeps_no_memory) {
  OK(attune_stream_synchronize(stream));
  const uint64_t before = reserved();
  void *held = NULL;
  attune_graph *graph = new_graph();
  FAILS(attune_graph_capture_callback(graph, stream, NULL, allocate_and_refuse, &held), ATTUNE_INVALID_ARGUMENT);
  assert_non_null(held);
  OK(attune_fill(stream, held, 1, 3 << 20)); /* still the program's */
  OK(attune_free(held, stream));
  FAILS(attune_free(held, stream), ATTUNE_INVALID_ARGUMENT);
  OK(attune_stream_synchronize(stream));
  assert_int_equal(reserved(), before);
  OK(attune_graph_capture_callback(graph, stream, NULL, with_memory, NULL));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  attune_graph_destroy(graph);
}

/* Streams that join allocate from the graph's pool too. */
TEST(a_joined_stream_allocates) {
  attune_stream *side = NULL;
  attune_event *out = NULL, *back = NULL;
  attune_graph *graph = new_graph();
  float *mine = NULL;
  OK(attune_stream_create(&side, host));
  OK(attune_event_create(&out, host, NULL));
  OK(attune_event_create(&back, host, NULL));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_event_record(out, stream));
  OK(attune_stream_wait_event(side, out));
  OK(attune_alloc((void **)&mine, side, BYTES));
  OK(attune_copy(side, mine, a, BYTES));
  OK(attune_copy(side, d, mine, BYTES));
  OK(attune_free(mine, side));
  OK(attune_event_record(back, side));
  OK(attune_stream_wait_event(stream, back));
  OK(attune_graph_capture_end(graph, stream));
  memset(d, 0, BYTES);
  OK(attune_memory_empty_cache(host));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_memory_equal(d, a, BYTES);
  attune_graph_destroy(graph);
  attune_event_destroy(out);
  attune_event_destroy(back);
  attune_stream_destroy(side);
}

/* In a capture a GEMM in mode tune takes a guess; asked afterwards it is tuned, and the next capture has the winner. */
TEST(gemms_are_tuned_afterwards) {
  int tuned = -1;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  DECISION(decision);
  attune_graph *graph = new_graph();
  attune_tuner *const shared = tuner;
  char problem[64];
  snprintf(problem, sizeof problem, "gemm f32 nn %dx%dx%d strict", SIDE, SIDE, SIDE);
  options.database = "";
  options.mode = ATTUNE_MODE_TUNE;
  options.budget_ms = 50;
  OK(attune_tuner_create(&tuner, &options));
  OK(attune_graph_capture_callback(graph, stream, NULL, with_memory, NULL));
  OK(attune_explain(tuner, host, problem, decision));
  assert_true(info_of(decision).source <= ATTUNE_SOURCE_NEIGHBOUR);
  OK(attune_tuner_tune_pending(tuner, 0, &tuned));
  assert_int_equal(tuned, 1);
  OK(attune_explain(tuner, host, problem, decision));
  assert_int_equal(info_of(decision).source, ATTUNE_SOURCE_TUNED);
  OK(attune_tuner_tune_pending(tuner, 1000, &tuned));
  assert_int_equal(tuned, 0);
  OK(attune_graph_update(graph, stream, with_memory, NULL, NULL));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  FAILS(attune_tuner_tune_pending(NULL, 0, &tuned), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
  attune_tuner_destroy(tuner);
  tuner = shared;
}

/* A plan may be destroyed while what it launched waits in a queue, and before graphs that captured it are replayed. */
TEST(plans_may_go_first) {
  enum { RUNS = 20 };
  static float expected[COUNT];
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = SIDE, .n = SIDE, .k = SIDE};
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  attune_graph *graph = new_graph();
  attune_plan *plan = NULL;
  OK(multiply(stream, a, b, expected));
  OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
  for (int i = 0; i < RUNS; i++) OK(attune_gemm_plan_run(plan, stream, &o));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_gemm_plan_run(plan, stream, &o));
  OK(attune_graph_capture_end(graph, stream));
  attune_plan_destroy(plan);
  OK(attune_stream_synchronize(stream));
  assert_memory_equal(d, expected, BYTES);
  for (int turn = 0; turn < 3; turn++) {
    memset(d, 0xff, BYTES);
    OK(attune_graph_replay(graph, turn == 2 ? attune_stream_default(host) : stream));
    OK(attune_stream_synchronize(stream));
    assert_memory_equal(d, expected, BYTES);
  }
  attune_graph_destroy(graph);
}

/* d = random numbers, then times b. */
static attune_generator *generator;

static attune_status with_numbers(void *user, attune_stream *on) {
  (void)user;
  attune_status status = attune_random_uniform(generator, on, d, ATTUNE_F32, COUNT, -1.0, 1.0);
  float *copy = NULL;
  if (status == ATTUNE_OK) status = attune_alloc((void **)&copy, on, BYTES);
  if (status == ATTUNE_OK) status = attune_copy(on, copy, d, BYTES);
  if (status == ATTUNE_OK) status = multiply(on, copy, b, d);
  return status == ATTUNE_OK ? attune_free(copy, on) : status;
}

static attune_status with_twice_the_numbers(void *user, attune_stream *on) {
  attune_status status = with_numbers(user, on);
  return status == ATTUNE_OK ? with_numbers(user, on) : status;
}

static attune_status with_numbers_and_refuse(void *user, attune_stream *on) {
  attune_status status = with_twice_the_numbers(user, on);
  return status == ATTUNE_OK ? attune_fill(on, d, 300, 1) : status;
}

static void assert_next(const float *eager, attune_graph *graph) {
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_memory_equal(d, eager, BYTES);
}

/* Each replay draws what the eager calls would draw next, also after an update, and after one that failed. */
TEST(random_numbers_go_on) {
  enum { TURNS = 6 };
  static float eager[TURNS][COUNT];
  attune_graph *graph = new_graph();
  uint64_t offset = 0, after = 0;
  int in_place = -1;
  OK(attune_generator_create(&generator, 5));
  for (int i = 0; i < TURNS; i++) {
    OK(i < 4 ? with_numbers(NULL, stream) : with_twice_the_numbers(NULL, stream));
    OK(attune_stream_synchronize(stream));
    memcpy(eager[i], d, BYTES);
  }
  OK(attune_generator_set_seed(generator, 5));
  FAILS(attune_graph_capture_callback(graph, stream, NULL, with_numbers, NULL), ATTUNE_CAPTURING); /* not registered */
  OK(attune_graph_register_generator(graph, generator));
  OK(attune_graph_register_generator(graph, generator));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  FAILS(attune_generator_set_seed(generator, 6), ATTUNE_CAPTURING);
  OK(with_numbers(NULL, stream));
  OK(attune_graph_capture_end(graph, stream));
  OK(attune_generator_get_offset(generator, &offset));
  assert_int_equal(offset, 0); /* a capture draws nothing */
  assert_next(eager[0], graph);
  assert_next(eager[1], graph);
  OK(attune_graph_update(graph, stream, with_numbers, NULL, &in_place));
  assert_int_equal(in_place, 1);
  assert_next(eager[2], graph);
  FAILS(attune_graph_update(graph, stream, with_numbers_and_refuse, NULL, &in_place), ATTUNE_INVALID_ARGUMENT);
  assert_next(eager[3], graph);
  OK(attune_graph_update(graph, stream, with_twice_the_numbers, NULL, &in_place));
  assert_int_equal(in_place, 0);
  assert_next(eager[4], graph);
  assert_next(eager[5], graph);
  OK(attune_generator_get_offset(generator, &offset));
  OK(attune_graph_reset(graph));
  FAILS(attune_graph_capture_callback(graph, stream, NULL, with_numbers_and_refuse, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_generator_get_offset(generator, &after));
  assert_int_equal(after, offset);
  OK(attune_generator_set_seed(generator, 5)); /* no capture holds it */
  OK(attune_graph_capture_callback(graph, stream, NULL, with_numbers, NULL));
  attune_generator_destroy(generator); /* the graph keeps it */
  assert_next(eager[0], graph);
  assert_next(eager[1], graph);
  FAILS(attune_graph_register_generator(graph, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_register_generator(NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
}

/* Numbers drawn in a capture do not count for the next one, whether it was reset, dropped or broken. */
TEST(draws_are_counted_anew) {
  static float eager[2][COUNT];
  attune_graph *graph = new_graph();
  attune_stream *other = NULL;
  OK(attune_stream_create(&other, host));
  OK(attune_generator_create(&generator, 8));
  OK(attune_graph_register_generator(graph, generator));
  for (int i = 0; i < 2; i++) {
    OK(with_numbers(NULL, stream));
    OK(attune_stream_synchronize(stream));
    memcpy(eager[i], d, BYTES);
  }
  for (int way = 0; way < 3; way++) {
    if (way == 0) {
      OK(attune_graph_capture_callback(graph, stream, NULL, with_numbers, NULL));
      OK(attune_graph_reset(graph));
    } else if (way == 1) {
      FAILS(attune_graph_capture_callback(graph, stream, NULL, with_numbers_and_refuse, NULL), ATTUNE_INVALID_ARGUMENT);
    } else {
      OK(attune_graph_capture_begin(graph, stream, NULL));
      OK(with_numbers(NULL, stream));
      FAILS(attune_stream_wait_stream(stream, other), ATTUNE_CAPTURING);
      FAILS(attune_graph_capture_end(graph, stream), ATTUNE_CAPTURING);
    }
    OK(attune_generator_set_offset(generator, 0));
    OK(attune_graph_capture_callback(graph, stream, NULL, with_numbers, NULL));
    assert_next(eager[0], graph);
    assert_next(eager[1], graph);
    OK(attune_graph_reset(graph));
  }
  attune_graph_destroy(graph);
  attune_generator_destroy(generator);
  attune_stream_destroy(other);
}

/* Memory of one pool, made before any graph, serves two graphs; it goes with the last holder. */
TEST(a_pool_before_any_graph) {
  OK(attune_stream_synchronize(stream));
  const uint64_t before = reserved();
  static float eager[COUNT];
  attune_pool_info info = {0};
  attune_pool *pool = NULL, *other = NULL, *of_graph = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  attune_graph *first = new_graph(), *second = new_graph();
  unsigned char *kept = NULL;
  OK(with_memory(NULL, stream));
  OK(attune_stream_synchronize(stream));
  memcpy(eager, d, BYTES);
  OK(attune_pool_create(&pool, host, NULL));
  OK(attune_pool_create(&other, host, NULL));
  options.pool = pool;
  OK(attune_graph_capture_callback(first, stream, &options, with_memory, NULL));
  OK(attune_pool_get_info(pool, &info));
  assert_true(info.reserved_bytes > 0 && info.allocated_bytes == 0);
  OK(attune_graph_capture_begin(second, stream, &options));
  OK(attune_alloc((void **)&kept, stream, BYTES));
  OK(attune_fill(stream, kept, 9, BYTES));
  OK(attune_graph_capture_end(second, stream));
  OK(attune_pool_get_info(pool, &info));
  assert_true(info.allocated_bytes >= BYTES);
  OK(attune_graph_pool(second, &of_graph));
  assert_ptr_equal(of_graph, pool);
  attune_pool_destroy(of_graph);
  attune_pool_destroy(pool); /* the graphs hold it */
  OK(attune_memory_empty_cache(host));
  memset(d, 0, BYTES);
  OK(attune_graph_replay(first, stream));
  OK(attune_graph_replay(second, stream));
  OK(attune_stream_synchronize(stream));
  assert_memory_equal(d, eager, BYTES);
  assert_int_equal(kept[BYTES - 1], 9);
  OK(attune_free(kept, stream));
  attune_graph_destroy(first);
  attune_graph_destroy(second);
  attune_pool_destroy(other);
  OK(attune_stream_synchronize(stream));
  assert_int_equal(reserved(), before);
}

TEST(pools_that_do_not_fit) {
  attune_pool *pool = NULL, *other = NULL, *own = NULL;
  attune_graph *graph = new_graph(), *second = new_graph();
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  OK(attune_pool_create(&pool, host, NULL));
  OK(attune_pool_create(&other, host, NULL));
  FAILS(attune_graph_pool(NULL, &own), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_pool(graph, NULL), ATTUNE_INVALID_ARGUMENT);
  options.pool = pool;
  options.share = second;
  FAILS(attune_graph_capture_callback(graph, stream, &options, with_memory, NULL), ATTUNE_INVALID_ARGUMENT);
  options.share = NULL;
  OK(attune_graph_pool(graph, &own)); /* made before the capture: the graph keeps to it */
  FAILS(attune_graph_capture_callback(graph, stream, &options, with_memory, NULL), ATTUNE_INVALID_ARGUMENT);
  options.pool = own;
  OK(attune_graph_capture_callback(graph, stream, &options, with_memory, NULL));
  OK(attune_graph_capture_callback(second, stream, &options, with_memory, NULL)); /* a graph's pool for another */
  attune_graph_destroy(graph);
  attune_graph_destroy(second);
  attune_pool_destroy(own);
  attune_pool_destroy(pool);
  attune_pool_destroy(other);
}

TEST(no_clone_of_a_graph_that_draws) {
  attune_graph *graph = new_graph(), *clone = NULL;
  attune_capture_options keep = ATTUNE_CAPTURE_OPTIONS_INIT;
  attune_generator *drawn = NULL;
  OK(attune_generator_create(&drawn, 5));
  keep.keep_graph = 1;
  OK(attune_graph_register_generator(graph, drawn));
  OK(attune_graph_capture_begin(graph, stream, &keep));
  OK(attune_random_uniform(drawn, stream, d, ATTUNE_F32, COUNT, 0.0, 1.0));
  OK(attune_graph_capture_end(graph, stream));
  FAILS(attune_graph_clone(&clone, graph), ATTUNE_UNSUPPORTED);
  assert_null(clone);
  attune_graph_destroy(graph);
  attune_generator_destroy(drawn);
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
