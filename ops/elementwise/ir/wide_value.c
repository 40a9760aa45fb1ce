/* SPDX-License-Identifier: Apache-2.0
 * wide_value.c: numbers of all dtypes in wide arithmetic. */
#include "ops/elementwise/ir/wide_value.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "src/base/float8.h"

/* A double that rounds to any narrower format as x does: the last bit is set where digits were lost (round to odd). */
static double odd_double(long double x) {
  double d = (double)x;
  if (isnan(d) || isinf(x) || (long double)d == x) return isinf(d) && !isinf(x) ? copysign(DBL_MAX, d) : d;
  if (isinf(d)) return copysign(DBL_MAX, d);
  const double low = fabsl((long double)d) > fabsl(x) ? nextafter(d, 0.0) : d; /* toward zero */
  uint64_t bits;
  memcpy(&bits, &low, sizeof bits);
  bits |= 1u;
  memcpy(&d, &bits, sizeof d);
  return d;
}

static long double round_real(attune_dtype dtype, long double x) {
  switch (dtype) {
  case ATTUNE_F16: return at_f16_to_f32(at_f64_to_f16(odd_double(x)));
  case ATTUNE_BF16: return at_bf16_to_f32(at_f64_to_bf16(odd_double(x)));
  case ATTUNE_F8E4M3: return at_f8e4m3_to_f32(at_f64_to_f8e4m3(odd_double(x)));
  case ATTUNE_F8E5M2: return at_f8e5m2_to_f32(at_f64_to_f8e5m2(odd_double(x)));
  case ATTUNE_F32:
  case ATTUNE_C64: return (float)x;
  default: return (double)x;
  }
}

int at_integer_bits(attune_dtype dtype) {
  return dtype == ATTUNE_BOOL ? 1 : (int)(8 * attune_dtype_size(dtype));
}

int64_t at_integer_wrap(attune_dtype dtype, int64_t integer) {
  switch (dtype) {
  case ATTUNE_I8: return (int8_t)integer;
  case ATTUNE_I16: return (int16_t)integer;
  case ATTUNE_I32: return (int32_t)integer;
  case ATTUNE_U8: return (uint8_t)integer;
  case ATTUNE_U16: return (uint16_t)integer;
  case ATTUNE_U32: return (uint32_t)integer;
  case ATTUNE_BOOL: return integer & 1;
  default: return integer;
  }
}

at_wide_value at_wide_value_round(attune_dtype dtype, at_wide_value value) {
  if (at_dtype_whole(dtype)) return (at_wide_value){.integer = at_integer_wrap(dtype, value.integer)};
  at_wide_value out = {.re = round_real(dtype, value.re)};
  if (at_dtype_kind_of(dtype) == AT_KIND_COMPLEX) out.im = round_real(dtype, value.im);
  return out;
}

/* Cut off, held in range; NaN is 0. */
static int64_t integer_of(attune_dtype dtype, long double x) {
  const int bits = at_integer_bits(dtype);
  if (dtype == ATTUNE_BOOL) return !(x == 0.0L);
  if (isnan(x)) return 0;
  if (at_dtype_unsigned(dtype)) {
    if (x <= -1.0L) return 0;
    return x >= ldexpl(1.0L, bits) ? (int64_t)(UINT64_MAX >> (64 - bits)) : (int64_t)(uint64_t)truncl(x);
  }
  const long double limit = ldexpl(1.0L, bits - 1);
  if (x >= limit) return (int64_t)(UINT64_MAX >> (65 - bits));
  return x <= -limit ? -(int64_t)(UINT64_MAX >> (65 - bits)) - 1 : (int64_t)x;
}

at_wide_value at_wide_value_cast(attune_dtype to, attune_dtype from, at_wide_value value) {
  const at_dtype_kind kind = at_dtype_kind_of(to);
  if (at_dtype_whole(from)) {
    if (kind == AT_KIND_BOOL) return (at_wide_value){.integer = value.integer != 0};
    if (kind == AT_KIND_INTEGER) return at_wide_value_round(to, value);
    const long double wide =
        from == ATTUNE_U64 ? (long double)(uint64_t)value.integer : (long double)value.integer; /* 64 bits are exact */
    return at_wide_value_round(to, (at_wide_value){.re = wide});
  }
  if (kind == AT_KIND_BOOL) return (at_wide_value){.integer = !(value.re == 0.0L && value.im == 0.0L)};
  if (kind == AT_KIND_INTEGER) return (at_wide_value){.integer = integer_of(to, value.re)};
  return at_wide_value_round(to, value);
}

