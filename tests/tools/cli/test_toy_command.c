/* SPDX-License-Identifier: Apache-2.0
 * test_toy_command.c: the command tunes, shows, explains, verifies and reads workloads of an operation that it does not
 * know by name. */
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tuning/store/decision.h"

#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/toy/toy_op.h"
#include "tests/support/toy/wide_op.h"
#include "tuning/tuner/winner.h"

#define SHORT "toy f64:i64 5x6 strict taps=7/-8"

static char folder[] = "/tmp/attune-test-toy-XXXXXX", output[1 << 18];

/* Runs the command in the folder; its exit code. Both outputs are kept. */
static int run(const char *words) {
  static char line[AT_PROBLEM_CHARS + 1024];
  snprintf(line, sizeof line, "cd %s && %s %s 2>&1", folder, TOY_COMMAND, words);
  FILE *pipe = popen(line, "r");
  assert_non_null(pipe);
  output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static void expect_run(const char *words, int code) {
  const int got = run(words);
  if (got != code) fail_msg("attune %s: exit code %d: %s", words, got, output);
}

static void expect(const char *words) {
  if (!strstr(output, words)) fail_msg("no \"%s\" in: %s", words, output);
}

static void expect_none(const char *words) {
  if (strstr(output, words)) fail_msg("\"%s\" in: %s", words, output);
}

static void write_file(const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

/* A candidate with a wrong second output does not win. */
TEST(a_workload_is_tuned) {
  write_file("w.csv", "op,kind,rows,cols,taps\ntoy,f64:i64,5,6,7/-8\n");
  write_file("long.csv", "problem\n" TOY_PROBLEM "\n");
  expect_run("tune w.csv --db t.db --device host", 0);
  expect_run("tune long.csv --db t.db --device host", 0);
  expect_run("explain '" SHORT "' --db t.db --device host", 0);
  expect("spin");
  expect("ns=30000");
  expect_run("explain '" TOY_PROBLEM "' --db t.db --device host", 0);
  expect(TOY_PROBLEM);
  expect("ns=30000");
}

/* Runs the command on a terminal of so many columns. */
static void run_on_terminal_called(const char *terminal, unsigned short columns, const char *words) {
  char line[2048];
  int controller = -1, status = 0;
  const struct winsize size = {.ws_row = 50, .ws_col = columns};
  snprintf(line, sizeof line, "cd %s && LC_ALL=C.UTF-8 %s %s", folder, TOY_COMMAND, words);
  const pid_t child = forkpty(&controller, NULL, NULL, &size);
  assert_true(child >= 0);
  if (child == 0) {
    setenv("TERM", terminal, 1);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
  }
  size_t at = 0;
  for (ssize_t got; at < sizeof output - 1 && (got = read(controller, output + at, sizeof output - 1 - at)) > 0;)
    at += (size_t)got;
  output[at] = '\0';
  close(controller);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("attune %s: %s", words, output);
}

static void run_on_terminal(unsigned short columns, const char *words) {
  run_on_terminal_called("dumb", columns, words);
}

static size_t longest_line(void) {
  size_t most = 0;
  for (const char *line = output; *line;) {
    const size_t bytes = strcspn(line, "\r\n");
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i++) columns += ((unsigned char)line[i] & 0xC0) != 0x80;
    if (columns > most) most = columns;
    line += bytes + (line[bytes] != '\0');
  }
  return most;
}

/* A problem of 3,980 characters: tuned from a workload, whole in pipes and where all is asked for, cut on a
 * terminal. */
TEST(a_long_problem_is_shown) {
  char text[AT_PROBLEM_CHARS], file[AT_PROBLEM_CHARS + 64], words[AT_PROBLEM_CHARS + 64];
  wide_text(text, 30, WIDE_MOST, 9);
  snprintf(file, sizeof file, "problem,count\n%s,12\n", text);
  write_file("wide.csv", file);
  expect_run("tune wide.csv --db wide.db --device host", 0);
  snprintf(words, sizeof words, "explain '%s' --db wide.db --device host", text);
  expect_run(words, 0);
  expect(text);
  expect("ns=20000"); /* which has no faults here */
  expect_run("show --db wide.db", 0);
  expect(text);
  expect_run("show --db wide.db --json", 0);
  expect(text);
  expect_run("verify --db wide.db --device host", 0);
  expect(text);
  run_on_terminal(80, "show --db wide.db");
  expect("wide 30 16:8 strict");
  expect("\u2026");
  if (longest_line() > 80) fail_msg("a line is longer than the terminal: %s", output);
  run_on_terminal(80, "show --db wide.db --wide");
  assert_true(longest_line() > WIDE_MOST);
}

TEST(winners_are_shown) {
  expect_run("show --db t.db --json", 0);
  json_error_t error;
  json_t *all = json_loads(output, 0, &error);
  if (!all) fail_msg("%s: %s", error.text, output);
  json_decref(all);
  expect(TOY_PROBLEM); /* longer than 256 characters, and whole */
  expect(SHORT);
}

/* A winner that is `speedup` x as fast, and not sure of it, in a database of its own. */
static void put_unsure(const char *database, double speedup) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *tuner = NULL;
  attune_device *device = NULL;
  attune_decision d;
  char path[128], fingerprint[AT_FINGERPRINT_CHARS], family[AT_FAMILY_CHARS];
  OK(attune_device_get(&device, "host"));
  const at_key key = toy_key(TOY_PROBLEM, device);
  snprintf(path, sizeof path, "%s/%s", folder, database);
  options.database = path;
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  OK(at_decision_begin(tuner, &toy_op, key.words + 1, device, &d));
  OK(at_fingerprint_whole(device, toy_ops, 1, fingerprint, sizeof fingerprint));
  OK(toy_op.problem->family(key.words + 1, family, sizeof family));
  at_copy_text(d.implementation, sizeof d.implementation, "spin");
  at_copy_text(d.configuration, sizeof d.configuration, "ns=30000");
  at_copy_text(d.default_implementation, sizeof d.default_implementation, "base threads=2 call=gemv");
  d.implementation_version = d.complete = d.unsure = 1;
  d.time_ns = 30000.0;
  d.default_time_ns = speedup * d.time_ns;
  d.samples = 12;
  d.tuned_at = 1700000000;
  OK(at_store_put(at_tuner_store(tuner), fingerprint, family, &d, NULL, 0, 1000));
  attune_tuner_destroy(tuner);
}

