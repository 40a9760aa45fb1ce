/* SPDX-License-Identifier: Apache-2.0
 * test_graph_callable.c: functions made into graphs, on the host: new inputs reach the graph, outputs reach the caller,
 * and what goes wrong in the making leaves nothing behind. */
#include "tests/src/graph/graph_host.h"

#include <attune/attune.h>

#define BYTES (COUNT * sizeof(unsigned))

/* out[0] = in[0] and then 3x + 1; out[1] = in[1]. Counts its calls. */
typedef struct job {
  int calls, fail_at; /* fails in call number fail_at; 0: never */
} job;

static attune_status work(void *user, attune_stream *stream, void *const *in, void *const *out) {
  job *j = user;
  if (++j->calls == j->fail_at) return at_fail(ATTUNE_IO_ERROR, "refused in call %d", j->calls);
  OK(attune_copy(stream, out[0], in[0], BYTES));
  give(stream, out[0], 3, 1);
  return attune_copy(stream, out[1], in[1], 2 * BYTES);
}

static const size_t sizes[] = {BYTES, 2 * BYTES};

static attune_graph_callable_options two_and_two(void) {
  attune_graph_callable_options options = ATTUNE_GRAPHED_OPTIONS_INIT;
  options.input_count = options.output_count = 2;
  options.input_bytes = options.output_bytes = sizes;
  return options;
}

static void set(unsigned *x, size_t count, unsigned value) {
  for (size_t i = 0; i < count; i++) x[i] = value;
}

TEST(new_inputs_each_call) {
  static unsigned a[COUNT], b[2 * COUNT], c[COUNT], d[2 * COUNT];
  attune_graph_callable_options options = two_and_two();
  attune_stream *stream = new_stream();
  attune_graph_callable *graphed = NULL;
  job j = {0};
  const void *in[] = {a, b};
  void *out[] = {c, d};
  OK(attune_graph_callable_create(&graphed, host, &options, work, &j));
  assert_int_equal(j.calls, 3 + 1);
  OK(attune_graph_upload(attune_graph_callable_graph(graphed), stream));
  for (unsigned turn = 0; turn < 3; turn++) {
    attune_stream *on = turn == 2 ? attune_stream_default(host) : stream;
    set(a, COUNT, turn);
    set(b, 2 * COUNT, 100 + turn);
    OK(attune_graph_callable_call(graphed, on, in, out));
    OK(attune_stream_synchronize(on));
    assert_numbers(c, 3 * turn + 1);
    assert_numbers(d + COUNT, 100 + turn);
  }
  assert_int_equal(j.calls, 3 + 1); /* replays do not call it */
  /* NULL leaves an input as it was and an output where it is; the graph's own pointers are not copied. */
  set(a, COUNT, 9);
  set(d, 2 * COUNT, 0);
  const void *first_only[] = {a, NULL};
  void *second_only[] = {NULL, d};
  OK(attune_graph_callable_call(graphed, stream, first_only, second_only));
  OK(attune_stream_synchronize(stream));
  assert_numbers(d, 102);
  assert_numbers(c, 7);
  assert_numbers(attune_graph_callable_output(graphed, 0), 28);
  set(attune_graph_callable_input(graphed, 0), COUNT, 5);
  const void *own_in[] = {attune_graph_callable_input(graphed, 0), attune_graph_callable_input(graphed, 1)};
  void *own_out[] = {attune_graph_callable_output(graphed, 0), attune_graph_callable_output(graphed, 1)};
  OK(attune_graph_callable_call(graphed, stream, own_in, own_out));
  OK(attune_stream_synchronize(stream));
  assert_numbers(own_out[0], 16);
  set(own_out[0], COUNT, 0);
  OK(attune_graph_callable_call(graphed, stream, NULL, NULL));
  OK(attune_stream_synchronize(stream));
  assert_numbers(own_out[0], 16);
  attune_graph_callable_destroy(graphed);
  attune_stream_destroy(stream);
}

/* Arguments of the warm-up calls, and their number. */
typedef struct seen {
  int calls;
  unsigned first, second;
} seen;

static attune_status look(void *user, attune_stream *stream, void *const *in, void *const *out) {
  seen *s = user;
  (void)out;
  if (s->calls++ == 0) {
    OK(attune_stream_synchronize(stream));
    s->first = ((const unsigned *)in[0])[COUNT - 1];
    s->second = ((const unsigned *)in[1])[2 * COUNT - 1];
  }
  return attune_fill(stream, in[0], 0, 1);
}

TEST(samples_and_warmups) {
  static unsigned a[COUNT];
  attune_graph_callable_options options = two_and_two();
  attune_graph_callable *graphed = NULL;
  seen s = {0, 5, 5};
  const void *samples[] = {a, NULL};
  set(a, COUNT, 42);
  options.samples = samples;
  options.warmups = 1;
  OK(attune_graph_callable_create(&graphed, host, &options, look, &s));
  assert_int_equal(s.calls, 2);
  assert_true(s.first == 42 && s.second == 0);
  attune_graph_callable_destroy(graphed);
  job j = {0};
  options.warmups = ATTUNE_NO_WARMUPS;
  OK(attune_graph_callable_create(&graphed, host, &options, work, &j));
  assert_int_equal(j.calls, 1);
  attune_graph_callable_destroy(graphed);
  options.warmups = 0; /* as written by a program that names its buffers only */
  OK(attune_graph_callable_create(&graphed, host, &options, work, &j));
  assert_int_equal(j.calls, 1 + 3 + 1);
  attune_graph_callable_destroy(graphed);
}

