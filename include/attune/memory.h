/* SPDX-License-Identifier: Apache-2.0
 * memory.h: stream-ordered device memory, cached: freed memory serves the next request without a call to the device.
 * Also copies and fills. attune works on any pointer that the device can reach; these calls are for programs that have
 * no allocator of their own.
 *
 * Memory belongs to the stream that it was allocated on, and work on that stream may use it at once. Freed memory is
 * available to that stream's next requests immediately, since they come later in stream order. A second stream that
 * uses the memory must wait for an event of the first and must be registered with attune_record_use; the memory is then
 * reused only after that stream is done with it. On the host, the calling thread may also access the memory once the
 * streams that use it are done.
 *
 * In a function run by attune_stream_call on the host, memory of another stream can be allocated and freed while
 * `backend` is caching and neither poison nor a program allocator is in use. No cached memory is returned to the system
 * there: a request that would need that fails with OUT_OF_MEMORY, and attune_memory_empty_cache with INVALID_ARGUMENT.
 * On CUDA these calls must not be made there. In a forked child they fail with DEVICE_ERROR for a CUDA device.
 *
 * The environment variable ATTUNE_ALLOC and attune_memory_configure take "key:value,key:value". Keys:
 * - backend: caching (or native, PyTorch's name for it); none: every call goes to the device, for memory checkers;
 *   cudaMallocAsync: every call goes to the driver's own stream-ordered allocator (the device's default pool), except
 *   for allocations during a capture. On a device without one, such as the host, ATTUNE_ALLOC ignores cudaMallocAsync
 *   and attune_memory_configure fails with UNSUPPORTED. Default caching.
 * - expandable_segments: true: segments grow and shrink in place in reserved address space, which limits fragmentation.
 *   Default true where the device has virtual memory management. CUDA's own copies of such memory (cudaMemcpyAsync)
 *   fail with cudaErrorInvalidValue unless its device is the thread's current one (cudaSetDevice). attune_copy does not
 *   have this restriction, nor do CUDA's copies with expandable_segments:false.
 * - max_split_size_mb: blocks of at least this size, a number above 20, are never split. Default: all blocks may be
 *   split.
 * - max_non_split_rounding_mb: how much larger than the request such a block may be, a number above 20. Default 20,
 *   which can only be had by omitting the key.
 * - large_segment_size_mb: size of the segment allocated for a request of 1 to 10 MB, at least 2. Default 20. Without
 *   expandable segments, a stream that holds more than 8 times as much allocates an eighth of what it holds at a time,
 *   at most 64 MB, if the device has that much.
 * - roundup_power2_divisions: n, or [256:1,512:2,>:4]: sizes of at least so many MB are rounded up to a multiple of 1/n
 *   of the power of two below them. n is a power of two up to 64; 1 disables rounding.
 * - garbage_collection_threshold: a fraction of the limit, above which unused segments are returned to the device,
 *   oldest first. Default: never.
 * - per_process_memory_fraction: fraction of the device's memory that may be allocated. Default: all.
 * - pinned_use_cuda_host_register: true: pinned memory (pinned.h) is allocated as ordinary memory, touched, then
 *   registered with CUDA. Default false.
 * - pinned_num_register_threads: number of threads that touch it, a power of two up to 128. Default 1.
 * - pinned_reserve_segment_size_mb: the first request for pinned memory reserves this much, and requests that fit are
 *   cut from it until it is used up; it is never returned. Default: none.
 * - pinned_max_cached_size_mb: pinned blocks larger than this are returned to the system once free. Default: all are
 *   kept.
 * - pinned_max_round_threshold_mb: requests for pinned memory larger than this are rounded up to pages, not to a power
 *   of two.
 * - PyTorch's other keys (release_lock_on_cudamalloc, graph_capture_record_stream_reuse, throw_on_cudamalloc_oom,
 *   pinned_use_background_threads) are accepted and ignored, with one warning each in the log.
 * - poison: true: freed memory that stays cached is filled with 0xfa and, on the host, checked when it is reused.
 *   Default false.
 * - nvtx: true: segments and the program's allocations in them are reported to tools that support NVTX's memory
 *   extension, so that compute-sanitizer finds a use after free inside the cache. Segments are then not expandable,
 *   every call takes the slow path, a free waits for its stream, and poison must be off. CUDA only: on the host,
 *   ATTUNE_ALLOC ignores it and attune_memory_configure fails with UNSUPPORTED. Default false.
 *
 * A value out of range is INVALID_ARGUMENT; the message names the key, the value and the range. */
