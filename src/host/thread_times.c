/* SPDX-License-Identifier: Apache-2.0
 * thread_times.c: see thread_times.h. A thread's waits are the second number of its schedstat. */
#include "src/host/thread_times.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int64_t at_thread_time_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t at_task_waited_ns(int tasks, const char *thread) {
  char path[48], text[96];
  long long ran = 0, waited = 0;
  snprintf(path, sizeof path, "%.24s/schedstat", thread);
  const int file = openat(tasks, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return -1; /* the thread has ended */
  text[got] = '\0';
  return sscanf(text, "%lld %lld", &ran, &waited) == 2 && waited >= 0 ? waited : -1;
}

int64_t at_thread_waited_ns(int thread) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d", thread);
  return at_task_waited_ns(AT_FDCWD, path);
}
