/* SPDX-License-Identifier: Apache-2.0
 * test_store_versions.c: a database of version 2, whose fingerprints joined the device and all libraries, is read as it
 * is and brought to version 3 by the first that writes; nothing that held before is lost. */
#include "tests/tuning/store/store_version_2.h"

#include <signal.h>

enum { WINNERS = 5 };

static const char NEW_LIBRARIES[] = CPU_2 "; with * openblas-0.3.21 blis-0.9.0";
static const char OLD_LIBRARIES[] = CPU_2 "; with * openblas-0.3.20 blis-0.9.0";

typedef struct seen {
  int winners, by_new, by_old, on_gpu, plain;
} seen;

static int look(void *user, const char *fingerprint, const attune_decision *decision) {
  seen *s = user;
  s->winners++;
  s->by_new += strcmp(fingerprint, NEW_LIBRARIES) == 0;
  s->by_old += strcmp(fingerprint, OLD_LIBRARIES) == 0 && strcmp(decision->note, "by an older library") == 0;
  s->on_gpu += strcmp(fingerprint, GPU_2 "; with * cublas-13.1.0 cublaslt-130100") == 0;
  s->plain += strcmp(fingerprint, FINGERPRINT) == 0;
  return 0;
}

static int add_calls(void *user, const char *problem, int64_t count) {
  int64_t *counts = user;
  counts[strcmp(problem, "gemm f64 nn 2x2x2 strict") == 0] += count;
  return 0;
}

static void assert_winner(at_store *store, const char *fingerprint, int number, double placement_spread) {
  attune_decision d = winner_of(number), found;
  const attune_status status = at_store_find(store, fingerprint, d.problem, d.measure, &found);
  if (status != ATTUNE_OK) fail_msg("winner %d: %s", number, attune_last_message());
  assert_same_winner(&d, &found);
  assert_int_equal(found.unsure, number == 2);
  assert_true(found.placement_spread == placement_spread);
}

static void assert_all(at_store *store) {
  seen all = {0}, family = {0}, key = {0};
  attune_decision one = winner_of(1), found;
  int64_t counts[2] = {0}, of_gpu[2] = {0};
  assert_winner(store, CPU_2, 0, 0.0625);
  assert_winner(store, CPU_2, 1, 0.125); /* the later of two */
  assert_winner(store, NEW_LIBRARIES, 1, 0.125);
  assert_winner(store, GPU_2, 2, 0.25);
  assert_winner(store, FINGERPRINT, 3, 0.3125);
  assert_int_equal(at_store_find(store, OLD_LIBRARIES, one.problem, one.measure, &found), ATTUNE_OK);
  assert_string_equal(found.note, "by an older library");
  assert_int_equal(at_store_each_winner(store, look, &all), ATTUNE_OK);
  assert_int_equal(all.winners, WINNERS);
  assert_true(all.by_new == 2 && all.by_old == 1 && all.on_gpu == 1 && all.plain == 1);
  assert_int_equal(at_store_each_of_family(store, CPU_2, FAMILY, "hot,eager", look, &family), ATTUNE_OK);
  assert_true(family.winners == 3 && family.by_new == 2 && family.by_old == 1);
  assert_int_equal(at_store_each_of_key(store, CPU_2, one.problem, one.measure, look, &key), ATTUNE_OK);
  assert_true(key.winners == 2 && key.by_new == 1 && key.by_old == 1);
  /* Calls are of the device, whatever its libraries were: added, as far as a number goes. */
  assert_int_equal(at_store_each_recorded(store, CPU_2, add_calls, counts), ATTUNE_OK);
  assert_int_equal(counts[1], 77);
  assert_true(counts[0] > 9100000000000000000);
  assert_int_equal(at_store_each_recorded(store, GPU_2, add_calls, of_gpu), ATTUNE_OK);
  assert_true(of_gpu[1] == 5 && of_gpu[0] == 0);
}

static void make_old(void) {
  make_version_2(path_of("old.db"), ROWS_2);
}

static void reading_leaves_it_as_it_is(void **state) {
  (void)state;
  at_store *store = NULL;
  make_old();
  size_t size = 0;
  unsigned char *bytes = read_file(path_of("old.db"), &size);
  assert_int_equal(at_store_open(&store, path_of("old.db"), AT_STORE_READ_ONLY), ATTUNE_OK);
  assert_all(store);
  at_store_close(store);
  assert_unchanged(path_of("old.db"), bytes, size);
  free(bytes);
}

static void writing_migrates(void **state) {
  (void)state;
  make_old();
  at_store *store = open_store("old.db");
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 3);
  assert_all(store);
  /* A winner with other implementations stands beside those that are there, and one with the same takes its place. */
  attune_decision fresh = winner_of(1), found;
  fresh.tuned_at++;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(at_store_put(store, CPU_2 "; with one 1 lib-2", FAMILY, &fresh, NULL, 0, 1000), ATTUNE_OK);
    assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM winner"), WINNERS + 1);
  }
  assert_int_equal(at_store_find(store, CPU_2, fresh.problem, fresh.measure, &found), ATTUNE_OK);
  assert_int_equal(found.tuned_at, fresh.tuned_at);
  at_store_close(store);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM trial"), 3);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM trial t JOIN winner w USING (fingerprint, "
                                            "implementations, problem, measure) WHERE t.ordinal = 0"),
                   2);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM workload"), 3);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM lease"), 0);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM fingerprint"), 3);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM sqlite_schema WHERE name LIKE '%old%'"), 0);
  store = open_store("old.db"); /* and the schema is the one that new databases have */
  at_store_close(store);
}

