/* SPDX-License-Identifier: Apache-2.0
 * snapshot_file.h: snapshots of the parts that their owners give. */
#ifndef AT_MEMORY_SNAPSHOT_FILE_H
#define AT_MEMORY_SNAPSHOT_FILE_H

#include <attune/pool.h>

#include "src/memory/malloc/history.h"

/* Where the parts come from; `count` devices are in the order of attune_device_at. From `note` on they are called with
 * the lock held, so that segments and history are of one moment. */
typedef struct at_snapshot_source {
  bool (*is_there)(attune_device *device);         /* has something to tell */
  attune_status (*prepare)(attune_device *device); /* of a device that is asked for by name */
  void (*lock)(attune_device *const *devices, int count);
  void (*unlock)(attune_device *const *devices, int count);
  void (*note)(attune_device *device); /* records that a snapshot is taken */
  void (*want_names)(attune_device *device, at_backtrace_names *names);
  /* Adds to a list that is open, of pool `only` if it is not NULL; `number` is the device's in the file. Comes before
   * write_history, a list of its own. */
  void (*write_segments)(attune_device *device, const attune_pool *only, int number, at_backtrace_names *names,
                         at_json *out);
  void (*write_history)(attune_device *device, at_backtrace_names *names, at_json *out);
  void (*write_settings)(attune_device *device, at_json *out);
} at_snapshot_source;

/* Keys of a segment and of a block, as PyTorch's snapshots have them. */
typedef struct at_snapshot_segment {
  int device;
  uintptr_t address;
  size_t total, allocated, active, requested;
  uint64_t stream, pool[2];
  const char *type; /* "small", "large", "pinned" */
  bool expandable;
} at_snapshot_segment;
/* Opens a segment, up to the list of its blocks, which is open then. */
void at_snapshot_segment_open(const at_snapshot_segment *segment, at_json *out);
void at_snapshot_segment_close(at_json *out);

/* A block, with the frames of its record in `history`. */
typedef struct at_snapshot_block {
  uintptr_t address;
  size_t bytes, requested;
  const char *state;
  const at_history *history;
  uint64_t recorded;
} at_snapshot_block;
void at_snapshot_block_write(const at_snapshot_block *block, at_backtrace_names *names, at_json *out);

/* All of it as one JSON object: of `device`, or of all devices if it is NULL; segments of `only`, a pool of `device`,
 * unless that is NULL. */
attune_status at_snapshot_make(char **out, size_t *out_bytes, const at_snapshot_source *source, attune_device *device,
                               const attune_pool *only);

/* Into a file. */
attune_status at_snapshot_save(const char *path, const at_snapshot_source *source, attune_device *device);

#endif
