/* SPDX-License-Identifier: Apache-2.0
 * torch.h: how PyTorch spreads a call over the threads of a GPU: block 256, as many blocks as fit, each thread its own
 * sequence of Philox blocks. Element i of a launch over T threads with u samples a Philox block lies in pass p = i / (T
 * u); r = i mod (T u); it is sample r / T of the block at counter offset / 4 + p of sequence r mod T. */
#ifndef AT_RANDOM_TORCH_H
#define AT_RANDOM_TORCH_H

#include "src/base/backend.h"
#include "src/random/generator.h"

#define AT_TORCH_BLOCK 256u

/* Samples that a thread uses of a Philox block: 2 where the sample is computed in 64 bits, else 4. */
int at_torch_unroll(const at_random_call *call);

/* Runs the call as torch would, in one launch or, beyond 2^31 bytes, several. Fills `threads` of each. */
attune_status at_torch_run(attune_generator *generator, attune_stream *stream, const at_generator_view *view,
                           at_random_call *call);

/* The host's model of the kernel: Philox blocks first to first + count, of blocks numbered by pass, then thread. */
void at_torch_fill_host(const at_random_call *call, uint64_t first, uint64_t count);

#endif
