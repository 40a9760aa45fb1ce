/* SPDX-License-Identifier: Apache-2.0
 * sample_isolated.c: see sample_isolated.h. */
#include "tuning/measure/sample_isolated.h"

#include <time.h>

#include "src/host/cpu_capacity.h"
#include "src/host/thread_times.h"
#include "tuning/measure/sampler_host.h"

/* A look at what others of the process do, so often; and what they may do meanwhile. */
enum { NAPS = 60, STILL = 2 };
static const long NAP_NS = 1000000;
static const int64_t IDLE_NS = 50000;

bool at_sampler_rest(void) {
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

attune_status at_sampler_alone(at_sampler *profile, at_timing_target *subject, int placement, double slice_ns, double *ns,
                               bool *good) {
  const at_timer *profiler = profile->profiler;
  attune_status status = at_timer_between(profiler);
  if (status == ATTUNE_OK) at_sampler_place(profile, placement);
  if (status == ATTUNE_OK) status = at_sampler_ready(profile, subject);
  if (status == ATTUNE_OK) status = at_sampler_alone_host(profile, subject, slice_ns, ns);
  *good = !subject->rough;
  profile->disturbed += !*good;
  return status;
}
