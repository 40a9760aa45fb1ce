/* SPDX-License-Identifier: Apache-2.0
 * test_store_damage.c: changed columns, random damage to the file and its journal: a right winner or a miss, never
 * a wrong one, never a crash. */
#include "tests/tuning/store/store_fixture.h"
#include "tuning/store/decision.h"

static int count_row(void *user, const char *fingerprint, const attune_decision *decision) {
  (void)fingerprint;
  (void)decision;
  ++*(int *)user;
  return 0;
}

/* A row that does not carry its own hash is a miss, whichever column was changed. */
TEST(changed_columns) {
  static const char *const changes[] = {
      "implementation = 'other'",
      "configuration = 'tile=1'",
      "version = version + 1",
      "time_ns = time_ns / 2",
      "spread = 0",
      "samples = samples + 1",
      "default_implementation = ''",
      "default_time_ns = default_time_ns + 1",
      "runner_up = 'other'",
      "runner_up_configuration = ''",
      "runner_up_time_ns = 3",
      "candidates = 1",
      "rejected = 77",
      "disturbed = 77",
      "max_error = 0.5",
      "tuning_ms = 1",
      "complete = 1 - complete",
      "tuned_at = tuned_at + 1",
      "note = 'better'",
      "device = 'host'",
      "family = 'other'",
      "row_check = row_check + 1",
      "samples = -1",
      "samples = 9223372036854775807",
      "configuration = printf('%.*c', 200, 'x')",
      "time_ns = 9e999",
      "note = char(27) || '[2J'",
      "note = 'a' || char(0) || 'b'",
      "measure = 'cold,graph'",
      "problem = 'other'",
  };
  make_database("good.db", 2);
  size_t size;
  unsigned char *bytes = read_file(path_of("good.db"), &size);
  for (size_t i = 0; i < AT_COUNT(changes); i++) {
    char sql[128 + ATTUNE_PROBLEM_CHARS];
    int count = 0;
    attune_decision d = winner_of(1), found;
    write_file(path_of("bad.db"), bytes, size);
    (void)snprintf(sql, sizeof sql, "UPDATE winner SET %s WHERE problem = '%s'", changes[i], d.problem);
    execute(path_of("bad.db"), sql);
    at_store *store = open_store("bad.db");
    if (find_number(store, 1, &found) != ATTUNE_NOT_FOUND) fail_msg("found after: %s", changes[i]);
    assert_int_equal(found.implementation[0], 0);
    assert_int_equal(at_store_find(store, FINGERPRINT, "other", d.measure, &found), ATTUNE_NOT_FOUND);
    assert_int_equal(at_store_find(store, FINGERPRINT, d.problem, "cold,graph", &found), ATTUNE_NOT_FOUND);
    assert_number(store, 0);
    assert_int_equal(at_store_each_winner(store, count_row, &count), ATTUNE_OK);
    assert_int_equal(count, 1);
    put_number(store, 1); /* measured again */
    assert_number(store, 1);
    at_store_close(store);
  }
  write_file(path_of("bad.db"), bytes, size);
  execute(path_of("bad.db"), "UPDATE fingerprint SET text = 'other machine'");
  at_store *store = open_store("bad.db");
  attune_decision d = winner_of(1), found;
  assert_int_equal(at_store_find(store, "other machine", d.problem, d.measure, &found), ATTUNE_NOT_FOUND);
  at_store_close(store);
  free(bytes);
}

/* --- random damage --- */

static unsigned seed;

static unsigned below(size_t limit) {
  unsigned value = (unsigned)rand_r(&seed) << 16 ^ (unsigned)rand_r(&seed);
  return limit ? (unsigned)(value % limit) : 0;
}

