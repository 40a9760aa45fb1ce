/* SPDX-License-Identifier: Apache-2.0
 * test_allocator.c: the caching allocator on the host: reuse, order among streams, what is refused, limits, settings,
 * pools, the program's own functions, counters, threads, fork. */
#include "tests/support/check.h"

#include "src/host/host.h"
#include "src/memory/malloc/allocator.h"
#include "src/stream/capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define DEFAULTS                                                                                                      \
  "backend:caching,expandable_segments:true,poison:false,roundup_power2_divisions:1,max_split_size_mb:1000000,large_" \
  "segment_size_mb:20"

static attune_device *host;
static attune_stream *first, *second;
static atomic_bool gate;

static void wait_for_gate(const void *args) {
  (void)args;
  while (!atomic_load(&gate)) usleep(100);
}

static void hold(attune_stream *stream) {
  atomic_store(&gate, false);
  OK(at_host_submit(stream, wait_for_gate, NULL, 0));
}

static void let_go(attune_stream *stream) {
  atomic_store(&gate, true);
  OK(attune_stream_synchronize(stream));
}

static void *take(attune_stream *stream, size_t bytes) {
  void *p = NULL;
  OK(attune_alloc(&p, stream, bytes));
  assert_non_null(p);
  return p;
}

static attune_memory_statistics statistics(void) {
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(host, &s));
  return s;
}

FIXTURE(open_streams) {
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&first, host) != ATTUNE_OK) return -1;
  return attune_stream_create(&second, host) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_streams) {
  attune_stream_destroy(first);
  attune_stream_destroy(second);
  return attune_memory_empty_cache(host) == ATTUNE_OK ? 0 : -1;
}

/* Each test begins with an allocator that has nothing. */
FIXTURE(begin) {
  if (attune_memory_set_limit(host, 0) != ATTUNE_OK || attune_memory_empty_cache(host) != ATTUNE_OK) return -1;
  if (attune_memory_configure(host, DEFAULTS) != ATTUNE_OK) return -1;
  if (attune_memory_reset_peaks(host) != ATTUNE_OK || attune_memory_reset_accumulated(host) != ATTUNE_OK) return -1;
  return statistics().reserved_bytes[0].current == 0 ? 0 : -1;
}

TEST(freed_memory_is_used_anew) {
  void *p = take(first, MIB);
  hold(first);
  OK(attune_free(p, first));
  assert_ptr_equal(take(first, MIB - 300), p); /* at once: the stream's order keeps both apart */
  assert_ptr_not_equal(take(second, MIB), p);
  let_go(first);
  attune_memory_statistics s = statistics();
  assert_int_equal(s.allocation[0].current, 2);
  assert_int_equal(s.allocation[0].allocated, 3);
  assert_int_equal(s.requested_bytes[0].current, 2 * MIB - 300);
  OK(attune_free(p, first));
}

static int drop_all(void **state) {
  (void)state;
  at_allocator *a = at_allocator_of(host);
  for (at_heap *heap = a->common.heaps; heap; heap = heap->next)
    for (at_segment *segment = heap->segments; segment; segment = segment->next)
      for (at_block *block = segment->first, *next; block; block = next) {
        next = block->next;
        if (at_block_get_state(block) == AT_BLOCK_LIVE && heap->cache->stream)
          (void)attune_free(at_block_pointer(block), heap->cache->stream);
      }
  return begin(state);
}

TEST(another_streams_use_is_waited_for) {
  void *p = take(first, 3 * MIB);
  OK(attune_record_use(p, second));
  OK(attune_record_use(p, second));
  OK(attune_record_use(p, first));
  hold(second);
  OK(attune_free(p, first));
  attune_memory_statistics s = statistics();
  assert_true(s.allocation[0].current == 0 && s.active[0].current == 1 && s.active_bytes[2].current >= 3 * MIB);
  void *q = take(first, 3 * MIB);
  assert_ptr_not_equal(p, q);
  let_go(second);
  assert_int_equal(statistics().active[0].current, 2);
  void *r = take(first, 3 * MIB); /* asks for the event */
  assert_ptr_equal(r, p);
  OK(attune_free(q, first));
  hold(second);
  OK(attune_free(r, second)); /* freed by the other stream: its work counts too */
  q = take(first, 3 * MIB);
  assert_ptr_not_equal(q, p);
  let_go(second);
  OK(attune_free(q, first));
}

