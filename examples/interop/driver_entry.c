/* SPDX-License-Identifier: Apache-2.0
 * driver_entry.c: functions of the driver, found by the runtime, on attune's stream, event and memory; the driver's
 * context is the one that attune works in. */
#include "examples/interop/interop.h"

#include <cuda.h>
#include <string.h>

static void *find(const char *name) {
  void *function = NULL;
  enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  CUDA(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
#else
  CUDA(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found));
#endif
  MUST(found == cudaDriverEntryPointSuccess && function);
  return function;
}

int main(void) {
  enum { COUNT = 1000 };
  attune_stream *stream = interop_begin();
  attune_event *event = NULL;
  CUresult (*fill)(CUdeviceptr, unsigned, size_t, CUstream) = NULL;
  CUresult (*record)(CUevent, CUstream) = NULL;
  CUresult (*stream_context)(CUstream, CUcontext *) = NULL;
  CUresult (*current)(CUcontext *) = NULL;
  *(void **)&fill = find("cuMemsetD32Async");
  *(void **)&record = find("cuEventRecord");
  *(void **)&stream_context = find("cuStreamGetCtx");
  *(void **)&current = find("cuCtxGetCurrent");

  float *memory = interop_numbers(stream, COUNT, 5.0f);
  const float seven = 7.0f;
  unsigned bits = 0;
  memcpy(&bits, &seven, sizeof bits);
  OK(attune_event_create(&event, interop_device, NULL));
  MUST(fill((CUdeviceptr)memory, bits, 1, (CUstream)attune_stream_native(stream)) == CUDA_SUCCESS);
  MUST(record((CUevent)attune_event_native(event), (CUstream)attune_stream_native(stream)) == CUDA_SUCCESS);
  CUDA(cudaEventSynchronize((cudaEvent_t)attune_event_native(event)));
  interop_check(stream, memory, 1, 7.0f, 1.0f);
  interop_check(stream, memory + 1, COUNT - 1, 6.0f, 1.0f);

  CUcontext of_stream = NULL, of_thread = NULL;
  MUST(stream_context((CUstream)attune_stream_native(stream), &of_stream) == CUDA_SUCCESS);
  MUST(current(&of_thread) == CUDA_SUCCESS);
  MUST(of_stream == of_thread);

  attune_event_destroy(event);
  OK(attune_free(memory, stream));
  return interop_end(stream, "functions of the driver");
}
