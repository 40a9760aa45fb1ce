/* SPDX-License-Identifier: Apache-2.0
 * profile_host.c: how a sample is taken on the host: the default stream runs inline, so the clock around the launches is
 * the time. */
#include "tuning/profile.h"

/* One sample in parts; a subject that takes far longer than the default (a library whose threads wait for a busy CPU)
 * is stopped after one. */
static attune_status sample_host(at_profile *profile, const at_subject *subject, double *ns) {
  enum { PARTS = 8 };
  const int calls = profile->calls * profile->turns, part = (calls + PARTS - 1) / PARTS;
  const int64_t start = at_now_ns(), limit = (int64_t)(4.0 * AT_PROFILE_QUICK_NS_HOST);
  int done = 0;
  while (done < calls && (done == 0 || at_now_ns() - start < limit)) {
    const int to = done + part < calls ? done + part : calls;
    const attune_status status = at_profile_launch_calls(profile, subject, done, to);
    if (status != ATTUNE_OK) return status;
    done = to;
  }
  *ns = (double)(at_now_ns() - start) / done;
  return ATTUNE_OK;
}

attune_status at_profile_round_host(at_profile *profile, at_subject *const *subjects, int count, double *ns) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < count && status == ATTUNE_OK; i++) status = sample_host(profile, subjects[i], &ns[i]);
  return status;
}
