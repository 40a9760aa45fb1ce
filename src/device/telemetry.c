/* SPDX-License-Identifier: Apache-2.0
 * telemetry.c: what devices tell of themselves: arguments are checked here, the backend knows the rest. */
#include <attune/telemetry.h>

#include "src/base/backend.h"
#include "src/base/struct_size.h"

attune_status attune_device_get_telemetry(attune_device *device, attune_telemetry *out) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(out, "point to an attune_telemetry");
  attune_telemetry full;
  int64_t *fields = &full.busy_percent;
  const size_t count = (sizeof full - offsetof(attune_telemetry, busy_percent)) / sizeof *fields;
  for (size_t i = 0; i < count; i++) fields[i] = ATTUNE_NOT_KNOWN;
  device->backend.telemetry->read(device, &full);
  return AT_GIVE(out, &full);
}

attune_status attune_device_each_process(attune_device *device, attune_device_process_fn fn, void *user) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(fn, "be a function");
  return device->backend.telemetry->each_process(device, fn, user);
}
