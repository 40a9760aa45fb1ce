/* SPDX-License-Identifier: Apache-2.0
 * memory.h: memory of a device, in stream order and cached: freed memory serves the next request without a call of the
 * device. Also copies and fills. attune works on any pointer that the device can reach; these calls are for programs
 * that have no allocator of their own.
 *
 * Memory belongs to the stream that it was allocated on. Work given to that stream may use it at once. Once freed, it
 * serves that stream's next requests at once, since they come later in the stream's order. A second stream that uses
 * the memory must wait for an event of the first, and must be named with attune_record_use; freed memory is then used
 * again only when that stream is done with it. On the host the calling thread itself may touch the memory once the
 * streams that use it are done.
 *
 * In a function of attune_stream_call on the host, memory of another stream can be taken and freed while backend is
 * caching and neither poison nor an allocator of the program is in use, but nothing cached goes back to the system: a
 * request that would need that fails with OUT_OF_MEMORY, attune_memory_empty_cache with INVALID_ARGUMENT. On CUDA do not
 * make these calls there. In a child of fork they fail with DEVICE_ERROR for a CUDA device.
 *
 * The environment variable ATTUNE_ALLOC and attune_memory_configure take "key:value,key:value". The keys:
 * - backend: caching (or native, PyTorch's word for it), none: every call goes to the device, for memory checkers, or
 *   cudaMallocAsync: every call goes to the driver's own stream-ordered allocator (its default pool of the device), but
 *   what is allocated while a capture is under way. On a device without one, as the host, ATTUNE_ALLOC changes
 *   nothing by it and attune_memory_configure fails with UNSUPPORTED. Default caching.
 * - expandable_segments: true: segments grow and shrink in place in reserved addresses, so that little is lost to gaps.
 *   Default true where the device has virtual memory. CUDA's own copies of such memory (cudaMemcpyAsync) fail with
 *   cudaErrorInvalidValue unless its device is the thread's current one (cudaSetDevice). attune_copy does not ask for
 *   that, and with expandable_segments:false CUDA's copies do not.
 * - max_split_size_mb: blocks of this size, above 20, and larger ones are never split. Default: no such size.
 * - max_non_split_rounding_mb: how much larger than a request such a block may be: a number above 20. Default 20, which
 *   is had by leaving the key out.
 * - large_segment_size_mb: what is taken from the device for a request of 1 to 10 MB, 2 or more. Default 20. Without
 *   expandable segments, a stream that holds more than 8 times as much takes an eighth of what it holds at a time, at
 *   most 64 MB, if the device has that much.
 * - roundup_power2_divisions: n, or [256:1,512:2,>:4]: sizes from that many MB on are rounded up to a multiple of
 *   an n-th of the power of two below them; n a power of two up to 64, where 1 rounds nothing.
 * - garbage_collection_threshold: a fraction of the limit; above it unused segments are given back, the oldest first.
 *   Default: never.
 * - per_process_memory_fraction: how much of the device's memory may be taken. Default: all.
 * - pinned_use_cuda_host_register: true: pinned memory (pinned.h) is memory of the process, touched first and pinned
 *   where it is. Default false.
 * - pinned_num_register_threads: how many threads touch it, a power of two up to 128. Default 1.
 * - pinned_reserve_segment_size_mb: the first request of pinned memory takes so much at once, and what fits is cut from
 *   it, until it is used up; it never goes back. Default: none.
 * - pinned_max_cached_size_mb: blocks of pinned memory above it go back to the system when they are free. Default: all
 *   stay.
 * - pinned_max_round_threshold_mb: requests of pinned memory above it are rounded to pages, not to a power of two.
 * - PyTorch's other keys (release_lock_on_cudamalloc, graph_capture_record_stream_reuse, throw_on_cudamalloc_oom,
 *   pinned_use_background_threads) are accepted and change nothing; the log has a warning, once for each.
 * - poison: true: freed memory that stays cached is filled with 0xfa and, on the host, checked when it is used again.
 *   Default false.
 * - nvtx: true: tools that know NVTX's memory extension are told of segments and of what the program holds in them, so
 *   that compute-sanitizer finds a use after free inside the cache. Segments are then plain ones, every call takes the
 *   slow path, a free waits for its stream, and poison must be off. CUDA only: on the host, where no tool listens,
 *   ATTUNE_ALLOC changes nothing by it and attune_memory_configure fails with UNSUPPORTED. Default false.
 *
 * A value that is out of its range is INVALID_ARGUMENT; the message names the key, the value and the range. */