TEST(a_closed_streams_memory_is_used_by_others) {
  attune_stream *stream = NULL;
  OK(attune_memory_configure(host, "expandable_segments:false"));
  OK(attune_stream_create(&stream, host));
  void *freed = take(stream, 30 * MIB), *held = take(stream, 40 * MIB);
  OK(attune_free(freed, stream));
  attune_stream_destroy(stream);
  assert_ptr_equal(take(second, 29 * MIB + 1), freed);
  OK(attune_free(freed, second));
  OK(attune_free(held, first));
  assert_int_equal(statistics().allocation[0].current, 0);
}

/* The ladder up to its end, and that the end is not final. */
TEST(memory_runs_out) {
  void *p = &p;
  OK(attune_memory_configure(host, "expandable_segments:false"));
  OK(attune_memory_set_limit(host, 100 * MIB));
  void *a = take(first, 40 * MIB), *b = take(first, 40 * MIB);
  assert_int_equal(attune_alloc(&p, first, 30 * MIB), ATTUNE_OUT_OF_MEMORY);
  assert_null(p);
  says("31457280 bytes on host");
  says("limit 104857600");
  says("83886080 bytes are allocated");
  OK(attune_free(a, first));
  OK(attune_free(b, first));
  void *c = take(second, 90 * MIB); /* what is cached for the other stream goes first */
  attune_memory_statistics s = statistics();
  assert_true(s.out_of_memory == 1 && s.alloc_retries == 2 && s.device_frees == 2);
  OK(attune_record_use(c, first));
  hold(first);
  OK(attune_free(c, second));
  atomic_store(&gate, true);
  c = take(second, 85 * MIB); /* waits for the other stream */
  OK(attune_free(c, second));
  assert_int_equal(attune_alloc(&p, first, (size_t)PTRDIFF_MAX), ATTUNE_OUT_OF_MEMORY);
  assert_int_equal(attune_memory_set_fraction(host, 0.0), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_memory_set_fraction(host, 1.5), ATTUNE_INVALID_ARGUMENT);
  OK(attune_memory_set_fraction(host, 1.0));
}

static int frees;
static int free_some(void *user, attune_device *device, size_t bytes) {
  void **block = user;
  assert_ptr_equal(device, host);
  assert_int_equal(bytes, 45 * MIB);
  frees++;
  return *block && attune_free(*block, first) == ATTUNE_OK && ((*block = NULL), 1);
}

