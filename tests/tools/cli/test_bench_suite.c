/* SPDX-License-Identifier: Apache-2.0
 * test_bench_suite.c: the list of cases and what it refuses; a program that has cases, by hand and as a worker. */
#include "tests/support/check.h"

#include <attune/tools.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/protocol.h"
#include "tools/bench/suite.h"

extern char **environ;

static attune_status nothing(void *arg, attune_stream *stream) {
  (void)arg, (void)stream;
  return ATTUNE_OK;
}

static attune_bench_case case_of(const char *name) {
  return (attune_bench_case){.size = sizeof(attune_bench_case), .name = name, .run = nothing};
}

static attune_bench *new_bench(void) {
  attune_bench *bench = NULL;
  OK(attune_bench_create(&bench));
  return bench;
}

/* ---- the list ---- */

TEST(cases_are_copied) {
  enum { COUNT = 100 };
  attune_bench *bench = new_bench();
  int args[COUNT];
  for (int i = 0; i < COUNT; i++) {
    char name[24];
    snprintf(name, sizeof name, "case %d", i);
    attune_bench_case c = case_of(name);
    c.arg = &args[i];
    c.bytes = i;
    OK(attune_bench_add(bench, &c));
    memset(name, 'x', sizeof name - 1);
  }
  assert_int_equal(attune_bench_size(bench), COUNT);
  for (int i = 0; i < COUNT; i++) {
    char name[24];
    const attune_bench_case *c = attune_bench_at(bench, (size_t)i);
    snprintf(name, sizeof name, "case %d", i);
    assert_string_equal(c->name, name);
    assert_true(c->arg == &args[i] && c->bytes == i && c->run == nothing && c->size == sizeof *c);
  }
  assert_null(attune_bench_at(bench, COUNT));
  assert_null(attune_bench_at(NULL, 0));
  assert_int_equal(attune_bench_size(NULL), 0);
  attune_bench_destroy(bench);
  attune_bench_destroy(NULL);
}

/* So many that a walk through the list for each would take minutes. */
TEST(many_cases) {
  const int count = getenv("AT_UNDER_VALGRIND") ? 2000 : 10000;
  attune_bench *bench = new_bench();
  char name[32];
  for (int i = 0; i < count; i++) {
    snprintf(name, sizeof name, "case %d", i);
    OK(attune_bench_add(bench, &(attune_bench_case){.size = sizeof(attune_bench_case), .name = name, .run = nothing}));
  }
  const attune_bench_case c = case_of("case 7");
  FAILS(attune_bench_add(bench, &c), ATTUNE_INVALID_ARGUMENT);
  for (int i = 0; i < count; i++) OK(at_bench_add(bench, &(at_bench_entry){.shown = c})); /* one name for all */
  snprintf(name, sizeof name, "case 7 #%d", count + 1);
  assert_string_equal(attune_bench_at(bench, 2 * (size_t)count - 1)->name, name);
  at_bench_cut(bench, 8);
  OK(at_bench_add(bench, &(at_bench_entry){.shown = c}));
  assert_string_equal(attune_bench_at(bench, 8)->name, "case 7 #2");
  const attune_bench_case again = case_of("case 8");
  OK(attune_bench_add(bench, &again));
  attune_bench_destroy(bench);
}

static void refuses(attune_bench *bench, const attune_bench_case *c, const char *words) {
  FAILS(attune_bench_add(bench, c), ATTUNE_INVALID_ARGUMENT);
  if (!strstr(attune_last_message(), words)) fail_msg("\"%s\" lacks \"%s\"", attune_last_message(), words);
  assert_int_equal(attune_bench_size(bench), 1);
}

#define REFUSES(words, member, value)         \
  do {                                        \
    attune_bench_case wrong = case_of("two"); \
    wrong.member = (value);                   \
    refuses(bench, &wrong, words);            \
  } while (0)

