/* SPDX-License-Identifier: Apache-2.0
 * log.c: lines for whoever listens: the program's function, or standard error, as the environment wants it. */
#include "src/base/settings.h"
#include "src/base/support.h"
#include "src/process/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define LINE_BYTES 1024 /* of the usual line; threads may have small stacks */

typedef struct log_sink {
  attune_log_fn fn; /* NULL: standard error */
  void *user;
  attune_log_level level;
} log_sink;

/* This thread is inside a log callback: what that logs is dropped, it would never end. */
static _Thread_local bool logging;

static pthread_once_t log_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `sink`; held for a copy only */
static log_sink sink = {NULL, NULL, ATTUNE_LOG_DEBUG};
static atomic_int log_level;               /* what `sink` lets through, to be read without the lock */
static attune_log_level environment_level; /* constant after log_once, as the next one */
static int log_file = -1;                  /* ATTUNE_LOG_FILE, open at its end; -1: standard error */

/* Standard error listens only when both the environment and the program's level want it. */
static attune_log_level effective_level(const log_sink *s) {
  if (s->fn || s->level < environment_level) return s->level;
  return environment_level;
}

/* A file that cannot be opened is no reason to lose what is logged: it goes to standard error, with a message. */
static void open_file(void) {
  char path[4096];
  if (!at_settings_log_file(path, sizeof path) || !path[0]) return;
  log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log_file < 0 && environment_level >= ATTUNE_LOG_ERROR)
    fprintf(stderr, "attune: error: %s of ATTUNE_LOG_FILE cannot be opened: %s\n", path, strerror(errno));
}

/* A child of fork must not find the lock held by a thread that it does not have. */
static void open_log(void) {
  environment_level = at_settings_log_level();
  open_file();
  atomic_store_explicit(&log_level, (int)effective_level(&sink), memory_order_relaxed);
  static at_fork_watch watch = {.lock = &log_lock};
  at_fork_watch_add(&watch);
}

void attune_set_log(attune_log_fn fn, void *user, attune_log_level level) {
  pthread_once(&log_once, open_log);
  pthread_mutex_lock(&log_lock);
  sink = (log_sink){fn, user, level};
  atomic_store_explicit(&log_level, (int)effective_level(&sink), memory_order_relaxed);
  pthread_mutex_unlock(&log_lock);
}

bool at_log_wanted(attune_log_level level) {
  pthread_once(&log_once, open_log);
  return level > ATTUNE_LOG_OFF && (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed) && !logging;
}

static void write_standard_error(attune_log_level level, const char *line) {
  static const char *const words[] = {"off", "error", "warning", "info", "debug"};
  if (log_file < 0) {
    fprintf(stderr, "attune: %s: %s\n", words[level], line);
    return;
  }
  char head[32];
  const int bytes = snprintf(head, sizeof head, "attune: %s: ", words[level]);
  struct iovec parts[] = {{head, (size_t)bytes}, {(char *)(uintptr_t)line, strlen(line)}, {(char[]){"\n"}, 1}};
  if (writev(log_file, parts, 3) < 0) return; /* one write a line: lines of threads stay whole */
}

/* A line that `room` does not hold is made on the heap; without memory it is cut. */
static char *make_line(char room[LINE_BYTES], const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int length = vsnprintf(room, LINE_BYTES, format, args);
  char *line = length >= LINE_BYTES ? malloc((size_t)length + 1) : NULL;
  if (length < 0) room[0] = '\0';
  if (line) (void)vsnprintf(line, (size_t)length + 1, format, again);
  va_end(again);
  if (!line) line = room;
  at_one_line(line);
  return line;
}

void at_log(attune_log_level level, const char *format, ...) {
  if (!at_log_wanted(level)) return;
  int saved = errno;
  char room[LINE_BYTES];
  va_list args;
  va_start(args, format);
  char *line = make_line(room, format, args);
  va_end(args);
  pthread_mutex_lock(&log_lock);
  log_sink to = sink;
  pthread_mutex_unlock(&log_lock);
  if (level <= effective_level(&to)) {
    logging = true;
    if (to.fn)
      to.fn(to.user, level, line);
    else
      write_standard_error(level, line);
    logging = false;
  }
  if (line != room) free(line);
  errno = saved;
}
