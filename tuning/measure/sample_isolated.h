/* SPDX-License-Identifier: Apache-2.0
 * sample_isolated.h: samples on the host of a subject that nobody else is measured beside, as a program sees it that
 * makes its calls and no others. A race samples many in turn to find the order of the best; how much faster one is than
 * another, in a program of its own, is told by these: the threads of a library that the one before called have gone to
 * sleep, and a sample is as long as a program's use. */
#ifndef AT_SAMPLE_ISOLATED_H
#define AT_SAMPLE_ISOLATED_H

#include "tuning/measure/sampler.h"

/* One sample of `slice_ns`, at a placement of the operands, into *ns a call. *good is false where others kept its
 * threads from the CPUs. */
attune_status at_sampler_alone(at_sampler *profile, at_timing_target *subject, int placement, double slice_ns, double *ns,
                               bool *good);

/* Waits until no other thread of the process computes: two milliseconds where none does, and a library's threads spin
 * for tens of them. False: they did not come to rest. */
bool at_sampler_rest(void);

#endif
