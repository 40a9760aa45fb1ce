/* SPDX-License-Identifier: Apache-2.0
 * random_cuda.h: the CUDA backend's slots for random numbers. */
#ifndef AT_RANDOM_CUDA_H
#define AT_RANDOM_CUDA_H

#include "src/base/backend.h"
#include "src/random/call.h"

attune_status at_random_run_cuda(attune_stream *stream, const at_random_call *call);
attune_status at_random_state_cuda(attune_stream *stream, uint64_t *state, uint64_t seed, uint64_t offset);
int at_random_threads_per_processor_cuda(const attune_device *device);

#endif
