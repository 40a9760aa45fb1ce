/* SPDX-License-Identifier: Apache-2.0
 * memory.c: raw memory of the host: from the C library, and address space that pages are mapped to and taken from. */
#include "src/host/memory.h"

#include "src/host/host.h"
#include "src/host/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT ((size_t)4096)
#define GRANULARITY ((size_t)2 << 20)

attune_status at_host_memory_alloc(attune_device *device, void **out, size_t bytes) {
  *out = NULL;
  if (bytes < GRANULARITY || bytes > PTRDIFF_MAX) {
    if (bytes <= PTRDIFF_MAX && posix_memalign(out, ALIGNMENT, bytes) == 0) return ATTUNE_OK;
  } else {
    *out = at_alloc_large(bytes);
    if (*out) return ATTUNE_OK;
  }
  *out = NULL;
  return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu bytes on %s", bytes, device->name);
}

attune_status at_host_memory_free(attune_device *device, void *pointer) {
  (void)device;
  at_queue_wait_all();
  free(pointer);
  return ATTUNE_OK;
}

/* What the kernel thinks can be had without swapping; on failure the free pages, which are fewer. */
attune_status at_host_memory_info(attune_device *device, uint64_t *out_free, uint64_t *out_total) {
  long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  unsigned long long kibibytes = 0;
  char line[128];
  *out_total = device->properties.memory_bytes;
  *out_free = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
  FILE *file = fopen("/proc/meminfo", "re");
  if (!file) return ATTUNE_OK;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "MemAvailable: %llu kB", &kibibytes) != 1) continue;
    *out_free = (uint64_t)kibibytes << 10;
    break;
  }
  fclose(file);
  return ATTUNE_OK;
}

attune_status at_host_pinned_alloc(attune_device *device, void **out, size_t bytes) {
  return at_host_memory_alloc(device, out, bytes);
}

attune_status at_host_pinned_free(attune_device *device, void *pointer) {
  (void)device;
  free(pointer);
  return ATTUNE_OK;
}

/* All memory of the host is the CPU's. */
attune_status at_host_managed_check(attune_device *device, bool advised) {
  (void)device;
  (void)advised;
  return ATTUNE_OK;
}

typedef struct pages {
  char *begin;
  size_t bytes;
} pages;

/* A kernel before Linux 5.14 has no such advice: then the pages come when they are used. */
static void run_prefetch(const void *args) {
  const pages *p = args;
#ifdef MADV_POPULATE_WRITE
  (void)madvise(p->begin, p->bytes, MADV_POPULATE_WRITE);
#else
  (void)madvise(p->begin, p->bytes, MADV_WILLNEED);
#endif
}

attune_status at_host_managed_prefetch(attune_stream *stream, void *pointer, size_t bytes, attune_device *to) {
  (void)to;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)pointer / page * page;
  const pages p = {(char *)begin, ((uintptr_t)pointer - begin + bytes + page - 1) / page * page};
  return at_host_submit(stream, run_prefetch, &p, sizeof p);
}

attune_status at_host_vm_granularity(attune_device *device, size_t *out) {
  (void)device;
  *out = GRANULARITY;
  return ATTUNE_OK;
}

/* More is mapped than asked for, so that the base can be put on a multiple of the granularity; the edges go back at
 * once. */
attune_status at_host_vm_reserve(attune_device *device, void **out, size_t bytes) {
  *out = NULL;
  char *all = bytes > PTRDIFF_MAX - GRANULARITY
                  ? MAP_FAILED
                  : mmap(NULL, bytes + GRANULARITY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED)
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no address space for %zu bytes on %s", bytes, device->name);
  size_t before = (GRANULARITY - (uintptr_t)all % GRANULARITY) % GRANULARITY;
  if (before) (void)munmap(all, before);
  if (GRANULARITY > before) (void)munmap(all + before + bytes, GRANULARITY - before);
  *out = all + before;
  return ATTUNE_OK;
}

void at_host_vm_release(attune_device *device, void *base, size_t bytes) {
  (void)device;
  (void)munmap(base, bytes);
}

attune_status at_host_vm_map(attune_device *device, void *address, size_t bytes, uint64_t *out_handle) {
  *out_handle = 1;
  if (mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0)
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu bytes on %s: %s", bytes, device->name, strerror(errno));
  (void)madvise(address, bytes, MADV_HUGEPAGE); /* advice: without it only slower */
  return ATTUNE_OK;
}

/* A fresh mapping over the old one gives the pages back and takes the rights away in one step. */
attune_status at_host_vm_unmap(attune_device *device, void *address, size_t bytes, uint64_t handle) {
  (void)handle;
  at_queue_wait_all();
  void *fresh = mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (fresh == address) return ATTUNE_OK;
  return at_fail(ATTUNE_DEVICE_ERROR, "%zu bytes cannot be unmapped on %s: %s", bytes, device->name, strerror(errno));
}
