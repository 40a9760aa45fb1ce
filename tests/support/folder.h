/* SPDX-License-Identifier: Apache-2.0
 * folder.h: a test's folder goes with all that it holds. */
#ifndef TEST_FOLDER_H
#define TEST_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

/* 0: gone, also what the test made unreadable. A folder that never was is no failure. */
static inline int folder_remove(const char *folder) {
  char command[1200];
  snprintf(command, sizeof command, "chmod -R u+rwX '%s' 2>/dev/null; rm -rf '%s'", folder, folder);
  return system(command) == 0 ? 0 : -1;
}

#endif
