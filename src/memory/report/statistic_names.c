/* SPDX-License-Identifier: Apache-2.0
 * statistic_names.c: the statistics as names and values, under PyTorch's names and in the order of the alphabet. */
#include <attune/snapshot.h>

#include "src/base/support.h"

/* A figure of three sums, each of four values, in the order of attune_memory_figure's fields and of the indices. */
#define FOUR(name) \
  { name ".current", name ".peak", name ".allocated", name ".freed" }
#define TWELVE(name) \
  { FOUR(name ".all"), FOUR(name ".small_pool"), FOUR(name ".large_pool") }

typedef struct listener {
  attune_statistic_fn fn;
  void *user;
  int stopped;
} listener;

static void tell(listener *to, const char *name, uint64_t value) {
  if (!to->stopped) to->stopped = to->fn(to->user, name, value > INT64_MAX ? -1 : (int64_t)value);
}

static void tell_four(listener *to, const char *const names[4], const attune_memory_figure *figure) {
  tell(to, names[2], figure->allocated);
  tell(to, names[0], figure->current);
  tell(to, names[3], figure->freed);
  tell(to, names[1], figure->peak);
}

static void tell_twelve(listener *to, const char *const names[3][4], const attune_memory_figure figures[3]) {
  static const int order[] = {ATTUNE_MEMORY_ALL, ATTUNE_MEMORY_LARGE, ATTUNE_MEMORY_SMALL};
  for (size_t i = 0; i < AT_COUNT(order); i++) tell_four(to, names[order[i]], &figures[order[i]]);
}

static void tell_memory(listener *to, const attune_memory_statistics *s) {
  static const char *const names[][3][4] = {
      TWELVE("active"),          TWELVE("active_bytes"),   TWELVE("allocated_bytes"),
      TWELVE("allocation"),      TWELVE("inactive_split"), TWELVE("inactive_split_bytes"),
      TWELVE("requested_bytes"), TWELVE("reserved_bytes"), TWELVE("segment")};
  static const char *const oversize[][4] = {FOUR("oversize_allocations"), FOUR("oversize_segments")};
  const attune_memory_figure *figures[] = {s->active,          s->active_bytes,   s->allocated_bytes,
                                           s->allocation,      s->inactive_split, s->inactive_split_bytes,
                                           s->requested_bytes, s->reserved_bytes, s->segment};
  for (int i = 0; i < 6; i++) tell_twelve(to, names[i], figures[i]);
  tell(to, "max_split_size", s->max_split_bytes);
  tell(to, "num_alloc_retries", s->alloc_retries);
  tell(to, "num_device_alloc", s->device_allocs);
  tell(to, "num_device_free", s->device_frees);
  tell(to, "num_oom_rejections", s->limit_rejections);
  tell(to, "num_ooms", s->out_of_memory);
  tell(to, "num_sync_all_streams", s->synchronizations);
  tell_four(to, oversize[0], &s->oversize_allocations);
  tell_four(to, oversize[1], &s->oversize_segments);
  for (int i = 6; i < 9; i++) tell_twelve(to, names[i], figures[i]);
}

attune_status attune_memory_each_statistic(attune_device *device, attune_statistic_fn fn, void *user) {
  attune_memory_statistics s = {0};
  listener to = {.fn = fn, .user = user};
  AT_REQUIRE_AS(fn, "be a function");
  attune_status status = attune_memory_get_statistics(device, &s);
  if (status == ATTUNE_OK) tell_memory(&to, &s);
  return status;
}

static void tell_times(listener *to, const char *const names[5], uint64_t total_ns, uint64_t count, uint64_t most_ns,
                       uint64_t least_ns) {
  tell(to, names[0], count ? total_ns / count / 1000 : 0);
  tell(to, names[1], count);
  tell(to, names[2], most_ns / 1000);
  tell(to, names[3], least_ns / 1000);
  tell(to, names[4], total_ns / 1000);
}

#define TIMES(name) \
  { name ".avg", name ".count", name ".max", name ".min", name ".total" }

static void tell_pinned(listener *to, const attune_pinned_statistics *s) {
  static const char *const names[][4] = {FOUR("active_bytes"), FOUR("active_requests"), FOUR("allocated_bytes"),
                                         FOUR("allocations"),  FOUR("reserved_bytes"),  FOUR("segment")};
  static const char *const times[][5] = {TIMES("host_alloc_time"), TIMES("host_free_time")};
  tell_four(to, names[0], &s->active_bytes);
  tell_four(to, names[1], &s->active);
  tell_four(to, names[2], &s->allocated_bytes);
  tell_four(to, names[3], &s->allocation);
  tell_times(to, times[0], s->host_alloc_ns, s->host_allocs, s->host_alloc_most_ns, s->host_alloc_least_ns);
  tell_times(to, times[1], s->host_free_ns, s->host_frees, s->host_free_most_ns, s->host_free_least_ns);
  tell(to, "num_host_alloc", s->host_allocs);
  tell(to, "num_host_free", s->host_frees);
  tell_four(to, names[4], &s->reserved_bytes);
  tell_four(to, names[5], &s->segment);
}

attune_status attune_pinned_each_statistic(attune_device *device, attune_statistic_fn fn, void *user) {
  attune_pinned_statistics s = {0};
  listener to = {.fn = fn, .user = user};
  AT_REQUIRE_AS(fn, "be a function");
  attune_status status = attune_pinned_get_statistics(device, &s);
  if (status == ATTUNE_OK) tell_pinned(&to, &s);
  return status;
}
