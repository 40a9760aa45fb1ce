/* SPDX-License-Identifier: Apache-2.0
 * pointer.h: classifies a pointer: memory of attune, of CUDA, or of the program itself. */
#ifndef ATTUNE_POINTER_H
#define ATTUNE_POINTER_H

#include <attune/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kind of memory: its location and who may access it. */
typedef enum attune_memory_kind {
  ATTUNE_KIND_UNKNOWN = 0, /* no memory known to attune, a driver or the process */
  ATTUNE_KIND_HOST = 1,    /* only for the CPU: malloc, a stack, attune_alloc on the host device */
  ATTUNE_KIND_PINNED =
      2, /* CPU memory locked for GPUs: attune_pinned_alloc, attune_pinned_register, cudaHostAlloc. For the host device:
            memory of its pinned calls, which is ordinary memory */
  ATTUNE_KIND_MANAGED = 3, /* migrates between CPU and GPUs: a pool with `managed`, cudaMallocManaged */
  ATTUNE_KIND_DEVICE = 4   /* of a GPU */
} attune_memory_kind;

/* Result of attune_pointer_get_info. */
typedef struct attune_pointer_info {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_memory_kind kind;
  attune_device *device; /* the device that owns it, or on which it was pinned or made; NULL: none or unknown.
                            Borrowed */
  void *base;            /* of the allocation that contains the address; NULL: none, or unknown (malloc) */
  size_t bytes;          /* size of that allocation; attune's are rounded up */
  int held; /* 1: allocated or registered by attune and still held by the program. 0 with a device and no base: memory
               of attune's cache that was freed or never handed out */
} attune_pointer_info;

/* Fills *out for the memory at `pointer`, which may be any address, including inside an allocation or in another
 * library's memory. The result is a snapshot. Creates no GPU context. May take 100 us for memory that is neither
 * attune's nor CUDA's. A NULL pointer is of kind unknown. Errors: INVALID_ARGUMENT (out is NULL). Any thread; allowed
 * in capture. CUDA is not queried in a forked child, nor after a device is lost. */
ATTUNE_API attune_status attune_pointer_get_info(attune_pointer_info *out, const void *pointer);

#ifdef __cplusplus
}
#endif
#endif
