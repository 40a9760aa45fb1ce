/* SPDX-License-Identifier: Apache-2.0
 * fork.c: counts the forks between the first process and this one. */
#include "src/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint generation;

static void count(void) {
  atomic_fetch_add(&generation, 1);
}

static void watch(void) {
  pthread_atfork(NULL, NULL, count);
}

unsigned at_fork_generation(void) {
  pthread_once(&once, watch);
  return atomic_load_explicit(&generation, memory_order_relaxed);
}
