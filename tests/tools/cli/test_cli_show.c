/* SPDX-License-Identifier: Apache-2.0
 * test_cli_show.c: `attune show` of winners, of a workload and of what was recorded: cut so that rows differ, in CSV,
 * with sums, and with what noise leaves of a speedup. */
#include "tests/tools/cli/cli_terminal.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>
#include <jansson.h>

#include "tests/support/store_open.h"
#include "tuning/store/fingerprint.h"

static char folder[] = "/tmp/attune-test-show-XXXXXX";
static char database[64], workload[64];

/* Lines of the output that hold `what`, and whether two of them are equal up to their column of times. */
static int rows_with(const char *what, bool *alike) {
  enum { ROWS = 600 };
  static char *rows[ROWS];
  int count = 0;
  char *rest = NULL;
  *alike = false;
  for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
    if (!strstr(line, what)) continue;
    for (int i = 0; i < count; i++)
      if (strcmp(rows[i], line) == 0) {
        print_message("twice: %s\n", line);
        *alike = true;
      }
    assert_in_range(count, 0, ROWS - 1);
    rows[count++] = line;
  }
  return count;
}

/* Problems that differ at the beginning, in the middle, at the end, and in several places. */
static void write_problems(void) {
  FILE *file = fopen(workload, "w");
  assert_non_null(file);
  fputs("problem\n", file);
  for (int i = 0; i < 60; i++)
    fprintf(file, "gemm f32 nn %dx2x3 strict lda=1000000 ldb=1000000 ldd=1000000 align=4 workspace=100000\n", 1 + i);
  for (int i = 0; i < 60; i++)
    fprintf(file, "gemm f32 nn 1x2x3 strict lda=%d ldb=1000000 ldd=1000000 align=4 workspace=100000\n", 1000 + i);
  for (int i = 0; i < 60; i++)
    fprintf(file, "gemm f32 nn 1x2x3 strict lda=1000000 ldb=%d ldd=1000000 align=4 workspace=100000\n", 1000 + i);
  for (int i = 0; i < 60; i++)
    fprintf(file, "gemm f32 nn 1x2x3 strict lda=1000000 ldb=1000000 ldd=1000000 align=4 workspace=%d\n", 100001 + i);
  for (int i = 0; i < 60; i++)
    fprintf(file, "gemm f32 nn %dx2x3 strict lda=1000000 ldb=%d ldd=1000000 align=4 workspace=%d\n", 1 + i % 4,
            2000 + i / 20, 200000 + i % 20);
  assert_int_equal(fclose(file), 0);
}

TEST(rows_never_look_alike) {
  static const unsigned short widths[] = {60, 72, 80, 100, 120, 200};
  static const char *const locales[] = {"C.UTF-8", "C"};
  write_problems();
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    for (size_t k = 0; k < 2; k++) {
      char line[128];
      bool alike = false;
      snprintf(line, sizeof line, "LC_ALL=%s $A show $W --db :memory: --device host", locales[k]);
      terminal(widths[i], line);
      assert_int_equal(code, 0);
      if (longest_line() > widths[i]) fail_msg("a line of %d in %d columns", longest_line(), widths[i]);
      assert_int_equal(rows_with("not tuned", &alike), 301); /* and the sum */
      if (alike) fail_msg("two rows look alike in %d columns", widths[i]);
    }
}

/* Only the middle goes, or what all problems end with; a name is not cut where there is room. */
TEST(cuts_keep_both_ends) {
  write_file(workload, "name,problem\n"
                       "first,gemm f32 nn 1000x1000x1000 strict lda=1001 ldb=1002 ldd=1003 align=4\n"
                       "other,gemm f64 tt 2000x2000x2000 strict lda=2001 ldb=2002 ldd=2003 align=8\n");
  terminal(80, "LC_ALL=C $A show $W --db :memory: --device host");
  expect("gemm f32 nn");
  expect("gemm f64 tt");
  expect("=4 ");
  expect("=8 ");
  expect("first  ");
  write_file(workload, "name,problem\n"
                       "a quite long name,gemm f32 nn 1000x1000x1000 strict\n"
                       "another long name,gemm f64 tt 2000x2000x2000 strict\n");
  terminal(75, "LC_ALL=C $A show $W --db :memory: --device host");
  expect("gemm f32 nn 1000x1000x1000~ ");
  expect("gemm f64 tt 2000x2000x2000~ ");
}

