/* SPDX-License-Identifier: Apache-2.0
 * pinned.h: page-locked host memory, which the device copies from and to at full speed and asynchronously. It is
 * cached: freed memory serves the next request of similar size. For the host device it is ordinary memory with the same
 * rules. */
#ifndef ATTUNE_PINNED_H
#define ATTUNE_PINNED_H

#include <attune/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `bytes` of host memory into *out, rounded up to a power of two of at least 512, aligned to 512 bytes, for
 * copies to and from `device`; bytes = 0 gives NULL. The caller frees it with attune_pinned_free. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_pinned_alloc(void **out, attune_device *device, size_t bytes);

/* Registers `stream`, of the same device, as a user of the memory. After attune_pinned_free the memory is reused only
 * when the stream has done the work given to it before the free. Errors: INVALID_ARGUMENT, NOT_FOUND (not pinned memory
 * of attune), OUT_OF_MEMORY. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_pinned_record_use(void *pointer, attune_stream *stream);

/* Frees memory of attune_pinned_alloc; never waits. NULL does nothing. Errors: INVALID_ARGUMENT (already freed, or
 * inside an allocation), NOT_FOUND, DEVICE_ERROR. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_pinned_free(void *pointer);

/* Pins the program's own memory (from malloc, mmap, Fortran, MPI ...) in place, for copies to and from all GPUs at full
 * speed and asynchronously. The program still owns it. On the host device nothing has to be pinned: the range is
 * checked and recorded for attune_pointer_get_info. Errors: INVALID_ARGUMENT (no memory there, memory of attune or of a
 * device, part of it already registered), UNSUPPORTED, OUT_OF_MEMORY (also: no more can be locked), DEVICE_ERROR. Any
 * thread; allowed in capture. */
ATTUNE_API attune_status attune_pinned_register(attune_device *device, void *pointer, size_t bytes);

/* Unpins memory of attune_pinned_register; call it before the memory is freed. Work that uses it must be done.
 * `pointer` is the registered start. Errors, after which it is still registered: INVALID_ARGUMENT (inside a registered
 * range), NOT_FOUND (not registered), DEVICE_ERROR. Threads and captures as above. */
ATTUNE_API attune_status attune_pinned_unregister(void *pointer);

/* Statistics of the cache of pinned memory. */
typedef struct attune_pinned_statistics {
  size_t size;                          /* sizeof this struct, or 0 (types.h) */
  attune_memory_figure allocation;      /* held by the program */
  attune_memory_figure allocated_bytes; /* their blocks */
  attune_memory_figure active;          /* held, or freed but still in use by a stream */
  attune_memory_figure active_bytes;
  attune_memory_figure segment; /* taken from the system, cached ones included */
  attune_memory_figure reserved_bytes;
  uint64_t host_allocs, host_frees;
  uint64_t host_alloc_ns, host_free_ns; /* time spent in the driver */
  uint64_t host_alloc_least_ns, host_alloc_most_ns, host_free_least_ns,
      host_free_most_ns; /* minimum and maximum of one call; 0: none yet */
} attune_pinned_statistics;

/* Fills *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_pinned_get_statistics(attune_device *device, attune_pinned_statistics *out);

/* Sets each peak to the current value; `allocated`, `freed` and the plain counters are kept. Errors: INVALID_ARGUMENT.
 * Any thread. */
ATTUNE_API attune_status attune_pinned_reset_peaks(attune_device *device);

/* Sets `allocated`, `freed` and the plain counters to 0; peaks are kept. Errors and threads as above. */
ATTUNE_API attune_status attune_pinned_reset_accumulated(attune_device *device);

/* Returns cached memory that is not in use to the system. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING. Any
 * thread. */
ATTUNE_API attune_status attune_pinned_empty_cache(attune_device *device);

#ifdef __cplusplus
}
#endif
#endif
