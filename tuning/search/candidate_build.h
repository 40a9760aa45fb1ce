/* SPDX-License-Identifier: Apache-2.0
 * candidate_build.h: what candidates need before they can be prepared (prepare_many), made by a thread of the compile
 * queue while a search measures others. Only for devices: on the host that thread would disturb what is measured. */
#ifndef AT_CANDIDATE_BUILD_H
#define AT_CANDIDATE_BUILD_H

#include <stdatomic.h>

#include "src/process/compile_queue.h"
#include "tuning/op/registry.h"

enum { AT_CANDIDATE_BUILD_LISTS = 8, AT_CANDIDATE_BUILD_ROOM = 96 };

/* Zeros before at_candidate_build_add. */
typedef struct at_candidate_build {
  const void *problem;
  attune_device *device;
  struct {
    const at_implementation *implementation;
    int end; /* behind its configurations */
  } lists[AT_CANDIDATE_BUILD_LISTS];
  at_configuration configurations[AT_CANDIDATE_BUILD_ROOM];
  int list_count, count;
  int at_once;     /* configurations of one job; 0: a whole list */
  int list, begun; /* the list of the next job, and how many configurations were begun */
  atomic_int made; /* the first so many are */
  atomic_bool left;
  at_compile_group group;
} at_candidate_build;

/* Takes up to `count` configurations of an implementation that has prepare_many; how many it took. Before the start. */
int at_candidate_build_add(at_candidate_build *build, const at_implementation *implementation,
                           const at_configuration *configurations, int count);

/* Begins, if there is something to make; where no thread starts nothing is made here, and prepare does it. */
void at_candidate_build_start(at_candidate_build *build, const void *problem, attune_device *device);

/* Is all made that was added? */
bool at_candidate_build_done(const at_candidate_build *build);

/* How many are made, of those that were added first. */
int at_candidate_build_made(const at_candidate_build *build);

/* Waits until all is made. Returns false if it will not be, since the process ends. */
bool at_candidate_build_wait(at_candidate_build *build);

/* Waits until that time at most. Returns false if not all is made by then. */
bool at_candidate_build_wait_until(at_candidate_build *build, int64_t until_ns);

/* What is under way is finished, the rest is left out; does not wait. Then what is not made by now may never be. */
void at_candidate_build_leave(at_candidate_build *build);
bool at_candidate_build_left(const at_candidate_build *build);

/* Waits for what is under way and leaves out the rest. Before *build goes. */
void at_candidate_build_stop(at_candidate_build *build);

#endif
