/* SPDX-License-Identifier: Apache-2.0
 * test_cli_compare.c: `attune compare` and `attune history` on result files and tuning databases made here: what is
 * told, exit codes, reports, and files that cannot be read or compared. */
#include "tests/tools/cli/compare_fixture.h"
#include "tuning/store/decision.h"

#include "tests/support/store_open.h"

/* --- verdicts --- */

TEST(tells_what_became_slower) {
  save_pair(1.05);
  expect_run(1, "compare", in_folder("r.db"));
  expect_out("case/0");
  expect_out("+5.0 %");
  expect_out("slower");
  expect_out("1 of 6 cases is slower");
  expect_out("5 same");
  expect_out("they alternated");
  expect_out("base: 0123456789");
  assert_string_equal(err_text, "");
  assert_true(strstr(out_text, "case/0") < strstr(out_text, "case/1"));
}

TEST(nothing_slower_is_no_failure) {
  save_pair(1.0);
  expect_run(0, "compare", in_folder("r.db"));
  expect_out("No case is slower: 6 same");
  save_pair(0.9); /* runs 3 and 4: the latest pair */
  expect_run(0, "compare", in_folder("r.db"));
  expect_out("faster");
}

/* The machine was slower in half of the rounds, and in one of them for the base alone: medians of all rounds say that
 * the head is a third faster; the rounds say that it is not, and a line below the table says why. */
TEST(a_change_that_the_times_do_not_show) {
  plan base = usual, head = usual;
  base.slow_rounds = ROUNDS / 2;
  head.slow_rounds = ROUNDS / 2 - 1;
  head.pair = save(base);
  (void)save(head);
  expect_run(0, "compare", in_folder("r.db"));
  expect_out("change: the middle of the ratios within the rounds");
  expect_out("They differ by more than 0.5 % in 6 cases, most in case/");
  expect_out("from the times -33.");
  save_pair(1.05);
  expect_run(1, "compare", in_folder("r.db"));
  assert_null(strstr(out_text, "differ by more"));
}

TEST(names_runs_of_files) {
  save_pair(1.05);
  plan later = usual;
  later.started = 100000;
  later.label = "alone";
  (void)save(later);
  char base[128], head[128], alone[128], pair[128];
  snprintf(base, sizeof base, "%s:1", in_folder("r.db"));
  snprintf(head, sizeof head, "%s:2", in_folder("r.db"));
  snprintf(alone, sizeof alone, "%s:alone", in_folder("r.db"));
  snprintf(pair, sizeof pair, "%s:1", in_folder("r.db"));
  expect_run(1, "compare", in_folder("r.db")); /* not the latest run: the latest pair */
  expect_run(1, "compare", base, head);
  expect_out("they alternated");
  expect_run(0, "compare", head, base);
  expect_run(1, "compare", pair);
  expect_run(1, "compare", alone, head);
  expect_out("they did not alternate");
  expect_run(2, "compare", alone);
  expect_error("not a pair");
  snprintf(alone, sizeof alone, "%s:nightly", in_folder("r.db"));
  expect_run(2, "compare", base, alone);
  expect_error("has no run \"nightly\"");
}

TEST(the_threshold_is_the_users) {
  save_pair(1.05);
  expect_run(0, "compare", in_folder("r.db"), "--threshold", "10");
  expect_out("6 same");
  expect_run(0, "compare", in_folder("r.db"), "--threshold", "case/0=10");
  expect_out("6 same");
  assert_string_equal(err_text, "");
  expect_run(1, "compare", in_folder("r.db"), "--threshold", "case/0=10", "--threshold", "case/6=10", "--threshold",
             "case/0=1");
  expect_error("--threshold case/6=10 applies to no case: no name contains \"case/6\"");
  expect_run(1, "compare", in_folder("r.db"), "--threshold", "10", "--threshold", "/0=2", "--markdown", "-");
  expect_out("changes from 10 %, from 2 % where the name contains /0 on count");
  expect_run(1, "compare", in_folder("r.db"), "--threshold", "case/5=10");
  expect_run(2, "compare", in_folder("r.db"), "--threshold", "=10");
  expect_error("--threshold is \"=10\"; should be a percentage, 0 to 1000, or TEXT=PERCENT");
  expect_run(2, "compare", in_folder("r.db"), "--threshold", "x=ten");
  expect_error("--threshold is \"ten\"");
  expect_run(0, "compare", in_folder("r.db"), "--alpha", "1e-9");
  expect_out("too few rounds");
}

