/* SPDX-License-Identifier: Apache-2.0
 * numbers.h: numbers written as elements of any type, for tests. */
#ifndef AT_TEST_NUMBERS_H
#define AT_TEST_NUMBERS_H

#include <attune/types.h>

#include "src/base/half.h"

/* x as element i; a complex one gets -x as its imaginary part. */
static inline void put_number(void *at, attune_dtype dtype, size_t i, double x) {
  switch (dtype) {
  case ATTUNE_F64: ((double *)at)[i] = x; return;
  case ATTUNE_F32: ((float *)at)[i] = (float)x; return;
  case ATTUNE_F16: ((uint16_t *)at)[i] = at_f64_to_f16(x); return;
  case ATTUNE_BF16: ((uint16_t *)at)[i] = at_f64_to_bf16(x); return;
  case ATTUNE_I8: ((int8_t *)at)[i] = (int8_t)(int64_t)x; return;
  case ATTUNE_U8: ((uint8_t *)at)[i] = (uint8_t)(int64_t)x; return;
  case ATTUNE_I16: ((int16_t *)at)[i] = (int16_t)(int64_t)x; return;
  case ATTUNE_U16: ((uint16_t *)at)[i] = (uint16_t)(int64_t)x; return;
  case ATTUNE_I32: ((int32_t *)at)[i] = (int32_t)x; return;
  case ATTUNE_U32: ((uint32_t *)at)[i] = (uint32_t)(int64_t)x; return;
  case ATTUNE_I64: ((int64_t *)at)[i] = (int64_t)x; return;
  case ATTUNE_U64: ((uint64_t *)at)[i] = (uint64_t)(int64_t)x; return;
  case ATTUNE_C64: ((float *)at)[2 * i] = (float)x, ((float *)at)[2 * i + 1] = (float)(-x); return;
  case ATTUNE_C128: ((double *)at)[2 * i] = x, ((double *)at)[2 * i + 1] = -x; return;
  default: ((uint8_t *)at)[i] = (uint8_t)((int64_t)x & 1);
  }
}

#endif
