/* SPDX-License-Identifier: Apache-2.0
 * sum.h: attune's own addition: the sum of several arrays into one. */
#ifndef AT_COMM_SUM_H
#define AT_COMM_SUM_H

#include "src/backend.h"

#define AT_SUM_INPUTS 64

/* out[i] = in[0][i] + in[1][i] + ..., from left to right; `out` may be one of them. f16 and bf16 are added in f32 and
 * rounded once; integers wrap. Of sum.cu too. */
typedef struct at_sum_call {
  void *out;
  unsigned long long count;
  int inputs;
  int dtype;
  const void *in[AT_SUM_INPUTS];
} at_sum_call;

/* Whether there are sums of it. */
bool at_sum_can(attune_dtype dtype);

/* The backends' slots. */
attune_status at_sum_host(attune_stream *stream, const at_sum_call *call);
attune_status at_sum_cuda(attune_stream *stream, const at_sum_call *call);

#endif
