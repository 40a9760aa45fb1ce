/* SPDX-License-Identifier: Apache-2.0
 * telemetry.c: what devices tell of themselves: arguments are checked here, the backend knows the rest. */
#include <attune/telemetry.h>

#include "src/base/backend.h"

attune_status attune_device_get_telemetry(attune_device *device, attune_telemetry *out) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(out, "point to an attune_telemetry");
  int64_t *fields = (int64_t *)out;
  for (size_t i = 0; i < sizeof *out / sizeof *fields; i++) fields[i] = ATTUNE_NOT_KNOWN;
  device->backend.telemetry->read(device, out);
  return ATTUNE_OK;
}

attune_status attune_device_each_process(attune_device *device, attune_device_process_fn fn, void *user) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(fn, "be a function");
  return device->backend.telemetry->each_process(device, fn, user);
}