TEST(what_is_wrong_is_named) {
  char longest[201];
  attune_bench *bench = new_bench();
  memset(longest, 'n', 200);
  longest[200] = '\0';
  const attune_bench_case one = case_of(longest + 1);
  OK(attune_bench_add(bench, &one));
  REFUSES("size is 3; should be", size, 3);
  REFUSES("size is 8; should be", size, 8);
  REFUSES("name is NULL", name, NULL);
  REFUSES("name is empty", name, "");
  REFUSES("name has 200 bytes; should have at most 199", name, longest);
  REFUSES("name contains the control character 0x09", name, "a\tb");
  REFUSES("name contains the control character 0x7f", name, "a\x7f");
  REFUSES("which another case has already", name, longest + 1);
  REFUSES("run is NULL", run, NULL);
  REFUSES("bytes is -1", bytes, -1.0);
  REFUSES("flops is 1e+26; should be 0 to 1e+24", flops, 1e26);
  REFUSES("bytes is inf", bytes, (double)INFINITY);
  REFUSES("flops is nan", flops, (double)NAN);
  REFUSES("dtype is 0; should be the dtype that flops counts operations in", flops, 1.0);
  REFUSES("flags is 0x8", flags, 8);
  REFUSES("device is NULL, but flags has ATTUNE_BENCH_GRAPH", flags, ATTUNE_BENCH_GRAPH);
  FAILS(attune_bench_add(NULL, &one), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_bench_add(bench, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_bench_create(NULL), ATTUNE_INVALID_ARGUMENT);
  attune_bench_destroy(bench);
}

TEST(a_peer_names_a_case_before) {
  char of[] = "mine";
  attune_bench *bench = new_bench();
  const attune_bench_case mine = case_of("mine");
  attune_bench_case peer = case_of("peer"), next = case_of("next");
  peer.peer_of = of;
  FAILS(attune_bench_add(bench, &peer), ATTUNE_INVALID_ARGUMENT);
  says("peer_of is \"mine\"; should be the name of a case added earlier");
  OK(attune_bench_add(bench, &mine));
  OK(attune_bench_add(bench, &peer));
  of[0] = 'x'; /* it was copied */
  assert_string_equal(attune_bench_at(bench, 1)->peer_of, "mine");
  next.peer_of = "next";
  FAILS(attune_bench_add(bench, &next), ATTUNE_INVALID_ARGUMENT);
  next.peer_of = "peer";
  FAILS(attune_bench_add(bench, &next), ATTUNE_INVALID_ARGUMENT);
  says("peer_of is \"peer\", which is itself a peer of \"mine\"; should be the latter");
  attune_bench_destroy(bench);
}

/* ---- a program ---- */

typedef struct program {
  pid_t child;
  int out; /* what it prints */
} program;

static void start(program *p, const char *argument, const char *second) {
  char *const arguments[] = {(char *)(uintptr_t)EXAMPLE, (char *)(uintptr_t)argument, (char *)(uintptr_t)second, NULL};
  posix_spawn_file_actions_t actions;
  int pipes[2];
  assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
  assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, pipes[1], 1), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, pipes[1], 2), 0);
  assert_int_equal(posix_spawn(&p->child, EXAMPLE, &actions, NULL, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(pipes[1]);
  p->out = pipes[0];
}

/* Its exit status; and what it printed. */
static int finish(program *p, char *text, size_t size) {
  int end = 0;
  size_t bytes = 0;
  for (;;) {
    const ssize_t got = read(p->out, text + bytes, size - 1 - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    bytes += (size_t)got;
  }
  text[bytes] = '\0';
  close(p->out);
  assert_int_equal(waitpid(p->child, &end, 0), p->child);
  assert_true(WIFEXITED(end));
  return WEXITSTATUS(end);
}

TEST(by_hand_it_lists) {
  program p;
  char text[512];
  start(&p, NULL, NULL);
  assert_int_equal(finish(&p, text, sizeof text), 0);
  assert_int_equal(strncmp(text, "sum/1M\t-\thot\nnormal/1M\t", 23), 0);
  start(&p, AT_BENCH_ARGUMENT "3", "other"); /* not the last one */
  assert_int_equal(finish(&p, text, sizeof text), 0);
  assert_int_equal(strncmp(text, "sum/1M\t", 7), 0);
}

static void expect_line(FILE *in, const char *start_of_it) {
  char line[AT_BENCH_LINE];
  if (!fgets(line, sizeof line, in)) fail_msg("no line; \"%s\" should come", start_of_it);
  if (strncmp(line, start_of_it, strlen(start_of_it)) != 0) fail_msg("%s came, not %s", line, start_of_it);
}

static void ask(int fd, const char *text) {
  assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* All its cases, as a runner would, and the end of its main. */
TEST(as_a_worker_it_serves) {
  int pair[2];
  char argument[64], text[512];
  program p;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  assert_int_equal(fcntl(pair[0], F_SETFD, FD_CLOEXEC), 0);
  snprintf(argument, sizeof argument, "%s%d", AT_BENCH_ARGUMENT, pair[1]);
  start(&p, "its own", argument);
  close(pair[1]);
  FILE *in = fdopen(dup(pair[0]), "r");
  assert_non_null(in);
  expect_line(in, "attune-bench\t1\t");
  ask(pair[0], "list\n");
  expect_line(in, "case\t0\tsum/1M\t-\thot\t4194304\t1048576\tf64\n");
  expect_line(in, "case\t1\tnormal/1M\t");
  expect_line(in, "end\n");
  for (int i = 0; i < 2; i++) {
    snprintf(text, sizeof text, "open\t%d\t1000\n", i);
    ask(pair[0], text);
    expect_line(in, "opened\t");
    ask(pair[0], "sample\t2\n");
    expect_line(in, "sample\t");
    expect_line(in, "sample\t");
    expect_line(in, "end\t");
    ask(pair[0], "close\n");
    expect_line(in, "closed\n");
  }
  ask(pair[0], "quit\n");
  assert_int_equal(finish(&p, text, sizeof text), 0);
  assert_string_equal(text, "");
  fclose(in);
  close(pair[0]);
}

TEST(a_bad_descriptor_is_told) {
  static const char *const wrong[] = {AT_BENCH_ARGUMENT, AT_BENCH_ARGUMENT "x", AT_BENCH_ARGUMENT "-1",
                                      AT_BENCH_ARGUMENT "99999999999", AT_BENCH_ARGUMENT "1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    program p;
    char text[512];
    start(&p, wrong[i], NULL);
    assert_int_equal(finish(&p, text, sizeof text), 1);
    if (!strstr(text, "; should be a ")) fail_msg("%s: \"%s\"", wrong[i], text);
  }
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
