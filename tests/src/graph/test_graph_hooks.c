/* SPDX-License-Identifier: Apache-2.0
 * test_graph_hooks.c: functions that hear of a graph, objects that it holds, inputs that a replay looks at, and the
 * options of a capture that torch.cuda.graph has: a stream of its own, room made first, a brief dump. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <unistd.h>

#include "tests/support/host_stream.h"

#define BYTES 4096

static char heard[64];

static void hear(void *user, attune_graph *graph, unsigned moment) {
  const size_t at = strlen(heard);
  assert_true(attune_graph_device(graph) == host);
  heard[at] = *(const char *)user;
  heard[at + 1] = moment == ATTUNE_GRAPH_CAPTURED       ? 'c'
                  : moment == ATTUNE_GRAPH_INSTANTIATED ? 'i'
                  : moment == ATTUNE_GRAPH_REPLAYED     ? 'r'
                                                        : 'd';
  heard[at + 2] = '\0';
}

static attune_status fill(void *user, attune_stream *in) {
  return attune_fill(in, user, 1, BYTES);
}

#define HEARD(what)                   \
  do {                                \
    assert_string_equal(heard, what); \
    heard[0] = '\0';                  \
  } while (0)

TEST(hooks_hear_what_happens) {
  static char memory[BYTES], a[] = "a", b[] = "b";
  attune_graph *graph = NULL;
  const unsigned every =
      ATTUNE_GRAPH_CAPTURED | ATTUNE_GRAPH_INSTANTIATED | ATTUNE_GRAPH_REPLAYED | ATTUNE_GRAPH_DROPPED;
  heard[0] = '\0';
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_add_hook(graph, every, hear, a));
  OK(attune_graph_add_hook(graph, ATTUNE_GRAPH_REPLAYED, hear, b));
  OK(attune_graph_capture_callback(graph, stream, NULL, fill, memory));
  HEARD("acai");
  OK(attune_graph_replay(graph, stream));
  HEARD("arbr");
  OK(attune_stream_synchronize(stream));
  OK(attune_graph_update(graph, stream, fill, memory, NULL));
  HEARD("acai");
  OK(attune_graph_remove_hook(graph, hear, b));
  FAILS(attune_graph_remove_hook(graph, hear, b), ATTUNE_NOT_FOUND);
  OK(attune_graph_reset(graph));
  HEARD("ad");
  OK(attune_graph_reset(graph)); /* nothing goes */
  HEARD("");
  FAILS(attune_graph_replay(graph, stream), ATTUNE_INVALID_ARGUMENT);
  HEARD("");
  OK(attune_graph_capture_callback(graph, stream, &(attune_capture_options){.keep_graph = 1}, fill, memory));
  HEARD("ac");
  OK(attune_graph_replay(graph, stream));
  HEARD("aiar");
  OK(attune_stream_synchronize(stream));
  attune_graph_destroy(graph);
  HEARD("ad");
  FAILS(attune_graph_add_hook(NULL, every, hear, a), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_remove_hook(NULL, hear, a), ATTUNE_INVALID_ARGUMENT);
}

TEST(hooks_that_will_not_do) {
  attune_graph *graph = NULL;
  OK(attune_graph_create(&graph, host));
  FAILS(attune_graph_add_hook(graph, 0, hear, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_add_hook(graph, 16, hear, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_add_hook(graph, 1, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_hold(graph, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_hold(NULL, NULL, free), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
}

static char released[8];

static void release(void *object) {
  released[strlen(released)] = *(const char *)object;
}

TEST(objects_go_with_the_work) {
  static char memory[BYTES], x[] = "x", y[] = "y", z[] = "z";
  attune_graph *graph = NULL;
  memset(released, 0, sizeof released);
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, stream, NULL, fill, memory));
  OK(attune_graph_hold(graph, x, release));
  OK(attune_graph_hold(graph, y, release));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  OK(attune_graph_update(graph, stream, fill, memory, NULL));
  assert_string_equal(released, "");
  OK(attune_graph_reset(graph));
  assert_string_equal(released, "yx");
  OK(attune_graph_hold(graph, z, release));
  attune_graph_destroy(graph);
  assert_string_equal(released, "yxz");
}

typedef struct inputs {
  void *in, *out;
} inputs;

static attune_status copy(void *user, attune_stream *in) {
  const inputs *i = user;
  return attune_copy(in, i->out, (char *)i->in + 64, BYTES - 64);
}

TEST(freed_inputs_are_told) {
  attune_graph *graph = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  inputs i;
  void *again = NULL;
  options.check_inputs = 1;
  OK(attune_alloc(&i.in, stream, BYTES));
  OK(attune_alloc(&i.out, stream, BYTES));
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, stream, &options, copy, &i));
  OK(attune_graph_replay(graph, stream));
  OK(attune_free(i.in, stream));
  FAILS_SAYING(attune_graph_replay(graph, stream), ATTUNE_INVALID_ARGUMENT, "was freed after its capture");
  OK(attune_alloc(&again, stream, BYTES)); /* the same place, another allocation */
  FAILS(attune_graph_replay(graph, stream), ATTUNE_INVALID_ARGUMENT);
  i.in = again;
  OK(attune_graph_update(graph, stream, copy, &i, NULL));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  OK(attune_free(i.out, stream));
  FAILS(attune_graph_replay(graph, stream), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_reset(graph));
  OK(attune_free(i.in, stream));
  attune_graph_destroy(graph);
}

typedef struct own_memory {
  void *outside, *inside;
} own_memory;

static attune_status use_own(void *user, attune_stream *in) {
  own_memory *m = user;
  const attune_use use = {.name = "noted", .pointer = m->outside, .bytes = BYTES, .access = ATTUNE_READS};
  attune_status status = attune_alloc(&m->inside, in, BYTES);
  if (status == ATTUNE_OK) status = attune_fill(in, m->inside, 3, BYTES);
  if (status == ATTUNE_OK) status = attune_free(m->inside, in);
  return status == ATTUNE_OK ? attune_note_use(in, "kernel", &use, 1) : status;
}

TEST(the_graphs_own_memory_is_free_to_go) {
  static char foreign[BYTES];
  attune_graph *graph = NULL, *plain = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  own_memory m = {NULL, NULL};
  options.check_inputs = 1;
  OK(attune_alloc(&m.outside, stream, BYTES));
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, stream, &options, use_own, &m));
  OK(attune_graph_replay(graph, stream));
  OK(attune_free(m.outside, stream)); /* attune_note_use named it */
  FAILS(attune_graph_replay(graph, stream), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
  OK(attune_graph_create(&plain,
                         host)); /* nothing is looked at that nobody asked for, and foreign memory is not known */
  OK(attune_graph_capture_callback(plain, stream, &options, fill, foreign));
  OK(attune_graph_replay(plain, stream));
  OK(attune_stream_synchronize(stream));
  attune_graph_destroy(plain);
}

