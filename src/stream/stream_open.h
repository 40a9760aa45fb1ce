/* SPDX-License-Identifier: Apache-2.0
 * stream_open.h: a stream and its handle. */
#ifndef AT_STREAM_OPEN_H
#define AT_STREAM_OPEN_H

#include "src/base/backend.h"

attune_status at_stream_open(attune_stream **out, attune_device *device, void *native, bool owned, int priority);

/* Releases one, also a stream that attune_stream_destroy leaves alone. */
void at_stream_close(attune_stream *stream);

#endif
