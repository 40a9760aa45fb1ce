/* SPDX-License-Identifier: Apache-2.0
 * library.c: shared libraries opened at run time. */
#include "src/process/library.h"

#include "src/base/support.h"
#include "src/process/floating.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOADED_MAX 32

/* ---- programs without a loader ---- */

static pthread_once_t static_once = PTHREAD_ONCE_INIT;
static bool is_static;

/* The first is the program. One that is linked with shared libraries names its loader, however it was started. */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *has_loader) {
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_INTERP) *(bool *)has_loader = true;
  return 1;
}

static void look_for_loader(void) {
  bool has_loader = false;
  is_static = dl_iterate_phdr(look_at_program, &has_loader) == 1 && !has_loader;
  if (is_static)
    at_log(ATTUNE_LOG_WARNING,
           "the program is linked with -static, so no library can be loaded at run time: CUDA devices, OpenBLAS, BLIS "
           "and libmvec are not available, and attune's own host kernels are used");
}

bool at_library_none(void) {
  pthread_once(&static_once, look_for_loader);
  return is_static;
}

/* ---- opening ---- */

/* ISO C has no conversion from an object pointer to a function's; POSIX promises that the bits are equal. */
bool at_library_function(const at_library *library, const char *name, void *function_out) {
  void *address = library->handle ? dlsym(library->handle, name) : NULL;
  memcpy(function_out, &address, sizeof address);
  return address != NULL;
}

static const char *path_of(void *handle) {
  struct link_map *map = NULL;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

bool at_library_open(at_library *out, const char *file, int flags) {
  *out = (at_library){.handle = NULL};
  if (at_library_none()) return false;
  const at_floating floating = at_floating_enter(); /* what it starts while it is opened has the default environment */
  out->handle = dlopen(file, flags);
  at_floating_leave(&floating);
  if (!out->handle) {
    (void)dlerror(); /* the program's next dlerror is not about this */
    return false;
  }
  (void)at_copy_text(out->path, sizeof out->path, path_of(out->handle));
  return true;
}

void at_library_close(at_library *library) {
  if (library->handle) (void)dlclose(library->handle);
  *library = (at_library){0};
}

void at_library_of(const void *function, char *out, size_t size) {
  Dl_info info;
  (void)at_copy_text(out, size, dladdr(function, &info) != 0 && info.dli_fname ? info.dli_fname : "");
}

const char *at_library_fill(const at_library *library, void *table, const at_library_entry *entries, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!at_library_function(library, entries[i].name, (char *)table + entries[i].offset)) return entries[i].name;
  return NULL;
}

typedef struct loaded {
  bool (*named)(const char *file);
  char *paths[LOADED_MAX];
  int count;
} loaded;

/* The loader's lock is held here: names are kept, and nothing is opened. */
static int keep_name(struct dl_phdr_info *info, size_t size, void *user) {
  loaded *l = user;
  (void)size;
  const char *path = info->dlpi_name ? info->dlpi_name : "", *slash = strrchr(path, '/');
  if (l->count == LOADED_MAX || !*path || !l->named(slash ? slash + 1 : path)) return 0;
  char *copy = strdup(path);
  if (copy) l->paths[l->count++] = copy;
  return 0;
}

/* RTLD_NOLOAD finds a library under the name that the loader has it by, also one that was loaded RTLD_LOCAL. */
bool at_library_open_loaded(at_library *out, bool (*named)(const char *file),
                            bool (*good)(const at_library *library, void *user), void *user) {
  loaded l = {.named = named};
  bool found = false;
  *out = (at_library){0};
  if (at_library_none()) return false;
  (void)dl_iterate_phdr(keep_name, &l);
  for (int i = 0; i < l.count; i++) {
    if (!found && at_library_open(out, l.paths[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)) {
      out->was_loaded = true;
      found = !good || good(out, user);
      if (!found) at_library_close(out);
    }
    free(l.paths[i]);
  }
  return found;
}
