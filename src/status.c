/* SPDX-License-Identifier: Apache-2.0
 * status.c: the thread's message, and the log. */
#include <attune/status.h>

#include "src/settings.h"
#include "src/support.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES 512
#define LOG_LINE_BYTES 1024

typedef struct log_sink {
  attune_log_fn fn; /* NULL: standard error */
  void *user;
  attune_log_level level;
} log_sink;

static _Thread_local char message[MESSAGE_BYTES];
static _Thread_local bool
    logging; /* this thread is inside a log callback: what that logs is dropped, it would never end */

static pthread_once_t log_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `sink`; held for a copy only */
static log_sink sink = {NULL, NULL, ATTUNE_LOG_INFO};
static atomic_int log_level;               /* what `sink` lets through, to be read without the lock */
static attune_log_level environment_level; /* constant after log_once */

const char *attune_status_string(attune_status status) {
  switch (status) {
  case ATTUNE_OK: return "ok";
  case ATTUNE_INVALID_ARGUMENT: return "invalid argument";
  case ATTUNE_OUT_OF_MEMORY: return "out of memory";
  case ATTUNE_UNSUPPORTED: return "unsupported";
  case ATTUNE_NOT_FOUND: return "not found";
  case ATTUNE_NOT_READY: return "not ready";
  case ATTUNE_DEVICE_ERROR: return "device error";
  case ATTUNE_CAPTURING: return "capturing";
  case ATTUNE_BAD_DATA: return "bad data";
  case ATTUNE_PERMISSION: return "permission denied";
  case ATTUNE_IO_ERROR: return "input/output error";
  case ATTUNE_BUSY: return "busy";
  case ATTUNE_BUDGET_EXHAUSTED: return "budget exhausted";
  case ATTUNE_INTERNAL: return "internal error";
  }
  return "unknown status";
}

const char *attune_last_message(void) {
  return message;
}

/* A message stays one line whatever a file name or a driver put into it. */
static void flatten(char *text) {
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c < 0x20 || c == 0x7f) *text = ' ';
  }
}

/* The arguments may point into `message`, so the text is made beside it. */
attune_status at_fail(attune_status status, const char *format, ...) {
  int saved = errno;
  char text[MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
  va_end(args);
  flatten(text);
  memcpy(message, text, sizeof text);
  errno = saved;
  return status;
}

attune_status at_fail_prefix(attune_status status, const char *format, ...) {
  int saved = errno;
  char text[MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  size_t at = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
  (void)at_copy_text(text + at, sizeof text - at, message);
  flatten(text);
  memcpy(message, text, sizeof text);
  errno = saved;
  return status;
}

/* Standard error listens only when both the environment and the program's level want it. */
static attune_log_level effective_level(const log_sink *s) {
  if (s->fn || s->level < environment_level) return s->level;
  return environment_level;
}

static void lock_log(void) {
  pthread_mutex_lock(&log_lock);
}
static void unlock_log(void) {
  pthread_mutex_unlock(&log_lock);
}

/* A child of fork must not find the lock held by a thread that it does not have. */
static void open_log(void) {
  environment_level = at_settings_log_level();
  atomic_store_explicit(&log_level, (int)effective_level(&sink), memory_order_relaxed);
  pthread_atfork(lock_log, unlock_log, unlock_log);
}

void attune_set_log(attune_log_fn fn, void *user, attune_log_level level) {
  pthread_once(&log_once, open_log);
  lock_log();
  sink = (log_sink){fn, user, level};
  atomic_store_explicit(&log_level, (int)effective_level(&sink), memory_order_relaxed);
  unlock_log();
}

bool at_log_wanted(attune_log_level level) {
  pthread_once(&log_once, open_log);
  return level > ATTUNE_LOG_OFF && (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed) && !logging;
}

static void write_standard_error(attune_log_level level, const char *line) {
  const char *word = level == ATTUNE_LOG_ERROR ? "error" : level == ATTUNE_LOG_WARNING ? "warning" : "info";
  fprintf(stderr, "attune: %s: %s\n", word, line);
}

void at_log(attune_log_level level, const char *format, ...) {
  if (!at_log_wanted(level)) return;
  int saved = errno;
  char line[LOG_LINE_BYTES];
  va_list args;
  va_start(args, format);
  if (vsnprintf(line, sizeof line, format, args) < 0) line[0] = '\0';
  va_end(args);
  flatten(line);
  lock_log();
  log_sink to = sink;
  unlock_log();
  if (level <= effective_level(&to)) {
    logging = true;
    if (to.fn)
      to.fn(to.user, level, line);
    else
      write_standard_error(level, line);
    logging = false;
  }
  errno = saved;
}
