/* SPDX-License-Identifier: Apache-2.0
 * profile_host.h: samples on the host, for profile.c. */
#ifndef AT_PROFILE_HOST_H
#define AT_PROFILE_HOST_H

#include "tuning/subject.h"

#define AT_PROFILE_QUICK_NS_HOST 300e3 /* a sample of the screening */

/* One sample of each subject. */
attune_status at_profile_round_host(at_profile *profile, at_subject *const *subjects, int count, double *ns);

/* One of calls that go on for `slice_ns`, or longer where one call does, behind some that are not timed; in time by the
 * clock, for nothing else runs. */
attune_status at_profile_alone_host(at_profile *profile, at_subject *subject, double slice_ns, double *ns);

/* One more launch, timed into subject->once_ns. */
attune_status at_profile_try_host(at_profile *profile, at_subject *subject);

/* Makes a short call ready to go through the public function. */
void at_profile_ready_host(at_profile *profile, at_subject *subject);
void at_profile_forget_host(at_profile *profile, at_subject *subject);

#endif