/* Flips bits, cuts, writes zeros or another part of the file over a part; the new size. */
static size_t damage(unsigned char *bytes, size_t size) {
  size_t at = below(size), length = 1 + below(600), from = below(size);
  if (length > size - at) length = size - at;
  if (length > size - from) length = size - from;
  switch (below(8)) {
  case 0: return at;
  case 1: memset(bytes + at, 0, length); break;
  case 2: memmove(bytes + at, bytes + from, length); break;
  case 3: /* of one page's header, where the tree is */
    at = at / 4096 * 4096 + below(16);
    if (at < size) bytes[at] = (unsigned char)below(256);
    break;
  default:
    for (unsigned flips = 1 + below(8); flips > 0; flips--) bytes[below(size)] ^= (unsigned char)(1u << below(8));
  }
  return size;
}

static int check_row(void *user, const char *fingerprint, const attune_decision *decision) {
  attune_decision right = winner_of(decision->samples - 20);
  assert_string_equal(fingerprint, FINGERPRINT);
  assert_same_winner(&right, decision);
  ++*(int *)user;
  return 0;
}

static int skip_recorded(void *user, const char *problem, int64_t count) {
  (void)user;
  assert_true(problem[0] != '\0' && count > 0);
  return 0;
}

/* Every way in; true when it opened. */
static bool use_damaged(const char *path, at_store_access access, int rows) {
  at_store *store = NULL;
  attune_decision found, fresh = winner_of(rows + 1000);
  int count = 0;
  attune_status status = at_store_open(&store, path, access);
  if (status != ATTUNE_OK) {
    if (status != ATTUNE_BAD_DATA && status != ATTUNE_NOT_FOUND && status != ATTUNE_IO_ERROR &&
        status != ATTUNE_PERMISSION) {
      fail_msg("%s: %s", attune_status_string(status), attune_last_message());
    }
    return false;
  }
  for (int i = 0; i < 12; i++) {
    int number = (int)below((size_t)rows);
    if (find_number(store, number, &found) != ATTUNE_OK) continue;
    attune_decision right = winner_of(number);
    assert_same_winner(&right, &found);
  }
  (void)at_store_each_of_family(store, FINGERPRINT, FAMILY, "hot,eager", check_row, &count);
  assert_true(count <= rows);
  count = 0;
  (void)at_store_each_winner(store, check_row, &count);
  assert_true(count <= rows);
  (void)at_store_each_recorded(store, FINGERPRINT, skip_recorded, NULL);
  if (access == AT_STORE_READ_WRITE) {
    (void)at_store_record(store, FINGERPRINT, "p", 1, 100);
    (void)at_store_lease_acquire(store, FINGERPRINT, "p", 1000, 500);
    status = at_store_put(store, FINGERPRINT, FAMILY, &fresh, NULL, 0, 100);
    if (find_number(store, rows + 1000, &found) == ATTUNE_OK)
      assert_same_winner(&fresh, &found);
    else
      assert_int_not_equal(status, ATTUNE_BAD_DATA); /* a row that was not written is kept in memory */
  }
  at_store_close(store);
  return true;
}

/* Many rows quickly: another connection holds the file, so that they queue and are written in a few transactions. */
static void make_good_database(int rows) {
  sqlite3 *other = NULL;
  at_store *store = open_store("good.db");
  assert_int_equal(sqlite3_open(path_of("good.db"), &other), SQLITE_OK);
  assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
  for (int i = 0; i < rows; i++) {
    attune_decision d = winner_of(i);
    assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 0), ATTUNE_BUSY);
  }
  assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(other), SQLITE_OK);
  assert_int_equal(at_store_record(store, FINGERPRINT, "gemm f32 nn 1x1x1 strict", 3, 1000), ATTUNE_OK);
  at_store_close(store);
}

static void damaged_many_times(int rows, long times) {
  make_good_database(rows);
  size_t size;
  unsigned char *good = read_file(path_of("good.db"), &size);
  unsigned char *bytes = malloc(size);
  assert_non_null(bytes);
  long opened = 0;
  for (long i = 0; i < times; i++) {
    memcpy(bytes, good, size);
    size_t length = damage(bytes, size);
    (void)unlink(path_of("bad.db-journal"));
    write_file(path_of("bad.db"), bytes, length);
    if (use_damaged(path_of("bad.db"), i % 4 == 0 ? AT_STORE_READ_ONLY : AT_STORE_READ_WRITE, rows)) opened++;
  }
  print_message("%ld damaged files of %zu bytes: %ld opened, no wrong winner\n", times, size, opened);
  assert_true(opened > 0 && opened < times);
  free(good);
  free(bytes);
}

