/* SPDX-License-Identifier: Apache-2.0
 * test_cli.c: the command as a user meets it: exit codes, both outputs, resuming, interrupting, terminals. */
#include "tests/support/cli_fixture.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include "tests/support/store_open.h"
#include "tuning/op/registry.h"

#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

extern const at_implementation at_gemm_host_reference;

#define TUNE "tune", workload, "--db", database, "--device", "host", "--problem-budget", "1000"

static int make_sure(void *store, const char *fingerprint, const attune_decision *decision) {
  attune_decision sure = *decision;
  sure.complete = 1;
  sure.unsure = 0;
  assert_int_equal(at_store_put(store, fingerprint, "gemm", &sure, NULL, 0, 5000), ATTUNE_OK);
  return 0;
}

/* On a loaded machine noise may leave a choice open, and the next run would measure again: here all are settled. */
static void settle_winners(void) {
  at_store *store = NULL;
  assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
  assert_int_equal(at_store_each_winner(store, make_sure, store), ATTUNE_OK);
  at_store_close(store);
}

/* A winner that is not the default, whatever was: the default itself claims nothing. */
static int claim_much(void *store, const char *fingerprint, const attune_decision *decision) {
  attune_decision more = *decision;
  at_copy_text(more.implementation, sizeof more.implementation, at_gemm_host_reference.name);
  more.implementation_version = at_gemm_host_reference.version;
  more.configuration[0] = '\0';
  more.complete = 1;
  more.unsure = 0;
  more.default_time_ns = 50.0 * more.time_ns;
  assert_int_equal(at_store_put(store, fingerprint, "gemm", &more, NULL, 0, 5000), ATTUNE_OK);
  return 0;
}

/* Stored times are printed next to the measured ones, also when the last check marked them as unsure. */
TEST(verify_tells_the_claim_each_time) {
  at_store *store = NULL;
  expect_run(0, TUNE);
  assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
  assert_int_equal(at_store_each_winner(store, claim_much, store), ATTUNE_OK);
  at_store_close(store);
  for (int look = 0; look < 2; look++) {
    const int code = finish(
        start((const char *const[]){"verify", "--db", database, "--device", "host", "--sample", "0", NULL}, out_path));
    assert_true(code == 0 || code == 1);
    expect_out(" 50.00x ");
  }
}

TEST(tunes_once) {
  expect_run(0, TUNE);
  expect_out("3 tuned, 0 already stored, 0 failed, 0 left");
  expect_out("geomean speedup");
  expect_out("gemm f64 nn 50x60x70 strict");
  assert_null(strchr(out_text, '\033'));
  assert_string_equal(err_text, "");
  settle_winners();
  expect_run(0, "tune", "--json", workload, "--db", database, "--device", "host");
  json_t *report = parse_out();
  assert_int_equal(member(report, "problems"), 3);
  assert_int_equal(member(report, "tuned"), 0);
  assert_int_equal(member(report, "stored"), 3);
  const json_t *first = json_array_get(json_object_get(report, "results"), 0);
  assert_string_equal(json_string_value(json_object_get(first, "outcome")), "stored");
  assert_true(json_real_value(json_object_get(json_object_get(first, "decision"), "time_ns")) > 0);
  json_decref(report);
  expect_run(0, TUNE);
  expect_out("nothing to measure");
  expect_out("(stored)");
  expect_run(0, TUNE, "--force");
  expect_out("0 failed, 0 left");
}

