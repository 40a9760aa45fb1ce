/* SPDX-License-Identifier: Apache-2.0
 * two_devices.h: the host as two equal devices, for a test linked with --wrap: "host" and "host:1", which has
 * the same fingerprint and an identity of its own. */
#ifndef AT_TEST_TWO_DEVICES_H
#define AT_TEST_TWO_DEVICES_H

#include "src/base/backend.h"

int __real_attune_device_count(void);
attune_status __real_attune_device_at(attune_device **out, int index);
int __wrap_attune_device_count(void);
attune_status __wrap_attune_device_at(attune_device **out, int index);

static attune_device second_device;

/* Its number follows the real ones. */
static inline attune_device *second_device_of(attune_device *first) {
  second_device = *first;
  second_device.default_stream = NULL;
  second_device.memory = NULL;
  second_device.index = __real_attune_device_count();
  at_copy_text(second_device.name, sizeof second_device.name, "host:1");
  at_copy_text(second_device.identity, sizeof second_device.identity, "the second device");
  return &second_device;
}

int __wrap_attune_device_count(void) {
  return __real_attune_device_count() + (second_device.backend.name != NULL);
}

attune_status __wrap_attune_device_at(attune_device **out, int index) {
  if (!second_device.backend.name || index != second_device.index) return __real_attune_device_at(out, index);
  *out = &second_device;
  return ATTUNE_OK;
}

#endif
