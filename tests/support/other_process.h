/* SPDX-License-Identifier: Apache-2.0
 * other_process.h: this program once more, as another process: started with what it shall do and a handle in words. Its
 * exit status says what failed. */
#ifndef OTHER_PROCESS_H
#define OTHER_PROCESS_H

#include "tests/support/check.h"

#include <attune/memory.h>

#include <dirent.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDLE_TEXT (2 * sizeof(attune_memory_handle) + 1)

extern char **environ;

static inline void write_handle(char out[HANDLE_TEXT], const attune_memory_handle *handle) {
  for (size_t i = 0; i < sizeof *handle; i++) snprintf(out + 2 * i, 3, "%02x", ((const unsigned char *)handle)[i]);
}

static inline bool read_handle(attune_memory_handle *out, const char *text) {
  for (size_t i = 0; i < sizeof *out; i++) {
    unsigned value = 0;
    if (sscanf(text + 2 * i, "%2x", &value) != 1) return false;
    ((unsigned char *)out)[i] = (unsigned char)value;
  }
  return true;
}

/* Descriptors that this process has open; of sockets only, if asked. */
static inline int count_descriptors(bool sockets) {
  char name[64], target[64];
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  if (!folder) return -1;
  for (const struct dirent *entry; (entry = readdir(folder));) {
    snprintf(name, sizeof name, "/proc/self/fd/%.20s", entry->d_name);
    const ssize_t length = readlink(name, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = '\0';
    count += !sockets || strncmp(target, "socket:", 7) == 0;
  }
  closedir(folder);
  return count;
}

static inline pid_t start_other(const char *what, const attune_memory_handle *handle,
                                const posix_spawn_file_actions_t *actions) {
  char self[4096], text[HANDLE_TEXT] = "", name[32];
  pid_t child = 0;
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  snprintf(name, sizeof name, "%s", what);
  if (handle) write_handle(text, handle);
  char *const arguments[] = {self, name, text, NULL};
  assert_int_equal(posix_spawn(&child, self, actions, NULL, arguments, environ), 0);
  return child;
}

static inline void finish_other(pid_t child) {
  int end = 0;
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_true(WIFEXITED(end));
  assert_int_equal(WEXITSTATUS(end), 0);
}

#endif
