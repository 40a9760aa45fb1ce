/* SPDX-License-Identifier: Apache-2.0
 * test_wide.c: problems of nearly 4 KB, of different lengths, with 24 tensors, on every way that a problem goes:
 * search, database, dispatch, plans, recording, workloads, profile; in threads with a small stack; and an operation
 * that wants few plans in the table leaves memory flat. */
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>
#include <attune/tools.h>

#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/support/toy/toy_clock.h"
#include "tests/support/toy/wide_op.h"
#include "tuning/measure/operand_set.h"
#include "tuning/workload/workload.h"

enum { LETTERS = WIDE_MOST, ELEMENTS = 30 };

static attune_device *device;
static at_random *data;
static char folder[] = "/tmp/attune-test-wide-XXXXXX", database[128];
static const char *const FAST[] = {"ns=50000", "ns=90000", NULL}; /* base takes four times as long */

FIXTURE(fresh) {
  static int number;
  toy_reset();
  wide_reset();
  wide_spins = FAST;
  snprintf(database, sizeof database, "%s/%d.db", folder, number++);
  return 0;
}

static attune_tuner *tuner_of(attune_mode mode) {
  attune_tuner_options options = {.database = database, .mode = mode, .budget_ms = 3000.0};
  attune_tuner *tuner = NULL;
  OK(at_tuner_create(&tuner, &options, wide_ops, 1));
  return tuner;
}

/* Operands of a problem, as a program has them. */
typedef struct scene {
  at_key key;
  at_operand_set *set;
} scene;

static void open_scene(scene *s, const char *problem) {
  s->key = wide_key(problem, device);
  OK(at_operand_set_create(&s->set, &wide_op, s->key.words + 1, attune_stream_default(device), data, 1, SIZE_MAX,
                           true));
}

static attune_status call(attune_tuner *tuner, attune_stream *stream, const scene *s) {
  return wide_op_test.call(tuner, stream, s->key.words + 1, s->set->operands);
}

/* Compares what is there with the oracle, and spoils it for the next time. */
static bool is_right(const scene *s) {
  const wide *g = (const wide *)(const void *)(s->key.words + 1);
  double error = 0.0;
  void *reference = NULL;
  at_outputs outputs = {{NULL}, {0}};
  for (int i = g->inputs; i < g->inputs + g->outputs; i++) outputs.bytes[i] = s->set->pointers[0][i];
  OK(wide_op.reference->create(&reference, g, device, attune_stream_default(device), s->set->pointers[0]));
  OK(wide_op.reference->compare(reference, NULL, &outputs, &error));
  wide_op.reference->destroy(reference);
  for (int i = g->inputs; i < g->inputs + g->outputs; i++)
    memset(s->set->pointers[0][i], 0x77, s->set->buffers[i].bytes);
  return error <= 1.0 && wide_unsealed == 0;
}

static void close_scene(scene *s) {
  at_operand_set_destroy(s->set);
}

TEST(a_key_is_as_long_as_its_problem) {
  char text[AT_PROBLEM_CHARS], back[AT_PROBLEM_CHARS];
  for (int letters = 1; letters <= LETTERS; letters += letters < 20 ? 1 : 197) {
    const at_key key = wide_key(wide_text(text, ELEMENTS, letters, letters), device);
    assert_int_equal(at_key_bytes(&key), 8 + WIDE_HEAD + (letters + 7) / 8 * 8);
    OK(wide_op.problem->format(key.words + 1, back, sizeof back));
    assert_string_equal(back, text);
  }
}

static char logged[1 << 16];

static void collect(void *user, attune_log_level level, const char *line) {
  size_t at = strlen(logged);
  (void)user;
  (void)level;
  (void)at_append(logged, sizeof logged, &at, "%s\n", line);
}