/* The rows of the fixture and the test's own hash are of the same attune. */
static void the_hash_is_that_of_version_2(void **state) {
  (void)state;
  attune_decision d = winner_of(0);
  d.placement_spread = 0.0625;
  const char *whole = "Test CPU; avx2 fma; 1024 KiB cache; openblas-0.3.21 blis-0.9.0; attune 1";
  assert_true(check_of_version_2(whole, FAMILY, &d) == 643030444791412464);
}

static void damaged_rows_stay_behind(void **state) {
  (void)state;
  make_old();
  execute(path_of("old.db"), "UPDATE winner SET time_ns = 1.0 WHERE problem LIKE '%2x16x3%'");
  at_store *store = open_store("old.db");
  attune_decision d = winner_of(2), found;
  assert_winner(store, CPU_2, 0, 0.0625);
  assert_int_equal(at_store_find(store, GPU_2, d.problem, d.measure, &found), ATTUNE_NOT_FOUND);
  at_store_close(store);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM winner"), WINNERS - 1);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM fingerprint"), 3); /* its device's calls stay */
}

static void strange_tables_are_refused(void **state) {
  (void)state;
  at_store *store = NULL;
  make_old();
  execute(path_of("old.db"), "CREATE TABLE implementations (x)");
  assert_int_equal(at_store_open(&store, path_of("old.db"), AT_STORE_READ_WRITE), ATTUNE_BAD_DATA);
  assert_non_null(strstr(attune_last_message(), "other tables"));
  assert_int_equal(at_store_open(&store, path_of("old.db"), AT_STORE_READ_ONLY), ATTUNE_BAD_DATA);
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 2);
  assert_int_equal(query(path_of("old.db"), "SELECT count(*) FROM winner"), WINNERS);
}

/* Who reads it while another brings it over finds every winner before and after. */
static void a_reader_follows(void **state) {
  (void)state;
  at_store *reader = NULL;
  make_old();
  assert_int_equal(at_store_open(&reader, path_of("old.db"), AT_STORE_READ_ONLY), ATTUNE_OK);
  assert_all(reader);
  at_store_close(open_store("old.db"));
  assert_int_equal(query(path_of("old.db"), "PRAGMA user_version"), 3);
  assert_all(reader);
  at_store_close(reader);
}

/* Writers and readers open it at once: one brings it over, each finds every winner. BUSY is no answer: asked again. */
static int use_old(int number) {
  const at_store_access access = number % 2 ? AT_STORE_READ_ONLY : AT_STORE_READ_WRITE;
  at_store *store = NULL;
  attune_status status = ATTUNE_BUSY;
  for (int i = 0; i < 1000 && status == ATTUNE_BUSY; i++) status = at_store_open(&store, path_of("old.db"), access);
  for (int n = 0; n < 2 && status == ATTUNE_OK; n++) {
    attune_decision d = winner_of(n), found;
    status = ATTUNE_BUSY;
    for (int i = 0; i < 1000 && status == ATTUNE_BUSY; i++)
      status = at_store_find(store, CPU_2, d.problem, d.measure, &found);
  }
  if (status != ATTUNE_OK) fprintf(stderr, "%d: %s\n", number, attune_last_message());
  at_store_close(store);
  return (int)status;
}

static void processes_migrate_once(void **state) {
  (void)state;
  pid_t children[64];
  const int processes = (int)scale("ATTUNE_TEST_PROCESSES", 8);
  assert_in_range(processes, 1, (int)AT_COUNT(children));
  make_old();
  for (int i = 0; i < processes; i++) children[i] = spawn(use_old, i);
  for (int i = 0; i < processes; i++) assert_int_equal(wait_for(children[i]), 0);
  at_store *store = open_store("old.db");
  assert_all(store);
  at_store_close(store);
}

static int migrate_old(int number) {
  at_store *store = NULL;
  (void)number;
  (void)at_store_open(&store, path_of("old.db"), AT_STORE_READ_WRITE);
  return 0;
}

/* Killed at any moment, it is of version 2 or 3, whole. */
static void a_kill_loses_nothing(void **state) {
  (void)state;
  const long kills = scale("ATTUNE_TEST_KILLS", 40);
  for (long i = 0; i < kills; i++) {
    make_old();
    const pid_t child = spawn(migrate_old, 0);
    usleep((useconds_t)(i * 6000 / kills));
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    at_store *store = open_store("old.db");
    assert_all(store);
    at_store_close(store);
    assert_int_equal(unlink(path_of("old.db")), 0);
    (void)unlink(path_of("old.db-journal"));
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(the_hash_is_that_of_version_2), TEST(reading_leaves_it_as_it_is), TEST(writing_migrates),
      TEST(damaged_rows_stay_behind),      TEST(strange_tables_are_refused), TEST(a_reader_follows),
      TEST(processes_migrate_once),        TEST(a_kill_loses_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
