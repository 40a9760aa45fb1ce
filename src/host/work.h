/* SPDX-License-Identifier: Apache-2.0
 * work.h: the work that the host backend itself gives to a stream. */
#ifndef AT_HOST_WORK_H
#define AT_HOST_WORK_H

#include "src/base/backend.h"

typedef struct at_host_function {
  attune_call_fn fn;
  void *user;
} at_host_function;

attune_status at_host_call(attune_stream *stream, attune_call_fn fn, void *user);
attune_status at_host_copy(attune_stream *stream, void *destination, const void *source, size_t bytes);
attune_status at_host_copy_rows(attune_stream *stream, void *destination, size_t destination_pitch, const void *source,
                                size_t source_pitch, size_t bytes, size_t rows);
attune_status at_host_copy_box(attune_stream *stream, const attune_box_copy *copy);
attune_status at_host_fill_box(attune_stream *stream, const attune_box_fill *fill);
attune_status at_host_fill(attune_stream *stream, void *destination, int value, size_t bytes);

/* What a piece of work is, by the function that runs it: its arguments are an attune_box_copy, an attune_box_fill or an
 * at_host_function; of the external events of a graph an at_host_event *. */
typedef enum at_host_work {
  AT_HOST_OTHER,
  AT_HOST_COPY,
  AT_HOST_FILL,
  AT_HOST_CALL,
  AT_HOST_RECORD,
  AT_HOST_WAIT
} at_host_work;
at_host_work at_host_work_kind(void (*fn)(const void *args));

/* "copy", "fill", "call", "record" or "wait"; "work" for anything else. */
const char *at_host_work_name(void (*fn)(const void *args));

#endif
