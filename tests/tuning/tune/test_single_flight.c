/* SPDX-License-Identifier: Apache-2.0
 * test_single_flight.c: many processes and threads want one problem's winner: one measures while the others wait for
 * as long as it lives; and two that want different ones take turns on a device. ATTUNE_TEST_FLIGHTS,
 * ATTUNE_TEST_PROCESSES and ATTUNE_TEST_KILLS make it longer. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "src/device/device_lease.h"
#include "tests/support/store_open.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/dispatch/dispatch.h"
#include "tuning/search/search.h"
#include "tuning/tune/single_flight.h"

enum { ROUNDS_MOST = 4096, TURNS_MOST = 64, THREADS = 4, PROCESSES_MOST = 32 };

extern char **environ;

/* Shared by all processes. */
typedef struct shared {
  _Atomic int round; /* the latest that may begin; -1: none */
  _Atomic int done;  /* of the round */
  _Atomic int wrong;
  _Atomic int searches[ROUNDS_MOST];
  _Atomic int running, overlaps; /* launches */
  _Atomic int told;              /* lines about a wait */
  _Atomic int turns;
  _Atomic int turn[TURNS_MOST]; /* who searched, in order */
} shared;

static attune_device *device;
static char folder[64], database[128], self[4096];
static shared *all;
static int who;

static int scale(const char *name, int otherwise, int most) {
  const char *text = getenv(name);
  const int value = text ? atoi(text) : otherwise;
  return value < 1 ? 1 : value > most ? most : value;
}

static void sleep_us(long us) {
  (void)nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* --- what every process measures --- */

static attune_status watched_launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  if (atomic_fetch_add(&all->running, 1) > 0) all->overlaps++;
  const attune_status status = toy_launch(plan, operands, stream);
  all->running--;
  return status;
}

/* The round is the problem's columns. */
static attune_status watched_reference(void **out, const void *problem, attune_device *on, attune_stream *stream,
                                       void *const pointers[AT_MAX_BUFFERS]) {
  all->searches[toy_of(problem)->cols - 1]++;
  all->turn[all->turns++ % TURNS_MOST] = who;
  return toy_reference_create(out, problem, on, stream, pointers);
}

static const char *const FAST[] = {"ns=5000", NULL};

static void watch(const char *base) {
  toy_reset();
  at_copy_text(toy_base, sizeof toy_base, base);
  toy_spins = FAST;
  toy_reference_type.create = watched_reference;
  toy_base_implementation.launch = toy_spin_implementation.launch = watched_launch;
}

static const char *problem_of(char out[AT_PROBLEM_CHARS], int round) {
  (void)snprintf(out, AT_PROBLEM_CHARS, TOY("f32 9x%d"), round + 1);
  return out;
}

static attune_tuner *tuner_of(double total_ms) {
  attune_tuner_options options = {.database = database, .total_budget_ms = total_ms};
  attune_tuner *tuner = NULL;
  if (at_tuner_create(&tuner, &options, toy_ops, 1) != ATTUNE_OK) exit(90);
  return tuner;
}

static void *map_shared(void) {
  char path[160];
  (void)snprintf(path, sizeof path, "%s/shared", folder);
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(shared)) != 0) exit(91);
  void *memory = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) exit(92);
  return memory;
}

FIXTURE(fresh) {
  static int number;
  (void)snprintf(database, sizeof database, "%s/%d.db", folder, number++);
  memset((void *)all, 0, sizeof *all);
  all->round = -1;
  return 0;
}

/* Those that a test has started and not seen end. */
static pid_t alive[PROCESSES_MOST + 2];

static void forget(pid_t pid) {
  for (size_t i = 0; i < AT_COUNT(alive); i++)
    if (alive[i] == pid) alive[i] = 0;
}

/* After a test that failed. */
FIXTURE(end_all) {
  for (size_t i = 0; i < AT_COUNT(alive); i++) {
    if (!alive[i]) continue;
    (void)kill(alive[i], SIGKILL);
    (void)waitpid(alive[i], NULL, 0);
    alive[i] = 0;
  }
  return 0;
}