TEST(a_case_that_fails_now_is_a_regression) {
  plan broken = usual;
  broken.first_failed = true;
  broken.pair = save(usual);
  (void)save(broken);
  expect_run(1, "compare", in_folder("r.db"));
  expect_out("crashed (signal 11)");
  empty_folder();
  broken.pair = 0;
  broken.pair = save(broken); /* it failed before too */
  (void)save(broken);
  expect_run(0, "compare", in_folder("r.db"));
  empty_folder();
  plan gone = usual;
  gone.first_missing = true;
  gone.pair = save(usual);
  (void)save(gone);
  expect_run(0, "compare", in_folder("r.db"));
  expect_out("missing");
}

/* --- reports --- */

TEST(writes_reports) {
  save_pair(1.05);
  expect_run(1, "compare", in_folder("r.db"), "--json");
  json_t *value = parse_out();
  assert_int_equal(member(json_object_get(value, "counts"), "slower"), 1);
  assert_int_equal(json_array_size(json_object_get(value, "rows")), CASES);
  json_decref(value);
  expect_run(1, "compare", in_folder("r.db"), "--markdown", "-");
  expect_out("1 of 6 cases is slower");
  expect_out("|");
  expect_run(1, "compare", in_folder("r.db"), "--junit", in_folder("j.xml"), "--html", in_folder("p.html"));
  expect_out("they alternated"); /* the table is printed all the same */
  char *junit = read_file(in_folder("j.xml")), *html = read_file(in_folder("p.html"));
  assert_non_null(strstr(junit, "<testsuite"));
  assert_non_null(strstr(html, "</html>"));
  free(junit);
  free(html);
}

TEST(refuses_reports_that_cannot_be_written) {
  save_pair(1.0);
  expect_run(2, "compare", in_folder("r.db"), "--html", in_folder("nowhere/p.html"));
  expect_error("cannot write");
  expect_run(2, "compare", in_folder("r.db"), "--html", in_folder("r.db")); /* it stays as it is */
  expect_error("is a database, which the report would overwrite");
  expect_run(2, "compare", in_folder("r.db"), "--json", "--markdown", "-");
  expect_error("should be at most one");
  if (access("/dev/full", W_OK) == 0) {
    expect_run(2, "compare", in_folder("r.db"), "--junit", "/dev/full");
    expect_error("cannot write /dev/full");
  }
}

/* --- refused --- */

TEST(refuses_wrong_usage) {
  save_pair(1.0);
  expect_run(2, "compare");
  expect_error("nothing to compare");
  expect_run(2, "compare", "a", "b", "c");
  expect_error("unexpected argument \"c\"; compare takes BASE and HEAD");
  expect_run(2, "compare", in_folder("r.db"), "--threshold", "-1");
  expect_error("--threshold is \"-1\"; should be a percentage");
  expect_run(2, "compare", in_folder("r.db"), "--threshold", "nan");
  expect_run(2, "compare", in_folder("r.db"), "--alpha", "0");
  expect_error("--alpha is \"0\"; should be a probability");
  expect_run(2, "compare", in_folder("r.db"), "--alpha", "0.1x");
}

