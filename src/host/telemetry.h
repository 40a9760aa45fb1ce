/* SPDX-License-Identifier: Apache-2.0
 * telemetry.h: what the kernel tells of the host. */
#ifndef AT_HOST_TELEMETRY_H
#define AT_HOST_TELEMETRY_H

#include <attune/telemetry.h>

#include "src/base/backend.h"

/* The slot of the backend: all fields are not known before. */
void at_host_telemetry(attune_device *device, attune_telemetry *out);

/* Its parts, from any files of their form: /proc/stat, /sys/class/thermal. The first says what happened since the call
 * before it. */
int64_t at_host_busy_percent(const char *path);
int64_t at_host_temperature(const char *folder);

#endif
