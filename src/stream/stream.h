/* SPDX-License-Identifier: Apache-2.0
 * stream.h: what the sources of streams and events share. */
#ifndef AT_STREAM_H
#define AT_STREAM_H

#include "src/base/backend.h"

attune_status at_stream_open(attune_stream **out, attune_device *device, void *native, bool owned, int priority);

/* Releases one, also a stream that attune_stream_destroy leaves alone. */
void at_stream_close(attune_stream *stream);

/* Streams and events of two devices of one kind may meet; those of two kinds cannot. */
attune_status at_event_check_pair(const attune_stream *stream, const attune_event *event);

/* The stream is being destroyed: it is the calling thread's current one no more. */
void at_stream_forget_current(const attune_stream *stream);

#endif
