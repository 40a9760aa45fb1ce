/* SPDX-License-Identifier: Apache-2.0
 * test_memory_program.c: what a program gives the allocator: functions that hear of failed requests, and allocators out
 * of a shared object. Also what the headers promise of ranges and of pieces that cannot be given back. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

#include "tests/support/host_stream.h"

#define MIB ((size_t)1 << 20)

typedef struct heard {
  int calls, bad;
  attune_memory_failure failure;
  attune_status inner;
} heard;

/* Without a lock of attune it may do what it likes; a failure of its own is not told again. */
static void hear(void *user, attune_device *device, const attune_memory_failure *failure) {
  heard *h = user;
  void *p = NULL;
  char *text = NULL;
  h->calls++;
  h->failure = *failure;
  h->bad += device != host || attune_memory_snapshot(&text, device) != ATTUNE_OK;
  h->bad += attune_alloc(&p, stream, 1000) != ATTUNE_OK || attune_free(p, stream) != ATTUNE_OK;
  h->inner = attune_alloc(&p, stream, 200 * MIB);
  free(text);
}

TEST(a_failed_request_is_told) {
  heard first = {0}, second = {0};
  void *p = NULL, *q = NULL;
  OK(attune_alloc(&p, stream, 3 * MIB));
  OK(attune_memory_add_observer(host, hear, &first));
  OK(attune_memory_add_observer(host, hear, &second));
  OK(attune_memory_set_limit(host, 64 * MIB));
  assert_int_equal(attune_alloc(&q, stream, 65 * MIB), ATTUNE_OUT_OF_MEMORY);
  assert_non_null(strstr(attune_last_message(), "68157440 bytes")); /* of this request, not of the observer's */
  assert_int_equal(first.calls, 1);
  assert_int_equal(second.calls, 1);
  assert_int_equal(first.bad, 0);
  assert_int_equal(first.inner, ATTUNE_OUT_OF_MEMORY);
  assert_int_equal(first.failure.requested_bytes, 65 * MIB);
  assert_int_equal(first.failure.allocated_bytes, 3 * MIB);
  assert_true(first.failure.reserved_bytes >= 3 * MIB && first.failure.reserved_bytes <= 64 * MIB);
  assert_int_equal(first.failure.limit_bytes, 64 * MIB);
  assert_true(first.failure.free_bytes > 0 && first.failure.free_bytes <= first.failure.total_bytes);
  OK(attune_memory_remove_observer(host, hear, &first));
  assert_int_equal(attune_memory_remove_observer(host, hear, &first), ATTUNE_NOT_FOUND);
  assert_int_equal(attune_alloc(&q, stream, 65 * MIB), ATTUNE_OUT_OF_MEMORY);
  assert_int_equal(first.calls, 1);
  assert_int_equal(second.calls, 2);
  OK(attune_memory_set_limit(host, 0));
  OK(attune_alloc(&q, stream, 65 * MIB)); /* what succeeds is not told */
  assert_int_equal(second.calls, 2);
  OK(attune_memory_remove_observer(host, hear, &second));
  OK(attune_free(q, stream));
  OK(attune_free(p, stream));
}

/* ---- the program's functions while work is under way ---- */

typedef struct ordered {
  atomic_bool begun, go, done; /* of the work that uses the memory */
  bool early;                  /* freed before it was done */
  unsigned char *memory;
} ordered;

static void use_late(void *user) {
  ordered *o = user;
  atomic_store(&o->begun, true);
  while (!atomic_load(&o->go)) usleep(100);
  usleep(2000);
  o->memory[0] = 1;
  atomic_store(&o->done, true);
}

static void *take_plain(void *user, size_t bytes, attune_device *device, attune_stream *on) {
  (void)user, (void)device, (void)on;
  return malloc(bytes);
}

static void free_plain(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *on) {
  ordered *o = user;
  (void)bytes, (void)device, (void)on;
  o->early = o->early || !atomic_load(&o->done);
  free(pointer);
}

static void *let_go(void *user) {
  ordered *o = user;
  usleep(2000);
  atomic_store(&o->go, true);
  return NULL;
}

