/* SPDX-License-Identifier: Apache-2.0
 * fingerprint.c: the device, its driver and libraries in one line. */
#include "tuning/fingerprint.h"

#include <attune/device.h>

attune_status at_fingerprint(attune_device *device, const at_op *const *ops, int op_count, char *out, size_t size) {
  attune_device_properties p;
  const attune_status status = attune_device_get_properties(device, &p);
  if (status != ATTUNE_OK) return status;
  size_t at = 0;
  bool ok = at_append(out, size, &at, "%s; %s", p.name, p.features);
  if (p.kind == ATTUNE_DEVICE_CUDA) ok = ok && at_append(out, size, &at, "; %d processors", p.processors);
  ok = ok && at_append(out, size, &at, "; %llu KiB cache", (unsigned long long)(p.cache_bytes >> 10));
  if (p.kind == ATTUNE_DEVICE_CUDA)
    ok = ok &&
         at_append(out, size, &at, "; cc %d.%d; driver %d", p.capability_major, p.capability_minor, p.driver_version);
  for (int i = 0; i < op_count; i++) {
    char libraries[512] = "";
    if (ops[i]->libraries && ops[i]->libraries(device, libraries, sizeof libraries) > 0)
      ok = ok && at_append(out, size, &at, "; %s", libraries);
  }
  ok = ok && at_append(out, size, &at, "; attune %d", AT_CODEGEN_VERSION);
  return ok ? ATTUNE_OK
            : at_fail(ATTUNE_INVALID_ARGUMENT, "out is %zu bytes, too small for the fingerprint; give 1024", size);
}