static pid_t start_numbered(const char *what, int number) {
  char text[16];
  pid_t pid = 0;
  (void)snprintf(text, sizeof text, "%d", number);
  char words[16];
  (void)snprintf(words, sizeof words, "%s", what);
  char *const arguments[] = {self, words, folder, database, text, NULL};
  assert_int_equal(posix_spawn(&pid, self, NULL, NULL, arguments, environ), 0);
  for (size_t i = 0; i < AT_COUNT(alive); i++) {
    if (alive[i]) continue;
    alive[i] = pid;
    break;
  }
  return pid;
}

static void kill_one(pid_t pid) {
  assert_int_equal(kill(pid, SIGKILL), 0);
  (void)waitpid(pid, NULL, 0);
  forget(pid);
}

static void expect_end(pid_t pid) {
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  forget(pid);
  if (status != 0) fail_msg("a process ended with %d", status);
}

/* However long that takes: a process may open a GPU first, beside many others that do. */
static void wait_until_it_runs(pid_t pid) {
  siginfo_t info = {.si_pid = 0};
  while (all->running == 0 && info.si_pid == 0) {
    sleep_us(100);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
  }
  assert_true(all->running > 0);
}

/* --- many want one --- */

static void *tune_rounds(void *arg) {
  attune_tuner *tuner = arg;
  for (int round = 0; round < ROUNDS_MOST; round++) {
    char problem[AT_PROBLEM_CHARS];
    attune_decision decision;
    while (all->round < round) sleep_us(200);
    if (all->round == ROUNDS_MOST) return NULL;
    if (attune_tune(tuner, device, problem_of(problem, round), &(attune_tune_options){.budget_ms = 60000.0},
                    &decision) != ATTUNE_OK ||
        decision.source < ATTUNE_SOURCE_STORED)
      all->wrong++;
    all->done++;
  }
  return NULL;
}

static int many(void) {
  attune_tuner *tuner = tuner_of(0.0);
  pthread_t threads[THREADS];
  watch("ns=20000");
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, tune_rounds, tuner) != 0) return 93;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  attune_tuner_destroy(tuner);
  return 0;
}

TEST(one_of_many_measures) {
  const int processes = scale("ATTUNE_TEST_PROCESSES", 4, PROCESSES_MOST);
  const int rounds = scale("ATTUNE_TEST_FLIGHTS", 4, ROUNDS_MOST - 1);
  pid_t pids[PROCESSES_MOST];
  for (int i = 0; i < processes; i++) pids[i] = start_numbered("many", i);
  for (int round = 0; round < rounds; round++) {
    all->done = 0;
    all->round = round;
    while (all->done < processes * THREADS) sleep_us(500);
    if (all->searches[round] != 1) all->wrong++;
  }
  all->round = ROUNDS_MOST;
  for (int i = 0; i < processes; i++) expect_end(pids[i]);
  assert_int_equal(all->wrong, 0);
  assert_int_equal(all->overlaps, 0);
  print_message("%d rounds of %d processes with %d threads: each measured once\n", rounds, processes, THREADS);
}

/* --- a search that takes longer than any guess --- */

static void tell(void *user, attune_log_level level, const char *line) {
  (void)user, (void)level;
  if (strncmp(line, "waiting", 7) == 0) all->told++;
}

/* A budget of a millisecond, and a default of a tenth of a second: no share of the budget says how long it takes. Those
 * who wait for it have time enough. */
static int slow(int number) {
  attune_tuner *tuner = tuner_of(0.0);
  char problem[AT_PROBLEM_CHARS];
  attune_decision decision;
  watch("ns=80000000");
  attune_set_log(tell, NULL, ATTUNE_LOG_INFO);
  const double budget_ms = number == 0 ? 1.0 : 600000.0;
  const attune_status status =
      attune_tune(tuner, device, problem_of(problem, 0), &(attune_tune_options){.budget_ms = budget_ms}, &decision);
  attune_tuner_destroy(tuner);
  return status != ATTUNE_OK || strcmp(decision.default_implementation, "base") != 0;
}

TEST(a_slow_problem_is_waited_for) {
  pid_t pids[3] = {start_numbered("slow", 0)};
  wait_until_it_runs(pids[0]);
  for (int i = 1; i < 3; i++) pids[i] = start_numbered("slow", i);
  for (int i = 0; i < 3; i++) expect_end(pids[i]);
  assert_int_equal(all->searches[0], 1);
  assert_in_range(all->told, 2, 1000); /* and again while it goes on */
}

/* --- a budget ends the wait --- */