/* What ran and what was tuned is logged with all of the problem, and all that follows it. */
TEST(logs_have_the_whole_problem) {
  char text[AT_PROBLEM_CHARS], *words = malloc(AT_PROBLEM_CHARS + 64);
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  scene s;
  assert_non_null(words);
  wide_text(text, ELEMENTS, LETTERS, 9);
  attune_set_log(collect, NULL, ATTUNE_LOG_INFO);
  OK(attune_tune(tuner, device, text, NULL, NULL));
  attune_tuner_destroy(tuner);
  tuner = tuner_of(ATTUNE_MODE_CACHED);
  open_scene(&s, text);
  OK(call(tuner, attune_stream_default(device), &s));
  attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
  close_scene(&s);
  attune_tuner_destroy(tuner);
  snprintf(words, AT_PROBLEM_CHARS + 64, "tuned %s on host in ", text);
  if (!strstr(logged, words)) fail_msg("the log lacks \"%s\": %s", words, logged);
  assert_non_null(strstr(strstr(logged, words), "; of the time, in ms: open "));
  snprintf(words, AT_PROBLEM_CHARS + 64, "\n%s on host runs spin ns=50000: the stored winner", text);
  if (!strstr(logged, words)) fail_msg("the log lacks \"%s\": %s", words, logged);
  free(words);
}

/* Searched, verified, stored and found again by another tuner, with the whole text. */
TEST(a_long_problem_is_tuned) {
  char text[AT_PROBLEM_CHARS];
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  attune_decision d, explained;
  scene s;
  wide_text(text, ELEMENTS, LETTERS, 1);
  assert_true(strlen(text) >= 3980 && strlen(text) < 4000);
  OK(attune_tune(tuner, device, text, NULL, &d));
  assert_string_equal(d.problem, text);
  assert_string_equal(d.implementation, "spin");
  assert_string_equal(d.configuration, "ns=50000");
  attune_tuner_destroy(tuner);

  tuner = tuner_of(ATTUNE_MODE_CACHED);
  OK(attune_explain(tuner, device, text, &explained));
  assert_int_equal(explained.source, ATTUNE_SOURCE_STORED);
  assert_string_equal(explained.problem, text);
  open_scene(&s, text);
  OK(call(tuner, attune_stream_default(device), &s));
  assert_true(is_right(&s));
  assert_string_equal(at_plan_table_find(&tuner->plans, &s.key)->configuration.text, "ns=50000");
  attune_recheck recheck = {0};
  OK(attune_verify(tuner, device, text, 0.0, &explained, &recheck));
  assert_int_equal(recheck.verdict, ATTUNE_VERDICT_HOLDS);
  assert_string_equal(explained.problem, text);
  close_scene(&s);
  attune_tuner_destroy(tuner);
}

static int count_winner(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  (void)fingerprint;
  *(int *)user += valid != 0 && strncmp(decision->problem, "wide 30 16:8 strict ", 20) == 0;
  return 0;
}

/* A problem that goes on where another ends, and two that differ in the last letter: each its own winner and plan. */
TEST(what_differs_at_its_end_is_another_one) {
  enum { COUNT = 3 };
  char text[COUNT][AT_PROBLEM_CHARS];
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  scene s[COUNT];
  int winners = 0;
  for (int i = 0; i < COUNT; i++) wide_text(text[i], ELEMENTS, LETTERS, 1);
  text[1][strlen(text[1]) - 1] ^= 1;
  text[2][strlen(text[2]) - 1] = '\0';
  for (int i = 0; i < COUNT; i++) {
    OK(attune_tune(tuner, device, text[i], NULL, NULL));
    open_scene(&s[i], text[i]);
  }
  assert_int_equal(tuner->plans.count, COUNT);
  OK(attune_tuner_winners(tuner, count_winner, &winners));
  assert_int_equal(winners, COUNT);
  for (int turn = 0; turn < 3; turn++) /* the second time found among the recent calls */
    for (int i = 0; i < COUNT; i++) {
      OK(call(tuner, attune_stream_default(device), &s[i]));
      assert_true(is_right(&s[i]));
    }
  for (int i = 0; i < COUNT; i++) close_scene(&s[i]);
  attune_tuner_destroy(tuner);
}

