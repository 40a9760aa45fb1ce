/* SPDX-License-Identifier: Apache-2.0
 * observers.c: functions of the program that are called when requests fail. */
#include "src/memory/malloc/allocator.h"

static _Thread_local bool telling; /* this thread runs an observer */

attune_status attune_memory_add_observer(attune_device *device, attune_memory_observer observer, void *user) {
  at_allocator *allocator = NULL;
  AT_REQUIRE_AS(observer, "be a function");
  attune_status status = at_allocator_enter(&allocator, device);
  if (status != ATTUNE_OK) return status;
  if (allocator->observer_count < AT_CALLBACKS) {
    allocator->observers[allocator->observer_count] = observer;
    allocator->observer_users[allocator->observer_count++] = user;
  } else {
    status = at_fail(ATTUNE_BUSY, "%s has %d observers, the maximum; remove one first", device->name, AT_CALLBACKS);
  }
  pthread_mutex_unlock(&allocator->lock);
  return status;
}

attune_status attune_memory_remove_observer(attune_device *device, attune_memory_observer observer, void *user) {
  at_allocator *allocator = NULL;
  int at = 0;
  attune_status status = at_allocator_enter(&allocator, device);
  if (status != ATTUNE_OK) return status;
  while (at < allocator->observer_count &&
         (allocator->observers[at] != observer || allocator->observer_users[at] != user))
    at++;
  if (at == allocator->observer_count)
    status = at_fail(ATTUNE_NOT_FOUND, "%s has no such observer; observer and user should be those it was added with",
                     device->name);
  else
    allocator->observer_count--;
  for (; at < allocator->observer_count; at++) {
    allocator->observers[at] = allocator->observers[at + 1];
    allocator->observer_users[at] = allocator->observer_users[at + 1];
  }
  pthread_mutex_unlock(&allocator->lock);
  return status;
}

/* They are copied, for they run without the lock; what they do leaves the message of the failure alone. */
void at_observers_tell(at_allocator *allocator, const attune_memory_failure *failure) {
  attune_memory_observer observers[AT_CALLBACKS];
  void *users[AT_CALLBACKS];
  if (telling) return;
  pthread_mutex_lock(&allocator->lock);
  const int count = allocator->observer_count;
  for (int i = 0; i < count; i++) {
    observers[i] = allocator->observers[i];
    users[i] = allocator->observer_users[i];
  }
  pthread_mutex_unlock(&allocator->lock);
  if (count == 0) return;
  const at_message kept = at_message_keep();
  telling = true;
  for (int i = 0; i < count; i++) observers[i](users[i], allocator->device, failure);
  telling = false;
  (void)at_message_settle(&kept, ATTUNE_OK);
}
