/* SPDX-License-Identifier: Apache-2.0
 * test_cli_bench.c: `attune bench` as a user meets it: what it times, saves, prints and refuses. Where a verdict
 * matters the times are made up by the worker. */
#include "tests/tools/cli/bench_builds.h"

#include <signal.h>
#include <time.h>

/* --- what is timed --- */

TEST(a_programs_cases) {
  expect_run(0, "bench", "--program", AT_WORKER " a=time:1500 b=time:2500000", ROUNDS);
  expect_out("case");
  expect_out("1.50 us");
  expect_out("2.50 ms");
  expect_out("0.06667"); /* GB/s of 100 bytes */
  expect_out("2 cases; 3 rounds in ");
  assert_string_equal(err_text, "");
  expect_run(0, "bench", "--program", AT_WORKER " a=time:1500 b=time:2500000", "--list");
  expect_out("a     -       hot");
  assert_null(strstr(out_text, "us"));
  expect_run(0, "bench", "--program", AT_WORKER " a=time:1500 b=time:2500", "--filter", "b", "--json", ROUNDS);
  json_t *report = parse_out();
  const json_t *cases = json_object_get(report, "cases"), *one = json_array_get(cases, 0);
  assert_int_equal(json_array_size(cases), 1);
  assert_string_equal(text_of(one, "name"), "b");
  assert_true(json_number_value(json_object_get(json_object_get(one, "head"), "time_ns")) == 2500);
  assert_int_equal(member(json_object_get(one, "head"), "visits"), 3);
  assert_int_equal(member(report, "rounds"), 3);
  json_decref(report);
}

TEST(peers_beside) {
  char path[96], text[4096] = "";
  expect_run(0, "bench", "--program", AT_WORKER " mine=time:1000 b@mine=time:1250 alone=time:5", ROUNDS);
  expect_out("beside");
  expect_out("1.250 x");
  expect_run(0, "bench", "--program", AT_WORKER " mine=time:1000 b=time:1250", ROUNDS);
  assert_null(strstr(out_text, "beside"));
  expect_run(0, "bench", "--program", AT_WORKER " mine=time:1000 b@mine=time:1250", "--json", ROUNDS);
  json_t *report = parse_out();
  const json_t *cases = json_object_get(report, "cases"), *b = json_array_get(cases, 1);
  assert_null(json_object_get(json_array_get(cases, 0), "peer_of"));
  assert_string_equal(text_of(b, "peer_of"), "mine");
  assert_true(json_number_value(json_object_get(b, "beside")) == 1.25);
  json_decref(report);
  snprintf(path, sizeof path, "%s/table.md", folder);
  expect_run(1, "bench", "--program", AT_WORKER " mine=time:1000 'a`b|c@mine=time:1250' gone=failed", "--markdown",
             path, "--label", "mine <b>", ROUNDS);
  expect_out("1.250 x"); /* the table is printed all the same */
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_true(fread(text, 1, sizeof text - 1, file) > 0);
  assert_int_equal(fclose(file), 0);
  const char *const lines[] = {
      "# mine &#60;b&#62;\n",
      "\n- cpu: `",
      "\n- command: attune bench --program ",
      "\n- date: 20",
      "\n- method: 3 rounds, each in fresh processes",
      "\n| case | device | mode | time | spread | GB/s | TFLOP/s | of roof | beside | state |\n"
      "|---|---|---|---:|---:|---:|---:|---:|---:|---|\n| `mine` | - | hot | 1.00 us | 0.0 % | 0.1 | - | - | - | ok |\n"
      "| a&#96;b&#124;c | - | hot | 1.25 us | 0.0 % | 0.08 | - | - | 1.250 x | ok |\n",
      "| `gone` | - | hot | - | - | - | - | - | - | `failed: no set-up` |\n"};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    if (!strstr(text, lines[i])) fail_msg("no \"%s\" in:\n%s", lines[i], text);
  expect_run(0, "bench", "--program", AT_WORKER " mine=time:1000", "--markdown", "-", ROUNDS);
  expect_out("| `mine` |");
  assert_null(strstr(out_text, "1 case;"));
}

