/* SPDX-License-Identifier: Apache-2.0
 * snapshot.h: memory history and current state: statistics by name, a history of configurable depth, and files for
 * PyTorch's memory visualizer (pytorch.org/memory_viz, or torch.cuda._memory_viz). */
#ifndef ATTUNE_SNAPSHOT_H
#define ATTUNE_SNAPSHOT_H

#include <attune/pinned.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called with a figure; `name` is a constant. A nonzero return ends the iteration. */
typedef int (*attune_statistic_fn)(void *user, const char *name, int64_t value);

/* Calls fn with each figure of attune_memory_statistics, all as of one moment, under the names of
 * torch.cuda.memory_stats, in alphabetical order: "active.all.allocated" ... "segment.small_pool.peak",
 * "max_split_size" (-1: none), "num_ooms" and so on. Errors: INVALID_ARGUMENT. Any thread; fn may make calls of
 * attune. */
ATTUNE_API attune_status attune_memory_each_statistic(attune_device *device, attune_statistic_fn fn, void *user);

/* Like attune_memory_each_statistic, for pinned memory, under the names of torch.cuda.host_memory_stats:
 * "active_bytes.allocated" ... "num_host_free"; host_alloc_time and host_free_time are in microseconds. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_pinned_each_statistic(attune_device *device, attune_statistic_fn fn, void *user);

/* Events of a history, as bits. Pinned memory has no SEGMENT_MAP and SEGMENT_UNMAP. */
enum {
  ATTUNE_HISTORY_ALLOC = 1,
  ATTUNE_HISTORY_FREE_REQUESTED = 2,
  ATTUNE_HISTORY_FREE_COMPLETED = 4, /* no longer used by any stream */
  ATTUNE_HISTORY_SEGMENT_ALLOC = 8,  /* taken from the device or the system */
  ATTUNE_HISTORY_SEGMENT_FREE = 16,
  ATTUNE_HISTORY_SEGMENT_MAP = 32, /* of an expandable segment */
  ATTUNE_HISTORY_SEGMENT_UNMAP = 64,
  ATTUNE_HISTORY_OUT_OF_MEMORY = 128,
  ATTUNE_HISTORY_SNAPSHOT = 256,
  ATTUNE_HISTORY_EVERY = 511
};

/* Options of a history; start from ATTUNE_HISTORY_OPTIONS_INIT, or from zeros. */
typedef struct attune_history_options {
  size_t size;    /* sizeof this struct, or 0 (types.h) */
  size_t entries; /* number of latest events kept: about 100 bytes each, plus 8 per frame; 0: 100,000 */
  int frames;    /* 0 to 64: call stack frames kept with each event, innermost first; costs some microseconds per event.
                    Platforms without backtrace() record none. */
  unsigned skip; /* ATTUNE_HISTORY_ bits of the events not recorded */
} attune_history_options;
/* 100,000 events, no frames. */
#define ATTUNE_HISTORY_OPTIONS_INIT \
  { sizeof(attune_history_options), 0, 0, 0 }

/* Starts recording the device's memory events, discarding earlier records; options NULL: stops. While recording, every
 * call takes the slow path. attune_memory_annotate labels what a thread is doing. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_memory_record_history(attune_device *device, const attune_history_options *options);

/* Like attune_memory_record_history, for the device's pinned memory. Errors: as above, UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_pinned_record_history(attune_device *device, const attune_history_options *options);

/* Writes segments, blocks and history of the device's memory to the file `path`, as the JSON object of
 * attune_memory_snapshot. `python3 -m attune.snapshot PATH OUT.pickle` (bindings/python, which does not need the
 * library for it) converts it for PyTorch's memory visualizer. device NULL: all devices that have memory of attune, in
 * index order (the host is last). A frame is a function with an offset and its file; functions that are not exported
 * have only an offset in the file, which addr2line resolves. Link the program with -rdynamic to get its own functions
 * by name. An existing file is replaced. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY; NOT_FOUND, PERMISSION, IO_ERROR (the
 * file; a partly written one is removed). Any thread. */
ATTUNE_API attune_status attune_memory_snapshot_save(const char *path, attune_device *device);

/* Like attune_memory_snapshot_save, for pinned memory: each block is a segment of its own. Errors: as above,
 * UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_pinned_snapshot_save(const char *path, attune_device *device);

#ifdef __cplusplus
}
#endif
#endif
