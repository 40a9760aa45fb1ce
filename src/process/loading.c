/* SPDX-License-Identifier: Apache-2.0
 * loading.c: one lock for opening libraries, and the handle that keeps attune loaded. */
#include "src/process/loading.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "src/base/support.h"
#include "src/process/exit.h"
#include "src/process/floating.h"

#define WAIT_NS 2000000000
#define NAP_NS 100000

/* The process that holds it in the upper half, its thread in the lower one; 0: free. In the child of a fork whose
 * handlers another copy of attune, or whoever, kept from running here, a mutex would be held for ever; this says
 * that its holder was left behind. */
static _Atomic uint64_t holder;

static int depth; /* of the holder's begins */

/* A library's threads have the environment that it was opened with, for as long as they live. The holder's. */
static at_floating floating;

static bool cut; /* by a fork: a library is half open for ever; the holder's */

static uint64_t this_thread(void) {
  return (uint64_t)getpid() << 32 | (uint32_t)gettid();
}

/* Waited for with patience: before glibc 2.36 a library that asks for forks while it is opened waits for the very fork
 * that waits for it. False: not in time. */
static bool take(int64_t most_ns) {
  const uint64_t mine = this_thread();
  const int64_t start_ns = at_now_ns();
  for (;;) {
    uint64_t now = 0;
    if (atomic_load(&holder) == mine || atomic_compare_exchange_strong(&holder, &now, mine)) break;
    if (now >> 32 != mine >> 32) { /* it is not of this process, in which a fork left the library half open */
      if (!atomic_compare_exchange_strong(&holder, &now, mine)) continue;
      cut = true;
      depth = 0;
      break;
    }
    if (at_now_ns() - start_ns > most_ns) return false;
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
  }
  depth++;
  return true;
}

/* In the child a thread that forked while it held has nothing to give back. */
static void give_back(void) {
  if (atomic_load(&holder) == this_thread() && --depth == 0) atomic_store(&holder, 0);
}

bool at_loading_begin(void) {
  (void)take(INT64_MAX);
  if (depth == 1) floating = at_floating_enter();
  return !cut && !at_exit_begun();
}

void at_loading_end(void) {
  if (depth == 1 && atomic_load(&holder) == this_thread()) at_floating_leave(&floating);
  give_back();
}

bool at_loading_hold(void) {
  return take(WAIT_NS);
}

bool at_loading_try(void) {
  return take(0);
}

void at_loading_release(void) {
  give_back();
}

void at_loading_renew(bool held) {
  if (!held) cut = true;
  depth = 0;
  atomic_store(&holder, 0);
}

static atomic_bool stays;

void at_loading_stay(void) {
  Dl_info info;
  struct link_map *map = NULL;
  /* The program itself has no name here, and stays anyway. */
  const bool named =
      dladdr1((const void *)&holder, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && map && map->l_name[0];
  if (!named || dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)) atomic_store(&stays, true);
}

bool at_loading_stays(void) {
  return atomic_load(&stays);
}
