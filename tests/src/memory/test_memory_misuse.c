/* SPDX-License-Identifier: Apache-2.0
 * test_memory_misuse.c: each wrong call of the memory functions has its status and its message, and the next call works
 * on what it left alone. */
#include "tests/support/check.h"

#include <attune/pinned.h>
#include <attune/pool.h>

#include "src/host/host.h"
#include "src/memory/malloc/allocator.h"

#include <stdatomic.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static attune_device *host;
static attune_device other; /* as good as a second device: an allocator of its own */
static attune_stream *first, *second, *elsewhere;

static void *take(attune_stream *stream, size_t bytes) {
  void *p = NULL;
  OK(attune_alloc(&p, stream, bytes));
  assert_non_null(p);
  return p;
}

static uint64_t held(attune_device *device) {
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(device, &s));
  return s.allocation[ATTUNE_MEMORY_ALL].current;
}

static void next_call_works(void) {
  unsigned char *p = take(first, 70000);
  OK(attune_fill(first, p, 7, 70000));
  OK(attune_stream_synchronize(first));
  assert_true(p[0] == 7 && p[69999] == 7);
  OK(attune_free(p, first));
}

#define REFUSED(call, status, part)       \
  do {                                    \
    uint64_t before = held(host);         \
    assert_int_equal((call), status);     \
    says(part);                           \
    assert_int_equal(held(host), before); \
    next_call_works();                    \
  } while (0)

FIXTURE(open_all) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  other = (attune_device){.backend = host->backend, .index = 1, .name = "other", .properties = host->properties};
  if (attune_stream_create(&first, host) != ATTUNE_OK || attune_stream_create(&second, host) != ATTUNE_OK) return -1;
  return attune_stream_create(&elsewhere, &other) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_all) {
  attune_stream_destroy(first);
  attune_stream_destroy(second);
  attune_stream_destroy(elsewhere);
  return 0;
}

FIXTURE(begin) {
  if (attune_memory_empty_cache(host) != ATTUNE_OK) return -1;
  return attune_memory_configure(host, "expandable_segments:true,backend:caching") == ATTUNE_OK ? 0 : -1;
}

TEST(freed_twice) {
  void *p = take(first, 5000);
  void *guard = take(first, 512); /* what is freed keeps its place */
  OK(attune_free(p, first));
  assert_int_equal(attune_free(p, first), ATTUNE_INVALID_ARGUMENT); /* in the cache's bin */
  says("was already freed, and is cached");
  REFUSED(attune_free(p, second), ATTUNE_INVALID_ARGUMENT, "was already freed");
  REFUSED(attune_record_use(p, second), ATTUNE_INVALID_ARGUMENT, "was already freed");
  REFUSED(attune_memory_range(p, NULL, NULL), ATTUNE_INVALID_ARGUMENT, "was already freed");
  OK(attune_free(guard, first));
  char *one = take(first, 512), *two = take(first, 512), *late = one > two ? one : two;
  OK(attune_free(one, first));
  OK(attune_free(two, first));
  REFUSED(attune_free(late, first), ATTUNE_INVALID_ARGUMENT,
          "already freed, or never allocated: it lies in"); /* merged */
  OK(attune_memory_empty_cache(host));
  REFUSED(attune_free(late, first), ATTUNE_INVALID_ARGUMENT, "was already freed, or never allocated"); /* unmapped */
}

TEST(freed_twice_and_given_back) {
  OK(attune_memory_configure(host, "expandable_segments:false"));
  void *p = take(first, 30 * MIB);
  OK(attune_free(p, first));
  OK(attune_memory_empty_cache(host));
  REFUSED(attune_free(p, first), ATTUNE_NOT_FOUND, "is not memory of attune on host");
}

static atomic_bool gate;

static void wait_for_gate(const void *args) {
  (void)args;
  while (!atomic_load(&gate)) usleep(100);
}

TEST(freed_while_another_stream_uses_it) {
  char *p = take(first, 5000);
  OK(attune_record_use(p, second));
  atomic_store(&gate, false);
  OK(at_host_submit(second, wait_for_gate, NULL, 0));
  OK(attune_free(p, first));
  REFUSED(attune_free(p, first), ATTUNE_INVALID_ARGUMENT,
          "of host that was already freed and that another stream still uses");
  REFUSED(attune_free(p + 512, first), ATTUNE_INVALID_ARGUMENT,
          "lies 512 bytes inside memory of host that was already freed");
  atomic_store(&gate, true);
  OK(attune_stream_synchronize(second));
}

