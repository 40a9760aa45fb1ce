/* SPDX-License-Identifier: Apache-2.0
 * test_stream_pool.c: pooled streams, each thread's current stream and device, options of events, implicit
 * synchronization told. */
#include "tests/support/check.h"

#include "src/base/backend.h"
#include "src/host/host.h"
#include "src/stream/sync_debug.h"

#include <attune/graph.h>
#include <attune/random.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static attune_device *host;

FIXTURE(find_host) {
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

static void add_one(const void *args) {
  atomic_fetch_add(*(atomic_int *const *)args, 1);
}

static void sleep_20ms(const void *args) {
  (void)args;
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static int index_of(attune_stream *const *list, int count, const attune_stream *stream) {
  for (int i = 0; i < count; i++)
    if (list[i] == stream) return i;
  return -1;
}

TEST(thirty_two_in_turn) {
  attune_stream *taken[64];
  for (int i = 0; i < 64; i++) {
    OK(attune_stream_from_pool(&taken[i], host, 0));
    assert_int_equal(attune_stream_priority(taken[i]), 0);
    if (i < 32)
      assert_int_equal(index_of(taken, i, taken[i]), -1);
    else
      assert_ptr_equal(taken[i], taken[i - 32]);
  }
  atomic_int count = 0, *slot = &count;
  for (int i = 0; i < 64; i++) OK(at_host_submit(taken[i], add_one, &slot, sizeof slot));
  for (int i = 0; i < 32; i++) OK(attune_stream_synchronize(taken[i]));
  assert_int_equal(atomic_load(&count), 64);
  attune_stream_destroy(taken[0]); /* left alone */
  OK(at_host_submit(taken[0], add_one, &slot, sizeof slot));
  OK(attune_stream_synchronize(taken[0]));
  assert_int_equal(atomic_load(&count), 65);
}

TEST(priorities_have_pools_of_their_own) {
  attune_stream *normal[32], *high = NULL, *highest = NULL, *low = NULL;
  for (int i = 0; i < 32; i++) OK(attune_stream_from_pool(&normal[i], host, 0));
  OK(attune_stream_from_pool(&high, host, -1));
  OK(attune_stream_from_pool(&highest, host, -1000));
  OK(attune_stream_from_pool(&low, host, 5)); /* nothing comes after the normal priority */
  assert_int_equal(attune_stream_priority(high), -1);
  assert_true(attune_stream_priority(highest) < -1);
  assert_int_equal(attune_stream_priority(low), 0);
  assert_int_equal(index_of(normal, 32, high), -1);
  assert_int_equal(index_of(normal, 32, highest), -1);
  assert_true(index_of(normal, 32, low) >= 0);
  FAILS(attune_stream_from_pool(NULL, host, 0), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_stream_from_pool(&low, NULL, 0), ATTUNE_INVALID_ARGUMENT);
  assert_null(low);
}

static void *take_many(void *arg) {
  attune_stream **taken = arg;
  for (int i = 0; i < 32; i++)
    if (attune_stream_from_pool(&taken[i], host, -2) != ATTUNE_OK) return arg;
  return NULL;
}

/* Eight threads fill one pool at the same time: it still has 32 streams. */
TEST(many_takers) {
  attune_stream *taken[8][32], *different[256];
  pthread_t threads[8];
  int count = 0;
  for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, take_many, taken[i]), 0);
  for (int i = 0; i < 8; i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    assert_null(failed);
    for (int j = 0; j < 32; j++)
      if (index_of(different, count, taken[i][j]) < 0) different[count++] = taken[i][j];
  }
  assert_int_equal(count, 32);
}

static void *current_elsewhere(void *arg) {
  *(attune_stream **)arg = attune_stream_current(host);
  return NULL;
}

TEST(current_stream_of_each_thread) {
  attune_stream *mine = NULL, *theirs = NULL;
  pthread_t thread;
  OK(attune_stream_create(&mine, host));
  assert_ptr_equal(attune_stream_current(host), attune_stream_default(host));
  OK(attune_stream_set_current(mine));
  assert_ptr_equal(attune_stream_current(host), mine);
  assert_int_equal(pthread_create(&thread, NULL, current_elsewhere, &theirs), 0);
  pthread_join(thread, NULL);
  assert_ptr_equal(theirs, attune_stream_default(host));
  FAILS(attune_stream_set_current(NULL), ATTUNE_INVALID_ARGUMENT);
  assert_ptr_equal(attune_stream_current(host), mine);
  attune_stream_destroy(mine);
  assert_ptr_equal(attune_stream_current(host), attune_stream_default(host));
  assert_null(attune_stream_current(NULL));
}

