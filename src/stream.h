/* SPDX-License-Identifier: Apache-2.0
 * stream.h: what stream.c, stream_pool.c and sync_debug.c have for each other and for whoever waits. */
#ifndef AT_STREAM_H
#define AT_STREAM_H

#include "src/backend.h"

/* A stream and its handle; at_stream_close releases one, also a stream that attune_stream_destroy leaves alone. */
attune_status at_stream_open(attune_stream **out, attune_device *device, void *native, bool owned, int priority);
void at_stream_close(attune_stream *stream);

/* The stream is being destroyed: it is the calling thread's current one no more. */
void at_stream_forget_current(const attune_stream *stream);

/* A call is about to wait for the device although nobody asked it to (attune_set_sync_debug). at_sync_check: BUSY when
 * that is to be an error; `what` is the call and its reason, "attune_copy waits for pageable host memory".
 * at_sync_waits: for calls that cannot fail. Not under a lock: it logs. */
attune_status at_sync_check(const attune_device *device, const char *what);
void at_sync_waits(const attune_device *device, const char *what);

/* False: nobody wants to know, so that finding out whether a call would wait can be spared. */
bool at_sync_debug_on(void);

#endif
