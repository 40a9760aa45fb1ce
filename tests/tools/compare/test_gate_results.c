/* SPDX-License-Identifier: Apache-2.0
 * test_gate_results.c: a result file keeps every sample of every run, through killed writers and several at once. */
#include "tests/tools/compare/gate_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* --- what is kept --- */

TEST(everything_comes_back) {
  gate_file *file = opened("r.db");
  gate_run run = made_up_run("nightly"), back;
  gate_case c = made_up_case("sum/1M"), other = made_up_case("copy \xc3\xa9");
  gate_sample samples[5];
  run.pair = 7;
  FINE(gate_file_begin(file, &run));
  assert_int_equal(run.id, 1);
  for (int round = 0; round < 3; round++) {
    const gate_visit v = visit_of(samples, 5, round, 123.456);
    FINE(gate_file_add(file, run.id, &c, &v));
  }
  other.state = GATE_CASE_FAILED;
  other.message = (char *)(uintptr_t) "crashed (signal 11)";
  FINE(gate_file_add(file, run.id, &other, NULL));
  FINE(gate_file_roof(file, run.id, &(gate_roof){"host", "f32", 1e9, 5e10}));
  FINE(gate_file_roof(file, run.id, &(gate_roof){"host", "f32", 2e10, 6e10}));
  FINE(gate_file_end(file, run.id, GATE_RUN_COMPLETE));
  gate_file_close(file);

  FINE(gate_load(path_of("r.db"), &back));
  assert_int_equal(back.id, 1);
  assert_string_equal(back.suite, run.suite);
  assert_string_equal(back.label, run.label);
  assert_string_equal(back.revision, run.revision);
  assert_string_equal(back.fingerprint, run.fingerprint);
  assert_string_equal(back.command, run.command);
  assert_true(back.dirty && back.pair == 7 && back.started == run.started && back.ended > run.started);
  assert_int_equal(back.state, GATE_RUN_COMPLETE);
  assert_int_equal(back.case_count, 2);
  const gate_case *found = gate_run_find(&back, &c);
  assert_ptr_equal(found, &back.cases[0]);
  assert_true(found->bytes == c.bytes && found->flops == c.flops && found->state == GATE_CASE_OK && !found->message);
  assert_string_equal(found->dtype, "f32");
  assert_int_equal(found->visit_count, 3);
  for (int round = 0; round < 3; round++) {
    const gate_visit v = visit_of(samples, 5, round, 123.456), *got = &found->visits[round];
    assert_true(got->round == round && got->calls == 7 && got->throttled == v.throttled);
    assert_true(got->clock_mhz == v.clock_mhz && got->load == v.load);
    assert_int_equal(got->sample_count, 5);
    for (int i = 0; i < 5; i++) {
      assert_true(got->samples[i].ns == samples[i].ns && got->samples[i].cpu_ns == samples[i].cpu_ns);
      assert_int_equal(got->samples[i].start, samples[i].start);
    }
  }
  found = gate_run_find(&back, &other);
  assert_non_null(found);
  assert_true(found->state == GATE_CASE_FAILED && found->visit_count == 0);
  assert_string_equal(found->message, "crashed (signal 11)");
  other.mode = (char *)(uintptr_t) "cold";
  assert_null(gate_run_find(&back, &other));
  assert_int_equal(back.roof_count, 1);
  assert_string_equal(back.roofs[0].dtype, "f32");
  assert_true(back.roofs[0].bytes_s == 2e10 && back.roofs[0].flops_s == 6e10);
  gate_run_free(&back);
}

TEST(a_case_that_fails_later_keeps_its_samples) {
  gate_file *file = opened("r.db");
  gate_run run = made_up_run(""), back;
  gate_case c = made_up_case("sum");
  gate_sample sample[1];
  FINE(gate_file_begin(file, &run));
  const gate_visit v = visit_of(sample, 1, 0, 5);
  FINE(gate_file_add(file, run.id, &c, &v));
  c.state = GATE_CASE_FAILED;
  c.message = (char *)(uintptr_t) "hung";
  FINE(gate_file_add(file, run.id, &c, NULL));
  FINE(gate_file_load(file, "1", &back));
  gate_file_close(file);
  assert_int_equal(back.case_count, 1);
  assert_int_equal(back.cases[0].state, GATE_CASE_FAILED);
  assert_int_equal(back.cases[0].visit_count, 1);
  gate_run_free(&back);
}