TEST(problems_and_suites) {
  expect_run(0, "bench", workload, "--device", "host", "--rounds", "1", "--json");
  json_t *report = parse_out();
  const json_t *cases = json_object_get(report, "cases");
  assert_int_equal(json_array_size(cases), 3);
  for (size_t i = 0; i < 3; i++) {
    const json_t *one = json_array_get(cases, i);
    assert_string_equal(text_of(one, "device"), "host");
    assert_true(json_number_value(json_object_get(json_object_get(one, "head"), "time_ns")) > 0);
    assert_true(json_number_value(json_object_get(one, "flops")) > 0);
    const json_t *share = json_object_get(one, "of_roof"); /* not known where a cache holds what memory would bind */
    assert_true(json_is_null(share) || json_number_value(share) > 0);
  }
  json_decref(report);
  expect_run(0, "bench", workload, "--device", "host", "--cold", "--list");
  expect_out("cold");
  assert_null(strstr(out_text, "yardstick"));
  expect_run(0, "bench", "--suite", "runtime", "--device", "host", "--list");
  expect_out("runtime/");
}

TEST(the_winners_of_a_database) {
  write_file(workload, "dtype,m,n,k\nf32,64,64,64\n");
  expect_run(0, "tune", workload, "--db", database, "--device", "host", "--problem-budget", "300");
  expect_run(0, "bench", "--db", database, "--device", "host", "--rounds", "1", "--save", results);
  expect_out("gemm f32 nn 64x64x64 strict");
  gate_run run = loaded("latest");
  assert_int_equal(run.case_count, 1);
  assert_string_equal(run.suite, database);
  gate_run_free(&run);
}

TEST(commands) {
  expect_run(1, "bench", "--command", "good=/bin/true", "--command", "bad=echo no words >&2; exit 3", "--command",
             "gone=/no/such/program", ROUNDS);
  expect_out("process");
  expect_out("failed: exited with code 3; its last output: no words");
  expect_out("failed: /no/such/program could not be started: No such file or directory");
  expect_out("3 cases, 2 failed");
  expect_run(0, "bench", "--command", "good=test $((1 + 1)) = 2", "--rounds", "1");
}

/* --- the result file --- */

TEST(runs_append) {
  char host[65] = "";
  expect_run(0, "bench", "--program", AT_WORKER " a=time:1500", ROUNDS, "--save", results, "--label", "one");
  expect_out("saved in ");
  expect_out(" as run 1");
  expect_run(0, "bench", "--program", AT_WORKER " a=time:1600", ROUNDS, "--save", results);
  gate_run run = loaded("one");
  assert_int_equal(run.id, 1);
  assert_true(run.cases[0].visits[2].samples[4].ns == 1500);
  assert_true(strncmp(run.command, "attune bench --program ", 23) == 0);
  assert_true(run.started > 1700000000 && run.ended >= run.started);
  json_t *fingerprint = json_loads(run.fingerprint, 0, NULL);
  static const char *const names[] = {"cpu", "kernel", "governor", "libc", "device", "driver"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) (void)text_of(fingerprint, names[i]);
  assert_true(member(fingerprint, "cpus") > 0 && member(fingerprint, "memory") >= 0);
  assert_true(json_is_array(json_object_get(fingerprint, "libraries")));
  assert_int_equal(gethostname(host, sizeof host - 1), 0);
  if (strlen(host) > 3) assert_null(strstr(run.fingerprint, host));
  json_decref(fingerprint);
  gate_run_free(&run);
  run = loaded("latest");
  assert_int_equal(run.id, 2);
  gate_run_free(&run);
}