/* The sizes of a problem are never cut in 60 columns and more, whatever else is; where that makes rows alike, they are
 * told apart by the words before. */
TEST(cuts_leave_the_sizes) {
  static const char *const sizes[] = {" 16384x16384x1024 ", " 64x64x64x128 ", " 1x131072x7 "};
  write_file(workload, "name,problem\n"
                       "a,gemm bf16 nn 16384x16384x1024 strict lda=20001 ldb=20002 ldd=20003 align=4\n"
                       "b,gemm f32 tn 64x64x64x128 equivalent workspace=1000000\n"
                       "c,gemm f32 nt 1x131072x7 strict row-major\n");
  for (unsigned short width = 60; width < 140; width += 4) {
    terminal(width, "LC_ALL=C $A show $W --db :memory: --device host");
    for (char *c = text; *c; c++)
      if (*c == '~') *c = ' ';
    for (size_t i = 0; i < 3; i++)
      if (!strstr(text, sizes[i])) fail_msg("%d columns lack %s: %s", (int)width, sizes[i], text);
  }
  write_file(workload, "name,problem\n"
                       "a,gemm bf16 nn 16384x16384x1024 strict\n"
                       "b,gemm bf16 nt 16384x16384x1024 strict\n");
  terminal(60, "LC_ALL=C $A show $W --db :memory: --device host");
  expect(" nn 16384x16384x1024");
  expect(" nt 16384x16384x1024");
}

/* COLUMNS says what is wanted; a pipe has all, the long text last. */
TEST(widths_are_obeyed) {
#define LONG "gemm f32 nn 1x2x3 strict lda=1000000 ldb=1000000 ldd=1000000 align=4 workspace=100000"
  write_file(workload, "name,problem\nx," LONG "1\ny," LONG "2\n");
  terminal(80, "COLUMNS=200 $A show $W --db :memory: --device host");
  assert_in_range(longest_line(), 81, 200);
  terminal(200, "COLUMNS=60 $A show $W --db :memory: --device host");
  assert_in_range(longest_line(), 1, 60);
  terminal(80, "COLUMNS=some $A show $W --db :memory: --device host");
  assert_in_range(longest_line(), 1, 80);
  shell("COLUMNS=40 $A show $W --db :memory: --device host");
  expect(" " LONG "1\n");
  expect(" " LONG "2\n");
  expect("problem\n");
  terminal(80, "$A show $W --db :memory: --device host --wide");
  expect(" " LONG "1\r\n");
#undef LONG
}

/* A winner of `size` that took `time_ns`, where the default took 1000. */
static int other_threads; /* winners are put as if measured with so many; 0: with those that are here */

static void put_winner(int size, double time_ns, double spread, int unsure) {
  at_store *store = NULL;
  attune_device *host = NULL;
  char fingerprint[AT_FINGERPRINT_CHARS];
  attune_decision winner = {.implementation = "host_reference",
                            .implementation_version = 1,
                            .time_ns = time_ns,
                            .spread = spread,
                            .placement_spread = spread / 10,
                            .samples = 25,
                            .default_implementation = "host_cblas",
                            .default_time_ns = 1000,
                            .measure = "hot,eager",
                            .complete = 1,
                            .unsure = unsure,
                            .tuned_at = 1700000000};
  snprintf(winner.problem, sizeof winner.problem, "gemm f32 nn %dx%dx%d strict", size, size, size);
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(attune_device_fingerprint(host, fingerprint, sizeof fingerprint), ATTUNE_OK);
  if (other_threads) {
    size_t at = at_fingerprint_device_chars(fingerprint);
    assert_true(at_append(fingerprint, sizeof fingerprint, &at, "; with threads %d; host_reference 1", other_threads));
  }
  assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
  assert_int_equal(at_store_put(store, fingerprint, "gemm f32 nn strict", &winner, NULL, 0, 1000), ATTUNE_OK);
  at_store_close(store);
}

/* A program's calls in mode record. */
static void record(int size, int calls) {
  attune_tuner_options options = {.database = database, .mode = ATTUNE_MODE_RECORD};
  attune_tuner *tuner = NULL;
  attune_device *host = NULL;
  _Alignas(128) static float a[64 * 64], b[64 * 64], d[64 * 64];
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = size, .n = size, .k = size};
  const attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = d};
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(attune_tuner_create(&tuner, &options), ATTUNE_OK);
  for (int i = 0; i < calls; i++)
    assert_int_equal(attune_gemm(tuner, attune_stream_default(host), &problem, &operands), ATTUNE_OK);
  attune_tuner_destroy(tuner);
}

