/* SPDX-License-Identifier: Apache-2.0
 * status.c: what a status is called, and the thread's message. */
#include <attune/status.h>

#include "src/base/support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES AT_MESSAGE_CHARS

static _Thread_local char message[MESSAGE_BYTES];
static _Thread_local attune_status last; /* OK: nothing failed */
static _Thread_local int last_cuda;

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

attune_status attune_last_status(void) {
  return last;
}

int attune_last_cuda_error(void) {
  return last_cuda;
}

attune_status attune_clear_error(void) {
  const attune_status status = last;
  message[0] = '\0';
  last = ATTUNE_OK;
  last_cuda = 0;
  return status;
}

attune_status at_fail_cuda(attune_status status, int cuda_error) {
  last_cuda = cuda_error;
  return status;
}

/* The arguments may point into `message`, so the text is formatted elsewhere first. */
attune_status at_fail(attune_status status, const char *format, ...) {
  int saved = errno;
  char text[MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
  va_end(args);
  at_one_line(text);
  memcpy(message, text, strlen(text) + 1);
  last = status;
  last_cuda = 0;
  errno = saved;
  return status;
}

attune_status at_fail_lines(attune_status status, const char *const *lines, int count) {
  char text[MESSAGE_BYTES] = "";
  size_t at = 0;
  for (int i = 0; i < count; i++) {
    const size_t from = at + (i > 0);
    const bool fits = at_append(text, sizeof text, &at, "%s%s", i ? "\n" : "", lines[i]);
    if (at >= from) at_one_line(text + from);
    if (!fits) break;
  }
  memcpy(message, text, strlen(text) + 1);
  last = status;
  last_cuda = 0;
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
  text[at] = '\0';
  at_one_line(text);
  (void)at_copy_text(text + at, sizeof text - at, message); /* clean already; its lines stay */
  memcpy(message, text, strlen(text) + 1);
  last = status;
  errno = saved;
  return status;
}

at_message at_message_keep(void) {
  at_message kept;
  kept.status = last;
  kept.cuda_error = last_cuda;
  memcpy(kept.text, message, strlen(message) + 1);
  return kept;
}

attune_status at_message_settle(const at_message *kept, attune_status status) {
  if (status != ATTUNE_OK) return status;
  memcpy(message, kept->text, strlen(kept->text) + 1);
  last = kept->status;
  last_cuda = kept->cuda_error;
  return status;
}
