/* SPDX-License-Identifier: Apache-2.0
 * telemetry.c: what devices tell of themselves: arguments are checked here, the backend knows the rest. */
#include <attune/telemetry.h>

#include "src/base/backend.h"
#include "src/base/struct_size.h"

static attune_status check_device(const attune_device *device) {
  if (device) return ATTUNE_OK;
  return at_fail(ATTUNE_INVALID_ARGUMENT, "device is NULL; should be one of attune_device_get");
}

attune_status attune_device_get_telemetry(attune_device *device, attune_telemetry *out) {
  attune_status status = check_device(device);
  if (status != ATTUNE_OK) return status;
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to an attune_telemetry");
  attune_telemetry full;
  int64_t *fields = &full.busy_percent;
  const size_t count = (sizeof full - offsetof(attune_telemetry, busy_percent)) / sizeof *fields;
  for (size_t i = 0; i < count; i++) fields[i] = ATTUNE_NOT_KNOWN;
  device->backend.telemetry->read(device, &full);
  return AT_GIVE(out, &full);
}

attune_status attune_device_each_process(attune_device *device, attune_device_process_fn fn, void *user) {
  attune_status status = check_device(device);
  if (status != ATTUNE_OK) return status;
  if (!fn) return at_fail(ATTUNE_INVALID_ARGUMENT, "fn is NULL; should be a function");
  return device->backend.telemetry->each_process(device, fn, user);
}