static bool elsewhere(void) {
  return getenv("AT_UNDER_VALGRIND") != NULL; /* whose CPU is another than the command's */
}

/* 2x and 8x are 4x in the geometric mean. Called 30 times and once they are (30 + 1) / (15 + 1/8). */
TEST(sums_are_right) {
  if (elsewhere()) skip();
  put_winner(20, 500, 0.01, 0);
  put_winner(30, 125, 0.01, 0);
  shell("$A show --db $D");
  expect("2 problems: geometric mean 4.00x\n");
  expect_none("weighted");
  expect_none("calls");
  write_file(workload, "name,m,n,k,dtype,count\nmy layer,20,20,20,f32,30\nother,30,30,30,f32,1\nnew,9,9,9,f32,4\n");
  shell("$A show $W --db $D --device host");
  expect("3 problems, 2 tuned: geometric mean 4.00x, weighted by calls x time 2.05x\n");
  expect("my layer");
  expect("not tuned");
  expect("1 not tuned: `attune tune FILE' measures it\n");
  shell("cd ${W%/*} && $A show workload.csv --db $D --device host");
  expect("1 not tuned: `attune tune workload.csv' measures it\n");
  record(20, 5);
  record(9, 3);
  shell("$A show --db $D");
  expect("2 problems: geometric mean 4.00x, weighted by calls x time 2.00x\n(calls are known for 1 of the 2)\n");
  expect("calls");
  shell("$A show --recorded --db $D --device host --json");
  json_error_t error;
  json_t *all = json_loads(text, 0, &error);
  assert_non_null(all);
  assert_int_equal(json_array_size(all), 2);
  for (size_t i = 0; i < 2; i++) {
    const json_t *row = json_array_get(all, i);
    const bool tuned = json_is_true(json_object_get(row, "tuned"));
    assert_int_equal(json_integer_value(json_object_get(row, "calls")), tuned ? 5 : 3);
    assert_true(json_number_value(json_object_get(row, "call_ns")) > 0);
  }
  json_decref(all);
  shell("$A show recorded --db $D");
  expect("2 problems, 1 tuned: geometric mean 2.00x, weighted by calls x time 2.00x\n");
  expect("gemm f32 nn 9x9x9 strict");
  expect("1 not tuned, with about ");
  expect("`attune tune recorded' measures it\n");
}

/* Differences are named; only further ones are "more". */
TEST(winners_of_other_threads_are_called_so) {
  if (elsewhere()) skip();
  other_threads = 4000;
  put_winner(20, 500, 0.01, 0);
  put_winner(30, 500, 0.01, 0);
  other_threads = 0;
  shell("$A show --db $D");
  expect("2 measured with other numbers of CPU threads: --all lists them\n");
  expect_none("machines");
  put_winner(20, 500, 0.01, 0);
  shell("$A show --db $D");
  expect("2 more measured with other numbers of CPU threads: --all lists them\n");
}

TEST(problems_are_as_they_were_written) {
  write_file(workload, "layout,transb,m,n,k,dtype\nrow-major,t,10,20,30,f32\n");
  shell("$A show $W --db :memory: --device host");
  expect("gemm f32 nt 10x20x30 strict row-major");
  shell("$A show $W --db :memory: --device host --json");
  expect("\"gemm f32 tn 20x10x30 strict\"");
  expect("\"gemm f32 nt 10x20x30 strict row-major\"");
}

/* The median of 25 samples with a spread of 10 % varies by 3.7 %, places by 1 %: three standard errors of the ratio are
 * 16.3 %, and 4x is 3.44x at least. */
TEST(noise_leaves_a_bound) {
  if (elsewhere()) skip();
  put_winner(20, 250, 0.10, 1);
  put_winner(30, 990, 0.10, 1); /* 1.01x: nothing is left */
  put_winner(40, 40, 0.10, 1);  /* 25x is 21.5x at least */
  put_winner(50, 250, 0, 1);    /* how much it varies is not known */
  shell("$A show --db $D");
  expect("  > 3.4x  ?");
  expect("   > 21x  ?");
  expect("       -  ?");
  expect("? 4 unsure (noise or other work), counted as 1x:\n  `attune tune FILE' measures them again\n");
  expect("4 problems: geometric mean 1.00x\n");
  shell("$A show --db $D --json");
  json_error_t error;
  json_t *all = json_loads(text, 0, &error);
  assert_non_null(all);
  const double bound = json_number_value(json_object_get(json_array_get(all, 0), "speedup_at_least"));
  assert_true(bound > 3.43 && bound < 3.45);
  assert_true(json_is_null(json_object_get(json_array_get(all, 1), "speedup_at_least")));
  assert_true(json_is_null(json_object_get(json_array_get(all, 3), "speedup_at_least")));
  json_decref(all);
}

