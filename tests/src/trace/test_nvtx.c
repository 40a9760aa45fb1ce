/* SPDX-License-Identifier: Apache-2.0
 * test_nvtx.c: how tools see memory through NVTX: a tool that is linked in gets heaps and regions as it must. Needs the
 * toolkit, and no GPU. */
#include "tests/support/check.h"

#include "src/cuda/memory/memory.h"

#ifdef AT_CUDA_NVTX
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExtMem.h>

static int heaps, gone_heaps, regions, gone_regions;
static char memory[1 << 20];

static nvtxMemHeapHandle_t heap_register(nvtxDomainHandle_t domain, const nvtxMemHeapDesc_t *desc) {
  const nvtxMemVirtualRangeDesc_t *range = desc->typeSpecificDesc;
  (void)domain;
  assert_int_equal(desc->extCompatID, NVTX_EXT_COMPATID_MEM);
  assert_int_equal(desc->structSize, sizeof *desc);
  assert_int_equal(desc->usage, NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR);
  assert_int_equal(desc->type, NVTX_MEM_TYPE_VIRTUAL_ADDRESS);
  assert_int_equal(desc->typeSpecificDescSize, sizeof *range);
  assert_int_equal(desc->messageType, NVTX_MESSAGE_TYPE_ASCII);
  assert_string_equal(desc->message.ascii, "cuda:7");
  assert_ptr_equal(range->ptr, memory);
  assert_int_equal(range->size, sizeof memory);
  heaps++;
  return (nvtxMemHeapHandle_t)(uintptr_t)range->ptr;
}

static void heap_unregister(nvtxDomainHandle_t domain, nvtxMemHeapHandle_t heap) {
  (void)domain;
  assert_ptr_equal(heap, memory);
  gone_heaps++;
}

static void regions_register(nvtxDomainHandle_t domain, const nvtxMemRegionsRegisterBatch_t *batch) {
  const nvtxMemVirtualRangeDesc_t *range = batch->regionDescElements;
  (void)domain;
  assert_int_equal(batch->extCompatID, NVTX_EXT_COMPATID_MEM);
  assert_int_equal(batch->structSize, sizeof *batch);
  assert_int_equal(batch->regionType, NVTX_MEM_TYPE_VIRTUAL_ADDRESS);
  assert_ptr_equal(batch->heap, memory);
  assert_int_equal(batch->regionCount, 1);
  assert_int_equal(batch->regionDescElementSize, sizeof *range);
  assert_ptr_equal(range->ptr, memory + 512);
  assert_int_equal(range->size, 1024);
  regions++;
}

static void regions_unregister(nvtxDomainHandle_t domain, const nvtxMemRegionsUnregisterBatch_t *batch) {
  (void)domain;
  assert_int_equal(batch->extCompatID, NVTX_EXT_COMPATID_MEM);
  assert_int_equal(batch->structSize, sizeof *batch);
  assert_int_equal(batch->refType, NVTX_MEM_REGION_REF_TYPE_POINTER);
  assert_int_equal(batch->refCount, 1);
  assert_int_equal(batch->refElementSize, sizeof *batch->refElements);
  assert_ptr_equal(batch->refElements[0].pointer, memory + 512);
  gone_regions++;
}

static int take_the_calls(nvtxExtModuleInfo_t *module) {
  if (module->moduleId != NVTX_EXT_MODULEID_MEM || module->compatId != NVTX_EXT_COMPATID_MEM) return 0;
  intptr_t *slots = module->segments[0].functionSlots;
  slots[NVTX3EXT_CBID_nvtxMemHeapRegister] = (intptr_t)heap_register;
  slots[NVTX3EXT_CBID_nvtxMemHeapUnregister] = (intptr_t)heap_unregister;
  slots[NVTX3EXT_CBID_nvtxMemRegionsRegister] = (intptr_t)regions_register;
  slots[NVTX3EXT_CBID_nvtxMemRegionsUnregister] = (intptr_t)regions_unregister;
  return 1;
}

/* NVTX's own name for a tool that is part of the program. */
extern NvtxExtInitializeInjectionFunc_t InitializeInjectionNvtxExtension_fnptr;
NvtxExtInitializeInjectionFunc_t InitializeInjectionNvtxExtension_fnptr = take_the_calls;

TEST(a_tool_is_told) {
  attune_device device = {.name = "cuda:7"};
  void *note = at_cuda_backend.notes->segment(&device, memory, sizeof memory);
  assert_ptr_equal(note, memory);
  at_cuda_backend.notes->block(&device, note, memory + 512, 1024);
  assert_int_equal(regions, 1);
  at_cuda_backend.notes->forget_block(&device, note, memory + 512);
  assert_int_equal(gone_regions, 1);
  at_cuda_backend.notes->forget_segment(&device, note);
  assert_int_equal(heaps, 1);
  assert_int_equal(gone_heaps, 1);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
#else
int main(void) {
  printf("skipped: the toolkit has no NVTX memory extension\n");
  return 77;
}
#endif
