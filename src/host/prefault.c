/* SPDX-License-Identifier: Apache-2.0
 * prefault.c: large memory that is there when it is filled. */
#include "src/host/threads.h"
#include "src/base/support.h"

enum { PAGE = 4096, LEAST = 8 << 20 };

typedef struct touching {
  char *memory;
  size_t bytes;
} touching;

/* Neighbouring pages by one thread: they may be one huge page. */
static void touch_share(void *arg, const at_team *team) {
  const touching *t = arg;
  const size_t pages = t->bytes / PAGE, first = pages * (size_t)team->rank / (size_t)team->size,
               end = pages * (size_t)(team->rank + 1) / (size_t)team->size;
  for (size_t page = first; page < end; page++) ((volatile char *)t->memory)[page * PAGE] = 0;
}

void *at_alloc_touched(size_t bytes) {
  touching t = {.memory = at_alloc_large(bytes), .bytes = bytes};
  if (t.memory && bytes >= LEAST) at_parallel(at_cpu_count(), touch_share, &t);
  return t.memory;
}
