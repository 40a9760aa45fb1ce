/* SPDX-License-Identifier: Apache-2.0
 * telemetry.h: a device's current utilization, temperature and power, from NVML for a GPU and from the kernel for the
 * host. NVML comes with NVIDIA's driver; attune opens it at the first call of this header. Where it is missing, or
 * cannot report a figure (a virtual GPU, an old driver, no permission), the field is ATTUNE_NOT_KNOWN and the call
 * still succeeds.
 *
 * The figures are for the whole device, including other processes. No context is created. */
#ifndef ATTUNE_TELEMETRY_H
#define ATTUNE_TELEMETRY_H

#include <attune/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of attune_telemetry.slowdown: why the clock is below its maximum. */
enum {
  ATTUNE_SLOW_IDLE = 1,          /* nothing to do */
  ATTUNE_SLOW_SETTING = 2,       /* a user's clock setting */
  ATTUNE_SLOW_POWER_CAP = 4,     /* the power limit */
  ATTUNE_SLOW_HEAT = 8,          /* the GPU or its memory is hot */
  ATTUNE_SLOW_POWER_BRAKE = 16,  /* asserted by the machine's power supply */
  ATTUNE_SLOW_HARDWARE = 32,     /* the hardware protects itself: heat or power */
  ATTUNE_SLOW_SYNCHRONIZED = 64, /* synchronized with a group of GPUs */
  ATTUNE_SLOW_OTHER = 128        /* NVML has another reason */
};

/* Telemetry of a device. Every field may be ATTUNE_NOT_KNOWN. */
typedef struct attune_telemetry {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  /* GPU: the part of the latest period, up to a second, in which a kernel ran. Host: the part of all CPUs' time since
   * this process last asked; not known at the first call. */
  int64_t busy_percent;
  int64_t memory_busy_percent; /* the part of that period with memory traffic; not on the host */
  int64_t memory_used_bytes;   /* as in nvidia-smi; on the host, memory not available without swapping */
  int64_t memory_total_bytes;
  int64_t temperature_c;
  int64_t temperature_slow_c; /* slowdown threshold */
  int64_t power_mw;           /* milliwatts, current or averaged over the latest second */
  int64_t power_limit_mw;
  int64_t clock_mhz; /* of the multiprocessors; on the host, of the first CPU */
  int64_t clock_most_mhz;
  int64_t memory_clock_mhz;
  int64_t memory_clock_most_mhz;
  int64_t slowdown; /* ATTUNE_SLOW_ bits; 0: none */
} attune_telemetry;

/* Fills *out. Takes some microseconds for each figure. Errors: INVALID_ARGUMENT. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_device_get_telemetry(attune_device *device, attune_telemetry *out);

/* A process that computes on a device. */
typedef struct attune_device_process {
  int64_t pid; /* as the driver reports it: in a container it may be the machine's pid */
  int64_t memory_bytes;
} attune_device_process;

/* Called with a process; a nonzero return ends the iteration. */
typedef int (*attune_device_process_fn)(void *user, const attune_device_process *process);

/* Calls fn for each process that computes on the device, this one too. Takes milliseconds. Errors: INVALID_ARGUMENT,
 * UNSUPPORTED (the host, or NVML cannot report them), OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_device_each_process(attune_device *device, attune_device_process_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
