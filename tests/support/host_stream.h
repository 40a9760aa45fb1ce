/* SPDX-License-Identifier: Apache-2.0
 * host_stream.h: the host, and a stream of its own for all tests of a file. Included once in a test, after
 * all others: it names a stream. */
#ifndef AT_TEST_HOST_STREAM_H
#define AT_TEST_HOST_STREAM_H

#include "tests/support/check.h"

#include <attune/attune.h>

static attune_device *host;
static attune_stream *stream;

FIXTURE(open_stream) {
  return attune_device_get(&host, "host") == ATTUNE_OK && attune_stream_create(&stream, host) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_stream) {
  attune_stream_destroy(stream);
  return attune_pinned_empty_cache(host) == ATTUNE_OK && attune_memory_empty_cache(host) == ATTUNE_OK ? 0 : -1;
}

#endif
