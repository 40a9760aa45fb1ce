/* SPDX-License-Identifier: Apache-2.0
 * status.h: error reporting: a status from every call that can fail, a one-line message, and a log. */
#ifndef ATTUNE_STATUS_H
#define ATTUNE_STATUS_H

#include <attune/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Result of a call. */
typedef enum attune_status {
  ATTUNE_OK = 0,
  ATTUNE_INVALID_ARGUMENT = 1,  /* an argument is wrong; the message names it and the values allowed */
  ATTUNE_OUT_OF_MEMORY = 2,     /* host or device memory */
  ATTUNE_UNSUPPORTED = 3,       /* valid, but this device, build or implementation cannot do it */
  ATTUNE_NOT_FOUND = 4,         /* no such device, file, winner or library */
  ATTUNE_NOT_READY = 5,         /* a query: work is still in flight */
  ATTUNE_DEVICE_ERROR = 6,      /* the device or its driver failed; after a sticky error every later call fails too */
  ATTUNE_CAPTURING = 7,         /* not allowed while the stream is being captured */
  ATTUNE_BAD_DATA = 8,          /* a file is malformed, foreign or damaged; the message has line and column, if any */
  ATTUNE_PERMISSION = 9,        /* the system denies access to a file or directory, or its mode is unsafe */
  ATTUNE_IO_ERROR = 10,         /* disk full, read or write error */
  ATTUNE_BUSY = 11,             /* another thread or process uses it; try again */
  ATTUNE_BUDGET_EXHAUSTED = 12, /* the tuning budget ended before the work could start */
  ATTUNE_INTERNAL = 13          /* a bug in attune; please report the message */
} attune_status;

/* Returns the name of a status, "invalid argument" and so on. Borrowed, never NULL; any thread. */
ATTUNE_API const char *attune_status_string(attune_status status);

/* Returns one line about the calling thread's latest failed call: the error, the argument, and the values allowed. For
 * a wrong expression two lines follow: the line of its text, and a caret under the place. Empty before the first
 * failure and unchanged by calls that succeed. Borrowed until this thread's next failing call; any thread. */
ATTUNE_API const char *attune_last_message(void);

/* Returns the status of the calling thread's latest failed call; ATTUNE_OK before the first failure and after
 * attune_clear_error. NOT_READY from a query counts as a failure. Any thread. */
ATTUNE_API attune_status attune_last_status(void);

/* Returns the cudaError_t behind that failure, as CUDA returned it; 0 if the failure did not come from CUDA's runtime.
 * Any thread. */
ATTUNE_API int attune_last_cuda_error(void);

/* Clears the calling thread's latest failure, message included, and returns its status, as cudaGetLastError does.
 * CUDA's own last error is separate: a failed call of attune leaves it at cudaSuccess. Any thread. */
ATTUNE_API attune_status attune_clear_error(void);

/* Severity of a message; a level includes the more severe ones. */
typedef enum attune_log_level {
  ATTUNE_LOG_OFF = 0,
  ATTUNE_LOG_ERROR = 1,
  ATTUNE_LOG_WARNING = 2,
  ATTUNE_LOG_INFO = 3,
  ATTUNE_LOG_DEBUG = 4
} attune_log_level;

/* Receives one line without a newline. May be called from any thread, never while attune holds a lock. */
typedef void (*attune_log_fn)(void *user, attune_log_level level, const char *line);

/* Sends messages of `level` and more severe ones to `fn`. fn NULL: messages up to `level` are written as they are
 * without this call; OFF silences all.
 *
 * Without this call messages are appended to the file named by ATTUNE_LOG_FILE, else written to standard error.
 * ATTUNE_LOG sets the level: off, error, warning, info or debug (attune_tuner_create rejects any other word). The
 * default is error, so that losses, such as calls that cannot be recorded, are reported by default.
 *
 * Level info adds one line at the first call of each problem (the implementation that runs, the source of the choice,
 * and why a winner stored elsewhere does not hold here), one at the end of each tuning, and one when a database is
 * created. Level debug adds a line for each candidate of a search, after its screening and at the end of the race.
 *
 * Process-wide; any thread. */
ATTUNE_API void attune_set_log(attune_log_fn fn, void *user, attune_log_level level);

#ifdef __cplusplus
}
#endif
#endif