TEST(runs_append) {
  gate_run *runs, run;
  size_t count;
  for (int i = 1; i <= 3; i++) assert_int_equal(save("r.db", i == 2 ? "two" : "", i, GATE_RUN_COMPLETE), i);
  gate_file *file = NULL;
  FINE(gate_file_open(&file, path_of("r.db"), false));
  FINE(gate_file_runs(file, &runs, &count));
  assert_int_equal(count, 3);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(runs[i].id, i + 1);
    assert_int_equal(runs[i].case_count, 0);
    gate_run_free(&runs[i]);
  }
  free(runs);
  for (int i = 1; i <= 3; i++) {
    char which[16];
    snprintf(which, sizeof which, "%d", i);
    FINE(gate_file_load(file, which, &run));
    assert_int_equal(run.cases[0].visit_count, i);
    gate_run_free(&run);
  }
  gate_file_close(file);
}

/* --- which run --- */

static int64_t number_of(const char *which) {
  char name[128];
  gate_run run;
  snprintf(name, sizeof name, "%s:%s", path_of("r.db"), which);
  FINE(gate_load(name, &run));
  const int64_t id = run.id;
  gate_run_free(&run);
  return id;
}

TEST(a_run_is_named_by_number_label_or_revision) {
  gate_run run;
  save("r.db", "first", 1, GATE_RUN_COMPLETE);
  gate_file *file = opened("r.db");
  gate_run other = made_up_run("");
  other.revision = (char *)(uintptr_t) "fedcba9876543210fedcba9876543210fedcba98";
  FINE(gate_file_begin(file, &other));
  FINE(gate_file_end(file, other.id, GATE_RUN_INTERRUPTED));
  gate_file_close(file);
  save("r.db", "first", 1, GATE_RUN_COMPLETE);
  save("r.db", "", 1, GATE_RUN_OPEN);
  assert_int_equal(number_of("1"), 1);
  assert_int_equal(number_of("first"), 3); /* the latest of that label */
  assert_int_equal(number_of("fedcba9"), 2);
  assert_int_equal(number_of("0123456"), 3); /* run 4 is still open */
  assert_int_equal(number_of("latest"), 3);
  assert_int_equal(number_of(""), 3);
  assert_int_equal(number_of("4"), 4);
  file = opened("r.db");
  SAYS(gate_file_load(file, "fedcba", &run), "has no run \"fedcba\"; its runs are 1 (first), 2 (fedcba98");
  SAYS(gate_file_load(file, "99", &run), "has no run \"99\"");
  SAYS(gate_file_load(file, "-1", &run), "has no run \"-1\"");
  SAYS(gate_file_load(file, "99999999999999999999999", &run), "has no run");
  gate_file_close(file);
}

TEST(a_colon_may_be_part_of_the_files_name) {
  gate_run run;
  save("a:1", "", 1, GATE_RUN_COMPLETE);
  FINE(gate_load(path_of("a:1"), &run));
  gate_run_free(&run);
  SAYS(gate_load(path_of("b:1"), &run), "/b: No such file");
}

TEST(no_run) {
  gate_run run;
  gate_file_close(opened("r.db"));
  SAYS(gate_load(path_of("r.db"), &run), "holds no run; save one with attune bench --save");
  SAYS(gate_load(path_of("r.db:1"), &run), "holds no run");
  save("r.db", "", 1, GATE_RUN_OPEN);
  SAYS(gate_load(path_of("r.db"), &run), "has no finished run; run 1 is still being written, or its writer died");
}

/* --- more than one writer, and writers that die --- */

enum { WRITER_VISITS = 40 };

