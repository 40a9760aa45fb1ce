/* SPDX-License-Identifier: Apache-2.0
 * test_gate_bad_files.c: what is no result file, or holds what no measurement gives, is refused with a sentence and
 * left as it is. */
#include "tests/support/no_rights.h"
#include "tests/tools/compare/gate_fixture.h"

#include <math.h>
#include <sys/stat.h>

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

TEST(a_file_that_is_not_there) {
  gate_file *file = NULL;
  gate_run run;
  SAYS(gate_load(path_of("none.db"), &run), "No such file");
  assert_int_not_equal(access(path_of("none.db"), F_OK), 0);
  SAYS(gate_file_open(&file, path_of("none/r.db"), true), "cannot be opened");
  SAYS(gate_file_open(&file, folder, true), "is not a regular file");
  write_bytes("empty", "", 0);
  SAYS(gate_file_open(&file, path_of("empty"), false),
       "is empty; should be a result file written by `attune bench --save'");
  save("empty", "", 1, GATE_RUN_COMPLETE); /* made into one */
  FINE(gate_load(path_of("empty"), &run));
  gate_run_free(&run);
}

/* A journal that names a file, which SQLite would delete: the page of the locks, the name, its length, a sum, and what
 * a journal begins with. */
TEST(a_journal_that_names_a_file) {
  static const char journal[] = "\0\4\0\1/tmp/victim\0\0\0\13\0\0\0\0\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  save("j.db", "", 1, GATE_RUN_COMPLETE);
  write_bytes("j.db-journal", journal, sizeof journal - 1);
  refused("j.db", "names another file (/tmp/victim)");
  assert_int_equal(unlink(path_of("j.db-journal")), 0);
}

/* Words that mean something else to SQLite. */
TEST(strange_names_are_names_of_files) {
  static const char *const names[] = {":memory:", "file:x?mode=ro", "file:y.db", "a:1", "-"};
  char back[4096];
  assert_non_null(getcwd(back, sizeof back));
  assert_int_equal(chdir(folder), 0);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    gate_file *file = NULL;
    gate_run run = made_up_run(""), read;
    FINE(gate_file_open(&file, names[i], true));
    FINE(gate_file_begin(file, &run));
    FINE(gate_file_end(file, run.id, GATE_RUN_COMPLETE));
    gate_file_close(file);
    if (access(names[i], F_OK) != 0) fail_msg("there is no file \"%s\"", names[i]);
    FINE(gate_load(names[i], &read));
    assert_int_equal(read.id, 1);
    gate_run_free(&read);
    char *of = gate_say("%s:1", names[i]);
    FINE(gate_load(of, &read));
    gate_run_free(&read);
    free(of);
  }
  assert_int_equal(chdir(back), 0);
}

TEST(other_files) {
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

TEST(newer_and_hostile_files) {
  save("newer.db", "", 1, GATE_RUN_COMPLETE);
  sql("newer.db", "PRAGMA user_version = 3");
  refused("newer.db", "was made by a newer attune (result file version 3, this one reads 2); update attune");
  sql("newer.db", "PRAGMA user_version = -1");
  refused("newer.db", "was made by an older attune (result file version -1, this one reads 2) and is left unchanged");
  sql("newer.db", "PRAGMA user_version = 0");
  refused("newer.db", "(result file version 0,");
  sql("newer.db", "PRAGMA user_version = 1");
  refused("newer.db", "(result file version 1, this one reads 2) and is left unchanged; save to another file");
  save("tables.db", "", 1, GATE_RUN_COMPLETE);
  sql("tables.db", "DROP TABLE sample; CREATE VIEW sample AS SELECT 1 AS visit, 1 AS ordinal, 1.0 AS ns");
  refused("tables.db", "does not have the schema of a result file");
  save("trigger.db", "", 1, GATE_RUN_COMPLETE);
  sql("trigger.db", "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM sample; END");
  refused("trigger.db", "does not have the schema of a result file");
}

/* Cut anywhere: an error with a sentence. Overwritten anywhere: that, or what is read can be used. */
TEST(damaged_files) {
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

TEST(impossible_numbers_are_not_saved) {
  const double times[] = {NAN, INFINITY, 0, -1, 1e300};
  gate_file *file = opened("r.db");
  gate_run run = made_up_run("");
  gate_case c = made_up_case("sum");
  gate_sample sample[1];
  FINE(gate_file_begin(file, &run));
  for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
    gate_visit v = visit_of(sample, 1, 0, 1);
    sample[0].ns = times[i];
    SAYS(gate_file_add(file, run.id, &c, &v), "not saved: a time that is not above 0 or is absurdly large");
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
  SAYS(gate_file_add(file, run.id, &c, &v), "a case whose name is missing");
  run.fingerprint = (char *)(uintptr_t) "[1]";
  SAYS(gate_file_begin(file, &run), "a fingerprint that is not a JSON object");
  FINE(gate_file_load(file, "1", &run));
  assert_int_equal(run.case_count, 0);
  gate_run_free(&run);
  gate_file_close(file);
}

TEST(impossible_numbers_are_not_read) {
  static const struct {
    const char *sql, *words;
  } bad[] = {
      {"UPDATE sample SET ns = -5 WHERE ordinal = 1",
       "case \"sum/1M\" has a time that is not above 0 or is absurdly large"},
      {"UPDATE sample SET ns = 9e999", "a time that is not above 0 or is absurdly large"},
      {"UPDATE sample SET cpu_ns = -1", "a CPU time that is negative"},
      {"UPDATE sample SET start = -1", "a sample that started before time 0"},
      {"UPDATE visit SET calls = 0", "a number of calls"},
      {"UPDATE visit SET calls = 9223372036854775807", "a number of calls"},
      {"UPDATE visit SET round = -1", "a round"},
      {"UPDATE visit SET load = 9e999", "a load"},
      {"UPDATE visit SET clock_mhz = -1", "a clock"},
      {"UPDATE bench_case SET flops = -1", "run 1 has a number of operations"},
      {"UPDATE bench_case SET state = 'fine'", "run 1 has a case in an unknown state"},
      {"UPDATE bench_case SET name = ''", "run 1 has a case whose name is missing"},
      {"UPDATE bench_case SET name = 'a' || char(0) || 'b'", "run 1 has a case whose name is missing"},
      {"INSERT INTO roof VALUES (1, 'host', 'f32', 9e999, 0, 0)",
       "run 1 has a roof that is negative or absurdly large"},
      {"INSERT INTO roof VALUES (1, '', 'f32', 1, 0, 0)", "run 1 has a roof without a device"},
      {"UPDATE run SET fingerprint = 'no'", "run 1 has a fingerprint that is not a JSON object"},
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

/* In a child that modes bind. 0: refused to write, and read. */
static _Noreturn void try_without_rights(const char *path, const char *in) {
  gate_run run;
  gate_file *file = NULL;
  if (!give_up_rights(in)) _exit(77);
  char *error = gate_file_open(&file, path, true);
  if (!error || !strstr(error, "cannot be written; check the permissions")) _exit(2);
  free(error);
  error = gate_load(path, &run);
  if (error || run.case_count != 1) _exit(3);
  gate_run_free(&run);
  _exit(0);
}

TEST(a_file_that_cannot_be_written) {
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

int main(void) {
  return RUN_TESTS_EACH(set_up, tear_down, NULL, NULL);
}
