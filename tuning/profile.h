/* SPDX-License-Identifier: Apache-2.0
 * profile.h: times plans of one problem on one device, side by side.
 *
 * A profiler is what a device needs for all its searches: a stream and events of its own, random data. A profile is the
 * setting of one problem: operands that rotate, how many calls make a sample. A subject is a plan made ready to be
 * timed. One thread at a time. */
#ifndef AT_PROFILE_H
#define AT_PROFILE_H

#include "tuning/operand_set.h"
#include "tuning/registry.h"
#include "tuning/statistics.h"

#define AT_ROUND_SUBJECTS 64

/* Placements of the operands that a problem is measured at where graphs are replayed, which hold pointers: each subject
 * has a graph for each placement it was measured at. Elsewhere every round may have its own. */
#define AT_GRAPH_PLACEMENTS 12

typedef struct at_profiler {
  attune_device *device;
  attune_stream *stream;
  attune_event *events[AT_ROUND_SUBJECTS + 1]; /* none on the host, where the clock is read */
  at_random *random;
  void (*between)(void *user); /* called between two measurements, where time does not count; NULL: nothing */
  void *between_user;
} at_profiler;

attune_status at_profiler_create(at_profiler **out, attune_device *device);
void at_profiler_destroy(at_profiler *profiler);

typedef struct at_profile {
  at_profiler *profiler;
  const at_op *op;
  const void *problem;
  bool cold, graph;
  at_operand_set *operands;
  int calls;       /* of a graph or of one turn; set by at_profile_calibrate */
  int turns;       /* of these in a sample: 1 for a quick look, more for a sure one */
  double once_ns;  /* what calibration took for a call's length */
  int next_copy;   /* where the next subject's rotation starts */
  uint64_t seed;   /* of the placements */
  int placement;   /* where the operands lie now: 0 to at_profile_placements - 1 */
  bool moved;      /* since the latest round */
  double ready_ns; /* what it takes to make a subject ready at a placement */
  int disturbed;   /* samples thrown away so far */
} at_profile;

typedef struct at_subject {
  at_plan *plan;                         /* owned by the subject's maker */
  at_graph *graphs[AT_GRAPH_PLACEMENTS]; /* by placement; NULL: launched call by call, or not ready there */
  int first_copy;
  double once_ns; /* the second launch alone */
} at_subject;

/* Makes the operands. */
attune_status at_profile_open(at_profile *profile, at_profiler *profiler, const at_op *op, const void *problem,
                              attune_measure measure);
void at_profile_close(at_profile *profile);

/* Launches the plan twice (the first loads code and warms up) and notes how long the second took. A plan that fails or
 * leaves an error behind fails here. */
attune_status at_profile_try(at_profile *profile, at_subject *subject, at_plan *plan);

/* Sets profile->calls for work that takes `once_ns` a call; then every subject's graph can be made. Samples are quick
 * ones. */
void at_profile_calibrate(at_profile *profile, double once_ns);

/* From now on samples are long enough that what happens between two subjects (a launch, a colder cache) does not count.
 */
void at_profile_be_sure(at_profile *profile);

/* How many placements there are to measure at. */
int at_profile_placements(const at_profile *profile);

/* Moves the operands to a placement: how far they lie from each other and from the start of a page. Subjects are made
 * ready there before the next round; what is ready at other placements stays so. */
void at_profile_place(at_profile *profile, int placement);

/* Makes the subject ready for rounds at the present placement, unless it is: records its graph. */
attune_status at_profile_ready(at_profile *profile, at_subject *subject);
void at_profile_forget(at_profile *profile, at_subject *subject);

/* One sample of each subject, one after the other without a gap, into ns[count] (per call). *good is false when the
 * device was throttled or disturbed meanwhile: throw the round away. */
attune_status at_profile_round(at_profile *profile, at_subject *const *subjects, int count, double *ns, bool *good);

/* Inside of profile.c and profile_host.c: launches from..to-1 of a sample; one sample of each subject on the host. */
#define AT_PROFILE_QUICK_NS_HOST 300e3
attune_status at_profile_launch_calls(at_profile *profile, const at_subject *subject, int from, int to);
attune_status at_profile_round_host(at_profile *profile, at_subject *const *subjects, int count, double *ns);

#endif
