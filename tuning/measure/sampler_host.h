/* SPDX-License-Identifier: Apache-2.0
 * sampler_host.h: samples on the host, for sampler.c, and of one target alone. */
#ifndef AT_SAMPLER_HOST_H
#define AT_SAMPLER_HOST_H

#include "tuning/measure/sampler.h"

#define AT_SAMPLER_QUICK_NS_HOST 300e3 /* a sample of the screening */

/* One sample of each target. */
attune_status at_sampler_round_host(at_sampler *sampler, at_timing_target *const *targets, int count, double *ns);

/* One of calls that go on for `slice_ns`, or longer where one call does, behind some that are not timed; in time by the
 * clock, for nothing else runs. */
attune_status at_sampler_alone_host(at_sampler *sampler, at_timing_target *target, double slice_ns, double *ns);

/* One more launch, timed into target->once_ns. */
attune_status at_sampler_try_host(at_sampler *sampler, at_timing_target *target);

/* A call of a plan as a program makes it, by the public function and a look-up that hits, so that what dispatch costs
 * is part of a measured time: at_op.timed_call. create is NOT_FOUND where the public function would not come to the
 * plan, which outlives the call; run makes calls number from to to-1 of `calls`, which outlive it too. */
typedef struct at_timed_call {
  attune_status (*create)(void **out, const at_plan *plan, const at_bare_calls *calls, attune_stream *stream);
  attune_status (*run)(void *call, attune_stream *stream, int from, int to);
  void (*destroy)(void *call);
} at_timed_call;

/* Makes a short call ready to go through the public function. */
void at_sampler_ready_host(at_sampler *sampler, at_timing_target *target);
void at_sampler_forget_host(at_sampler *sampler, at_timing_target *target);

/* --- alone: no other candidate is measured next to it, as a program sees it that makes its calls and no others. A race
 * samples many in turn to find the order of the best; how much faster one is than another, in a program of its own, is
 * told by these: the threads of a library that the one before called have gone to sleep, and a sample is as long as a
 * program's use. --- */

/* One sample of `slice_ns`, at a placement of the operands, into *ns a call. *good is false where others kept its
 * threads from the CPUs. */
attune_status at_sampler_alone(at_sampler *sampler, at_timing_target *target, int placement, double slice_ns,
                               double *ns, bool *good);

/* Waits until no other thread of the process computes: two milliseconds where none does, and a library's threads spin
 * for tens of them. False: they did not come to rest. */
bool at_sampler_rest(void);

#endif
