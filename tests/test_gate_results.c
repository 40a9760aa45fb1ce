/* SPDX-License-Identifier: Apache-2.0
 * test_gate_results.c: a result file keeps every sample of every run, through killed writers and two at once; what is no
 * result file is refused with a sentence and left as it is. */
#include "tests/gate_fixture.h"
#include "tests/no_rights.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

static gate_file *opened(const char *name) {
  gate_file *file = NULL;
  FINE(gate_file_open(&file, path_of(name), true));
  return file;
}

/* A visit whose samples tell `round` and `seed`. */
static gate_visit visit_of(gate_sample *samples, int count, int round, double seed) {
  for (int i = 0; i < count; i++) samples[i] = (gate_sample){seed + round + 0.25 * i, 2 * seed + i, 1000 + i};
  return (gate_visit){.round = round,
                      .calls = 7,
                      .clock_mhz = 1980.5,
                      .throttled = round == 1,
                      .load = 0.5,
                      .samples = samples,
                      .sample_count = count};
}

/* A run with one case of `visits` visits. Its number. */
static int64_t save(const char *name, const char *label, int visits, gate_run_state state) {
  gate_file *file = opened(name);
  gate_run run = made_up_run(label);
  gate_case c = made_up_case("sum/1M");
  gate_sample samples[3];
  FINE(gate_file_begin(file, &run));
  for (int i = 0; i < visits; i++) {
    const gate_visit v = visit_of(samples, 3, i, 100);
    FINE(gate_file_add(file, run.id, &c, &v));
  }
  if (state != GATE_RUN_OPEN) FINE(gate_file_end(file, run.id, state));
  gate_file_close(file);
  return run.id;
}

static void sql(const char *name, const char *text) {
  sqlite3 *db;
  char *message = NULL;
  assert_int_equal(sqlite3_open(path_of(name), &db), SQLITE_OK);
  if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK) fail_msg("%s: %s", text, message);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* --- what is kept --- */

static void everything_comes_back(void **state) {
  (void)state;
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
  gate_run_free(&back);
}