TEST(refuses_other_machines) {
  plan other = usual;
  other.file = "o.db";
  other.fingerprint = "{\"cpu\": \"two\\u001b[31m\"}";
  (void)save(usual);
  (void)save(other);
  expect_run(2, "compare", in_folder("r.db"), in_folder("o.db"));
  expect_error("--allow-different");
  expect_error("(cpu: one, now two");
  assert_null(strchr(err_text, '\033'));
  other.file = "p.db";
  other.fingerprint = "{\"cpu\": \"two\", \"cpus\": 4, \"libraries\": []}";
  (void)save(other);
  expect_run(2, "compare", in_folder("r.db"), in_folder("p.db"));
  expect_error("(cpu: one, now two; cpus: unknown, now 4)"); /* the device's of one side alone are none */
  assert_null(strstr(err_text, "\\x0a"));
  expect_run(0, "compare", in_folder("r.db"), in_folder("p.db"), "--allow-different", "--markdown", "-");
  expect_out("cpu&#58; one, now two; cpus&#58; unknown, now 4\n");
  expect_run(0, "compare", in_folder("r.db"), in_folder("o.db"), "--allow-different");
  expect_out("differs: cpu: one, now two");
  assert_null(strchr(out_text, '\033'));
}

TEST(refuses_no_common_case) {
  gate_file *file = NULL;
  gate_run run = {.suite = text("made"),
                  .label = text(""),
                  .revision = text(""),
                  .fingerprint = text(usual.fingerprint),
                  .command = text(""),
                  .started = 1};
  (void)save(usual);
  fine(gate_file_open(&file, in_folder("o.db"), true));
  fine(gate_file_begin(file, &run));
  fine(gate_file_end(file, run.id, GATE_RUN_COMPLETE));
  gate_file_close(file);
  expect_run(2, "compare", in_folder("r.db"), in_folder("o.db"));
  expect_error("the head has no cases");
}

TEST(refuses_what_is_no_result_file) {
  /* A file of no bytes is called empty on either side, whatever the other one is. */
  write_file(in_folder("empty"), "");
  save_pair(1.0);
  static const char *const others[] = {"r.db", "empty", "other.json"};
  for (int i = 0; i < 3; i++)
    for (int turned = 0; turned < 2; turned++) {
      char empty[128], other[128];
      snprintf(empty, sizeof empty, "%s%s", in_folder("empty"), i == 0 ? ":latest" : "");
      snprintf(other, sizeof other, "%s", in_folder(others[i]));
      expect_run(2, "compare", turned ? other : empty, turned ? empty : other);
      expect_error(
          " is empty; should be a result file of `attune bench --save', JSON of Google Benchmark or Criterion, or "
          "a tuning database");
    }
  expect_run(2, "compare", in_folder("empty"));
  expect_error("is empty; should be a result file of");
  (void)save(usual);
  write_file(in_folder("text"), "not a database");
  expect_run(2, "compare", in_folder("none.db"), in_folder("r.db"));
  expect_error("none.db");
  expect_run(2, "compare", in_folder("r.db"), in_folder("text"));
  expect_error("text");
  assert_int_equal(truncate(in_folder("r.db"), 5000), 0);
  expect_run(2, "compare", in_folder("r.db"), in_folder("r.db"));
  assert_string_equal(out_text, "");
}

/* A name that a terminal would obey is shown, not obeyed. */
TEST(names_are_made_harmless) {
  plan head = usual;
  head.first = "evil\xc2\x9b"
               "31m";
  plan base = head;
  head.pair = save(base);
  (void)save(head);
  expect_run(0, "compare", in_folder("r.db"));
  assert_null(strstr(out_text, "\xc2\x9b"));
}

/* --- tuning databases --- */

static void store_winner(const char *file, const char *fingerprint, const char *problem, double ns) {
  at_store *store = NULL;
  attune_decision d;
  memset(&d, 0, sizeof d);
  snprintf(d.problem, sizeof d.problem, "%s", problem);
  snprintf(d.device, sizeof d.device, "host");
  snprintf(d.implementation, sizeof d.implementation, "reference");
  snprintf(d.default_implementation, sizeof d.default_implementation, "reference");
  snprintf(d.measure, sizeof d.measure, "hot");
  d.implementation_version = 1;
  d.time_ns = ns;
  d.default_time_ns = ns * 2;
  d.spread = 0.004;
  d.placement_spread = 0.001;
  d.samples = 40;
  d.candidates = 2;
  d.complete = 1;
  d.tuned_at = 1700000000;
  OK(at_store_open(&store, in_folder(file), AT_STORE_READ_WRITE));
  OK(at_store_put(store, fingerprint, "family", &d, NULL, 0, 1000));
  at_store_close(store);
}

