/* SPDX-License-Identifier: Apache-2.0
 * test_memory_questions.c: what a program may ask of a device's memory and of pools, the cache switched off and on
 * while memory is held, and the program's allocator with a start and a reset of its own. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include "tests/support/host_stream.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

TEST(the_fraction_is_told) {
  attune_device_properties p = {0};
  double fraction = 0.0;
  OK(attune_memory_get_fraction(host, &fraction));
  assert_true(fraction == 1.0);
  OK(attune_memory_set_fraction(host, 0.25));
  OK(attune_memory_get_fraction(host, &fraction));
  assert_true(fraction == 0.25);
  OK(attune_device_get_properties(host, &p));
  OK(attune_memory_set_limit(host, p.memory_bytes / 2));
  OK(attune_memory_get_fraction(host, &fraction));
  assert_true(fraction > 0.499 && fraction < 0.501);
  OK(attune_memory_set_limit(host, 0));
  OK(attune_memory_get_fraction(host, &fraction));
  assert_true(fraction == 1.0);
  FAILS(attune_memory_get_fraction(NULL, &fraction), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_memory_get_fraction(host, NULL), ATTUNE_INVALID_ARGUMENT);
}

static size_t lines_of(const char *text) {
  size_t lines = 0;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

TEST(a_summary_may_be_brief) {
  char *all = NULL, *brief = NULL;
  OK(attune_memory_summary(&all, host, 0));
  OK(attune_memory_summary(&brief, host, 1));
  assert_int_equal(lines_of(brief), 3 + 4);
  assert_true(lines_of(all) > 3 * lines_of(brief));
  assert_non_null(strstr(brief, "| reserved memory "));
  assert_null(strstr(brief, "large"));
  free(all);
  free(brief);
  FAILS(attune_memory_summary(NULL, host, 1), ATTUNE_INVALID_ARGUMENT);
}

static const char *backend(void) {
  const char *name = NULL;
  OK(attune_memory_get_backend(host, &name));
  return name;
}

static uint64_t reserved(void) {
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(host, &s));
  return s.reserved_bytes[ATTUNE_MEMORY_ALL].current;
}

/* What is held stays valid; what was taken without a cache is as small as it was asked for, and never serves
 * another. */
TEST(the_cache_goes_off_and_on) {
  char *before = NULL, *without = NULL, *after = NULL, *more = NULL;
  void *cached = NULL;
  OK(attune_memory_empty_cache(host));
  assert_string_equal(backend(), "caching");
  OK(attune_alloc((void **)&before, stream, 3 * MIB));
  OK(attune_alloc(&cached, stream, 100));
  OK(attune_free(cached, stream));
  memset(before, 1, 3 * MIB);
  OK(attune_memory_configure(host, "backend:none"));
  assert_string_equal(backend(), "none");
  OK(attune_alloc((void **)&without, stream, 100));
  memset(without, 2, 100);
  const uint64_t held = reserved();
  OK(attune_alloc(&cached, stream, 5 * MIB));
  assert_true(reserved() >= held + 5 * MIB);
  OK(attune_free(cached, stream));
  assert_true(reserved() <= held); /* at once */
  OK(attune_memory_configure(host, "backend:caching"));
  assert_string_equal(backend(), "caching");
  OK(attune_free(without, stream)); /* 100 bytes: not for the 512 that come now */
  OK(attune_alloc((void **)&after, stream, 512));
  memset(after, 3, 512);
  OK(attune_alloc((void **)&more, stream, 3 * MIB));
  memset(more, 4, 3 * MIB);
  for (size_t i = 0; i < 3 * MIB; i++) assert_int_equal(before[i], 1);
  OK(attune_free(more, stream));
  OK(attune_free(after, stream));
  OK(attune_memory_configure(host, "backend:none"));
  OK(attune_free(before, stream)); /* goes back at once, though it was cached memory */
  OK(attune_memory_configure(host, "backend:caching"));
  assert_int_equal(reserved(), 0);
}

/* Memory freed while a capture is under way waits for its end, and serves others of its size meanwhile, but not if it
 * was taken for one request alone. */
