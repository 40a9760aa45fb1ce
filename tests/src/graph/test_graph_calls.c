/* SPDX-License-Identifier: Apache-2.0
 * test_graph_calls.c: calls that were captured in a graph count again at each replay, in profiles and in the recorded
 * workload, whichever way they were captured, and whatever is destroyed first. */
#include "tests/support/check.h"
#include "tests/support/folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <attune/attune.h>

#include "tests/support/toy/toy_op.h"
#include "tuning/measure/operand_set.h"

#define OTHER TOY("f32 5x3")

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;
static attune_graph *graph;
static char folder[] = "/tmp/attune-test-calls-XXXXXX", database[64];

/* A problem with operands. */
typedef struct subject {
  at_key key;
  at_operand_set *set;
} subject;
static subject usual, other;
static at_random *numbers;

static void open_subject(subject *s, const char *problem) {
  s->key = toy_key(problem, device);
  OK(at_operand_set_create(&s->set, &toy_op, s->key.words + 1, attune_stream_default(device), numbers, 1, SIZE_MAX,
                           false));
}

FIXTURE(fresh) {
  toy_reset();
  at_copy_text(toy_base, sizeof toy_base, "ns=100");
  (void)remove(database);
  OK(at_tuner_create(&tuner, &(attune_tuner_options){.database = database, .mode = ATTUNE_MODE_RECORD}, toy_ops, 1));
  OK(attune_stream_create(&stream, device));
  OK(attune_graph_create(&graph, device));
  return 0;
}

FIXTURE(close_all) {
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return 0;
}

static void call(const subject *s) {
  OK(toy_call(tuner, stream, s->key.words + 1, s->set->operands));
}

static void capture(attune_graph *into, const attune_capture_options *options, int usual_calls, int other_calls) {
  OK(attune_graph_capture_begin(into, stream, options));
  for (int i = 0; i < usual_calls; i++) call(&usual);
  for (int i = 0; i < other_calls; i++) call(&other);
  OK(attune_graph_capture_end(into, stream));
}

static void replay(attune_graph *what, int times) {
  for (int i = 0; i < times; i++) OK(attune_graph_replay(what, stream));
  OK(attune_stream_synchronize(stream));
}

typedef struct sought {
  const char *problem;
  uint64_t calls;
} sought;

static int take(void *user, const attune_profile_entry *entry) {
  sought *s = user;
  if (strstr(entry->problem, s->problem)) s->calls += entry->calls;
  return 0;
}

static uint64_t calls_of(const char *problem) {
  sought s = {problem, 0};
  OK(attune_tuner_profile(tuner, take, &s, NULL));
  return s.calls;
}

static int64_t recorded_of(const char *problem) {
  attune_workload *workload = NULL;
  int64_t count = 0;
  OK(attune_workload_recorded(&workload, tuner, device));
  for (size_t i = 0; i < attune_workload_size(workload); i++)
    if (strstr(attune_workload_at(workload, i)->problem, problem)) count += attune_workload_at(workload, i)->count;
  attune_workload_destroy(workload);
  return count;
}

#define EXPECT_CALLS(problem, wanted)                                                        \
  do {                                                                                       \
    const uint64_t calls = calls_of(problem);                                                \
    if (calls != (wanted)) fail_msg("%llu calls of %s", (unsigned long long)calls, problem); \
  } while (0)

/* The captured calls are calls themselves. */
TEST(replays_count) {
  for (int i = 0; i < 3; i++) call(&usual); /* found by the thread, once captured calls come */
  capture(graph, NULL, 2, 1);
  EXPECT_CALLS("f32 9x7", 5);
  replay(graph, 10);
  EXPECT_CALLS("f32 9x7", 25);
  EXPECT_CALLS("f32 5x3", 11);
  replay(graph, 1);
  EXPECT_CALLS("f32 9x7", 27);
  EXPECT_CALLS("f32 5x3", 12);
  assert_int_equal(recorded_of("f32 9x7"), 27);
  assert_int_equal(recorded_of("f32 5x3"), 12);
}