static void a_case_that_fails_later_keeps_its_samples(void **state) {
  (void)state;
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

static void runs_append(void **state) {
  (void)state;
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
    char which[8];
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

static void a_run_is_named_by_number_label_or_revision(void **state) {
  (void)state;
  gate_run run;
  save("r.db", "first", 1, GATE_RUN_COMPLETE);
  save("r.db", "", 1, GATE_RUN_INTERRUPTED);
  save("r.db", "first", 1, GATE_RUN_COMPLETE);
  save("r.db", "", 1, GATE_RUN_OPEN);
  sql("r.db", "UPDATE run SET revision = 'fedcba9876543210fedcba9876543210fedcba98' WHERE id = 2");
  assert_int_equal(number_of("1"), 1);
  assert_int_equal(number_of("first"), 3); /* the latest of that label */
  assert_int_equal(number_of("fedcba9"), 2);
  assert_int_equal(number_of("0123456"), 3); /* run 4 is still open */
  assert_int_equal(number_of("latest"), 3);
  assert_int_equal(number_of(""), 3);
  assert_int_equal(number_of("4"), 4);
  gate_file *file = opened("r.db");
  SAYS(gate_file_load(file, "fedcba", &run), "has no run \"fedcba\"; its runs are 1 (first), 2 (fedcba98");
  SAYS(gate_file_load(file, "99", &run), "has no run \"99\"");
  SAYS(gate_file_load(file, "-1", &run), "has no run \"-1\"");
  SAYS(gate_file_load(file, "99999999999999999999999", &run), "has no run");
  gate_file_close(file);
}

static void a_colon_may_be_part_of_the_files_name(void **state) {
  (void)state;
  gate_run run;
  save("a:1", "", 1, GATE_RUN_COMPLETE);
  FINE(gate_load(path_of("a:1"), &run));
  gate_run_free(&run);
  SAYS(gate_load(path_of("b:1"), &run), "/b: No such file");
}

static void no_run(void **state) {
  (void)state;
  gate_run run;
  gate_file_close(opened("r.db"));
  SAYS(gate_load(path_of("r.db"), &run), "holds no run; save one with attune bench --save");
  SAYS(gate_load(path_of("r.db:1"), &run), "holds no run");
  save("r.db", "", 1, GATE_RUN_OPEN);
  SAYS(gate_load(path_of("r.db"), &run), "no run came to its end; run 1 is still being written, or its writer died");
}

/* --- what is no result file --- */

static char *bytes_of(const char *path, size_t *size) {
  FILE *stream = fopen(path, "rb");
  assert_non_null(stream);
  char *bytes = calloc(1, 1 << 20);
  assert_non_null(bytes);
  *size = fread(bytes, 1, 1 << 20, stream);
  fclose(stream);
  return bytes;
}

static void write_bytes(const char *name, const void *bytes, size_t size) {
  FILE *stream = fopen(path_of(name), "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(bytes, 1, size, stream), size);
  assert_int_equal(fclose(stream), 0);
}

/* Refused with these words, read or written, and not a byte of it changes. */
static void refused(const char *name, const char *words) {
  size_t before, after;
  gate_file *file = NULL;
  char *was = bytes_of(path_of(name), &before);
  SAYS(gate_file_open(&file, path_of(name), false), words);
  SAYS(gate_file_open(&file, path_of(name), true), words);
  assert_null(file);
  char *is = bytes_of(path_of(name), &after);
  assert_int_equal(before, after);
  assert_memory_equal(was, is, before);
  free(was);
  free(is);
}

static void a_file_that_is_not_there(void **state) {
  (void)state;
  gate_file *file = NULL;
  gate_run run;
  SAYS(gate_load(path_of("none.db"), &run), "No such file");
  assert_int_not_equal(access(path_of("none.db"), F_OK), 0);
  SAYS(gate_file_open(&file, path_of("none/r.db"), true), "cannot be opened");
  SAYS(gate_file_open(&file, folder, true), "is not a regular file");
  write_bytes("empty", "", 0);
  SAYS(gate_file_open(&file, path_of("empty"), false), "is empty; it holds no run");
  save("empty", "", 1, GATE_RUN_COMPLETE); /* made into one */
  FINE(gate_load(path_of("empty"), &run));
  gate_run_free(&run);
}

static void other_files(void **state) {
  (void)state;
  char text[2000];
  memset(text, 'x', sizeof text);
  write_bytes("text", text, sizeof text);
  refused("text", "is not a result file of attune bench");
  write_bytes("byte", "\n", 1);
  refused("byte", "has 1 bytes and is not a result file");
  sql("other.db", "CREATE TABLE t (a); PRAGMA user_version = 1");
  refused("other.db", "is another program's database");
  sql("wal.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (a)");
  refused("wal.db", "is another program's database");
  sql("tuning.db", "CREATE TABLE t (a); PRAGMA application_id = 1096041538");
  refused("tuning.db", "is a tuning database, not a result file");
}

static void newer_and_hostile_files(void **state) {
  (void)state;
  save("newer.db", "", 1, GATE_RUN_COMPLETE);
  sql("newer.db", "PRAGMA user_version = 2");
  refused("newer.db", "was made by a newer attune (result file version 2, this one reads 1); update attune");
  sql("newer.db", "PRAGMA user_version = 0");
  refused("newer.db", "has result file version 0");
  save("tables.db", "", 1, GATE_RUN_COMPLETE);
  sql("tables.db", "DROP TABLE sample; CREATE VIEW sample AS SELECT 1 AS visit, 1 AS ordinal, 1.0 AS ns");
  refused("tables.db", "has other tables than a result file");
  save("trigger.db", "", 1, GATE_RUN_COMPLETE);
  sql("trigger.db", "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM sample; END");
  refused("trigger.db", "has other tables than a result file");
}

/* Cut anywhere: an error with a sentence. Overwritten anywhere: that, or what is read can be used. */
static void damaged_files(void **state) {
  (void)state;
  size_t size;
  int refusals = 0;
  save("whole.db", "", 20, GATE_RUN_COMPLETE);
  char *whole = bytes_of(path_of("whole.db"), &size), *copy = malloc(size);
  assert_non_null(copy);
  for (size_t step = 0; step < 40; step++) {
    gate_run run;
    const size_t at = 1 + step * (size - 1) / 40;
    memcpy(copy, whole, size);
    if (step % 2) memset(copy + at, 0x5a, size - at < 64 ? size - at : 64);
    write_bytes("cut.db", copy, step % 2 ? size : at);
    char *error = gate_load(path_of("cut.db"), &run);
    refusals += error != NULL;
    if (step % 2 == 0) assert_non_null(error);
    if (!error)
      for (int i = 0; i < (int)run.case_count && run.cases[i].visit_count; i++)
        assert_true(run.cases[i].visits[0].sample_count >= 0);
    if (!error) gate_run_free(&run);
    free(error);
  }
  assert_in_range(refusals, 20, 40);
  free(whole);
  free(copy);
}

/* --- numbers that no measurement gives --- */

static void impossible_numbers_are_not_saved(void **state) {
  (void)state;
  const double times[] = {NAN, INFINITY, 0, -1, 1e300};
  gate_file *file = opened("r.db");
  gate_run run = made_up_run("");
  gate_case c = made_up_case("sum");
  gate_sample sample[1];
  FINE(gate_file_begin(file, &run));
  for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
    gate_visit v = visit_of(sample, 1, 0, 1);
    sample[0].ns = times[i];
    SAYS(gate_file_add(file, run.id, &c, &v), "not saved: a time that is not above 0, or absurd");
  }
  gate_visit v = visit_of(sample, 1, 0, 1);
  sample[0].cpu_ns = NAN;
  SAYS(gate_file_add(file, run.id, &c, &v), "a CPU time");
  v = visit_of(sample, 1, 0, 1);
  v.calls = 0;
  SAYS(gate_file_add(file, run.id, &c, &v), "a number of calls");
  v.calls = 1;
  c.bytes = NAN;
  SAYS(gate_file_add(file, run.id, &c, &v), "a number of bytes");
  c = made_up_case("");
  SAYS(gate_file_add(file, run.id, &c, &v), "a case without a name");
  run.fingerprint = (char *)(uintptr_t) "[1]";
  SAYS(gate_file_begin(file, &run), "a fingerprint that is no JSON object");
  FINE(gate_file_load(file, "1", &run));
  assert_int_equal(run.case_count, 0);
  gate_run_free(&run);
  gate_file_close(file);
}

static void impossible_numbers_are_not_read(void **state) {
  (void)state;
  static const struct {
    const char *sql, *words;
  } bad[] = {
      {"UPDATE sample SET ns = -5 WHERE ordinal = 1", "case \"sum/1M\" has a time that is not above 0, or absurd"},
      {"UPDATE sample SET ns = 9e999", "a time that is not above 0, or absurd"},
      {"UPDATE sample SET cpu_ns = -1", "a CPU time that is negative"},
      {"UPDATE sample SET start = -1", "a sample that began before time did"},
      {"UPDATE visit SET calls = 0", "a number of calls"},
      {"UPDATE visit SET calls = 9223372036854775807", "a number of calls"},
      {"UPDATE visit SET round = -1", "a round"},
      {"UPDATE visit SET load = 9e999", "a load"},
      {"UPDATE visit SET clock_mhz = -1", "a clock"},
      {"UPDATE bench_case SET flops = -1", "run 1 has a number of operations"},
      {"UPDATE bench_case SET state = 'fine'", "run 1 has a case in an unknown state"},
      {"UPDATE bench_case SET name = ''", "run 1 has a case without a name"},
      {"UPDATE bench_case SET name = 'a' || char(0) || 'b'", "run 1 has a case without a name"},
      {"UPDATE run SET fingerprint = 'no'", "run 1 has a fingerprint that is no JSON object"},
      {"UPDATE run SET state = 'done'", "run 1 has an unknown state"},
      {"UPDATE run SET started = -9", "run 1 has a date before 1970"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    gate_run run;
    (void)unlink(path_of("r.db"));
    save("r.db", "", 2, GATE_RUN_COMPLETE);
    sql("r.db", bad[i].sql);
    SAYS(gate_load(path_of("r.db"), &run), bad[i].words);
    assert_int_equal(run.case_count, 0);
  }
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
  }
  if (!error) error = gate_file_end(file, run.id, GATE_RUN_COMPLETE);
  if (error) fprintf(stderr, "%s\n", error);
  _exit(error ? 1 : 0);
}

static int ended(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return status;
}

/* Neither loses a sample, also where both make the file. */
static void two_writers(void **state) {
  (void)state;
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

static void a_killed_writer_leaves_what_was_saved(void **state) {
  (void)state;
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

/* In a child that modes bind. 0: refused to write, and read. */
static _Noreturn void try_without_rights(const char *path, const char *in) {
  gate_run run;
  gate_file *file = NULL;
  if (!give_up_rights(in)) _exit(77);
  char *error = gate_file_open(&file, path, true);
  if (!error || !strstr(error, "cannot be written; check its mode")) _exit(2);
  free(error);
  error = gate_load(path, &run);
  if (error || run.case_count != 1) _exit(3);
  gate_run_free(&run);
  _exit(0);
}

static void a_file_that_cannot_be_written(void **state) {
  (void)state;
  save("r.db", "", 1, GATE_RUN_COMPLETE);
  assert_int_equal(chmod(path_of("r.db"), 0444), 0);
  assert_int_equal(chmod(folder, 0555), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) try_without_rights(path_of("r.db"), folder);
  const int status = ended(child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) skip(); /* modes bind nobody here */
  assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(everything_comes_back),
      TEST(a_case_that_fails_later_keeps_its_samples),
      TEST(runs_append),
      TEST(a_run_is_named_by_number_label_or_revision),
      TEST(a_colon_may_be_part_of_the_files_name),
      TEST(no_run),
      TEST(a_file_that_is_not_there),
      TEST(other_files),
      TEST(newer_and_hostile_files),
      TEST(damaged_files),
      TEST(impossible_numbers_are_not_saved),
      TEST(impossible_numbers_are_not_read),
      TEST(two_writers),
      TEST(a_killed_writer_leaves_what_was_saved),
      TEST(a_file_that_cannot_be_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
