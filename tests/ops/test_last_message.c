/* SPDX-License-Identifier: Apache-2.0
 * test_last_message.c: a call that succeeds leaves the thread's message alone, also where something fails inside it: a
 * database that is not there, a winner that this build does not have, a candidate that is refused, memory that is made
 * room for, work in flight. */
#include "tests/support/check.h"
#include "tests/support/decision.h"
#include "tests/support/folder.h"

#include <attune/attune.h>
#include <attune/tools.h>

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/toy/toy_clock.h"

static char folder[] = "/tmp/attune-test-message-XXXXXX", database[128], known[512];
static attune_device *host;

/* A failing call, whose message must stand from then on. */
static void fail_known(void) {
  attune_device *none = NULL;
  assert_int_equal(attune_device_get(&none, "toaster"), ATTUNE_INVALID_ARGUMENT);
  snprintf(known, sizeof known, "%s", attune_last_message());
}

static void assert_stands(const char *call) {
  if (strcmp(attune_last_message(), known) != 0)
    fail_msg("%s left the message \"%s\"; should have left \"%s\"", call, attune_last_message(), known);
}

#undef OK /* here also that the message stands */
#define OK(call)                                                                         \
  do {                                                                                   \
    const attune_status ok_status = (call);                                              \
    if (ok_status != ATTUNE_OK) fail_msg("%s failed: %s", #call, attune_last_message()); \
    assert_stands(#call);                                                                \
  } while (0)
#define DO(call)          \
  do {                    \
    call;                 \
    assert_stands(#call); \
  } while (0)

static attune_tuner *tuner_of(const char *path, attune_mode mode) {
  attune_tuner *tuner = NULL;
  OK(at_tuner_create(&tuner, &(attune_tuner_options){.database = path, .mode = mode}, toy_ops, 1));
  return tuner;
}

static void dispatch(attune_tuner *tuner, const char *problem) {
  const at_key key = toy_key(problem, host);
  const at_plan *plan = NULL;
  OK(at_dispatch_as(tuner, &toy_op, &key, 0, attune_stream_default(host), &plan));
}

static int take_library(void *user, const attune_library *library) {
  (void)user, (void)library;
  return 0;
}
static int take_implementation(void *user, const char *implementation, int version, int configurations) {
  (void)user, (void)implementation, (void)version, (void)configurations;
  return 0;
}
static int take_winner(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  (void)user, (void)decision, (void)fingerprint, (void)valid;
  return 0;
}

TEST(devices) {
  char fingerprint[4096];
  attune_device *any = NULL;
  attune_device_properties properties = {0};
  for (int i = 0; i < attune_device_count(); i++) OK(attune_device_at(&any, i));
  OK(attune_device_get(&any, "best"));
  OK(attune_device_get_properties(host, &properties));
  OK(attune_device_fingerprint(host, fingerprint, sizeof fingerprint));
  OK(attune_device_libraries(host, take_library, NULL));
  OK(attune_device_memory_info(host, NULL, NULL));
  OK(attune_device_set_current(host));
  OK(attune_device_synchronize(host));
}

/* Databases that cannot be used, or hold what cannot be used. */
TEST(databases) {
  char bad[160];
  snprintf(bad, sizeof bad, "%s/none/at/all.db", folder);
  attune_tuner *tuner = tuner_of(bad, ATTUNE_MODE_CACHED);
  dispatch(tuner, TOY_PROBLEM);
  DO(attune_tuner_destroy(tuner));

  static const char *const spins[] = {"ns=1000", "ns=1000,fault=prepare", "ns=1000,fault=wrong", NULL};
  toy_spins = spins;
  tuner = tuner_of(database, ATTUNE_MODE_CACHED);
  OK(attune_tuner_database_prepare(tuner));
  OK(attune_tuner_database_status(tuner));
  DECISION(decision);
  OK(attune_explain(tuner, host, TOY_PROBLEM, decision)); /* none is stored */
  OK(attune_tune(tuner, host, TOY_PROBLEM, &(attune_tune_options){.budget_ms = 100.0}, decision));
  OK(attune_tune(tuner, host, TOY_PROBLEM, &(attune_tune_options){.budget_ms = 100.0}, decision));
  OK(attune_tune(tuner, host, TOY_PROBLEM, &(attune_tune_options){.budget_ms = 100.0, .no_wait = 1}, decision));
  OK(attune_tuner_tune_pending(tuner, 0.0, NULL));
  OK(attune_tuner_winners(tuner, take_winner, NULL));
  OK(attune_tuner_implementations(tuner, host, TOY_PROBLEM, take_implementation, NULL));
  OK(attune_tuner_profile(tuner, NULL, NULL, NULL));
  DO(attune_tuner_destroy(tuner));

  toy_spin_implementation.version++; /* the stored winner is one of another build */
  tuner = tuner_of(database, ATTUNE_MODE_RECORD);
  dispatch(tuner, TOY_PROBLEM);
  dispatch(tuner, TOY("f64 5x5"));
  OK(attune_explain(tuner, host, TOY_PROBLEM, decision));
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_TUNE));
  dispatch(tuner, TOY("f64 6x6"));
  attune_workload *workload = NULL;
  OK(attune_workload_recorded(&workload, tuner, host));
  DO(attune_workload_destroy(workload));
  OK(attune_tuner_set_mode(tuner, ATTUNE_MODE_RECORD));
  dispatch(tuner, TOY("f64 7x7"));
  assert_int_equal(chmod(database, 0400), 0); /* what is recorded at the end cannot be written by most users */
  DO(attune_tuner_destroy(tuner));
  assert_int_equal(chmod(database, 0600), 0);
  toy_reset();
}

TEST(products) {
  static _Alignas(128) float a[64 * 64], b[64 * 64], d[64 * 64];
  attune_tuner *tuner = NULL;
  attune_stream *stream = NULL;
  attune_plan *plan = NULL;
  attune_tuner_options options = {.database = ":memory:", .mode = ATTUNE_MODE_TUNE, .budget_ms = 50.0};
  OK(attune_tuner_create(&tuner, &options));
  OK(attune_stream_create(&stream, host));
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = d};
  problem.m = problem.n = problem.k = 64;
  OK(attune_gemm(tuner, stream, &problem, &operands));
  problem.layout = ATTUNE_ROW_MAJOR;
  problem.n = 32;
  OK(attune_gemm(tuner, stream, &problem, &operands));
  problem.k = 0;
  OK(attune_gemm(tuner, stream, &problem, &operands));
  problem.k = 64;
  OK(attune_gemm_plan_create(&plan, tuner, stream, &problem, &operands));
  OK(attune_gemm_plan_run(plan, stream, &operands));
  OK(attune_stream_synchronize(stream));
  DO(attune_plan_destroy(plan));
  DO(attune_stream_destroy(stream));
  DO(attune_tuner_destroy(tuner));
}