TEST(inside_an_allocation) {
  char *p = take(first, 5000), start[40];
  snprintf(start, sizeof start, "begins at %p on host", (void *)p);
  REFUSED(attune_free(p + 512, first), ATTUNE_INVALID_ARGUMENT, "lies 512 bytes inside the allocation of 5000 bytes");
  REFUSED(attune_free(p + 1, second), ATTUNE_INVALID_ARGUMENT, start);
  REFUSED(attune_record_use(p + 4096, second), ATTUNE_INVALID_ARGUMENT, "lies 4096 bytes inside the allocation");
  REFUSED(attune_memory_range(p + 512, NULL, NULL), ATTUNE_INVALID_ARGUMENT, "lies 512 bytes inside the allocation");
  REFUSED(attune_memory_range(p + 7, NULL, NULL), ATTUNE_INVALID_ARGUMENT, "lies 7 bytes inside the allocation");
  OK(attune_free(p, first));
  REFUSED(attune_free(p + 3, first), ATTUNE_INVALID_ARGUMENT, "in free memory, where no allocation can begin");
}

TEST(not_of_attune) {
  char local[64] = {0};
  void *libc = malloc(100);
  REFUSED(attune_free(local, first), ATTUNE_NOT_FOUND, "is not memory of attune on host");
  REFUSED(attune_free(libc, first), ATTUNE_NOT_FOUND, "is not memory of attune on host");
  REFUSED(attune_record_use(local, first), ATTUNE_NOT_FOUND, "is not memory of attune on host");
  REFUSED(attune_memory_range(local, NULL, NULL), ATTUNE_NOT_FOUND, "is not memory of attune; should");
  free(libc);
}

TEST(of_another_device) {
  char *here = take(first, 5000), *there = take(elsewhere, 5000);
  REFUSED(attune_free(there, first), ATTUNE_INVALID_ARGUMENT, "is memory of other, stream is of host");
  REFUSED(attune_free(here, elsewhere), ATTUNE_INVALID_ARGUMENT, "is memory of host, stream is of other");
  REFUSED(attune_free(here + 512, elsewhere), ATTUNE_INVALID_ARGUMENT, "is memory of host, stream is of other");
  REFUSED(attune_record_use(there, first), ATTUNE_INVALID_ARGUMENT, "is memory of other, stream is of host");
  assert_int_equal(held(&other), 1);
  OK(attune_free(there, elsewhere));
  OK(attune_free(here, first));
}

TEST(no_such_size) {
  void *p = &p, *cached = take(first, 200 * MIB);
  uint64_t bytes = host->properties.memory_bytes;
  OK(attune_free(cached, first));
  REFUSED(attune_alloc(&p, first, (size_t)-1), ATTUNE_INVALID_ARGUMENT, "is -1 converted to size_t");
  assert_null(p);
  REFUSED(attune_alloc(&p, first, (size_t)PTRDIFF_MAX + 1), ATTUNE_INVALID_ARGUMENT,
          "is -9223372036854775808 converted to size_t");
  REFUSED(attune_alloc(&p, first, PTRDIFF_MAX), ATTUNE_OUT_OF_MEMORY, "in total on host");
  REFUSED(attune_alloc(&p, first, bytes + 1), ATTUNE_OUT_OF_MEMORY, "in total on host");
  assert_null(p);
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(host, &s));
  assert_true(s.reserved_bytes[0].current >= 200 * MIB); /* the cache is not lost to what cannot be had */
  REFUSED(attune_pinned_alloc(&p, host, (size_t)-5), ATTUNE_INVALID_ARGUMENT, "is -5 converted to size_t");
  REFUSED(attune_pinned_alloc(&p, host, (size_t)1 << 60), ATTUNE_OUT_OF_MEMORY, "no machine has as much");
  assert_null(p);
}

TEST(null_arguments) {
  void *p = take(first, 100), *out = NULL;
  REFUSED(attune_alloc(NULL, first, 8), ATTUNE_INVALID_ARGUMENT, "out is NULL");
  REFUSED(attune_alloc(&out, NULL, 8), ATTUNE_INVALID_ARGUMENT, "stream is NULL");
  REFUSED(attune_free(p, NULL), ATTUNE_INVALID_ARGUMENT, "stream is NULL");
  REFUSED(attune_record_use(NULL, first), ATTUNE_INVALID_ARGUMENT, "pointer is NULL");
  REFUSED(attune_record_use(p, NULL), ATTUNE_INVALID_ARGUMENT, "stream is NULL");
  REFUSED(attune_memory_range(NULL, &out, NULL), ATTUNE_INVALID_ARGUMENT, "pointer is NULL");
  OK(attune_free(NULL, first));
  OK(attune_free(p, first));
}

