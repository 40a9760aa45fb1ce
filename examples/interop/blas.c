/* SPDX-License-Identifier: Apache-2.0
 * blas.c: a call of cuBLAS's own, by the handle that attune uses on a stream: for what attune has no call for. */
#include "examples/interop/interop.h"

#include <cublas_v2.h>

int main(void) {
  enum { COUNT = 1000 };
  const float two = 2.0f;
  attune_stream *stream = interop_begin();
  void *handle = NULL;
  cudaStream_t set = NULL;
  float *numbers = interop_numbers(stream, COUNT, 1.0f);
  OK(attune_stream_blas(stream, &handle)); /* set to this stream; scalars are on the host */
  MUST(cublasGetStream(handle, &set) == CUBLAS_STATUS_SUCCESS && set == interop_native(stream));
  MUST(cublasSscal(handle, COUNT, &two, numbers, 1) == CUBLAS_STATUS_SUCCESS);
  interop_check(stream, numbers, COUNT, 1.0f, 2.0f);
  OK(attune_free(numbers, stream));
  return interop_end(stream, "cuBLAS on attune's stream");
}