TEST(random_damage) {
  seed = (unsigned)scale("ATTUNE_TEST_SEED", 1);
  damaged_many_times(60, scale("ATTUNE_TEST_MUTATIONS", 1000)); /* checked whole when opened */
}

TEST(random_damage_of_a_large_file) {
  seed = (unsigned)scale("ATTUNE_TEST_SEED", 2);
  damaged_many_times(4000, scale("ATTUNE_TEST_LARGE_MUTATIONS", 100)); /* too large for that */
}

static int warnings;

static void count_warning(void *user, attune_log_level level, const char *line) {
  (void)user;
  if (level == ATTUNE_LOG_WARNING && strstr(line, "damaged")) warnings++;
}

/* Met in use, not at opening: the row is a miss, said once in the log, and the file is left as it is from then on. */
TEST(writes_no_more_when_damaged) {
  make_good_database(4000);
  size_t size;
  long long page = query(path_of("good.db"), "SELECT rootpage FROM sqlite_schema WHERE name = 'winner'");
  unsigned char *bytes = read_file(path_of("good.db"), &size);
  bytes[(page - 1) * 4096] = 0xff;
  write_file(path_of("bad.db"), bytes, size);
  warnings = 0;
  attune_set_log(count_warning, NULL, ATTUNE_LOG_WARNING);
  at_store *store = open_store("bad.db");
  attune_decision found, d = winner_of(5000);
  for (int i = 0; i < 3; i++) assert_int_equal(find_number(store, i, &found), ATTUNE_NOT_FOUND);
  assert_int_equal(warnings, 1);
  assert_int_equal(at_store_record(store, FINGERPRINT, "p", 1, 100), ATTUNE_BAD_DATA);
  assert_int_equal(at_store_lease_acquire(store, FINGERPRINT, "p", 1000, 500), ATTUNE_BAD_DATA);
  FAILS_SAYING(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 100), ATTUNE_BAD_DATA, "move it away");
  assert_number(store, 5000);
  at_store_close(store);
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  assert_unchanged(path_of("bad.db"), bytes, size);
  free(bytes);
}

/* A journal full of noise, or of another moment, beside the file. */
TEST(random_journals) {
  seed = (unsigned)scale("ATTUNE_TEST_SEED", 3);
  make_database("good.db", 60);
  size_t size;
  unsigned char *good = read_file(path_of("good.db"), &size);
  static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  unsigned char journal[8192];
  for (int i = 0; i < 100; i++) {
    for (size_t b = 0; b < sizeof journal; b++) journal[b] = (unsigned char)(i % 2 ? below(256) : good[b]);
    memcpy(journal, magic, sizeof magic);
    write_file(path_of("bad.db"), good, size);
    write_file(path_of("bad.db-journal"), journal, 1 + below(sizeof journal));
    (void)use_damaged(path_of("bad.db"), i % 4 == 0 ? AT_STORE_READ_ONLY : AT_STORE_READ_WRITE, 60);
  }
  free(good);
}

/* --- a journal that names another file, which SQLite would delete --- */

