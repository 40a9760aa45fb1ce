/* SPDX-License-Identifier: Apache-2.0
 * fold_values.c: what a dtype holds of a number. */
#include "ops/elementwise/fold.h"
#include "src/float8.h"
#include "src/half.h"

int64_t at_wrap(attune_dtype dtype, uint64_t value) {
  switch (dtype) {
  case ATTUNE_I8: return (int8_t)value;
  case ATTUNE_I16: return (int16_t)value;
  case ATTUNE_I32: return (int32_t)value;
  case ATTUNE_U8: return (uint8_t)value;
  case ATTUNE_U16: return (uint16_t)value;
  case ATTUNE_U32: return (uint32_t)value;
  case ATTUNE_BOOL: return value != 0;
  default: return (int64_t)value;
  }
}

double at_round_to(attune_dtype dtype, double x) {
  switch (dtype) {
  case ATTUNE_F32:
  case ATTUNE_C64: return (double)(float)x;
  case ATTUNE_F16: return (double)at_f16_to_f32(at_f64_to_f16(x));
  case ATTUNE_BF16: return (double)at_bf16_to_f32(at_f64_to_bf16(x));
  case ATTUNE_F8E4M3: return (double)at_f8e4m3_to_f32(at_f64_to_f8e4m3(x));
  case ATTUNE_F8E5M2: return (double)at_f8e5m2_to_f32(at_f64_to_f8e5m2(x));
  default: return x;
  }
}
