/* SPDX-License-Identifier: Apache-2.0
 * capture.c: what a backend does to a capture under way. */
#include "src/capture.h"

attune_status at_capture_break(at_capture *capture, attune_status status, const char *reason) {
  pthread_mutex_lock(&capture->lock);
  if (capture->broken == ATTUNE_OK) {
    capture->broken = status;
    (void)at_copy_text(capture->reason, sizeof capture->reason, reason);
  }
  pthread_mutex_unlock(&capture->lock);
  return at_fail(status, "%s", reason);
}