static void pause_of(void *user) {
  (void)user;
  nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

static int failures_left;
static void *give_at_last(void *user, size_t bytes, attune_device *device, attune_stream *stream) {
  (void)user, (void)device, (void)stream;
  return failures_left-- > 0 ? NULL : malloc(bytes);
}
static void take_back(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *stream) {
  (void)user, (void)bytes, (void)device, (void)stream;
  free(pointer);
}

/* Memory that comes at the second try. */
TEST(memory_at_last) {
  const attune_allocator own = {.alloc = give_at_last, .free = take_back};
  attune_stream *stream = attune_stream_default(host);
  void *pointer = NULL;
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_set_allocator(host, &own));
  failures_left = 1;
  OK(attune_alloc(&pointer, stream, 4096));
  assert_true(failures_left < 0);
  OK(attune_free(pointer, stream));
  OK(attune_stream_synchronize(stream));
  OK(attune_memory_set_allocator(host, NULL));
}

/* Room is made for what does not fit; frees wait for another stream's work. */
TEST(memory) {
  enum { MIB = 1 << 20 };
  attune_stream *one = NULL, *two = NULL;
  attune_event *event = NULL;
  void *first = NULL, *second = NULL, *pinned = NULL;
  OK(attune_stream_create(&one, host));
  OK(attune_stream_create(&two, host));
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_set_limit(host, 96 * (uint64_t)MIB));
  OK(attune_alloc(&first, one, 64 * MIB));
  OK(attune_free(first, one));
  OK(attune_alloc(&second, two, 80 * MIB)); /* of another stream: the cached segment is given back */
  OK(attune_free(second, two));
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_set_limit(host, UINT64_MAX));
  OK(attune_alloc(&first, one, 4 * MIB));
  OK(attune_stream_call(two, pause_of, NULL));
  OK(attune_record_use(first, two));
  OK(attune_free(first, one));
  for (size_t i = 0; i < 4; i++) { /* looks whether the other stream is done */
    OK(attune_alloc(&second, one, (64 + 32 * i) * MIB));
    OK(attune_free(second, one));
  }
  OK(attune_pinned_alloc(&pinned, host, MIB));
  OK(attune_stream_call(two, pause_of, NULL));
  OK(attune_pinned_record_use(pinned, two));
  OK(attune_pinned_free(pinned));
  OK(attune_pinned_alloc(&pinned, host, MIB));
  OK(attune_pinned_free(pinned));
  OK(attune_event_create(&event, host, NULL));
  OK(attune_event_record(event, two));
  OK(attune_stream_wait_event(one, event));
  OK(attune_event_synchronize(event));
  DO(attune_event_destroy(event));
  attune_set_sync_debug(ATTUNE_SYNC_DEBUG_WARN);
  OK(attune_stream_call(two, pause_of, NULL));
  DO(attune_stream_destroy(two));
  attune_set_sync_debug(ATTUNE_SYNC_DEBUG_OFF);
  DO(attune_stream_destroy(one));
  char *text = NULL;
  OK(attune_memory_summary(&text, host, 0));
  free(text);
}

static attune_status give_fill(void *user, attune_stream *stream) {
  return attune_fill(stream, user, 1, 64);
}

TEST(graphs_and_random) {
  static float room[64];
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  attune_generator *generator = NULL;
  OK(attune_stream_create(&stream, host));
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, stream, NULL, give_fill, room));
  OK(attune_graph_replay(graph, stream));
  OK(attune_graph_update(graph, stream, give_fill, room, NULL));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  DO(attune_graph_destroy(graph));
  OK(attune_generator_create(&generator, 1));
  OK(attune_random_uniform(generator, stream, room, ATTUNE_F32, 64, 0.0, 1.0));
  OK(attune_stream_synchronize(stream));
  DO(attune_generator_destroy(generator));
  DO(attune_stream_destroy(stream));
}

FIXTURE(open_all) {
  toy_reset();
  setenv("HOME", folder, 1);
  if (!mkdtemp(folder)) return -1;
  snprintf(database, sizeof database, "%s/t.db", folder);
  fail_known();
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_all) {
  return folder_remove(folder);
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