static void shell(const char *command) {
  if (system(command) != 0) fail_msg("failed: %s", command);
}

/* The revision is that of the folder of the build, and whether it has changes. */
TEST(the_revision) {
  char command[768];
  if (system("git --version >/dev/null 2>&1") != 0) skip(); /* then it is "", which the other tests see */
  const char *new = build("new", "a=time:1000");
  snprintf(command, sizeof command,
           "cd %s && git init -q . && git add run && git -c user.name=t -c user.email=t@example.org commit -q -m t && "
           "git rev-parse HEAD > ../head",
           new);
  shell(command);
  expect_run(0, "bench", "--program", program, "--build", new, "--rounds", "1", "--save", results);
  gate_run run = loaded("latest");
  char path[96];
  snprintf(path, sizeof path, "%s/head", folder);
  char *head = read_file(path);
  head[strcspn(head, "\n")] = '\0';
  assert_string_equal(run.revision, head);
  assert_false(run.dirty);
  gate_run_free(&run);
  head[7] = '\0';
  run = loaded(head);
  assert_int_equal(run.id, 1);
  gate_run_free(&run);
  free(head);
  build("new", "a=time:1001");
  expect_run(0, "bench", "--program", program, "--build", new, "--rounds", "1", "--save", results);
  run = loaded("latest");
  assert_true(run.dirty);
  gate_run_free(&run);
}

TEST(files_that_are_none) {
  write_file(results, "no database, whatever its name\n");
  expect_run(2, "bench", "--program", AT_WORKER " a=time:1500", ROUNDS, "--save", results);
  expect_error("has 31 bytes and is not a result file of attune bench; it is left unchanged");
  char *text = read_file(results);
  assert_string_equal(text, "no database, whatever its name\n");
  free(text);
  expect_run(2, "bench", "--program", AT_WORKER " a=time:1500", ROUNDS, "--save", folder);
  expect_error("is not a regular file");
  expect_run(2, "bench", "--program", AT_WORKER " a=time:1500", ROUNDS, "--save", "/no/such/folder/r.db");
  expect_error("cannot be opened");
}

/* --- stopped --- */

/* SIGINT while a case hangs: the worker is gone, the run is saved and marked. */
TEST(interrupted) {
  char words[256], log_path[96];
  long worker = 0;
  snprintf(log_path, sizeof log_path, "%s/log", folder);
  snprintf(words, sizeof words, AT_WORKER " --log=%s a=hang", log_path);
  signal(SIGINT, SIG_DFL); /* what is ignored at the start stays so */
  const pid_t child = start((const char *const[]){"bench", "--program", words, "--save", results, NULL}, out_path);
  for (int i = 0; i < 3000 && !worker; i++) {
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    char *log = access(log_path, R_OK) == 0 ? read_file(log_path) : NULL;
    const char *line = log ? strstr(log, " sample a") : NULL;
    if (line && sscanf(log, "- %ld", &worker) != 1) worker = 0;
    free(log);
  }
  assert_true(worker > 0);
  assert_int_equal(kill(child, SIGINT), 0);
  expect_code(128 + SIGINT, child);
  expect_out(", interrupted");
  assert_true(kill((pid_t)worker, 0) < 0 && errno == ESRCH);
  gate_run run = loaded("latest");
  assert_int_equal(run.state, GATE_RUN_INTERRUPTED);
  gate_run_free(&run);
}

/* --- wrong usage --- */

static void refused(const char *words, ...) {
  const char *arguments[WORDS] = {"bench"};
  int count = 1;
  va_list more;
  va_start(more, words);
  for (const char *word; (word = va_arg(more, const char *));) arguments[count++] = word;
  va_end(more);
  expect_code(2, start(arguments, out_path));
  expect_error(words);
  assert_string_equal(out_text, "");
}

