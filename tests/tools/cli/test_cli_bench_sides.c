/* SPDX-License-Identifier: Apache-2.0
 * test_cli_bench_sides.c: `attune bench --against': two builds in turns, and what only one of them has. The times are
 * made up by the worker. */
#include "tests/tools/cli/bench_builds.h"

/* So many that a change of a few cases is certain. */
#define FEW "--rounds", "13", "--samples", "2"

/* A pair's Markdown has the column that the terminal has. */
TEST(peers_of_a_pair) {
  char path[96];
  snprintf(path, sizeof path, "%s/pair.md", folder);
  const char *new = build("new", "mine=time:1000 b@mine=time:1250 gone@mine=failed"),
             *old = build("old", "mine=time:1000 b@mine=time:2000");
  expect_run(1, "bench", FEW, "--program", program, "--build", new, "--against", old, "--markdown", path, "--save",
             results);
  expect_out("1.250 x");
  expect_run(1, "compare", results); /* a new case that fails is none that is missing */
  expect_out("1 failed");
  char *text = read_file(path);
  const char *const words[] = {"| | case | change | interval | base | head | beside |\n|:--|:--|--:|:-:|--:|--:|--:|\n",
                               " 1.25 us | 1.250 x |\n", " 1.00 us | - |\n",
                               "- beside: the time in the head divided by that of the case that it is a peer of"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (!strstr(text, words[i])) fail_msg("no \"%s\" in:\n%s", words[i], text);
  free(text);
  expect_run(0, "bench", FEW, "--program", program, "--filter", "mine", "--build", new, "--against", old, "--markdown",
             path);
  text = read_file(path);
  assert_null(strstr(text, "beside"));
  free(text);
}

TEST(slower_and_same) {
  const char *new = build("new", "slow=time:1100 same=time:1000 fast=time:900 only=time:5"),
             *old = build("old", "slow=time:1000 same=time:1000 fast=time:1000 gone=time:5");
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old, "--save", results, "--label", "mine");
  expect_out("+10.0 %");
  expect_out("-10.0 %");
  expect_out("1 same, 1 faster, 1 slower");
  expect_out("2 missing");
  gate_run head = loaded("latest"), base = loaded("1");
  assert_int_equal(head.id, 2);
  assert_int_equal(head.pair, 1);
  assert_int_equal(base.pair, 0);
  assert_string_equal(head.label, "mine");
  assert_string_equal(base.label, "");
  assert_int_equal(head.state, GATE_RUN_COMPLETE);
  assert_int_equal(base.state, GATE_RUN_COMPLETE);
  assert_int_equal(head.case_count, 4);
  assert_true(head.cases[0].visits[0].samples[0].ns == 1100);
  assert_true(base.cases[0].visits[0].samples[0].ns == 1000);
  gate_run_free(&head);
  gate_run_free(&base);
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old, "--json");
  json_t *report = parse_out();
  const json_t *slow = json_array_get(json_object_get(report, "cases"), 0);
  assert_string_equal(text_of(json_object_get(slow, "judged"), "verdict"), "slower");
  json_decref(report);
  build("new", "a=time:1000 b=time:900");
  build("old", "a=time:1000 b=time:1000");
  expect_run(0, "bench", "--program", program, "--build", new, "--against", old);
  expect_out("0 slower");
}

/* Another program of the build in `path`, which build() made. */
static void add_program(const char *path, const char *name, const char *cases) {
  char script[128], text[512];
  snprintf(script, sizeof script, "%s/%s", path, name);
  snprintf(text, sizeof text, "#!/bin/sh\nexec " AT_WORKER " %s \"$@\"\n", cases);
  write_file(script, text);
  assert_int_equal(chmod(script, 0700), 0);
}

static void remove_program(const char *path, const char *name) {
  char script[128];
  snprintf(script, sizeof script, "%s/%s", path, name);
  assert_int_equal(unlink(script), 0);
}

