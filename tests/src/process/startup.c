/* SPDX-License-Identifier: Apache-2.0
 * startup.c: a program that does nothing but say how much memory it took; with STARTUP_ATTUNE it is linked with
 * attune. */
#ifdef STARTUP_ATTUNE
#include <attune/attune.h>
#endif

#include <stdio.h>
#include <string.h>

int main(void) {
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
#ifdef STARTUP_ATTUNE
  if (!attune_version()[0]) return 1;
#endif
  while (status && fgets(line, sizeof line, status))
    if (strncmp(line, "VmHWM:", 6) == 0) fputs(line + 6, stdout);
  return status ? 0 : 1;
}
