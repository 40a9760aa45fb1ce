/* SPDX-License-Identifier: Apache-2.0
 * reduce_host.c: the reductions of reduce.h on the host. Pieces that stay in the first cache are reduced input after
 * input. */
#include "src/comm/reduce.h"

#include "src/base/half.h"
#include "src/host/host.h"

enum { PIECE = 1024 }; /* elements */

static inline float load_bf16(uint16_t x) {
  return at_bf16_to_f32(x);
}
static inline float load_f16(uint16_t x) {
  return at_f16_to_f32(x);
}
#define PLAIN(x) (x)

/* Of a NaN and a number the smallest and the largest are the number. */
#define ADD(x, y) ((x) + (y))
#define TIMES(x, y) ((x) * (y))
#define LESS(x, y) ((y) < (x) ? (y) : (x))
#define MORE(x, y) ((y) > (x) ? (y) : (x))
#define LESS_FLOAT(x, y) ((y) < (x) || (x) != (x) ? (y) : (x))
#define MORE_FLOAT(x, y) ((y) > (x) || (x) != (x) ? (y) : (x))
#define AS_IT_IS(x, n) (x)
#define SHARE(x, n) ((x) / (float)(n))

/* `type` in memory, `wide` on the way. */
#define REDUCE(name, type, wide, load, store, combine, finish)                            \
  static void name(const at_reduce_call *call, size_t from, size_t n) {                   \
    wide all[PIECE];                                                                      \
    const type *first = (const type *)call->in[0] + from;                                 \
    for (size_t i = 0; i < n; i++) all[i] = (wide)load(first[i]);                         \
    for (int k = 1; k < call->inputs; k++) {                                              \
      const type *in = (const type *)call->in[k] + from;                                  \
      for (size_t i = 0; i < n; i++) all[i] = (wide)(combine(all[i], (wide)load(in[i]))); \
    }                                                                                     \
    type *out = (type *)call->out + from;                                                 \
    for (size_t i = 0; i < n; i++) out[i] = (type)store(finish(all[i], call->inputs));    \
  }

#define FLOATS(op, combine, finish)                                           \
  REDUCE(op##_f64, double, double, PLAIN, PLAIN, combine, finish)             \
  REDUCE(op##_f32, float, float, PLAIN, PLAIN, combine, finish)               \
  REDUCE(op##_f16, uint16_t, float, load_f16, at_f32_to_f16, combine, finish) \
  REDUCE(op##_bf16, uint16_t, float, load_bf16, at_f32_to_bf16, combine, finish)
#define UNSIGNED(op, combine)                                           \
  REDUCE(op##_u8, uint8_t, uint32_t, PLAIN, PLAIN, combine, AS_IT_IS)   \
  REDUCE(op##_u16, uint16_t, uint32_t, PLAIN, PLAIN, combine, AS_IT_IS) \
  REDUCE(op##_u32, uint32_t, uint32_t, PLAIN, PLAIN, combine, AS_IT_IS) \
  REDUCE(op##_u64, uint64_t, uint64_t, PLAIN, PLAIN, combine, AS_IT_IS)
#define SIGNED(op, combine)                                           \
  REDUCE(op##_i8, int8_t, int8_t, PLAIN, PLAIN, combine, AS_IT_IS)    \
  REDUCE(op##_i16, int16_t, int16_t, PLAIN, PLAIN, combine, AS_IT_IS) \
  REDUCE(op##_i32, int32_t, int32_t, PLAIN, PLAIN, combine, AS_IT_IS) \
  REDUCE(op##_i64, int64_t, int64_t, PLAIN, PLAIN, combine, AS_IT_IS)

FLOATS(sum, ADD, AS_IT_IS)
UNSIGNED(sum, ADD)
FLOATS(product, TIMES, AS_IT_IS)
UNSIGNED(product, TIMES)
FLOATS(least, LESS_FLOAT, AS_IT_IS)
SIGNED(least, LESS)
UNSIGNED(least, LESS)
FLOATS(most, MORE_FLOAT, AS_IT_IS)
SIGNED(most, MORE)
UNSIGNED(most, MORE)
FLOATS(mean, ADD, SHARE)

typedef void (*reduce_fn)(const at_reduce_call *call, size_t from, size_t n);

/* By the number of the type: f64, f32, f16, bf16, i32, i64, i8, i16, u8, u16, u32, u64. */
#define WRAPPING(op) \
  { NULL, op##_f64, op##_f32, op##_f16, op##_bf16, op##_u32, op##_u64, op##_u8, op##_u16, NULL, NULL, NULL, NULL }
#define ORDERED(op)                                                                                                    \
  {                                                                                                                    \
    NULL, op##_f64, op##_f32, op##_f16, op##_bf16, op##_i32, op##_i64, op##_i8, op##_i16, op##_u8, op##_u16, op##_u32, \
        op##_u64                                                                                                       \
  }
static const reduce_fn functions[AT_REDUCTIONS][AT_REDUCE_TYPES + 1] = {
    WRAPPING(sum), WRAPPING(product), ORDERED(least), ORDERED(most), {NULL, mean_f64, mean_f32, mean_f16, mean_bf16}};

attune_dtype at_reduce_as(attune_reduction reduction, attune_dtype dtype) {
  static const attune_dtype as_signed[] = {ATTUNE_I8, ATTUNE_I16, ATTUNE_I32, ATTUNE_I64}; /* from U8 on */
  const bool ordered = reduction == ATTUNE_REDUCE_MIN || reduction == ATTUNE_REDUCE_MAX;
  const bool linear = reduction == ATTUNE_REDUCE_SUM || reduction == ATTUNE_REDUCE_AVERAGE;
  attune_dtype as = dtype;
  if (!ordered && dtype >= ATTUNE_U8 && dtype <= ATTUNE_U64) as = as_signed[dtype - ATTUNE_U8];
  if (ordered && dtype == ATTUNE_BOOL) as = ATTUNE_U8;
  if (linear && dtype == ATTUNE_C64) as = ATTUNE_F32;
  if (linear && dtype == ATTUNE_C128) as = ATTUNE_F64;
  const bool known = (int)reduction >= 0 && (int)reduction < AT_REDUCTIONS && (int)as >= 0 && as <= AT_REDUCE_TYPES;
  return known && functions[reduction][as] ? as : (attune_dtype)0;
}

static void run(const void *args) {
  const at_reduce_call *call = args;
  const attune_dtype dtype = (attune_dtype)call->dtype;
  const size_t count = call->count * at_reduce_parts(dtype);
  const reduce_fn reduce = functions[call->reduction][at_reduce_as((attune_reduction)call->reduction, dtype)];
  for (size_t at = 0; at < count; at += PIECE) reduce(call, at, count - at < PIECE ? count - at : PIECE);
}

attune_status at_reduce_host(attune_stream *stream, const at_reduce_call *call) {
  return at_host_submit(stream, run, call, sizeof *call);
}