/* 640 bytes of operands, on a stream with a thread, in a graph, by a plan of the program, behind a team's guard. */
TEST(operands_arrive_whole) {
  static const char *const teams[] = {"ns=40000,threads=2", NULL};
  char text[AT_PROBLEM_CHARS];
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  attune_plan *plan = NULL;
  attune_decision d;
  scene s;
  wide_spins = teams;
  open_scene(&s, wide_text(text, ELEMENTS, 700, 3));
  OK(attune_stream_create(&stream, device));
  OK(call(tuner, stream, &s));
  OK(attune_stream_synchronize(stream));
  assert_true(is_right(&s));
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(call(tuner, stream, &s));
  OK(attune_graph_capture_end(graph, stream));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_true(is_right(&s));
  OK(wide_op_test.plan_create(&plan, tuner, stream, s.key.words + 1, s.set->operands));
  OK(wide_op_test.plan_run(plan, stream, s.set->operands));
  OK(attune_stream_synchronize(stream));
  assert_true(is_right(&s));
  OK(attune_plan_explain(plan, &d));
  assert_string_equal(d.problem, text);
  attune_graph_destroy(graph);
  attune_plan_destroy(plan);
  attune_stream_destroy(stream);
  close_scene(&s);
  attune_tuner_destroy(tuner);
}

static int see_profile(void *user, const attune_profile_entry *entry) {
  const attune_decision whole = *entry->decision; /* a program may assign it */
  assert_string_equal(entry->problem, user);
  assert_string_equal(whole.problem, user);
  assert_int_equal(entry->calls, 5);
  return 0;
}

/* Calls are recorded, and what is recorded comes back as a workload; the profile knows the problem too. */
TEST(calls_are_recorded) {
  char text[AT_PROBLEM_CHARS];
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
  attune_workload *workload = NULL;
  scene s;
  open_scene(&s, wide_text(text, ELEMENTS, LETTERS, 4));
  for (int i = 0; i < 5; i++) OK(call(tuner, attune_stream_default(device), &s));
  OK(attune_tuner_profile(tuner, see_profile, text, NULL));
  attune_tuner_destroy(tuner);
  tuner = tuner_of(ATTUNE_MODE_CACHED);
  OK(attune_workload_recorded(&workload, tuner, device));
  assert_int_equal(attune_workload_size(workload), 1);
  assert_string_equal(attune_workload_at(workload, 0)->problem, text);
  assert_int_equal(attune_workload_at(workload, 0)->count, 5);
  assert_true(attune_workload_at(workload, 0)->time_ns > 0.0);
  attune_workload_destroy(workload);
  close_scene(&s);
  attune_tuner_destroy(tuner);
}

TEST(workloads_have_long_rows) {
  const at_workload_ops ops = {wide_ops, 1, &wide_op};
  char text[AT_PROBLEM_CHARS], path[128];
  attune_workload *workload = NULL;
  wide_text(text, ELEMENTS, LETTERS, 5);
  snprintf(path, sizeof path, "%s/w.csv", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "elements,tensors,recipe,count\n30,16:8,%s,3\n31,1:1,abc,4\n", strrchr(text, ' ') + 1);
  fclose(file);
  OK(at_workload_read(&workload, path, &ops));
  assert_int_equal(attune_workload_size(workload), 2);
  assert_string_equal(attune_workload_at(workload, 0)->problem, text);
  assert_int_equal(attune_workload_at(workload, 0)->count, 3);
  assert_string_equal(attune_workload_at(workload, 1)->problem, "wide 31 1:1 strict abc");
  attune_workload_destroy(workload);
  file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "problem\n%s\n%s+\n", text, text); /* the second is too long */
  fclose(file);
  FAILS_SAYING(at_workload_read(&workload, path, &ops), ATTUNE_BAD_DATA, "w.csv:3:1: word 5 of the problem");
}

