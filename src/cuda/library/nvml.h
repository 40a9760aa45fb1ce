/* SPDX-License-Identifier: Apache-2.0
 * nvml.h: NVIDIA's management library, opened at run time and absent without harm. It needs no CUDA: what it is asked
 * leaves a later fork usable. Nothing is ever shut down: attune makes no such call at exit. */
#ifndef AT_NVML_H
#define AT_NVML_H

#include <attune/telemetry.h>

#include <stdbool.h>

/* Opened at the first call; false: it is not here, or does not start. */
bool at_nvml_ready(void);

/* NVML's handle of the GPU at this PCI address; NULL: none. */
void *at_nvml_device(const char *bus);

/* How many GPUs the machine has, whatever CUDA_VISIBLE_DEVICES says; -1: not known. */
int at_nvml_count(void);

/* The UUID ("GPU-...") of GPU number `index` in NVML's order into out[size]; false: not known. */
bool at_nvml_uuid(int index, char *out, size_t size);

/* Figures of a GPU that never change, asked for once; start from AT_NVML_CONSTANTS_INIT. */
typedef struct at_nvml_constants {
  int64_t temperature_slow_c, clock_most_mhz, memory_clock_most_mhz;
} at_nvml_constants;
#define AT_NVML_CONSTANTS_INIT \
  { ATTUNE_NOT_KNOWN, ATTUNE_NOT_KNOWN, ATTUNE_NOT_KNOWN }

/* Fills in the fields of *out that NVML reports and leaves the others. The constants are the GPU's; one thread
 * at a time. */
void at_nvml_telemetry(void *handle, at_nvml_constants *constants, attune_telemetry *out);

/* The clock of the multiprocessors; 0: not known. True: hardware or heat slows it down, not a mere power cap. */
int at_nvml_clock(void *handle);
bool at_nvml_slowed(void *handle);

/* The processes that compute, into *out, which the caller frees; their number, or -1: not known; -2: no memory. */
int at_nvml_processes(void *handle, attune_device_process **out);

#endif
