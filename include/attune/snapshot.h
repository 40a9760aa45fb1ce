/* SPDX-License-Identifier: Apache-2.0
 * snapshot.h: what happened to memory, and what it looks like now: statistics by name, a history of a chosen depth, and
 * files that PyTorch's page for memory (pytorch.org/memory_viz, or torch.cuda._memory_viz) opens as they are. */
#ifndef ATTUNE_SNAPSHOT_H
#define ATTUNE_SNAPSHOT_H

#include <attune/pinned.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called with a figure; `name` is a constant. A nonzero return ends the walk. */
typedef int (*attune_statistic_fn)(void *user, const char *name, int64_t value);

/* Calls fn with each figure of attune_memory_statistics, all of one moment, under the names of torch.cuda.memory_stats, in
 * the order of the alphabet: "active.all.allocated" ... "segment.small_pool.peak", "max_split_size" (-1: none),
 * "num_ooms" and so on. Errors: INVALID_ARGUMENT. Any thread; fn may make calls of attune. */
ATTUNE_API attune_status attune_memory_each_statistic(attune_device *device, attune_statistic_fn fn, void *user);

/* The same of pinned memory, under the names of torch.cuda.host_memory_stats: "active_bytes.allocated" ...
 * "num_host_free"; host_alloc_time and host_free_time are in microseconds. Errors: INVALID_ARGUMENT, UNSUPPORTED. Any
 * thread. */
ATTUNE_API attune_status attune_pinned_each_statistic(attune_device *device, attune_statistic_fn fn, void *user);

/* Events of a history, as bits. Pinned memory has no SEGMENT_MAP and SEGMENT_UNMAP. */
enum {
  ATTUNE_HISTORY_ALLOC = 1,
  ATTUNE_HISTORY_FREE_REQUESTED = 2,
  ATTUNE_HISTORY_FREE_COMPLETED = 4, /* nothing uses it any more */
  ATTUNE_HISTORY_SEGMENT_ALLOC = 8,  /* taken from the device or the system */
  ATTUNE_HISTORY_SEGMENT_FREE = 16,
  ATTUNE_HISTORY_SEGMENT_MAP = 32, /* of an expandable segment */
  ATTUNE_HISTORY_SEGMENT_UNMAP = 64,
  ATTUNE_HISTORY_OUT_OF_MEMORY = 128,
  ATTUNE_HISTORY_SNAPSHOT = 256,
  ATTUNE_HISTORY_EVERY = 511
};

/* What is recorded; start from ATTUNE_HISTORY_OPTIONS_INIT, or from zeros. */
typedef struct attune_history_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  size_t entries; /* the latest so many events are kept: about 100 bytes each, and 8 for each frame; 0: 100,000 */
  int frames;    /* 0 to 64: how many functions of the call stack are kept with each, the innermost first; it costs some
                     microseconds an event. Platforms without backtrace() give none. */
  unsigned skip; /* ATTUNE_HISTORY_ bits of what is not recorded */
} attune_history_options;
/* 100,000 events, no frames. */
#define ATTUNE_HISTORY_OPTIONS_INIT \
  { sizeof(attune_history_options), 0, 0, 0 }

/* Records the device's memory from now on, and drops what was recorded; options NULL: stops. While it
 * records, every call takes the slow path. attune_memory_annotate names what a thread is doing. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_record_history(attune_device *device, const attune_history_options *options);

/* The same of the device's pinned memory. Errors: as above, UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_pinned_record_history(attune_device *device, const attune_history_options *options);

/* Writes segments, blocks and history of the device's memory into the file `path`, as the JSON object that
 * attune_memory_snapshot gives. `python3 -m attune.snapshot PATH OUT.pickle` (bindings/python, which needs no library
 * for it) makes the file that PyTorch's visualiser of memory opens. device NULL: of all devices that have memory of
 * attune, by their places (the host is the last). A frame is a function with an offset and its file; functions that are
 * not exported have an offset in the file only, which addr2line names. Link the program with -rdynamic to have its own
 * functions by name. A file that is there is replaced. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY; NOT_FOUND, PERMISSION,
 * IO_ERROR: the file, of which nothing is left. Any thread. */
ATTUNE_API attune_status attune_memory_snapshot_save(const char *path, attune_device *device);

/* The same of pinned memory: each block is a segment of its own. Errors: as above, UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_pinned_snapshot_save(const char *path, attune_device *device);

#ifdef __cplusplus
}
#endif
#endif
