/* SPDX-License-Identifier: Apache-2.0
 * candidate_build.c: see candidate_build.h. */
#include "tuning/search/candidate_build.h"

#include <string.h>
#include <time.h>

#include "src/base/support.h"

static const long LOOK_NS = 1000000; /* between two looks whether it is done */

int at_candidate_build_add(at_candidate_build *build, const at_implementation *implementation,
                           const at_configuration *configurations, int count) {
  const int room = AT_CANDIDATE_BUILD_ROOM - build->count;
  if (build->list_count == AT_CANDIDATE_BUILD_LISTS || count < 1) return 0;
  const int taken = count < room ? count : room;
  memcpy(&build->configurations[build->count], configurations, (size_t)taken * sizeof *configurations);
  build->count += taken;
  build->lists[build->list_count].implementation = implementation;
  build->lists[build->list_count++].end = build->count;
  return taken;
}

/* One job after the other: the group has one thread. */
static bool make_next(void *of) {
  at_candidate_build *m = of;
  if (m->begun == m->count) return false;
  const at_implementation *implementation = m->lists[m->list].implementation;
  const int rest = m->lists[m->list].end - m->begun, some = m->at_once > 0 && m->at_once < rest ? m->at_once : rest;
  const at_configuration *first = &m->configurations[m->begun];
  m->begun += some;
  m->list += some == rest;
  at_compile_unlock();
  implementation->prepare_many(implementation, m->problem, m->device, first, some);
  atomic_fetch_add_explicit(&m->made, some, memory_order_release);
  at_compile_lock();
  return true;
}

void at_candidate_build_start(at_candidate_build *build, const void *problem, attune_device *device) {
  build->problem = problem;
  build->device = device;
  if (build->count == 0) return;
  build->group = (at_compile_group){.priority = AT_COMPILE_SEARCH, .most = 1, .step = make_next, .of = build};
  at_compile_lock();
  if (!at_compile_start(&build->group)) atomic_store(&build->made, build->count);
  at_compile_unlock();
}

bool at_candidate_build_done(const at_candidate_build *build) {
  return at_candidate_build_made(build) == build->count;
}

int at_candidate_build_made(const at_candidate_build *build) {
  return atomic_load_explicit(&build->made, memory_order_acquire);
}

bool at_candidate_build_wait(at_candidate_build *build) {
  at_compile_wait(&build->group);
  return at_candidate_build_done(build);
}

bool at_candidate_build_wait_until(at_candidate_build *build, int64_t until_ns) {
  while (!at_candidate_build_done(build) && at_now_ns() < until_ns)
    (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
  return at_candidate_build_done(build);
}

void at_candidate_build_leave(at_candidate_build *build) {
  atomic_store(&build->left, true);
  at_compile_cancel(&build->group);
}

bool at_candidate_build_left(const at_candidate_build *build) {
  return atomic_load(&build->left);
}

void at_candidate_build_stop(at_candidate_build *build) {
  at_candidate_build_leave(build);
  at_compile_wait(&build->group);
}