TEST(shows_and_explains) {
  expect_run(0, TUNE);
  expect_run(0, "show", "--db", database);
  expect_out("gemm f32 nn 80x80x80 strict");
  expect_out("speedup");
  assert_null(strchr(out_text, '\033'));
  expect_run(0, "show", "--db", database, "--json", "--device", "host");
  json_t *winners = parse_out();
  assert_int_equal(json_array_size(winners), 3);
  const json_t *winner = json_array_get(winners, 0);
  assert_true(json_is_true(json_object_get(winner, "valid")));
  assert_string_equal(json_string_value(json_object_get(winner, "device")), "host");
  assert_true(member(winner, "samples") > 0);
  json_decref(winners);
  /* A problem as one argument, as words, and after the end of the options. */
  expect_run(0, "explain", "--db", database, "--device", "host", "gemm f32 nn 80x80x80 strict");
  expect_out("the measured winner of the database");
  expect_out("the contract's tolerance");
  expect_run(0, "explain", "--json", "--db", database, "--device", "host", "--", "gemm", "f32", "nn", "80x80x80",
             "strict");
  json_t *decision = parse_out();
  assert_string_equal(json_string_value(json_object_get(decision, "source")), "stored");
  assert_true(member(decision, "tuned_at") > 1700000000);
  json_decref(decision);
  expect_run(0, "explain", "--db", database, "--device", "host", "gemm f32 tt 77x55x33 strict");
  expect_out("no stored winner is valid here");
  /* Candidates measured together with the winner. */
  expect_run(0, "explain", "--trials", "--db", database, "--device", "host", "gemm f32 nn 80x80x80 strict");
  expect_out("verdict");
  expect_run(0, "explain", "--trials", "--json", "--db", database, "--device", "host", "gemm f32 nn 80x80x80 strict");
  decision = parse_out();
  assert_true(json_array_size(json_object_get(decision, "trials")) >= 1);
  json_decref(decision);
  expect_run(0, "explain", "--trials", "--db", database, "--device", "host", "gemm f32 tt 77x55x33 strict");
  expect_out("no trials of the problem are stored");
}

TEST(warm_wants_a_database_with_something_in_it) {
  write_file(database, "");
  expect_run(1, "warm", database, "--device", "host");
  expect_error("is empty; should be a database made by `attune tune'");
  unlink(database);
  expect_run(0, TUNE);
  expect_run(0, "warm", database, "--device", "host");
  expect_out("nothing to compile: 3 winners are valid on host, none of which needs a kernel\n");
  expect_run(0, "warm", ":memory:", "--device", "host");
  expect_out("nothing to compile: no stored winner is valid on host");
}

TEST(goes_on_after_a_failure) {
  /* No machine has the memory for the second one. */
  write_file(workload, "name,dtype,m,n,k\nsmall,f32,64,64,64\nhuge,f32,10000000,10000000,10000000\nagain,f32,64,64,"
                       "64\nlast,f32,60,60,60\n");
  expect_run(1, TUNE, "--json");
  expect_error("huge: it is too large to be measured on host: its operands are 1.2 PB, ");
  json_t *report = parse_out();
  assert_int_equal(member(report, "tuned"), 2);
  assert_int_equal(member(report, "failed"), 1);
  assert_int_equal(member(report, "same"), 1);
  json_decref(report);
}

TEST(holds_the_budget) {
  FILE *file = fopen(workload, "w");
  assert_non_null(file);
  fputs("dtype,m,n,k\n", file);
  for (int i = 1; i <= 200; i++) fprintf(file, "f32,%d,%d,%d\n", 8 + i, 64, 64);
  fclose(file);
  expect_run(0, "tune", workload, "--db", database, "--device", "host", "--budget", "0.3", "--json");
  json_t *report = parse_out();
  assert_true(json_real_value(json_object_get(report, "seconds")) < 60.0); /* a busy machine may stop a call for long */
  assert_true(member(report, "left") > 0);
  /* Busy: another process had the host's turn, or the problem's. */
  assert_int_equal(member(report, "tuned") + member(report, "left") + member(report, "busy"), 200);
  assert_int_equal(member(report, "failed"), 0);
  json_decref(report);
}

static void sleep_ms(long ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static int lines_in(const char *path) {
  int lines = 0;
  char *text = read_file(path);
  for (const char *c = text; *c; c++) lines += *c == '\n';
  free(text);
  return lines;
}

/* A problem ends soon enough on a busy machine, too: the run waits a few seconds for the present one. */
#define TUNE_SHORT "tune", workload, "--db", database, "--device", "host", "--problem-budget", "100"

TEST(resumes_after_an_interrupt) {
  FILE *file = fopen(workload, "w");
  assert_non_null(file);
  fputs("dtype,m,n,k\n", file);
  for (int i = 1; i <= 12; i++) fprintf(file, "f32,%d,96,96\n", 64 + i);
  fclose(file);
  signal(SIGINT, SIG_DFL); /* what is ignored at the start stays so */
  pid_t child = start((const char *const[]){TUNE_SHORT, NULL}, out_path);
  for (int i = 0; i < 24000 && lines_in(out_path) < 2; i++) sleep_ms(5);
  kill(child, SIGINT);
  expect_code(130, child);
  expect_out("interrupted: finished problems are stored");
  expect_out(" 0 failed, ");
  char *told = read_file(out_path);
  assert_null(strstr(told, "  left")); /* those are counted, not listed */
  free(told);
  expect_run(0, "show", "--db", database, "--json");
  json_t *winners = parse_out();
  size_t done = json_array_size(winners);
  assert_in_range(done, 2, 11);
  json_decref(winners);
  expect_run(0, TUNE_SHORT, "--json");
  json_t *report = parse_out();
  assert_int_equal(member(report, "tuned") + member(report, "stored"), 12);
  json_decref(report);
  expect_run(0, "show", "--db", database, "--json");
  winners = parse_out();
  assert_int_equal(json_array_size(winners), 12);
  json_decref(winners);
}

/* A program's calls in mode record. */
static void record(int size, int calls) {
  attune_tuner_options options = {.database = database, .mode = ATTUNE_MODE_RECORD};
  attune_tuner *tuner = NULL;
  attune_device *host = NULL;
  _Alignas(128) static float a[200 * 200], b[200 * 200], d[200 * 200];
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = size, .n = size, .k = size};
  const attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = d};
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(attune_tuner_create(&tuner, &options), ATTUNE_OK);
  for (int i = 0; i < calls; i++)
    assert_int_equal(attune_gemm(tuner, attune_stream_default(host), &problem, &operands), ATTUNE_OK);
  attune_tuner_destroy(tuner);
}

