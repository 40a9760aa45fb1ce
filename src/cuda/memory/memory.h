/* SPDX-License-Identifier: Apache-2.0
 * memory.h: the CUDA backend's slots for memory beyond plain allocation, which cuda/device/device.c collects. */
#ifndef AT_CUDA_MEMORY_H
#define AT_CUDA_MEMORY_H

#include "src/base/backend.h"

/* memory.c */
attune_status at_cuda_memory_info(attune_device *device, uint64_t *out_free, uint64_t *out_total);
attune_status at_cuda_async_check(attune_device *device);
attune_status at_cuda_alloc_async(attune_stream *stream, void **out, size_t bytes);
attune_status at_cuda_free_async(attune_stream *stream, void *pointer);
attune_status at_cuda_pinned_alloc(attune_device *device, void **out, size_t bytes);
attune_status at_cuda_pinned_free(attune_device *device, void *pointer);
attune_status at_cuda_ipc_export(attune_device *device, void *base, unsigned char out_handle[64]);
attune_status at_cuda_ipc_open(attune_device *device, const unsigned char handle[64], void **out_base);
attune_status at_cuda_ipc_close(attune_device *device, void *base);

/* copy.c */
attune_status at_cuda_copy(attune_stream *stream, void *destination, const void *source, size_t bytes);
attune_status at_cuda_copy_between(attune_stream *stream, void *destination, const attune_device *to,
                                   const void *source, const attune_device *from, size_t bytes);
attune_status at_cuda_copy_rows(attune_stream *stream, void *destination, size_t destination_pitch, const void *source,
                                size_t source_pitch, size_t bytes, size_t rows);
attune_status at_cuda_copy_box(attune_stream *stream, const attune_box_copy *copy);

/* pointer.c */
attune_status at_cuda_pointer_info(attune_device *device, attune_pointer_info *out, const void *pointer);
attune_status at_cuda_pinned_register(attune_device *device, void *pointer, size_t bytes);
attune_status at_cuda_pinned_unregister(attune_device *device, void *pointer);

/* managed.c */
attune_status at_cuda_managed_check(attune_device *device, bool advised);
attune_status at_cuda_managed_alloc(attune_device *device, void **out, size_t bytes);
attune_status at_cuda_managed_advise(attune_device *device, void *pointer, size_t bytes,
                                     const attune_managed_options *o);
attune_status at_cuda_managed_prefetch(attune_stream *stream, void *pointer, size_t bytes, attune_device *to);
attune_status at_cuda_managed_state(attune_device *device, attune_managed_state *out, const void *pointer,
                                    size_t bytes);

/* fill.c */
attune_status at_cuda_fill_box(attune_stream *stream, const attune_box_fill *fill);

/* cuda/device/annotate.c: in a toolkit that has NVTX's memory extension */
#if __has_include(<nvtx3/nvToolsExtMem.h>)
#define AT_CUDA_NVTX
void *at_cuda_note_segment(attune_device *device, const void *base, size_t bytes);
void at_cuda_forget_segment(attune_device *device, void *note);
void at_cuda_note_block(attune_device *device, void *note, const void *address, size_t bytes);
void at_cuda_forget_block(attune_device *device, void *note, const void *address);
#endif

/* virtual_memory.c */
attune_status at_cuda_vm_granularity(attune_device *device, size_t *out);
attune_status at_cuda_vm_reserve(attune_device *device, void **out, size_t bytes);
void at_cuda_vm_release(attune_device *device, void *base, size_t bytes);
attune_status at_cuda_vm_map(attune_device *device, void *address, size_t bytes, uint64_t *out_handle);
attune_status at_cuda_vm_unmap(attune_device *device, void *address, size_t bytes, uint64_t handle);
attune_status at_cuda_vm_export(attune_device *device, uint64_t handle, int *out_descriptor);
attune_status at_cuda_vm_import(attune_device *device, void *address, size_t bytes, int descriptor,
                                uint64_t *out_handle);

/* Work of `reader` may use what is mapped on `device` from now on, and what will be. */
attune_status at_cuda_vm_let_in(attune_device *device, const attune_device *reader);
/* Or may not any more. */
attune_status at_cuda_vm_shut_out(attune_device *device, const attune_device *reader);

#endif