static void store_winners(const char *file, const char *fingerprint, double factor) {
  char problem[64];
  for (int i = 0; i < CASES; i++) {
    snprintf(problem, sizeof problem, "gemm f32 nn %dx8x8 strict", 8 * (i + 1));
    store_winner(file, fingerprint, problem, 1000.0 * (i + 1) * (i ? 1.0 : factor));
  }
}

TEST(compares_tuning_databases) {
  store_winners("old.db", "A GPU; driver 1; attune 1", 1.0);
  store_winners("new.db", "A GPU; driver 2; attune 1", 1.06);
  expect_run(1, "compare", in_folder("old.db"), in_folder("new.db"));
  expect_out("gemm f32 nn 8x8x8 strict");
  expect_out("+6.0 %");
  expect_out("1 of 6 cases is slower");
  expect_out("driver 1; attune 1, now A GPU; driver 2");
  expect_run(0, "compare", in_folder("new.db"), in_folder("old.db"));
  expect_out("faster");
  expect_run(0, "compare", in_folder("old.db"), in_folder("old.db"));
  expect_out("6 same");
  expect_run(1, "compare", in_folder("old.db"), in_folder("new.db"), "--json");
  json_decref(parse_out());
  expect_run(1, "compare", in_folder("old.db"), in_folder("new.db"), "--html", in_folder("p.html"), "--markdown", "-");
  expect_out("gemm f32 nn 8x8x8 strict");
}

/* Each number of CPU threads has its winners. */
TEST(numbers_of_threads_are_compared_apart) {
  store_winners("two.db", "A CPU; attune 1; with threads 2", 1.0);
  store_winners("both.db", "A CPU; attune 1; with threads 2", 1.0);
  store_winners("both.db", "A CPU; attune 1; with threads 1", 2.0);
  expect_run(0, "compare", in_folder("two.db"), in_folder("both.db"));
  expect_out("gemm f32 nn 8x8x8 strict, 2 CPU threads");
  expect_out("gemm f32 nn 8x8x8 strict, 1 CPU thread");
  expect_out("6 same");
  if (strstr(out_text, "+100.0 %")) fail_msg("1 thread is compared with 2: %s", out_text);
  store_winners("one.db", "A CPU; attune 1; with threads 1", 2.0);
  expect_run(2, "compare", in_folder("two.db"), in_folder("one.db"));
  expect_error("number of CPU threads");
}

TEST(other_devices_winners_are_not_compared_unasked) {
  store_winners("old.db", "A GPU; driver 1; attune 1", 1.0);
  store_winners("new.db", "Another GPU; driver 1; attune 1", 1.0);
  expect_run(2, "compare", in_folder("old.db"), in_folder("new.db"));
  expect_error("--allow-different");
  expect_run(0, "compare", in_folder("old.db"), in_folder("new.db"), "--allow-different");
}

TEST(a_database_is_compared_with_a_database) {
  (void)save(usual);
  store_winners("old.db", "A GPU; driver 1; attune 1", 1.0);
  expect_run(2, "compare", in_folder("old.db"), in_folder("r.db"));
  expect_error("old.db is a tuning database");
  expect_run(2, "compare", in_folder("r.db"), in_folder("old.db"));
  expect_error("old.db is a tuning database");
  expect_run(2, "compare", in_folder("old.db"));
  expect_error("name a second one");
  expect_run(2, "show", "--db", in_folder("r.db"));
  expect_error(
      "r.db is a result file of attune bench, not a tuning database: attune compare and attune history read it");
  expect_run(2, "tune", in_folder("old.db"), "--db", ":memory:", "--device", "host");
  expect_error("old.db is a tuning database; should be a workload: CSV text with a problem in each row");
  expect_run(2, "tune", in_folder("r.db"), "--db", ":memory:", "--device", "host");
  expect_error("r.db is a result file of attune bench; should be a workload");
}

