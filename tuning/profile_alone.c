/* SPDX-License-Identifier: Apache-2.0
 * profile_alone.c: see profile_alone.h. */
#include "tuning/profile_alone.h"

#include <time.h>

#include "src/host/capacity.h"
#include "src/host/thread_times.h"
#include "tuning/profile_host.h"

/* A look at what others of the process do, so often; and what they may do meanwhile. */
enum { NAPS = 60, STILL = 2 };
static const long NAP_NS = 1000000;
static const int64_t IDLE_NS = 50000;

bool at_profile_rest(void) {
  int64_t before = at_cpu_time_ns() - at_thread_time_ns();
  for (int nap = 0, still = 0; nap < NAPS; nap++) {
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    const int64_t now = at_cpu_time_ns() - at_thread_time_ns();
    still = now - before <= IDLE_NS ? still + 1 : 0;
    before = now;
    if (still == STILL) return true;
  }
  return false;
}

attune_status at_profile_alone(at_profile *profile, at_subject *subject, int placement, double slice_ns, double *ns,
                               bool *good) {
  const at_profiler *profiler = profile->profiler;
  attune_status status = at_profiler_between(profiler);
  if (status == ATTUNE_OK) at_profile_place(profile, placement);
  if (status == ATTUNE_OK) status = at_profile_ready(profile, subject);
  if (status == ATTUNE_OK) status = at_profile_alone_host(profile, subject, slice_ns, ns);
  *good = !subject->rough;
  profile->disturbed += !*good;
  return status;
}