/* Whatever is told of the one of 43 x, it is not that. */
static void expect_no_gain(const char *words) {
  expect_run(words, 0);
  expect_none("43.");
}

/* Marked in the table, with a line that says what the mark means; no mark and no line where all are sure. */
TEST(unsure_winners_are_marked) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* the command, outside of it, sees another CPU */
  put_unsure("unsure.db", 43.0);
  expect_run("show --db unsure.db", 0);
  expect("    -  ?  base threads=2 call=gemv ");
  expect_no_gain("show --db unsure.db --json");
  expect_run("show --db unsure.db", 0);
  expect("\n? 1 unsure (noise or other work), counted as 1x:\n  `attune tune FILE' measures them again\n");
  expect_run("explain '" TOY_PROBLEM "' --db unsure.db --device host", 0);
  expect("by base threads=2 call=gemv");
  expect("not known: ");
  expect_no_gain("explain '" TOY_PROBLEM "' --db unsure.db --device host");
  expect_run("show --db t.db", 0);
  if (strchr(output, '?')) fail_msg("a mark where all are sure: %s", output);
}

/* An unsure winner stays where there is no time to measure again; what it claims is no gain. */
TEST(unsure_winners_count_as_no_gain) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* the command, outside of it, sees another CPU */
  put_unsure("unsure.db", 43.0);
  expect_run("tune long.csv --db unsure.db --device host --force --problem-budget 0.001", 0);
  expect_none("43.");
  expect("geomean speedup over the default: 1.000x, weighted by calls x time: 1.000x");
  put_unsure("unsure.db", 0.5);
  expect_run("tune long.csv --db unsure.db --device host --force --problem-budget 0.001", 0);
  expect("geomean speedup over the default: 0.500x, weighted by calls x time: 0.500x");
  expect_none("0.50x");
}

/* With a budget that leaves time what other work disturbed is measured again when that has ended; else it is left for
 * the next run. */
TEST(a_disturbed_race_is_repeated) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* the command, outside of it, sees another CPU */
  OK(setenv("TOY_DISTURBED_MS", "900", 1) == 0 ? ATTUNE_OK : ATTUNE_INTERNAL);
  expect_run("tune long.csv --db disturbed.db --device host", 0);
  expect("1 is unsure");
  expect_run("tune long.csv --db again.db --device host --budget 3600", 0);
  OK(unsetenv("TOY_DISTURBED_MS") == 0 ? ATTUNE_OK : ATTUNE_INTERNAL);
  expect_none("unsure (");
  expect("1 tuned");
  expect_run("show --db again.db", 0);
  expect_none("?");
  expect("ns=30000");
}

static double json_number(const json_t *report, const char *name) {
  return json_number_value(json_object_get(report, name));
}