TEST(wrong_usage) {
  const char *old = build("old", "a=time:1");
  refused("nothing to time; should be a WORKLOAD, --suite, --program, --command or --db", NULL);
  refused("--suite is \"jazz\"; should be runtime", "--suite", "jazz", NULL);
  refused("--rounds is \"0\"", workload, "--rounds", "0", NULL);
  refused("--rounds is \"1e3\"", workload, "--rounds", "1e3", NULL);
  refused("--time is \"nan\"", workload, "--time", "nan", NULL);
  refused("--command is \"ls\"; should be NAME=CMD", "--command", "ls", NULL);
  refused("--command is \"=ls\"", "--command", "=ls", NULL);
  refused("--command is \"x= \"", "--command", "x= ", NULL);
  refused("--program is empty; should be the command line of a program", "--program", "", NULL);
  refused("--program is empty", "--program", " ", NULL);
  refused("--label is \"latest\"", workload, "--label", "latest", NULL);
  refused("no such file", "/no/such/workload.csv", NULL);
  refused("should be a database made by `attune tune'", "--db", "/no/such/file.db", NULL);
  refused("contains {build}; --build must name the folder", "--program", program, NULL);
  refused("has no {build}, so both sides would run the same program", "--program", AT_WORKER, "--build", old,
          "--against", old, NULL);
  refused("should be the attune command of a build", workload, "--against", old, NULL);
  refused("attune: /no/such/program could not be started: No such file", "--program", "/no/such/program", NULL);
  refused("exited with code 0 (before it sent anything: does it pass its arguments to attune_bench_main?)", "--program",
          "/bin/true", NULL);
  refused("two cases are called \"x\"; names should be unique", "--command", "x=true", "--command", "x=false", NULL);
  refused("--against \"/no/such/folder\": No such file or directory", "--program", program, "--build", old, "--against",
          "/no/such/folder", NULL);
  refused("cannot write /no/such/folder/x.md: No such file", "--program", AT_WORKER " a=time:1", "--markdown",
          "/no/such/folder/x.md", NULL);
  refused("cannot write /tmp: Is a directory", "--program", AT_WORKER " a=time:1", "--markdown", "/tmp", NULL);
  refused("cannot write : No such file", "--program", AT_WORKER " a=time:1", "--markdown", "", NULL);
  refused("--save is empty", workload, "--save", "", NULL);
  refused("--threshold is \"-1\"", workload, "--threshold", "-1", NULL);
  refused("this report compares two builds", workload, "--junit", "x.xml", NULL);
  refused("speaks version 77", "--program", AT_WORKER " --hello=version", NULL);
  refused("there are no cases whose name contains \"zzz\"", "--program", AT_WORKER " a=time:1", "--filter", "zzz",
          NULL);
  refused("--device applies to workloads, suites and databases only", "--program", AT_WORKER " a=time:1", "--device",
          "host", NULL);
  refused("--cold applies to workloads", "--command", "x=true", "--cold", NULL);
  refused("--graph applies to workloads", "--program", AT_WORKER " a=time:1", "--graph", NULL);
  refused("--db applies to workloads", "--program", AT_WORKER " a=time:1", "--db", database, NULL);
  refused("there are no cases to time", "--program", AT_WORKER, NULL);
}

/* Files that the command opens never take the numbers of closed standard files in started programs. */
TEST(closed_standard_files) {
  static const char *const closed[] = {"<&-", "2>&-", "<&- 2>&-"};
  for (int i = 0; i < 3; i++) {
    char command[2048], line[256] = "";
    bool told = false;
    snprintf(command, sizeof command, AT_COMMAND " bench --program '" AT_WORKER " a=time:1' --rounds 1 --samples 1 %s",
             closed[i]);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    while (fgets(line, sizeof line, out)) told |= strncmp(line, "a ", 2) == 0;
    assert_int_equal(pclose(out), 0);
    assert_true(told);
  }
}

int main(void) {
  return RUN_TESTS_EACH(empty_builds, NULL, set_up, remove_all);
}