static int endless(void) {
  attune_tuner *tuner = tuner_of(0.0);
  char problem[AT_PROBLEM_CHARS];
  watch("ns=60000000000");
  return (int)attune_tune(tuner, device, problem_of(problem, 0), NULL, NULL);
}

TEST(the_budget_ends_the_wait) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* there this process sees another CPU than the other one does */
  char problem[AT_PROBLEM_CHARS], by[32];
  const pid_t pid = start_numbered("endless", 0);
  wait_until_it_runs(pid);
  watch("ns=20000");
  attune_tuner *tuner = tuner_of(150.0);
  (void)snprintf(by, sizeof by, "by process %ld", (long)pid);
  assert_int_equal(attune_tune(tuner, device, problem_of(problem, 0), &(attune_tune_options){.no_wait = 1}, NULL),
                   ATTUNE_BUSY);
  assert_non_null(strstr(attune_last_message(), by));
  FAILS_SAYING(attune_tune(tuner, device, problem_of(problem, 0), NULL, NULL), ATTUNE_BUSY, by);
  assert_int_equal(attune_tune(tuner, device, problem_of(problem, 1), NULL, NULL), ATTUNE_BUDGET_EXHAUSTED);
  attune_tuner_destroy(tuner);
  tuner = tuner_of(1000.0); /* the device is busy too */
  FAILS_SAYING(attune_tune(tuner, device, problem_of(problem, 1), NULL, NULL), ATTUNE_BUSY,
               "another process is measuring on host: process ");
  assert_int_equal(attune_tune(tuner, device, problem_of(problem, 2), NULL, NULL), ATTUNE_BUDGET_EXHAUSTED);
  attune_tuner_destroy(tuner);
  tuner = tuner_of(0.0); /* a problem's own budget bounds it too */
  assert_int_equal(attune_tune(tuner, device, problem_of(problem, 0), &(attune_tune_options){.budget_ms = 500.0}, NULL),
                   ATTUNE_BUSY);
  assert_int_equal(attune_tune(tuner, device, problem_of(problem, 2), &(attune_tune_options){.budget_ms = 500.0}, NULL),
                   ATTUNE_BUSY);
  attune_tuner_destroy(tuner);
  kill_one(pid);
}

/* --- a holder that is killed --- */

TEST(the_next_goes_on_at_once) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* there this process sees another CPU than the other one does */
  const int kills = scale("ATTUNE_TEST_KILLS", 3, 1000);
  int64_t longest_ns = 0;
  for (int i = 0; i < kills; i++) {
    char problem[AT_PROBLEM_CHARS];
    fresh(NULL);
    const pid_t pid = start_numbered("endless", 0);
    wait_until_it_runs(pid);
    const pid_t next = start_numbered("waiter", 0);
    while (all->told == 0) sleep_us(100);
    all->running = 0;
    const int64_t start_ns = at_now_ns();
    kill_one(pid);
    expect_end(next);
    if (at_now_ns() - start_ns > longest_ns) longest_ns = at_now_ns() - start_ns;
    assert_int_equal(all->searches[0], 1);
    attune_tuner *tuner = tuner_of(0.0);
    attune_decision decision;
    assert_int_equal(attune_explain(tuner, device, problem_of(problem, 0), &decision), ATTUNE_OK);
    assert_int_equal(decision.source, ATTUNE_SOURCE_STORED);
    assert_int_equal(attune_tune(tuner, device, problem_of(problem, 0), &(attune_tune_options){.no_wait = 1}, NULL),
                     ATTUNE_OK); /* nobody has it; what noise left unsure is measured again */
    attune_tuner_destroy(tuner);
  }
  print_message("%d holders killed; the longest from a kill to the next one's end: %lld ms\n", kills,
                (long long)(longest_ns / 1000000));
}

static int waiter(void) {
  attune_tuner *tuner = tuner_of(0.0);
  char problem[AT_PROBLEM_CHARS];
  watch("ns=20000");
  attune_set_log(tell, NULL, ATTUNE_LOG_INFO);
  const attune_status status =
      attune_tune(tuner, device, problem_of(problem, 0), &(attune_tune_options){.budget_ms = 60000.0}, NULL);
  attune_tuner_destroy(tuner);
  return status != ATTUNE_OK;
}

/* --- a holder that is stopped --- */

static bool halts;