TEST(pinned_memory) {
  char *p = NULL, local[8];
  void *device = take(first, 100);
  OK(attune_pinned_alloc((void **)&p, host, 5000));
  REFUSED(attune_free(p, first), ATTUNE_INVALID_ARGUMENT,
          "is pinned host memory; should be passed to attune_pinned_free");
  REFUSED(attune_pinned_free(device), ATTUNE_INVALID_ARGUMENT,
          "is memory of a device; should be passed to attune_free");
  REFUSED(attune_pinned_free(local), ATTUNE_NOT_FOUND, "is not pinned memory of attune");
  REFUSED(attune_pinned_free(p + 512), ATTUNE_INVALID_ARGUMENT,
          "lies 512 bytes inside the pinned memory that begins at");
  REFUSED(attune_pinned_record_use(p, elsewhere), ATTUNE_INVALID_ARGUMENT, "is pinned for host, stream is of other");
  REFUSED(attune_pinned_record_use(NULL, first), ATTUNE_INVALID_ARGUMENT, "pointer is NULL");
  OK(attune_pinned_free(p));
  REFUSED(attune_pinned_free(p), ATTUNE_INVALID_ARGUMENT, "is pinned memory that was already freed");
  REFUSED(attune_pinned_record_use(p, first), ATTUNE_INVALID_ARGUMENT, "is pinned memory that was already freed");
  OK(attune_pinned_empty_cache(host));
  REFUSED(attune_pinned_free(p), ATTUNE_NOT_FOUND, "is not pinned memory of attune");
  OK(attune_free(device, first));
}

TEST(pools) {
  attune_pool *pool = NULL, *inner = NULL;
  attune_allocator half = {0};
  attune_pool_options options = {.allocator = &half};
  REFUSED(attune_pool_create(NULL, host, NULL), ATTUNE_INVALID_ARGUMENT, "out is NULL");
  REFUSED(attune_pool_create(&pool, NULL, NULL), ATTUNE_INVALID_ARGUMENT, "device is NULL");
  REFUSED(attune_pool_create(&pool, host, &options), ATTUNE_INVALID_ARGUMENT, "allocator has no alloc function");
  OK(attune_pool_create(&pool, host, NULL));
  OK(attune_pool_create(&inner, host, NULL));
  REFUSED(attune_pool_begin(NULL, first), ATTUNE_INVALID_ARGUMENT, "pool is NULL");
  REFUSED(attune_pool_begin(pool, NULL), ATTUNE_INVALID_ARGUMENT, "stream is NULL");
  REFUSED(attune_pool_begin(pool, elsewhere), ATTUNE_INVALID_ARGUMENT, "pool is of device host, stream of other");
  REFUSED(attune_pool_end(pool, first), ATTUNE_INVALID_ARGUMENT, "stream uses no pool");
  OK(attune_pool_begin(pool, first));
  OK(attune_pool_begin(inner, first));
  REFUSED(attune_pool_end(pool, first), ATTUNE_INVALID_ARGUMENT, "should be that of the latest attune_pool_begin");
  OK(attune_pool_end(inner, first));
  for (int i = 1; i < AT_POOL_DEPTH; i++) OK(attune_pool_begin(pool, first));
  REFUSED(attune_pool_begin(pool, first), ATTUNE_BUSY, "the stream already uses 8 pools");
  for (int i = 0; i < AT_POOL_DEPTH; i++) OK(attune_pool_end(pool, first));
  attune_pool_destroy(inner);
  attune_pool_destroy(pool);
}

/* The other device stays usable. The last test: nothing brings a lost device back. */
TEST(on_a_lost_device) {
  void *p = take(elsewhere, 5000), *out = NULL;
  at_memory_device_lost(&other);
  REFUSED(attune_free(p, elsewhere), ATTUNE_DEVICE_ERROR, "other is lost; restart the process");
  REFUSED(attune_record_use(p, elsewhere), ATTUNE_DEVICE_ERROR, "other is lost");
  REFUSED(attune_memory_range(p, NULL, NULL), ATTUNE_DEVICE_ERROR, "other is lost");
  REFUSED(attune_alloc(&out, elsewhere, 5000), ATTUNE_DEVICE_ERROR, "other is lost");
  REFUSED(attune_memory_empty_cache(&other), ATTUNE_DEVICE_ERROR, "other is lost");
  assert_null(out);
}

int main(void) {
  return RUN_TESTS_EACH(begin, NULL, open_all, close_all);
}
