/* SPDX-License-Identifier: Apache-2.0
 * sum_host.c: the addition of sum.h on the host. Pieces that stay in the first cache are summed input after input. */
#include "src/comm/sum.h"

#include "src/half.h"
#include "src/host/host.h"

enum { PIECE = 1024 }; /* elements */

static inline float load_bf16(uint16_t x) {
  return at_bf16_to_f32(x);
}
static inline float load_f16(uint16_t x) {
  return at_f16_to_f32(x);
}
#define PLAIN(x) (x)

/* `type` in memory, `wide` for the sum. Integers are summed as unsigned ones, which wrap. */
#define SUM(name, type, wide, load, store)                                        \
  static void name(const at_sum_call *call, size_t from, size_t n) {              \
    wide sum[PIECE];                                                              \
    const type *first = (const type *)call->in[0] + from;                         \
    for (size_t i = 0; i < n; i++) sum[i] = (wide)load(first[i]);                 \
    for (int k = 1; k < call->inputs; k++) {                                      \
      const type *in = (const type *)call->in[k] + from;                          \
      for (size_t i = 0; i < n; i++) sum[i] = (wide)(sum[i] + (wide)load(in[i])); \
    }                                                                             \
    type *out = (type *)call->out + from;                                         \
    for (size_t i = 0; i < n; i++) out[i] = (type)store(sum[i]);                  \
  }

SUM(sum_f64, double, double, PLAIN, PLAIN)
SUM(sum_f32, float, float, PLAIN, PLAIN)
SUM(sum_f16, uint16_t, float, load_f16, at_f32_to_f16)
SUM(sum_bf16, uint16_t, float, load_bf16, at_f32_to_bf16)
SUM(sum_8, uint8_t, uint8_t, PLAIN, PLAIN)
SUM(sum_16, uint16_t, uint16_t, PLAIN, PLAIN)
SUM(sum_32, uint32_t, uint32_t, PLAIN, PLAIN)
SUM(sum_64, uint64_t, uint64_t, PLAIN, PLAIN)

typedef void (*sum_fn)(const at_sum_call *call, size_t from, size_t n);

static sum_fn function_of(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F64:
  case ATTUNE_C128: return sum_f64;
  case ATTUNE_F32:
  case ATTUNE_C64: return sum_f32;
  case ATTUNE_F16: return sum_f16;
  case ATTUNE_BF16: return sum_bf16;
  case ATTUNE_I8:
  case ATTUNE_U8: return sum_8;
  case ATTUNE_I16:
  case ATTUNE_U16: return sum_16;
  case ATTUNE_I32:
  case ATTUNE_U32: return sum_32;
  case ATTUNE_I64:
  case ATTUNE_U64: return sum_64;
  default: return NULL;
  }
}

bool at_sum_can(attune_dtype dtype) {
  return function_of(dtype) != NULL;
}

static void run(const void *args) {
  const at_sum_call *call = args;
  const attune_dtype dtype = (attune_dtype)call->dtype;
  const size_t count = call->count * (dtype == ATTUNE_C64 || dtype == ATTUNE_C128 ? 2 : 1);
  const sum_fn sum = function_of(dtype);
  for (size_t at = 0; at < count; at += PIECE) sum(call, at, count - at < PIECE ? count - at : PIECE);
}

attune_status at_sum_host(attune_stream *stream, const at_sum_call *call) {
  return at_host_submit(stream, run, call, sizeof *call);
}