/* In the midst of its search; the round lets it go on. */
static attune_status halting_reference(void **out, const void *problem, attune_device *on, attune_stream *stream,
                                       void *const pointers[AT_MAX_BUFFERS]) {
  const attune_status status = watched_reference(out, problem, on, stream, pointers);
  all->done = 1;
  while (halts && all->round < 0) sleep_us(1000);
  return status;
}

/* Its measurements from before and after the stop are discarded: it takes the other process's result. */
static int halted(void) {
  attune_tuner *tuner = tuner_of(0.0);
  char problem[AT_PROBLEM_CHARS];
  attune_decision decision = {.source = 0};
  watch("ns=20000");
  halts = true;
  toy_reference_type.create = halting_reference;
  const attune_status status = attune_tune(tuner, device, problem_of(problem, 0), NULL, &decision);
  attune_tuner_destroy(tuner);
  return status != ATTUNE_OK || decision.source != ATTUNE_SOURCE_STORED;
}

static pid_t start_halted(void) {
  siginfo_t info;
  const pid_t pid = start_numbered("halted", 0);
  while (all->done == 0) sleep_us(200); /* however long that takes */
  assert_int_equal(kill(pid, SIGSTOP), 0);
  assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
  all->running = 0; /* as it may be in the midst of a call */
  return pid;
}

/* True when a winner is kept; else the default runs, and a later call may tune. */
static bool call_once(attune_tuner *tuner, const at_key *key) {
  const at_plan *plan = NULL;
  attune_decision decision;
  assert_int_equal(at_dispatch_miss(tuner, &toy_op, key, 0, attune_stream_default(device), &plan), ATTUNE_OK);
  if (at_plan_table_decision(&tuner->plans, key, &decision)) {
    assert_int_equal(decision.source, ATTUNE_SOURCE_TUNED);
    return true;
  }
  assert_string_equal(plan->implementation->name, "base");
  return false;
}

TEST(a_call_waits_for_no_stopped_process) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* there this process sees another CPU than the other one does */
  const pid_t pid = start_halted();
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *tuner = NULL;
  char own[160];
  (void)snprintf(own, sizeof own, "%s/own-calls.db", folder); /* another database on the same device */
  options.database = own;
  options.mode = ATTUNE_MODE_TUNE;
  watch("ns=20000");
  assert_int_equal(at_tuner_create(&tuner, &options, toy_ops, 1), ATTUNE_OK);
  at_key key = toy_key(problem_of((char[AT_PROBLEM_CHARS]){0}, 1), device);
  const int64_t start_ns = at_now_ns();
  int calls = 0;
  while (!call_once(tuner, &key) && at_now_ns() - start_ns < 300000000000 && ++calls) sleep_us(1000);
  /* The first calls run the default; calls alone find out that the process is stopped, and then one tunes. */
  assert_true(calls > 0);
  assert_true(at_now_ns() - start_ns >= (int64_t)AT_LEASE_STOPPED_MS * 1000000);
  assert_true(call_once(tuner, &key));
  attune_tuner_destroy(tuner);
  kill_one(pid);
}

TEST(a_stopped_holder_is_not_waited_for) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* there this process sees another CPU than the other one does */
  char problem[AT_PROBLEM_CHARS];
  attune_decision own, stored;
  const pid_t pid = start_halted();
  watch("ns=20000");
  attune_set_log(tell, NULL, ATTUNE_LOG_WARNING);
  attune_tuner *tuner = tuner_of(0.0);
  assert_int_equal(attune_tune(tuner, device, problem_of(problem, 0), NULL, &own), ATTUNE_OK);
  attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
  assert_int_equal(own.source, ATTUNE_SOURCE_TUNED);
  assert_int_equal(all->searches[0], 2);
  assert_true(all->told > 0); /* and a wait that lasts is told to everybody */
  assert_int_equal(kill(pid, SIGCONT), 0);
  all->round = 0;
  expect_end(pid);
  assert_int_equal(all->searches[0], 2);
  attune_tuner_destroy(tuner);
  tuner = tuner_of(0.0);
  assert_int_equal(attune_explain(tuner, device, problem_of(problem, 0), &stored), ATTUNE_OK);
  assert_true(stored.time_ns == own.time_ns && stored.samples == own.samples);
  attune_tuner_destroy(tuner);
}

/* --- renewing --- */

static int64_t expires_of(const char *path) {
  sqlite3 *db = NULL;
  sqlite3_stmt *statement = NULL;
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, "SELECT expires FROM lease", -1, &statement, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
  const int64_t expires = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return expires;
}