static void put_number_at(unsigned char *at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* A hot journal of `database` with no pages, and the name of a super-journal at its end; its length. */
static size_t hostile_journal(unsigned char out[2048], const char *names, uint32_t pages) {
  static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  const size_t length = strlen(names);
  uint32_t sum = 0;
  memset(out, 0, 2048);
  memcpy(out, magic, sizeof magic);
  put_number_at(out + 16, pages); /* of the database when the transaction began */
  put_number_at(out + 20, 512);   /* the sector, which the header fills */
  put_number_at(out + 24, 4096);
  unsigned char *at = out + 512;
  put_number_at(at, (1 << 30) / 4096 + 1); /* the page of the locks */
  memcpy(at + 4, names, length);
  for (size_t i = 0; i < length; i++) sum += (unsigned char)names[i]; /* plain ASCII */
  put_number_at(at + 4 + length, (uint32_t)length);
  put_number_at(at + 8 + length, sum);
  memcpy(at + 12 + length, magic, sizeof magic);
  return 512 + 20 + length;
}

enum { VICTIM = 512 };

/* The victim holds the journal's name, as a super-journal does, so that SQLite takes it for one. */
static size_t set_trap(const char *database, char victim[VICTIM], const char *journal) {
  unsigned char bytes[2048];
  char path[256];
  (void)snprintf(victim, VICTIM, "%s-mj001122339", path_of(database));
  (void)snprintf(path, sizeof path, "%s", path_of(journal));
  write_file(victim, (const unsigned char *)path, strlen(path) + 1);
  size_t size;
  free(read_file(path_of(database), &size));
  const size_t length = hostile_journal(bytes, victim, (uint32_t)(size / 4096));
  write_file(path, bytes, length);
  return length;
}

static void expect_refused(const char *database, at_store_access access) {
  at_store *store = NULL;
  assert_int_equal(at_store_open(&store, path_of(database), access), ATTUNE_BAD_DATA);
  assert_null(store);
  assert_non_null(strstr(attune_last_message(), "names another file"));
  assert_non_null(strstr(attune_last_message(), "-mj00112233"));
}

TEST(a_journal_that_names_a_file) {
  char victim[VICTIM], own[256], journal[256], other[256];
  (void)snprintf(own, sizeof own, "%s", path_of("own.db"));
  (void)snprintf(journal, sizeof journal, "%s", path_of("own.db-journal"));
  (void)snprintf(other, sizeof other, "%s", path_of("other"));
  make_database("own.db", 3);
  /* Plain SQLite falls into the trap and deletes the victim; else the test proves nothing. */
  (void)set_trap("own.db", victim, "own.db-journal");
  assert_int_equal(query(own, "SELECT count(*) FROM winner"), 3);
  assert_int_not_equal(access(victim, F_OK), 0);

  const size_t length = set_trap("own.db", victim, "own.db-journal");
  expect_refused("own.db", AT_STORE_READ_WRITE);
  expect_refused("own.db", AT_STORE_READ_ONLY);
  size_t left;
  free(read_file(journal, &left));
  assert_int_equal(left, length); /* nothing is deleted, nor changed */
  assert_int_equal(access(victim, F_OK), 0);

  /* Nor when it comes while the store has no connection yet. */
  assert_int_equal(rename(own, other), 0);
  assert_int_equal(unlink(journal), 0);
  at_store *store = open_store("own.db");
  assert_int_equal(rename(other, own), 0);
  (void)set_trap("own.db", victim, "own.db-journal");
  attune_decision found;
  assert_int_equal(find_number(store, 1, &found), ATTUNE_NOT_FOUND);
  assert_int_equal(access(victim, F_OK), 0);
  assert_int_equal(unlink(journal), 0);
  assert_number(store, 1);
  at_store_close(store);

  /* A link to one is refused for being a link. */
  (void)set_trap("own.db", victim, "other");
  assert_int_equal(symlink(other, journal), 0);
  assert_int_equal(at_store_open(&store, own, AT_STORE_READ_WRITE), ATTUNE_PERMISSION);
  assert_int_equal(access(victim, F_OK), 0);
  assert_int_equal(unlink(journal), 0);

  /* The database's own second name. */
  assert_int_equal(link(own, journal), 0);
  assert_int_equal(at_store_open(&store, own, AT_STORE_READ_WRITE), ATTUNE_BAD_DATA);
  assert_int_equal(unlink(journal), 0);
  store = open_store("own.db");
  assert_number(store, 1);
  at_store_close(store);
}

int main(void) {
  return RUN_TESTS_EACH(setup, teardown, NULL, NULL);
}
