/* SPDX-License-Identifier: Apache-2.0
 * test_cli_bench.c: `attune bench` as a user meets it: what it times, saves, prints and refuses. Where a verdict matters the
 * times are made up by the worker. */
#include "tests/cli_fixture.h"

#include "tuning/gate/results.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#define ROUNDS "--rounds", "3"

static char results[64];

/* A folder of the build `name` whose program `run` is a worker with these cases; its path. */
static const char *build(const char *name, const char *cases) {
  static char paths[4][64];
  static int next;
  char *path = paths[next++ % 4], script[128], text[512];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
  snprintf(script, sizeof script, "%s/run", path);
  snprintf(text, sizeof text, "#!/bin/sh\nexec " AT_WORKER " %s \"$@\"\n", cases);
  write_file(script, text);
  assert_int_equal(chmod(script, 0700), 0);
  return path;
}

static int empty_builds(void **state) {
  char command[160];
  snprintf(results, sizeof results, "%s/r.db", folder);
  snprintf(command, sizeof command, "rm -rf '%s'/*old* '%s'/*new*", folder, folder);
  return system(command) == 0 ? fresh(state) : 1;
}

static int remove_all(void **state) {
  return empty_builds(state) == 0 ? tear_down(state) : 1;
}

static gate_run loaded(const char *which) {
  char name[96];
  gate_run run;
  snprintf(name, sizeof name, "%s:%s", results, which);
  char *error = gate_load(name, &run);
  if (error) fail_msg("%s", error);
  return run;
}

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  assert_non_null(text);
  return text;
}

/* --- what is timed --- */

