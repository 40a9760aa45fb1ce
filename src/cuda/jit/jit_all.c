/* SPDX-License-Identifier: Apache-2.0
 * jit_all.c: several kernels at once, each compiled by a thread of its own. Not by the pool of host/threads.h: a
 * compilation takes long, and operations of the host would run alone meanwhile. */
#include "src/cuda/jit/jit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "src/process/floating.h"
#include "src/host/threads.h"

#define HELPERS_MAX 63

typedef struct work {
  at_jit_request *requests;
  attune_device *device;
  int count;
  atomic_int next;
} work;

static void get_one(at_jit_request *request, attune_device *device) {
  request->status = at_jit_get(&request->kernel, device, &request->source);
  request->message[0] = '\0';
  if (request->status != ATTUNE_OK)
    (void)at_copy_text(request->message, sizeof request->message, attune_last_message());
}

static void *get_some(void *pointer) {
  work *w = pointer;
  for (int i = atomic_fetch_add(&w->next, 1); i < w->count; i = atomic_fetch_add(&w->next, 1))
    get_one(&w->requests[i], w->device);
  return NULL;
}

static int start(pthread_t *threads, int wanted, work *w) {
  int started = 0;
  while (started < wanted && at_thread_start(&threads[started], get_some, w) == 0) started++;
  return started;
}

void at_jit_get_all(at_jit_request *requests, int count, attune_device *device) {
  pthread_t threads[HELPERS_MAX];
  work w = {.requests = requests, .device = device, .count = count};
  const at_message kept = at_message_keep();
  int helpers = at_cpu_count() < count ? at_cpu_count() - 1 : count - 1;
  if (helpers > HELPERS_MAX) helpers = HELPERS_MAX;
  const int started = start(threads, helpers, &w);
  (void)get_some(&w);
  for (int i = 0; i < started; i++) (void)pthread_join(threads[i], NULL);
  (void)at_message_settle(&kept, ATTUNE_OK);
}
