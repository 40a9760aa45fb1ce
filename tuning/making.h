/* SPDX-License-Identifier: Apache-2.0
 * making.h: what candidates need before they can be prepared (prepare_many), made by a thread of its own while a search
 * measures others. Only for devices: on the host that thread would disturb what is measured. */
#ifndef AT_MAKING_H
#define AT_MAKING_H

#include <pthread.h>
#include <stdatomic.h>

#include "tuning/registry.h"

enum { AT_MAKING_LISTS = 8, AT_MAKING_ROOM = 96 };

/* Zeros before at_making_add. */
typedef struct at_making {
  const void *problem;
  attune_device *device;
  struct {
    const at_implementation *implementation;
    int first, count;
  } lists[AT_MAKING_LISTS];
  at_configuration configurations[AT_MAKING_ROOM];
  int list_count, count;
  int at_once; /* between so many it looks whether to stop; 0: between lists */
  pthread_t thread;
  bool started;
  atomic_bool done, stop;
  atomic_int made; /* the first so many are */
} at_making;

/* Takes up to `count` configurations of an implementation that has prepare_many; how many it took. Before the start. */
int at_making_add(at_making *making, const at_implementation *implementation, const at_configuration *configurations,
                  int count);

/* Starts the thread, if there is something to make; without a thread nothing is made here, and prepare does it. */
void at_making_start(at_making *making, const void *problem, attune_device *device);

/* Is all made that was added? */
bool at_making_done(const at_making *making);

/* How many are made, of those that were added first. */
int at_making_made(const at_making *making);

/* Waits until all is made. */
void at_making_wait(at_making *making);

/* The same until that time at most; false: it is not made by then. */
bool at_making_wait_until(at_making *making, int64_t until_ns);

/* What is under way is finished, the rest is left out; nobody waits. Then what is not made by now may never be. */
void at_making_leave(at_making *making);
bool at_making_left(const at_making *making);

/* Waits for what is under way and leaves out the rest. Before *making goes. */
void at_making_stop(at_making *making);

#endif
