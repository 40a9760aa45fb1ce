/* SPDX-License-Identifier: Apache-2.0
 * staging.h: copies between ordinary host memory and a device that take the bus's time: through pinned buffers, which
 * all CPUs fill or empty while the device copies the next one. The driver's own way takes several times as long. */
#ifndef AT_STAGING_H
#define AT_STAGING_H

#include "src/base/backend.h"

/* `bytes` of the device's memory into host memory, in stream order; they are there when it returns. Errors: those of
 * attune_copy. The stream's thread; not in a capture. */
attune_status at_staging_fetch(attune_stream *stream, void *host, const void *device, size_t bytes);

/* Host memory to the device, in stream order; the host memory is the caller's again when it returns. */
attune_status at_staging_put(attune_stream *stream, void *device, const void *host, size_t bytes);

/* A copy within host memory, by all CPUs where it is large. */
void at_staging_copy(void *to, const void *from, size_t bytes);

#endif
