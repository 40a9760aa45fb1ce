/* SPDX-License-Identifier: Apache-2.0
 * test_precompile.c: kernels are compiled ahead of the problems that are measured: in which order, by how many threads,
 * which problem is next, and how it ends, whatever happens meanwhile. The compiler is the test's: it waits until it is
 * told to go on, so that nothing depends on time. */
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tuning/store/decision.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <attune/device.h>
#include <attune/warm.h>

#include "src/process/exit.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/compile/precompile.h"

enum { NOTES = 400 };

static attune_device *device;
static attune_tuner *tuner;
static char folder[] = "/tmp/attune-test-ahead-XXXXXX";

/* ---- a compiler ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char notes[NOTES][AT_CONFIGURATION_CHARS]; /* "ROWS CONFIGURATION", in the order in which they began */
static int begun, done, allowed;                  /* so many may end */
static attune_status answer;

static attune_status compile(const at_implementation *self, const void *problem, attune_device *on,
                             const at_configuration *c, bool *made) {
  (void)self;
  pthread_mutex_lock(&lock);
  if (on != device || !made) abort();
  if (begun < NOTES) snprintf(notes[begun], sizeof notes[0], "%d %.150s", (int)toy_of(problem)->rows, c->text);
  begun++;
  pthread_cond_broadcast(&changed);
  while (done >= allowed) pthread_cond_wait(&changed, &lock);
  done++;
  const attune_status status = answer;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  *made = status == ATTUNE_OK && strstr(c->text, "there") == NULL;
  return status == ATTUNE_OK ? ATTUNE_OK : at_fail(status, "as the test wants it");
}