TEST(tunes_what_was_recorded) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* there this process sees another CPU than the command does */
  expect_run(1, "tune", "recorded", "--db", database, "--device", "host");
  expect_error("no problems recorded for host");
  expect_run(2, "tune", "recorded", "--db", ":memory:", "--device", "host");
  record(64, 1);
  expect_run(0, "tune", "recorded", "--db", database, "--device", "host");
  expect_out("gemm f32 nn 64x64x64 strict");
  expect_out("1 tuned");
}

/* The problem with the longest total time comes first, and calls weigh in the reported speedup. */
TEST(weighs_by_calls_and_time) {
  if (getenv("AT_UNDER_VALGRIND")) skip();
  record(8, 30);
  record(200, 10);
  record(9, 1);
  expect_run(0, "tune", "recorded", "--db", database, "--device", "host", "--problem-budget", "50", "--json");
  json_t *report = parse_out();
  const json_t *results = json_object_get(report, "results");
  static const char *const names[] = {"gemm f32 nn 200x200x200 strict", "gemm f32 nn 8x8x8 strict",
                                      "gemm f32 nn 9x9x9 strict"};
  double default_ns = 0, winner_ns = 0;
  assert_int_equal(json_array_size(results), 3);
  for (size_t i = 0; i < 3; i++) {
    const json_t *item = json_array_get(results, i), *decision = json_object_get(item, "decision");
    assert_string_equal(json_string_value(json_object_get(item, "problem")), names[i]);
    assert_true(json_number_value(json_object_get(item, "estimated_ns")) > 0);
    const double count = (double)member(item, "count");
    const double time_ns = json_number_value(json_object_get(decision, "time_ns")),
                 speedup = json_number_value(json_object_get(decision, "speedup")),
                 ratio = json_number_value(json_object_get(decision, "default_time_ns")) / time_ns;
    const bool unsure = json_is_true(json_object_get(decision, "unsure")); /* it counts as no gain */
    assert_true(unsure ? speedup <= 1.0 : speedup > 0.999 * ratio && speedup < 1.001 * ratio);
    default_ns += count * time_ns * speedup;
    winner_ns += count * time_ns;
  }
  assert_int_equal(member(json_array_get(results, 0), "count"), 10);
  const double weighted = json_number_value(json_object_get(report, "weighted_speedup"));
  assert_true(weighted > 0.999 * default_ns / winner_ns && weighted < 1.001 * default_ns / winner_ns);
  json_decref(report);
  expect_run(0, "tune", "recorded", "--db", database, "--device", "host");
  expect_out("weighted by calls x time: ");
}