static void a_programs_cases(void **state) {
  (void)state;
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

static void peers_beside(void **state) {
  (void)state;
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

static void problems_and_suites(void **state) {
  (void)state;
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

static void the_winners_of_a_database(void **state) {
  (void)state;
  write_file(workload, "dtype,m,n,k\nf32,64,64,64\n");
  expect_run(0, "tune", workload, "--db", database, "--device", "host", "--problem-budget", "300");
  expect_run(0, "bench", "--db", database, "--device", "host", "--rounds", "1", "--save", results);
  expect_out("gemm f32 nn 64x64x64 strict");
  gate_run run = loaded("latest");
  assert_int_equal(run.case_count, 1);
  assert_string_equal(run.suite, database);
  gate_run_free(&run);
}

static void commands(void **state) {
  (void)state;
  expect_run(1, "bench", "--command", "good=/bin/true", "--command", "bad=echo no words >&2; exit 3", "--command",
             "gone=/no/such/program", ROUNDS);
  expect_out("process");
  expect_out("failed: exited with code 3; its last words: no words");
  expect_out("failed: /no/such/program could not be started: No such file or directory");
  expect_out("3 cases, 2 failed");
  expect_run(0, "bench", "--command", "good=test $((1 + 1)) = 2", "--rounds", "1");
}

/* --- against another build --- */

static const char *const program = "{build}/run";

/* A pair's Markdown has the column that the terminal has. */
static void peers_of_a_pair(void **state) {
  (void)state;
  char path[96];
  snprintf(path, sizeof path, "%s/pair.md", folder);
  const char *new = build("new", "mine=time:1000 b@mine=time:1250 gone@mine=failed"),
             *old = build("old", "mine=time:1000 b@mine=time:2000");
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old, "--markdown", path, "--save", results);
  expect_out("1.250 x");
  expect_run(1, "compare", results); /* a new case that fails is none that is missing */
  expect_out("1 failed");
  char *text = read_file(path);
  const char *const words[] = {"| | case | change | interval | base | head | beside |\n|:--|:--|--:|:-:|--:|--:|--:|\n",
                               " 1.25 us | 1.250 x |\n", " 1.00 us | - |\n",
                               "- beside: how many times as long, in the head, as the case that it is a peer of"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (!strstr(text, words[i])) fail_msg("no \"%s\" in:\n%s", words[i], text);
  free(text);
  expect_run(0, "bench", "--program", program, "--filter", "mine", "--build", new, "--against", old, "--markdown",
             path);
  text = read_file(path);
  assert_null(strstr(text, "beside"));
  free(text);
}

static void slower_and_same(void **state) {
  (void)state;
  const char *new = build("new", "slow=time:1100 same=time:1000 fast=time:900 only=time:5"),
             *old = build("old", "slow=time:1000 same=time:1000 fast=time:1000 gone=time:5");
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old, "--save", results, "--label", "mine");
  expect_out("+10.0 %");
  expect_out("-10.0 %");
  expect_out("1 same, 1 faster, 1 slower");
  expect_out("2 missing");
  gate_run head = loaded("latest"), base = loaded("1");
  assert_int_equal(head.id, 2);
  assert_int_equal(head.pair, 1);
  assert_int_equal(base.pair, 0);
  assert_string_equal(head.label, "mine");
  assert_string_equal(base.label, "");
  assert_int_equal(head.state, GATE_RUN_COMPLETE);
  assert_int_equal(base.state, GATE_RUN_COMPLETE);
  assert_int_equal(head.case_count, 4);
  assert_true(head.cases[0].visits[0].samples[0].ns == 1100);
  assert_true(base.cases[0].visits[0].samples[0].ns == 1000);
  gate_run_free(&head);
  gate_run_free(&base);
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old, "--json");
  json_t *report = parse_out();
  const json_t *slow = json_array_get(json_object_get(report, "cases"), 0);
  assert_string_equal(text_of(json_object_get(slow, "judged"), "verdict"), "slower");
  json_decref(report);
  build("new", "a=time:1000 b=time:900");
  build("old", "a=time:1000 b=time:1000");
  expect_run(0, "bench", "--program", program, "--build", new, "--against", old);
  expect_out("0 slower");
}

/* Another program of the build in `path`, which build() made. */
static void add_program(const char *path, const char *name, const char *cases) {
  char script[128], text[512];
  snprintf(script, sizeof script, "%s/%s", path, name);
  snprintf(text, sizeof text, "#!/bin/sh\nexec " AT_WORKER " %s \"$@\"\n", cases);
  write_file(script, text);
  assert_int_equal(chmod(script, 0700), 0);
}

static void remove_program(const char *path, const char *name) {
  char script[128];
  snprintf(script, sizeof script, "%s/%s", path, name);
  assert_int_equal(unlink(script), 0);
}

/* A program that only the head has, or only the base: its cases are missing on the other side, and the rest goes on. */
static void programs_of_one_side(void **state) {
  (void)state;
  char report[96];
  snprintf(report, sizeof report, "%s/report.md", folder);
  const char *new = build("new", "slow=time:1100"), *old = build("old", "slow=time:1000");
  add_program(new, "more", "added=time:5");
  expect_run(1, "bench", "--program", program, "--program", "{build}/more", "--build", new, "--against", old, "--save",
             results, "--markdown", report);
  expect_out("+10.0 %");
  expect_out("1 slower");
  expect_out("1 missing");
  expect_out("missing: only the head has it");
  expect_error("the base has no ");
  expect_error("/more: its cases are missing there");
  expect_run(1, "compare", results);
  expect_out("1 slower, 1 missing");
  expect_run(0, "bench", "--program", program, "--program", "{build}/more", "--build", old, "--against",
             new); /* removed */
  expect_out("missing: only the base has it");
  expect_error("the head has no ");
  expect_run(0, "bench", "--program", "cd {build} && exec ./more", "--program", program, "--build", old, "--against",
             new);
  expect_out("1 missing");
  remove_program(old, "run"); /* the first benchmark of a project: nothing in common */
  assert_int_equal(unlink(results), 0);
  expect_run(0, "bench", "--program", program, "--build", new, "--against", old, "--save", results, "--markdown",
             report);
  expect_out("1 case: 0 slower, 1 missing");
  expect_run(0, "compare", results);
  expect_out("1 missing");
}

/* Where the head has nothing of it, or no side has, nothing can be told: wrong usage. So is a program that is there, and is none. */
static void programs_of_no_side(void **state) {
  (void)state;
  const char *new = build("new", "a=time:1"), *old = build("old", "a=time:1");
  expect_run(2, "bench", "--program", "{build}/gone", "--build", new, "--against", old);
  expect_error("/gone could not be started: No such file");
  remove_program(new, "run");
  expect_run(2, "bench", "--program", program, "--build", new, "--against", old);
  expect_error("so the head has no cases at all");
  add_program(old, "bad", "--hello=exit");
  add_program(new, "bad", "a=time:1");
  expect_run(2, "bench", "--program", "{build}/bad", "--build", new, "--against", old);
  expect_error("exited with code 3 (before it said anything");
}

static void commands_of_one_side(void **state) {
  (void)state;
  const char *new = build("new", "a=time:1"), *old = build("old", "a=time:1");
  char script[128];
  snprintf(script, sizeof script, "%s/quick", new);
  write_file(script, "#!/bin/sh\n");
  assert_int_equal(chmod(script, 0700), 0);
  expect_run(0, "bench", "--command", "new={build}/quick || true", "--command", "x=test -x {build}/quick; true",
             "--build", new, "--against", old, "--rounds", "2", "--samples", "1");
  expect_run(0, "bench", "--command", "both=/bin/true {build}", "--command", "new={build}/quick", "--build", old,
             "--against", new, "--rounds", "2", "--samples", "1");
  expect_out("missing: only the base has it");
  expect_error("the head lacks the programs of 1 command: it is missing there");
  expect_run(0, "bench", "--command", "both=/bin/true {build}", "--command", "none={build}/none", "--build", new,
             "--against", old, "--rounds", "2", "--samples", "1");
  expect_out("could not be started: No such file or directory"); /* in the base too: no regression */
}

/* The folder of a build may be called anything. */
static void folders_with_blanks(void **state) {
  (void)state;
  const char *new = build("it's new $1", "a=time:1100"), *old = build("old one", "a=time:1000");
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old);
  expect_out("+10.0 %");
  expect_run(0, "bench", "--command", "x=test -x {build}/run -a -x \"{build}/run\"", "--build", new, "--rounds", "1");
  expect_run(0, "bench", "--command", "x=test -x {build}/run && test -x \"{build}/run\"", "--build", new, "--rounds",
             "1");
}

