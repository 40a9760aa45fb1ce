/* SPDX-License-Identifier: Apache-2.0
 * test_gate_workers.c: workers of a benchmark that crash, hang, talk nonsense or do not start, and runs that are
 * interrupted. */
#include "tests/tools/compare/gate_bench.h"

/* The bad case is told so and opened twice at most; its neighbours get all of their rounds. */
static void goes_on_beside(const char *what, const char *words) {
  bench b;
  char bad[64];
  int opens = 0;
  snprintf(bad, sizeof bad, "bad=%s", what);
  (void)unlink(path_of("log"));
  do_all(&b, &plain, WORDS(log_word(), "a=time:1", bad, "z=time:2"), WORDS("a=time:1", "bad=time:3", "z=time:2"));
  failed_with(&b, GATE_HEAD, "bad", words);
  assert_int_equal(named(&b, GATE_HEAD, "bad")->visit_count, 0);
  for (int side = 0; side < 2; side++) {
    does_well(&b, side, "a", 4);
    does_well(&b, side, "z", 4);
  }
  does_well(&b, GATE_BASE, "bad", 4);
  char *log = text_of(path_of("log"));
  for (const char *at = log; (at = strstr(at, " open bad")); at++) opens++;
  free(log);
  assert_int_equal(opens, 2);
  end(&b);
}

TEST(crashes) {
  goes_on_beside("crash", "crashed (signal 11, Segmentation fault); its last output: about to crash");
  goes_on_beside("crash-open", "crashed (signal 11");
}

/* A child that has the socket too: the end of the process tells, not that of the socket. */
TEST(crashes_and_leaves_a_child) {
  goes_on_beside("crash-fork", "crashed (signal 11, Segmentation fault); its last output: about to crash");
}

/* Is the process gone, or will it be within half a minute? A zombie that nobody waits for is. */
static bool gone(long pid) {
  for (int i = 0; i < 3000; i++) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *stream = fopen(path, "r");
    const bool there = stream && fgets(line, sizeof line, stream);
    if (stream) fclose(stream);
    const char *name_end = strrchr(line, ')');
    if (!there || (name_end && name_end[1] == ' ' && name_end[2] == 'Z')) return true;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  return false;
}

/* Processes that a case leaves running end with its process, even if that one succeeds. */
TEST(children_end_with_their_worker) {
  bench b;
  char words[160];
  snprintf(words, sizeof words, "a=fork:%s", path_of("children"));
  do_all(&b, &plain, WORDS(words, "z=time:1"), NULL);
  does_well(&b, GATE_HEAD, "a", 4);
  end(&b);
  char *text = text_of(path_of("children"));
  int children = 0;
  for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line; children++)
    if (!gone(atol(line))) fail_msg("child %s is still there", line);
  assert_int_equal(children, 4);
  free(text);
}

/* Output of another case of the process is not reported as this one's last words. */
TEST(last_words_are_the_cases_own) {
  bench b;
  do_all(&b, &plain, WORDS("a=talk", "bad=die", "z=talk"), NULL);
  does_well(&b, GATE_HEAD, "a", 4);
  does_well(&b, GATE_HEAD, "z", 4);
  failed_with(&b, GATE_HEAD, "bad", "crashed (signal 9");
  if (strstr(named(&b, GATE_HEAD, "bad")->message, "words")) fail_msg("%s", named(&b, GATE_HEAD, "bad")->message);
  end(&b);
}

/* A process that ended between two cases: the second one is told that it was before it. */
TEST(ends_between_cases) {
  gate_case *cases = NULL;
  size_t count = 0;
  int calls;
  long pid = 0;
  gate_sample room[1];
  gate_visit visit = {.samples = room};
  (void)unlink(path_of("log"));
  gate_source *s = worker(&plain.limits, WORDS(log_word(), "a=die-after", "b=time:1"));
  FINE(s->kind->start(s, &cases, &count));
  FINE(s->kind->open(s, 0, 1000, 1, &calls));
  FINE(s->kind->sample(s, &visit, 1));
  FINE(s->kind->close(s));
  char *log = text_of(path_of("log"));
  assert_int_equal(sscanf(log, "- %ld", &pid), 1);
  free(log);
  assert_true(gone(pid));
  SAYS(s->kind->open(s, 1, 1000, 1, &calls),
       "its process had already ended, after another case: exited with code 6; its last output: a late end");
  assert_false(s->alive);
  gate_cases_free(cases, count);
  gate_source_destroy(s);
}

TEST(ends) {
  goes_on_beside("exit:3", "exited with code 3; its last output: last words of bad");
  goes_on_beside("exit:0", "exited with code 0");
}

TEST(garbage) {
  goes_on_beside("garbage", "sent an answer outside the protocol");
  goes_on_beside("flood", "sent an answer outside the protocol");
  goes_on_beside("short", "sent an answer outside the protocol");
  goes_on_beside("nan", "sent an answer outside the protocol");
  goes_on_beside("negative", "sent an answer outside the protocol");
}

TEST(fails_and_says_so) {
  goes_on_beside("failed", "no set-up");
  goes_on_beside("fail-sample", "no more\tmemory\\");
}

/* Its samples are there, but what it did at its end is not right. */
TEST(fails_at_its_end) {
  bench b;
  do_all(&b, &plain, WORDS("a=close-bad", "z=time:1"), NULL);
  failed_with(&b, GATE_HEAD, "a", "sent an answer outside the protocol");
  does_well(&b, GATE_HEAD, "z", 4);
  end(&b);
}