/* A winner measured elsewhere is shown only on demand, and is not used. */
TEST(tells_elsewhere_from_here) {
  at_store *store = NULL;
  const attune_decision winner = {.problem = "gemm f32 nn 24x24x24 strict",
                                  .device = "host",
                                  .implementation = "host_reference",
                                  .implementation_version = 1,
                                  .source = ATTUNE_SOURCE_TUNED,
                                  .time_ns = 10,
                                  .samples = 9,
                                  .default_implementation = "host_reference",
                                  .default_time_ns = 20,
                                  .measure = "hot,eager",
                                  .candidates = 2,
                                  .complete = 1,
                                  .tuned_at = 1700000000};
  assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
  assert_int_equal(at_store_put(store, "another machine", "gemm f32 nn strict", &winner, NULL, 0, 1000), ATTUNE_OK);
  at_store_close(store);
  expect_run(0, "show", "--db", database);
  expect_out("no stored winner is valid here");
  expect_out("1 measured on other machines");
  expect_run(0, "show", "--db", database, "--all");
  expect_out("another machine");
  expect_out("2.00x");
  expect_run(0, "show", "--db", database, "--all", "--json");
  json_t *winners = parse_out();
  assert_true(json_is_false(json_object_get(json_array_get(winners, 0), "valid")));
  json_decref(winners);
  expect_run(0, "explain", "--db", database, "--device", "host", "gemm f32 nn 24x24x24 strict");
  expect_out("no stored winner is valid here");
  expect_out("a stored winner is not valid here: device another machine there, ");
}

/* A winner that holds, but was compared with another version of an implementation than is here. */
TEST(tells_what_has_changed) {
  at_store *store = NULL;
  attune_device *host = NULL;
  char fingerprint[AT_FINGERPRINT_CHARS];
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* whose CPU is another than the command's */
  const attune_decision winner = {.problem = "gemm f32 nn 8x8x8 strict",
                                  .implementation = "host_reference",
                                  .implementation_version = 1,
                                  .time_ns = 10,
                                  .samples = 9,
                                  .default_time_ns = 20,
                                  .measure = "hot,eager",
                                  .complete = 1,
                                  .tuned_at = 1700000000};
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(attune_device_fingerprint(host, fingerprint, sizeof fingerprint), ATTUNE_OK);
  char *small = strstr(fingerprint, "host_small ");
  assert_non_null(small);
  small[strlen("host_small ")] = '0';
  assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
  assert_int_equal(at_store_put(store, fingerprint, "gemm f32 nn strict", &winner, NULL, 0, 1000), ATTUNE_OK);
  at_store_close(store);
  expect_run(0, "show", "--db", database);
  expect_out("1 compared with other libraries, or fewer implementations, than there are here");
  expect_run(0, "show", "--db", database, "--all", "--json");
  json_t *winners = parse_out();
  const json_t *row = json_array_get(winners, 0);
  assert_true(json_is_true(json_object_get(row, "valid")));
  assert_non_null(strstr(json_string_value(json_object_get(row, "changed")), "host_small's version 0 there, "));
  assert_non_null(strstr(json_string_value(json_object_get(row, "fingerprint")), "; host_reference 1"));
  json_decref(winners);
  expect_run(0, "explain", "--db", database, "--device", "host", "gemm f32 nn 8x8x8 strict");
  expect_out("the measured winner of the database");
  expect_out("changed since");
  expect_out("host_small's version 0 there, ");
}

/* A full disk is an error. */
TEST(says_when_it_cannot_print) {
  if (access("/dev/full", W_OK) != 0) skip();
  expect_code(1, start((const char *const[]){"devices", NULL}, "/dev/full"));
  expect_error("standard output cannot be written");
}

/* All that `attune tune` prints on a terminal of 100 columns. */
static char *tune_on_terminal(void) {
  struct winsize size = {.ws_row = 24, .ws_col = 100};
  int terminal = -1;
  pid_t child = forkpty(&terminal, NULL, NULL, &size);
  if (child < 0) { /* a container without /dev/pts */
    print_message("skipped: no pseudo-terminal here (%s)\n", strerror(errno));
    skip();
  }
  if (child == 0) {
    execl(AT_COMMAND, "attune", TUNE, "--force", (char *)NULL);
    _exit(99);
  }
  char *text = calloc(1, 1 << 16);
  size_t used = 0;
  for (ssize_t got; used < (1 << 16) - 1 && (got = read(terminal, text + used, (1 << 16) - 1 - used)) > 0;)
    used += (size_t)got;
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  return text;
}

TEST(draws_a_bar_on_a_terminal) {
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  char *text = tune_on_terminal();
  assert_non_null(strstr(text, "] 0/3"));
  assert_non_null(strstr(text, "eta"));
  free(text);
  setenv("TERM", "dumb", 1);
  setenv("NO_COLOR", "1", 1);
  text = tune_on_terminal();
  assert_null(strchr(text, '\033'));
  assert_non_null(strstr(text, "0 failed, 0 left"));
  free(text);
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, set_up, tear_down);
}