#ifndef ATTUNE_MEMORY_H
#define ATTUNE_MEMORY_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `bytes` of memory of the stream's device into *out, aligned to 256 bytes, contents undefined; bytes = 0 gives NULL.
 * Ready for work given to `stream` from now on. The caller frees it. Errors: INVALID_ARGUMENT (also: a bad
 * ATTUNE_ALLOC; a negative number converted to size_t), OUT_OF_MEMORY (the message says what is allocated, cached and
 * free, or that the device never has as much), DEVICE_ERROR, CAPTURING (the program itself captures the stream; a
 * capture of attune_graph is fine: the memory then comes from the graph's pool). Any thread that may use the stream. */
ATTUNE_API attune_status attune_alloc(void **out, attune_stream *stream, size_t bytes);

/* Frees memory of attune_alloc, from any stream of its device. It is used again after the work given so far to its own
 * stream, to `stream`, and to the streams named with attune_record_use. Never waits, unless the memory goes back at
 * once: with backend none, and with the program's own allocator on the host. NULL does nothing. Errors, after which
 * nothing is freed: INVALID_ARGUMENT (freed before; not the start of an allocation; another device's), NOT_FOUND (not
 * memory of attune), DEVICE_ERROR. Allowed in a capture. */
ATTUNE_API attune_status attune_free(void *pointer, attune_stream *stream);

/* As attune_free, and fails with INVALID_ARGUMENT unless `bytes` is what was asked of attune_alloc. */
ATTUNE_API attune_status attune_free_sized(void *pointer, attune_stream *stream, size_t bytes);

/* Says that work on `stream` uses the memory: after attune_free it is used again only when that stream has done the
 * work that it was given before the free. Not needed for the memory's own stream. Errors: as attune_free,
 * OUT_OF_MEMORY. Allowed in a capture. */
ATTUNE_API attune_status attune_record_use(void *pointer, attune_stream *stream);

/* For a pointer that attune_alloc gave: the start of its allocation into *out_base, and how many bytes may be used into
 * *out_bytes: what was asked, rounded up; without a cache (backend none or cudaMallocAsync, the program's own
 * allocator) what was asked. Either may be NULL. Errors: as attune_free. Any thread. */
ATTUNE_API attune_status attune_memory_range(const void *pointer, void **out_base, size_t *out_bytes);

/* Copies `bytes` from `source` to `destination` in stream order. On a stream of a GPU either may be memory of the host
 * or of any GPU of the process; the stream is best one of a GPU that has one of the two. Memory of two GPUs goes
 * directly where they are peers (attune_device_enable_peer), else by way of the host; what other streams do with it
 * must be ordered by events. In a capture the two must be peers. On a stream of the host both are memory of the host.
 * The ranges must not overlap. Pageable host memory may make the call wait. Errors: INVALID_ARGUMENT, DEVICE_ERROR. */
ATTUNE_API attune_status attune_copy(attune_stream *stream, void *destination, const void *source, size_t bytes);

/* Sets `bytes` bytes at `destination` to `value` (0-255) in stream order. Errors: INVALID_ARGUMENT, DEVICE_ERROR. */
ATTUNE_API attune_status attune_fill(attune_stream *stream, void *destination, int value, size_t bytes);

/* Gives all cached memory that is not in use back to the device; waits for the device's work. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR, CAPTURING (a capture of attune_graph is under way on the device). Any thread. */
ATTUNE_API attune_status attune_memory_empty_cache(attune_device *device);

/* Sets the most bytes that the device's allocator may take from the device, cached memory included; 0: no limit. What
 * was taken already stays. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_memory_set_limit(attune_device *device, uint64_t bytes);

/* The same limit as a fraction of the device's memory, above 0 and at most 1. Errors and threads as above. */
ATTUNE_API attune_status attune_memory_set_fraction(attune_device *device, double fraction);

/* The fraction of the device's memory that the allocator may take, into *out; of a limit in bytes, what it is as one.
 * 1: no limit. Errors and threads as above. */
ATTUNE_API attune_status attune_memory_get_fraction(attune_device *device, double *out);

/* Changes settings of the device's allocator (the keys above); those not named stay. `backend` may change at any time,
 * but with poison: what is held stays valid, and the cached memory goes back to the device. `poison`, `nvtx` and
 * `expandable_segments` can change only while the allocator holds no memory. Errors: INVALID_ARGUMENT (names key and
 * value), BUSY, UNSUPPORTED (no virtual memory, no tools, no allocator of the driver's). Any thread. */
ATTUNE_API attune_status attune_memory_configure(attune_device *device, const char *text);

/* The program's own way to get memory. `alloc` returns NULL on failure; attune_alloc gives its memory as it is, so it
 * is aligned as `alloc` aligns it: kernels are fastest at multiples of 256 bytes. `free` is told the same pointer and
 * bytes. If the allocator replaces a GPU's it is called when the program frees, while work that the stream was given
 * before may still use the memory: it must free in that stream's order, as cudaFreeAsync does, or wait, as cudaFree
 * does. If it replaces the host's it is called when the program frees, after the device's work, for which attune_free
 * waits; a pool's, after the device's work too, when a segment is given back. Its stream is the memory's own, NULL if
 * that is destroyed; attune_stream_destroy waits for calls of `free` that were given the stream. All may be called from
 * any thread, never while attune holds a lock, and must not use attune's memory calls. `init` and `reset` may be NULL:
 * init is called once by attune_memory_set_allocator before it takes effect, and a status other than OK is that call's;
 * reset by attune_memory_empty_cache, for an allocator that has a cache of its own. They are for the allocator of a
 * device, not of a pool. */
typedef struct attune_allocator {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  void *user;
  void *(*alloc)(void *user, size_t bytes, attune_device *device, attune_stream *stream);
  void (*free)(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *stream);
  attune_status (*init)(void *user, attune_device *device);
  void (*reset)(void *user, attune_device *device);
} attune_allocator;

/* Sends every attune_alloc and attune_free of `device` to *allocator (copied; NULL: attune's own again), without a
 * cache. Errors: INVALID_ARGUMENT, BUSY (the device's allocator holds memory; free it and empty the cache first), and
 * what `init` returns. */
ATTUNE_API attune_status attune_memory_set_allocator(attune_device *device, const attune_allocator *allocator);

/* The allocator of that call into *out; its functions are NULL where attune's own serves. Errors: INVALID_ARGUMENT. Any
 * thread. */
ATTUNE_API attune_status attune_memory_get_allocator(attune_device *device, attune_allocator *out);

/* Who serves attune_alloc on `device`, into *out, a constant: "caching", "none", "cudaMallocAsync" (the key `backend`),
 * or "program" (attune_memory_set_allocator). Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_memory_get_backend(attune_device *device, const char **out);

/* Functions of a shared object as an allocator: `*out` is for attune_memory_set_allocator, or for a pool's options.
 * They have the form of PyTorch's pluggable allocators, so that one made for those serves:
 *   void *alloc(ssize_t bytes, int device, cudaStream_t stream);
 *   void free(void *pointer, ssize_t bytes, int device, cudaStream_t stream);
 * `device` is the number of cuda:N, 0 for the host, where `stream` is NULL. Segments of a pool have the stream of the
 * request that they are made for. The library stays loaded. path: as dlopen takes it. Errors: INVALID_ARGUMENT,
 * NOT_FOUND (the library or a function of it; the message says why), UNSUPPORTED (in a program linked with -static),
 * OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_allocator_load(attune_allocator *out, const char *path, const char *alloc_name,
                                               const char *free_name);

/* Called when the cache has no block for a request of `bytes`, before the device is asked. It may free memory with
 * attune_free, and returns nonzero if it did. It runs in the thread that allocates, which holds no lock of attune. */
typedef int (*attune_memory_callback)(void *user, attune_device *device, size_t bytes);

/* Adds a callback; at most 8 a device. Errors: INVALID_ARGUMENT, BUSY (there are 8 already). Any thread. */
ATTUNE_API attune_status attune_memory_add_callback(attune_device *device, attune_memory_callback callback, void *user);

/* Removes a callback. Errors: INVALID_ARGUMENT, NOT_FOUND. Any thread. */
ATTUNE_API attune_status attune_memory_remove_callback(attune_device *device, attune_memory_callback callback,
                                                       void *user);

/* A request that failed, and what was where at that moment. */
typedef struct attune_memory_failure {
  size_t requested_bytes;
  uint64_t allocated_bytes, reserved_bytes; /* what the program holds; what was taken from the device */
  uint64_t limit_bytes;                     /* UINT64_MAX: none */
  uint64_t free_bytes, total_bytes;         /* of the device; 0: not known */
} attune_memory_failure;

/* Called when a request fails with OUT_OF_MEMORY, after all that attune tries, in the thread that asked, which holds no
 * lock of attune: to write a snapshot, for example. *failure is valid only during the call. It may free and allocate;
 * of a request that fails inside of it no observer is told. */
typedef void (*attune_memory_observer)(void *user, attune_device *device, const attune_memory_failure *failure);

/* Adds an observer; at most 8 a device. Errors: INVALID_ARGUMENT, BUSY (there are 8 already). Any thread. */
ATTUNE_API attune_status attune_memory_add_observer(attune_device *device, attune_memory_observer observer, void *user);

/* Removes one; a call of it may still be under way in another thread. Errors: INVALID_ARGUMENT, NOT_FOUND. Any thread. */
ATTUNE_API attune_status attune_memory_remove_observer(attune_device *device, attune_memory_observer observer,
                                                       void *user);

/* A counter: its value now, the highest since the last reset, and all that was added and taken away since then. */
typedef struct attune_memory_figure {
  uint64_t current, peak, allocated, freed;
} attune_memory_figure;

/* Indices of the arrays of figures. SMALL: memory in segments for small requests: up to 1 MiB, or up to 256 KiB once a
 * stream's expandable segment for large ones has 320 MiB. LARGE: the rest. ALL: both together. */
enum { ATTUNE_MEMORY_ALL = 0, ATTUNE_MEMORY_SMALL = 1, ATTUNE_MEMORY_LARGE = 2 };

/* What the device's allocator has and did. */
typedef struct attune_memory_statistics {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_memory_figure allocation[3];      /* allocations that the program holds */
  attune_memory_figure allocated_bytes[3]; /* their blocks */
  attune_memory_figure requested_bytes[3]; /* what was asked for them */
  attune_memory_figure active[3];          /* held, or freed but still in use by another stream */
  attune_memory_figure active_bytes[3];
  attune_memory_figure segment[3]; /* taken from the device; expandable ones also while they are empty */
  attune_memory_figure reserved_bytes[3];
  /* Free pieces of segments that are partly in use, which therefore cannot be given back. Expandable segments have
   * none: what is free of them goes back in steps of large_segment_size_mb. So this is 0 with the default settings
   * where the device has virtual memory. */
  attune_memory_figure inactive_split[3];
  attune_memory_figure inactive_split_bytes[3];
  attune_memory_figure oversize_allocations, oversize_segments;
  uint64_t alloc_retries;    /* the cache was given back and the device asked again */
  uint64_t out_of_memory;    /* failed requests */
  uint64_t limit_rejections; /* of these, those that the device's limit refused in the end, and not the device */
  uint64_t synchronizations; /* waits for all freed memory that other streams use */
  uint64_t device_allocs, device_frees;
  uint64_t limit_bytes, max_split_bytes; /* UINT64_MAX: none */
} attune_memory_statistics;

/* Fills *out with figures of one moment. With one stream peaks are exact. With several streams at work, a peak of what
 * the program holds may be too high, by what the streams' own small caches hold at that moment; it is never too low.
 * Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_memory_get_statistics(attune_device *device, attune_memory_statistics *out);

/* Sets each peak to the current value; `allocated`, `freed` and the plain counters stay. Errors: INVALID_ARGUMENT. Any
 * thread. */
ATTUNE_API attune_status attune_memory_reset_peaks(attune_device *device);

/* Sets `allocated`, `freed` and the plain counters to 0; peaks stay. Errors and threads as above. */
ATTUNE_API attune_status attune_memory_reset_accumulated(attune_device *device);

/* The statistics as a table for people, of several lines, into *out, which the caller releases with free(). brief
 * nonzero: in four rows, what is allocated and what is taken from the device, in bytes and in number. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_summary(char **out, attune_device *device, int brief);

/* Every segment and block and the recorded history (attune_memory_record_history of snapshot.h) as one JSON object into
 * *out, which the caller releases with free(): "segments", "device_traces", "allocator_settings" and
 * "external_annotations" as torch.cuda.memory._snapshot() has them. attune_memory_snapshot_save (snapshot.h) writes it
 * into a file. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_snapshot(char **out, attune_device *device);

/* Names what the calling thread is doing. The first 31 bytes are kept with each entry of the history; what is no printable
 * ASCII is left out there. NULL or "" ends it. Any thread. */
ATTUNE_API void attune_memory_annotate(const char *text);

/* Memory of this process, for another process to open; CUDA only. Plain bytes, which may be sent in any way. */
typedef struct attune_memory_handle {
  unsigned char base[64]; /* the segment's, or the pages' */
  uint64_t offset, bytes; /* of the memory in it */
} attune_memory_handle;

/* Fills *out for memory of attune_alloc, to be sent to another process of this user on this machine. The memory must
 * stay allocated as long as others use it. Memory of expandable segments can be opened only while this process runs:
 * the first export starts a thread that hands file descriptors to processes of the same user, over an abstract Unix
 * socket. Both processes must therefore be in one network namespace (one container, or one pod). What is open stays
 * open when this process ends. Memory of the program's allocator can be exported if it got it by cudaMalloc. Errors: as
 * attune_free, UNSUPPORTED (the host; memory of the program's allocator or of the driver's that CUDA does not export; a
 * driver without such descriptors), IO_ERROR, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_memory_export(attune_memory_handle *out, const void *pointer);

/* Opens another process's memory on `device` into *out. attune_memory_close closes it, not attune_free. Memory that is
 * opened twice is mapped once and counted. Errors: INVALID_ARGUMENT (also a handle that is damaged or of this process),
 * NOT_FOUND (the memory was freed, or the process has ended or is in another network namespace), PERMISSION (it is of
 * another user), BUSY (it does not answer for 20 seconds), UNSUPPORTED, DEVICE_ERROR, OUT_OF_MEMORY, IO_ERROR. Any
 * thread. */
ATTUNE_API attune_status attune_memory_import(void **out, attune_device *device, const attune_memory_handle *handle);

/* Closes what attune_memory_import opened; the last close of a piece of memory waits for the device's work. Errors,
 * after which the memory is still open: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING. */
ATTUNE_API attune_status attune_memory_close(void *pointer, attune_device *device);

#ifdef __cplusplus
}
#endif
#endif
