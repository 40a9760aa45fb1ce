/* SPDX-License-Identifier: Apache-2.0
 * stream_pool.h: what the end of a stream means to those that took it. */
#ifndef AT_STREAM_POOL_H
#define AT_STREAM_POOL_H

#include "src/base/backend.h"

/* The stream is being destroyed: it is the calling thread's current one no more. */
void at_stream_forget_current(const attune_stream *stream);

#endif
