/* SPDX-License-Identifier: Apache-2.0
 * device_lock.c: one search at a time on a device among the threads of this process. */
#include "tuning/tune/tune.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "src/process/fork.h"
#include "tuning/tuner/tuner.h"

/* One search at a time on a device, whatever the tuner: two would disturb each other's times. Held for a whole search,
 * so a fork does not wait for it: the child, in which no search runs, makes it again. */
static pthread_mutex_t device_lock[AT_MAX_DEVICES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void renew_device_locks(void *unused, bool child) {
  (void)unused;
  for (int i = 0; child && i < AT_MAX_DEVICES; i++) pthread_mutex_init(&device_lock[i], NULL);
}

static void init(void) {
  static at_fork_watch watch = {.after = renew_device_locks};
  renew_device_locks(NULL, true);
  at_fork_watch_add(&watch);
}

/* The thread that has a device's lock waits for another process. */
static atomic_bool waits_for_others[AT_MAX_DEVICES];

void at_tune_lock_waits(const attune_device *device, bool waits) {
  atomic_store(&waits_for_others[device->index], waits);
}

static bool lock_for(pthread_mutex_t *lock, int64_t wait_ns) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time); /* ThreadSanitizer does not know pthread_mutex_clocklock */
  const int64_t end_ns = time.tv_nsec + wait_ns;
  time.tv_sec += (time_t)(end_ns / 1000000000);
  time.tv_nsec = (long)(end_ns % 1000000000);
  return pthread_mutex_timedlock(lock, &time) == 0;
}

bool at_tune_lock(const attune_device *device, int64_t deadline_ns, bool *waited) {
  enum { LOOK_NS = 20000000 };
  pthread_mutex_t *lock = &device_lock[device->index];
  pthread_once(&once, init);
  *waited = false;
  if (pthread_mutex_trylock(lock) == 0) return true;
  *waited = true;
  if (!deadline_ns) return pthread_mutex_lock(lock) == 0;
  for (;;) {
    const int64_t left_ns = deadline_ns - at_now_ns();
    if (lock_for(lock, left_ns > 0 && left_ns < LOOK_NS ? left_ns : LOOK_NS)) return true;
    if (at_now_ns() >= deadline_ns && atomic_load(&waits_for_others[device->index])) return false;
  }
}

void at_tune_unlock(const attune_device *device) {
  pthread_mutex_unlock(&device_lock[device->index]);
}
