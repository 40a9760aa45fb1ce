/* SPDX-License-Identifier: Apache-2.0
 * backtrace.c: return addresses, by the C library's backtrace where it has one, and their names, by dladdr. */
#include "src/memory/malloc/backtrace.h"

#include "src/base/array.h"
#include "src/base/support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAS_BACKTRACE 1
#endif

#define SKIPPED 1 /* at_backtrace_take itself */

typedef struct frame_name {
  const void *address;
  char *function, *file; /* NULL: not sought yet */
} frame_name;

struct at_backtrace_names {
  frame_name *names; /* by address, when `sorted` */
  size_t count, room, sorted;
  bool missed;
};

#ifdef HAS_BACKTRACE
int at_backtrace_take(void **out, int most) {
  void *all[AT_BACKTRACE_MOST + SKIPPED];
  int count = backtrace(all, (most < AT_BACKTRACE_MOST ? most : AT_BACKTRACE_MOST) + SKIPPED) - SKIPPED;
  if (count <= 0) return 0;
  memcpy(out, all + SKIPPED, (size_t)count * sizeof *out);
  return count;
}
#else
int at_backtrace_take(void **out, int most) {
  (void)out;
  (void)most;
  return 0;
}
#endif

void at_backtrace_prepare(void) {
  void *frames[2];
  (void)at_backtrace_take(frames, 2);
}

at_backtrace_names *at_backtrace_names_make(void) {
  return calloc(1, sizeof(at_backtrace_names));
}

void at_backtrace_names_destroy(at_backtrace_names *names) {
  for (size_t i = 0; names && i < names->count; i++) {
    free(names->names[i].function);
    free(names->names[i].file);
  }
  if (names) free(names->names);
  free(names);
}

static int by_address(const void *a, const void *b) {
  const uintptr_t x = (uintptr_t)((const frame_name *)a)->address, y = (uintptr_t)((const frame_name *)b)->address;
  return (x > y) - (x < y);
}

static frame_name *find(const at_backtrace_names *names, const void *address) {
  const frame_name key = {.address = address};
  return names->sorted ? bsearch(&key, names->names, names->sorted, sizeof key, by_address) : NULL;
}

bool at_backtrace_names_want(at_backtrace_names *names, void *const *addresses, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (find(names, addresses[i])) continue;
    if (!AT_ARRAY_ROOM(names->names, names->count, names->room)) return false;
    names->names[names->count++] = (frame_name){.address = addresses[i]};
  }
  return true;
}

/* A return address may be the first byte behind its function: the byte before it is in the call. */
static void name_one(frame_name *name) {
  Dl_info info;
  char text[256];
  const char *at = (const char *)name->address - 1;
  if (dladdr(at, &info) == 0) info = (Dl_info){0};
  if (info.dli_sname)
    snprintf(text, sizeof text, "%.200s+0x%zx", info.dli_sname,
             (size_t)((uintptr_t)name->address - (uintptr_t)info.dli_saddr));
  else
    snprintf(text, sizeof text, "0x%zx", (size_t)((uintptr_t)name->address - (uintptr_t)info.dli_fbase));
  name->function = strdup(text);
  name->file = strdup(info.dli_fname ? info.dli_fname : "");
}

void at_backtrace_names_find(at_backtrace_names *names) {
  size_t kept = 0;
  if (names->count == 0) return;
  qsort(names->names, names->count, sizeof *names->names, by_address);
  for (size_t i = 0; i < names->count; i++) {
    frame_name *last = kept ? &names->names[kept - 1] : NULL, one = names->names[i];
    if (last && last->address == one.address) {
      if (!last->function) *last = one; /* one of them is named at most */
      continue;
    }
    names->names[kept++] = one;
  }
  names->count = names->sorted = kept;
  for (size_t i = 0; i < kept; i++)
    if (!names->names[i].function) name_one(&names->names[i]);
}

bool at_backtrace_names_sufficed(at_backtrace_names *names) {
  const bool missed = names->missed;
  names->missed = false;
  return !missed;
}

void at_backtrace_names_look(at_backtrace_names *names, const void *address, const char **out_function,
                             const char **out_file) {
  const frame_name *name = find(names, address);
  names->missed |= !name;
  *out_function = name && name->function ? name->function : "";
  *out_file = name && name->file ? name->file : "";
}
