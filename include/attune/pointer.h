/* SPDX-License-Identifier: Apache-2.0
 * pointer.h: what a pointer is: memory of attune, of CUDA, or of the program itself. */
#ifndef ATTUNE_POINTER_H
#define ATTUNE_POINTER_H

#include <attune/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where memory lies, and who may use it. */
typedef enum attune_memory_kind {
  ATTUNE_KIND_UNKNOWN = 0, /* there is no memory at the address that attune, a driver or the process knows */
  ATTUNE_KIND_HOST = 1,    /* of the CPU alone: malloc, a stack, attune_alloc on the host device */
  ATTUNE_KIND_PINNED =
      2, /* of the CPU, locked for GPUs: attune_pinned_alloc, attune_pinned_register, cudaHostAlloc. For
                              the host device: what its pinned calls gave, which is plain memory */
  ATTUNE_KIND_MANAGED = 3, /* moves between CPU and GPUs: a pool with `managed`, cudaMallocManaged */
  ATTUNE_KIND_DEVICE = 4   /* of a GPU */
} attune_memory_kind;

/* The answer. */
typedef struct attune_pointer_info {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_memory_kind kind;
  attune_device *device; /* that it is memory of, or was pinned or made on; NULL: not known, none. Borrowed */
  void *base;            /* of the allocation that the address lies in; NULL: in none, or not known (malloc) */
  size_t bytes;          /* of that allocation; attune's are rounded up */
  int held; /* 1: attune gave or registered it, and the program still has it. 0 with a device and no base: memory
                            of attune's cache that was freed, or never handed out */
} attune_pointer_info;

/* Says what lies at `pointer`, which may be any address, also inside an allocation and of another library. The answer is
 * that of the moment. Makes no context on a GPU. May take 100 us for memory that is neither attune's nor CUDA's. A
 * NULL pointer is of kind unknown. Errors: INVALID_ARGUMENT (out is NULL). Any thread; allowed in capture. CUDA is not asked
 * in a child of fork, nor after a device is lost. */
ATTUNE_API attune_status attune_pointer_get_info(attune_pointer_info *out, const void *pointer);

#ifdef __cplusplus
}
#endif
#endif