/* A program that only the head has, or only the base: its cases are missing on the other side, and the rest goes on. */
TEST(programs_of_one_side) {
  char report[96];
  snprintf(report, sizeof report, "%s/report.md", folder);
  const char *new = build("new", "slow=time:1100"), *old = build("old", "slow=time:1000");
  add_program(new, "more", "added=time:5");
  expect_run(1, "bench", FEW, "--program", program, "--program", "{build}/more", "--build", new, "--against", old,
             "--save", results, "--markdown", report);
  expect_out("+10.0 %");
  expect_out("1 slower");
  expect_out("1 missing");
  expect_out("missing: only the head has it");
  expect_error("the base has no ");
  expect_error("/more, so its cases are missing there");
  expect_run(1, "compare", results);
  expect_out("1 slower, 1 missing");
  expect_run(0, "bench", FEW, "--program", program, "--program", "{build}/more", "--build", old, "--against",
             new); /* removed */
  expect_out("missing: only the base has it");
  expect_error("the head has no ");
  expect_run(0, "bench", FEW, "--program", "cd {build} && exec ./more", "--program", program, "--build", old,
             "--against", new);
  expect_out("1 missing");
  remove_program(old, "run"); /* the first benchmark of a project: nothing in common */
  assert_int_equal(unlink(results), 0);
  expect_run(0, "bench", FEW, "--program", program, "--build", new, "--against", old, "--save", results, "--markdown",
             report);
  expect_out("1 case: 0 slower, 1 missing");
  expect_run(0, "compare", results);
  expect_out("1 missing");
}

/* Where the head has nothing of it, or no side has, nothing can be told: wrong usage. So is a program that is there,
 * and is none. */
TEST(programs_of_no_side) {
  const char *new = build("new", "a=time:1"), *old = build("old", "a=time:1");
  expect_run(2, "bench", FEW, "--program", "{build}/gone", "--build", new, "--against", old);
  expect_error("/gone could not be started: No such file");
  remove_program(new, "run");
  expect_run(2, "bench", FEW, "--program", program, "--build", new, "--against", old);
  expect_error("so the head has no cases at all");
  add_program(old, "bad", "--hello=exit");
  add_program(new, "bad", "a=time:1");
  expect_run(2, "bench", FEW, "--program", "{build}/bad", "--build", new, "--against", old);
  expect_error("exited with code 3 (before it sent anything");
}

TEST(commands_of_one_side) {
  const char *new = build("new", "a=time:1"), *old = build("old", "a=time:1");
  char script[128];
  snprintf(script, sizeof script, "%s/quick", new);
  write_file(script, "#!/bin/sh\n");
  assert_int_equal(chmod(script, 0700), 0);
  expect_run(0, "bench", "--command", "new={build}/quick || true", "--command", "x=test -x {build}/quick; true",
             "--build", new, "--against", old, "--rounds", "1", "--samples", "1", "--time", "0.001");
  expect_run(0, "bench", "--command", "both=/bin/true {build}", "--command", "new={build}/quick", "--build", old,
             "--against", new, "--rounds", "1", "--samples", "1", "--time", "0.001");
  expect_out("missing: only the base has it");
  expect_error("the head lacks the programs of 1 command, so it is missing there");
  expect_run(2, "bench", "--command", "both=/bin/true {build}", "--command", "none={build}/none", "--build", new,
             "--against", old, "--rounds", "1", "--samples", "1", "--time", "0.001");
  expect_error("none={build}/none\": neither build has this program; should be a file in \"");
  assert_string_equal(out_text, ""); /* nothing was timed */
}

/* Green would say that nothing became slower, where nothing was looked at. */
TEST(nothing_in_common) {
  const char *new = build("new", "a=time:1 b=time:1"), *old = build("old", "c=time:1");
  expect_run(2, "bench", FEW, "--program", program, "--build", new, "--against", old, "--save", results);
  expect_error("the builds have no case in common (the base has \"c\", the head \"a\")");
  assert_string_equal(out_text, "");
  build("old", "c=time:1 a=time:1");
  expect_run(0, "bench", FEW, "--program", program, "--build", new, "--against", old, "--save", results);
  expect_run(0, "bench", FEW, "--program", program, "--build", new, "--against", old, "--filter", "b");
  expect_out("1 missing"); /* a new case, and only that is asked for */
  expect_run(2, "bench", FEW, "--command", "x=exit 3 # {build}", "--build", new, "--against", old);
  expect_error("nothing was compared: none of the shared cases could be timed in the head");
  expect_out("1 failed");
}

/* The folder of a build may be called anything. */
TEST(folders_with_blanks) {
  const char *new = build("it's new $1", "a=time:1100"), *old = build("old one", "a=time:1000");
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old);
  expect_out("+10.0 %");
  expect_run(0, "bench", "--command", "x=test -x {build}/run -a -x \"{build}/run\"", "--build", new, "--rounds", "1");
  expect_run(0, "bench", "--command", "x=test -x {build}/run && test -x \"{build}/run\"", "--build", new, "--rounds",
             "1");
}

