/* SPDX-License-Identifier: Apache-2.0
 * pools.c: memory of one phase of a program in a pool of its own, a graph's pool, and allocators that the program
 * brings. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 16 };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

static int show_pool(void *user, const attune_pool_info *info) {
  ++*(int *)user;
  printf("pool {%llu, %llu}: %llu bytes in %zu segments\n", (unsigned long long)info->id[0],
         (unsigned long long)info->id[1], (unsigned long long)info->reserved_bytes, info->segments);
  return 0;
}

/* Memory from the pool, then what is known of all pools. */
static int use_pool(attune_device *device, attune_stream *stream) {
  attune_pool *pool = NULL, *graph_pool = NULL;
  attune_graph *graph = NULL;
  attune_pool_info info = {0};
  void *memory = NULL;
  char *snapshot = NULL;
  int pools = 0;
  check(attune_pool_create(&pool, device, NULL));
  check(attune_pool_begin(pool, stream));
  check(attune_alloc(&memory, stream, BYTES));
  check(attune_pool_end(pool, stream));
  check(attune_pool_get_info(pool, &info));
  check(attune_graph_create(&graph, device));
  check(attune_graph_pool(graph, &graph_pool)); /* which other graphs may be captured with */
  check(attune_memory_each_pool(device, show_pool, &pools));
  check(attune_pool_snapshot(&snapshot, pool));
  printf("%zu characters of JSON have this pool's segments\n", strlen(snapshot));
  free(snapshot);
  check(attune_free(memory, stream));
  attune_pool_destroy(graph_pool);
  attune_graph_destroy(graph);
  attune_pool_destroy(pool); /* its segments serve other requests */
  return info.allocated_bytes >= BYTES && pools == 2;
}

/* ---- an allocator of the program: counts what is held ---- */

static void *count_alloc(void *user, size_t bytes, attune_device *device, attune_stream *stream) {
  (void)device, (void)stream;
  ++*(int *)user;
  return malloc(bytes);
}

static void count_free(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *stream) {
  (void)bytes, (void)device, (void)stream;
  --*(int *)user;
  free(pointer);
}

/* Works with this allocator for a while; returns whether all memory came from it, and sets the name of the backend. */
static int use_allocator(attune_device *host, const attune_allocator *allocator, const char **backend) {
  attune_stream *stream = attune_stream_default(host);
  attune_allocator set = {0};
  unsigned char *memory = NULL;
  check(attune_memory_empty_cache(host)); /* there must be no memory of the allocator before */
  check(attune_memory_set_allocator(host, allocator));
  check(attune_memory_get_allocator(host, &set));
  check(attune_memory_get_backend(host, backend));
  check(attune_alloc((void **)&memory, stream, BYTES));
  check(attune_fill(stream, memory, 7, BYTES));
  const int good = set.alloc == allocator->alloc && memory[BYTES - 1] == 7;
  check(attune_free(memory, stream));
  check(attune_memory_set_allocator(host, NULL));
  return good;
}

int main(void) {
  attune_device *device = NULL, *host = NULL;
  attune_stream *stream = NULL;
  attune_allocator loaded = {0};
  const char *backend = NULL;
  int held = 0;
  check(attune_device_get(&device, "best"));
  check(attune_device_get(&host, "host"));
  check(attune_stream_create(&stream, device));
  int good = use_pool(device, stream);
  attune_stream_destroy(stream);

  const attune_allocator counted = {.user = &held, .alloc = count_alloc, .free = count_free};
  good = use_allocator(host, &counted, &backend) && held == 0 && good;
  printf("the host's memory came from the backend \"%s\"\n", backend);
  /* A library for PyTorch's pluggable allocators has functions of more arguments; these do not read them. */
  if (attune_allocator_load(&loaded, "libc.so.6", "malloc", "free") == ATTUNE_OK)
    good = use_allocator(host, &loaded, &backend) && good;
  return good && strcmp(backend, "program") == 0 ? 0 : 1;
}