static attune_stream *given;

static attune_status fill_and_look(void *user, attune_stream *in) {
  given = in;
  return attune_stream_is_capturing(in) ? attune_fill(in, user, 9, BYTES) : ATTUNE_INTERNAL;
}

TEST(a_capture_has_a_stream_of_its_own) {
  static char memory[BYTES];
  attune_graph *graph = NULL;
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, NULL, NULL, fill_and_look, memory));
  assert_non_null(given);
  assert_ptr_not_equal(given, stream);
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(memory[BYTES - 1], 9);
  attune_graph_destroy(graph);
  FAILS(attune_graph_capture_callback(NULL, NULL, NULL, fill_and_look, memory), ATTUNE_INVALID_ARGUMENT);
}

static uint64_t reserved(void) {
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(host, &s));
  return s.reserved_bytes[ATTUNE_MEMORY_ALL].current;
}

TEST(room_is_made) {
  static char memory[BYTES];
  attune_pinned_statistics pinned = {0};
  attune_graph *graph = NULL, *inner = NULL;
  attune_stream *second = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  void *p = NULL, *q = NULL;
  options.make_room = 1;
  OK(attune_alloc(&p, stream, (size_t)30 << 20));
  OK(attune_pinned_alloc(&q, host, 1 << 20));
  OK(attune_pinned_free(q));
  OK(attune_free(p, stream));
  assert_true(reserved() >= (uint64_t)30 << 20);
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_begin(graph, stream, &options));
  assert_int_equal(reserved(), 0);
  OK(attune_pinned_get_statistics(host, &pinned));
  assert_int_equal(pinned.reserved_bytes.current, 0);
  OK(attune_stream_create(&second, host));
  OK(attune_graph_create(&inner, host));
  FAILS(attune_graph_capture_begin(inner, second, &options), ATTUNE_CAPTURING); /* not beside another capture */
  OK(attune_fill(stream, memory, 1, BYTES));
  OK(attune_graph_capture_end(graph, stream));
  attune_graph_destroy(inner);
  attune_graph_destroy(graph);
  attune_stream_destroy(second);
}

static size_t size_of(const char *path, const char *word, int *found) {
  char text[4096];
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  const size_t bytes = fread(text, 1, sizeof text - 1, file);
  text[bytes] = '\0';
  *found = strstr(text, word) != NULL;
  fclose(file);
  return bytes;
}

TEST(a_dump_may_be_brief) {
  static char memory[BYTES];
  char path[] = "graph_hooks_XXXXXX";
  attune_graph *graph = NULL;
  int found = 0;
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, stream, &(attune_capture_options){.keep_graph = 1}, fill, memory));
  OK(attune_graph_debug_dump(graph, path, 0));
  const size_t all = size_of(path, "bytes of arguments", &found);
  assert_true(found);
  OK(attune_graph_debug_dump(graph, path, 1));
  assert_true(size_of(path, "bytes of arguments", &found) < all);
  assert_false(found);
  (void)size_of(path, "digraph", &found);
  assert_true(found);
  unlink(path);
  attune_graph_destroy(graph);
}

int main(void) {
  return RUN_TESTS(open_stream, close_stream);
}