TEST(current_device) {
  attune_device *best = NULL;
  OK(attune_device_get(&best, NULL));
  assert_ptr_equal(attune_device_current(), best);
  OK(attune_device_set_current(host));
  assert_ptr_equal(attune_device_current(), host);
  FAILS(attune_device_set_current(NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_device_set_current(best));
}

TEST(options_of_events) {
  attune_event *event = NULL, *timed = NULL;
  attune_event_ipc words;
  attune_event_options options = {.no_timing = 1, .blocking = 1};
  double ns = 0;
  OK(attune_event_create(&event, host, &options));
  OK(attune_event_create(&timed, host, NULL));
  OK(attune_event_record(event, attune_stream_default(host)));
  OK(attune_event_record(timed, attune_stream_default(host)));
  OK(attune_event_synchronize(event));
  FAILS_SAYING(attune_event_elapsed_ns(&ns, timed, event), ATTUNE_INVALID_ARGUMENT, "no_timing");
  OK(attune_event_elapsed_ns(&ns, timed, timed));
  FAILS(attune_event_ipc_export(event, &words), ATTUNE_UNSUPPORTED);
  attune_event_destroy(event);
  memset(&words, 0, sizeof words);
  FAILS(attune_event_ipc_open(&event, host, &words), ATTUNE_UNSUPPORTED);
  assert_null(event);
  options.interprocess = 1;
  FAILS(attune_event_create(&event, host, &options), ATTUNE_UNSUPPORTED);
  attune_event_destroy(timed);
}

typedef struct heard {
  int warnings, errors;
} heard;
static void hear(void *user, attune_log_level level, const char *line) {
  heard *h = user;
  if (!strstr(line, "implicit synchronization")) return;
  if (level == ATTUNE_LOG_WARNING) h->warnings++;
  if (level == ATTUNE_LOG_ERROR) h->errors++;
}

static void destroy_busy_stream(void) {
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, host));
  OK(at_host_submit(stream, sleep_20ms, NULL, 0));
  attune_stream_destroy(stream);
}

TEST(implicit_synchronization_is_told) {
  heard h = {0};
  attune_set_log(hear, &h, ATTUNE_LOG_INFO);
  assert_int_equal(attune_get_sync_debug(), ATTUNE_SYNC_DEBUG_OFF);
  destroy_busy_stream();
  OK(at_sync_check(host, "nothing"));
  assert_int_equal(h.warnings + h.errors, 0);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_WARN));
  destroy_busy_stream();
  assert_int_equal(h.warnings, 1);
  OK(at_sync_check(host, "a call"));
  assert_int_equal(h.warnings, 2);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_ERROR));
  FAILS_SAYING(at_sync_check(host, "a call waits"), ATTUNE_BUSY, "a call waits");
  destroy_busy_stream();
  assert_int_equal(h.errors, 1);
  attune_stream *idle = NULL; /* no work, no wait */
  OK(attune_stream_create(&idle, host));
  attune_stream_destroy(idle);
  assert_int_equal(h.errors, 1);
  FAILS(attune_set_sync_debug((attune_sync_debug)3), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_get_sync_debug(), ATTUNE_SYNC_DEBUG_ERROR);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_OFF));
  attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
}

TEST(memory_given_back_is_told) {
  heard h = {0};
  void *memory = NULL;
  attune_set_log(hear, &h, ATTUNE_LOG_INFO);
  OK(attune_alloc(&memory, attune_stream_default(host), 64 << 20));
  OK(attune_free(memory, attune_stream_default(host)));
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_WARN));
  OK(attune_memory_empty_cache(host));
  assert_int_equal(h.warnings, 1);
  OK(attune_memory_empty_cache(host)); /* nothing is left to give */
  assert_int_equal(h.warnings, 1);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_OFF));
  attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
}

/* Memory that another stream uses; what a graph holds for its generators is none. */
TEST(other_waits_are_told) {
  heard h = {0};
  void *memory = NULL;
  attune_stream *owner = NULL, *user = NULL;
  attune_graph *graph = NULL;
  attune_generator *generator = NULL;
  OK(attune_stream_create(&owner, host));
  OK(attune_stream_create(&user, host));
  OK(attune_graph_create(&graph, host));
  OK(attune_generator_create(&generator, 1));
  OK(attune_graph_register_generator(graph, generator));
  OK(attune_alloc(&memory, owner, 1 << 20));
  OK(attune_memory_empty_cache(host));
  OK(attune_record_use(memory, user));
  OK(at_host_submit(user, sleep_20ms, NULL, 0));
  OK(attune_free(memory, owner));
  attune_set_log(hear, &h, ATTUNE_LOG_INFO);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_WARN));
  OK(attune_memory_empty_cache(host));
  assert_int_equal(h.warnings, 2); /* for the other stream's use, and when the memory goes */
  attune_graph_destroy(graph);     /* what it held for the generator is kept for the next graph: no wait */
  assert_int_equal(h.warnings, 2);
  OK(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_OFF));
  attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
  attune_generator_destroy(generator);
  attune_stream_destroy(owner);
  attune_stream_destroy(user);
}

static void *leave_streams_behind(void *arg) {
  attune_stream **streams = arg;
  for (int i = 0; i < 4; i++) {
    if (attune_stream_create(&streams[i], host) != ATTUNE_OK) return arg;
    if (at_host_submit(streams[i], sleep_20ms, NULL, 0) != ATTUNE_OK) return arg;
  }
  (void)attune_stream_set_current(streams[0]);
  return NULL;
}

TEST(a_thread_ends_and_its_streams_live) {
  attune_stream *streams[4];
  pthread_t thread;
  void *failed = NULL;
  atomic_int count = 0, *slot = &count;
  assert_int_equal(pthread_create(&thread, NULL, leave_streams_behind, streams), 0);
  pthread_join(thread, &failed);
  assert_null(failed);
  for (int i = 0; i < 4; i++) {
    OK(at_host_submit(streams[i], add_one, &slot, sizeof slot));
    OK(attune_stream_synchronize(streams[i]));
    attune_stream_destroy(streams[i]);
  }
  assert_int_equal(atomic_load(&count), 4);
}

int main(void) {
  return RUN_TESTS(find_host, NULL);
}
