/* SPDX-License-Identifier: Apache-2.0
 * file_limit.c: holding SIGXFSZ back in the calling thread. */
#include "src/base/file_limit.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static void only_it(sigset_t *set) {
  (void)sigemptyset(set);
  (void)sigaddset(set, SIGXFSZ);
}

void at_file_limit_begin(at_file_limit *limit) {
  sigset_t it, pending;
  only_it(&it);
  limit->held = pthread_sigmask(SIG_BLOCK, &it, &limit->mask) == 0;
  limit->pending = limit->held && sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

void at_file_limit_end(const at_file_limit *limit) {
  const int saved = errno;
  const struct timespec at_once = {0, 0};
  sigset_t it;
  only_it(&it);
  if (!limit->held) return;
  if (!limit->pending)
    while (sigtimedwait(&it, NULL, &at_once) < 0 && errno == EINTR) continue;
  (void)pthread_sigmask(SIG_SETMASK, &limit->mask, NULL);
  errno = saved;
}
