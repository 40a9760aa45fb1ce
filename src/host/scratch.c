/* SPDX-License-Identifier: Apache-2.0
 * scratch.c: memory of the calling thread that is kept from call to call. */
#include "src/host/host.h"

#include <pthread.h>
#include <stdlib.h>

#define ALIGNMENT 64
#define GRANULE 4096

static _Thread_local void *scratch;
static _Thread_local size_t scratch_bytes;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its value is `scratch`, so that the end of a thread frees it */
static bool key_made;

/* A destructor of another key may ask for scratch after ours ran: then it starts from nothing. */
static void free_scratch(void *memory) {
  free(memory);
  scratch = NULL;
  scratch_bytes = 0;
}

static void make_key(void) {
  key_made = pthread_key_create(&key, free_scratch) == 0;
}

void *at_host_scratch(size_t bytes) {
  if (AT_LIKELY(bytes <= scratch_bytes && scratch)) return scratch;
  if (bytes > PTRDIFF_MAX - GRANULE) return NULL;
  pthread_once(&key_once, make_key);
  if (!key_made) return NULL;
  size_t rounded = (bytes / GRANULE + 1) * GRANULE;
  free(scratch);
  scratch_bytes = 0;
  scratch = aligned_alloc(ALIGNMENT, rounded);
  if (scratch && pthread_setspecific(key, scratch) == 0) {
    scratch_bytes = rounded;
    return scratch;
  }
  free(scratch);
  scratch = NULL;
  (void)pthread_setspecific(key, NULL);
  return NULL;
}
