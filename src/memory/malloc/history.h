/* SPDX-License-Identifier: Apache-2.0
 * history.h: a ring of the latest things that happened to some memory: a device's, or pinned memory. Whoever owns one
 * guards it by a lock. */
#ifndef AT_MEMORY_HISTORY_H
#define AT_MEMORY_HISTORY_H

#include <attune/snapshot.h>

#include "src/base/json_writer.h"
#include "src/memory/malloc/backtrace.h"

typedef enum at_action {
  AT_ACTION_ALLOC,
  AT_ACTION_FREE_REQUESTED,
  AT_ACTION_FREE_COMPLETED,
  AT_ACTION_SEGMENT_ALLOC,
  AT_ACTION_SEGMENT_FREE,
  AT_ACTION_SEGMENT_MAP,
  AT_ACTION_SEGMENT_UNMAP,
  AT_ACTION_OOM,
  AT_ACTION_SNAPSHOT
} at_action;

typedef struct at_history at_history;

/* An empty one into *out; NULL for no options and for 0 entries. Without a lock. */
attune_status at_history_make(at_history **out, const attune_history_options *options);
void at_history_destroy(at_history *history);

/* Records with the thread's note and, if asked for, the backtrace. `stream`: the number of the stream. Returns the
 * record's number from 1 on, 0 if there is none. */
uint64_t at_history_note(at_history *history, at_action action, uintptr_t address, size_t bytes, uint64_t stream);

/* The records as a list. `names` may be NULL: then without frames. */
void at_history_write(const at_history *history, at_backtrace_names *names, at_json *out);

/* Who allocated: the frames of record `number` as a list, if it is still kept and of this address. */
void at_history_write_frames(const at_history *history, uint64_t number, uintptr_t address, at_backtrace_names *names,
                             at_json *out);

/* Asks for names of all frames. */
void at_history_want_names(const at_history *history, at_backtrace_names *names);

#endif
