/* SPDX-License-Identifier: Apache-2.0
 * child.h: a part of a test in a process of its own: what is decided once in a process can be decided again. */
#ifndef TEST_CHILD_H
#define TEST_CHILD_H

#include <dirent.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* GCC has macros for the sanitizers, clang asks for features. */
#if !defined(__has_feature)
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif

/* False under TSan, which knows no threads in a child of fork, and under valgrind, which takes for lost what a child's
 * vanished threads had. */
static inline bool may_fork(void) {
#if UNDER_TSAN
  return false;
#else
  const char *preloaded = getenv("LD_PRELOAD");
  return !(preloaded && strstr(preloaded, "vgpreload"));
#endif
}

/* Under ASan: waits, up to 20 s, until this thread is the process's only one; without /proc nobody knows. A detached
 * thread whose work is done may still be giving memory back, and a child that is forked then waits for ever for ASan's
 * allocator. Elsewhere nothing waits: the C library's is safe, and CUDA's threads stay. */
static inline bool is_alone(void) {
#if UNDER_ASAN
  for (int i = 0; i < 20000; i++, usleep(1000)) {
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return true;
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
    closedir(tasks);
    if (count == 1) return true;
  }
  return false;
#else
  return true;
#endif
}

/* Runs `arguments` with stdout into `text` (NULL: left alone) and returns its exit code; -1 when it was killed. */
static inline int run_program(const char *const *arguments, char *text, size_t size) {
  int ends[2] = {-1, -1}, end = 0;
  pid_t child = 0;
  posix_spawn_file_actions_t actions;
  if (text && pipe(ends) != 0) return -1;
  posix_spawn_file_actions_init(&actions);
  if (text) {
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
  }
  const int failed = posix_spawn(&child, arguments[0], &actions, NULL, (char **)(uintptr_t)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (text) {
    close(ends[1]);
    size_t at = 0;
    for (ssize_t got = 1; !failed && got > 0 && at + 1 < size; at += got > 0 ? (size_t)got : 0)
      got = read(ends[0], text + at, size - 1 - at);
    text[at] = '\0';
    close(ends[0]);
  }
  if (failed || waitpid(child, &end, 0) != child) return -1;
  return WIFEXITED(end) ? WEXITSTATUS(end) : -1;
}

/* This test's program again, for the part called `part`. */
static inline int run_part(const char *part) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return -1;
  self[length] = '\0';
  return run_program((const char *const[]){self, part, NULL}, NULL, 0);
}

/* In a part: says what is wrong, and fails it. */
#define EXPECT(condition, ...)                                        \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s: ", __func__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                   \
      fputc('\n', stderr);                                            \
      return 1;                                                       \
    }                                                                 \
  } while (0)

#define GOOD(call) EXPECT((call) == ATTUNE_OK, "%s", attune_last_message())
#define BAD(call, status, words)                                                                                \
  do {                                                                                                          \
    const attune_status got = (call);                                                                           \
    EXPECT(got == (status) && strstr(attune_last_message(), words), "%d: %s", (int)got, attune_last_message()); \
  } while (0)

/* A part and its name; 2 when there is none of that name. */
typedef struct part {
  const char *name;
  int (*run)(void);
} part;

static inline int run_named(const part *parts, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(parts[i].name, name) == 0) return parts[i].run();
  return 2;
}

#endif
