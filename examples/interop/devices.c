/* SPDX-License-Identifier: Apache-2.0
 * devices.c: attune's cuda:N is CUDA's device N: questions to either have one answer. */
#include "examples/interop/interop.h"

#include <string.h>

static void one(int ordinal) {
  struct cudaDeviceProp about;
  attune_device_properties ours = {0};
  attune_device_details details = {0};
  char name[16], pci[32] = "";
  int found = -1, current = -1, count = 0;
  snprintf(name, sizeof name, "cuda:%d", ordinal);
  OK(attune_device_get(&interop_device, name));
  OK(attune_device_get_properties(interop_device, &ours));
  OK(attune_device_get_details(interop_device, &details));
  CUDA(cudaGetDeviceProperties(&about, ordinal));
  MUST(strcmp(about.name, ours.name) == 0 && about.multiProcessorCount == ours.processors);
  MUST(about.major == ours.capability_major && about.totalGlobalMem == ours.memory_bytes);
  CUDA(cudaDeviceGetPCIBusId(pci, sizeof pci, ordinal));
  CUDA(cudaDeviceGetByPCIBusId(&found, details.pci));
  MUST(found == ordinal);
  CUDA(cudaChooseDevice(&found, &about));
  CUDA(cudaGetDeviceCount(&count));
  MUST(found >= 0 && found < count);

  /* attune works on its device and leaves the thread's own as it was. */
  CUDA(cudaSetDevice(count - 1));
  uint64_t available = 0;
  OK(attune_device_memory_info(interop_device, &available, NULL));
  CUDA(cudaGetDevice(&current));
  MUST(current == count - 1 && available > 0);
}

static void pairs(int count) {
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++) {
      char name[16];
      attune_device *device = NULL, *peer = NULL;
      int can = 0, same = 0;
      if (i == j) continue;
      snprintf(name, sizeof name, "cuda:%d", i);
      OK(attune_device_get(&device, name));
      snprintf(name, sizeof name, "cuda:%d", j);
      OK(attune_device_get(&peer, name));
      OK(attune_device_can_access_peer(&can, device, peer));
      CUDA(cudaDeviceGetP2PAttribute(&same, cudaDevP2PAttrAccessSupported, i, j));
      MUST(can == same);
    }
}

int main(void) {
  attune_stream *stream = interop_begin();
  int count = 0, runtime = 0, driver = 0;
  attune_device_properties about = {0};
  CUDA(cudaGetDeviceCount(&count));
  MUST(attune_device_count() == count + 1);
  CUDA(cudaRuntimeGetVersion(&runtime));
  CUDA(cudaDriverGetVersion(&driver));
  OK(attune_device_get_properties(interop_device, &about));
  MUST(driver == about.driver_version && runtime > 0);
  for (int i = 0; i < count; i++) one(i);
  pairs(count);
  OK(attune_device_get(&interop_device, "cuda:0"));
  CUDA(cudaSetDevice(0));

  /* For what a network card wrote. */
  int ways = 0;
  OK(attune_device_get_attribute(interop_device, cudaDevAttrGPUDirectRDMAFlushWritesOptions, &ways));
  if (ways & cudaFlushGPUDirectRDMAWritesOptionHost)
    CUDA(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                            cudaFlushGPUDirectRDMAWritesToOwner));
  return interop_end(stream, "questions about devices");
}