TEST(the_program_is_asked_for_memory) {
  OK(attune_memory_set_limit(host, 60 * MIB));
  void *cache = take(first, 50 * MIB);
  OK(attune_memory_add_callback(host, free_some, &cache));
  frees = 0;
  void *p = take(first, 45 * MIB);
  assert_true(frees == 1 && !cache);
  OK(attune_memory_remove_callback(host, free_some, &cache));
  assert_int_equal(attune_memory_remove_callback(host, free_some, &cache), ATTUNE_NOT_FOUND);
  assert_int_equal(attune_memory_add_callback(host, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_free(p, first));
}

TEST(old_segments_are_collected) {
  OK(attune_memory_configure(host, "expandable_segments:false,garbage_collection_threshold:0.5"));
  OK(attune_memory_set_limit(host, 200 * MIB));
  void *old = take(first, 40 * MIB), *young = take(first, 50 * MIB);
  OK(attune_free(old, first));
  (void)statistics();
  OK(attune_free(young, first));
  (void)statistics();
  void *p = take(first, 44 * MIB); /* fits into the younger one */
  assert_ptr_equal(p, young);
  void *q = take(first, 60 * MIB);
  assert_true(statistics().device_frees == 1); /* the older one went */
  OK(attune_free(p, first));
  OK(attune_free(q, first));
  OK(attune_memory_configure(host, "garbage_collection_threshold:1.0"));
}

TEST(oversize_blocks_stay_whole) {
  OK(attune_memory_configure(host, "expandable_segments:false,max_split_size_mb:30"));
  void *p = take(first, 100 * MIB);
  attune_memory_statistics s = statistics();
  assert_true(s.oversize_allocations.current == 1 && s.oversize_segments.current == 1);
  OK(attune_free(p, first));
  assert_int_equal(statistics().oversize_allocations.current, 0);
  void *q = take(first, 12 * MIB);
  assert_true((char *)q < (char *)p || (char *)q >= (char *)p + 100 * MIB);
  void *r = take(first, 85 * MIB); /* about its size */
  assert_ptr_equal(r, p);
  OK(attune_free(q, first));
  OK(attune_free(r, first));
}

TEST(segments_grow_in_place) {
  void *a = take(first, 15 * MIB), *b = take(first, 15 * MIB), *c = take(first, 15 * MIB);
  assert_true((char *)b == (char *)a + 15 * MIB && (char *)c == (char *)b + 15 * MIB);
  memset(a, 1, 45 * MIB);
  assert_int_equal(statistics().reserved_bytes[0].current, 60 * MIB);
  OK(attune_free(a, first));
  OK(attune_free(b, first));
  OK(attune_memory_empty_cache(host));
  assert_int_equal(statistics().reserved_bytes[0].current, 40 * MIB); /* the granule that the third shares stays */
  assert_int_equal(((unsigned char *)c)[15 * MIB - 1], 1);
  void *d = take(first, 30 * MIB);
  assert_ptr_equal(d, a);
  memset(d, 2, 30 * MIB);
  assert_int_equal(((unsigned char *)c)[0], 1);
  OK(attune_free(c, first));
  OK(attune_free(d, first));
}

static attune_status refuse_unmap(attune_device *device, void *address, size_t bytes, uint64_t handle) {
  (void)device, (void)address, (void)bytes, (void)handle;
  return at_fail(ATTUNE_DEVICE_ERROR, "refused");
}

/* A device that does not take memory back keeps it usable. */
TEST(memory_that_cannot_go_back_stays) {
  const at_backend_vm *usual = host->backend.vm;
  at_backend_vm stubborn = *usual;
  stubborn.unmap = refuse_unmap;
  void *p = take(first, 50 * MIB);
  OK(attune_free(p, first));
  host->backend.vm = &stubborn;
  OK(attune_memory_empty_cache(host));
  host->backend.vm = usual;
  assert_int_equal(statistics().reserved_bytes[0].current, 60 * MIB);
  assert_ptr_equal(take(first, 50 * MIB), p);
  memset(p, 1, 50 * MIB);
  OK(attune_free(p, first));
}

static void a_fraction_is_a_limit(void) {
  double fraction = 0.0;
  OK(attune_memory_configure(host, "per_process_memory_fraction:0.5"));
  OK(attune_memory_get_fraction(host, &fraction));
  assert_true(fraction > 0.49 && fraction < 0.51);
  OK(attune_memory_configure(host, "per_process_memory_fraction:1.0"));
}

TEST(settings) {
  static const char *const bad[][2] = {{"max_split_size_mb:20", "max_split_size_mb"},
                                       {"max_non_split_rounding_mb:20", "a whole number of MB above 20"},
                                       {"max_split_size:5", "max_split_size\""},
                                       {"backend:other", "other"},
                                       {"expandable_segments:yes", "yes"},
                                       {"garbage_collection_threshold:1.5", "1.5"},
                                       {"roundup_power2_divisions:3", "3"},
                                       {"roundup_power2_divisions:[256:1,128:2]", "128"},
                                       {"x", "key:value"},
                                       {"per_process_memory_fraction:0", "0"},
                                       {"large_segment_size_mb:-1", "-1"}};
  for (size_t i = 0; i < AT_COUNT(bad); i++) {
    assert_int_equal(attune_memory_configure(host, bad[i][0]), ATTUNE_INVALID_ARGUMENT);
    says(bad[i][1]);
  }
  a_fraction_is_a_limit();
  assert_int_equal(attune_memory_configure(host, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_memory_configure(host, "nvtx:true"), ATTUNE_UNSUPPORTED);
  at_memory_options o;
  at_memory_options_default(&o);
  OK(at_memory_options_parse(&o, "backend:none", "t"));
  assert_true(o.no_cache);
  OK(at_memory_options_parse(&o, "backend:native,max_split_size_mb:21", "t"));
  assert_true(!o.no_cache && o.max_split == 21 * MIB);
  at_memory_options_default(&o);
  OK(at_memory_options_parse(&o, "roundup_power2_divisions:[1:1,4:4,>:8], max_non_split_rounding_mb:32", "t"));
  assert_int_equal(at_allocator_round(&o, MIB + 1), MIB + 512);
  assert_int_equal(at_allocator_round(&o, 4 * MIB + 1), 5 * MIB);
  assert_int_equal(at_allocator_round(&o, 9 * MIB), 9 * MIB);
  assert_int_equal(at_allocator_round(&o, 9 * MIB + 1), 10 * MIB);
  assert_int_equal(o.max_non_split_rounding, 32 * MIB);
  void *p = take(first, 10);
  OK(attune_memory_configure(host, "poison:false"));
  assert_int_equal(attune_memory_configure(host, "poison:true"), ATTUNE_BUSY);
  OK(attune_memory_configure(host, "roundup_power2_divisions:4"));
  void *q = take(first, 5000);
  size_t bytes = 0;
  OK(attune_memory_range(q, NULL, &bytes));
  assert_int_equal(bytes, 5120);
  OK(attune_free(p, first));
  OK(attune_free(q, first));
}

static char warnings[1024];
static int warning_count;
static void keep_warning(void *user, attune_log_level level, const char *line) {
  (void)user;
  assert_int_equal(level, ATTUNE_LOG_WARNING);
  snprintf(warnings, sizeof warnings, "%s", line);
  warning_count++;
}

/* PyTorch's keys that change nothing are told once; they do not stop the others, and a wrong key is still one. */
TEST(idle_keys_of_pytorch) {
  attune_set_log(keep_warning, NULL, ATTUNE_LOG_WARNING);
  OK(attune_memory_configure(host, "graph_capture_record_stream_reuse:True,roundup_power2_divisions:4"));
  assert_int_equal(warning_count, 1);
  assert_non_null(strstr(warnings, "graph_capture_record_stream_reuse is an option of PyTorch"));
  OK(attune_memory_configure(host, "graph_capture_record_stream_reuse:False"));
  assert_int_equal(warning_count, 1);
  OK(attune_memory_configure(host, "release_lock_on_cudamalloc:True,pinned_use_cuda_host_register:True,"
                                   "pinned_num_register_threads:8,pinned_use_background_threads:True,"
                                   "pinned_reserve_segment_size_mb:0,pinned_max_cached_size_mb:1,"
                                   "pinned_max_round_threshold_mb:1,throw_on_cudamalloc_oom:False"));
  assert_int_equal(warning_count, 4);
  FAILS(attune_memory_configure(host, "pinned_max_cached:1"), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_memory_configure(host, "pinned_num_register_threads:3"), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(warning_count, 4);
  OK(attune_memory_configure(host, "pinned_use_cuda_host_register:False,pinned_num_register_threads:1,"
                                   "pinned_max_cached_size_mb:1000000,pinned_max_round_threshold_mb:1000000"));
  void *p = take(first, 5000);
  size_t bytes = 0;
  OK(attune_memory_range(p, NULL, &bytes));
  assert_int_equal(bytes, 5120);
  OK(attune_free(p, first));
  attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
}

/* Less than 20 MB, as people who use PyTorch have it. */
TEST(small_large_segments) {
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_configure(host, "expandable_segments:false,large_segment_size_mb:12"));
  void *p = take(first, 2 * MIB);
  assert_int_equal(statistics().reserved_bytes[0].current, 12 * MIB);
  void *q = take(first, 9 * MIB);
  assert_int_equal(statistics().reserved_bytes[0].current, 12 * MIB);
  OK(attune_free(p, first));
  OK(attune_free(q, first));
  FAILS(attune_memory_configure(host, "large_segment_size_mb:1"), ATTUNE_INVALID_ARGUMENT);
}

TEST(without_a_cache) {
  OK(attune_memory_configure(host, "backend:none"));
  void *p = take(first, 5 * MIB);
  assert_int_equal(statistics().reserved_bytes[0].current, 5 * MIB);
  OK(attune_free(p, first));
  attune_memory_statistics s = statistics();
  assert_true(s.reserved_bytes[0].current == 0 && s.device_frees == 1);
  assert_int_equal(attune_free(p, first), ATTUNE_NOT_FOUND);
}

typedef struct own_memory {
  int allocs, frees;
  size_t bytes, freed_bytes;
} own_memory;

static void *own_alloc(void *user, size_t bytes, attune_device *device, attune_stream *stream) {
  own_memory *own = user;
  assert_ptr_equal(device, host);
  assert_non_null(stream);
  own->allocs++;
  own->bytes += bytes;
  return bytes == 77 ? NULL : aligned_alloc(512, (bytes + 511) / 512 * 512);
}

static void own_free(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *stream) {
  own_memory *own = user;
  (void)device;
  (void)stream;
  own->freed_bytes += bytes;
  own->frees++;
  free(pointer);
}

TEST(the_programs_allocator) {
  own_memory own = {0};
  attune_allocator functions = {.user = &own, .alloc = own_alloc, .free = own_free}, half = {.alloc = own_alloc};
  assert_int_equal(attune_memory_set_allocator(host, &half), ATTUNE_INVALID_ARGUMENT);
  OK(attune_memory_set_allocator(host, &functions));
  void *p = take(first, 1000), *q = NULL;
  size_t range = 0;
  assert_true(own.allocs == 1 && own.bytes == 1000);
  OK(attune_memory_range(p, NULL, &range));
  assert_int_equal(range, 1000); /* there is no more */
  assert_int_equal(attune_memory_set_allocator(host, NULL), ATTUNE_BUSY);
  FAILS_SAYING(attune_alloc(&q, first, 77), ATTUNE_OUT_OF_MEMORY,
               "the program's allocator of host has no memory for 77 bytes");
  OK(attune_free(p, first));
  assert_true(own.frees == 1 && own.freed_bytes == 1000); /* the same number as alloc was told */
  OK(attune_memory_set_allocator(host, NULL));
}

/* What the program gives was never freed before: it is not looked at; and it goes back at once: nothing is written to
 * it. */
TEST(poison_and_the_programs_allocator) {
  own_memory own = {0};
  const attune_allocator functions = {.user = &own, .alloc = own_alloc, .free = own_free};
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_configure(host, "poison:true"));
  OK(attune_memory_set_allocator(host, &functions));
  void *p = take(first, 1000);
  memset(p, 1, 1000);
  OK(attune_free(p, first));
  assert_true(own.allocs == 1 && own.frees == 1);
  OK(attune_memory_set_allocator(host, NULL));
  OK(attune_memory_configure(host, "poison:false"));
}

TEST(pools_are_apart) {
  own_memory own = {0};
  attune_allocator functions = {.user = &own, .alloc = own_alloc, .free = own_free};
  attune_pool_options options = ATTUNE_POOL_OPTIONS_INIT;
  attune_pool *pool = NULL, *reserve = NULL;
  attune_pool_info info = {0};
  options.allocator = &functions;
  OK(attune_pool_create(&pool, host, &options));
  void *common = take(first, 4096);
  OK(attune_free(common, first));
  OK(attune_pool_begin(pool, first));
  void *p = take(first, 4096);
  assert_ptr_not_equal(p, common);
  assert_int_equal(own.allocs, 1);
  assert_int_equal(attune_pool_end(pool, second), ATTUNE_INVALID_ARGUMENT);
  OK(attune_pool_end(pool, first));
  assert_ptr_equal(take(first, 4096), common);
  OK(attune_pool_get_info(pool, &info));
  assert_true(info.reserved_bytes == 2 * MIB && info.allocated_bytes == 4096);
  attune_pool_destroy(pool);
  memset(p, 1, 4096); /* still the program's */
  OK(attune_free(p, first));
  OK(attune_memory_empty_cache(host));
  assert_int_equal(own.frees, 1);
  OK(attune_free(common, first));
  OK(attune_pool_create(&reserve, host, &(attune_pool_options){.use_on_out_of_memory = 1}));
  OK(attune_pool_begin(reserve, first));
  p = take(first, 50 * MIB);
  OK(attune_pool_end(reserve, first));
  OK(attune_free(p, first));
  OK(attune_memory_set_limit(host, 60 * MIB));
  assert_ptr_equal(take(first, 50 * MIB), p);
  OK(attune_free(p, first));
  attune_pool_destroy(reserve);
}

static int count_pool(void *user, const attune_pool_info *info) {
  (void)info;
  ++*(int *)user;
  return 0;
}

static int pools_now(void) {
  int count = 0;
  OK(attune_memory_each_pool(host, count_pool, &count));
  return count;
}

/* Nobody can end what was begun on it, so its own end does. */
TEST(a_stream_ends_what_it_began) {
  const int before = pools_now();
  for (int i = 0; i < 3; i++) {
    attune_stream *stream = NULL;
    attune_pool *pool = NULL;
    OK(attune_stream_create(&stream, host));
    OK(attune_pool_create(&pool, host, NULL));
    for (int depth = 0; depth < 2; depth++) OK(attune_pool_begin(pool, stream));
    OK(attune_free(take(stream, 4096), stream));
    attune_stream_destroy(stream);
    attune_pool_destroy(pool);
  }
  OK(attune_memory_empty_cache(host));
  assert_int_equal(pools_now(), before);
}

TEST(a_capture_has_its_pool) {
  attune_pool *pool = NULL;
  void *before = take(first, MIB), *shared = take(first, MIB);
  OK(attune_record_use(shared, second));
  OK(attune_free(before, first));
  OK(at_pool_create_private(&pool, host));
  OK(at_memory_capture_begin(first, pool));
  assert_int_equal(at_memory_capture_begin(first, pool), ATTUNE_CAPTURING);
  void *p = take(first, MIB);
  assert_ptr_not_equal(p, before);
  OK(attune_free(p, first));
  assert_ptr_equal(take(first, MIB), p);
  OK(attune_free(shared, first)); /* no event is recorded now */
  assert_int_equal(statistics().active[0].current, 2);
  assert_int_equal(attune_memory_empty_cache(host), ATTUNE_CAPTURING);
  at_memory_capture_end(first);
  void *q = take(first, MIB);
  assert_ptr_not_equal(q, p);
  OK(attune_free(p, first));
  OK(attune_free(q, first));
  at_pool_release(pool);
  OK(attune_memory_empty_cache(host));
  assert_int_equal(statistics().reserved_bytes[0].current, 0);
}

TEST(counters_add_up) {
  void *small = take(first, 1000), *large = take(second, 5 * MIB);
  OK(attune_free(small, first));
  OK(attune_free(large, second));
  attune_memory_statistics s = statistics();
  assert_true(s.allocation[0].peak == 2 && s.allocation[1].peak == 1 && s.allocation[2].peak == 1);
  assert_true(s.requested_bytes[0].peak == 1000 + 5 * MIB && s.allocated_bytes[1].peak == 1024);
  assert_true(s.allocation[0].current == 0 && s.allocation[0].allocated == 2 && s.allocation[0].freed == 2);
  OK(attune_memory_reset_peaks(host));
  OK(attune_memory_reset_accumulated(host));
  s = statistics();
  assert_true(s.allocation[0].peak == 0 && s.allocation[0].allocated == 0 &&
              s.reserved_bytes[0].peak == s.reserved_bytes[0].current);
  for (int i = 0; i < 10; i++) OK(attune_free(take(first, 1000), first));
  s = statistics();
  assert_true(s.allocation[0].peak == 1 && s.allocation[0].allocated == 10 && s.requested_bytes[0].allocated == 10000);
  char *text = NULL;
  OK(attune_memory_summary(&text, host, 0));
  assert_non_null(strstr(text, "reserved memory"));
  free(text);
  assert_int_equal(attune_memory_get_statistics(NULL, &s), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_memory_get_statistics(host, NULL), ATTUNE_INVALID_ARGUMENT);
}

enum { THREADS = 6, TURNS = 3000 };
typedef struct worker {
  attune_stream *own;
  uint64_t seed;
  int failed;
} worker;

/* Each block is marked at both ends by its thread, and checked when it goes. */
static void *churn(void *arg) {
  worker *w = arg;
  uint64_t *blocks[32] = {0}, x = w->seed;
  for (int turn = 0; turn < TURNS; turn++) {
    x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
    size_t slot = x >> 59, bytes = 64 + (x >> 20) % (x >> 62 ? 5000 : 3 * MIB);
    attune_stream *stream = slot % 4 ? w->own : attune_stream_default(host);
    if (blocks[slot]) {
      w->failed |= blocks[slot][0] != w->seed + slot || attune_free(blocks[slot], stream) != ATTUNE_OK;
      blocks[slot] = NULL;
    } else if (attune_alloc((void **)&blocks[slot], stream, bytes) == ATTUNE_OK) {
      blocks[slot][0] = w->seed + slot;
    } else {
      w->failed = 1;
    }
    if (turn % 500 == 499) w->failed |= attune_memory_empty_cache(host) != ATTUNE_OK;
  }
  for (size_t slot = 0; slot < 32; slot++)
    w->failed |= attune_free(blocks[slot], slot % 4 ? w->own : attune_stream_default(host)) != ATTUNE_OK;
  return NULL;
}

TEST(threads_share_the_device) {
  worker workers[THREADS];
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++) {
    workers[i] = (worker){.seed = 1000 * i + 1};
    OK(attune_stream_create(&workers[i].own, host));
    assert_int_equal(pthread_create(&threads[i], NULL, churn, &workers[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(workers[i].failed, 0);
    attune_stream_destroy(workers[i].own);
  }
  attune_memory_statistics s = statistics();
  assert_int_equal(s.allocation[0].current, 0);
  assert_int_equal(s.allocation[0].allocated, s.allocation[0].freed);
}

static int in_child(void *inherited) {
  void *p = NULL, *q = NULL;
  attune_stream *stream = NULL, *inline_stream = attune_stream_default(host);
  if (attune_alloc(&p, first, 1000) != ATTUNE_DEVICE_ERROR || p) return 1;
  if (attune_alloc(&p, inline_stream, 1000) != ATTUNE_OK) return 2;
  memset(p, 1, 1000);
  if (attune_free(p, inline_stream) != ATTUNE_OK) return 3;
  if (attune_stream_create(&stream, host) != ATTUNE_OK || attune_alloc(&q, stream, 3 * MIB) != ATTUNE_OK) return 4;
  if (attune_free(inherited, stream) != ATTUNE_OK || attune_free(q, stream) != ATTUNE_OK) return 5;
  attune_stream_destroy(stream);
  return attune_memory_empty_cache(host) == ATTUNE_OK ? 0 : 6;
}

/* The sanitizers do not survive a fork beside other threads. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORKS 0
#elif defined(__has_feature)
#define FORKS !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define FORKS 1
#endif

TEST(a_child_of_fork_goes_on) {
  if (!FORKS) {
    print_message("skipped: the sanitizers do not survive a fork beside other threads\n");
    skip();
  }
  void *p = take(first, 2 * MIB), *waiting = take(first, MIB);
  int end = 0;
  OK(attune_free(take(attune_stream_default(host), 1000), attune_stream_default(host)));
  OK(attune_record_use(waiting, second));
  hold(second);
  OK(attune_free(waiting, first));
  pid_t child = fork();
  if (child == 0) {
    alarm(600);
    _exit(in_child(p));
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_true(WIFEXITED(end));
  assert_int_equal(WEXITSTATUS(end), 0);
  let_go(second);
  OK(attune_free(p, first));
}

int main(void) {
  return RUN_TESTS_EACH(begin, drop_all, open_streams, close_streams);
}