TEST(hangs) {
  bench b;
  gate_schedule schedule = plain;
  schedule.limits.hang_s = 1.5;
  schedule.rounds = 1;
  do_all(&b, &schedule, WORDS("a=hang"), NULL);
  failed_with(&b, GATE_HEAD, "a", "hung (no answer after 1.5 s)");
  end(&b);
}

/* Failed, though it did well later: the message is of the failure, and what was measured stays. */
TEST(crashes_once) {
  bench b;
  char once[160];
  snprintf(once, sizeof once, "a=once:%s", path_of("made"));
  do_all(&b, &plain, WORDS(once, "z=time:1"), NULL);
  failed_with(&b, GATE_HEAD, "a", "crashed (signal 11");
  assert_int_equal(named(&b, GATE_HEAD, "a")->visit_count, 3);
  does_well(&b, GATE_HEAD, "z", 4);
  end(&b);
}

static void no_start(const char *words, const char *hello) {
  bench b;
  begin(&b, &plain, WORDS(hello, "a=time:1"), NULL);
  SAYS(gate_rounds_list(b.rounds), words);
  end(&b);
}

TEST(workers_that_do_not_start) {
  no_start("exited with code 3", "--hello=exit");
  no_start("sent an answer outside the protocol", "--hello=none");
  no_start("speaks version 77 of the protocol of attune bench, this attune version 1", "--hello=version");
  static const char *const argvs[][2] = {{"/no/such/program", NULL}, {"/bin/true", NULL}, {"/dev/null", NULL}};
  static const char *const words[] = {"could not be started: No such file", "exited with code 0",
                                      "could not be started"};
  for (int i = 0; i < 3; i++) {
    gate_run run = {0};
    gate_source *source = gate_worker_create(argvs[i], &plain.limits, 1);
    const gate_rounds_side side = {&source, 1, &run};
    gate_rounds *rounds = gate_rounds_create(&plain, &side, 1);
    /* Under valgrind a start that fails is a process that ends with 127. */
    SAYS(gate_rounds_list(rounds), i != 1 && getenv("AT_UNDER_VALGRIND") ? "exited with code 127" : words[i]);
    gate_rounds_destroy(rounds);
    gate_source_destroy(source);
  }
}

TEST(starts_no_more) {
  bench b;
  char starts[160];
  snprintf(starts, sizeof starts, "--starts=%s:2", path_of("starts"));
  do_all(&b, &plain, WORDS(starts, "a=time:1"), WORDS("a=time:1"));
  failed_with(&b, GATE_HEAD, "a", "its process did not start: exited with code 4; its last output: enough starts");
  assert_int_equal(named(&b, GATE_HEAD, "a")->visit_count, 2);
  does_well(&b, GATE_BASE, "a", 4);
  end(&b);
}

/* --- stopped --- */

static void stop_at(void *user, const gate_step *step) {
  (void)user;
  assert_int_equal(step->total, 4 * 2);
  if (step->done == 5) stopped = SIGINT;
}

TEST(interrupted) {
  bench b;
  gate_schedule schedule = plain;
  gate_run run = made_up_run(""), back;
  schedule.tell = stop_at;
  FINE(gate_file_open(&schedule.file, path_of("r.db"), true));
  begin(&b, &schedule, WORDS("a=time:1", "b=time:2"), NULL);
  FINE(gate_rounds_list(b.rounds));
  FINE(gate_file_begin(schedule.file, &run));
  b.runs[GATE_HEAD].id = run.id;
  FINE(gate_rounds_run(b.rounds, &b.outcome));
  assert_true(b.outcome.interrupted);
  FINE(gate_file_end(schedule.file, run.id, GATE_RUN_INTERRUPTED));
  gate_file_close(schedule.file);
  FINE(gate_load(path_of("r.db"), &back));
  assert_int_equal(back.state, GATE_RUN_INTERRUPTED);
  assert_int_equal(back.case_count, 2);
  int visits = 0;
  for (int i = 0; i < 2; i++) {
    const gate_case *c = &back.cases[i], *measured = gate_run_find(&b.runs[GATE_HEAD], c);
    assert_int_equal(c->state, GATE_CASE_OK);
    assert_int_equal(c->visit_count, measured->visit_count);
    for (int v = 0; v < c->visit_count; v++) assert_int_equal(c->visits[v].sample_count, 3);
    visits += c->visit_count;
  }
  assert_int_equal(visits, 5);
  gate_run_free(&back);
  end(&b);
}

/* The signal comes while a worker hangs. */
static void on_alarm(int number) {
  stopped = number;
}

TEST(interrupted_while_it_waits) {
  bench b;
  signal(SIGALRM, on_alarm);
  begin(&b, &plain, WORDS("a=hang"), NULL);
  FINE(gate_rounds_list(b.rounds));
  (void)alarm(1);
  FINE(gate_rounds_run(b.rounds, &b.outcome));
  assert_true(b.outcome.interrupted);
  assert_int_equal(b.runs[GATE_HEAD].cases[0].state, GATE_CASE_OK); /* not its fault */
  assert_int_equal(b.runs[GATE_HEAD].cases[0].visit_count, 0);
  end(&b);
  stopped = 0;
}

int main(void) {
  return RUN_TESTS_EACH(set_up, tear_down, NULL, NULL);
}
