/* SPDX-License-Identifier: Apache-2.0
 * memfd_backend.h: the host device with memory that other processes can open, as a GPU's is: each page of an expandable
 * segment is a memfd. */
#ifndef MEMFD_BACKEND_H
#define MEMFD_BACKEND_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/backend.h"
#include "src/host/memory.h"
#include "tests/support/other_process.h"

#define IMPORTED UINT64_MAX

static attune_status map_descriptor(void *address, size_t bytes, int descriptor) {
  void *found = mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
  return found == address ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "mmap: %s", strerror(errno));
}

/* The handle is the descriptor and 1: 0 is none. */
static attune_status memfd_map(attune_device *device, void *address, size_t bytes, uint64_t *out_handle) {
  (void)device;
  int descriptor = memfd_create("page", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, (off_t)bytes) != 0)
    return at_fail(ATTUNE_OUT_OF_MEMORY, "memfd: %s", strerror(errno));
  *out_handle = (uint64_t)descriptor + 1;
  return map_descriptor(address, bytes, descriptor);
}

static attune_status memfd_unmap(attune_device *device, void *address, size_t bytes, uint64_t handle) {
  if (handle != IMPORTED) close((int)handle - 1);
  return at_host_vm_unmap(device, address, bytes, handle);
}

static attune_status memfd_export(attune_device *device, uint64_t handle, int *out_descriptor) {
  (void)device;
  *out_descriptor = fcntl((int)handle - 1, F_DUPFD_CLOEXEC, 0);
  return *out_descriptor >= 0 ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "dup: %s", strerror(errno));
}

static attune_status memfd_import(attune_device *device, void *address, size_t bytes, int descriptor,
                                  uint64_t *out_handle) {
  (void)device;
  *out_handle = IMPORTED;
  return map_descriptor(address, bytes, descriptor);
}

/* Only pages are shared. */
static attune_status no_memory_export(attune_device *device, void *base, unsigned char out_handle[64]) {
  (void)base, (void)out_handle;
  return at_device_lacks(device, AT_TABLE_ipc);
}

static attune_status no_memory_open(attune_device *device, const unsigned char handle[64], void **out_base) {
  (void)handle, (void)out_base;
  return at_device_lacks(device, AT_TABLE_ipc);
}

static attune_status no_memory_close(attune_device *device, void *base) {
  (void)base;
  return at_device_lacks(device, AT_TABLE_ipc);
}

static attune_status no_event_export(attune_event *event, attune_event_ipc *out) {
  (void)out;
  return at_device_lacks(event->device, AT_TABLE_ipc);
}

static attune_status no_event_import(attune_event *event, const attune_event_ipc *handle) {
  (void)handle;
  return at_device_lacks(event->device, AT_TABLE_ipc);
}

static inline attune_device *memfd_host(void) {
  static at_backend_vm vm;
  static const at_backend_ipc ipc = {memfd_export,    memfd_import,    no_memory_export, no_memory_open,
                                     no_memory_close, no_event_export, no_event_import};
  attune_device *host = NULL;
  if (attune_device_get(&host, "host") != ATTUNE_OK) return NULL;
  vm = *host->backend.vm;
  vm.map = memfd_map;
  vm.unmap = memfd_unmap;
  host->backend.vm = &vm;
  host->backend.ipc = &ipc;
  return host;
}

#endif
