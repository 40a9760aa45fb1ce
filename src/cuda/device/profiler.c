/* SPDX-License-Identifier: Apache-2.0
 * profiler.c: the stretch that a profiler looks at. */
#include <cuda_profiler_api.h>

#include "src/cuda/context/state.h"

attune_status at_cuda_profiler(attune_device *device, bool start) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = start ? at_cuda_check(device, cudaProfilerStart(), "cudaProfilerStart")
                               : at_cuda_check(device, cudaProfilerStop(), "cudaProfilerStop");
  at_cuda_leave(&scope);
  return status;
}