/* Functions of the C library know no streams. */
TEST(freed_when_the_work_is_done) {
  ordered o = {.early = false};
  const attune_allocator own = {.user = &o, .alloc = take_plain, .free = free_plain};
  void *p = NULL;
  pthread_t thread;
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_set_allocator(host, &own));
  OK(attune_alloc(&p, stream, 1000));
  o.memory = p;
  OK(attune_stream_call(stream, use_late, &o));
  while (!atomic_load(&o.begun)) usleep(100);
  assert_int_equal(pthread_create(&thread, NULL, let_go, &o), 0);
  OK(attune_free(p, stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_false(o.early);
  OK(attune_memory_set_allocator(host, NULL));
}

typedef struct slow {
  atomic_bool inside, closing, closed;
  bool gone; /* the stream that free was told of was destroyed meanwhile */
} slow;

static void free_slowly(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *on) {
  slow *s = user;
  (void)bytes;
  atomic_store(&s->inside, true);
  while (!atomic_load(&s->closing)) usleep(100);
  usleep(20000);
  s->gone = atomic_load(&s->closed) || !on || attune_stream_device(on) != device;
  free(pointer);
}

static void *empty_cache(void *user) {
  attune_status *status = user;
  *status = attune_memory_empty_cache(host);
  return NULL;
}

TEST(a_stream_that_free_is_told_of_stays) {
  slow s = {.gone = false};
  const attune_allocator own = {.user = &s, .alloc = take_plain, .free = free_slowly};
  attune_pool *pool = NULL;
  attune_stream *other = NULL;
  attune_status status = ATTUNE_INTERNAL;
  void *p = NULL;
  pthread_t thread;
  OK(attune_stream_create(&other, host));
  OK(attune_pool_create(&pool, host, &(attune_pool_options){.allocator = &own}));
  OK(attune_pool_begin(pool, other));
  OK(attune_alloc(&p, other, 1000));
  OK(attune_free(p, other));
  OK(attune_pool_end(pool, other));
  assert_int_equal(pthread_create(&thread, NULL, empty_cache, &status), 0);
  while (!atomic_load(&s.inside)) usleep(100);
  atomic_store(&s.closing, true);
  attune_stream_destroy(other);
  atomic_store(&s.closed, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  OK(status);
  assert_false(s.gone);
  attune_pool_destroy(pool);
}

TEST(there_are_at_most_eight) {
  heard h[9];
  for (int i = 0; i < 8; i++) OK(attune_memory_add_observer(host, hear, &h[i]));
  assert_int_equal(attune_memory_add_observer(host, hear, &h[8]), ATTUNE_BUSY);
  for (int i = 7; i >= 0; i--) OK(attune_memory_remove_observer(host, hear, &h[i]));
  assert_int_equal(attune_memory_add_observer(host, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_memory_add_observer(NULL, hear, NULL), ATTUNE_INVALID_ARGUMENT);
}

static void look(int *live, ssize_t *bytes, int *device) {
  void (*plugin_look)(int *, ssize_t *, int *) = NULL;
  void *library = dlopen(AT_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library); /* it stays loaded */
  void *address = dlsym(library, "plugin_look");
  memcpy(&plugin_look, &address, sizeof address);
  plugin_look(live, bytes, device);
  (void)dlclose(library);
}

TEST(an_allocator_comes_from_a_shared_object) {
  attune_allocator own = {0}, again = {0};
  int live = 0, device = 0;
  ssize_t bytes = 0;
  void *p = NULL, *q = NULL;
  attune_memory_statistics s = {0};
  char *text = NULL, address[48];
  OK(attune_memory_empty_cache(host));
  OK(attune_allocator_load(&own, AT_PLUGIN, "plugin_alloc", "plugin_free"));
  OK(attune_allocator_load(&again, AT_PLUGIN, "plugin_alloc", "plugin_free"));
  assert_memory_equal(&own, &again, sizeof own);
  OK(attune_memory_set_allocator(host, &own));
  OK(attune_alloc(&p, stream, 3 * MIB));
  memset(p, 1, 3 * MIB);
  look(&live, &bytes, &device);
  assert_int_equal(live, 1);
  assert_int_equal(bytes, 3 * MIB);
  assert_int_equal(device, 0);
  OK(attune_memory_get_statistics(host, &s)); /* statistics and snapshots have the program's memory too */
  assert_int_equal(s.allocated_bytes[ATTUNE_MEMORY_ALL].current, 3 * MIB);
  OK(attune_memory_snapshot(&text, host));
  snprintf(address, sizeof address, "%ju", (uintmax_t)(uintptr_t)p);
  assert_non_null(strstr(text, address));
  free(text);
  FAILS(attune_memory_set_allocator(host, NULL), ATTUNE_BUSY);
  assert_int_equal(attune_alloc(&q, stream, 2048 * MIB), ATTUNE_OUT_OF_MEMORY);
  OK(attune_free(p, stream));
  OK(attune_stream_synchronize(stream));
  look(&live, &bytes, &device);
  assert_int_equal(live, 0);
  assert_int_equal(bytes, 0);
  OK(attune_memory_set_allocator(host, NULL));
}

TEST(a_pool_may_use_it) {
  attune_allocator own = {0};
  attune_pool *pool = NULL;
  attune_pool_options options = ATTUNE_POOL_OPTIONS_INIT;
  int live = 0, device = 0;
  ssize_t bytes = 0;
  void *p = NULL;
  OK(attune_allocator_load(&own, AT_PLUGIN, "plugin_alloc", "plugin_free"));
  options.allocator = &own;
  OK(attune_pool_create(&pool, host, &options));
  OK(attune_pool_begin(pool, stream));
  OK(attune_alloc(&p, stream, 100000));
  OK(attune_pool_end(pool, stream));
  look(&live, &bytes, &device);
  assert_int_equal(live, 1);
  OK(attune_free(p, stream));
  attune_pool_destroy(pool);
  OK(attune_memory_empty_cache(host));
  look(&live, &bytes, &device);
  assert_int_equal(live, 0);
}

TEST(shared_objects_that_will_not_do) {
  attune_allocator own = {0};
  FAILS_SAYING(attune_allocator_load(&own, "/tmp/attune_none.so", "a", "b"), ATTUNE_NOT_FOUND, "attune_none.so");
  assert_null(own.alloc);
  FAILS_SAYING(attune_allocator_load(&own, AT_PLUGIN, "plugin_alloc", "no_such"), ATTUNE_NOT_FOUND, "no_such");
  assert_int_equal(attune_allocator_load(&own, AT_PLUGIN, NULL, "plugin_free"), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_allocator_load(&own, "", "a", "b"), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_allocator_load(NULL, AT_PLUGIN, "a", "b"), ATTUNE_INVALID_ARGUMENT);
}

/* All of the range may be used, and no two ranges meet. */
TEST(ranges_are_the_programs) {
  static const size_t sizes[] = {1, 511, 512, 513, 100000, 3 * MIB + 1};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  char *p[COUNT];
  for (int i = 0; i < COUNT; i++) {
    void *base = NULL;
    size_t bytes = 0;
    OK(attune_alloc((void **)&p[i], stream, sizes[i]));
    OK(attune_memory_range(p[i], &base, &bytes));
    assert_ptr_equal(base, p[i]);
    assert_int_equal(bytes, (sizes[i] + 511) / 512 * 512);
    memset(p[i], i + 1, bytes);
  }
  for (int i = 0; i < COUNT; i++) {
    size_t bytes = 0;
    OK(attune_memory_range(p[i], NULL, &bytes));
    for (size_t j = 0; j < bytes; j += 511) assert_int_equal(p[i][j], i + 1);
    if (bytes > 512) assert_int_equal(attune_memory_range(p[i] + 512, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  }
  for (int i = 0; i < COUNT; i++) OK(attune_free(p[i], stream));
  assert_int_equal(attune_memory_range(p[0], NULL, NULL), ATTUNE_INVALID_ARGUMENT);
}

static uint64_t pieces(void) {
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(host, &s));
  return s.inactive_split_bytes[ATTUNE_MEMORY_ALL].current;
}

static uint64_t reserved(void) {
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(host, &s));
  return s.reserved_bytes[ATTUNE_MEMORY_ALL].current;
}

/* Free pieces of expandable segments are released when the cache is emptied and never counted; others are kept. */
TEST(pieces_cannot_be_given_back) {
  void *p = NULL, *q = NULL;
  for (int expandable = 0; expandable < 2; expandable++) {
    OK(attune_memory_empty_cache(host));
    const attune_status set =
        attune_memory_configure(host, expandable ? "expandable_segments:true" : "expandable_segments:false");
    if (expandable && set == ATTUNE_UNSUPPORTED) return;
    OK(set);
    OK(attune_alloc(&p, stream, 6 * MIB));
    OK(attune_alloc(&q, stream, expandable ? 60 * MIB : 6 * MIB));
    OK(attune_free(q, stream));
    OK(attune_memory_empty_cache(host));
    if (expandable) {
      assert_int_equal(pieces(), 0);
      assert_int_equal(reserved(), 20 * MIB); /* a step */
    } else {
      assert_int_equal(pieces(), reserved() - 6 * MIB);
      assert_true(pieces() >= 6 * MIB);
    }
    OK(attune_free(p, stream));
    assert_int_equal(pieces(), 0); /* all of the segment is free: it can be given back */
  }
  OK(attune_memory_empty_cache(host));
}

int main(void) {
  return RUN_TESTS(open_stream, close_stream);
}
