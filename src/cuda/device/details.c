/* SPDX-License-Identifier: Apache-2.0
 * details.c: CUDA's attributes and limits. None of the attributes needs a context. */
#include <ctype.h>
#include <string.h>

#include "src/cuda/context/state.h"
#include "src/process/vendor.h"

#define NUMBER(member, attribute) \
  { offsetof(attune_device_details, member), attribute }

static const struct {
  size_t offset;
  enum cudaDeviceAttr attribute;
} numbers[] = {
    NUMBER(warp_size, cudaDevAttrWarpSize),
    NUMBER(threads_per_block, cudaDevAttrMaxThreadsPerBlock),
    NUMBER(threads_per_processor, cudaDevAttrMaxThreadsPerMultiProcessor),
    NUMBER(blocks_per_processor, cudaDevAttrMaxBlocksPerMultiprocessor),
    NUMBER(block_x, cudaDevAttrMaxBlockDimX),
    NUMBER(block_y, cudaDevAttrMaxBlockDimY),
    NUMBER(block_z, cudaDevAttrMaxBlockDimZ),
    NUMBER(grid_x, cudaDevAttrMaxGridDimX),
    NUMBER(grid_y, cudaDevAttrMaxGridDimY),
    NUMBER(grid_z, cudaDevAttrMaxGridDimZ),
    NUMBER(shared_per_block, cudaDevAttrMaxSharedMemoryPerBlock),
    NUMBER(shared_per_block_optin, cudaDevAttrMaxSharedMemoryPerBlockOptin),
    NUMBER(shared_per_processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor),
    NUMBER(shared_reserved_per_block, cudaDevAttrReservedSharedMemoryPerBlock),
    NUMBER(registers_per_block, cudaDevAttrMaxRegistersPerBlock),
    NUMBER(registers_per_processor, cudaDevAttrMaxRegistersPerMultiprocessor),
    NUMBER(constant_bytes, cudaDevAttrTotalConstantMemory),
    NUMBER(persisting_l2_bytes, cudaDevAttrMaxPersistingL2CacheSize),
    NUMBER(clock_khz, cudaDevAttrClockRate),
    NUMBER(memory_clock_khz, cudaDevAttrMemoryClockRate),
    NUMBER(memory_bus_bits, cudaDevAttrGlobalMemoryBusWidth),
    NUMBER(copy_engines, cudaDevAttrAsyncEngineCount),
    NUMBER(integrated, cudaDevAttrIntegrated),
    NUMBER(ecc, cudaDevAttrEccEnabled),
    NUMBER(compute_mode, cudaDevAttrComputeMode),
    NUMBER(unified_addresses, cudaDevAttrUnifiedAddressing),
    NUMBER(managed_memory, cudaDevAttrManagedMemory),
    NUMBER(concurrent_managed, cudaDevAttrConcurrentManagedAccess),
    NUMBER(pageable_access, cudaDevAttrPageableMemoryAccess),
    NUMBER(cooperative_launch, cudaDevAttrCooperativeLaunch),
    NUMBER(concurrent_kernels, cudaDevAttrConcurrentKernels),
    NUMBER(memory_pools, cudaDevAttrMemoryPoolsSupported),
    NUMBER(gpudirect_rdma, cudaDevAttrGPUDirectRDMASupported),
    NUMBER(multicast, (enum cudaDeviceAttr)132), /* of the driver's 12.1; the runtime has no name for it */
#if CUDART_VERSION >= 12020
    NUMBER(numa_node, cudaDevAttrHostNumaId),
#endif
};

/* "GPU-" and 32 digits, to the form with dashes. */
static void write_uuid(char *out, size_t size, const char *identity) {
  static const int groups[] = {8, 4, 4, 4, 12};
  size_t at = 0;
  const char *digits = identity + 4;
  if (strlen(identity) != 36) return;
  (void)at_append(out, size, &at, "GPU");
  for (size_t i = 0; i < AT_COUNT(groups); i++) {
    (void)at_append(out, size, &at, "-%.*s", groups[i], digits);
    digits += groups[i];
  }
}

attune_status at_cuda_details(attune_device *device, attune_device_details *out) {
  AT_TRY(at_cuda_check_fork(device));
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return at_vendor_refuse();
  for (size_t i = 0; i < AT_COUNT(numbers); i++) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, numbers[i].attribute, device->ordinal) == cudaSuccess)
      *(int64_t *)((char *)out + numbers[i].offset) = value;
    else
      (void)cudaGetLastError();
  }
  out->tf32 = device->properties.capability_major >= 8;
  write_uuid(out->uuid, sizeof out->uuid, device->identity);
  attune_status status = at_cuda_check(device, cudaDeviceGetPCIBusId(out->pci, (int)sizeof out->pci, device->ordinal),
                                       "cudaDeviceGetPCIBusId");
  at_vendor_leave();
  for (char *c = out->pci; *c; c++) *c = (char)tolower((unsigned char)*c);
  return status;
}

attune_status at_cuda_attribute(attune_device *device, int attribute, int *out) {
  attune_status status = at_cuda_check_fork(device);
  if (status != ATTUNE_OK) return status;
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return at_vendor_refuse();
  const cudaError_t error = cudaDeviceGetAttribute(out, (enum cudaDeviceAttr)attribute, device->ordinal);
  if (error == cudaErrorInvalidValue)
    (void)cudaGetLastError();
  else
    status = at_cuda_check(device, error, "cudaDeviceGetAttribute");
  at_vendor_leave();
  if (error != cudaErrorInvalidValue) return status;
  return AT_INVALID("attribute is %d; should be a cudaDeviceAttr of this CUDA version", attribute);
}

static const enum cudaLimit limits[] = {cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize,
                                        cudaLimitPersistingL2CacheSize};

static attune_status check(attune_device *device, cudaError_t error, attune_limit limit, const char *what) {
  if (error != cudaErrorUnsupportedLimit && error != cudaErrorInvalidValue) return at_cuda_check(device, error, what);
  (void)cudaGetLastError();
  if (error == cudaErrorInvalidValue)
    return AT_INVALID("%s does not accept this size for limit %d, or not at this time; see details.h", device->name,
                      (int)limit);
  return at_fail(ATTUNE_UNSUPPORTED, "device %s has no limit %d", device->name, (int)limit);
}

attune_status at_cuda_get_limit(attune_device *device, attune_limit limit, size_t *out) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = check(device, cudaDeviceGetLimit(out, limits[limit]), limit, "cudaDeviceGetLimit");
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_set_limit(attune_device *device, attune_limit limit, size_t bytes) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = check(device, cudaDeviceSetLimit(limits[limit], bytes), limit, "cudaDeviceSetLimit");
  at_cuda_leave(&scope);
  return status;
}