/* What the message has to say behind the problem is not lost. */
TEST(messages_cut_long_problems) {
  char text[AT_PROBLEM_CHARS];
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  attune_recheck recheck = {0};
  FAILS(attune_verify(tuner, device, wide_text(text, ELEMENTS, LETTERS, 6), 0.0, NULL, &recheck), ATTUNE_NOT_FOUND);
  assert_non_null(strstr(attune_last_message(), "no stored winner of wide 30 16:8 strict "));
  assert_non_null(strstr(attune_last_message(), "... is valid on host; tune it first"));
  attune_tuner_destroy(tuner);
}

/* ---- a small stack ---- */

static attune_status use_all(attune_tuner *tuner, const scene *s, const char *text) {
  attune_stream *stream = attune_stream_default(device);
  attune_plan *plan = NULL;
  attune_workload *workload = NULL;
  attune_decision *d = malloc(sizeof *d);
  attune_recheck *r = calloc(1, sizeof *r);
  int count = 0;
  attune_status status = d && r ? ATTUNE_OK : ATTUNE_OUT_OF_MEMORY;
  if (status == ATTUNE_OK) status = call(tuner, stream, s);
  if (status == ATTUNE_OK) status = wide_op_test.plan_create(&plan, tuner, stream, s->key.words + 1, s->set->operands);
  if (status == ATTUNE_OK) status = attune_plan_explain(plan, d);
  if (status == ATTUNE_OK) status = attune_explain(tuner, device, text, d);
  if (status == ATTUNE_OK) status = attune_tune(tuner, device, text, NULL, d);
  if (status == ATTUNE_OK) status = attune_tune(tuner, device, text, &(attune_tune_options){.force = 1}, d);
  if (status == ATTUNE_OK) status = attune_verify(tuner, device, text, 0.0, NULL, r);
  if (status == ATTUNE_OK) status = attune_tuner_winners(tuner, count_winner, &count);
  if (status == ATTUNE_OK) status = attune_tuner_profile(tuner, NULL, NULL, NULL);
  if (status == ATTUNE_OK) status = attune_workload_recorded(&workload, tuner, device);
  if (status == ATTUNE_OK) status = attune_tuner_tune_pending(tuner, 0.0, &count);
  attune_workload_destroy(workload);
  attune_plan_destroy(plan);
  free(d);
  free(r);
  return status;
}

typedef struct small {
  attune_mode mode;
  scene scene;
  char text[AT_PROBLEM_CHARS];
  attune_status status;
} small;

static void *work_in_little(void *arg) {
  small *s = arg;
  attune_tuner_options options = {.database = database, .mode = s->mode, .budget_ms = 3000.0};
  attune_tuner *tuner = NULL;
  s->status = at_tuner_create(&tuner, &options, wide_ops, 1);
  if (s->status == ATTUNE_OK) s->status = use_all(tuner, &s->scene, s->text);
  attune_tuner_destroy(tuner);
  return NULL;
}

/* Threads of some systems have no more; tools make frames larger. */
static size_t stack_bytes(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
  return (size_t)1 << 20;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return (size_t)1 << 20;
#endif
#endif
  return getenv("AT_UNDER_VALGRIND") ? (size_t)1 << 20 : (size_t)128 << 10;
}

TEST(small_stacks_suffice) {
  static const attune_mode modes[] = {ATTUNE_MODE_OFF, ATTUNE_MODE_RECORD, ATTUNE_MODE_CACHED, ATTUNE_MODE_TUNE};
  static small s;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  assert_int_equal(pthread_attr_setstacksize(&attributes, stack_bytes()), 0);
  for (size_t i = 0; i < AT_COUNT(modes); i++) {
    pthread_t thread;
    s.mode = modes[i];
    open_scene(&s.scene, wide_text(s.text, ELEMENTS, LETTERS, 10 + (int)i));
    assert_int_equal(pthread_create(&thread, &attributes, work_in_little, &s), 0);
    pthread_join(thread, NULL);
    OK(s.status);
    assert_true(is_right(&s.scene));
    close_scene(&s.scene);
  }
  pthread_attr_destroy(&attributes);
}