at_wide_value at_wide_value_of_constant(attune_dtype dtype, attune_dtype kind, at_constant number) {
  const at_wide_value value = at_dtype_whole(kind) ? (at_wide_value){.integer = number.integer}
                                                   : (at_wide_value){.re = number.re, .im = number.im};
  if (kind == ATTUNE_F64 && at_dtype_kind_of(dtype) != AT_KIND_COMPLEX)
    return at_wide_value_cast(dtype, kind, (at_wide_value){.re = number.re});
  return at_wide_value_cast(dtype, kind, value);
}

at_wide_value at_wide_value_load(attune_dtype dtype, const void *memory) {
  union {
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    float f32[2];
    double f64[2];
  } u;
  memcpy(&u, memory, attune_dtype_size(dtype));
  switch (dtype) {
  case ATTUNE_F64: return (at_wide_value){.re = u.f64[0]};
  case ATTUNE_F32: return (at_wide_value){.re = u.f32[0]};
  case ATTUNE_F16: return (at_wide_value){.re = at_f16_to_f32(u.u16)};
  case ATTUNE_BF16: return (at_wide_value){.re = at_bf16_to_f32(u.u16)};
  case ATTUNE_F8E4M3: return (at_wide_value){.re = at_f8e4m3_to_f32(u.u8)};
  case ATTUNE_F8E5M2: return (at_wide_value){.re = at_f8e5m2_to_f32(u.u8)};
  case ATTUNE_C64: return (at_wide_value){.re = u.f32[0], .im = u.f32[1]};
  case ATTUNE_C128: return (at_wide_value){.re = u.f64[0], .im = u.f64[1]};
  case ATTUNE_I8: return (at_wide_value){.integer = u.i8};
  case ATTUNE_I16: return (at_wide_value){.integer = u.i16};
  case ATTUNE_I32: return (at_wide_value){.integer = u.i32};
  case ATTUNE_U8: return (at_wide_value){.integer = u.u8};
  case ATTUNE_U16: return (at_wide_value){.integer = u.u16};
  case ATTUNE_U32: return (at_wide_value){.integer = u.u32};
  case ATTUNE_BOOL: return (at_wide_value){.integer = u.u8 != 0};
  case ATTUNE_I64:
  case ATTUNE_U64: return (at_wide_value){.integer = u.i64};
  }
  return (at_wide_value){0};
}

void at_wide_value_store(attune_dtype dtype, void *memory, at_wide_value value) {
  if (at_dtype_whole(dtype)) { /* the low bytes: hosts of attune are little-endian */
    const int64_t bits = dtype == ATTUNE_BOOL ? value.integer != 0 : value.integer;
    memcpy(memory, &bits, attune_dtype_size(dtype));
    return;
  }
  const double wide = odd_double(value.re);
  const uint16_t half = dtype == ATTUNE_F16 ? at_f64_to_f16(wide) : at_f64_to_bf16(wide);
  const uint8_t eighth = dtype == ATTUNE_F8E4M3 ? at_f64_to_f8e4m3(wide) : at_f64_to_f8e5m2(wide);
  const float f32[2] = {(float)value.re, (float)value.im};
  const double f64[2] = {(double)value.re, (double)value.im};
  switch (dtype) {
  case ATTUNE_F64:
  case ATTUNE_C128: memcpy(memory, f64, attune_dtype_size(dtype)); return;
  case ATTUNE_F32:
  case ATTUNE_C64: memcpy(memory, f32, attune_dtype_size(dtype)); return;
  case ATTUNE_F16:
  case ATTUNE_BF16: memcpy(memory, &half, sizeof half); return;
  default: memcpy(memory, &eighth, sizeof eighth); return;
  }
}
