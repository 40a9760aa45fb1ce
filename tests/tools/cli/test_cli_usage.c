/* SPDX-License-Identifier: Apache-2.0
 * test_cli_usage.c: the command as a user meets it who asks for help, errs, or asks what is here. */
#include "tests/support/cli_fixture.h"

#include <stdbool.h>
#include <sys/stat.h>

TEST(helps) {
  expect_run(0, "--help");
  expect_out("explain PROBLEM");
  for (const char *line = strstr(out_text, "Commands:\n") + 10; *line != '\n'; line = strchr(line, '\n') + 1)
    if (strncmp(line, "  ", 2) != 0) fail_msg("a command's line is broken: %.40s", line);
  expect_run(0, "--version");
  expect_out("attune ");
  const char *const commands[] = {"devices", "tune", "show", "explain"};
  for (int i = 0; i < 4; i++) {
    expect_run(0, commands[i], "--help");
    expect_out("--json");
    expect_out(commands[i]);
    assert_string_equal(err_text, "");
    expect_run(2, commands[i], "--nonsense");
    expect_error("--nonsense");
    assert_string_equal(out_text, "");
  }
}

/* -h is --help, of the command and of every one of its commands. */
TEST(helps_by_a_letter) {
  const char *const commands[] = {NULL, "devices", "tune", "show", "explain", "verify", "completion"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    const char *const whole[] = {commands[i] ? commands[i] : "--help", "--help", NULL};
    const char *const letter[] = {commands[i] ? commands[i] : "-h", commands[i] ? "-h" : NULL, NULL};
    expect_code(0, start(whole, out_path));
    char *text = strdup(out_text);
    assert_non_null(text);
    expect_code(0, start(letter, out_path));
    assert_string_equal(out_text, text);
    assert_string_equal(err_text, "");
    free(text);
    expect_out("-h ");
  }
}

TEST(refuses_wrong_usage) {
  expect_code(2, start((const char *const[]){NULL}, out_path));
  expect_error("no command");
  expect_run(2, "fly");
  expect_error("there is no command \"fly\"");
  expect_run(2, "tune");
  expect_error("no WORKLOAD");
  expect_run(2, "tune", workload, workload);
  expect_run(2, "tune", "--budget", "-1", workload);
  expect_error("--budget is \"-1\"; should be a number of seconds above 0, at most 1000000000");
  expect_run(2, "tune", "--problem-budget", "1s", workload);
  expect_run(2, "show", "more");
  expect_run(2, "devices", "more");
  expect_run(2, "explain");
  expect_error("no PROBLEM");
  expect_run(2, "explain", "gemm f99 nn 8x8x8 strict", "--db", ":memory:");
  expect_run(2, "explain", "--device", "toaster", "gemm f32 nn 8x8x8 strict");
}

/* `attune help` and `attune version` say what the options of these names say. */
TEST(helps_as_a_command) {
  static const char *const commands[] = {NULL,   "devices", "tune",    "show",       "explain", "verify", "warm",
                                         "eval", "bench",   "compare", "completion", "history", "help",   "version"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    const char *const option[] = {commands[i] ? commands[i] : "--help", commands[i] ? "--help" : NULL, NULL};
    const char *const command[] = {"help", commands[i], NULL};
    expect_code(0, start(option, out_path));
    char *text = strdup(out_text);
    assert_non_null(text);
    expect_code(0, start(command, out_path));
    assert_string_equal(out_text, text);
    assert_string_equal(err_text, "");
    free(text);
  }
  expect_run(0, "--version");
  char *text = strdup(out_text);
  expect_run(0, "version");
  assert_string_equal(out_text, text);
  free(text);
  expect_run(2, "version", "now");
  expect_run(2, "help", "tune", "show");
  expect_run(2, "help", "tnue");
  expect_error("did you mean tune?");
}

