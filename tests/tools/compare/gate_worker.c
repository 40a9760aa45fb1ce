/* SPDX-License-Identifier: Apache-2.0
 * gate_worker.c: a worker of `attune bench` that does what its arguments say, right or wrong, for the tests of the
 * runner.
 *
 *   gate_worker [--log=FILE] [--side=WORD] [--hello=WORD] [--starts=FILE:N] NAME[@PEER_OF]=WHAT[:VALUE]...
 * --attune-bench-worker=FD
 *
 * WHAT: time:NS (its samples say so), failed, fail-lines, fail-sample, crash, crash-open, once:FILE (crashes while FILE
 * is not there, and makes it), die (is killed without a word), talk (as time:1000, but writes to standard error),
 * die-after (as time:1000, but ends once it was closed), crash-fork (leaves a child behind that has the socket),
 * fork:FILE (as time:1000, but leaves a child that never ends, and its number in FILE), hang, garbage, flood,
 * exit:CODE, negative, nan, short, close-bad. --hello: version, none, hang, exit. --starts: after N starts, counted in
 * FILE, it ends at once. The log has a line for each request: SIDE PID REQUEST NAME SEED. */
#include "tools/bench/protocol.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 };

static struct { char name[64], peer_of[64], what[32], value[256]; } cases[MOST];
static int count, open_case = -1, log_fd = -1;
static const char *side = "-";
static FILE *in, *out;

static void note(const char *request, const char *name, const char *seed) {
  if (log_fd >= 0) dprintf(log_fd, "%s %ld %s %s %s\n", side, (long)getpid(), request, name, seed);
}

static void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(out, format, arguments);
  va_end(arguments);
  fflush(out);
}

static _Noreturn void crash(void) {
  fputs("about to crash\n", stderr);
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
  _exit(1);
}

static _Noreturn void hang(void) {
  for (;;) pause();
}

static int is(const char *what) {
  return strcmp(cases[open_case].what, what) == 0;
}

/* A child of this process that has all that it has, and never ends. */
static void leave_child(const char *path) {
  const pid_t child = fork();
  if (child == 0) hang();
  const int fd = *path ? open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (fd < 0) return;
  dprintf(fd, "%ld\n", (long)child);
  close(fd);
}

/* True: it was done. */
static int misbehave(void) {
  if (is("crash-fork") || is("fork")) leave_child(cases[open_case].value);
  if (is("crash-fork")) crash();
  if (is("crash")) crash();
  if (is("once") && access(cases[open_case].value, F_OK) != 0) {
    close(open(cases[open_case].value, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    crash();
  }
  if (is("die")) raise(SIGKILL);
  if (is("talk")) fputs("all is well, says another case\n", stderr);
  if (is("hang")) hang();
  if (is("exit")) {
    fprintf(stderr, "first words\nlast words of %s\n\n", cases[open_case].name);
    exit(atoi(cases[open_case].value));
  }
  if (is("garbage")) say("\x01\xff what\n");
  if (is("flood"))
    for (int i = 0; i < 100000; i++) say("0123456789");
  if (is("short")) say("end\t0\t0\n");
  if (is("fail-sample")) say("failed\tno more\\tmemory\\\\\n");
  return is("garbage") || is("flood") || is("short") || is("fail-sample");
}

static void sample(int samples) {
  const double ns = is("time") || is("once") ? strtod(is("time") ? cases[open_case].value : "1000", NULL) : 1000;
  if (misbehave()) return;
  for (int i = 0; i < samples; i++) {
    if (is("nan"))
      say("sample\t5\tnan\t0\n");
    else
      say("sample\t%d\t%g\t%g\n", 5 + i, is("negative") ? -ns : ns, ns / 2);
  }
  say("end\t%d\t%d\n", 1500, 0);
}

static void open_one(int index, const char *seed) {
  open_case = index;
  note("open", cases[index].name, seed);
  if (is("crash-open")) crash();
  if (is("failed"))
    say("failed\tno set-up\n");
  else if (is("fail-lines"))
    say("failed\tno such function\\n  a + foo(b)\\n      ^\\n\n");
  else
    say("opened\t3\n");
}

static void answer(char *line) {
  char seed[32] = "";
  int number = 0;
  line[strcspn(line, "\n")] = '\0';
  if (strcmp(line, "quit") == 0) exit(0);
  if (strcmp(line, "list") == 0) {
    for (int i = 0; i < count; i++)
      say("case\t%d\t%s\t-\thot\t100\t0\t-%s%s\n", i, cases[i].name, *cases[i].peer_of ? "\t" : "", cases[i].peer_of);
    say("end\n");
  } else if (sscanf(line, "open\t%d\t%*s\t%31s", &number, seed) == 2 && number >= 0 && number < count) {
    open_one(number, seed);
  } else if (sscanf(line, "sample\t%d", &number) == 1) {
    note("sample", cases[open_case].name, "");
    sample(number);
  } else if (strcmp(line, "close") == 0) {
    note("close", cases[open_case].name, "");
    say(is("close-bad") ? "opened\t1\n" : "closed\n");
    if (is("die-after")) {
      fputs("a late end\n", stderr);
      exit(6);
    }
  } else {
    exit(9);
  }
}

static void count_start(const char *value) {
  char path[256];
  const char *colon = strrchr(value, ':');
  struct stat info;
  snprintf(path, sizeof path, "%.*s", (int)(colon - value), value);
  const int fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  if (write(fd, "x", 1) != 1 || fstat(fd, &info) != 0) exit(8);
  close(fd);
  if (info.st_size <= atoi(colon + 1)) return;
  fputs("enough starts\n", stderr);
  exit(4);
}

static void hello(const char *how) {
  if (strcmp(how, "exit") == 0) exit(3);
  if (strcmp(how, "hang") == 0) hang();
  if (strcmp(how, "none") == 0) say("HTTP/1.1 400 Bad Request\n");
  say("attune-bench\t%d\t9.8.7\n", strcmp(how, "version") == 0 ? 77 : AT_BENCH_PROTOCOL);
}

static void split_peer(int index) {
  char *at = strchr(cases[index].name, '@');
  if (!at) return;
  memcpy(cases[index].peer_of, at + 1, strlen(at));
  *at = '\0';
}

int main(int argc, char **argv) {
  const char *how = "", *worker = argc > 1 ? argv[argc - 1] : "";
  char line[AT_BENCH_LINE];
  if (strncmp(worker, AT_BENCH_ARGUMENT, strlen(AT_BENCH_ARGUMENT)) != 0) return 2;
  for (int i = 1; i < argc - 1; i++) {
    if (strncmp(argv[i], "--log=", 6) == 0)
      log_fd = open(argv[i] + 6, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    else if (strncmp(argv[i], "--side=", 7) == 0)
      side = argv[i] + 7;
    else if (strncmp(argv[i], "--hello=", 8) == 0)
      how = argv[i] + 8;
    else if (strncmp(argv[i], "--starts=", 9) == 0)
      count_start(argv[i] + 9);
    else if (count < MOST &&
             sscanf(argv[i], "%63[^=]=%31[^:]:%255s", cases[count].name, cases[count].what, cases[count].value) >= 2)
      split_peer(count++);
  }
  const int fd = atoi(worker + strlen(AT_BENCH_ARGUMENT));
  in = fdopen(fd, "r");
  out = fdopen(dup(fd), "w");
  if (!in || !out) return 7;
  signal(SIGPIPE, SIG_IGN);
  note("start", "-", "");
  hello(how);
  while (fgets(line, sizeof line, in)) answer(line);
  return 0;
}
