/* SPDX-License-Identifier: Apache-2.0
 * sampler.h: times plans of one problem on one device, side by side.
 *
 * A timer is what a device needs for all its searches: a stream and events of its own, random data. A sampler is the
 * setting of one problem: operands that rotate, how many calls make a sample. A target is a plan made ready to be
 * timed. One thread at a time. */
#ifndef AT_SAMPLER_H
#define AT_SAMPLER_H

#include "tuning/measure/statistics.h"
#include "tuning/measure/timing_target.h"

attune_status at_timer_create(at_timer **out, attune_device *device);
void at_timer_destroy(at_timer *timer);

/* Makes the operands. */
attune_status at_sampler_open(at_sampler *sampler, at_timer *timer, const at_op *op, const void *problem,
                              attune_measure measure);
void at_sampler_close(at_sampler *sampler);

/* Launches the plan twice (the first loads code and warms up) and notes how long the second took; on a GPU once, and
 * how long that took, where it is more than slow_ns. Once, too, where the thread's limit (src/process/limit.h) ends
 * with it. A plan that fails or leaves an error behind fails here. */
attune_status at_sampler_try(at_sampler *sampler, at_timing_target *target, at_plan *plan, double slow_ns);

/* Sets sampler->calls for work that takes `once_ns` a call; then every target's graph can be made. Samples are quick
 * ones. */
void at_sampler_calibrate(at_sampler *sampler, double once_ns);

/* From now on samples are long enough that what happens between two targets (a launch, a colder cache) does not count.
 * True: graphs get longer than those there are; targets that are ready must be forgotten and made ready again. */
bool at_sampler_be_sure(at_sampler *sampler);

/* How many placements there are to measure at. */
int at_sampler_placements(const at_sampler *sampler);

/* Moves the operands to a placement: how far they lie from each other and from the start of a page. Subjects are made
 * ready there before the next round; what is ready at other placements stays so. */
void at_sampler_place(at_sampler *sampler, int placement);

/* Makes the target ready for rounds at the present placement, unless it is: records its graph. */
attune_status at_sampler_ready(at_sampler *sampler, at_timing_target *target);
void at_sampler_forget(at_sampler *sampler, at_timing_target *target);

/* CPUs that others kept busy since the sampler was opened, on the mean; negative: it is not known. Host. */
double at_sampler_others(const at_sampler *sampler);

/* One sample of each target, one after the other without a gap, into ns[count] (per call). *good is false when the
 * device was throttled or disturbed: discard the round. On the host a sample whose threads were kept from
 * the CPUs is thrown away and taken again; if that does not help, its target is rough. Where a launch fails, the
 * status says why and sampler->failed whose it was. */
attune_status at_sampler_round(at_sampler *sampler, at_timing_target *const *targets, int count, double *ns,
                               bool *good);

#endif
