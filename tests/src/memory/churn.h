/* SPDX-License-Identifier: Apache-2.0
 * churn.h: everything that a program can make and destroy, made and destroyed for as long as one likes: memory of the
 * process and of the device, attune's own figures and descriptors stay as they are after the first rounds. The number
 * of rounds is ATTUNE_TEST_ROUNDS, or what the test says. */
#ifndef TESTS_CHURN_H
#define TESTS_CHURN_H

#include <attune/attune.h>
#include <attune/graph.h>
#include <attune/pinned.h>

#include "tests/support/check.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static attune_device *device;
static attune_tuner *tuner;
static attune_stream *stream; /* of the device; lives through all rounds */
static int rounds;            /* of each kind */

typedef struct footprint {
  long heap, resident;     /* bytes of the process: what malloc handed out; pages in memory */
  int descriptors;         /* open files */
  uint64_t reserved, used; /* bytes of the device: attune's, all */
} footprint;

static inline long resident_bytes(void) {
  long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%ld %ld", &pages, &resident), 2);
  fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

static inline int open_descriptors(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

/* Bytes of the device in use, whoever has them; the test of a GPU sets it. */
static uint64_t (*device_bytes)(void);

static inline footprint look(void) {
  attune_memory_statistics statistics = {0};
  OK(attune_device_synchronize(device));
  OK(attune_memory_get_statistics(device, &statistics));
  const struct mallinfo2 heap = mallinfo2();
  return (footprint){.heap = (long)(heap.uordblks + heap.hblkhd),
                     .resident = resident_bytes(),
                     .descriptors = open_descriptors(),
                     .reserved = statistics.reserved_bytes[ATTUNE_MEMORY_ALL].current,
                     .used = device_bytes ? device_bytes() : 0};
}

/* Runs `make_and_destroy` for all rounds; the first tenth may leave caches behind. A round may leave nothing: what is
 * allowed in all is less than a byte a round of 100,000, and what a process's own bookkeeping takes now and then. */
static inline void churn(const char *what, int count, void (*make_and_destroy)(int round)) {
  const int first = count / 10 + 20;
  for (int i = 0; i < first; i++) make_and_destroy(i);
  const footprint before = look();
  for (int i = 0; i < count; i++) make_and_destroy(first + i);
  const footprint after = look();
  printf("%-28s %7d rounds: heap %+ld, resident %+ld KiB, reserved %+lld, device %+lld, descriptors %+d\n", what, count,
         after.heap - before.heap, (after.resident - before.resident) / KIB,
         (long long)(after.reserved - before.reserved), (long long)(after.used - before.used),
         after.descriptors - before.descriptors);
  assert_true(after.heap - before.heap < 96 * KIB);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
  assert_true(after.resident - before.resident < 8L * MIB);
#endif
  assert_true(after.reserved <= before.reserved);
  assert_true(after.used <= before.used);
  assert_int_equal(after.descriptors, before.descriptors);
}

static inline void one_stream(int round) {
  attune_stream *made = NULL;
  void *memory = NULL;
  OK(attune_stream_create(&made, device));
  OK(attune_alloc(&memory, made, (size_t)(1 + round % 7) * MIB / 4));
  OK(attune_fill(made, memory, 1, 512));
  OK(attune_free(memory, made));
  attune_stream_destroy(made);
}

static inline void one_event(int round) {
  attune_event *made = NULL;
  OK(attune_event_create(&made, device, &(attune_event_options){.no_timing = round & 1, .blocking = round & 2}));
  OK(attune_event_record(made, stream));
  if (round % 5 == 0) OK(attune_event_synchronize(made));
  attune_event_destroy(made);
}

static inline attune_status give_work(void *user, attune_stream *on) {
  void *small = NULL, *large = NULL;
  const size_t bytes = *(const size_t *)user;
  attune_status status = attune_alloc(&small, on, 1000);
  if (status == ATTUNE_OK) status = attune_alloc(&large, on, bytes);
  if (status == ATTUNE_OK) status = attune_fill(on, large, 1, 4096);
  if (status == ATTUNE_OK) status = attune_copy(on, small, large, 1000);
  if (status == ATTUNE_OK) status = attune_free(small, on);
  return status == ATTUNE_OK ? attune_free(large, on) : status;
}

/* Captured, replayed, destroyed; some are reset on the way, some share the pool of another. */
static inline void one_graph(int round) {
  attune_graph *made = NULL, *other = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  size_t bytes = (size_t)(1 + round % 5) * MIB;
  OK(attune_graph_create(&made, device));
  OK(attune_graph_capture_callback(made, stream, NULL, give_work, &bytes));
  OK(attune_graph_replay(made, stream));
  if (round % 3 == 0) {
    options.share = made;
    OK(attune_graph_create(&other, device));
    OK(attune_graph_capture_callback(other, stream, &options, give_work, &bytes));
    OK(attune_graph_replay(other, stream));
  }
  OK(attune_stream_synchronize(stream));
  if (round % 4 == 0) {
    OK(attune_graph_reset(made));
    OK(attune_graph_capture_callback(made, stream, NULL, give_work, &bytes));
  }
  attune_graph_destroy(made);
  attune_graph_destroy(other);
}

/* A capture that fails, and a graph that goes in the middle of one. */
static inline void one_broken_graph(int round) {
  attune_graph *made = NULL;
  attune_stream *on = NULL;
  void *memory = NULL;
  OK(attune_stream_create(&on, device));
  OK(attune_graph_create(&made, device));
  OK(attune_graph_capture_begin(made, on, NULL));
  OK(attune_alloc(&memory, on, MIB));
  OK(attune_free(memory, on));
  if (round & 1) {
    attune_graph_destroy(made);
    attune_stream_destroy(on);
  } else {
    attune_stream_destroy(on);
    attune_graph_destroy(made);
  }
}

static inline void one_generator(int round) {
  attune_generator *made = NULL;
  void *memory = NULL;
  OK(attune_generator_create(&made, (uint64_t)round));
  OK(attune_alloc(&memory, stream, 4096));
  OK(attune_random_uniform(made, stream, memory, ATTUNE_F32, 1024, 0.0, 1.0));
  OK(attune_free(memory, stream));
  if (round % 8 == 0) { /* in a graph, which holds it for as long as it lives */
    attune_graph *graph = NULL;
    size_t bytes = MIB;
    OK(attune_graph_create(&graph, device));
    OK(attune_graph_register_generator(graph, made));
    OK(attune_graph_capture_callback(graph, stream, NULL, give_work, &bytes));
    OK(attune_graph_replay(graph, stream));
    OK(attune_stream_synchronize(stream));
    attune_graph_destroy(graph);
  }
  attune_generator_destroy(made);
}

static inline void one_pool(int round) {
  attune_pool *made = NULL;
  void *memory = NULL;
  OK(attune_pool_create(&made, device, &(attune_pool_options){.no_split = round & 1}));
  OK(attune_pool_begin(made, stream));
  OK(attune_alloc(&memory, stream, (size_t)(1 + round % 3) * MIB));
  OK(attune_pool_end(made, stream));
  if (round & 2) {
    OK(attune_free(memory, stream));
    attune_pool_destroy(made);
  } else { /* the memory outlives the pool */
    attune_pool_destroy(made);
    OK(attune_free(memory, stream));
  }
}

/* Memory of the program's own allocator. */
static int segments;
static inline void *take_segment(void *user, size_t bytes, attune_device *of, attune_stream *on) {
  (void)user, (void)of, (void)on;
  segments++;
  return aligned_alloc(512, bytes);
}
static inline void give_segment(void *user, void *memory, size_t bytes, attune_device *of, attune_stream *on) {
  (void)user, (void)bytes, (void)of, (void)on;
  segments--;
  free(memory);
}

static inline void one_own_pool(int round) {
  const attune_allocator own = {.alloc = take_segment, .free = give_segment};
  attune_pool *made = NULL;
  void *memory = NULL;
  OK(attune_pool_create(&made, device, &(attune_pool_options){.allocator = &own}));
  OK(attune_pool_begin(made, stream));
  OK(attune_alloc(&memory, stream, 3 * MIB));
  OK(attune_pool_end(made, stream));
  if (round & 1) OK(attune_free(memory, stream));
  attune_pool_destroy(made);
  if (!(round & 1)) OK(attune_free(memory, stream));
  assert_int_equal(segments, 0);
}

static void *operands[3]; /* of plans; made at first use */

static inline void free_operands(void) {
  for (int i = 0; i < 3; i++) {
    OK(attune_free(operands[i], stream));
    operands[i] = NULL;
  }
}

static inline void one_plan(int round) {
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = 8 + round % 16, .n = 16, .k = 16};
  attune_plan *made = NULL;
  for (int i = 0; i < 3; i++)
    if (!operands[i]) OK(attune_alloc(&operands[i], stream, 64 * KIB));
  const attune_gemm_operands o = {.alpha = 1.0, .a = operands[0], .b = operands[1], .d = operands[2]};
  OK(attune_gemm_plan_create(&made, tuner, stream, &problem, &o));
  if (round % 16 == 0) {
    OK(attune_gemm_plan_run(made, stream, &o));
    OK(attune_stream_synchronize(stream)); /* the plan lives until its work is done */
  }
  attune_plan_destroy(made);
}

static inline void one_tuner(int round) {
  attune_tuner_options options = {.database = round & 1 ? "" : "churn.db", .mode = ATTUNE_MODE_CACHED};
  attune_tuner *made = NULL;
  OK(attune_tuner_create(&made, &options));
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = 8, .n = 8, .k = 8};
  void *memory = NULL;
  OK(attune_alloc(&memory, stream, 4096));
  char *bytes = memory;
  const attune_gemm_operands o = {.alpha = 1.0, .a = bytes, .b = bytes + 1024, .d = bytes + 2048};
  OK(attune_gemm(made, stream, &problem, &o));
  OK(attune_stream_synchronize(stream));
  OK(attune_free(memory, stream));
  attune_tuner_destroy(made);
}

static inline void one_workload(int round) {
  attune_workload *made = NULL;
  (void)round;
  OK(attune_workload_read(&made, AT_SOURCE_DIR "/bench/workloads/host.csv"));
  assert_true(attune_workload_size(made) > 0);
  attune_workload_destroy(made);
}

static inline void one_pinned(int round) {
  void *memory = NULL;
  OK(attune_pinned_alloc(&memory, device, (size_t)(1 + round % 9) * 4 * KIB));
  OK(attune_pinned_record_use(memory, stream));
  OK(attune_pinned_free(memory));
  if (round % 8 == 0) OK(attune_stream_synchronize(stream)); /* it is free again when the stream is done with it */
}

static inline void one_text(int round) {
  char *text = NULL;
  OK(round & 1 ? attune_memory_snapshot(&text, device) : attune_memory_summary(&text, device, 0));
  free(text);
  OK(attune_memory_record_history(device, &(attune_history_options){.entries = (size_t)(round % 2) * 100}));
}

/* Modes change what a miss does, and take back the plans that were guesses. */
static inline void one_mode(int round) {
  OK(attune_tuner_set_mode(tuner, round & 1 ? ATTUNE_MODE_OFF : ATTUNE_MODE_CACHED));
  one_plan(round);
}

#endif