TEST(functions_share_a_pool) {
  attune_graph_callable_options options = two_and_two();
  attune_graph_callable *first = NULL, *second = NULL;
  attune_pool *pool = NULL, *of_first = NULL, *of_second = NULL;
  job j = {0};
  OK(attune_pool_create(&pool, host, NULL));
  options.pool = pool;
  OK(attune_graph_callable_create(&first, host, &options, work, &j));
  OK(attune_graph_callable_create(&second, host, &options, work, &j));
  OK(attune_graph_pool(attune_graph_callable_graph(first), &of_first));
  OK(attune_graph_pool(attune_graph_callable_graph(second), &of_second));
  assert_ptr_equal(of_first, pool);
  assert_ptr_equal(of_second, pool);
  attune_pool_destroy(of_first);
  attune_pool_destroy(of_second);
  attune_graph_callable_destroy(first);
  attune_graph_callable_destroy(second);
  attune_pool_destroy(pool);
}

static attune_status through_memory(void *user, attune_stream *stream) {
  void *between = NULL;
  OK(attune_alloc(&between, stream, BYTES));
  OK(attune_copy(stream, between, user, BYTES));
  OK(attune_copy(stream, (unsigned *)user + COUNT, between, BYTES));
  return attune_free(between, stream);
}

static uint64_t reserved(void) {
  attune_memory_statistics statistics = {0};
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_get_statistics(host, &statistics));
  return statistics.reserved_bytes[ATTUNE_MEMORY_ALL].current;
}

/* The pool's memory stays while a clone has it, then while the program has it alone. */
TEST(a_pool_has_several_holders) {
  static unsigned x[2 * COUNT];
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph(), *clone = NULL;
  attune_pool *pool = NULL;
  attune_capture_options keep = ATTUNE_CAPTURE_OPTIONS_INIT;
  const uint64_t before = reserved();
  keep.keep_graph = 1;
  OK(attune_graph_capture_callback(graph, stream, &keep, through_memory, x));
  const uint64_t during = reserved();
  assert_true(during > before);
  OK(attune_graph_clone(&clone, graph));
  attune_graph_destroy(graph);
  assert_int_equal(reserved(), during);
  set(x, COUNT, 8);
  OK(attune_graph_replay(clone, stream));
  OK(attune_stream_synchronize(stream));
  assert_numbers(x + COUNT, 8);
  OK(attune_graph_pool(clone, &pool));
  attune_graph_destroy(clone);
  OK(attune_stream_synchronize(stream));
  assert_int_equal(reserved(), during);
  attune_pool_destroy(pool);
  assert_int_equal(reserved(), before);
  attune_stream_destroy(stream);
}

static uint64_t held_bytes(void) {
  attune_memory_statistics statistics = {0};
  OK(attune_memory_get_statistics(host, &statistics));
  return statistics.allocated_bytes[ATTUNE_MEMORY_ALL].current;
}

/* In a warm-up, and in the capture: fn's own status and message, and no memory kept. */
TEST(functions_that_fail) {
  const uint64_t before = held_bytes();
  for (int call = 2; call <= 4; call += 2) {
    attune_graph_callable_options options = two_and_two();
    attune_graph_callable *graphed = (attune_graph_callable *)&options;
    job j = {0, call};
    FAILS_SAYING(attune_graph_callable_create(&graphed, host, &options, work, &j), ATTUNE_IO_ERROR, "refused in call");
    assert_null(graphed);
    assert_int_equal(j.calls, call);
    assert_int_equal(held_bytes(), before);
  }
}

TEST(misuse) {
  static unsigned a[COUNT], b[2 * COUNT];
  attune_graph_callable_options options = two_and_two();
  attune_graph_callable *graphed = NULL;
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph();
  job j = {0};
  const void *in[] = {a, b};
  FAILS(attune_graph_callable_create(NULL, host, &options, work, &j), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_callable_create(&graphed, NULL, &options, work, &j), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_callable_create(&graphed, host, &options, NULL, &j), ATTUNE_INVALID_ARGUMENT);
  options.warmups = -2;
  FAILS(attune_graph_callable_create(&graphed, host, &options, work, &j), ATTUNE_INVALID_ARGUMENT);
  options = two_and_two();
  options.input_bytes = NULL;
  FAILS(attune_graph_callable_create(&graphed, host, &options, work, &j), ATTUNE_INVALID_ARGUMENT);
  options = two_and_two();
  options.output_bytes = (const size_t[]){1, 0};
  FAILS(attune_graph_callable_create(&graphed, host, &options, work, &j), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(j.calls, 0);
  options = two_and_two();
  OK(attune_graph_callable_create(&graphed, host, &options, work, &j));
  FAILS(attune_graph_callable_call(NULL, stream, in, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_callable_call(graphed, NULL, in, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_null(attune_graph_callable_input(graphed, 2));
  assert_null(attune_graph_callable_output(graphed, 2));
  assert_null(attune_graph_callable_input(NULL, 0));
  assert_null(attune_graph_callable_output(NULL, 0));
  assert_null(attune_graph_callable_graph(NULL));
  /* A refused call writes nothing into the program's capture, which goes on. */
  OK(attune_graph_capture_begin(graph, stream, NULL));
  give(stream, a, 1, 1);
  FAILS(attune_graph_callable_call(graphed, stream, in, NULL), ATTUNE_CAPTURING);
  OK(attune_graph_capture_end(graph, stream));
  assert_int_equal(attune_graph_node_count(graph), 1);
  attune_graph_callable_destroy(graphed);
  attune_graph_callable_destroy(NULL);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

int main(void) {
  return RUN_TESTS(find_host, NULL);
}