static void a_failed_case_fails_the_run(void **state) {
  (void)state;
  const char *new = build("new", "bad=crash a=time:1000"), *old = build("old", "bad=time:1000 a=time:1000");
  expect_run(1, "bench", "--program", program, "--build", new, "--against", old, ROUNDS);
  expect_out("failed: crashed (signal 11, Segmentation fault); its last words: about to crash");
  expect_run(0, "bench", "--program", program, "--build", old, "--against", new, ROUNDS); /* it is mended */
  expect_out("base failed: crashed (signal 11");
}

/* --- the result file --- */

static void runs_append(void **state) {
  (void)state;
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
static void the_revision(void **state) {
  (void)state;
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

static void files_that_are_none(void **state) {
  (void)state;
  write_file(results, "no database, whatever its name\n");
  expect_run(2, "bench", "--program", AT_WORKER " a=time:1500", ROUNDS, "--save", results);
  expect_error("has 31 bytes and is not a result file of attune bench; it is left as it is");
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
static void interrupted(void **state) {
  (void)state;
  char words[256], log_path[96];
  long worker = 0;
  snprintf(log_path, sizeof log_path, "%s/log", folder);
  snprintf(words, sizeof words, AT_WORKER " --log=%s a=hang", log_path);
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

static void wrong_usage(void **state) {
  (void)state;
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
  refused("should be a database that `attune tune' made", "--db", "/no/such/file.db", NULL);
  refused("has {build}, but no --build says what that is", "--program", program, NULL);
  refused("has no {build}, so it would be the same with --against", "--program", AT_WORKER, "--build", old, "--against",
          old, NULL);
  refused("should be the command attune of a build", workload, "--against", old, NULL);
  refused("could not be started: No such file", "--program", "/no/such/program", NULL);
  refused("exited with code 0 (before it said anything: does it give its arguments to attune_bench_main?)", "--program",
          "/bin/true", NULL);
  refused("two cases are called \"x\"; each needs a name of its own", "--command", "x=true", "--command", "x=false",
          NULL);
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
  refused("there are no cases whose name holds \"zzz\"", "--program", AT_WORKER " a=time:1", "--filter", "zzz", NULL);
  refused("--device is for workloads, suites and a database", "--program", AT_WORKER " a=time:1", "--device", "host",
          NULL);
  refused("--cold is for workloads", "--command", "x=true", "--cold", NULL);
  refused("--graph is for workloads", "--program", AT_WORKER " a=time:1", "--graph", NULL);
  refused("--db is for workloads", "--program", AT_WORKER " a=time:1", "--db", database, NULL);
  refused("there are no cases in what is to be timed", "--program", AT_WORKER, NULL);
}

/* What is started gets none of their numbers. */
static void closed_standard_files(void **state) {
  (void)state;
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

#define TEST(f) cmocka_unit_test_setup(f, empty_builds)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_programs_cases),
      TEST(peers_beside),
      TEST(problems_and_suites),
      TEST(closed_standard_files),
      TEST(the_winners_of_a_database),
      TEST(commands),
      TEST(slower_and_same),
      TEST(peers_of_a_pair),
      TEST(programs_of_one_side),
      TEST(programs_of_no_side),
      TEST(commands_of_one_side),
      TEST(folders_with_blanks),
      TEST(a_failed_case_fails_the_run),
      TEST(runs_append),
      TEST(the_revision),
      TEST(files_that_are_none),
      TEST(interrupted),
      TEST(wrong_usage),
  };
  return cmocka_run_group_tests(tests, set_up, remove_all);
}
