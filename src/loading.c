/* SPDX-License-Identifier: Apache-2.0
 * loading.c: one lock for opening libraries, and the handle that keeps attune loaded. */
#include "src/loading.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <time.h>

#include "src/floating.h"
#include "src/support.h"

#define WAIT_NS 2000000000
#define NAP_NS 100000

/* Waited for with patience: before glibc 2.36 a library that asks for forks while it is opened waits for the very fork
 * that waits for it. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* A library's threads have the environment that it was opened with, for as long as they live. Under lock. */
static int depth;
static at_floating floating;

static bool cut; /* by a fork: a library is half open for ever; under lock */

bool at_loading_begin(void) {
  pthread_mutex_lock(&lock);
  if (depth++ == 0) at_floating_enter(&floating);
  return !cut;
}

void at_loading_end(void) {
  if (--depth == 0) at_floating_leave(&floating);
  pthread_mutex_unlock(&lock);
}

bool at_loading_hold(void) {
  const int64_t end_ns = at_now_ns() + WAIT_NS;
  while (pthread_mutex_trylock(&lock) != 0) {
    if (at_now_ns() > end_ns) return false;
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
  }
  return true;
}

void at_loading_release(void) {
  pthread_mutex_unlock(&lock);
}

void at_loading_renew(bool held) {
  if (!held) cut = true;
  if (!held) depth = 0;
  lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

void at_loading_stay(void) {
  Dl_info info;
  struct link_map *map = NULL;
  /* The program itself has no name here, and stays anyway. */
  if (dladdr1((const void *)&lock, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || !map || !map->l_name[0]) return;
  (void)dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
