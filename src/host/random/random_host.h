/* SPDX-License-Identifier: Apache-2.0
 * random_host.h: the host backend's slots for random numbers. */
#ifndef AT_RANDOM_HOST_H
#define AT_RANDOM_HOST_H

#include "src/base/backend.h"
#include "src/random/call.h"

attune_status at_random_run_host(attune_stream *stream, const at_random_call *call);
attune_status at_random_state_host(attune_stream *stream, uint64_t *state, uint64_t seed, uint64_t offset);

#endif
