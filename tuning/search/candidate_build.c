/* SPDX-License-Identifier: Apache-2.0
 * candidate_build.c: see candidate_build.h. */
#include "tuning/search/candidate_build.h"

#include <string.h>
#include <time.h>

#include "src/base/support.h"
#include "src/process/floating.h"

static const long LOOK_NS = 1000000; /* between two looks whether it is done */

int at_candidate_build_add(at_candidate_build *making, const at_implementation *implementation,
                           const at_configuration *configurations, int count) {
  const int room = AT_CANDIDATE_BUILD_ROOM - making->count;
  if (making->list_count == AT_CANDIDATE_BUILD_LISTS || count < 1) return 0;
  const int taken = count < room ? count : room;
  memcpy(&making->configurations[making->count], configurations, (size_t)taken * sizeof *configurations);
  making->lists[making->list_count].implementation = implementation;
  making->lists[making->list_count].first = making->count;
  making->lists[making->list_count++].count = taken;
  making->count += taken;
  return taken;
}

static void *make(void *pointer) {
  at_candidate_build *m = pointer;
  for (int i = 0; i < m->list_count; i++) {
    const int count = m->lists[i].count, most = m->at_once > 0 ? m->at_once : count;
    const at_configuration *list = &m->configurations[m->lists[i].first];
    for (int from = 0; from < count && !atomic_load(&m->stop); from += most) {
      const int some = count - from < most ? count - from : most;
      m->lists[i].implementation->prepare_many(m->lists[i].implementation, m->problem, m->device, &list[from], some);
      atomic_fetch_add_explicit(&m->made, some, memory_order_release);
    }
  }
  if (at_candidate_build_made(m) == m->count) atomic_store_explicit(&m->done, true, memory_order_release);
  return NULL;
}

void at_candidate_build_start(at_candidate_build *making, const void *problem, attune_device *device) {
  making->problem = problem;
  making->device = device;
  atomic_store(&making->done, making->count == 0);
  if (making->count == 0) return;
  making->started = at_thread_start(&making->thread, make, making) == 0;
  if (!making->started) atomic_store(&making->done, true);
}

bool at_candidate_build_done(const at_candidate_build *making) {
  return atomic_load_explicit(&making->done, memory_order_acquire);
}

int at_candidate_build_made(const at_candidate_build *making) {
  return atomic_load_explicit(&making->made, memory_order_acquire);
}

bool at_candidate_build_wait_until(at_candidate_build *making, int64_t until_ns) {
  while (!at_candidate_build_done(making) && at_now_ns() < until_ns)
    (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
  return at_candidate_build_done(making);
}

void at_candidate_build_leave(at_candidate_build *making) {
  atomic_store(&making->stop, true);
}

bool at_candidate_build_left(const at_candidate_build *making) {
  return atomic_load(&making->stop);
}

void at_candidate_build_stop(at_candidate_build *making) {
  at_candidate_build_leave(making);
  at_candidate_build_wait(making);
}

void at_candidate_build_wait(at_candidate_build *making) {
  if (making->started) (void)pthread_join(making->thread, NULL);
  making->started = false;
}