/* `attune tune` of a workload on the virtual clock, where each row of a problem takes so long. */
static json_t *tune_by_rows(const char *file, const char *row_ns, const char *words) {
  char line[256];
  assert_int_equal(setenv("TOY_ROW_NS", row_ns, 1), 0);
  snprintf(line, sizeof line, "tune %s --device host --json %s", file, words);
  expect_run(line, 0);
  assert_int_equal(unsetenv("TOY_ROW_NS"), 0);
  const char *json = strstr(output, "{\n"); /* behind warnings */
  json_t *report = json ? json_loads(json, 0, NULL) : NULL;
  if (!report) fail_msg("no report: %s", output);
  return report;
}

/* One problem of 80 ms a call, called most often, and 36 short ones: with the time for all of them each
 * is looked at. */
TEST(a_budget_looks_at_every_problem) {
  char text[4096] = "op,kind,rows,cols,taps,count\ntoy,f32,8000,1,7,1000\n";
  size_t at = strlen(text);
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* the command, outside of it, sees another CPU */
  for (int i = 1; i <= 36; i++) assert_true(at_append(text, sizeof text, &at, "toy,f32,%d,%d,7,1\n", 1 + i % 4, i));
  write_file("many.csv", text);
  json_t *report = tune_by_rows("many.csv", "10000", "--budget 12 --db many.db");
  if (json_number(report, "tuned") < 37) fail_msg("%.0f tuned: %.4000s", json_number(report, "tuned"), output);
  if (json_number(report, "seconds") > 12.5) fail_msg("%.2f s", json_number(report, "seconds"));
  json_decref(report);
}

/* The long one, which noise leaves open however long it is measured, does not take what the others need. */
TEST(noise_takes_what_is_left) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* the command, outside of it, sees another CPU */
  assert_int_equal(setenv("TOY_DISTURBED_MS", "1000000", 1), 0);
  json_t *report = tune_by_rows("many.csv", "10000", "--budget 20 --db noise.db");
  assert_int_equal(unsetenv("TOY_DISTURBED_MS"), 0);
  if (json_number(report, "tuned") + json_number(report, "left") < 37 || json_number(report, "tuned") < 36)
    fail_msg("%.0f tuned: %.4000s", json_number(report, "tuned"), output);
  if (json_number(report, "seconds") > 20.5) fail_msg("%.2f s", json_number(report, "seconds"));
  json_decref(report);
}

/* One whose calls alone take longer than the budget is left, in time for the other, or after one call. */
TEST(what_is_too_long_is_left) {
  static const struct {
    const char *row_ns;
    double call_s;
  } rows[] = {{"300000", 2.4}, {"2500000", 20.0}, {"40000", 0.32}};
  write_file("huge.csv", "op,kind,rows,cols,taps\ntoy,f32,8000,1,7\ntoy,f32,1,5,7\n");
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* the command, outside of it, sees another CPU */
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    json_t *report = tune_by_rows("huge.csv", rows[i].row_ns, "--budget 5 --db :memory:");
    const double over_s = json_number(report, "seconds") - 5.0, most_s = rows[i].call_s > 0.5 ? rows[i].call_s : 0.5;
    if (over_s > most_s) fail_msg("row %zu: %.2f s over the budget", i, over_s);
    if (json_number(report, "tuned") + json_number(report, "left") != 2) fail_msg("row %zu: %s", i, output);
    const json_t *small = json_array_get(json_object_get(report, "results"), 1);
    assert_string_equal(json_string_value(json_object_get(small, "outcome")), "tuned");
    json_decref(report);
  }
  assert_int_equal(setenv("TOY_ROW_NS", "300000", 1), 0);
  expect_run("tune huge.csv --device host --budget 5 --db :memory:", 0);
  assert_int_equal(unsetenv("TOY_ROW_NS"), 0);
  expect("1 left for lack of budget");
  expect_none("the budget is spent"); /* a line for each */
  expect_none("fits into the budget");
  write_file("huge.csv", "op,kind,rows,cols,taps\ntoy,f32,8000,1,7\n");
  assert_int_equal(setenv("TOY_ROW_NS", "2500000", 1), 0);
  expect_run("tune huge.csv --device host --budget 5 --db :memory:", 0);
  assert_int_equal(unsetenv("TOY_ROW_NS"), 0);
  expect("0 tuned, 0 already stored, 0 failed, 1 left for lack of budget");
  expect("none of these fits into the budget: the shortest needs ");
}

