/* SPDX-License-Identifier: Apache-2.0
 * host.h: what host implementations of ops need of the host backend. */
#ifndef AT_HOST_H
#define AT_HOST_H

#include "src/base/backend.h"

/* Bytes of arguments that a piece of submitted work can carry. */
#define AT_HOST_ARGS_BYTES 704

/* Runs fn(args) in stream order: inline and at once on the default stream, else on the stream's thread with a copy of
 * args[bytes], bytes <= AT_HOST_ARGS_BYTES, or any number in a capture. Allocates nothing; waits while the queue is
 * full. */
attune_status at_host_submit(attune_stream *stream, void (*fn)(const void *args), const void *args, size_t bytes);

/* True when at_host_submit would run work inline and at once: then it may be done without it. */
static inline bool at_host_inline(const attune_stream *stream) {
  return stream->state == NULL;
}

/* Scratch memory of the calling thread, 64-byte aligned, at least `bytes`, valid until its next call; kept and grown,
 * freed when the thread ends. NULL when memory is short. */
void *at_host_scratch(size_t bytes);

/* The CPU as found at run time, constant for the process. */
typedef struct at_cpu {
  char model[128];
  bool avx2, fma, f16c, avx512f, avx512bw, avx512vl, avx512dq, avx512_vnni, avx512_bf16;
  size_t l1d_bytes, l2_bytes, l3_bytes; /* a core's L1d and L2; the L3 it shares; 0: not known */
} at_cpu;
const at_cpu *at_cpu_info(void);

#endif
