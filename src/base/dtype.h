/* SPDX-License-Identifier: Apache-2.0
 * dtype.h: what kind of number an element type is. */
#ifndef AT_DTYPE_H
#define AT_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include <attune/types.h>

#define AT_DTYPE_LAST ((int)ATTUNE_C128) /* dtypes are 1 to this */

typedef enum at_dtype_kind {
  AT_KIND_NONE,
  AT_KIND_BOOL,
  AT_KIND_INTEGER,
  AT_KIND_FLOAT,
  AT_KIND_COMPLEX
} at_dtype_kind;

static inline at_dtype_kind at_dtype_kind_of(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_BOOL: return AT_KIND_BOOL;
  case ATTUNE_I8:
  case ATTUNE_I16:
  case ATTUNE_I32:
  case ATTUNE_I64:
  case ATTUNE_U8:
  case ATTUNE_U16:
  case ATTUNE_U32:
  case ATTUNE_U64: return AT_KIND_INTEGER;
  case ATTUNE_F64:
  case ATTUNE_F32:
  case ATTUNE_F16:
  case ATTUNE_BF16:
  case ATTUNE_F8E4M3:
  case ATTUNE_F8E5M2: return AT_KIND_FLOAT;
  case ATTUNE_C64:
  case ATTUNE_C128: return AT_KIND_COMPLEX;
  }
  return AT_KIND_NONE;
}

/* Integers and bool: no rounding, no NaN. */
static inline bool at_dtype_whole(attune_dtype dtype) {
  const at_dtype_kind kind = at_dtype_kind_of(dtype);
  return kind == AT_KIND_INTEGER || kind == AT_KIND_BOOL;
}

static inline bool at_dtype_unsigned(attune_dtype dtype) {
  return dtype == ATTUNE_U8 || dtype == ATTUNE_U16 || dtype == ATTUNE_U32 || dtype == ATTUNE_U64 ||
         dtype == ATTUNE_BOOL;
}

/* The dtype of a name in `chars` bytes of text, in small letters or capitals: attune_dtype_name's, or one that C, NumPy
 * or torch has for it ("float32", "half", "torch.bfloat16", "int64_t"); 0: none. As in C and torch, "float" is f32,
 * "int" i32 and "long" i64. */
attune_dtype at_dtype_from_text(const char *text, size_t chars);

#endif
