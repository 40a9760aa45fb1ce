/* SPDX-License-Identifier: Apache-2.0
 * event.h: what events and streams check together. */
#ifndef AT_EVENT_H
#define AT_EVENT_H

#include "src/base/backend.h"

/* Streams and events of two devices of one kind may meet; those of two kinds cannot. */
attune_status at_event_check_pair(const attune_stream *stream, const attune_event *event);

#endif
