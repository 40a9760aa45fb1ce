/* SPDX-License-Identifier: Apache-2.0
 * alloc.c: memory for the command, or its end. */
#include "tools/cli/cli.h"

#include <stdlib.h>

void *cli_alloc(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (memory) return memory;
  fputs("attune: out of memory\n", stderr);
  exit(CLI_FAILED);
}
