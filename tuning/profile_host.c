/* SPDX-License-Identifier: Apache-2.0
 * profile_host.c: how a sample is taken on the host: the default stream runs inline, so the clock around the calls is
 * the time. The vendor's own call is made bare; attune's short ones go through the public function, so that what
 * dispatch costs counts. A sample that keeps more CPUs busy than the machine sustains counts as long as it would take
 * with those that it does sustain: a burst is no evidence. */
#include "tuning/profile_host.h"

#include <time.h>

#include "src/host/capacity.h"

/* Calls longer than this hide what dispatch costs. */
static const double CALLER_BELOW_NS = 5000.0;

void at_profile_ready_host(at_profile *profile, at_subject *subject) {
  const at_op *op = profile->op;
  if (subject->bare || subject->called || !op->caller_create || profile->once_ns >= CALLER_BELOW_NS) return;
  subject->called = true;
  if (op->caller_create(&subject->caller, subject->plan, profile->operands->operands[0], profile->profiler->stream) !=
      ATTUNE_OK)
    subject->caller = NULL; /* launched, then */
}

void at_profile_forget_host(at_profile *profile, at_subject *subject) {
  if (subject->caller) profile->op->caller_destroy(subject->caller);
  subject->caller = NULL;
}

static attune_status make_calls(at_profile *profile, const at_subject *subject, int from, int to) {
  const at_bare_calls calls = {profile->operands->operands, profile->operands->copies, subject->first_copy + from,
                               subject->first_copy + to};
  if (subject->bare) return subject->plan->implementation->bare(subject->plan, &calls);
  if (subject->caller) return profile->op->caller_run(subject->caller, &calls, profile->profiler->stream);
  return at_profile_launch_calls(profile, subject, from, to);
}

/* CPUs that a sample of a team kept busy: its threads at most, for a library's may spin on after its calls. */
static double busy_cpus(int64_t cpu_ns, int64_t wall_ns, int threads) {
  const double cpus = wall_ns > 0 ? (double)cpu_ns / (double)wall_ns : 1.0;
  return cpus < 1.0 ? 1.0 : cpus > (double)threads ? (double)threads : cpus;
}

/* Threads that a subject may have at work. */
static int threads_of(const at_subject *subject) {
  int64_t threads = 1;
  return at_configuration_get(&subject->plan->configuration, "threads", &threads) && threads > 1 ? (int)threads : 1;
}

/* One sample in parts; a subject that takes far longer than the default (a library whose threads wait for a busy CPU)
 * is stopped after one. */
static attune_status sample_host(at_profile *profile, at_subject *subject, double *ns) {
  enum { PARTS = 8 };
  const int calls = profile->calls * profile->turns, part = (calls + PARTS - 1) / PARTS, threads = threads_of(subject);
  const int64_t cpu_start = threads > 1 ? at_cpu_time_ns() : 0, start = at_now_ns(),
                limit = (int64_t)(4.0 * AT_PROFILE_QUICK_NS_HOST);
  int done = 0;
  while (done < calls && (done == 0 || at_now_ns() - start < limit)) {
    const int to = done + part < calls ? done + part : calls;
    const attune_status status = make_calls(profile, subject, done, to);
    if (status != ATTUNE_OK) return status;
    done = to;
  }
  const int64_t wall = at_now_ns() - start;
  subject->cpus = threads > 1 ? busy_cpus(at_cpu_time_ns() - cpu_start, wall, threads) : 1.0;
  const double sustained = threads > 1 ? at_cpu_capacity() : 1.0;
  *ns = (double)wall / done * (subject->cpus > sustained ? subject->cpus / sustained : 1.0);
  return ATTUNE_OK;
}

attune_status at_profile_round_host(at_profile *profile, at_subject *const *subjects, int count, double *ns) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < count && status == ATTUNE_OK; i++) status = sample_host(profile, subjects[i], &ns[i]);
  return status;
}
