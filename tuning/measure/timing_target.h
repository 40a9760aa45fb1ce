/* SPDX-License-Identifier: Apache-2.0
 * timing_target.h: what a sampler is made of (see sampler.h): the timer of a device, the setting of one problem, the
 * plans that are timed in it; and the launches of one of them. */
#ifndef AT_TIMING_TARGET_H
#define AT_TIMING_TARGET_H

#include "tuning/measure/operand_set.h"
#include "tuning/measure/search_settings.h"
#include "tuning/op/registry.h"

#define AT_ROUND_TARGETS 64

/* Placements of the operands that a problem is measured at where graphs are replayed, which hold pointers: each target
 * has a graph for each placement it was measured at. Elsewhere every round may have its own. */
#define AT_GRAPH_PLACEMENTS 12

/* Configurations that won for other problems. */
typedef struct at_good_config {
  const at_implementation *implementation;
  at_configuration configuration;
} at_good_config;

enum { AT_GOOD_CONFIGS = 24 };

typedef struct at_timer {
  attune_device *device;
  attune_stream *stream;
  attune_event *events[AT_ROUND_TARGETS + 1]; /* none on the host, where the clock is read */
  at_random *random;
  at_good_config favourites[AT_GOOD_CONFIGS]; /* latest first: good_configs.c */
  int favourite_count;
  /* Called between two measurements, where time does not count; a status that is not OK ends what is measured, and is
   * returned then and at each later call. NULL: nothing. */
  attune_status (*between)(void *user);
  void *between_user;
  attune_search_options settings; /* all 0: the usual ones */
  double verify_ratio;            /* what verification took, of what was expected; 0: not known */
} at_timer;

static inline attune_status at_timer_between(const at_timer *timer) {
  return timer->between ? timer->between(timer->between_user) : ATTUNE_OK;
}

typedef struct at_sampler {
  at_timer *timer;
  const at_op *op;
  const void *problem;
  bool cold, graph;
  bool graphs; /* what is short is measured in graphs */
  at_operand_set *operands;
  int calls;                             /* of a graph or of one turn; set by at_sampler_calibrate */
  int turns;                             /* of these in a sample: 1 for a quick look, more for a sure one */
  double once_ns;                        /* what calibration took for a call's length */
  int next_copy;                         /* where the next target's rotation starts */
  uint64_t seed;                         /* of the placements */
  int placement;                         /* where the operands lie now: 0 to at_sampler_placements - 1 */
  bool moved;                            /* since the latest round */
  double ready_ns;                       /* what it takes to make a target ready at a placement */
  int disturbed;                         /* samples thrown away so far */
  const struct at_timing_target *failed; /* whose launch failed in the latest round; NULL: none */

  /* Host: what other work did during the sample (src/host/cpu_preemption.h). */
  int sampled, rough;                         /* samples that were kept, and those of them that others disturbed */
  int64_t warm_until_ns;                      /* warm-ups that the settings want end there; 0: when they are done */
  int64_t open_ns, open_cpu_ns, open_busy_ns; /* the clock, and CPU time of this process and of all, at the start */
} at_sampler;

typedef struct at_timing_target {
  at_plan *plan;                         /* owned by the target's maker */
  at_graph *graphs[AT_GRAPH_PLACEMENTS]; /* by placement; NULL: launched call by call, or not ready there */
  int first_copy;
  double once_ns; /* the second launch alone */
  bool bare;      /* timed as the vendor's own call (at_implementation.bare), not as a plan */
  bool called;    /* a caller was asked for */
  void *caller;   /* host, short calls: what makes them through the public function; NULL: launched */
  double cpus;    /* host: CPUs that the latest sample kept busy, 1 at least */
  double taken;   /* host: the part of the latest sample's time in which its threads were kept from the CPUs */
  bool rough;     /* host: that is too much, and sampling again did not help */
} at_timing_target;

/* One launch of a plan, over a copy of the operands. */
attune_status at_sampler_launch(const at_sampler *sampler, const at_plan *plan, int copy);

/* Launches from..to-1 of a sample. */
attune_status at_sampler_launch_calls(const at_sampler *sampler, const at_timing_target *target, int from, int to);

#endif
