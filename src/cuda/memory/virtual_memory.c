/* SPDX-License-Identifier: Apache-2.0
 * virtual_memory.c: addresses reserved apart from the memory behind them, which other devices and processes may use.
 * The driver's own calls, got from it at run time: a program with attune starts on a machine without a driver. Their
 * results have the numbers of the runtime's errors. */
#include <cuda.h>

#include "src/cuda/context/state.h"
#include "src/cuda/memory/memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct driver_calls {
  CUresult (*granularity)(size_t *out, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option);
  CUresult (*reserve)(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr address, unsigned long long flags);
  CUresult (*release)(CUdeviceptr address, size_t size);
  CUresult (*create)(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags);
  CUresult (*destroy)(CUmemGenericAllocationHandle handle);
  CUresult (*map)(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags);
  CUresult (*unmap)(CUdeviceptr address, size_t size);
  CUresult (*access)(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc, size_t count);
  CUresult (*attribute)(int *out, CUdevice_attribute attribute, CUdevice device);
  CUresult (*share)(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                    unsigned long long flags);
  CUresult (*receive)(CUmemGenericAllocationHandle *out, void *shared, CUmemAllocationHandleType type);
} driver_calls;

/* Target of the handle of a stretch of mapped memory. */
struct at_cuda_page {
  at_cuda_page *next, *previous; /* of the device; a page of another process is in no list */
  CUdeviceptr address;
  size_t bytes;
  CUmemGenericAllocationHandle memory;
  bool listed;
};

static pthread_once_t calls_once = PTHREAD_ONCE_INIT;
static driver_calls calls; /* constant after calls_once */
static bool calls_found;

static void find_calls(void) {
  calls_found =
      at_cuda_driver_call(&calls.granularity, "cuMemGetAllocationGranularity") &&
      at_cuda_driver_call(&calls.reserve, "cuMemAddressReserve") &&
      at_cuda_driver_call(&calls.release, "cuMemAddressFree") && at_cuda_driver_call(&calls.create, "cuMemCreate") &&
      at_cuda_driver_call(&calls.destroy, "cuMemRelease") && at_cuda_driver_call(&calls.map, "cuMemMap") &&
      at_cuda_driver_call(&calls.unmap, "cuMemUnmap") && at_cuda_driver_call(&calls.access, "cuMemSetAccess") &&
      at_cuda_driver_call(&calls.attribute, "cuDeviceGetAttribute") &&
      at_cuda_driver_call(&calls.share, "cuMemExportToShareableHandle") &&
      at_cuda_driver_call(&calls.receive, "cuMemImportFromShareableHandle");
}

static CUmemAllocationProp memory_of(const attune_device *device, bool shareable) {
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .requestedHandleTypes =
                                  shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE};
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device->ordinal;
  return prop;
}

static attune_status check(attune_device *device, CUresult result, const char *what) {
  return at_cuda_check(device, (cudaError_t)(int)result, what);
}

static attune_status enter(at_cuda_scope *scope, attune_device *device) {
  pthread_once(&calls_once, find_calls);
  if (!calls_found) return at_fail(ATTUNE_UNSUPPORTED, "the driver of %s has no virtual memory", device->name);
  return at_cuda_enter_relaxed(scope, device);
}

