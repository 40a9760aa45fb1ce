/* SPDX-License-Identifier: Apache-2.0
 * host_devices.h: several host devices in one process, for tests of what devices do together: host:0 and its copies. */
#ifndef AT_TEST_HOST_DEVICES_H
#define AT_TEST_HOST_DEVICES_H

#include <stdio.h>
#include <string.h>

#include "src/base/backend.h"

enum { HOST_DEVICES = 4 };

static attune_device host_devices[HOST_DEVICES];
static attune_device *devices[HOST_DEVICES];
static attune_stream *streams[HOST_DEVICES];

/* The devices, and a stream of each. */
static inline int host_devices_begin(void) {
  attune_device *host = NULL;
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  for (int i = 0; i < HOST_DEVICES; i++) {
    host_devices[i] = *host;
    host_devices[i].default_stream = NULL;
    host_devices[i].memory = NULL;
    host_devices[i].ordinal = i;
    host_devices[i].index = 8 + i;
    snprintf(host_devices[i].name, sizeof host_devices[i].name, "host:%d", i);
    devices[i] = &host_devices[i];
    if (attune_stream_create(&streams[i], devices[i]) != ATTUNE_OK) return -1;
  }
  return 0;
}

static inline void host_devices_end(void) {
  for (int i = 0; i < HOST_DEVICES; i++) attune_stream_destroy(streams[i]);
}

static inline attune_status host_devices_wait(void) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < HOST_DEVICES && status == ATTUNE_OK; i++) status = attune_stream_synchronize(streams[i]);
  return status;
}

#endif
