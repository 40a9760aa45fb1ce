/* SPDX-License-Identifier: Apache-2.0
 * memory.h: the host backend's memory slots, which host/device.c collects. */
#ifndef AT_HOST_MEMORY_H
#define AT_HOST_MEMORY_H

#include "src/base/backend.h"

attune_status at_host_memory_alloc(attune_device *device, void **out, size_t bytes);
attune_status at_host_memory_free(attune_device *device, void *pointer);
attune_status at_host_memory_info(attune_device *device, uint64_t *out_free, uint64_t *out_total);
attune_status at_host_pinned_alloc(attune_device *device, void **out, size_t bytes);
attune_status at_host_pinned_free(attune_device *device, void *pointer);
attune_status at_host_managed_check(attune_device *device, bool advised);
attune_status at_host_managed_prefetch(attune_stream *stream, void *pointer, size_t bytes, attune_device *to);
attune_status at_host_vm_granularity(attune_device *device, size_t *out);
attune_status at_host_vm_reserve(attune_device *device, void **out, size_t bytes);
void at_host_vm_release(attune_device *device, void *base, size_t bytes);
attune_status at_host_vm_map(attune_device *device, void *address, size_t bytes, uint64_t *out_handle);
attune_status at_host_vm_unmap(attune_device *device, void *address, size_t bytes, uint64_t handle);

#endif
