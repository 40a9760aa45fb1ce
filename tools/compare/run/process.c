/* SPDX-License-Identifier: Apache-2.0
 * process.c: starts, watches and ends child processes. */
#include "tools/compare/run/process.h"

#include "tools/compare/message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PADDING "BENCH_PADDING="
#define PADDING_MOST 4096
#define NAP_NS 100000
#define SLICE_MS 200 /* between two looks at `interrupted` */

extern char **environ;

int64_t gate_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t gate_deadline(double seconds) {
  return gate_now_ns() + (int64_t)(1e9 * seconds);
}

bool gate_interrupted(const gate_limits *limits) {
  return limits && limits->interrupted && *limits->interrupted;
}

/* xorshift64*: only orders and lengths are drawn. */
uint64_t gate_random(uint64_t *state) {
  if (!*state) *state = 88172645463325252u;
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 2685821657736338717u >> 16;
}

/* --- start --- */

/* Threads of OpenBLAS spin for a while after a product, 25 ms by default: in the way of what is timed next.
 * After 2^18 clocks they sleep. */
static char spin[] = "OPENBLAS_THREAD_TIMEOUT=18";

/* The environment and more variables; *padding is to be freed too. */
static char **environment(char **padding, uint64_t *random) {
  size_t count = 0;
  bool given = false; /* by the user */
  for (; environ[count]; count++)
    given = given || strncmp(environ[count], spin, sizeof "OPENBLAS_THREAD_TIMEOUT=" - 1) == 0;
  char **copy = gate_alloc(count + 3, sizeof *copy);
  const size_t length = gate_random(random) % PADDING_MOST;
  *padding = gate_alloc(sizeof PADDING + length, 1);
  memcpy(*padding, PADDING, sizeof PADDING - 1);
  memset(*padding + sizeof PADDING - 1, 'x', length);
  memcpy(copy, environ, count * sizeof *copy);
  copy[count++] = *padding;
  if (!given) copy[count] = spin;
  return copy;
}

static void set_attributes(posix_spawnattr_t *attributes) {
  sigset_t none, defaults;
  posix_spawnattr_init(attributes);
  sigemptyset(&none);
  sigfillset(&defaults);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setsigdefault(attributes, &defaults);
  posix_spawnattr_setpgroup(attributes, 0);
  posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(gate_process *p, const char *const *argv, int end, int errors, char **variables) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  set_attributes(&attributes);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  if (end >= 0) posix_spawn_file_actions_adddup2(&actions, end, GATE_SOCKET);
  const int failed = posix_spawnp(&p->pid, argv[0], &actions, &attributes, (char **)(uintptr_t)argv, variables);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed;
}

void gate_lift(int ends[2]) {
  for (int i = 0; i < 2; i++) {
    const int higher = ends[i] > GATE_SOCKET ? -1 : fcntl(ends[i], F_DUPFD_CLOEXEC, GATE_SOCKET + 1);
    if (higher < 0) continue;
    (void)close(ends[i]);
    ends[i] = higher;
  }
}

