/* SPDX-License-Identifier: Apache-2.0
 * load_allocator.c: the program's own allocator out of a shared object, with functions of the form that PyTorch's
 * pluggable allocators have. */
#include <attune/memory.h>

#include "src/base/backend.h"
#include "src/base/struct_size.h"
#include "src/process/floating.h"
#include "src/process/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/types.h>

typedef void *(*alloc_fn)(ssize_t bytes, int device, void *stream);
typedef void (*free_fn)(void *pointer, ssize_t bytes, int device, void *stream);

/* A pair of functions in use. Kept for ever, as the library is: memory may be freed at any time. */
typedef struct pair {
  struct pair *next;
  alloc_fn alloc;
  free_fn free;
} pair;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static pair *pairs;

static void *call_alloc(void *user, size_t bytes, attune_device *device, attune_stream *stream) {
  const pair *functions = user;
  return functions->alloc((ssize_t)bytes, device->ordinal, stream ? stream->native : NULL);
}

static void call_free(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *stream) {
  const pair *functions = user;
  functions->free(pointer, (ssize_t)bytes, device->ordinal, stream ? stream->native : NULL);
}

static pair *keep(alloc_fn alloc, free_fn free) {
  pthread_mutex_lock(&lock);
  pair *one = pairs;
  while (one && (one->alloc != alloc || one->free != free)) one = one->next;
  if (!one && (one = malloc(sizeof *one))) {
    *one = (pair){.next = pairs, .alloc = alloc, .free = free};
    pairs = one;
  }
  pthread_mutex_unlock(&lock);
  return one;
}

static attune_status find(const at_library *library, const char *path, const char *name, void *out) {
  if (at_library_function(library, name, out)) return ATTUNE_OK;
  return at_fail(ATTUNE_NOT_FOUND, "%.200s has no function %.100s; should be declared extern \"C\" and exported", path,
                 name);
}

attune_status attune_allocator_load(attune_allocator *out, const char *path, const char *alloc_name,
                                    const char *free_name) {
  at_library library = {0};
  alloc_fn alloc = NULL;
  free_fn free = NULL;
  AT_REQUIRE_AS(out, "point to an attune_allocator");
  AT_TRY(AT_CLEAR(out));
  if (!path || !*path) return AT_INVALID("path is %s; should name a shared object", path ? "empty" : "NULL");
  if (!alloc_name || !free_name)
    return AT_INVALID("%s is NULL; should name a function", alloc_name ? "free_name" : "alloc_name");
  if (at_library_none())
    return at_fail(ATTUNE_UNSUPPORTED,
                   "path %.150s cannot be opened because the program is linked with -static; link it dynamically",
                   path);
  const at_floating floating = at_floating_enter();
  library.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  at_floating_leave(&floating);
  if (!library.handle) {
    const char *why = dlerror();
    return at_fail(ATTUNE_NOT_FOUND, "path %.150s cannot be opened: %.250s", path, why ? why : "no reason given");
  }
  attune_status status = find(&library, path, alloc_name, &alloc);
  if (status == ATTUNE_OK) status = find(&library, path, free_name, &free);
  pair *functions = status == ATTUNE_OK ? keep(alloc, free) : NULL;
  if (!functions) {
    at_library_close(&library);
    return status != ATTUNE_OK ? status : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to record an allocator");
  }
  return AT_GIVE(out, &((attune_allocator){.user = functions, .alloc = call_alloc, .free = call_free}));
}