static void allow(int more) {
  pthread_mutex_lock(&lock);
  allowed += more;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void wait_begun(int count) {
  pthread_mutex_lock(&lock);
  while (begun < count) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

static void wait_done(int count) {
  pthread_mutex_lock(&lock);
  while (done < count) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

static void make_nothing(const at_implementation *self, const void *problem, attune_device *on,
                         const at_configuration *list, int count) {
  (void)self, (void)problem, (void)on, (void)list, (void)count;
}

/* Problems of 5 rows have the default alone. */
static bool supports(const at_implementation *self, const void *problem, attune_device *on) {
  (void)self, (void)on;
  return toy_of(problem)->rows != 5;
}

static const char *const SPINS[] = {"ns=1", "ns=2", "ns=3", "ns=4", "ns=5", "ns=6", "ns=7", NULL};

FIXTURE(fresh) {
  toy_reset();
  begun = done = allowed = 0;
  answer = ATTUNE_OK;
  toy_spins = SPINS;
  toy_spin_implementation.supports = supports;
  toy_spin_implementation.compile = compile;
  toy_spin_implementation.prepare_many = make_nothing;
  device->properties.kind = ATTUNE_DEVICE_CUDA;
  OK(attune_set_threads(2)); /* one that measures, one that compiles: their order is certain */
  OK(at_tuner_create(&tuner, &(attune_tuner_options){.database = ""}, toy_ops, 1));
  return 0;
}

FIXTURE(end) {
  attune_tuner_destroy(tuner);
  device->properties.kind = ATTUNE_DEVICE_HOST;
  return 0;
}

static attune_precompile *start(const char *const *problems, size_t count) {
  attune_precompile *ahead = NULL;
  OK(attune_precompile_start(&ahead, tuner, device, problems, count));
  return ahead;
}

static void expect_next(attune_precompile *ahead, double wait_ms, size_t wanted) {
  size_t got = SIZE_MAX;
  OK(attune_precompile_next(ahead, wait_ms, 0, &got));
  assert_int_equal(got, wanted);
}

/* ---- tests ---- */

TEST(as_many_threads_as_there_is_room_for) {
  const uint64_t gib = (uint64_t)1 << 30;
  assert_int_equal(at_precompile_threads(16, 0, 1000), 15);
  assert_int_equal(at_precompile_threads(16, 64 * gib, 1000), 15);
  assert_int_equal(at_precompile_threads(16, 2 * gib, 1000), 4);
  assert_int_equal(at_precompile_threads(16, 1, 1000), 1);
  assert_int_equal(at_precompile_threads(16, 0, 3), 3);
  assert_int_equal(at_precompile_threads(1, 0, 1000), 1);
  assert_int_equal(at_precompile_threads(1000, 0, 1000), 64);
}

/* The best guesses of all problems come first, then the rest, problem by problem. */
TEST(the_best_come_first) {
  static const char *const problems[] = {TOY("f32 9x7"), TOY("f32 8x7")};
  static const char *const wanted[] = {"9 ns=1", "9 ns=2", "9 ns=3", "9 ns=4", "8 ns=1", "8 ns=2", "8 ns=3",
                                       "8 ns=4", "9 ns=5", "9 ns=6", "9 ns=7", "8 ns=5", "8 ns=6", "8 ns=7"};
  attune_precompile *ahead = start(problems, 2);
  allow(NOTES);
  wait_done(AT_COUNT(wanted));
  for (size_t i = 0; i < AT_COUNT(wanted); i++) assert_string_equal(notes[i], wanted[i]);
  expect_next(ahead, 1e6, 0);
  expect_next(ahead, 1e6, 1);
  size_t got = 0;
  assert_int_equal(attune_precompile_next(ahead, 1e6, 1, &got), ATTUNE_NOT_FOUND);
  attune_precompile_stop(ahead);
}

/* Winners in the database, of any problem; and the problem's own winner, although it is no longer offered. */
TEST(winners_come_before_guesses) {
  static const char *const problems[] = {TOY("f32 9x7"), TOY("f32 8x7")};
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  char path[96];
  attune_tuner_destroy(tuner);
  snprintf(path, sizeof path, "%s/winners.db", folder);
  options.database = path;
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  attune_decision winner = {.implementation = "spin",
                            .implementation_version = 1,
                            .configuration = "ns=6",
                            .measure = "hot,eager",
                            .default_implementation = "base",
                            .time_ns = 1.0,
                            .default_time_ns = 2.0,
                            .samples = 20,
                            .complete = 1,
                            .tuned_at = 1700000000,
                            .problem = TOY("f32 4x4")};
  OK(at_store_put(tuner->user, "cuda x 1", "toy", &winner, NULL, 0, 5000));
  at_copy_text(winner.configuration, sizeof winner.configuration, "ns=99");
  at_copy_text(winner.problem, sizeof winner.problem, problems[1]);
  OK(at_store_put(tuner->user, "cuda x 1", "toy", &winner, NULL, 0, 5000));
  attune_precompile *ahead = start(problems, 2);
  allow(NOTES);
  wait_done(15);
  assert_string_equal(notes[0], "9 ns=6");
  assert_string_equal(notes[1], "8 ns=99");
  assert_string_equal(notes[2], "8 ns=6");
  assert_string_equal(notes[3], "9 ns=1");
  attune_precompile_stop(ahead);
}

/* A problem whose kernels are not compiled lets others go first, and is waited for when it is the last. */
TEST(what_is_ready_goes_first) {
  static const char *const problems[] = {TOY("f32 9x7"), TOY("f32 5x7"), TOY("f32 8x7"), TOY("f32 5x8")};
  attune_precompile *ahead = start(problems, 4);
  size_t got = SIZE_MAX;
  wait_begun(1);
  expect_next(ahead, 1e6, 1);
  expect_next(ahead, 1e6, 3);
  assert_int_equal(attune_precompile_next(ahead, 0.0, 0, &got), ATTUNE_BUSY);
  assert_int_equal(attune_precompile_next(ahead, 1.0, 0, &got), ATTUNE_BUSY);
  allow(4 + 4 + 3); /* all of the first problem: the best of both, the rest of one */
  expect_next(ahead, 1e6, 0);
  assert_int_equal(attune_precompile_next(ahead, 0.0, 0, &got), ATTUNE_BUSY);
  OK(attune_precompile_next(ahead, 0.0, 1, &got)); /* whoever is in a hurry gets it as it is */
  assert_int_equal(got, 2);
  assert_int_equal(attune_precompile_next(ahead, 0.0, 1, &got), ATTUNE_NOT_FOUND);
  allow(NOTES);
  attune_precompile_stop(ahead);
}

/* Who is in a hurry takes a ready one all the same. */
TEST(a_hurry_prefers_what_is_ready) {
  static const char *const problems[] = {TOY("f32 9x7"), TOY("f32 5x7")};
  attune_precompile *ahead = start(problems, 2);
  size_t got = SIZE_MAX;
  wait_begun(1); /* both are listed by then */
  OK(attune_precompile_next(ahead, 0.0, 1, &got));
  assert_int_equal(got, 1);
  OK(attune_precompile_next(ahead, 0.0, 1, &got));
  assert_int_equal(got, 0);
  allow(NOTES);
  attune_precompile_stop(ahead);
}

/* On the host it would disturb what is measured. */
TEST(nothing_is_compiled_beside_the_host) {
  static const char *const problems[] = {TOY("f32 9x7"), TOY("f32 8x7")};
  device->properties.kind = ATTUNE_DEVICE_HOST;
  attune_precompile *ahead = start(problems, 2);
  expect_next(ahead, 0.0, 0);
  expect_next(ahead, 0.0, 1);
  attune_precompile_stop(ahead);
  assert_int_equal(begun, 0);
}

static void *stop(void *ahead) {
  attune_precompile_stop(ahead);
  return NULL;
}

/* Ends what is begun, and begins nothing more. */
TEST(it_ends_at_once) {
  static const char *const problems[] = {TOY("f32 9x7"), TOY("f32 8x7")};
  attune_precompile *ahead = start(problems, 2);
  wait_begun(1);
  allow(1);
  wait_begun(2);
  pthread_t stopper;
  assert_int_equal(pthread_create(&stopper, NULL, stop, ahead), 0);
  allow(1); /* whichever comes first: at most one more is begun */
  for (int i = 0; i < NOTES; i++) allow(1);
  assert_int_equal(pthread_join(stopper, NULL), 0);
  assert_int_equal(begun, done);
  attune_precompile_stop(NULL);
}

/* A kernel that does not compile stops nothing; without a working cache nothing is compiled ahead of the search. */
TEST(failures) {
  static const char *const problems[] = {TOY("f32 9x7"), "toy of no kind", TOY("f32 8x7")};
  answer = ATTUNE_INTERNAL;
  attune_precompile *ahead = start(problems, 3);
  allow(NOTES);
  for (size_t i = 0; i < 3; i++) {
    size_t got;
    OK(attune_precompile_next(ahead, 1e6, 0, &got));
  }
  wait_done(14);
  attune_precompile_stop(ahead);
  begun = done = allowed = 0;
  answer = ATTUNE_IO_ERROR;
  ahead = start(problems, 3);
  wait_begun(1);
  expect_next(ahead, 1e6, 1); /* nobody has to wait for it */
  allow(1);
  expect_next(ahead, 1e6, 0);
  expect_next(ahead, 1e6, 2);
  attune_precompile_stop(ahead);
  assert_int_equal(begun, 1);
}

/* More problems than a window: the far ones are begun when the near ones were given. */
TEST(the_window_moves_on) {
  enum { MANY = 150 };
  static char texts[MANY][1024];
  const char *problems[MANY];
  static const char *const one[] = {"ns=1", NULL};
  toy_spins = one;
  for (int i = 0; i < MANY; i++) {
    snprintf(texts[i], sizeof texts[i], "toy f32 %dx7 strict taps=" TOY_TAPS, 10 + i);
    problems[i] = texts[i];
  }
  attune_precompile *ahead = start(problems, MANY);
  allow(NOTES);
  wait_done(64);
  assert_true(done <= 65);
  for (size_t i = 0; i < MANY; i++) expect_next(ahead, 1e6, i);
  attune_precompile_stop(ahead);
  assert_true(done >= 64 && done <= MANY);
}

TEST(a_child_of_fork_leaves_it) {
  static const char *const problems[] = {TOY("f32 9x7"), TOY("f32 8x7")};
  attune_precompile *ahead = start(problems, 2);
  int status = 0;
  wait_begun(1);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    size_t got = SIZE_MAX;
    const bool given = attune_precompile_next(ahead, 1e6, 0, &got) == ATTUNE_OK && got == 0;
    attune_precompile_stop(ahead);
    _exit(given ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  allow(NOTES);
  expect_next(ahead, 1e6, 0);
  attune_precompile_stop(ahead);
}

/* exit() waits for what is being compiled: its library must be there until then. */
static bool compiler_ended;

static void *let_go(void *unused) {
  (void)unused;
  while (!at_exit_begun()) usleep(1000);
  compiler_ended = true;
  allow(NOTES);
  return NULL;
}

static bool is_child;

static void look_at_the_end(void) {
  if (!is_child) return;
  if (!compiler_ended || begun != done || begun != 1) _exit(3);
}

TEST(the_process_may_end_meanwhile) {
  if (!may_fork()) skip();
  static const char *const problems[] = {TOY("f32 9x7"), TOY("f32 8x7")};
  int status = 0;
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    pthread_t helper;
    is_child = true;
    attune_precompile *ahead = NULL;
    if (attune_precompile_start(&ahead, tuner, device, problems, 2) != ATTUNE_OK) _exit(1);
    wait_begun(1);
    if (pthread_create(&helper, NULL, let_go, NULL) != 0) _exit(2);
    exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(wrong_arguments) {
  attune_precompile *ahead = NULL;
  size_t got = 0;
  FAILS(attune_precompile_start(NULL, tuner, device, NULL, 0), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_precompile_start(&ahead, NULL, device, NULL, 0), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_precompile_start(&ahead, tuner, NULL, NULL, 0), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_precompile_start(&ahead, tuner, device, NULL, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_precompile_next(NULL, 0.0, 0, &got), ATTUNE_INVALID_ARGUMENT);
  OK(attune_precompile_start(&ahead, tuner, device, NULL, 0));
  FAILS(attune_precompile_next(ahead, 0.0, 0, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_precompile_next(ahead, -1.0, 0, &got), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_precompile_next(ahead, 0.0, 1, &got), ATTUNE_NOT_FOUND);
  attune_precompile_stop(ahead);
}

/* ---- winners that are stored ---- */

typedef struct heard {
  int count, by_outcome[5];
  char failed[64], message[64];
} heard;

static void hear(void *user, const attune_decision *winner, attune_warm_outcome outcome, double ms,
                 const char *message) {
  heard *h = user;
  h->count++;
  h->by_outcome[outcome]++;
  if (ms < 0.0) abort();
  if (outcome == ATTUNE_WARM_FAILED) {
    at_copy_text(h->failed, sizeof h->failed, winner->configuration);
    at_copy_text(h->message, sizeof h->message, message);
  }
}

static const char *refused;

static attune_status compile_most(const at_implementation *self, const void *problem, attune_device *on,
                                  const at_configuration *c, bool *made) {
  (void)self, (void)problem;
  if (on != device || !made) abort();
  if (refused && strcmp(c->text, refused) == 0) return at_fail(ATTUNE_INTERNAL, "%s does not compile", c->text);
  *made = strstr(c->text, "there") == NULL;
  return ATTUNE_OK;
}

static void end_at_once(void *unused, const attune_decision *winner, attune_warm_outcome outcome, double ms,
                        const char *message) {
  (void)unused, (void)winner, (void)outcome, (void)ms, (void)message;
  usleep(200000); /* the others are waiting for their turn */
  exit(0);
}

/* A program may end in the function that it gave: exit() does not wait for those that wait for it. */
static void ends_from_warm(void) {
  if (!may_fork() || attune_get_threads() < 2) return;
  int status = 0;
  assert_true(is_alone());
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(6);
    (void)attune_tuner_warm(tuner, device, NULL, 0, end_at_once, NULL, NULL);
    _exit(1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* Of the database, or of some problems; each by its own outcome. */
TEST(winners_are_compiled) {
  static const char *const texts[] = {TOY("f32 9x7"), TOY("f32 8x7"), TOY("f32 6x7"), TOY("f32 5x7")};
  static const char *const spins[] = {"ns=1000", "ns=900,there", "ns=800,bad", NULL};
  static const char *const some[] = {TOY("f32 9x7"), "toy of no kind", TOY("f32 77x7")};
  heard h = {0};
  attune_warmed sums = {0};
  char path[96];
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner_destroy(tuner);
  snprintf(path, sizeof path, "%s/warm.db", folder);
  options.database = path;
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  device->properties.kind = ATTUNE_DEVICE_HOST;
  toy_spin_implementation.compile = compile_most;
  virtual_clock_start();
  for (int i = 0; i < 4; i++) { /* 5x7 has the default */
    const char *const one[] = {spins[i % 3], NULL};
    toy_spins = one;
    OK(attune_tune(tuner, device, texts[i], &(attune_tune_options){.force = 1}, NULL));
  }
  virtual_clock_stop();
  refused = "ns=800,bad";
  (void)at_fail(ATTUNE_NOT_FOUND, "mine");
  OK(attune_tuner_warm(tuner, device, NULL, 0, hear, &h, &sums));
  assert_string_equal(attune_last_message(), "mine");
  assert_int_equal(h.count, 4);
  assert_int_equal(h.by_outcome[ATTUNE_WARM_COMPILED], 1);
  assert_int_equal(h.by_outcome[ATTUNE_WARM_THERE], 1);
  assert_int_equal(h.by_outcome[ATTUNE_WARM_FAILED], 1);
  assert_int_equal(h.by_outcome[ATTUNE_WARM_NOTHING], 1);
  assert_string_equal(h.failed, "ns=800,bad");
  assert_string_equal(h.message, "ns=800,bad does not compile");
  assert_true(sums.compiled == 1 && sums.there == 1 && sums.failed == 1 && sums.nothing == 1);
  OK(attune_tuner_warm(tuner, device, some, 3, NULL, NULL, &sums));
  assert_true(sums.compiled == 1 && sums.there + sums.failed + sums.nothing == 0);
  attune_tuner_destroy(tuner); /* and as another process has it */
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  OK(attune_tuner_warm(tuner, device, some, 3, NULL, NULL, &sums));
  assert_true(sums.compiled == 1 && sums.there + sums.failed + sums.nothing == 0);
  ends_from_warm();
  FAILS(attune_tuner_warm(NULL, device, NULL, 0, NULL, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tuner_warm(tuner, NULL, NULL, 0, NULL, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
}

FIXTURE(open_all) {
  return mkdtemp(folder) && attune_device_get(&device, "host") == ATTUNE_OK ? 0 : 1;
}

FIXTURE(close_all) {
  return folder_remove(folder);
}

int main(void) {
  (void)atexit(look_at_the_end); /* comes after attune's, which is asked for later */
  return RUN_TESTS_EACH(fresh, end, open_all, close_all);
}
