/* SPDX-License-Identifier: Apache-2.0
 * cancel.h: a thread that is cancelled (pthread_cancel) ends behind a call of attune, not where it waits or reads a
 * file within one: locks, and what other threads see of its stack, would be left as they are. */
#ifndef AT_CANCEL_H
#define AT_CANCEL_H

#include <pthread.h>
#include <stdbool.h>

#include "src/base/backend.h"

/* Previous setting of the thread, for at_cancel_let. */
static inline int at_cancel_hold(void) {
  int before = PTHREAD_CANCEL_ENABLE;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static inline void at_cancel_let(int before) {
  (void)pthread_setcancelstate(before, NULL);
}

/* What a public call that decides, opens or measures changes in its thread until it leaves: the thread is not
 * cancelled, a failure within a call that succeeds leaves no message and, with a device, what the call does to it is
 * not captured. */
typedef struct at_call_scope {
  at_message message;
  const attune_device *device;
  int cancel, capture;
} at_call_scope;

static inline at_call_scope at_call_enter(const attune_device *device) {
  at_call_scope scope = {.message = at_message_keep(), .device = device, .cancel = at_cancel_hold()};
  if (device) scope.capture = device->backend.device->relax(device);
  return scope;
}

static inline attune_status at_call_leave(const at_call_scope *scope, attune_status status) {
  if (scope->device) scope->device->backend.device->restore(scope->capture);
  at_cancel_let(scope->cancel);
  return at_message_settle(&scope->message, status);
}

/* pthread_cond_wait of a thread that has the program's work on it. */
static inline void at_wait(pthread_cond_t *changed, pthread_mutex_t *lock) {
  const int before = at_cancel_hold();
  (void)pthread_cond_wait(changed, lock);
  at_cancel_let(before);
}

/* For assertions: some thread holds the lock. A build without assertions does not ask. */
static inline bool at_is_locked(pthread_mutex_t *lock) {
  if (pthread_mutex_trylock(lock) != 0) return true;
  pthread_mutex_unlock(lock);
  return false;
}

#endif
