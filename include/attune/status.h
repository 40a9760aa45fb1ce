/* SPDX-License-Identifier: Apache-2.0
 * status.h: how attune reports errors: a status from every call that can fail, one line of text beside it, and a
 * log. */
#ifndef ATTUNE_STATUS_H
#define ATTUNE_STATUS_H

#include <attune/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. */
typedef enum attune_status {
  ATTUNE_OK = 0,
  ATTUNE_INVALID_ARGUMENT = 1,  /* an argument is wrong; the message names it and says what would be right */
  ATTUNE_OUT_OF_MEMORY = 2,     /* host or device memory */
  ATTUNE_UNSUPPORTED = 3,       /* valid, but this device, build or implementation cannot do it */
  ATTUNE_NOT_FOUND = 4,         /* no such device, file, winner or library */
  ATTUNE_NOT_READY = 5,         /* a query: work is still in flight */
  ATTUNE_DEVICE_ERROR = 6,      /* the device or its driver failed; after a sticky error every later call fails too */
  ATTUNE_CAPTURING = 7,         /* not allowed while the stream is being captured */
  ATTUNE_BAD_DATA = 8,          /* a file is malformed, foreign or damaged; line and column where they exist */
  ATTUNE_PERMISSION = 9,        /* the system refuses access to a file or directory, or its mode is unsafe */
  ATTUNE_IO_ERROR = 10,         /* disk full, read or write error */
  ATTUNE_BUSY = 11,             /* another thread or process uses it; try again */
  ATTUNE_BUDGET_EXHAUSTED = 12, /* the tuning budget ended before the work could start */
  ATTUNE_INTERNAL = 13          /* a bug in attune; please report the message */
} attune_status;

/* The name of a status, "invalid argument" and so on. Borrowed, never NULL; any thread. */
ATTUNE_API const char *attune_status_string(attune_status status);

/* One line about the calling thread's latest failed call: what was wrong, which argument, what would be right. Where an
 * expression is wrong two lines follow, the line of its text and a caret under the place. Empty before the first
 * failure; a call that succeeds does not change it. Borrowed until this thread's next failing call; any thread. */
ATTUNE_API const char *attune_last_message(void);

/* The status of that failed call, ATTUNE_OK before the first failure and after attune_clear_error. NOT_READY of a query
 * counts as a failure. Any thread; each has its own. */
ATTUNE_API attune_status attune_last_status(void);

/* CUDA's number (a cudaError_t) of the error behind that failure, as CUDA gave it; 0 where it was none of CUDA's
 * runtime. Any thread. */
ATTUNE_API int attune_last_cuda_error(void);

/* Forgets the calling thread's latest failure, message included, and returns its status, as cudaGetLastError does.
 * CUDA's own last error is none of attune's business: a failed call of attune leaves cudaSuccess there. Any thread. */
ATTUNE_API attune_status attune_clear_error(void);

/* How urgent a message is; a level includes the more urgent ones. */
typedef enum attune_log_level {
  ATTUNE_LOG_OFF = 0,
  ATTUNE_LOG_ERROR = 1,
  ATTUNE_LOG_WARNING = 2,
  ATTUNE_LOG_INFO = 3,
  ATTUNE_LOG_DEBUG = 4
} attune_log_level;

/* Receives one line without a newline. May be called from any thread, never while attune holds a lock. */
typedef void (*attune_log_fn)(void *user, attune_log_level level, const char *line);

/* Sends messages of `level`, and more urgent ones, to `fn`. With fn NULL they go where they go without this call, up to
 * `level`; OFF silences all.
 *
 * Without this call messages go to the end of the file that ATTUNE_LOG_FILE names, else to standard error, and
 * ATTUNE_LOG names the level: off, error, warning, info or debug (attune_tuner_create refuses any other word). The
 * default is error, so that a program that asked for no log still hears what is lost, such as calls that cannot be
 * recorded.
 *
 * Level info has one line at the first call of each problem (which implementation runs, where the choice comes from,
 * and why a winner stored elsewhere does not hold here), one at the end of each tuning, and one when a database is
 * made. Level debug adds a line for each candidate of a search, when it has been looked at and when the race ends.
 *
 * Process-wide; any thread. */
ATTUNE_API void attune_set_log(attune_log_fn fn, void *user, attune_log_level level);

#ifdef __cplusplus
}
#endif
#endif