/* Written again when a third of the lease's life is over, and not before. */
TEST(a_lease_is_renewed) {
  at_store *store = NULL;
  assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
  at_flight flight = {.store = store, .device = device, .fingerprint = "here", .problem = "p"};
  assert_int_equal(at_flight_claim(&flight), ATTUNE_OK);
  const int64_t first = expires_of(database);
  sleep_us(5000);
  at_flight_renew(&flight);
  assert_true(expires_of(database) == first);
  flight.renewed_ns -= 21000000000;
  at_flight_renew(&flight);
  assert_true(expires_of(database) > first);
  assert_true(at_now_ns() - flight.renewed_ns < 20000000000);
  at_flight_end(&flight);
  at_store_close(store);
}

static attune_status count_call(void *user) {
  ++*(int *)user;
  return ATTUNE_OK;
}

/* A search offers the time to do so before each measurement, however many there are. */
TEST(a_search_leaves_time_for_it) {
  at_timer *timer = NULL;
  at_search_result result;
  int calls = 0;
  watch("ns=20000");
  const at_key key = toy_key(TOY_PROBLEM, device);
  assert_int_equal(at_timer_create(&timer, device), ATTUNE_OK);
  timer->between = count_call;
  timer->between_user = &calls;
  assert_int_equal(at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, 0.0, 0.0, NULL),
                   ATTUNE_OK);
  assert_true(calls >= result.decision.candidates + result.decision.samples);
  at_timer_destroy(timer);
}

/* --- two databases, one device --- */

enum { TURNS = 8 };

static int turns(int number) {
  who = number + 1;
  (void)snprintf(database, sizeof database, "%s/own%d-%ld.db", folder, number, (long)getpid());
  attune_tuner *tuner = tuner_of(0.0);
  watch("ns=20000");
  attune_set_log(tell, NULL, ATTUNE_LOG_INFO);
  all->done++;
  while (all->round < 0) sleep_us(100);
  for (int i = 0; i < TURNS; i++) {
    char problem[AT_PROBLEM_CHARS];
    if (attune_tune(tuner, device, problem_of(problem, i), NULL, NULL) != ATTUNE_OK) return 1;
  }
  attune_tuner_destroy(tuner);
  return 0;
}

TEST(two_databases_take_turns_on_a_device) {
  pid_t pids[2];
  for (int i = 0; i < 2; i++) pids[i] = start_numbered("turns", i);
  while (all->done < 2) sleep_us(100);
  all->round = 0;
  for (int i = 0; i < 2; i++) expect_end(pids[i]);
  assert_int_equal(all->turns, 2 * TURNS);
  assert_int_equal(all->overlaps, 0);
  assert_true(all->told > 0);
  int changes = 0;
  for (int i = 1; i < 2 * TURNS; i++) changes += all->turn[i] != all->turn[i - 1];
  print_message("%d problems of two processes: the device changed hands %d times\n", 2 * TURNS, changes);
  assert_true(changes >= TURNS / 2);
}

static int remove_all(void) {
  char command[160];
  (void)snprintf(command, sizeof command, "rm -rf -- '%s'", folder);
  return system(command);
}

static int child(char **argv) {
  const struct {
    const char *name;
    int (*run)(void);
  } kinds[] = {{"many", many}, {"endless", endless}, {"waiter", waiter}, {"halted", halted}};
  at_copy_text(folder, sizeof folder, argv[2]);
  at_copy_text(database, sizeof database, argv[3]);
  all = map_shared();
  if (strcmp(argv[1], "turns") == 0) return turns(atoi(argv[4]));
  if (strcmp(argv[1], "slow") == 0) return slow(atoi(argv[4]));
  for (size_t i = 0; i < AT_COUNT(kinds); i++)
    if (strcmp(argv[1], kinds[i].name) == 0) return kinds[i].run();
  return 94;
}

int main(int argc, char **argv) {
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  if (argc == 5) return child(argv);
  if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0) return 1;
  at_copy_text(folder, sizeof folder, "/tmp/attune-single-flight-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  setenv("XDG_RUNTIME_DIR", folder, 1);
  all = map_shared();
  const int failed = RUN_TESTS_EACH(fresh, end_all, NULL, NULL);
  return remove_all() == 0 ? failed : 1;
}