/* In a child: no assertion of the test may run there. */
static _Noreturn void write_run(const char *path, const char *label) {
  gate_file *file = NULL;
  gate_run run = made_up_run(label);
  gate_case c = made_up_case("sum");
  gate_sample samples[3];
  char *error = gate_file_open(&file, path, true);
  if (!error) error = gate_file_begin(file, &run);
  for (int i = 0; !error && i < WRITER_VISITS; i++) {
    const gate_visit v = visit_of(samples, 3, i, 50);
    error = gate_file_add(file, run.id, &c, &v);
    if (error || i % 8 != 7) continue;
    gate_file_close(file); /* takes the journal away while others write */
    file = NULL;
    error = gate_file_open(&file, path, true);
  }
  if (!error) error = gate_file_end(file, run.id, GATE_RUN_COMPLETE);
  gate_file_close(file);
  if (error) fprintf(stderr, "%s\n", error);
  _exit(error ? 1 : 0);
}

/* Neither loses a sample, also where both make the file. */
TEST(two_writers) {
  pid_t children[3];
  for (int i = 0; i < 3; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (!children[i]) write_run(path_of("r.db"), i == 0 ? "a" : i == 1 ? "b" : "c");
  }
  for (int i = 0; i < 3; i++) assert_int_equal(ended(children[i]), 0);
  for (int i = 0; i < 3; i++) {
    gate_run run;
    char name[160];
    snprintf(name, sizeof name, "%s:%c", path_of("r.db"), 'a' + i);
    FINE(gate_load(name, &run));
    assert_int_equal(run.case_count, 1);
    assert_int_equal(run.cases[0].visit_count, WRITER_VISITS);
    for (int v = 0; v < WRITER_VISITS; v++) assert_int_equal(run.cases[0].visits[v].sample_count, 3);
    gate_run_free(&run);
  }
}

/* The journal is there while a file is written, and goes with its writer; one that was left behind, empty, goes too. */
TEST(the_journal_goes) {
  struct stat info;
  gate_file *file = opened("r.db");
  gate_run run = made_up_run("");
  FINE(gate_file_begin(file, &run));
  assert_int_equal(stat(path_of("r.db-journal"), &info), 0);
  gate_file_close(file);
  assert_true(stat(path_of("r.db-journal"), &info) != 0 && errno == ENOENT);
  FILE *left = fopen(path_of("r.db-journal"), "w");
  assert_non_null(left);
  fclose(left);
  save("r.db", "next", 1, GATE_RUN_COMPLETE);
  assert_true(stat(path_of("r.db-journal"), &info) != 0 && errno == ENOENT);
}

/* With a transaction half on the disk, whose journal says how to undo it. */
static _Noreturn void die_while_writing(const char *path) {
  sqlite3 *db;
  if (sqlite3_open(path, &db) != SQLITE_OK) _exit(1);
  if (sqlite3_exec(
          db,
          "PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE run SET label = 'half'; WITH RECURSIVE n(i) AS (SELECT 1 "
          "UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO sample SELECT 1000 + i, 0, 1, 1, 1 FROM n; "
          "UPDATE sample SET ns = 99",
          NULL, NULL, NULL) != SQLITE_OK)
    _exit(1);
  (void)kill(getpid(), SIGKILL);
  _exit(1);
}

TEST(a_killed_writer_leaves_what_was_saved) {
  gate_run run;
  struct stat info;
  save("r.db", "old", 4, GATE_RUN_COMPLETE);
  save("r.db", "killed", 5, GATE_RUN_OPEN);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) die_while_writing(path_of("r.db"));
  const int status = ended(child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  assert_int_equal(stat(path_of("r.db-journal"), &info), 0);
  assert_true(info.st_size > 0);
  FINE(gate_load(path_of("r.db"), &run));
  assert_string_equal(run.label, "old");
  assert_int_equal(run.cases[0].visit_count, 4);
  assert_true(run.cases[0].visits[0].samples[0].ns == 100);
  gate_run_free(&run);
  FINE(gate_load(path_of("r.db:killed"), &run));
  assert_int_equal(run.state, GATE_RUN_OPEN);
  assert_int_equal(run.ended, 0);
  assert_int_equal(run.cases[0].visit_count, 5);
  gate_run_free(&run);
  save("r.db", "new", 1, GATE_RUN_COMPLETE);
  assert_int_equal(number_of("latest"), 3);
}

int main(void) {
  return RUN_TESTS_EACH(set_up, tear_down, NULL, NULL);
}
