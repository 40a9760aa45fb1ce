/* SPDX-License-Identifier: Apache-2.0
 * unseen_wait.h: waits for a stream in a way that the race check does not know: what it then tells of is no real race,
 * so that such tests run under TSan too. */
#ifndef TESTS_UNSEEN_WAIT_H
#define TESTS_UNSEEN_WAIT_H

#include <attune/stream.h>

#include <sched.h>
#include <stdatomic.h>

#include "tests/support/check.h"

static void unseen_note(void *flag) {
  atomic_store((atomic_int *)flag, 1);
}

static inline void unseen_wait(attune_stream *on) {
  static atomic_int done;
  atomic_store(&done, 0);
  OK(attune_stream_call(on, unseen_note, &done));
  while (!atomic_load(&done)) sched_yield();
}

#endif
