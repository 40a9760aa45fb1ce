/* SPDX-License-Identifier: Apache-2.0
 * test_gate_parts.c: the small parts of the runner: command lines, commands as cases, what a case may cost, medians,
 * the machine. */
#include "tests/tools/compare/gate_fixture.h"

#include "tools/compare/run/machine.h"
#include "tools/compare/run/schedule_parts.h"
#include "tools/compare/stats/summary.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

/* --- command lines --- */

static void argv_is_of(const char *line, const char *build, bool more, const char *const *words) {
  char **argv = gate_argv_of(line, build, more);
  size_t i = 0;
  for (; words[i]; i++) {
    assert_non_null(argv[i]);
    assert_string_equal(argv[i], words[i]);
  }
  assert_null(argv[i]);
  gate_argv_free(argv);
}

static void argv_is(const char *line, bool more, const char *const *words) {
  argv_is_of(line, "", more, words);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(command_lines) {
  argv_is("./mine --size=5  a=b", false, WORDS("./mine", "--size=5", "a=b"));
  argv_is("A=1 ./mine", false, WORDS("/bin/sh", "-c", "A=1 ./mine", "sh"));
  argv_is("./mine 'a b'", true, WORDS("/bin/sh", "-c", "./mine 'a b' \"$@\"", "sh"));
  argv_is("~/mine", false, WORDS("/bin/sh", "-c", "~/mine", "sh"));
  argv_is("a | b", false, WORDS("/bin/sh", "-c", "a | b", "sh"));
  argv_is("", false, WORDS("/bin/sh", "-c", "", "sh"));
}

/* {build} is one word, or a part of one, whatever the folder is called. */
TEST(builds) {
  argv_is_of("{build}/run {build} -o={build}", "old", false, WORDS("old/run", "old", "-o=old"));
  argv_is_of("{build}/run {build}", "/my builds/it's \"new\" $HOME", false,
             WORDS("/my builds/it's \"new\" $HOME/run", "/my builds/it's \"new\" $HOME"));
  argv_is_of("run", "old", false, WORDS("run"));
  argv_is_of("{build}", "{build}", false, WORDS("{build}"));
  argv_is_of("{build}/run | wc", "a b", false, WORDS("/bin/sh", "-c", "'a b'/run | wc", "sh"));
  argv_is_of("'{build}/a b' \"{build}/c\"", "it's $x", true,
             WORDS("/bin/sh", "-c", "'it'\\''s $x/a b' \"it's \\$x/c\" \"$@\"", "sh"));
  argv_is_of("echo \\\"{build}\\\"", "a b", false, WORDS("/bin/sh", "-c", "echo \\\"'a b'\\\"", "sh"));
  argv_is("{build", false, WORDS("/bin/sh", "-c", "{build", "sh"));
}

/* --- commands as cases --- */

static volatile sig_atomic_t stopped;

/* The error of opening the command, or NULL, then one visit of two samples. */
static char *time_command(const char *text, double hang_s, gate_visit *visit) {
  static gate_sample samples[2];
  const gate_limits limits = {hang_s, &stopped};
  gate_case *cases = NULL;
  size_t count = 0;
  int calls = 0;
  gate_source *source = gate_commands_create(&text, 1, "/dev", &limits, 1);
  *visit = (gate_visit){.samples = samples};
  FINE(source->kind->start(source, &cases, &count));
  assert_int_equal(count, 1);
  assert_string_equal(cases[0].name, "x");
  assert_string_equal(cases[0].device, "process");
  gate_cases_free(cases, count);
  char *error = source->kind->open(source, 0, 1e6, 0, &calls);
  if (!error) error = source->kind->sample(source, visit, 2);
  if (!error) assert_int_equal(calls, 1);
  gate_source_destroy(source);
  return error;
}

TEST(commands) {
  gate_visit visit;
  char line[256];
  snprintf(line, sizeof line, "x=echo x >>%s", path_of("count"));
  FINE(time_command(line, 60, &visit));
  struct stat info;
  assert_int_equal(stat(path_of("count"), &info), 0);
  assert_int_equal(info.st_size, 6); /* once to warm up, twice timed */
  assert_int_equal(visit.sample_count, 2);
  assert_true(visit.samples[0].ns > 0 && visit.samples[0].cpu_ns > 0 &&
              visit.samples[1].start > visit.samples[0].start);
  FINE(time_command("x=test -c {build}/null", 60, &visit));
  SAYS(time_command("x=test -c {build}/none", 60, &visit), "exited with code 1");
  SAYS(time_command("x=echo first >&2; echo the last >&2; exit 5", 60, &visit),
       "exited with code 5; its last output: the last");
  SAYS(time_command("x=kill -9 $$", 60, &visit), "crashed (signal 9, Killed)");
  SAYS(time_command("x=sleep 1000 & wait", 0.2, &visit), "hung (no end after 0.2 s)");
  stopped = 1;
  SAYS(time_command("x=sleep 1000", 600, &visit), "interrupted");
  stopped = 0;
}

/* Processes started by a command that hangs are ended with it. */
TEST(a_whole_group_is_killed) {
  gate_visit visit;
  char line[256], text[32] = "";
  snprintf(line, sizeof line, "x=sleep 1000 & echo $! >%s; wait", path_of("pid"));
  SAYS(time_command(line, 1, &visit), "hung (no end after 1 s)");
  FILE *stream = fopen(path_of("pid"), "r");
  assert_non_null(stream);
  assert_non_null(fgets(text, sizeof text, stream));
  fclose(stream);
  const pid_t pid = (pid_t)strtol(text, NULL, 10);
  assert_true(pid > 1);
  for (int i = 0; i < 3000 && kill(pid, 0) == 0; i++) { /* until the one that takes orphans has taken it */
    char path[64], state_line[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    stream = fopen(path, "r");
    if (!stream || !fgets(state_line, sizeof state_line, stream) || strstr(state_line, ") Z ")) {
      if (stream) fclose(stream);
      return;
    }
    fclose(stream);
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  assert_true(kill(pid, 0) < 0 && errno == ESRCH);
}

/* More than a pipe holds, on standard error: the process must not wait for a reader. */
TEST(a_command_that_talks_much) {
  gate_visit visit;
  SAYS(time_command(
           "x=i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789012345678901234567890 "
           ">&2; i=$((i+1)); done; echo end >&2; exit 1",
           60, &visit),
       "exited with code 1; its last output: end");
}

/* --- what a case may cost --- */

static int rounds_of(const gate_rounds *r, const gate_entry *e) {
  int count = 0;
  for (int i = 0; i < r->schedule.rounds; i++) count += gate_entry_due(r, e, i);
  return count;
}

TEST(slow_cases_cost_less) {
  gate_rounds r = {.schedule = {.rounds = 16, .samples = 5, .case_s = 16}};
  gate_entry e = {.round_s = 0.5, .samples = 5}, fresh = {.round_s = 0};
  assert_int_equal(gate_entry_samples(&r, &fresh, 9), 5);
  assert_int_equal(gate_entry_samples(&r, &e, 9), 5); /* a second a round is its share */
  e.round_s = 2.5;
  assert_int_equal(gate_entry_samples(&r, &e, 9), 2);
  assert_int_equal(rounds_of(&r, &e), 16);
  e.samples = 2;
  e.round_s = 0.9;
  assert_int_equal(gate_entry_samples(&r, &e, 9), 2);
  e = (gate_entry){.round_s = 1.25, .samples = 1};
  assert_int_equal(gate_entry_samples(&r, &e, 9), 1);
  assert_int_equal(rounds_of(&r, &e), 12);
  assert_true(gate_entry_due(&r, &e, 0) && gate_entry_due(&r, &e, 15));
  e.round_s = 100;
  assert_int_equal(rounds_of(&r, &e), 10);
  assert_true(gate_entry_due(&r, &e, 16)); /* a round that is added */
  r.schedule.rounds = 3;
  assert_int_equal(rounds_of(&r, &e), 3);
  e.failures[GATE_HEAD] = e.failures[GATE_BASE] = GATE_FAILURES_MOST;
  assert_int_equal(rounds_of(&r, &e), 0);
}

/* As `attune bench --against' plans them by default; however long a case takes, it is in enough rounds for a verdict,
 * and they come before time may end the pair. */
TEST(slow_pairs_can_be_judged) {
  static const size_t counts[] = {1, 4, 50, 1000};
  static const double lengths[] = {0.9, 2, 4, 120, 1e5};
  gate_rounds r = {
      .side_count = 2,
      .schedule = {.rounds = 24, .samples = 32, .case_s = 20, .judging = {gate_judge, gate_rule_default, 4, 2.2, 18}}};
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
      const gate_entry e = {.round_s = lengths[k], .samples = 1};
      r.count = counts[c];
      const int needed = gate_judge_least_rounds(&gate_rule_default, r.count, 4), until = needed > 18 ? needed : 18;
      int before = 0;
      for (int i = 0; i < until; i++) before += gate_entry_due(&r, &e, i);
      if (before < needed) fail_msg("%zu cases of %g s: %d rounds, %d are needed", r.count, lengths[k], before, needed);
      if (r.count == 1) assert_in_range(before, 15, 18);
    }
}

/* In so many rounds 20 % of a quiet command of a second is certain, and so it is where two rounds went the other way a
 * little; two equal ones are never told apart. */
TEST(a_fifth_of_a_slow_command) {
  enum { SLOW_ROUNDS = 15 };
  for (int slower = 0; slower < 2; slower++) {
    gate_sample samples[2][SLOW_ROUNDS];
    gate_visit visits[2][SLOW_ROUNDS];
    gate_case cases[2];
    for (int side = 0; side < 2; side++) {
      for (int i = 0; i < SLOW_ROUNDS; i++) {
        const double noise = 1 + 0.003 * ((i * 7 + side * 5) % 11 - 5);
        const double change = !slower || !side ? 1 : i == 3 || i == 9 ? 0.93 : 1.2;
        samples[side][i] = (gate_sample){.ns = 1e9 * noise * change, .start = 1};
        visits[side][i] =
            (gate_visit){.round = i, .calls = 1, .load = -1, .samples = &samples[side][i], .sample_count = 1};
      }
      cases[side] = (gate_case){.name = (char[]){"x"},
                                .device = (char[]){"process"},
                                .mode = (char[]){"hot"},
                                .dtype = (char[]){"-"},
                                .visits = visits[side],
                                .visit_count = SLOW_ROUNDS};
    }
    gate_judgement judged;
    const gate_case *base = &cases[0], *head = &cases[1];
    gate_judge(&judged, &base, &head, 1, true, &gate_rule_default, 4);
    if ((judged.verdict == GATE_SLOWER) != (slower == 1))
      fail_msg("%s, p %g: %s", gate_verdict_name(judged.verdict), judged.p_corrected, judged.why ? judged.why : "");
  }
}

/* A command that takes long is run once before its samples, and its first run tells how long it takes; a short one
 * every time. */
TEST(slow_commands_are_not_run_for_nothing) {
  const gate_limits limits = {60, NULL};
  char words[2][256], log[2][96];
  const char *list[2];
  for (int i = 0; i < 2; i++) {
    snprintf(log[i], sizeof log[i], "%s/log%d", folder, i);
    snprintf(words[i], sizeof words[i], "c%d=echo . >> %s; %s", i, log[i], i ? "sleep 0.2" : ":");
    list[i] = words[i];
  }
  gate_source *s = gate_commands_create(list, 2, NULL, &limits, 1);
  gate_case *cases = NULL;
  size_t count = 0;
  int calls, lines[2] = {0, 0};
  FINE(s->kind->start(s, &cases, &count));
  gate_cases_free(cases, count);
  for (int round = 0; round < 3; round++)
    for (size_t i = 0; i < 2; i++) {
      FINE(s->kind->open(s, i, 1e6, 1, &calls));
      if (i) assert_true(s->opened_ns >= 2e8);
      FINE(s->kind->close(s));
    }
  gate_source_destroy(s);
  for (int i = 0; i < 2; i++) {
    FILE *stream = fopen(log[i], "r");
    assert_non_null(stream);
    for (int c; (c = fgetc(stream)) != EOF;) lines[i] += c == '\n';
    fclose(stream);
    assert_int_equal(unlink(log[i]), 0);
  }
  assert_in_range(lines[0], 1, 3); /* 3, unless the machine took a tenth of a second for it */
  assert_int_equal(lines[1], 1);
}

TEST(one_line) {
  static const char *const texts[][2] = {{"", ""},
                                         {"a", "a"},
                                         {"a b\n", "a b"},
                                         {"a\n\n  b: c \r\nd", "a; b: c; d"},
                                         {"no ')'\n  a + (b\n        ^", "no ')'; a + (b"},
                                         {"\n^\n", ""}};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    char *line = gate_one_line(texts[i][0]);
    assert_string_equal(line, texts[i][1]);
    free(line);
  }
}

TEST(long_calls_are_fewer) {
  const gate_rounds r = {
      .schedule = {.rounds = 16, .samples = 20, .samples_least = 5, .sample_ns = 1e6, .case_s = 1e9}};
  gate_entry e = {.round_s = 0};
  assert_int_equal(gate_entry_samples(&r, &e, 2), 20);
  assert_int_equal(gate_entry_samples(&r, &e, 1), 5); /* how long it takes is not known yet */
  e = (gate_entry){.round_s = 0.1, .samples = 5, .sample_ns = 1e6};
  assert_int_equal(gate_entry_samples(&r, &e, 1), 20);
  e.sample_ns = 2.4e6;
  assert_int_equal(gate_entry_samples(&r, &e, 1), 10);
  e.sample_ns = 1e9;
  assert_int_equal(gate_entry_samples(&r, &e, 1), 5);
}

/* --- medians --- */

TEST(summaries) {
  gate_sample a[] = {{1, 0, 0}, {100, 0, 0}, {2, 0, 0}}, b[] = {{5, 0, 0}, {6, 0, 0}}, c[] = {{4, 0, 0}};
  gate_visit visits[] = {
      {.samples = a, .sample_count = 3}, {.samples = b, .sample_count = 2}, {.samples = c, .sample_count = 1}};
  const gate_case empty = {0}, three = {.visits = visits, .visit_count = 3};
  double ns = -1, spread = -1;
  gate_case_summary(&empty, &ns, &spread);
  assert_true(ns == 0 && spread == 0);
  gate_case_summary(&three, &ns, &spread); /* faster halves 1.5, 5, 4: deviations 2.5, 1, 0 */
  assert_true(ns == 4);
  assert_float_equal(spread, 1.4826 / 4, 1e-9);
}

/* --- the machine --- */

TEST(the_machine) {
  char host[65] = "";
  json_t *machine = gate_machine();
  char *text = json_dumps(machine, 0);
  assert_true(json_integer_value(json_object_get(machine, "cpus")) > 0);
  assert_true(*json_string_value(json_object_get(machine, "kernel")));
  assert_true(json_is_string(json_object_get(machine, "cpu")) && json_is_string(json_object_get(machine, "governor")));
  assert_int_equal(gethostname(host, sizeof host - 1), 0);
  if (strlen(host) > 3) assert_null(strstr(text, host));
  json_t *again = gate_machine();
  assert_true(json_equal(machine, again));
  json_decref(again);
  json_decref(machine);
  free(text);
  assert_true(gate_load_now() >= 0);
}

TEST(no_revision) {
  bool dirty = true;
  char *revision = gate_revision(folder, &dirty);
  assert_string_equal(revision, "");
  assert_false(dirty);
  free(revision);
  char *path = gate_copy(getenv("PATH"));
  setenv("PATH", "/no/such/folder", 1);
  revision = gate_revision(AT_SOURCE_DIR, &dirty);
  setenv("PATH", path ? path : "/usr/bin:/bin", 1);
  free(path);
  assert_string_equal(revision, "");
  free(revision);
}

int main(void) {
  return RUN_TESTS_EACH(set_up, tear_down, NULL, NULL);
}