TEST(a_failed_case_fails_the_run) {
  const char *new = build("new", "bad=crash a=time:1000"), *old = build("old", "bad=time:1000 a=time:1000");
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old, ROUNDS);
  expect_out("failed: crashed (signal 11, Segmentation fault); its last output: about to crash");
  expect_run(0, "bench", "--program", program, "--build", old, "--against", new, ROUNDS); /* it is mended */
  expect_out("repaired; base failed: crashed (signal 11");
  expect_out("1 repaired");
}

/* An explicit number of rounds holds, for cases that stay unsure too. */
TEST(rounds_are_as_many_as_asked_for) {
  const char *new = build("new", "a=time:1000 b=time:1200"), *old = build("old", "a=time:1000 b=time:1000");
  expect_run(0, "bench", "--program", program, "--build", new, "--against", old, "--rounds", "2", "--samples", "1");
  expect_out("; 2 rounds in ");
  expect_out("be certain in fewer than 11: give more --rounds.");
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old, "--rounds", "14", "--samples", "1");
  expect_out("; 14 rounds in ");
  expect_out("1 slower");
}

/* How often `word` is in `text`. */
static int count_of(const char *text, const char *word) {
  int count = 0;
  for (; (text = strstr(text, word)); text += strlen(word)) count++;
  return count;
}

/* What JUnit calls a failure or an error is what makes the exit code 1, and so does the JSON: in `bench' and in
 * `compare'. */
TEST(reports_say_what_the_exit_code_says) {
  static const struct {
    const char *head, *base;
    int code, errors, skipped, outs;
  } rows[] = {{"a=time:1000 x=crash", "a=time:1000 x=time:5", 1, 1, 1, 0},
              {"a=time:1000 x=time:5", "a=time:1000 x=crash", 0, 0, 1, 1},
              {"a=time:1000 x=crash", "a=time:1000 x=crash", 0, 0, 2, 0},
              {"a=time:1000 x=crash", "a=time:1000", 1, 1, 1, 0},
              {"a=time:1000", "a=time:1000 x=crash", 0, 0, 2, 0}};
  char junit[96];
  snprintf(junit, sizeof junit, "%s/junit.xml", folder);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    for (int again = 0; again < 2; again++) { /* the same of the file */
      const char *new = build("new", rows[i].head), *old = build("old", rows[i].base);
      const pid_t child =
          again ? start((const char *const[]){"compare", results, "--junit", junit, "--json", NULL}, out_path)
                : start((const char *const[]){"bench", "--rounds", "2", "--samples", "1", "--time", "0.001",
                                              "--program", program, "--build", new, "--against", old, "--junit", junit,
                                              "--json", "--save", results, NULL},
                        out_path);
      expect_code(rows[i].code, child);
      char *text = read_file(junit), wanted[80];
      assert_int_equal(count_of(text, "<error") + count_of(text, "<failure"), rows[i].errors);
      assert_int_equal(count_of(text, "<skipped"), rows[i].skipped);
      assert_int_equal(count_of(text, "<system-out>repaired; the base failed: crashed"), rows[i].outs);
      snprintf(wanted, sizeof wanted, "failures=\"0\" errors=\"%d\" skipped=\"%d\"", rows[i].errors, rows[i].skipped);
      assert_non_null(strstr(text, wanted));
      assert_int_equal(count_of(out_text, "\"regression\": true"), rows[i].errors);
      free(text);
    }
    assert_int_equal(unlink(results), 0);
  }
}

/* The line below the table says how many rounds a case was in, and how many it takes. */
TEST(too_few_rounds) {
  const char *new = build("new", "a=time:1200"), *old = build("old", "a=time:1000");
  expect_run(0, "bench", "--samples", "1", "--time", "0.001", "--program", program, "--build", new, "--against", old);
  expect_out(
      "1 unsure case was timed in 1 round; with 1 case, no change can be certain in fewer than 11: give more --time.");
  assert_null(strstr(out_text, "--rounds"));
}

/* A program's message of several lines is one in a table. */
TEST(messages_are_one_line) {
  expect_run(1, "bench", "--program", AT_WORKER " a=fail-lines", "--rounds", "1");
  expect_out("failed: no such function; a + foo(b)\n");
}

int main(void) {
  return RUN_TESTS_EACH(empty_builds, NULL, set_up, remove_all);
}