#ifndef ATTUNE_MEMORY_H
#define ATTUNE_MEMORY_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `bytes` of memory on the stream's device into *out, aligned to 256 bytes and uninitialized; bytes = 0 gives
 * NULL. It may be used at once by work given to `stream`. The caller frees it with attune_free. Errors:
 * INVALID_ARGUMENT (also: a bad ATTUNE_ALLOC; a negative number converted to size_t), OUT_OF_MEMORY (the message says
 * how much is allocated, cached and free, or that the request exceeds the device's memory), DEVICE_ERROR, CAPTURING
 * (the program itself captures the stream; in a capture of attune_graph the memory comes from the graph's pool). Any
 * thread that may use the stream. */
ATTUNE_API attune_status attune_alloc(void **out, attune_stream *stream, size_t bytes);

/* Frees memory of attune_alloc, from any stream of its device. It is reused only after the work given so far to its own
 * stream, to `stream`, and to the streams registered with attune_record_use. Never waits, unless the memory is returned
 * at once: with backend none, and with a program allocator on the host. NULL does nothing. Errors, after which nothing
 * is freed: INVALID_ARGUMENT (already freed; not the start of an allocation; another device's), NOT_FOUND (not memory
 * of attune), DEVICE_ERROR. Allowed in a capture. */
ATTUNE_API attune_status attune_free(void *pointer, attune_stream *stream);

/* Registers `stream` as a user of the memory: after attune_free the memory is reused only when that stream has done the
 * work given to it before the free. Not needed for the memory's own stream. Errors: those of attune_free,
 * OUT_OF_MEMORY. Allowed in a capture. */
ATTUNE_API attune_status attune_record_use(void *pointer, attune_stream *stream);

/* Sets *out_base to the start of the allocation at `pointer`, a result of attune_alloc, and *out_bytes to its usable
 * size: the requested size rounded up, or exactly the requested size without a cache (backend none or cudaMallocAsync,
 * a program allocator). Either may be NULL. Errors: those of attune_free. Any thread. */
ATTUNE_API attune_status attune_memory_range(const void *pointer, void **out_base, size_t *out_bytes);

/* Copies `bytes` from `source` to `destination` in stream order. On a GPU's stream either may be host memory or memory
 * of any GPU of the process; preferably the stream's GPU owns one of the two. A copy between two GPUs is direct if they
 * are peers (attune_device_enable_peer) and otherwise goes through the host; order it against other streams' work with
 * events. In a capture the two must be peers. On a host stream both must be host memory. The ranges must not overlap.
 * Pageable host memory may make the call wait. 0 bytes: does nothing. Errors: INVALID_ARGUMENT (also: the ranges
 * overlap), BUSY (it would have to wait, see attune_set_sync_debug), DEVICE_ERROR. Allowed in capture. The thread that
 * uses the stream. */
ATTUNE_API attune_status attune_copy(attune_stream *stream, void *destination, const void *source, size_t bytes);

/* Sets `bytes` bytes at `destination` to `value` (0-255) in stream order. 0 bytes: does nothing. Errors:
 * INVALID_ARGUMENT, DEVICE_ERROR. Allowed in capture. The thread that uses the stream. */
ATTUNE_API attune_status attune_fill(attune_stream *stream, void *destination, int value, size_t bytes);

/* Returns all cached memory that is not in use to the device; waits for the device's work. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR, CAPTURING (a capture of attune_graph is in progress on the device). Any thread. */
ATTUNE_API attune_status attune_memory_empty_cache(attune_device *device);

/* Limits the bytes that the device's allocator may take from the device, including cached memory; 0: no limit. Memory
 * already taken is kept. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_memory_set_limit(attune_device *device, uint64_t bytes);

/* Sets the limit as a fraction of the device's memory, above 0 and at most 1. Errors and threads as above. */
ATTUNE_API attune_status attune_memory_set_fraction(attune_device *device, double fraction);

/* Sets *out to the fraction of the device's memory that the allocator may take; a limit in bytes is converted. 1: no
 * limit. Errors and threads as above. */
ATTUNE_API attune_status attune_memory_get_fraction(attune_device *device, double *out);

/* Changes settings of the device's allocator (the keys above); those not named are kept. `backend` may change at any
 * time, except with poison: allocations stay valid, and cached memory is returned to the device. `poison`, `nvtx` and
 * `expandable_segments` can change only while the allocator holds no memory. Errors: INVALID_ARGUMENT (names key and
 * value), BUSY, UNSUPPORTED (the device has no virtual memory management, NVTX or driver allocator). Any thread. */
ATTUNE_API attune_status attune_memory_configure(attune_device *device, const char *text);

/* A program-supplied allocator. `alloc` returns NULL on failure; attune_alloc returns its memory unchanged, so `alloc`
 * determines the alignment: kernels are fastest at multiples of 256 bytes. `free` receives the same pointer and size.
 * If the allocator replaces a GPU's, `free` is called when the program frees, while earlier work of the stream may
 * still use the memory: it must free in stream order, as cudaFreeAsync does, or wait, as cudaFree does. If it replaces
 * the host's, `free` is called when the program frees, after the device's work, for which attune_free waits; for a
 * pool, when a segment is returned, also after the device's work. `stream` is the memory's own stream, NULL once that
 * is destroyed; attune_stream_destroy waits for calls of `free` that were passed the stream. All functions may be
 * called from any thread, never while attune holds a lock, and must not use attune's memory calls. `init` and `reset`
 * may be NULL: attune_memory_set_allocator calls `init` once before the allocator takes effect and returns its status
 * if it is not OK; attune_memory_empty_cache calls `reset`, for an allocator with a cache of its own. Both are for a
 * device's allocator, not a pool's. */
typedef struct attune_allocator {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  void *user;
  void *(*alloc)(void *user, size_t bytes, attune_device *device, attune_stream *stream);
  void (*free)(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *stream);
  attune_status (*init)(void *user, attune_device *device);
  void (*reset)(void *user, attune_device *device);
} attune_allocator;

/* Routes every attune_alloc and attune_free of `device` to *allocator (copied; NULL: attune's own again), without a
 * cache. Errors: INVALID_ARGUMENT, BUSY (the device's allocator holds memory; free it and empty the cache first), and
 * those of `init`. Any thread. */
ATTUNE_API attune_status attune_memory_set_allocator(attune_device *device, const attune_allocator *allocator);

/* Copies the allocator set by attune_memory_set_allocator to *out; its functions are NULL if attune's own is in use.
 * Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_memory_get_allocator(attune_device *device, attune_allocator *out);

/* Sets *out to the backend of `device`, a constant string: "caching", "none", "cudaMallocAsync" (the key `backend`), or
 * "program" (attune_memory_set_allocator). Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_memory_get_backend(attune_device *device, const char **out);

/* Loads an allocator from a shared library into *out, for attune_memory_set_allocator or a pool's options. The
 * functions have the signatures of PyTorch's pluggable allocators, so libraries written for those work:
 *   void *alloc(ssize_t bytes, int device, cudaStream_t stream);
 *   void free(void *pointer, ssize_t bytes, int device, cudaStream_t stream);
 * `device` is the number of cuda:N, 0 for the host, where `stream` is NULL. Segments of a pool get the stream of the
 * request that they are allocated for. The library stays loaded. path: as for dlopen. Errors: INVALID_ARGUMENT,
 * NOT_FOUND (the library or one of its functions; the message says why), UNSUPPORTED (in a program linked with
 * -static), OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_allocator_load(attune_allocator *out, const char *path, const char *alloc_name,
                                               const char *free_name);

/* Called when the cache has no block for a request of `bytes`, before more is taken from the device. It may free memory
 * with attune_free, and returns nonzero if it did. It runs in the allocating thread, with no lock of attune held. */
typedef int (*attune_memory_callback)(void *user, attune_device *device, size_t bytes);

/* Adds a callback; at most 8 per device. Errors: INVALID_ARGUMENT, BUSY (8 already). Any thread. */
ATTUNE_API attune_status attune_memory_add_callback(attune_device *device, attune_memory_callback callback, void *user);

/* Removes a callback. Errors: INVALID_ARGUMENT, NOT_FOUND. Any thread. */
ATTUNE_API attune_status attune_memory_remove_callback(attune_device *device, attune_memory_callback callback,
                                                       void *user);

/* A failed request and the state of memory at that moment. */
typedef struct attune_memory_failure {
  size_t requested_bytes;
  uint64_t allocated_bytes, reserved_bytes; /* held by the program; taken from the device */
  uint64_t limit_bytes;                     /* UINT64_MAX: none */
  uint64_t free_bytes, total_bytes;         /* of the device; 0: unknown */
} attune_memory_failure;

/* Called when a request fails with OUT_OF_MEMORY, after attune has tried everything, in the requesting thread and with
 * no lock of attune held: to write a snapshot, for example. *failure is valid only during the call. It may free and
 * allocate; a request that fails inside the call is not reported to observers. */
typedef void (*attune_memory_observer)(void *user, attune_device *device, const attune_memory_failure *failure);

/* Adds an observer; at most 8 per device. Errors: INVALID_ARGUMENT, BUSY (8 already). Any thread. */
ATTUNE_API attune_status attune_memory_add_observer(attune_device *device, attune_memory_observer observer, void *user);

/* Removes an observer; a call of it may still be in progress in another thread. Errors: INVALID_ARGUMENT, NOT_FOUND.
 * Any thread. */
ATTUNE_API attune_status attune_memory_remove_observer(attune_device *device, attune_memory_observer observer,
                                                       void *user);

/* A counter: its current value, the peak since the last reset, and the totals added and removed since then. */
typedef struct attune_memory_figure {
  uint64_t current, peak, allocated, freed;
} attune_memory_figure;

/* Indices of the arrays of figures. SMALL: memory in segments for small requests: up to 1 MiB, or up to 256 KiB once a
 * stream's expandable segment for large ones has 320 MiB. LARGE: all other memory. ALL: both. */
enum { ATTUNE_MEMORY_ALL = 0, ATTUNE_MEMORY_SMALL = 1, ATTUNE_MEMORY_LARGE = 2 };

/* Statistics of the device's allocator. */
typedef struct attune_memory_statistics {
  size_t size;                             /* sizeof this struct, or 0 (types.h) */
  attune_memory_figure allocation[3];      /* allocations that the program holds */
  attune_memory_figure allocated_bytes[3]; /* their blocks */
  attune_memory_figure requested_bytes[3]; /* as requested */
  attune_memory_figure active[3];          /* held, or freed but still in use by another stream */
  attune_memory_figure active_bytes[3];
  attune_memory_figure segment[3]; /* taken from the device, empty expandable ones included */
  attune_memory_figure reserved_bytes[3];
  /* Free pieces of partly used segments, which cannot be returned. Expandable segments have none: their free parts are
   * returned in steps of large_segment_size_mb. So this is 0 with the default settings where the device has virtual
   * memory management. */
  attune_memory_figure inactive_split[3];
  attune_memory_figure inactive_split_bytes[3];
  attune_memory_figure oversize_allocations, oversize_segments;
  uint64_t alloc_retries;    /* times the cache was returned and the device asked again */
  uint64_t out_of_memory;    /* failed requests */
  uint64_t limit_rejections; /* of these, those refused by the limit rather than by the device */
  uint64_t synchronizations; /* waits for all freed memory still used by other streams */
  uint64_t device_allocs, device_frees;
  uint64_t limit_bytes, max_split_bytes; /* UINT64_MAX: none */
} attune_memory_statistics;

/* Fills *out with figures of one moment. With one stream peaks are exact. With several active streams, a peak of the
 * program's allocations may be too high by the contents of the streams' own small caches at that moment; it is never
 * too low. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_memory_get_statistics(attune_device *device, attune_memory_statistics *out);

/* Sets each peak to the current value; `allocated`, `freed` and the plain counters are kept. Errors: INVALID_ARGUMENT.
 * Any thread. */
ATTUNE_API attune_status attune_memory_reset_peaks(attune_device *device);

/* Sets `allocated`, `freed` and the plain counters to 0; peaks are kept. Errors and threads as above. */
ATTUNE_API attune_status attune_memory_reset_accumulated(attune_device *device);

/* Formats the statistics as a multi-line table for people into *out, which the caller releases with free(). brief
 * nonzero: four rows only, bytes and counts of what is allocated and what is taken from the device. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_summary(char **out, attune_device *device, int brief);

/* Writes every segment and block and the recorded history (attune_memory_record_history of snapshot.h) as one JSON
 * object into *out, which the caller releases with free(): "segments", "device_traces", "allocator_settings" and
 * "external_annotations" as in torch.cuda.memory._snapshot(). attune_memory_snapshot_save (snapshot.h) writes it to a
 * file. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_snapshot(char **out, attune_device *device);

/* Labels what the calling thread is doing. Each history entry keeps the first 31 bytes without those that are not
 * printable ASCII. NULL or "" removes the label. Any thread. */
ATTUNE_API void attune_memory_annotate(const char *text);

/* A handle to memory of this process for another process to open; CUDA only. Plain bytes, which may be sent in any
 * way. */
typedef struct attune_memory_handle {
  unsigned char base[64]; /* the segment's, or the pages' */
  uint64_t offset, bytes; /* of the memory in it */
} attune_memory_handle;

/* Fills *out for memory of attune_alloc, to be sent to another process of this user on this machine. The memory must
 * stay allocated as long as others use it. Memory of expandable segments can be opened only while this process runs:
 * the first export starts a thread that passes file descriptors to processes of the same user over an abstract Unix
 * socket. Both processes must therefore be in one network namespace (one container, or one pod). Opened memory stays
 * open when this process ends. Memory of a program allocator can be exported if it came from cudaMalloc. Errors: those
 * of attune_free, UNSUPPORTED (the host; memory of a program allocator or of the driver's that CUDA does not export; a
 * driver without such descriptors), IO_ERROR, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_export(attune_memory_handle *out, const void *pointer);

/* Opens another process's memory on `device` into *out. Close it with attune_memory_close, not attune_free. Memory
 * opened twice is mapped once and reference-counted. Errors: INVALID_ARGUMENT (also a damaged handle or one of this
 * process), NOT_FOUND (the memory was freed, or the process has ended or is in another network namespace), PERMISSION
 * (it belongs to another user), BUSY (no answer from the process for 20 seconds), UNSUPPORTED, DEVICE_ERROR,
 * OUT_OF_MEMORY, IO_ERROR. Any thread. */
ATTUNE_API attune_status attune_memory_import(void **out, attune_device *device, const attune_memory_handle *handle);

/* Closes memory of attune_memory_import; the last close of an allocation waits for the device's work. NULL does
 * nothing. Errors, after which the memory is still open: INVALID_ARGUMENT (also: not open on `device`), DEVICE_ERROR,
 * CAPTURING. Any thread. */
ATTUNE_API attune_status attune_memory_close(void *pointer, attune_device *device);

#ifdef __cplusplus
}
#endif
#endif