attune_status at_cuda_vm_granularity(attune_device *device, size_t *out) {
  at_cuda_scope scope;
  AT_TRY(enter(&scope, device));
  CUmemAllocationProp prop = memory_of(device, false);
  attune_status status = check(device, calls.granularity(out, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                               "cuMemGetAllocationGranularity");
  at_cuda_leave(&scope);
  return status;
}

/* cudaFree(NULL) makes the device's context, which the driver's calls need and would not make. */
attune_status at_cuda_vm_reserve(attune_device *device, void **out, size_t bytes) {
  at_cuda_scope scope;
  CUdeviceptr base = 0;
  *out = NULL;
  AT_TRY(enter(&scope, device));
  attune_status status = at_cuda_check(device, cudaFree(NULL), "cudaFree");
  if (status == ATTUNE_OK) status = check(device, calls.reserve(&base, bytes, 0, 0, 0), "cuMemAddressReserve");
  if (status == ATTUNE_OK) *out = (void *)(uintptr_t)base;
  at_cuda_leave(&scope);
  return status;
}

void at_cuda_vm_release(attune_device *device, void *base, size_t bytes) {
  at_cuda_scope scope;
  if (enter(&scope, device) != ATTUNE_OK) return;
  (void)check(device, calls.release((CUdeviceptr)(uintptr_t)base, bytes), "cuMemAddressFree");
  at_cuda_leave(&scope);
}

/* What is made without a descriptor never gets one, so everything is made with one where the driver has them. Some
 * systems promise descriptors and then refuse them: from then on there are none. */
static attune_status create(attune_device *device, CUmemGenericAllocationHandle *out, size_t bytes) {
  atomic_int *shareable = &at_cuda_device_of(device)->shareable;
  int wanted = atomic_load(shareable);
  if (wanted == AT_CUDA_SHAREABLE_UNKNOWN) {
    int found = 0;
    const CUdevice_attribute which = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
    if (calls.attribute(&found, which, device->ordinal) != CUDA_SUCCESS) found = 0;
    wanted = found ? AT_CUDA_SHAREABLE : AT_CUDA_NOT_SHAREABLE;
    atomic_store(shareable, wanted);
  }
  CUmemAllocationProp prop = memory_of(device, wanted == AT_CUDA_SHAREABLE);
  CUresult result = calls.create(out, bytes, &prop, 0);
  if (wanted == AT_CUDA_SHAREABLE && (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED)) {
    atomic_store(shareable, AT_CUDA_NOT_SHAREABLE);
    prop = memory_of(device, false);
    result = calls.create(out, bytes, &prop, 0);
  }
  return check(device, result, "cuMemCreate");
}

static CUmemAccessDesc access_of(int ordinal) {
  CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  desc.location.id = ordinal;
  return desc;
}

/* A result of the driver and of which call it is: it becomes a status, which may be logged, without a lock. */
typedef struct outcome {
  CUresult result;
  const char *what;
} outcome;

static attune_status check_outcome(attune_device *device, outcome found) {
  return check(device, found.result, found.what);
}

/* Maps page->memory and lets the devices of `readers` (by ordinal) into it. Takes the mapping back when that fails. */
static outcome attach(const at_cuda_page *page, uint64_t readers) {
  CUmemAccessDesc descs[64];
  size_t count = 0;
  for (int ordinal = 0; ordinal < 64; ordinal++)
    if (readers >> ordinal & 1) descs[count++] = access_of(ordinal);
  CUresult result = calls.map(page->address, page->bytes, 0, page->memory, 0);
  if (result != CUDA_SUCCESS) return (outcome){result, "cuMemMap"};
  result = calls.access(page->address, page->bytes, descs, count);
  if (result != CUDA_SUCCESS) (void)calls.unmap(page->address, page->bytes);
  return (outcome){result, "cuMemSetAccess"};
}

static at_cuda_page *new_page(void *address, size_t bytes) {
  at_cuda_page *page = calloc(1, sizeof *page);
  if (!page) {
    (void)at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of device memory");
    return NULL;
  }
  *page = (at_cuda_page){.address = (CUdeviceptr)(uintptr_t)address, .bytes = bytes};
  return page;
}

/* A page is mapped and listed in one step, so that a device that becomes a peer at that time gets access either way. */
static attune_status attach_listed(attune_device *device, at_cuda_page *page) {
  at_cuda_device *state = at_cuda_device_of(device);
  pthread_mutex_lock(&state->pages_lock);
  outcome found = attach(page, state->readers | UINT64_C(1) << device->ordinal);
  if (found.result == CUDA_SUCCESS) {
    page->listed = true;
    page->next = state->pages;
    if (page->next) page->next->previous = page;
    state->pages = page;
  }
  pthread_mutex_unlock(&state->pages_lock);
  return check_outcome(device, found);
}

/* Out of the list in the same step, for the same reason. */
static attune_status detach(attune_device *device, at_cuda_page *page) {
  at_cuda_device *state = at_cuda_device_of(device);
  pthread_mutex_lock(&state->pages_lock);
  CUresult result = calls.unmap(page->address, page->bytes);
  if (result == CUDA_SUCCESS && page->listed) {
    if (page->next) page->next->previous = page->previous;
    if (page->previous)
      page->previous->next = page->next;
    else
      state->pages = page->next;
    page->listed = false;
  }
  pthread_mutex_unlock(&state->pages_lock);
  return check(device, result, "cuMemUnmap");
}

/* Undoes its earlier steps if one fails. */
attune_status at_cuda_vm_map(attune_device *device, void *address, size_t bytes, uint64_t *out_handle) {
  at_cuda_scope scope;
  *out_handle = 0;
  at_cuda_page *page = new_page(address, bytes);
  attune_status status = page ? enter(&scope, device) : ATTUNE_OUT_OF_MEMORY;
  if (status != ATTUNE_OK) {
    free(page);
    return status;
  }
  status = create(device, &page->memory, bytes);
  if (status == ATTUNE_OK) {
    status = attach_listed(device, page);
    if (status != ATTUNE_OK) (void)calls.destroy(page->memory);
  }
  at_cuda_leave(&scope);
  if (status == ATTUNE_OK)
    *out_handle = (uintptr_t)page;
  else
    free(page);
  return status;
}

/* Unlike cudaFree, cuMemUnmap does not wait for the work that uses the memory. */
attune_status at_cuda_vm_unmap(attune_device *device, void *address, size_t bytes, uint64_t handle) {
  at_cuda_scope scope;
  at_cuda_page *page = (at_cuda_page *)(uintptr_t)handle;
  (void)address, (void)bytes; /* the page knows */
  AT_TRY(enter(&scope, device));
  attune_status status = at_cuda_wait_streams(device);
  if (status == ATTUNE_OK) status = detach(device, page);
  if (status == ATTUNE_OK) status = check(device, calls.destroy(page->memory), "cuMemRelease");
  at_cuda_leave(&scope);
  if (status == ATTUNE_OK) free(page);
  return status;
}

attune_status at_cuda_vm_export(attune_device *device, uint64_t handle, int *out_descriptor) {
  at_cuda_scope scope;
  const at_cuda_page *page = (const at_cuda_page *)(uintptr_t)handle;
  *out_descriptor = -1;
  attune_status status = enter(&scope, device);
  if (status != ATTUNE_OK) return status;
  if (atomic_load(&at_cuda_device_of(device)->shareable) != AT_CUDA_SHAREABLE)
    status = at_fail(ATTUNE_UNSUPPORTED, "the driver of %s cannot export memory as file descriptors", device->name);
  else
    status = check(device, calls.share(out_descriptor, page->memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                   "cuMemExportToShareableHandle");
  if (status == ATTUNE_OK) (void)fcntl(*out_descriptor, F_SETFD, FD_CLOEXEC); /* no program started now keeps memory */
  at_cuda_leave(&scope);
  return status;
}

/* As at_cuda_vm_map; other devices are not let in: the memory may be of one that they cannot reach. */
attune_status at_cuda_vm_import(attune_device *device, void *address, size_t bytes, int descriptor,
                                uint64_t *out_handle) {
  at_cuda_scope scope;
  *out_handle = 0;
  at_cuda_page *page = new_page(address, bytes);
  attune_status status = page ? enter(&scope, device) : ATTUNE_OUT_OF_MEMORY;
  if (status != ATTUNE_OK) {
    free(page);
    return status;
  }
  status = check(device,
                 calls.receive(&page->memory, (void *)(uintptr_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                 "cuMemImportFromShareableHandle");
  if (status == ATTUNE_OK) {
    status = check_outcome(device, attach(page, UINT64_C(1) << device->ordinal));
    if (status != ATTUNE_OK) (void)calls.destroy(page->memory);
  }
  at_cuda_leave(&scope);
  if (status == ATTUNE_OK)
    *out_handle = (uintptr_t)page;
  else
    free(page);
  return status;
}

static attune_status set_reader(attune_device *device, const attune_device *reader, bool in) {
  at_cuda_scope scope;
  pthread_once(&calls_once, find_calls);
  if (!calls_found) return ATTUNE_OK; /* then there are no such pages */
  at_cuda_device *state = at_cuda_device_of(device);
  CUmemAccessDesc desc = access_of(reader->ordinal);
  if (!in) desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  const uint64_t bit = UINT64_C(1) << reader->ordinal;
  AT_TRY(enter(&scope, device));
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&state->pages_lock);
  for (const at_cuda_page *page = state->pages; page && result == CUDA_SUCCESS; page = page->next)
    result = calls.access(page->address, page->bytes, &desc, 1);
  if (result == CUDA_SUCCESS) state->readers = in ? state->readers | bit : state->readers & ~bit;
  pthread_mutex_unlock(&state->pages_lock);
  attune_status status = check(device, result, "cuMemSetAccess");
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_vm_let_in(attune_device *device, const attune_device *reader) {
  return set_reader(device, reader, true);
}

attune_status at_cuda_vm_shut_out(attune_device *device, const attune_device *reader) {
  return set_reader(device, reader, false);
}
