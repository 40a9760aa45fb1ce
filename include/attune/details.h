/* SPDX-License-Identifier: Apache-2.0
 * details.h: what a device is in detail, for programs with kernels of their own: sizes of blocks, registers and shared
 * memory, its number in the machine, limits, and how threads wait for it. On the host most is not known. */
#ifndef ATTUNE_DETAILS_H
#define ATTUNE_DETAILS_H

#include <attune/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Beside attune_device_properties. Numbers may be ATTUNE_NOT_KNOWN, texts "". Yes is 1, no 0. */
typedef struct attune_device_details {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  int64_t warp_size;                                       /* threads */
  int64_t threads_per_block, threads_per_processor;        /* at most */
  int64_t blocks_per_processor;                            /* at most */
  int64_t block_x, block_y, block_z;                       /* threads of a block, at most */
  int64_t grid_x, grid_y, grid_z;                          /* blocks of a grid, at most */
  int64_t shared_per_block;                                /* bytes of shared memory that any kernel may have */
  int64_t shared_per_block_optin;                          /* that one which asks for it may have */
  int64_t shared_per_processor, shared_reserved_per_block; /* bytes */
  int64_t registers_per_block, registers_per_processor;    /* of 32 bits */
  int64_t constant_bytes;
  int64_t persisting_l2_bytes; /* of the L2 cache, at most, for data that is to stay */
  int64_t clock_khz, memory_clock_khz, memory_bus_bits;
  int64_t copy_engines;
  int64_t integrated;   /* it shares the host's memory */
  int64_t ecc;          /* memory errors are corrected */
  int64_t compute_mode; /* CUDA's number: 0 for all, 2 prohibited, 3 for one process */
  int64_t unified_addresses, managed_memory, concurrent_managed, pageable_access, cooperative_launch,
      concurrent_kernels;
  int64_t tf32;                                    /* products in TF32 are done by its tensor cores (ATTUNE_REDUCED) */
  int64_t memory_pools, gpudirect_rdma, multicast; /* the last: for all-reduce in the switch of NVLink */
  int64_t numa_node;                               /* of the host's memory next to it */
  char uuid[48];                                   /* "GPU-0123abcd-..." as nvidia-smi tells it */
  char pci[24];                                    /* "0000:17:00.0" */
} attune_device_details;

/* Fills *out. Creates no context. Errors: INVALID_ARGUMENT, DEVICE_ERROR. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_device_get_details(attune_device *device, attune_device_details *out);

/* CUDA's own attribute number `attribute` (a cudaDeviceAttr) of a cuda device into *out. Creates no context. Errors:
 * INVALID_ARGUMENT (also: CUDA knows no such attribute), UNSUPPORTED (the host), DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_get_attribute(attune_device *device, int attribute, int *out);

/* What kernels of a cuda device may use beside what they are given. */
typedef enum attune_limit {
  ATTUNE_LIMIT_STACK = 0,        /* bytes of stack a thread */
  ATTUNE_LIMIT_PRINTF = 1,       /* bytes that printf of kernels keeps until the host reads them */
  ATTUNE_LIMIT_HEAP = 2,         /* bytes that malloc of kernels has */
  ATTUNE_LIMIT_PERSISTING_L2 = 3 /* bytes of the L2 cache for data that is to stay */
} attune_limit;

/* The limit into *out. Creates a context. Errors: INVALID_ARGUMENT, UNSUPPORTED (the host; the device has no such limit),
 * DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_get_limit(attune_device *device, attune_limit limit, size_t *out);

/* Asks for a limit; the device may round it. PRINTF and HEAP can change only before the first kernel that uses them.
 * Errors as above, OUT_OF_MEMORY. Not in capture. */
ATTUNE_API attune_status attune_device_set_limit(attune_device *device, attune_limit limit, size_t bytes);

/* How a CPU thread waits for a cuda device. */
typedef enum attune_schedule {
  ATTUNE_SCHEDULE_AUTO = 0,  /* spin where there are more CPUs than contexts, else yield; the default */
  ATTUNE_SCHEDULE_SPIN = 1,  /* least delay, a CPU is busy */
  ATTUNE_SCHEDULE_YIELD = 2, /* spin, and let other threads run */
  ATTUNE_SCHEDULE_BLOCK = 4  /* sleep */
} attune_schedule;

/* The setting into *out. Errors: INVALID_ARGUMENT, UNSUPPORTED (the host, whose threads spin for some microseconds and
 * then sleep), DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_get_schedule(attune_device *device, attune_schedule *out);

/* Sets it for the device's context. Creates none. Errors and threads as above; UNSUPPORTED, too, where there is a context
 * already, for drivers take it before the first use of the device only. */
ATTUNE_API attune_status attune_device_set_schedule(attune_device *device, attune_schedule schedule);

/* The name of NVIDIA's architecture of a compute capability: "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper",
 * "Blackwell" ...; "unknown". Borrowed; any thread. */
ATTUNE_API const char *attune_architecture_name(int capability_major, int capability_minor);

/* The compute capabilities for which attune can make kernels here, rising, 90 for 9.0, into out[most]: what the run-time
 * compiler knows. Devices newer than the last one get code that their driver compiles. Returns how many there are, 0
 * without the compiler, also if `most` is less; out may be NULL if most is 0. Any thread. */
ATTUNE_API int attune_cuda_architectures(int *out, int most);

#ifdef __cplusplus
}
#endif
#endif