/* A word similar to a command or an option gets a suggestion, others do not. */
TEST(suggests_what_may_be_meant) {
  static const char *const cases[][4] = {
      {"tnue", NULL, NULL, "there is no command \"tnue\"; did you mean tune?"},
      {"dev", NULL, NULL, "did you mean devices?"},
      {"explian", NULL, NULL, "did you mean explain?"},
      {"compair", NULL, NULL, "did you mean compare?"},
      {"list", NULL, NULL, "did you mean show?"},
      {"fly", NULL, NULL, "should be devices, tune"},
      {"show", "--al", "--jsno", "there is no option --jsno; did you mean --json?"},
      {"tune", "--bugdet=5", NULL, "there is no option --bugdet; did you mean --budget?"},
      {"tune", "--db", "--bugdet", NULL}, /* a value, not an option */
      {"show", "--force", NULL, "show has no option --force; tune has"},
      {"show", "--nonsense", NULL, "there is no option --nonsense"},
      {"--db", "x", "show", "--db comes before the command; should come after it: attune COMMAND --db"},
      {"--hepl", NULL, NULL, "did you mean --help?"},
      {"show", "--hlep", NULL, "did you mean --help?"},
      {"tune", "-b", "--bugdet", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *const words[] = {cases[i][0], cases[i][1], cases[i][1] ? cases[i][2] : NULL, NULL};
    expect_code(2, start(words, out_path));
    if (cases[i][3])
      expect_error(cases[i][3]);
    else
      assert_null(strstr(err_text, "did you mean"));
    assert_string_equal(out_text, "");
  }
}

/* Every option with a number takes the same form of numbers, and says its unit and its bounds. */
TEST(numbers_are_read_alike) {
  static const struct {
    const char *words[4], *option, *should;
    bool whole;
  } options[] = {{{"tune", "x.csv"}, "--budget", "a number of seconds above 0, at most 1000000000", false},
                 {{"tune", "x.csv"}, "--problem-budget", "a number of milliseconds above 0, at most 1000000000", false},
                 {{"verify"}, "--budget", "a number of seconds above 0, at most 1000000000", false},
                 {{"verify"}, "--sample", "a whole number, 0 to 1000000, 0 for all", true},
                 {{"eval", "a", "--shape=8"}, "--budget", "a number of seconds above 0, at most 1000000000", false},
                 {{"eval", "a", "--shape=8"}, "--sample", "a whole number, 0 to 9223372036854775807, 0 for all", true},
                 {{"eval", "a", "--shape=8"}, "--print", "a whole number, 0 to 1000000", true},
                 {{"eval", "a", "--shape=8"}, "--seed", "a whole number, 0 to 18446744073709551615", true},
                 {{"devices", "--watch"}, "--interval", "a number of seconds above 0, at most 86400", false},
                 {{"devices", "--watch"}, "--rounds", "a whole number, 1 to 1000000000", true},
                 {{"bench", "x.csv"}, "--rounds", "a whole number, 1 to 10000", true},
                 {{"bench", "x.csv"}, "--samples", "a whole number, 1 to 10000", true},
                 {{"bench", "x.csv"}, "--hang", "a number of seconds above 0, at most 1000000000", false},
                 {{"bench", "x.csv"}, "--time", "a number of seconds above 0, at most 1000000000", false},
                 {{"bench", "x.csv"}, "--alpha", "a probability, 1e-12 to 0.5", false},
                 {{"compare", "x.db"}, "--threshold", "a percentage, 0 to 1000", false}};
  static const char *const wrong[] = {"-1",  "abc", "5x",    "",    " 5", "+5", "0x10",
                                      "nan", "inf", "1e400", "1,5", "5 ", "1.5"};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong - !options[i].whole; k++) {
      char word[64], message[160];
      const char *words[6] = {NULL};
      int count = 0;
      while (options[i].words[count]) words[count] = options[i].words[count], count++;
      snprintf(word, sizeof word, "%s=%s", options[i].option, wrong[k]);
      words[count] = word;
      expect_code(2, start(words, out_path));
      snprintf(message, sizeof message, "%s is \"%s\"; should be %s", options[i].option, wrong[k], options[i].should);
      expect_error(message);
    }
}

