/* SPDX-License-Identifier: Apache-2.0
 * device.h: the devices of this process: "host", which every machine has, and "cuda:0", "cuda:1", ... */
#ifndef ATTUNE_DEVICE_H
#define ATTUNE_DEVICE_H

#include <attune/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum attune_device_kind { ATTUNE_DEVICE_HOST = 1, ATTUNE_DEVICE_CUDA = 2 } attune_device_kind;

typedef struct attune_device_properties {
  attune_device_kind kind;
  char name[128];              /* "NVIDIA H200", or the CPU's model name */
  uint64_t memory_bytes;       /* device memory; on the host physical memory */
  int processors;              /* streaming multiprocessors; on the host logical CPUs this process may use */
  int capability_major;        /* CUDA compute capability; 0 on the host */
  int capability_minor;
  uint64_t cache_bytes;        /* L2; on the host the last-level cache */
  int driver_version;          /* CUDA driver, 13000 = 13.0; 0 on the host */
  char features[128];          /* host: "avx2 fma f16c avx512f ..."; cuda: "sm_90" */
} attune_device_properties;

/* The number of devices, at least 1: the host is always there. A machine without a CUDA driver has no cuda device and that
 * is no error. Initialises the CUDA driver, creates no context. Any thread. */
ATTUNE_API int attune_device_count(void);

/* Device number `index`, 0 <= index < attune_device_count(), into *out: cuda devices in their order, then the host.
 * Errors: INVALID_ARGUMENT. Borrowed; any thread. */
ATTUNE_API attune_status attune_device_at(attune_device **out, int index);

/* The device called `name`: "host", "cuda" (= "cuda:0"), "cuda:N"; NULL or "best" is the first cuda device, else the host.
 * Errors: INVALID_ARGUMENT (not a device name), NOT_FOUND (no such device here). Borrowed; any thread. */
ATTUNE_API attune_status attune_device_get(attune_device **out, const char *name);

/* "host" or "cuda:N". Borrowed; any thread; allowed in capture. NULL gives "none". */
ATTUNE_API const char *attune_device_name(const attune_device *device);

/* Fills *out. Errors: INVALID_ARGUMENT. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_device_get_properties(const attune_device *device, attune_device_properties *out);

/* Waits for all work of all streams of `device`, the program's own CUDA streams too, and returns what failed in it.
 * Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING. Any thread; not allowed in capture. */
ATTUNE_API attune_status attune_device_synchronize(attune_device *device);

#ifdef __cplusplus
}
#endif
#endif