TEST(runs_of_plans_count) {
  attune_plan *plan = NULL;
  OK(toy_plan_create(&plan, tuner, stream, usual.key.words + 1, usual.set->operands));
  for (int i = 0; i < 2; i++) OK(toy_plan_run(plan, stream, usual.set->operands));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  for (int i = 0; i < 3; i++) OK(toy_plan_run(plan, stream, usual.set->operands));
  OK(attune_graph_capture_end(graph, stream));
  replay(graph, 4);
  attune_plan_destroy(plan);
  EXPECT_CALLS("f32 9x7", 17);
}

/* A clone's replays are its own; work that is captured anew in place of other work counts in its place. */
static attune_status call_other(void *user, attune_stream *on) {
  (void)user, (void)on;
  call(&other);
  return ATTUNE_OK;
}

TEST(clones_and_updates_count) {
  attune_graph *clone = NULL;
  capture(graph, &(attune_capture_options){.keep_graph = 1}, 1, 0);
  replay(graph, 2);
  OK(attune_graph_clone(&clone, graph));
  replay(clone, 3);
  attune_graph_destroy(clone);
  EXPECT_CALLS("f32 9x7", 6);
  OK(attune_graph_update(graph, stream, call_other, NULL, NULL));
  replay(graph, 5);
  EXPECT_CALLS("f32 9x7", 6);
  EXPECT_CALLS("f32 5x3", 6);
  OK(attune_graph_reset(graph));
  EXPECT_CALLS("f32 5x3", 6);
}

/* Of a graph that is gone the replays stay; of a tuner that is gone nobody asks. */
TEST(either_may_go_first) {
  capture(graph, NULL, 1, 0);
  replay(graph, 3);
  attune_graph_destroy(graph);
  EXPECT_CALLS("f32 9x7", 4);
  OK(attune_graph_create(&graph, device));
  capture(graph, NULL, 1, 0);
  replay(graph, 6);
  attune_tuner_destroy(tuner);
  OK(at_tuner_create(&tuner, &(attune_tuner_options){.database = database, .mode = ATTUNE_MODE_CACHED}, toy_ops, 1));
  assert_int_equal(recorded_of("f32 9x7"), 11);
  attune_graph_destroy(graph);
  OK(attune_graph_create(&graph, device));
}

/* A capture that fails leaves nothing that counts. */
static attune_status fail_after_a_call(void *user, attune_stream *on) {
  (void)user, (void)on;
  call(&usual);
  return at_fail(ATTUNE_INTERNAL, "no more");
}

TEST(failed_captures_do_not_count) {
  assert_int_equal(attune_graph_capture_callback(graph, stream, NULL, fail_after_a_call, NULL), ATTUNE_INTERNAL);
  capture(graph, NULL, 0, 1);
  replay(graph, 2);
  EXPECT_CALLS("f32 9x7", 1);
  EXPECT_CALLS("f32 5x3", 3);
}

/* Graphs replayed before a fork belong to the parent. */
TEST(a_child_counts_its_own) {
  capture(graph, NULL, 1, 0);
  replay(graph, 3);
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    sought s = {"f32 9x7", 0};
    _exit(attune_tuner_profile(tuner, take, &s, NULL) == ATTUNE_OK && s.calls == 0 ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  EXPECT_CALLS("f32 9x7", 4);
}

FIXTURE(remove_all) {
  at_operand_set_destroy(usual.set);
  at_operand_set_destroy(other.set);
  at_random_destroy(numbers);
  return folder_remove(folder);
}

int main(void) {
  if (!mkdtemp(folder) || attune_device_get(&device, "host") != ATTUNE_OK || at_random_create(&numbers, 5) != ATTUNE_OK)
    return 1;
  snprintf(database, sizeof database, "%s/t.db", folder);
  toy_reset();
  open_subject(&usual, TOY_PROBLEM);
  open_subject(&other, OTHER);
  return RUN_TESTS_EACH(fresh, close_all, NULL, remove_all);
}
