/* SPDX-License-Identifier: Apache-2.0
 * annotate.c: segments as NVTX heaps and blocks as regions of them, for compute-sanitizer and Nsight. The header is the
 * toolkit's; it finds the tool at run time, and without one every call is a jump over nothing.
 * And the stretch that a profiler looks at. */
#include <cuda_profiler_api.h>

#include "src/cuda/context/state.h"
#include "src/cuda/memory/memory.h"

#ifdef AT_CUDA_NVTX
#include <nvtx3/nvToolsExtMem.h>

static pthread_once_t domain_once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain; /* constant after domain_once */

static void make_domain(void) {
  domain = nvtxDomainCreateA("attune");
}

/* compute-sanitizer wants the runtime up before the first call of NVTX: the segment's memory came from it. */
void *at_cuda_note_segment(attune_device *device, const void *base, size_t bytes) {
  const nvtxMemVirtualRangeDesc_t range = {.size = bytes, .ptr = base};
  nvtxMemHeapDesc_t heap = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                            .structSize = sizeof heap,
                            .usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR,
                            .type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                            .typeSpecificDescSize = sizeof range,
                            .typeSpecificDesc = &range,
                            .messageType = NVTX_MESSAGE_TYPE_ASCII};
  heap.message.ascii = device->name;
  pthread_once(&domain_once, make_domain);
  nvtxMemHeapHandle_t made = nvtxMemHeapRegister(domain, &heap);
  return made == NVTX_MEM_HEAP_HANDLE_NO_TOOL ? NULL : made;
}

void at_cuda_forget_segment(attune_device *device, void *note) {
  (void)device;
  nvtxMemHeapUnregister(domain, note);
}

void at_cuda_note_block(attune_device *device, void *note, const void *address, size_t bytes) {
  (void)device;
  const nvtxMemVirtualRangeDesc_t range = {.size = bytes, .ptr = address};
  const nvtxMemRegionsRegisterBatch_t batch = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                               .structSize = sizeof batch,
                                               .regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                               .heap = note,
                                               .regionCount = 1,
                                               .regionDescElementSize = sizeof range,
                                               .regionDescElements = &range};
  nvtxMemRegionsRegister(domain, &batch);
}

void at_cuda_forget_block(attune_device *device, void *note, const void *address) {
  (void)device;
  (void)note; /* a region is known by its address */
  const nvtxMemRegionRef_t region = {.pointer = address};
  const nvtxMemRegionsUnregisterBatch_t batch = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                                 .structSize = sizeof batch,
                                                 .refType = NVTX_MEM_REGION_REF_TYPE_POINTER,
                                                 .refCount = 1,
                                                 .refElementSize = sizeof region,
                                                 .refElements = &region};
  nvtxMemRegionsUnregister(domain, &batch);
}
#endif

attune_status at_cuda_profiler(attune_device *device, bool start) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = start ? at_cuda_check(device, cudaProfilerStart(), "cudaProfilerStart")
                               : at_cuda_check(device, cudaProfilerStop(), "cudaProfilerStop");
  at_cuda_leave(&scope);
  return status;
}