/* ---- bounds ---- */

/* The first have their place, and of the others so many are kept; what is not kept is freed. */
TEST(few_plans_in_the_table) {
  enum { MOST = 16, BEYOND = 1024 };
  const char *campaign = getenv("ATTUNE_TEST_WIDE_PROBLEMS");
  const int count = campaign ? atoi(campaign) : 2500;
  char text[AT_PROBLEM_CHARS];
  size_t before = 0;
  wide_op.plans_most = MOST;
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  const int alive = wide_alive;
  for (int i = 0; i < count; i++) {
    scene s;
    open_scene(&s, wide_text(text, 2, 100 + i % 300, i));
    OK(call(tuner, attune_stream_default(device), &s));
    if (i % 50 == 0) assert_true(is_right(&s));
    close_scene(&s);
    assert_in_range(wide_alive - alive, 1, MOST + BEYOND);
    const size_t now = mallinfo2().uordblks;
    if (i == count * 3 / 5) before = now;
    if (before) assert_true(now < before + 256 * 1024);
  }
  assert_int_equal(tuner->plans.count, MOST);
  assert_true(wide_alive - alive > MOST);
  attune_tuner_destroy(tuner);
  assert_int_equal(wide_alive, alive);
}

/* One operation's bound is none of another's. */
TEST(others_keep_their_places) {
  static const at_op *const both[] = {&wide_op, &toy_op};
  char text[AT_PROBLEM_CHARS], small_text[64];
  attune_tuner *tuner = NULL;
  wide_op.plans_most = 2;
  OK(at_tuner_create(&tuner, &(attune_tuner_options){.database = ""}, both, 2));
  for (int i = 0; i < 5; i++) {
    const at_plan *plan = NULL;
    const at_key key = wide_key(wide_text(text, 2, 10, i), device);
    snprintf(small_text, sizeof small_text, "toy f32 %dx7 strict taps=1", i + 1);
    const at_key other = toy_key(small_text, device);
    OK(at_dispatch_as(tuner, &wide_op, &key, 0, attune_stream_default(device), &plan));
    assert_int_equal(plan->counted != NULL, i >= 2);
    at_plan_lru_release(plan);
    OK(at_dispatch_as(tuner, &toy_op, &other, 0, attune_stream_default(device), &plan));
    assert_null(plan->counted);
  }
  assert_int_equal(tuner->plans.count, 2 + 5);
  attune_tuner_destroy(tuner);
}

/* What plan_table.h says of an entry, with its plan: of a short problem, and 12 KB more of the longest. */
TEST(entries_are_small) {
  enum { COUNT = 400 };
  static const int letters[] = {60, LETTERS};
  for (size_t i = 0; i < AT_COUNT(letters); i++) {
    char text[AT_PROBLEM_CHARS];
    attune_tuner *tuner = tuner_of(ATTUNE_MODE_OFF);
    const at_plan *plan = NULL;
    size_t before = 0;
    for (int n = 0; n < COUNT + 100; n++) {
      const at_key key = wide_key(wide_text(text, 2, letters[i], n), device);
      OK(at_dispatch_as(tuner, &wide_op, &key, 0, attune_stream_default(device), &plan));
      if (n == 99) before = mallinfo2().uordblks;
    }
    const size_t each = (mallinfo2().uordblks - before) / COUNT;
    if (each > (i ? 15000u : 2600u)) fail_msg("an entry of %d letters takes %zu bytes", letters[i], each);
    attune_tuner_destroy(tuner);
  }
}

FIXTURE(open_all) {
  if (!mkdtemp(folder) || attune_device_get(&device, "host") != ATTUNE_OK) return -1;
  virtual_clock_start();
  return at_random_create(&data, 11) != ATTUNE_OK;
}

FIXTURE(close_all) {
  at_random_destroy(data);
  return folder_remove(folder);
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, open_all, close_all);
}