TEST(exact_memory_serves_no_other) {
  attune_stream *other = NULL;
  attune_graph *graph = NULL;
  char *small = NULL, *large = NULL;
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_configure(host, "backend:none"));
  OK(attune_stream_create(&other, host));
  OK(attune_graph_create(&graph, host));
  OK(attune_alloc((void **)&small, stream, 100));
  OK(attune_graph_capture_begin(graph, other, NULL));
  OK(attune_free(small, stream));
  OK(attune_alloc((void **)&large, stream, 500));
  memset(large, 7, 500); /* checkers find it, were it the 100 bytes */
  assert_ptr_not_equal(large, small);
  OK(attune_free(large, stream));
  OK(attune_graph_capture_end(graph, other));
  attune_graph_destroy(graph);
  attune_stream_destroy(other);
  OK(attune_memory_configure(host, "backend:caching"));
  OK(attune_memory_empty_cache(host));
  assert_int_equal(reserved(), 0);
}

TEST(what_the_host_has_not) {
  FAILS_SAYING(attune_memory_configure(host, "backend:cudaMallocAsync"), ATTUNE_UNSUPPORTED,
               "backend is cudaMallocAsync");
  FAILS(attune_memory_configure(host, "backend:cudaMallocAsync,poison:true"), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_memory_configure(host, "backend:jemalloc"), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(backend(), "caching");
  FAILS(attune_memory_get_backend(NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  void *blas = stream;
  FAILS(attune_stream_blas(stream, &blas), ATTUNE_UNSUPPORTED);
  assert_null(blas);
  FAILS(attune_stream_blas(NULL, &blas), ATTUNE_INVALID_ARGUMENT);
}

TEST(refusals_of_the_limit_are_counted) {
  attune_memory_statistics s = {0};
  void *p = NULL;
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_reset_accumulated(host));
  OK(attune_memory_set_limit(host, 4 * MIB));
  FAILS(attune_alloc(&p, stream, 5 * MIB), ATTUNE_OUT_OF_MEMORY);
  OK(attune_memory_set_limit(host, 0));
  FAILS(attune_alloc(&p, stream, (size_t)1 << 60), ATTUNE_OUT_OF_MEMORY); /* not the limit's doing */
  OK(attune_memory_get_statistics(host, &s));
  assert_int_equal(s.out_of_memory, 2);
  assert_int_equal(s.limit_rejections, 1);
  OK(attune_memory_reset_accumulated(host));
  OK(attune_memory_get_statistics(host, &s));
  assert_int_equal(s.limit_rejections, 0);
}

typedef struct seen {
  attune_pool_info infos[8];
  int count, stop;
} seen;

static int see(void *user, const attune_pool_info *info) {
  seen *s = user;
  if (s->count < 8) s->infos[s->count] = *info;
  s->count++;
  return s->stop;
}

static attune_status take_in_capture(void *user, attune_stream *in) {
  attune_status status = attune_alloc(user, in, 2 * MIB);
  return status == ATTUNE_OK ? attune_fill(in, *(void **)user, 5, 2 * MIB) : status;
}

TEST(pools_are_listed) {
  attune_pool *pool = NULL;
  attune_graph *graph = NULL;
  attune_pool_info info = {0};
  seen s = {.stop = 0};
  void *p = NULL, *of_graph = NULL;
  OK(attune_pool_create(&pool, host, NULL));
  OK(attune_pool_begin(pool, stream));
  OK(attune_pool_get_info(pool, &info));
  assert_int_equal(info.holders, 2); /* the handle and the begin */
  OK(attune_alloc(&p, stream, 3 * MIB));
  OK(attune_pool_end(pool, stream));
  OK(attune_pool_get_info(pool, &info));
  assert_true(info.id[0] > 0 && info.id[1] == 0);
  assert_int_equal(info.holders, 1);
  assert_int_equal(info.segments, 1);
  assert_true(info.reserved_bytes >= 3 * MIB && info.allocated_bytes == 3 * MIB);
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, NULL, NULL, take_in_capture, &of_graph));
  OK(attune_memory_each_pool(host, see, &s));
  assert_true(s.count >= 2);
  const attune_pool_info *last = &s.infos[s.count - 1];
  assert_true(last->id[0] == 0 && last->id[1] > 0 && last->reserved_bytes >= 2 * MIB);
  const attune_pool_info *mine = last - 1;
  assert_true(mine->id[0] == info.id[0] && mine->reserved_bytes == info.reserved_bytes && mine->holders == 1);
  s = (seen){.stop = 1};
  OK(attune_memory_each_pool(host, see, &s));
  assert_int_equal(s.count, 1);
  FAILS(attune_memory_each_pool(host, NULL, &s), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_memory_each_pool(NULL, see, &s), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_pool_get_info(NULL, &info), ATTUNE_INVALID_ARGUMENT);
  OK(attune_free(of_graph, stream));
  attune_graph_destroy(graph);
  OK(attune_free(p, stream));
  attune_pool_destroy(pool);
}

