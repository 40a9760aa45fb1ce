/* SPDX-License-Identifier: Apache-2.0
 * candidate_build.h: what candidates need before they can be prepared (prepare_many), made by a thread of its own while a search
 * measures others. Only for devices: on the host that thread would disturb what is measured. */
#ifndef AT_CANDIDATE_BUILD_H
#define AT_CANDIDATE_BUILD_H

#include <pthread.h>
#include <stdatomic.h>

#include "tuning/op/registry.h"

enum { AT_CANDIDATE_BUILD_LISTS = 8, AT_CANDIDATE_BUILD_ROOM = 96 };

/* Zeros before at_candidate_build_add. */
typedef struct at_candidate_build {
  const void *problem;
  attune_device *device;
  struct {
    const at_implementation *implementation;
    int first, count;
  } lists[AT_CANDIDATE_BUILD_LISTS];
  at_configuration configurations[AT_CANDIDATE_BUILD_ROOM];
  int list_count, count;
  int at_once; /* between so many it looks whether to stop; 0: between lists */
  pthread_t thread;
  bool started;
  atomic_bool done, stop;
  atomic_int made; /* the first so many are */
} at_candidate_build;

/* Takes up to `count` configurations of an implementation that has prepare_many; how many it took. Before the start. */
int at_candidate_build_add(at_candidate_build *making, const at_implementation *implementation, const at_configuration *configurations,
                  int count);

/* Starts the thread, if there is something to make; without a thread nothing is made here, and prepare does it. */
void at_candidate_build_start(at_candidate_build *making, const void *problem, attune_device *device);

/* Is all made that was added? */
bool at_candidate_build_done(const at_candidate_build *making);

/* How many are made, of those that were added first. */
int at_candidate_build_made(const at_candidate_build *making);

/* Waits until all is made. */
void at_candidate_build_wait(at_candidate_build *making);

/* The same until that time at most; false: it is not made by then. */
bool at_candidate_build_wait_until(at_candidate_build *making, int64_t until_ns);

/* What is under way is finished, the rest is left out; nobody waits. Then what is not made by now may never be. */
void at_candidate_build_leave(at_candidate_build *making);
bool at_candidate_build_left(const at_candidate_build *making);

/* Waits for what is under way and leaves out the rest. Before *making goes. */
void at_candidate_build_stop(at_candidate_build *making);

#endif
