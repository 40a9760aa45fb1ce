/* SPDX-License-Identifier: Apache-2.0
 * stream_settings.c: settings of streams that attune has no call for, on attune's stream; and a stream of the program's
 * with a priority and with the legacy default stream's order, for attune. */
#include "examples/interop/interop.h"

#include <string.h>

static void window(attune_stream *stream, const attune_device_details *details) {
  enum { COUNT = 1000 };
  float *memory = interop_numbers(stream, COUNT, 1.0f);
  cudaStreamAttrValue value, told;
  memset(&value, 0, sizeof value);
  value.accessPolicyWindow.base_ptr = memory;
  value.accessPolicyWindow.num_bytes = COUNT * sizeof(float);
  value.accessPolicyWindow.hitRatio = 1.0f;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  if (details->persisting_l2_bytes > 0) {
    attune_stream *second = NULL;
    CUDA(cudaStreamSetAttribute(interop_native(stream), cudaStreamAttributeAccessPolicyWindow, &value));
    OK(attune_stream_create(&second, interop_device));
    CUDA(cudaStreamCopyAttributes(interop_native(second), interop_native(stream)));
    CUDA(cudaStreamGetAttribute(interop_native(second), cudaStreamAttributeAccessPolicyWindow, &told));
    MUST(told.accessPolicyWindow.base_ptr == memory);
    OK(attune_fill(stream, memory, 0, COUNT * sizeof(float)));
    value.accessPolicyWindow.num_bytes = 0;
    CUDA(cudaStreamSetAttribute(interop_native(stream), cudaStreamAttributeAccessPolicyWindow, &value));
    CUDA(cudaCtxResetPersistingL2Cache());
    attune_stream_destroy(second);
  }
  value.syncPolicy = cudaSyncPolicyBlockingSync;
  CUDA(cudaStreamSetAttribute(interop_native(stream), cudaStreamAttributeSynchronizationPolicy, &value));
  OK(attune_stream_synchronize(stream));
  OK(attune_free(memory, stream));
}

/* An own stream of a priority, and one that waits for the legacy default stream: made by CUDA, used by attune. */
static void streams_of_the_program(void) {
  cudaStream_t native = NULL;
  attune_stream *stream = NULL;
  int least = 0, greatest = 0, priority = 1;
  CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CUDA(cudaStreamCreateWithPriority(&native, cudaStreamDefault, greatest));
  OK(attune_stream_wrap(&stream, interop_device, native));
  CUDA(cudaStreamGetPriority(interop_native(stream), &priority));
  MUST(priority == greatest);
  float *memory = interop_numbers(stream, 500, 2.0f);
  interop_check(stream, memory, 500, 2.0f, 1.0f);
  OK(attune_free(memory, stream));
  attune_stream_destroy(stream);
  CUDA(cudaStreamDestroy(native));

  /* One that the legacy default stream waits for. */
  unsigned char last = 0;
  CUDA(cudaStreamCreateWithFlags(&native, cudaStreamDefault));
  OK(attune_stream_wrap(&stream, interop_device, native));
  memory = interop_numbers(stream, 500, 2.0f);
  OK(attune_fill(stream, memory, 5, 2000));
  CUDA(cudaMemcpy(&last, (char *)memory + 1999, 1, cudaMemcpyDeviceToHost));
  MUST(last == 5);
  OK(attune_free(memory, stream));
  attune_stream_destroy(stream);
  CUDA(cudaStreamDestroy(native));
}

int main(void) {
  attune_stream *stream = interop_begin();
  attune_device_details details = {0};
  unsigned flags = 0;
  OK(attune_device_get_details(interop_device, &details));
  CUDA(cudaStreamGetFlags(interop_native(stream), &flags));
  MUST(flags == cudaStreamNonBlocking);
  window(stream, &details);
  streams_of_the_program();

  /* A thread's capture mode is its own: attune's calls leave it as it was. */
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  float *memory = interop_numbers(stream, 10, 0.0f);
  CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  MUST(mode == cudaStreamCaptureModeRelaxed);
  OK(attune_free(memory, stream));

  /* Managed memory tied to attune's stream. */
  if (details.managed_memory == 1) {
    float *managed = NULL;
    CUDA(cudaMallocManaged((void **)&managed, 4096, cudaMemAttachGlobal));
    CUDA(cudaStreamAttachMemAsync(interop_native(stream), managed, 0, cudaMemAttachSingle));
    OK(attune_fill(stream, managed, 1, 4096));
    OK(attune_stream_synchronize(stream));
    MUST(((unsigned char *)managed)[4095] == 1);
    CUDA(cudaFree(managed));
  }
  return interop_end(stream, "settings of streams");
}
