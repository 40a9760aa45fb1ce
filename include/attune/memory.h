/* SPDX-License-Identifier: Apache-2.0
 * memory.h: memory of a device, in stream order and cached: freed memory serves the next request without asking the
 * device. Copies and fills. Any pointer that the device can reach may be used with attune; these calls are for programs
 * that have no allocator of their own.
 *
 * Memory belongs to the stream that it was allocated on: work given to that stream may use it at once, and once freed
 * it serves that stream's next requests at once, for they come after all that the stream was given before. A second
 * stream that uses it waits for an event of the first one, and is made known by attune_record_use; then the freed
 * memory is used anew only when that stream is done with it. On the host the calling thread may touch the memory itself
 * when the streams that use it are done.
 *
 * Not to be called from a function that runs as work of a stream. In a child of fork a CUDA device's calls fail with
 * DEVICE_ERROR.
 *
 * The environment variable ATTUNE_ALLOC and attune_memory_configure take "key:value,key:value":
 *   backend                        caching, or none: every call goes to the device, for memory checkers
 *   expandable_segments            segments grow and shrink in place in reserved addresses, so that little is lost to
 *                                  gaps; default: true where the device has virtual memory
 *   max_split_size_mb              blocks from this size on are never split; default: none
 *   max_non_split_rounding_mb      how much larger than a request such a block may be; default 20
 *   large_segment_size_mb          what is taken from the device for requests of 1 to 10 MB; default 20. Without
 *                                  expandable segments a stream that has more than 8 times as much takes an eighth of
 *                                  it at a time, at most 64 MB, where the device has it
 *   roundup_power2_divisions       n, or [256:1,512:2,>:4]: sizes are rounded up to an n-th of a power of two, from
 *                                  that many MB on
 *   garbage_collection_threshold   fraction of the limit from which on unused segments are given back, the oldest
 *                                  first; default: never
 *   per_process_memory_fraction    how much of the device's memory may be taken; default: all
 *   poison                         true: freed memory is filled with 0xfa and, on the host, checked when it is used
 *                                  anew; default false
 *   nvtx                           true: tools that know NVTX's memory extension are told of segments and of what the
 *                                  program holds in them, so that compute-sanitizer finds a use after free inside the
 *                                  cache. Segments are plain ones then, every call takes the slow path, a free waits
 *                                  for its stream, and poison must be off. CUDA only; default false */