/* The remaining budget bounds the remaining time of the run. */
TEST(the_bar_knows_the_budget) {
  run_on_terminal_called("xterm", 100, "tune w.csv --device host --budget 90 --db :memory:");
  expect("eta 1:");
  expect_none("eta ?");
}

TEST(winners_are_verified) {
  expect_run("verify --db t.db --device host", 0);
  expect(TOY_PROBLEM);
  expect("holds");
  expect_none("wrong");
}

TEST(bad_rows_are_told) {
  write_file("bad.csv", "op,kind,rows,cols,taps\ntoy,f32,9,0,1\n");
  expect_run("tune bad.csv --db t.db --device host", 2);
  expect("bad.csv:2:");
  write_file("bad.csv", "op,kind,rows,cols,tapes\ntoy,f32,9,7,1\n");
  expect_run("tune bad.csv --db t.db --device host", 2);
  expect(
      "bad.csv:1:19: \"tapes\" is not a column of gemm, toy, wide; should be name, op, count or one of gemm: dtype, ");
  expect("; toy: kind, rows, cols, taps");
  write_file("bad.csv", "op,kind,rows,cols,taps,m\ntoy,f32,9,7,1,4\n");
  expect_run("tune bad.csv --db t.db --device host", 2);
  expect("\"m\" is not a column of toy"); /* gemm does */
  write_file("bad.csv", "op,kind\ntoys,f32\n");
  expect_run("tune bad.csv --db t.db --device host", 2);
  expect("there is no operation \"toys\"");
  expect_run("explain 'toy f32 9x7' --db t.db --device host", 2);
  expect_run("explain 'tox f32 9x7' --db t.db --device host", 2);
  expect("should be one of: gemm, toy");
  write_file("bad.csv", "op,kind,rows,cols,taps,dtype,m,n,k\ntoy,f32,9,7,1,,,,\ngemm,,,,,f32,16,none,16\n");
  expect_run("tune bad.csv --db t.db --device host", 2);
  expect("bad.csv:3:");
}

FIXTURE(open_all) {
  if (!mkdtemp(folder)) return -1;
  return setenv("XDG_RUNTIME_DIR", folder, 1) || setenv("HOME", folder, 1);
}

FIXTURE(close_all) {
  return folder_remove(folder);
}

/* The chosen kernel is in the kernel cache afterwards; on a machine with an empty cache, warm fills it. */
TEST(kernels_are_kept) {
  char kernels[128], kernel[160];
  snprintf(kernels, sizeof kernels, "%s/kernels", folder);
  snprintf(kernel, sizeof kernel, "%s/ns=30000", kernels);
  assert_int_equal(mkdir(kernels, 0700), 0);
  assert_int_equal(setenv("TOY_KERNELS", kernels, 1), 0);
  expect_run("tune w.csv --db kept.db --device host", 0);
  expect("1 of the tuned needs compiled kernels: those of 1 are in the kernel cache");
  assert_int_equal(access(kernel, F_OK), 0);
  assert_int_equal(unlink(kernel), 0);
  expect_run("warm kept.db --device host", 0);
  expect("compiled");
  expect(
      "1 winner is valid on host: kernels of 1 compiled now, of 0 already in the kernel cache, 0 failed, 0 need none");
  assert_int_equal(access(kernel, F_OK), 0);
  expect_run("warm kept.db --device host", 0);
  expect("nothing to compile: of 1 winner valid on host, the kernels of 1 are already in the kernel cache, the rest "
         "need none");
  expect_run("warm --db kept.db --device host --json", 0);
  json_t *json = json_loads(output, 0, NULL);
  assert_non_null(json);
  assert_int_equal(json_integer_value(json_object_get(json, "there")), 1);
  assert_int_equal(json_integer_value(json_object_get(json, "compiled")), 0);
  assert_int_equal(json_array_size(json_object_get(json, "results")), 1);
  json_decref(json);
  assert_int_equal(unlink(kernel), 0);
  assert_int_equal(rmdir(kernels), 0);
  expect_run("warm kept.db --device host", 1);
  expect("ns=30000 cannot be kept");
  expect("1 failed");
  expect_run("tune w.csv --db kept.db --device host --force", 0);
  expect("the winner's kernel is not in the kernel cache: ns=30000 cannot be kept");
  OK(unsetenv("TOY_KERNELS") == 0 ? ATTUNE_OK : ATTUNE_INTERNAL);
  expect_run("warm kept.db --device host", 0);
  expect("nothing to compile: 1 winner is valid on host, none of which needs a kernel");
  expect_run("warm none.db --device host", 2);
  expect_run("warm kept.db again.db", 2);
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