char *gate_process_start(gate_process *p, const char *const *argv, int end, uint64_t *random) {
  int ends[2];
  char *padding;
  *p = (gate_process){.handle = -1, .errors = -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return gate_say("no pipe for %s: %s", argv[0], strerror(errno));
  gate_lift(ends);
  (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
  char **variables = environment(&padding, random);
  const int failed = spawn(p, argv, end, ends[1], variables);
  free(variables);
  free(padding);
  (void)close(ends[1]);
  p->errors = ends[0];
  if (failed) {
    p->pid = 0;
    p->absent = failed == ENOENT || failed == ENOTDIR;
    (void)close(p->errors);
    p->errors = -1;
    return gate_say("%s could not be started: %s", argv[0], strerror(failed));
  }
#ifdef SYS_pidfd_open
  p->handle = (int)syscall(SYS_pidfd_open, p->pid, 0);
#endif
  return NULL;
}

/* --- while it runs --- */

void gate_process_listen(gate_process *p) {
  char bytes[4096];
  ssize_t got;
  while (p->errors >= 0 && (got = read(p->errors, bytes, sizeof bytes)) > 0) {
    const size_t fresh = (size_t)got > GATE_WORDS ? GATE_WORDS : (size_t)got;
    const size_t kept = p->word_count + fresh > GATE_WORDS ? GATE_WORDS - fresh : p->word_count;
    memmove(p->words, p->words + p->word_count - kept, kept);
    memcpy(p->words + kept, bytes + (size_t)got - fresh, fresh);
    p->word_count = kept + fresh;
    p->words[p->word_count] = '\0';
  }
}

void gate_process_forget(gate_process *p) {
  gate_process_listen(p);
  p->word_count = 0;
  p->words[0] = '\0';
}

static void let_go(gate_process *p) {
  if (p->handle >= 0) (void)close(p->handle);
  gate_process_listen(p);
  if (p->errors >= 0) (void)close(p->errors);
  p->handle = p->errors = -1;
  p->pid = 0;
}

static double seconds_ns(struct timeval time) {
  return 1e9 * (double)time.tv_sec + 1e3 * (double)time.tv_usec;
}

/* Takes its end, if it has come or `wait`, and ends what it left behind: while it is not reaped its group is its
 * own. */
static bool reap(gate_process *p, bool wait) {
  struct rusage usage;
  siginfo_t ended = {.si_pid = 0};
  pid_t got;
  while (waitid(P_PID, (id_t)p->pid, &ended, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG)) != 0 && errno == EINTR) continue;
  if (ended.si_pid == 0 && !wait) return false;
  (void)kill(-p->pid, SIGKILL);
  do got = wait4(p->pid, &p->status, wait ? 0 : WNOHANG, &usage);
  while (got < 0 && errno == EINTR);
  if (got == 0) return false;
  if (got > 0) p->cpu_ns = seconds_ns(usage.ru_utime) + seconds_ns(usage.ru_stime);
  let_go(p);
  return true;
}

bool gate_process_over(const gate_process *p) {
  siginfo_t ended = {.si_pid = 0};
  if (!p->pid) return true;
  return waitid(P_PID, (id_t)p->pid, &ended, WEXITED | WNOWAIT | WNOHANG) == 0 && ended.si_pid != 0;
}

bool gate_process_wait(gate_process *p, int64_t deadline_ns, const gate_limits *limits) {
  while (p->pid && !reap(p, false)) {
    const int64_t left_ns = deadline_ns - gate_now_ns();
    if (left_ns <= 0 || gate_interrupted(limits)) return false;
    if (p->handle < 0) {
      nanosleep(&(struct timespec){0, NAP_NS}, NULL);
      gate_process_listen(p);
      continue;
    }
    struct pollfd ways[2] = {{.fd = p->handle, .events = POLLIN}, {.fd = p->errors, .events = POLLIN}};
    const int64_t left_ms = left_ns / 1000000 + 1;
    const int ready = poll(ways, 2, left_ms < SLICE_MS ? (int)left_ms : SLICE_MS);
    if (ready > 0 && ways[1].revents) gate_process_listen(p);
    if (ready > 0 && (ways[1].revents & POLLHUP) && !(ways[1].revents & POLLIN)) {
      (void)close(p->errors); /* poll passes over a descriptor of -1 */
      p->errors = -1;
    }
  }
  return true;
}

void gate_process_kill(gate_process *p) {
  if (!p->pid) return;
  (void)kill(-p->pid, SIGKILL);
  (void)kill(p->pid, SIGKILL); /* where it is not in its group yet */
  (void)reap(p, true);
}

/* --- its description --- */

/* The last line that holds anything, without its end. */
static void last_line(const gate_process *p, char out[GATE_WORDS + 1]) {
  size_t end = p->word_count;
  while (end && strchr("\n\r\t ", p->words[end - 1])) end--;
  size_t start = end;
  while (start && p->words[start - 1] != '\n') start--;
  memcpy(out, p->words + start, end - start);
  out[end - start] = '\0';
}

char *gate_process_say(const gate_process *p, const char *what) {
  char line[GATE_WORDS + 1];
  last_line(p, line);
  return *line ? gate_say("%s; its last output: %s", what, line) : gate_copy(what);
}

char *gate_process_told(const gate_process *p) {
  /* A shell tells of a signal so. */
  const int code = WIFEXITED(p->status) ? WEXITSTATUS(p->status) : 0;
  const int number = WIFSIGNALED(p->status)                ? WTERMSIG(p->status)
                     : code > 128 && code < 128 + SIGRTMIN ? code - 128
                                                           : 0;
  char *what =
      number ? gate_say("crashed (signal %d, %s)", number, strsignal(number)) : gate_say("exited with code %d", code);
  char *told = gate_process_say(p, what);
  free(what);
  return told;
}

bool gate_process_read(const char *const *argv, char **out) {
  int ends[2];
  size_t length = 0, room = 4096;
  *out = NULL;
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  gate_lift(ends);
  posix_spawn_file_actions_t actions;
  pid_t child = 0;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int failed = posix_spawnp(&child, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  (void)close(ends[1]);
  char *text = gate_alloc(room + 1, 1);
  ssize_t got = 0;
  while (!failed && ((got = read(ends[0], text + length, room - length)) > 0 || (got < 0 && errno == EINTR))) {
    length += got > 0 ? (size_t)got : 0;
    if (length == room) text = gate_grow(text, (room *= 2) + 1, 1);
  }
  (void)close(ends[0]);
  text[length] = '\0';
  int status = 1;
  while (!failed && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!failed && WIFEXITED(status) && WEXITSTATUS(status) == 0)
    *out = text;
  else
    free(text);
  return *out != NULL;
}
