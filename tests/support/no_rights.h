/* SPDX-License-Identifier: Apache-2.0
 * no_rights.h: a process that modes of files and folders bind, whoever runs the tests. */
#ifndef AT_TESTS_NO_RIGHTS_H
#define AT_TESTS_NO_RIGHTS_H

#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

/* Gives up the superuser's right to write everywhere, for this thread and for what it executes. Call it in a child made
 * by fork. False: `closed`, a file or folder without a mode to write, can be written all the same. */
static inline bool give_up_rights(const char *closed) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[2];
  if (prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) == 0 && syscall(SYS_capget, &header, sets) == 0) {
    sets[0].effective &= ~(1u << CAP_DAC_OVERRIDE);
    sets[0].permitted &= ~(1u << CAP_DAC_OVERRIDE);
    sets[0].inheritable &= ~(1u << CAP_DAC_OVERRIDE);
    (void)syscall(SYS_capset, &header, sets);
  }
  return access(closed, W_OK) != 0;
}

#endif
