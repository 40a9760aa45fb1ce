/* SPDX-License-Identifier: Apache-2.0
 * telemetry.c: what devices tell of themselves: arguments are checked here, the backend knows the rest. */
#include <attune/telemetry.h>

#include "src/base/backend.h"

static attune_status check_device(const attune_device *device) {
  if (device) return ATTUNE_OK;
  return at_fail(ATTUNE_INVALID_ARGUMENT, "device is NULL; should be one of attune_device_get");
}

attune_status attune_device_get_telemetry(attune_device *device, attune_telemetry *out) {
  attune_status status = check_device(device);
  if (status != ATTUNE_OK) return status;
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to an attune_telemetry");
  int64_t *fields = (int64_t *)out;
  for (size_t i = 0; i < sizeof *out / sizeof *fields; i++) fields[i] = ATTUNE_NOT_KNOWN;
  device->backend.telemetry->read(device, out);
  return ATTUNE_OK;
}

attune_status attune_device_each_process(attune_device *device, attune_device_process_fn fn, void *user) {
  attune_status status = check_device(device);
  if (status != ATTUNE_OK) return status;
  if (!fn) return at_fail(ATTUNE_INVALID_ARGUMENT, "fn is NULL; should be a function");
  return device->backend.telemetry->each_process(device, fn, user);
}
