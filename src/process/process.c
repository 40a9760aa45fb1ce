/* SPDX-License-Identifier: Apache-2.0
 * process.c: reading /proc. */
#include "src/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t at_read_small(const char *path, char *out, size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  while (file >= 0 && length < size - 1) { /* /proc gives a long file in pieces */
    const ssize_t got = read(file, out + length, size - 1 - length);
    if (got <= 0) break;
    length += (size_t)got;
  }
  if (file >= 0) (void)close(file);
  out[length] = '\0';
  return length;
}

/* The fields after the name in /proc/PID/stat, from the state on; NULL: there is no such process. */
static const char *read_stat(int64_t pid, char *text, size_t size) {
  char path[48];
  (void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
  if (at_read_small(path, text, size) == 0) return NULL;
  const char *at = strrchr(text, ')'); /* the name before it may hold anything */
  return at && at[1] == ' ' ? at + 2 : NULL;
}

int64_t at_process_start(int64_t pid) {
  char text[1024];
  const char *at = read_stat(pid, text, sizeof text);
  if (!at || *at == 'Z' || *at == 'X') return 0;
  for (int field = 3; field < 22; field++) {
    at = strchr(at, ' ');
    if (!at) return 0;
    at++;
  }
  return (int64_t)strtoll(at, NULL, 10);
}

bool at_process_stopped(int64_t pid) {
  char text[1024];
  const char *at = read_stat(pid, text, sizeof text);
  return at && (*at == 'T' || *at == 't');
}

bool at_process_gone(int64_t pid) {
  return pid > 0 && pid <= INT32_MAX && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

void at_boot_identity(char *out, size_t size) {
  if (at_read_small("/proc/sys/kernel/random/boot_id", out, size) == 0 && gethostname(out, size) != 0) out[0] = '\0';
  out[size - 1] = '\0';
  out[strcspn(out, "\n")] = '\0';
}

void at_process_place(char out[AT_PLACE_CHARS]) {
  char boot[64], space[64];
  at_boot_identity(boot, sizeof boot);
  const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  space[length > 0 ? length : 0] = '\0';
  (void)snprintf(out, AT_PLACE_CHARS, "%s %s", boot, space);
}
