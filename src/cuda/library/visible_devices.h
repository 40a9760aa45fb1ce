/* SPDX-License-Identifier: Apache-2.0
 * visible_devices.h: how many GPUs CUDA would show this process, without starting CUDA. */
#ifndef AT_CUDA_VISIBLE_DEVICES_H
#define AT_CUDA_VISIBLE_DEVICES_H

#include "src/base/support.h"

/* See attune_cuda_count. */
attune_status at_cuda_visible_count(int *out);

/* What CUDA_VISIBLE_DEVICES (NULL: not set) leaves of `total` GPUs, whose UUIDs uuid_of tells; -1: not known. */
int at_visible_of(const char *text, int total, bool (*uuid_of)(int index, char *out, size_t size));

#endif
