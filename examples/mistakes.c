/* SPDX-License-Identifier: Apache-2.0
 * mistakes.c: finding mistakes: the race check, waits that the program did not ask for, errors at the call that causes
 * them, marks in a profiler's timeline. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 16 };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

static void hear(void *user, attune_log_level level, const char *line) {
  (void)level;
  ++*(int *)user;
  printf("log: %s\n", line);
}

static void see_race(void *user, const attune_race *race) {
  ++*(int *)user;
  printf("race: %s writes what %s wrote; %s\n", race->second.call, race->first.call, race->remedy);
}

/* Two streams write to one piece of memory: first in no order, then in one that only the program knows of. */
static int find_race(attune_stream *one, attune_stream *other, void *memory) {
  int seen = 0;
  check(attune_set_race_check(1, see_race, &seen));
  check(attune_fill(one, memory, 1, BYTES));
  check(attune_fill(other, memory, 2, BYTES));
  check(attune_stream_synchronize(one));
  check(attune_stream_synchronize(other));
  const uint64_t races = attune_race_count();

  const attune_use use = {"numbers", memory, BYTES, ATTUNE_WRITES};
  check(attune_note_use(one, "my_kernel", &use, 1)); /* the program launched it */
  check(attune_note_wait(other, one));               /* and ordered the streams by its own event */
  check(attune_fill(other, memory, 3, BYTES));
  const int good = attune_get_race_check() && seen == 1 && races == 1 && attune_race_count() == 1;
  check(attune_set_race_check(0, NULL, NULL));
  return good;
}

/* A copy from pageable memory makes the program wait for a GPU; on the host nothing waits. */
static int find_wait(attune_stream *stream, void *memory) {
  static char pageable[BYTES];
  const attune_sync_debug before = attune_get_sync_debug();
  int lines = 0;
  attune_set_log(hear, &lines, ATTUNE_LOG_WARNING);
  check(attune_set_sync_debug(ATTUNE_SYNC_DEBUG_WARN));
  check(attune_copy(stream, memory, pageable, BYTES));
  check(attune_set_sync_debug(before));
  attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
  return lines == (attune_stream_native(stream) ? 1 : 0);
}

/* The failure is this thread's latest until it is cleared. */
static int read_error(attune_stream *stream) {
  const int before = attune_get_launch_blocking();
  check(attune_set_launch_blocking(1)); /* a kernel's failure is its call's */
  const attune_status failed = attune_copy(stream, NULL, NULL, BYTES);
  check(attune_set_launch_blocking(before));
  printf("%s: \"%s\", CUDA's number %d\n", attune_status_string(attune_last_status()), attune_last_message(),
         attune_last_cuda_error());
  return failed == ATTUNE_INVALID_ARGUMENT && attune_clear_error() == failed && attune_last_status() == ATTUNE_OK;
}

/* Ranges that nsys and ncu show; without a profiler they cost next to nothing. */
static int mark(attune_stream *stream, void *memory) {
  const int before = attune_get_trace(), traced = attune_set_trace(1) == ATTUNE_OK; /* attune's own calls, too */
  const int profiled = attune_profiler_start() == ATTUNE_OK;
  const int depth = attune_trace_push("step");
  attune_trace_mark("before the fill");
  const uint64_t range = attune_trace_start("fill"); /* may end in another thread */
  check(attune_fill(stream, memory, 0, BYTES));
  attune_trace_end(range);
  const int left = attune_trace_pop();
  if (profiled) check(attune_profiler_stop());
  if (traced) check(attune_set_trace(before));
  return depth == left || depth < 0;
}

int main(void) {
  attune_device *device = NULL;
  attune_stream *one = NULL, *other = NULL;
  void *memory = NULL;
  check(attune_device_get(&device, "best"));
  check(attune_stream_create(&one, device));
  check(attune_stream_create(&other, device));
  check(attune_alloc(&memory, one, BYTES));
  check(attune_stream_synchronize(one));
  int good = find_race(one, other, memory);
  good = find_wait(one, memory) && good;
  good = read_error(one) && good;
  good = mark(one, memory) && good;
  check(attune_free(memory, one));
  attune_stream_destroy(other);
  attune_stream_destroy(one);
  return good ? 0 : 1;
}