/* Red for slower, green for faster, on a terminal that has colours and a user who wants them. */
TEST(slower_is_red) {
  if (elsewhere()) skip();
  put_winner(20, 500, 0.01, 0);
  put_winner(30, 1250, 0.01, 0);
  terminal_called("xterm", 120, "$A show --db $D");
  expect("\033[31m  0.80x\033[0m");
  expect("\033[32m  2.00x\033[0m");
  terminal_called("xterm", 120, "NO_COLOR=1 $A show --db $D");
  expect_none("\033[3");
  terminal(120, "$A show --db $D");
  expect_none("\033");
  terminal_called("xterm", 120, "$A show --db $D | cat");
  expect_none("\033");
}

/* An empty list is no error, of winners and of what was recorded. */
TEST(nothing_to_show_is_no_error) {
  static const char *const rest[] = {"", "--json", "--csv"};
  if (elsewhere()) skip();
  put_winner(20, 500, 0.01, 0);
  for (size_t i = 0; i < 3; i++)
    for (int recorded = 0; recorded < 2; recorded++) {
      char line[128];
      snprintf(line, sizeof line, "$A show --db %s --device host %s", recorded ? "$D --recorded" : ":memory:", rest[i]);
      shell(line);
      assert_int_equal(code, 0);
      expect(i == 1 ? "[]\n" : i == 2 ? "name,problem," : recorded ? "no problems recorded: " : "no winners stored: ");
    }
}

/* As a spreadsheet reads it: a head, a line for each row, quoted where needed. */
TEST(csv_is_read_back) {
  if (elsewhere()) skip();
  put_winner(20, 500, 0.01, 0);
  write_file(workload,
             "name,m,n,k,dtype,count\n\"a, \"\"b\"\"\",20,20,20,f32,30\n#c,9,9,9,f32,1\n\" d \",8,8,8,f32,1\n");
  shell(
      "$A show $W --db $D --device host --csv >$D.csv && python3 -c '\n"
      "import csv, sys\n"
      "rows = list(csv.DictReader(open(sys.argv[1], newline=\"\")))\n"
      "print(len(rows), [r[\"name\"] for r in rows], rows[0][\"problem\"], rows[0][\"calls\"], rows[0][\"time_ns\"],\n"
      "      rows[0][\"speedup\"], rows[1][\"tuned\"], repr(rows[1][\"time_ns\"]))' $D.csv; rm $D.csv");
  assert_string_equal(text, "2 ['a, \"b\"', ' d '] gemm f32 nn 20x20x20 strict 30 500 2 0 ''\n");
  shell("$A show --csv --json --db $D 2>&1");
  assert_int_equal(code, 2);
  expect("--csv and --json are both given");
  shell("$A show --csv --db :memory:");
  assert_int_equal(code, 0);
  expect("name,problem,written,devices,calls,");
}

TEST(wrong_usage_is_refused) {
  write_file(workload, "m,n,k,dtype\n8,8,8,f32\n");
  static const char *const wrong[] = {"$W $W", "--recorded $W", "--recorded --all", "--all $W", "/nonexistent.csv"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char line[128];
    snprintf(line, sizeof line, "$A show --db :memory: %s 2>&1", wrong[i]);
    shell(line);
    if (code != 2) fail_msg("%s ends with %d: %s", line, code, text);
  }
}

FIXTURE(fresh) {
  unlink(database);
  return 0;
}

FIXTURE(make_folder) {
  if (!mkdtemp(folder)) return -1;
  snprintf(database, sizeof database, "%s/tuning.db", folder);
  snprintf(workload, sizeof workload, "%s/workload.csv", folder);
  unsetenv("COLUMNS");
  return setenv("A", AT_COMMAND, 1) | setenv("D", database, 1) | setenv("W", workload, 1);
}

FIXTURE(remove_folder) {
  shell("rm -r \"${D%/*}\"");
  return code;
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, make_folder, remove_folder);
}
