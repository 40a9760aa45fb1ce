/* SPDX-License-Identifier: Apache-2.0
 * test_sum.c: the kernel of sum.cu, run on the host thread after thread, gives the same bits as the host's addition, and
 * writes and reads nothing outside. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "src/comm/sum.h"
#include "src/half.h"

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
#define DTYPE 1
#define WIDE 0
#include "tests/sum_on_host.h"
#define DTYPE 1
#define WIDE 1
#include "tests/sum_on_host.h"
#define DTYPE 2
#define WIDE 0
#include "tests/sum_on_host.h"
#define DTYPE 2
#define WIDE 1
#include "tests/sum_on_host.h"
#define DTYPE 3
#define WIDE 0
#include "tests/sum_on_host.h"
#define DTYPE 3
#define WIDE 1
#include "tests/sum_on_host.h"
#define DTYPE 4
#define WIDE 0
#include "tests/sum_on_host.h"
#define DTYPE 4
#define WIDE 1
#include "tests/sum_on_host.h"
#define DTYPE 5
#define WIDE 0
#include "tests/sum_on_host.h"
#define DTYPE 5
#define WIDE 1
#include "tests/sum_on_host.h"
#define DTYPE 6
#define WIDE 0
#include "tests/sum_on_host.h"
#define DTYPE 6
#define WIDE 1
#include "tests/sum_on_host.h"
#define DTYPE 7
#define WIDE 0
#include "tests/sum_on_host.h"
#define DTYPE 7
#define WIDE 1
#include "tests/sum_on_host.h"
#define DTYPE 8
#define WIDE 0
#include "tests/sum_on_host.h"
#define DTYPE 8
#define WIDE 1
#include "tests/sum_on_host.h"
#pragma GCC diagnostic pop

static void run_thread(const at_sum_call *call, int wide) {
  switch (2 * call->dtype + wide) {
  case 2: {
    struct at_sum_arguments_1_0 a;
    memcpy(&a, call, sizeof a);
    at_sum_1_0(a);
    return;
  }
  case 3: {
    struct at_sum_arguments_1_1 a;
    memcpy(&a, call, sizeof a);
    at_sum_1_1(a);
    return;
  }
  case 4: {
    struct at_sum_arguments_2_0 a;
    memcpy(&a, call, sizeof a);
    at_sum_2_0(a);
    return;
  }
  case 5: {
    struct at_sum_arguments_2_1 a;
    memcpy(&a, call, sizeof a);
    at_sum_2_1(a);
    return;
  }
  case 6: {
    struct at_sum_arguments_3_0 a;
    memcpy(&a, call, sizeof a);
    at_sum_3_0(a);
    return;
  }
  case 7: {
    struct at_sum_arguments_3_1 a;
    memcpy(&a, call, sizeof a);
    at_sum_3_1(a);
    return;
  }
  case 8: {
    struct at_sum_arguments_4_0 a;
    memcpy(&a, call, sizeof a);
    at_sum_4_0(a);
    return;
  }
  case 9: {
    struct at_sum_arguments_4_1 a;
    memcpy(&a, call, sizeof a);
    at_sum_4_1(a);
    return;
  }
  case 10: {
    struct at_sum_arguments_5_0 a;
    memcpy(&a, call, sizeof a);
    at_sum_5_0(a);
    return;
  }
  case 11: {
    struct at_sum_arguments_5_1 a;
    memcpy(&a, call, sizeof a);
    at_sum_5_1(a);
    return;
  }
  case 12: {
    struct at_sum_arguments_6_0 a;
    memcpy(&a, call, sizeof a);
    at_sum_6_0(a);
    return;
  }
  case 13: {
    struct at_sum_arguments_6_1 a;
    memcpy(&a, call, sizeof a);
    at_sum_6_1(a);
    return;
  }
  case 14: {
    struct at_sum_arguments_7_0 a;
    memcpy(&a, call, sizeof a);
    at_sum_7_0(a);
    return;
  }
  case 15: {
    struct at_sum_arguments_7_1 a;
    memcpy(&a, call, sizeof a);
    at_sum_7_1(a);
    return;
  }
  case 16: {
    struct at_sum_arguments_8_0 a;
    memcpy(&a, call, sizeof a);
    at_sum_8_0(a);
    return;
  }
  case 17: {
    struct at_sum_arguments_8_1 a;
    memcpy(&a, call, sizeof a);
    at_sum_8_1(a);
    return;
  }
  default: fail_msg("dtype %d", call->dtype);
  }
}

static void run_grid(const at_sum_call *call, int wide) {
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

static void same_as_the_host(attune_stream *stream, attune_dtype dtype, int wide, int inputs, size_t count) {
  static _Alignas(16) unsigned char in[4][MOST * 8 + 16], right[MOST * 8 + 16], out[MOST * 8 + 16];
  const size_t size = attune_dtype_size(dtype), shift = wide ? 0 : size;
  at_sum_call call = {.out = out + shift, .count = count, .inputs = inputs, .dtype = (int)dtype};
  for (int k = 0; k < inputs; k++) {
    draw(in[k], sizeof in[k], dtype);
    call.in[k] = in[k] + shift;
  }
  memset(out, 0xee, sizeof out);
  memset(right, 0xee, sizeof right);
  run_grid(&call, wide);
  call.out = right + shift;
  OK(at_sum_host(stream, &call));
  if (memcmp(out, right, sizeof out) != 0)
    fail_msg("%s, wide %d, %d inputs of %zu elements", attune_dtype_name(dtype), wide, inputs, count);
  call.out = (void *)(uintptr_t)call.in[1]; /* in place */
  run_grid(&call, wide);
  assert_memory_equal(call.in[1], right + shift, count * size);
}

static void every_type(void **state) {
  static const size_t counts[] = {0, 1, 2, 15, 16, 17, 400, MOST};
  attune_device *host = NULL;
  (void)state;
  OK(attune_device_get(&host, "host"));
  for (int dtype = ATTUNE_F64; dtype <= ATTUNE_I16; dtype++)
    for (int wide = 0; wide < 2; wide++)
      for (size_t c = 0; c < AT_COUNT(counts); c++)
        for (int inputs = 2; inputs <= 4; inputs++)
          same_as_the_host(attune_stream_default(host), (attune_dtype)dtype, wide, inputs, counts[c]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_type)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
