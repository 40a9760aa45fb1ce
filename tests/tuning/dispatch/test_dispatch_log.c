/* SPDX-License-Identifier: Apache-2.0
 * test_dispatch_log.c: what the log tells at level info: what runs at a problem's first call and why no stored winner
 * does, what was tuned, that a database was made; and nothing of it at lower levels. */
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include <unistd.h>

#include "ops/gemm/problem/problem.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/store/fingerprint.h"

static char folder[] = "/tmp/attune-test-log-XXXXXX", database[128], lines[1 << 16];
static attune_device *host;
static const char *const FAST[] = {"ns=50000", NULL};

static void collect(void *user, attune_log_level level, const char *line) {
  size_t at = strlen(lines);
  (void)user;
  (void)at_append(lines, sizeof lines, &at, "%d %s\n", (int)level, line);
}

static int count(const char *words) {
  int found = 0;
  for (const char *at = lines; (at = strstr(at, words)) != NULL; at++) found++;
  return found;
}

static void expect(const char *words) {
  if (!count(words)) fail_msg("no \"%s\" in\n%s", words, lines);
}

FIXTURE(fresh) {
  static int number;
  toy_reset();
  toy_spins = FAST;
  snprintf(database, sizeof database, "%s/%d.db", folder, number++);
  lines[0] = '\0';
  attune_set_log(collect, NULL, ATTUNE_LOG_INFO);
  return 0;
}

static attune_tuner *tuner_of(attune_mode mode) {
  attune_tuner_options options = {.database = database, .mode = mode};
  attune_tuner *tuner = NULL;
  assert_int_equal(at_tuner_create(&tuner, &options, toy_ops, 1), ATTUNE_OK);
  return tuner;
}

static void dispatch(attune_tuner *tuner, const char *problem) {
  const at_key key = toy_key(problem, host);
  const at_plan *plan = NULL;
  for (int i = 0; i < 3; i++)
    assert_int_equal(at_dispatch_as(tuner, &toy_op, &key, 0, attune_stream_default(host), &plan), ATTUNE_OK);
}

/* ---- fingerprints ---- */

TEST(parts_of_fingerprints) {
  const char *a = "H200; sm_90; 132 processors; 51200 KiB cache; cc 9.0; driver 12080; a b; attune 1; with x 1 lib-1";
  char words[512];
  assert_int_equal(at_fingerprint_difference(a, a, words, sizeof words), 0);
  assert_string_equal(words, "");
  assert_int_equal(
      at_fingerprint_difference(
          a, "H200; sm_90; 132 processors; 51200 KiB cache; cc 9.0; driver 13000; a b; attune 1; with x 2 lib-2", words,
          sizeof words),
      1);
  assert_string_equal(words, "driver 12080 there, 13000 here");
  assert_int_equal(
      at_fingerprint_difference(a, "H100; sm_90; 114 processors; 51200 KiB cache; cc 9.0; driver 12080; a c; attune 2",
                                words, sizeof words),
      4);
  assert_string_equal(words, "device H200 there, H100 here; processors 132 there, 114 here; attune's way of measuring "
                             "1 there, 2 here; other parts b there, c here");
  assert_int_equal(at_fingerprint_difference("another machine", a, words, sizeof words), 8);
  assert_int_equal(at_fingerprint_difference(a, "", words, 20), 8); /* what does not fit is left out */
  assert_int_equal(strlen(words) < 20, 1);
}

/* ---- dispatch ---- */

TEST(a_default_is_told_once) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  dispatch(tuner, TOY_PROBLEM);
  expect("3 " TOY_PROBLEM " on host runs base ns=200000: the default");
  assert_int_equal(count(TOY_PROBLEM), 1);
  attune_tuner_destroy(tuner);
}

TEST(tuning_and_winners_are_told) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  dispatch(tuner, TOY_PROBLEM);
  expect("3 created the tuning database ");
  expect("3 tuned " TOY_PROBLEM " on host in ");
  expect(" ms: spin ns=50000, ");
  expect(" x as fast as base's ");
  expect(TOY_PROBLEM " on host runs spin ns=50000: the winner just measured, ");
  attune_tuner_destroy(tuner);
  lines[0] = '\0';
  tuner = tuner_of(ATTUNE_MODE_CACHED);
  dispatch(tuner, TOY_PROBLEM);
  expect("runs spin ns=50000: the stored winner, ");
  assert_int_equal(count("made a new"), 0);
  attune_tuner_destroy(tuner);
}

/* Stores the problem's winner as one of a device whose fingerprint has another part. */
static void store_elsewhere(attune_tuner *tuner, const char *from, const char *to, const char *measure) {
  const char *own = NULL;
  char other[AT_FINGERPRINT_CHARS];
  assert_int_equal(at_tuner_fingerprint(tuner, host, &own), ATTUNE_OK);
  const char *at = strstr(own, from);
  assert_non_null(at);
  snprintf(other, sizeof other, "%.*s%s%s", (int)(at - own), own, to, at + strlen(from));
  attune_decision winner = {.problem = TOY_PROBLEM,
                            .implementation = "spin",
                            .implementation_version = 1,
                            .configuration = "ns=50000",
                            .time_ns = 10,
                            .samples = 9,
                            .default_implementation = "base",
                            .default_time_ns = 20,
                            .complete = 1};
  snprintf(winner.measure, sizeof winner.measure, "%s", measure);
  assert_int_equal(at_store_put(tuner->user, other, "toy f32 strict", &winner, NULL, 0, 1000), ATTUNE_OK);
}

