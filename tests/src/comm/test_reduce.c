/* SPDX-License-Identifier: Apache-2.0
 * test_reduce.c: the kernel of reduce.cu, run on the host thread after thread, gives the same bits as the host's
 * reductions, and writes and reads nothing outside. */
#include "tests/support/check.h"

#include "src/base/half.h"
#include "src/comm/reduce.h"

#define AT_ON_HOST 1
#define __device__
#define __forceinline__ inline
#define __global__ static
#define __grid_constant__
#define __launch_bounds__(threads)
static struct { unsigned x; } blockIdx, threadIdx, gridDim, blockDim;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#define OP 0
#include "tests/src/comm/reduce_types_on_host.h"
#define OP 1
#include "tests/src/comm/reduce_types_on_host.h"
#define OP 2
#include "tests/src/comm/reduce_types_on_host.h"
#define OP 3
#include "tests/src/comm/reduce_types_on_host.h"
#define OP 4
#include "tests/src/comm/reduce_types_on_host.h"
#pragma GCC diagnostic pop

/* clang-format off */
#define TYPE(op, dtype) {run_##op##_##dtype##_0, run_##op##_##dtype##_1}
#define TYPES(op) {{NULL, NULL}, TYPE(op, 1), TYPE(op, 2), TYPE(op, 3), TYPE(op, 4), TYPE(op, 5), TYPE(op, 6), \
                   TYPE(op, 7), TYPE(op, 8), TYPE(op, 9), TYPE(op, 10), TYPE(op, 11), TYPE(op, 12)}
/* clang-format on */
static void (*const kernels[AT_REDUCTIONS][AT_REDUCE_TYPES + 1][2])(const at_reduce_call *call) = {
    TYPES(0), TYPES(1), TYPES(2), TYPES(3), TYPES(4)};

static void run_thread(const at_reduce_call *call, int wide) {
  kernels[call->reduction][call->dtype][wide](call);
}

static void run_grid(const at_reduce_call *call, int wide) {
  gridDim.x = 3;
  blockDim.x = 8;
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) run_thread(call, wide);
}

enum { MOST = 778 }; /* rows of memory stay aligned */

/* Any bits, but those of infinities and NaN. */
static void draw(unsigned char *at, size_t bytes, attune_dtype dtype) {
  static uint64_t seed = 1;
  for (size_t i = 0; i < bytes; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    at[i] = (unsigned char)(seed >> 40);
  }
  const size_t size = attune_dtype_size(dtype);
  for (size_t i = size - 1; i < bytes && dtype <= ATTUNE_BF16; i += size) at[i] = (at[i] & 0x80) | 0x3c | (at[i] & 3);
}

static void same_as_the_host(attune_stream *stream, at_reduce_call call, int wide, size_t count) {
  static _Alignas(16) unsigned char in[4][MOST * 8 + 16], right[MOST * 8 + 16], out[MOST * 8 + 16];
  const attune_dtype dtype = (attune_dtype)call.dtype;
  const size_t size = attune_dtype_size(dtype), shift = wide ? 0 : size;
  call.out = out + shift;
  call.count = count;
  for (int k = 0; k < call.inputs; k++) {
    draw(in[k], sizeof in[k], dtype);
    call.in[k] = in[k] + shift;
  }
  memset(out, 0xee, sizeof out);
  memset(right, 0xee, sizeof right);
  run_grid(&call, wide);
  call.out = right + shift;
  OK(at_reduce_host(stream, &call));
  if (memcmp(out, right, sizeof out) != 0)
    fail_msg("reduction %d of %s, wide %d, %d inputs of %zu elements", call.reduction, attune_dtype_name(dtype), wide,
             call.inputs, count);
  call.out = (void *)(uintptr_t)call.in[1]; /* in place */
  run_grid(&call, wide);
  assert_memory_equal(call.in[1], right + shift, count * size);
}

TEST(every_type) {
  static const size_t counts[] = {0, 1, 2, 15, 16, 17, 400, MOST};
  attune_device *host = NULL;
  OK(attune_device_get(&host, "host"));
  for (int op = 0; op < AT_REDUCTIONS; op++)
    for (int dtype = ATTUNE_F64; dtype <= ATTUNE_U64; dtype++)
      for (int wide = 0; wide < 2; wide++)
        for (size_t c = 0; c < AT_COUNT(counts); c++)
          for (int inputs = 2; inputs <= 4; inputs++) {
            if (at_reduce_as((attune_reduction)op, (attune_dtype)dtype) != (attune_dtype)dtype) continue;
            const at_reduce_call call = {.inputs = inputs, .dtype = (short)dtype, .reduction = (short)op};
            same_as_the_host(attune_stream_default(host), call, wide, counts[c]);
          }
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