TEST(a_pool_has_its_snapshot) {
  attune_pool *pool = NULL;
  attune_pool_info info = {0};
  char *of_pool = NULL, *of_all = NULL, id[64];
  void *p = NULL, *q = NULL;
  OK(attune_pool_create(&pool, host, NULL));
  OK(attune_pool_begin(pool, stream));
  OK(attune_alloc(&p, stream, 300 * KIB));
  OK(attune_pool_end(pool, stream));
  OK(attune_alloc(&q, stream, 300 * KIB));
  OK(attune_pool_snapshot(&of_pool, pool));
  OK(attune_memory_snapshot(&of_all, host));
  OK(attune_pool_get_info(pool, &info));
  snprintf(id, sizeof id, "\"segment_pool_id\":[%d,0]", (int)info.id[0]);
  assert_non_null(strstr(of_pool, id));
  assert_null(strstr(of_pool, "\"segment_pool_id\":[0,0]"));
  assert_non_null(strstr(of_all, id));
  assert_non_null(strstr(of_all, "\"segment_pool_id\":[0,0]"));
  free(of_pool);
  free(of_all);
  FAILS(attune_pool_snapshot(&of_pool, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_free(q, stream));
  OK(attune_free(p, stream));
  attune_pool_destroy(pool);
}

typedef struct own {
  int starts, resets, live;
  attune_status start;
} own;

static void *give(void *user, size_t bytes, attune_device *device, attune_stream *of) {
  (void)device;
  (void)of;
  ((own *)user)->live++;
  return aligned_alloc(512, (bytes + 511) / 512 * 512);
}

static void take(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *of) {
  (void)bytes;
  (void)device;
  (void)of;
  ((own *)user)->live--;
  free(pointer);
}

static attune_status start(void *user, attune_device *device) {
  own *o = user;
  o->starts += device == host;
  return o->start;
}

static void reset(void *user, attune_device *device) {
  ((own *)user)->resets += device == host;
}

TEST(an_allocator_starts_and_resets) {
  own mine = {.start = ATTUNE_IO_ERROR};
  const attune_allocator functions = {.user = &mine, .alloc = give, .free = take, .init = start, .reset = reset};
  attune_allocator found = {0};
  void *p = NULL;
  OK(attune_memory_empty_cache(host));
  FAILS(attune_memory_set_allocator(host, &functions), ATTUNE_IO_ERROR);
  OK(attune_memory_get_allocator(host, &found));
  assert_true(found.alloc == NULL && mine.starts == 1);
  mine.start = ATTUNE_OK;
  OK(attune_memory_set_allocator(host, &functions));
  OK(attune_memory_set_allocator(host, &functions)); /* the same again starts nothing */
  assert_int_equal(mine.starts, 2);
  assert_string_equal(backend(), "program");
  OK(attune_memory_get_allocator(host, &found));
  assert_memory_equal(&found, &functions, sizeof found);
  OK(attune_alloc(&p, stream, 1000));
  assert_int_equal(mine.live, 1);
  OK(attune_free(p, stream));
  assert_int_equal(mine.live, 0);
  assert_int_equal(mine.resets, 0);
  OK(attune_memory_empty_cache(host));
  assert_int_equal(mine.resets, 1);
  OK(attune_memory_set_allocator(host, NULL));
  OK(attune_memory_empty_cache(host));
  assert_int_equal(mine.resets, 1);
  FAILS(attune_memory_get_allocator(host, NULL), ATTUNE_INVALID_ARGUMENT);
}

int main(void) {
  return RUN_TESTS(open_stream, close_stream);
}