#ifndef ATTUNE_MEMORY_H
#define ATTUNE_MEMORY_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `bytes` of memory of the stream's device into *out, aligned to 256 bytes, contents undefined; bytes = 0 gives NULL.
 * Ready for work given to `stream` from now on. The caller frees it. Errors: INVALID_ARGUMENT (also a bad
 * ATTUNE_ALLOC, and a negative number made a size), OUT_OF_MEMORY (the message says what is allocated, cached and free,
 * or that the device never has as much), DEVICE_ERROR, CAPTURING (a capture that the program itself began; one of
 * attune_graph is fine: the memory then comes from the graph's pool). Any thread that may use the stream. */
ATTUNE_API attune_status attune_alloc(void **out, attune_stream *stream, size_t bytes);

/* Frees memory of attune_alloc, from any stream of its device: it is used anew after the work given so far to its own
 * stream, to `stream`, and to those of attune_record_use. Never waits. NULL is left alone. Errors: INVALID_ARGUMENT
 * (freed before, or not the start of an allocation, or of another device), NOT_FOUND (not memory of attune),
 * DEVICE_ERROR. Nothing is freed then. Allowed in a capture. */
ATTUNE_API attune_status attune_free(void *pointer, attune_stream *stream);

/* attune_free, which also fails with INVALID_ARGUMENT unless `bytes` is what was asked of attune_alloc. */
ATTUNE_API attune_status attune_free_sized(void *pointer, attune_stream *stream, size_t bytes);

/* Tells that work on `stream` uses the memory, so that after attune_free it is used anew only when that stream is done
 * with what it was given until then. Its own stream needs none. Errors: as attune_free, OUT_OF_MEMORY. Allowed in a
 * capture. */
ATTUNE_API attune_status attune_record_use(void *pointer, attune_stream *stream);

/* Where the allocation that contains `pointer`'s address begins into *out_base and how many bytes may be used into
 * *out_bytes (what was asked, rounded up); either may be NULL. `pointer` is what attune_alloc gave. Errors: as
 * attune_free. Any thread. */
ATTUNE_API attune_status attune_memory_range(const void *pointer, void **out_base, size_t *out_bytes);

/* Copies `bytes` from `source` to `destination` in stream order; either may be host or device memory of the stream's
 * device; the ranges must not overlap. Pageable host memory may make the call wait. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR. */
ATTUNE_API attune_status attune_copy(attune_stream *stream, void *destination, const void *source, size_t bytes);

/* Sets `bytes` bytes at `destination` to `value` (0-255) in stream order. Errors: INVALID_ARGUMENT, DEVICE_ERROR. */
ATTUNE_API attune_status attune_fill(attune_stream *stream, void *destination, int value, size_t bytes);

/* Gives all cached memory that is not in use back to the device; waits for the device's work. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR, CAPTURING (a capture of attune_graph is under way on the device). Any thread. */
ATTUNE_API attune_status attune_memory_empty_cache(attune_device *device);

/* Limits what the device's allocator takes of the device, cached memory included: `bytes` (0: no limit), or a fraction,
 * above 0 and at most 1, of all its memory. What was taken already stays. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_memory_set_limit(attune_device *device, uint64_t bytes);

/* The same limit as a fraction of the device's memory. Errors and threads as above. */
ATTUNE_API attune_status attune_memory_set_fraction(attune_device *device, double fraction);

/* Changes settings of the device's allocator, see above; those not named stay. `backend`, `poison`, `nvtx` and
 * `expandable_segments` can change only while the allocator holds no memory. Errors: INVALID_ARGUMENT (names key and
 * value), BUSY, UNSUPPORTED (no virtual memory, no tools). Any thread. */
ATTUNE_API attune_status attune_memory_configure(attune_device *device, const char *text);

/* The program's own way to get memory. `alloc` returns NULL on failure; `free` is called once it may be given away: in
 * place of the device's allocator when the program frees, in stream order; for a pool when its segments go, after the
 * device's work. They may be called from any thread, never while attune holds a lock, and must not use attune's memory
 * calls. */
typedef struct attune_allocator {
  void *user;
  void *(*alloc)(void *user, size_t bytes, attune_device *device, attune_stream *stream);
  void (*free)(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *stream);
} attune_allocator;

/* Sends every attune_alloc and attune_free of `device` to *allocator (copied; NULL: attune's own again), without a
 * cache. Errors: INVALID_ARGUMENT, BUSY (the device's allocator holds memory; free it and empty the cache first). */
ATTUNE_API attune_status attune_memory_set_allocator(attune_device *device, const attune_allocator *allocator);

/* Called when the cache has no block for a request of `bytes`, before the device is asked; returns whether it freed
 * memory, and may free with attune_free. From the thread that allocates, which holds no lock of attune. At most 8 a
 * device. Errors: INVALID_ARGUMENT, BUSY (8 there already); remove: NOT_FOUND. */
typedef int (*attune_memory_callback)(void *user, attune_device *device, size_t bytes);

/* Adds a callback, as above. */
ATTUNE_API attune_status attune_memory_add_callback(attune_device *device, attune_memory_callback callback, void *user);

/* Removes a callback, as above. */
ATTUNE_API attune_status attune_memory_remove_callback(attune_device *device, attune_memory_callback callback,
                                                       void *user);

/* A counter: now, the most since the last reset, and all that was added and taken away since the last reset. */
typedef struct attune_memory_figure {
  uint64_t current, peak, allocated, freed;
} attune_memory_figure;

/* The places of a figure's array: all; segments for requests up to 1 MiB, or 256 KiB once a stream's expandable segment
 * for large ones has 320 MiB; the others. */
enum { ATTUNE_MEMORY_ALL = 0, ATTUNE_MEMORY_SMALL = 1, ATTUNE_MEMORY_LARGE = 2 };

typedef struct attune_memory_statistics {
  attune_memory_figure allocation[3];      /* allocations that the program holds */
  attune_memory_figure allocated_bytes[3]; /* their blocks */
  attune_memory_figure requested_bytes[3]; /* what was asked for them */
  attune_memory_figure active[3];          /* held, or freed but still in use by another stream */
  attune_memory_figure active_bytes[3];
  attune_memory_figure segment[3]; /* taken from the device */
  attune_memory_figure reserved_bytes[3];
  attune_memory_figure inactive_split[3]; /* free pieces of segments that are partly in use: cannot be given back */
  attune_memory_figure inactive_split_bytes[3];
  attune_memory_figure oversize_allocations, oversize_segments;
  uint64_t alloc_retries;    /* the cache was given back and the device asked again */
  uint64_t out_of_memory;    /* failed requests */
  uint64_t synchronizations; /* waits for all freed memory that other streams use */
  uint64_t device_allocs, device_frees;
  uint64_t limit_bytes, max_split_bytes; /* UINT64_MAX: none */
} attune_memory_statistics;

/* Fills *out with one consistent state. With one stream peaks are exact; with several that work at the same time, a
 * peak of what the program holds may be too high by what the streams' fronts cache at that moment, never too low.
 * Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_memory_get_statistics(attune_device *device, attune_memory_statistics *out);

/* Peaks become what is now; `allocated`, `freed` and the plain counters become 0. Errors: INVALID_ARGUMENT. Any thread.
 */
ATTUNE_API attune_status attune_memory_reset_peaks(attune_device *device);

/* `allocated`, `freed` and the plain counters become 0, as above. */
ATTUNE_API attune_status attune_memory_reset_accumulated(attune_device *device);

/* A table of the statistics for people, of several lines, into *out, which the caller releases with free(). Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_summary(char **out, attune_device *device);

/* Every segment and block and the recorded history as one JSON object into *out, which the caller releases with free():
 * "segments", "device_traces", "allocator_settings" and "external_annotations" as torch.cuda.memory._snapshot() has
 * them, with frames empty. PyTorch's visualiser reads it after  python -c "import json,pickle,sys;
 * pickle.dump(json.load(sys.stdin), sys.stdout.buffer)"  . Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_snapshot(char **out, attune_device *device);

/* Keeps the latest `entries` things that happened to the device's memory (each about 100 bytes); 0 ends it and forgets
 * them. While it records, every call takes the slow path. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_record_history(attune_device *device, size_t entries);

/* What the calling thread is doing: at most 31 bytes of it are kept with each entry of the history; NULL or "":
 * nothing. Any thread. */
ATTUNE_API void attune_memory_annotate(const char *text);

/* Memory of this process for another one, which may live in it: CUDA only. Plain bytes, to be sent in any way. */
typedef struct attune_memory_handle {
  unsigned char base[64]; /* the segment's, or the pages' */
  uint64_t offset, bytes; /* of the memory in it */
} attune_memory_handle;

/* Makes *out from memory of attune_alloc, to be sent to another process of this user and machine. The memory must stay
 * allocated as long as others use it. Memory of expandable segments is opened through this process, which must run and
 * not be stopped meanwhile: the first export starts a thread that hands file descriptors to processes of the same user,
 * over an abstract Unix socket, so both need the same network namespace (containers: the same one, or one pod). What is
 * open stays open when this process ends. Errors: as attune_free, UNSUPPORTED (the host, a pool of the program's own, a
 * driver without such descriptors), IO_ERROR, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_memory_export(attune_memory_handle *out, const void *pointer);

/* Opens another process's memory on `device` into *out; attune_memory_close closes it (DEVICE_ERROR, INVALID_ARGUMENT,
 * CAPTURING), not attune_free. The same segment, or pages of an expandable one, is opened once and counted. Errors:
 * INVALID_ARGUMENT (also a handle that is damaged or of this process), NOT_FOUND (the memory was freed, or the process
 * has ended or is in another network namespace), PERMISSION (it is of another user), BUSY (it does not answer for 20
 * seconds), UNSUPPORTED, DEVICE_ERROR, OUT_OF_MEMORY, IO_ERROR. Any thread. */
ATTUNE_API attune_status attune_memory_import(void **out, attune_device *device, const attune_memory_handle *handle);

/* Closes what attune_memory_import opened, as above; the last time waits for the device's work. After a failure other
 * than INVALID_ARGUMENT it is open still. */
ATTUNE_API attune_status attune_memory_close(void *pointer, attune_device *device);

#ifdef __cplusplus
}
#endif
#endif
