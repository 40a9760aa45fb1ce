/* SPDX-License-Identifier: Apache-2.0
 * details.h: detailed device properties, for programs with kernels of their own: sizes of blocks, registers and shared
 * memory, location in the machine, limits, and how threads wait for the device. On the host most are unknown. */
#ifndef ATTUNE_DETAILS_H
#define ATTUNE_DETAILS_H

#include <attune/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Properties in addition to attune_device_properties. Numbers may be ATTUNE_NOT_KNOWN, strings "". 1 is yes, 0 is
 * no. */
typedef struct attune_device_details {
  size_t size;                                             /* sizeof this struct, or 0 (types.h) */
  int64_t warp_size;                                       /* threads */
  int64_t threads_per_block, threads_per_processor;        /* at most */
  int64_t blocks_per_processor;                            /* at most */
  int64_t block_x, block_y, block_z;                       /* threads of a block, at most */
  int64_t grid_x, grid_y, grid_z;                          /* blocks of a grid, at most */
  int64_t shared_per_block;                                /* bytes of shared memory available to any kernel */
  int64_t shared_per_block_optin;                          /* bytes available to a kernel that opts in */
  int64_t shared_per_processor, shared_reserved_per_block; /* bytes */
  int64_t registers_per_block, registers_per_processor;    /* of 32 bits */
  int64_t constant_bytes;
  int64_t persisting_l2_bytes; /* maximum part of the L2 cache for persisting data */
  int64_t clock_khz, memory_clock_khz, memory_bus_bits;
  int64_t copy_engines;
  int64_t integrated;   /* shares the host's memory */
  int64_t ecc;          /* ECC is enabled */
  int64_t compute_mode; /* CUDA's number: 0 default, 2 prohibited, 3 exclusive process */
  int64_t unified_addresses, managed_memory, concurrent_managed, pageable_access, cooperative_launch,
      concurrent_kernels;
  int64_t tf32;                                    /* its tensor cores multiply in TF32 (ATTUNE_REDUCED) */
  int64_t memory_pools, gpudirect_rdma, multicast; /* multicast: all-reduce in the NVLink switch */
  int64_t numa_node;                               /* NUMA node of the host memory closest to it */
  char uuid[48];                                   /* "GPU-0123abcd-...", as in nvidia-smi */
  char pci[24];                                    /* "0000:17:00.0" */
} attune_device_details;

/* Fills *out. Creates no context. Errors: INVALID_ARGUMENT, DEVICE_ERROR. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_device_get_details(attune_device *device, attune_device_details *out);

/* Stores CUDA's attribute number `attribute` (a cudaDeviceAttr) of a cuda device in *out. Creates no context. Errors:
 * INVALID_ARGUMENT (also: CUDA has no such attribute), UNSUPPORTED (the host), DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_get_attribute(attune_device *device, int attribute, int *out);

/* Limits on resources that kernels of a cuda device use in addition to their arguments. */
typedef enum attune_limit {
  ATTUNE_LIMIT_STACK = 0,        /* bytes of stack per thread */
  ATTUNE_LIMIT_PRINTF = 1,       /* bytes of the buffer for printf in kernels */
  ATTUNE_LIMIT_HEAP = 2,         /* bytes of the heap for malloc in kernels */
  ATTUNE_LIMIT_PERSISTING_L2 = 3 /* bytes of the L2 cache for persisting data */
} attune_limit;

/* Stores the limit in *out. Creates a context. Errors: INVALID_ARGUMENT, UNSUPPORTED (the host; the device has no such
 * limit), DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_get_limit(attune_device *device, attune_limit limit, size_t *out);

/* Sets a limit; the device may round it. PRINTF and HEAP can change only before the first kernel that uses them. Errors
 * as above, OUT_OF_MEMORY. Any thread; not in capture. */
ATTUNE_API attune_status attune_device_set_limit(attune_device *device, attune_limit limit, size_t bytes);

/* How a CPU thread waits for a cuda device. */
typedef enum attune_schedule {
  ATTUNE_SCHEDULE_AUTO = 0,  /* spin if there are more CPUs than contexts, otherwise yield; the default */
  ATTUNE_SCHEDULE_SPIN = 1,  /* lowest latency, keeps a CPU busy */
  ATTUNE_SCHEDULE_YIELD = 2, /* spin, but let other threads run */
  ATTUNE_SCHEDULE_BLOCK = 4  /* sleep */
} attune_schedule;

/* Stores the setting in *out. Errors: INVALID_ARGUMENT, UNSUPPORTED (the host, whose threads spin for some microseconds
 * and then sleep), DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_get_schedule(attune_device *device, attune_schedule *out);

/* Sets how threads wait, for the device's context; does not create one. Errors and threads as above; UNSUPPORTED also
 * if the context already exists, because drivers accept the setting only before the device's first use. */
ATTUNE_API attune_status attune_device_set_schedule(attune_device *device, attune_schedule schedule);

/* Returns the name of NVIDIA's architecture for a compute capability: "Volta", "Turing", "Ampere", "Ada Lovelace",
 * "Hopper", "Blackwell" ...; "unknown". Borrowed; any thread. */
ATTUNE_API const char *attune_architecture_name(int capability_major, int capability_minor);

/* Stores the compute capabilities for which attune can compile kernels here, in ascending order, 90 for 9.0, in
 * out[most]: those that the run-time compiler supports. Newer devices get code that their driver compiles. Returns how
 * many there are, even if `most` is less; 0 without the compiler. out may be NULL if most is 0. Any thread. */
ATTUNE_API int attune_cuda_architectures(int *out, int most);

#ifdef __cplusplus
}
#endif
#endif