TEST(what_differs_is_told) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  store_elsewhere(tuner, " KiB cache", "1 KiB cache; driver 12080", "hot,eager");
  dispatch(tuner, TOY_PROBLEM);
  expect("; a stored winner is not valid here: cache ");
  expect("; driver 12080 there, none here");
  attune_tuner_destroy(tuner);
  lines[0] = '\0';
  tuner = tuner_of(ATTUNE_MODE_CACHED);
  store_elsewhere(tuner, "; attune 1", "; attune 0", "hot,eager");
  dispatch(tuner, TOY_PROBLEM);
  expect("; the nearest stored winner is not valid here: attune's way of measuring 0 there, 1 here");
  attune_tuner_destroy(tuner);
  lines[0] = '\0';
  tuner = tuner_of(ATTUNE_MODE_OFF);
  dispatch(tuner, TOY_PROBLEM);
  assert_int_equal(count("stored winner"), 0); /* off reads nothing */
  attune_tuner_destroy(tuner);
}

TEST(another_measure_is_told) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  store_elsewhere(tuner, "; attune 1", "; attune 1", "cold,eager");
  dispatch(tuner, TOY_PROBLEM);
  expect("is not valid here: measured cold,eager there, hot,eager here");
  attune_tuner_destroy(tuner);
}

TEST(warnings_only) {
  attune_set_log(collect, NULL, ATTUNE_LOG_WARNING);
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  dispatch(tuner, TOY_PROBLEM);
  assert_string_equal(lines, "");
  attune_tuner_destroy(tuner);
}

/* The real operation: a row-major call is shown as it was written, in words that explain reads as the same problem. */
TEST(row_major_as_written) {
  static _Alignas(128) float a[3 * 8], b[5 * 8], d[3 * 8];
  attune_tuner *tuner = NULL;
  assert_int_equal(attune_tuner_create(&tuner, &(attune_tuner_options){.database = ":memory:"}), ATTUNE_OK);
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT, read = {0};
  problem.layout = ATTUNE_ROW_MAJOR;
  problem.trans_b = ATTUNE_T;
  problem.m = 3;
  problem.n = 5;
  problem.k = 7;
  problem.lda = 8;
  problem.ldd = 6;
  const attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = d};
  assert_int_equal(attune_gemm(tuner, attune_stream_default(host), &problem, &operands), ATTUNE_OK);
  const char *text = "gemm f32 nt 3x5x7 strict row-major lda=8 ldd=6";
  expect(text);
  char shown[256], stored[256], again[256];
  snprintf(shown, sizeof shown, "%s", text);
  assert_int_equal(attune_gemm_problem_format(stored, sizeof stored, &problem, NULL), ATTUNE_OK);
  assert_int_equal(attune_gemm_problem_parse(&read, shown), ATTUNE_OK);
  assert_int_equal(attune_gemm_problem_format(again, sizeof again, &read, NULL), ATTUNE_OK);
  assert_string_equal(again, stored);
  attune_tuner_destroy(tuner);
}

/* Each text that show writes is read as the problem it was made of. */
TEST(shown_texts_are_read) {
  static const char *const texts[] = {"gemm f32 nn 8x9x10 strict",
                                      "gemm bf16:f32 tn 8x9x10x3 reduced beta align=64 lda=20 ldb=30 ldc=40 ldd=50",
                                      "gemm f64 nt 8x9x10x3 equivalent deterministic beta=inplace stride_a=broadcast",
                                      "gemm f32 tt 1x9x1x4 strict workspace=100 stride_b=broadcast stride_a=1000"};
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    at_gemm first, second;
    char shown[AT_PROBLEM_CHARS];
    assert_int_equal(at_gemm_parse(texts[i], &first), ATTUNE_OK);
    for (int as = 0; as < 2; as++) {
      assert_int_equal(at_gemm_show(&first, as, shown, sizeof shown), ATTUNE_OK);
      assert_int_equal(strstr(shown, "row-major") != NULL, as);
      if (at_gemm_parse(shown, &second) != ATTUNE_OK) fail_msg("%s: %s", shown, attune_last_message());
      if (memcmp(&first, &second, sizeof first) != 0) fail_msg("%s is not %s", shown, texts[i]);
    }
  }
}

/* ---- ATTUNE_LOG ---- */

TEST(a_bad_word_is_told) {
  attune_tuner *tuner = NULL;
  setenv("ATTUNE_LOG", "verbose", 1);
  assert_int_equal(attune_tuner_create(&tuner, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_null(tuner);
  assert_string_equal(attune_last_message(), "ATTUNE_LOG is \"verbose\"; should be off, error, warning, info or debug");
  unsetenv("ATTUNE_LOG");
}

FIXTURE(open_all) {
  virtual_clock_start();
  setenv("HOME", folder, 1);
  return mkdtemp(folder) && attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_all) {
  return folder_remove(folder);
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, open_all, close_all);
}
