/* SPDX-License-Identifier: Apache-2.0
 * file_limit.h: a write beyond the process's limit on file sizes (ulimit -f) fails with EFBIG and does not end the
 * program. The kernel also sends SIGXFSZ to the writing thread, which kills a program that does not expect it; while
 * attune writes, the thread holds that signal back and takes it away. A signal that was pending before stays. */
#ifndef AT_FILE_LIMIT_H
#define AT_FILE_LIMIT_H

#include <signal.h>
#include <stdbool.h>

typedef struct at_file_limit {
  sigset_t mask; /* the thread's own */
  bool pending;  /* SIGXFSZ was waiting before */
  bool held;
} at_file_limit;

void at_file_limit_begin(at_file_limit *limit);
void at_file_limit_end(const at_file_limit *limit);

#endif