/* --- history --- */

static void save_history(void) {
  for (int i = 0; i < 16; i++) {
    plan p = with_factor(i < 9 ? 1.0 : 1.2);
    p.started = 1000 + 100 * i;
    p.rounds = 2;
    (void)save(p);
  }
}

TEST(draws_a_history) {
  save_history();
  expect_run(0, "history", "case/0", "--results", in_folder("r.db"));
  expect_out("case/0");
  expect_out("+20.");
  expect_run(0, "history", "case/0", "--results", in_folder("r.db"), "--json");
  json_t *value = parse_out();
  const json_t *changes = json_object_get(value, "changes");
  assert_int_equal(json_array_size(json_object_get(value, "points")), 16);
  assert_int_equal(json_array_size(changes), 1);
  json_decref(value);
}

TEST(refuses_histories_that_are_none) {
  save_history();
  expect_run(2, "history", "--results", in_folder("r.db"));
  expect_error("no CASE");
  expect_run(2, "history", "case/0");
  expect_error("no --results");
  expect_run(2, "history", "a", "b", "--results", in_folder("r.db"));
  expect_error("unexpected argument \"b\"; history takes one CASE");
  expect_run(2, "history", "nothing", "--results", in_folder("r.db"));
  expect_error("has no case \"nothing\"");
  expect_run(2, "history", "case", "--results", in_folder("r.db"));
  expect_error("part of the names of 6 cases");
  expect_run(2, "history", "case/0", "--results", in_folder("none.db"));
  expect_error("none.db");
}

/* In memory where that is possible: each visit of a made run is a transaction. */
static int set_up_in_memory(void **state) {
  const char place[] = "/dev/shm/attune-cli-XXXXXX";
  if (access("/dev/shm", W_OK | X_OK) == 0) memcpy(folder, place, sizeof place);
  return set_up(state);
}

/* --- the table of false alarms, from the parts of a campaign --- */

#ifdef AT_RATES
static int rates(const char *words, char *out, size_t size) {
  char command[1024];
  snprintf(command, sizeof command, AT_RATES " %s 2>&1", words);
  FILE *stream = popen(command, "r");
  assert_non_null(stream);
  out[fread(out, 1, size - 1, stream)] = '\0';
  const int status = pclose(stream);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void save_part(const char *name, int64_t started, int rounds, double factor, const char *label) {
  plan base = usual, head = with_factor(factor);
  base.file = head.file = name;
  base.started = head.started = started;
  base.rounds = head.rounds = rounds;
  head.label = label;
  head.pair = save(base);
  (void)save(head);
}

TEST(sums_the_parts_of_a_campaign) {
  char words[512], text_out[8192];
  save_part("a.db", 1000, ROUNDS, 1.0, "");
  save_part("a.db", 2000, ROUNDS, 1.1, "");
  save_part("b.db", 3000, 4, 1.0, "");
  save_part("b.db", 4000, ROUNDS, 1.1, "slower:case/0");
  snprintf(words, sizeof words, "--slower 5 %s %s", in_folder("a.db"), in_folder("b.db"));
  assert_int_equal(rates(words, text_out, sizeof text_out), 0);
  const char *const lines[] = {"3 comparisons of a build with itself, 18 cases in all",
                               "1 of all comparisons had too few rounds for any verdict",
                               "| attune | 1 of 3 (33.3 %) | 1 (",
                               " 1 of 1 |",
                               "a.db: 2 comparisons\n",
                               "b.db: 2 comparisons\n"};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    if (!strstr(text_out, lines[i])) fail_msg("no \"%s\" in:\n%s", lines[i], text_out);
  snprintf(words, sizeof words, "%s %s", in_folder("a.db"), in_folder("a.db"));
  assert_int_equal(rates(words, text_out, sizeof text_out), 2);
  if (!strstr(text_out, "a.db: run 2 is also in an earlier file; name each comparison once")) fail_msg("%s", text_out);
  assert_int_equal(rates("", text_out, sizeof text_out), 2);
}
#endif

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, set_up_in_memory, tear_down);
}