TEST(refuses_unreadable_input) {
  expect_code(2, start_with((const char *const[]){"tune", "-", "--db", database, NULL}, out_path, NULL));
  expect_error("WORKLOAD is -, and standard input is closed; should be a pipe or a file");
  expect_run(2, "tune", folder, "--db", database);
  expect_error("is a directory");
  /* Standard input is called that, in each command that reads a workload. */
  write_file(workload, "dtype,m,n,k\nf32,4,x,4\n");
  for (int i = 0; i < 2; i++) {
    const char *const words[] = {i ? "show" : "tune", "-", "--db", ":memory:", "--device", "host", NULL};
    expect_code(2, start_with(words, out_path, workload));
    expect_error("standard input:2:7: n is \"x\"");
  }
  expect_code(2, start_with((const char *const[]){"show", "-", "--db", ":memory:", NULL}, out_path, NULL));
  expect_error("WORKLOAD is -, and standard input is closed; should be a pipe or a file");
  write_file(workload, "dtype,m,n,k\nf32,4,5,4\n");
  expect_code(0, start_with((const char *const[]){"show", "-", "--db", ":memory:", "--device", "host", NULL}, out_path,
                            workload));
  expect_out("gemm f32 nn 4x5x4 strict");
  expect_run(2, "bench", "-");
  expect_error("WORKLOAD is -, but every process reads the workload; should be a file");
  expect_run(2, "tune", "/nonexistent.csv", "--db", database);
  expect_error("/nonexistent.csv: no such file");
  assert_int_equal(access(database, F_OK), -1);
  write_file(workload, "dtype,m,n,k\nf32,4,4,4\nf32,4,x,4\n");
  expect_run(2, "tune", workload, "--db", database, "--device", "host");
  expect_error("w.csv:3:7: ");
  /* A database that is not there is not made by looking at it. */
  expect_run(2, "show", "--db", database);
  expect_run(2, "explain", "--db", database, "gemm f32 nn 8x8x8 strict");
  assert_int_equal(access(database, F_OK), -1);
}

TEST(refuses_unusable_databases) {
  write_file(database,
             "this is no database, and long enough to have a header, were it one: ............................");
  chmod(database, 0600);
  expect_run(2, "tune", workload, "--db", database, "--device", "host");
  expect_error(database);
  assert_string_equal(out_text, "");
  static const char *const readers[] = {"show", "verify", "warm"};
  for (size_t i = 0; i < 3; i++) { /* what is no database is not called a damaged one */
    expect_run(2, readers[i], "--db", database, "--device", "host");
    expect_error("is not a database; should be one made by `attune tune'");
  }
  expect_run(2, "show", workload, "--db", workload);
  expect_error("is not a database");
  expect_run(2, "explain", "--db", database, "--device", "host", "gemm f32 nn 8x8x8 strict");
  char *kept = read_file(database);
  assert_memory_equal(kept, "this is no", 10);
  free(kept);
  expect_run(2, "tune", workload, "--db", folder, "--device", "host");
}

TEST(lists_devices) {
  expect_run(0, "devices");
  expect_out("host");
  expect_out("fingerprint");
  assert_null(strchr(out_text, '\033'));
  expect_run(0, "devices", "--json");
  json_t *devices = parse_out();
  const json_t *host = json_array_get(devices, json_array_size(devices) - 1);
  assert_string_equal(json_string_value(json_object_get(host, "name")), "host");
  assert_true(member(host, "memory_bytes") > 0);
  assert_true(member(host, "processors") > 0);
  assert_non_null(json_string_value(json_object_get(host, "fingerprint")));
  json_decref(devices);
  expect_run(0, "devices", "--json", "--problem", "gemm f32 nn 8x8x8 strict");
  devices = parse_out();
  host = json_array_get(devices, json_array_size(devices) - 1);
  assert_true(json_array_size(json_object_get(host, "implementations")) > 0);
  json_decref(devices);
  expect_run(2, "devices", "--problem", "gemm");
}

TEST(devices_tells_what_is_wrong_in_the_environment) {
  static const char *const wrong[][3] = {
      {"ATTUNE_MODE", "fast", "ATTUNE_MODE is \"fast\"; should be off, cached, record or tune"},
      {"ATTUNE_THREADS", "many", "ATTUNE_THREADS is \"many\"; should be a whole number of threads"},
      {"ATTUNE_ALLOC", "expandable_segments:perhaps", "ATTUNE_ALLOC: expandable_segments is \"perhaps\""},
      {"ATTUNE_ALLOC", "colour:red", "ATTUNE_ALLOC has no key \"colour\""}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv(wrong[i][0], wrong[i][1], 1);
    expect_run(2, "devices");
    unsetenv(wrong[i][0]);
    expect_error(wrong[i][2]);
    assert_string_equal(out_text, "");
  }
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, set_up, tear_down);
}
