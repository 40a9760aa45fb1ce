/* SPDX-License-Identifier: Apache-2.0
 * array.h: arrays that grow by doubling. */
#ifndef AT_ARRAY_H
#define AT_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one element behind the first `count`. False: no memory, and nothing has changed. `items` is a pointer,
 * NULL at first, and `room`, a size_t, the number of elements that it has room for. */
#define AT_ARRAY_ROOM(items, count, room) \
  ((size_t)(count) < (room) || at_array_grow((void *)&(items), &(room), sizeof *(items)))

static inline bool at_array_grow(void *items, size_t *room, size_t bytes) {
  void *array;
  memcpy(&array, items, sizeof array);
  const size_t wanted = *room ? 2 * *room : 16;
  array = realloc(array, wanted * bytes);
  if (!array) return false;
  memcpy(items, &array, sizeof array);
  *room = wanted;
  return true;
}

#endif
