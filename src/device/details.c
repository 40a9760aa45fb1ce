/* SPDX-License-Identifier: Apache-2.0
 * details.c: what devices are in detail: arguments are checked here, the backend knows the rest. */
#include <attune/details.h>
#include <attune/telemetry.h>

#include "src/base/backend.h"
#include "src/base/struct_size.h"
#ifdef AT_WITH_CUDA
#include "src/cuda/jit/kernel_compile.h"
#include "src/cuda/library/visible_devices.h"
#endif

#include <string.h>

attune_status attune_device_get_details(attune_device *device, attune_device_details *out) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(out, "point to an attune_device_details");
  attune_device_details full = {0};
  int64_t *numbers = &full.warp_size;
  const size_t from = offsetof(attune_device_details, warp_size), to = offsetof(attune_device_details, uuid);
  for (size_t i = 0; i < (to - from) / sizeof *numbers; i++) numbers[i] = ATTUNE_NOT_KNOWN;
  if (device->properties.kind == ATTUNE_DEVICE_HOST) full.tf32 = 0;
  AT_TRY(device->backend.device->details(device, &full));
  return AT_GIVE(out, &full);
}

attune_status attune_device_get_attribute(attune_device *device, int attribute, int *out) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(out, "point to an int");
  attune_status status = at_needs(device, runtime);
  return status == ATTUNE_OK ? device->backend.runtime->attribute(device, attribute, out) : status;
}

static attune_status check_limit(const attune_device *device, attune_limit limit) {
  AT_REQUIRE_DEVICE(device);
  if ((int)limit < ATTUNE_LIMIT_STACK || limit > ATTUNE_LIMIT_PERSISTING_L2)
    return AT_INVALID("limit is %d; should be stack (0), printf (1), heap (2) or persisting L2 (3)", (int)limit);
  return at_needs(device, runtime);
}

attune_status attune_device_get_limit(attune_device *device, attune_limit limit, size_t *out) {
  AT_REQUIRE_AS(out, "point to a size_t");
  attune_status status = check_limit(device, limit);
  return status == ATTUNE_OK ? device->backend.runtime->get_limit(device, limit, out) : status;
}

attune_status attune_device_set_limit(attune_device *device, attune_limit limit, size_t bytes) {
  attune_status status = check_limit(device, limit);
  return status == ATTUNE_OK ? device->backend.runtime->set_limit(device, limit, bytes) : status;
}

attune_status attune_device_get_schedule(attune_device *device, attune_schedule *out) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(out, "point to an attune_schedule");
  attune_status status = at_needs(device, runtime);
  return status == ATTUNE_OK ? device->backend.runtime->get_schedule(device, out) : status;
}

attune_status attune_device_set_schedule(attune_device *device, attune_schedule schedule) {
  AT_REQUIRE_DEVICE(device);
  if ((int)schedule < 0 || schedule > ATTUNE_SCHEDULE_BLOCK || (int)schedule == 3)
    return AT_INVALID("schedule is %d; should be auto (0), spin (1), yield (2) or block (4)", (int)schedule);
  attune_status status = at_needs(device, runtime);
  return status == ATTUNE_OK ? device->backend.runtime->set_schedule(device, schedule) : status;
}

const char *attune_architecture_name(int major, int minor) {
  static const struct {
    int major, from, to; /* minors */
    const char *name;
  } names[] = {{2, 0, 9, "Fermi"},  {3, 0, 9, "Kepler"},     {5, 0, 9, "Maxwell"},      {6, 0, 9, "Pascal"},
               {7, 0, 4, "Volta"},  {7, 5, 9, "Turing"},     {8, 9, 9, "Ada Lovelace"}, {8, 0, 8, "Ampere"},
               {9, 0, 9, "Hopper"}, {10, 0, 9, "Blackwell"}, {11, 0, 9, "Blackwell"},   {12, 0, 9, "Blackwell"}};
  for (size_t i = 0; i < AT_COUNT(names); i++)
    if (names[i].major == major && minor >= names[i].from && minor <= names[i].to) return names[i].name;
  return "unknown";
}

int attune_cuda_architectures(int *out, int most) {
#ifdef AT_WITH_CUDA
  return at_architectures_known(out, out ? most : 0);
#else
  (void)out;
  (void)most;
  return 0;
#endif
}

int attune_built_with_cuda(void) {
#ifdef AT_WITH_CUDA
  return 1;
#else
  return 0;
#endif
}

attune_status attune_cuda_count(int *out) {
  AT_REQUIRE_AS(out, "point to an int");
  *out = 0;
#ifdef AT_WITH_CUDA
  return at_cuda_visible_count(out);
#else
  return ATTUNE_OK;
#endif
}

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
