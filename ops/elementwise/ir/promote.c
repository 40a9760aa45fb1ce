/* SPDX-License-Identifier: Apache-2.0
 * promote.c: see promote.h. */
#include "ops/elementwise/ir/promote.h"

static bool is_float8(attune_dtype dtype) {
  return dtype == ATTUNE_F8E4M3 || dtype == ATTUNE_F8E5M2;
}

static attune_dtype promote_integers(attune_dtype a, attune_dtype b) {
  const size_t a_size = attune_dtype_size(a), b_size = attune_dtype_size(b);
  if (at_dtype_unsigned(a) == at_dtype_unsigned(b)) return a_size > b_size ? a : b;
  const size_t plain = at_dtype_unsigned(a) ? a_size : b_size, with_sign = at_dtype_unsigned(a) ? b_size : a_size;
  if (with_sign > plain) return at_dtype_unsigned(a) ? b : a;
  return plain == 1 ? ATTUNE_I16 : plain == 2 ? ATTUNE_I32 : plain == 4 ? ATTUNE_I64 : (attune_dtype)0;
}

static attune_dtype promote_complex(attune_dtype a, attune_dtype b) {
  const bool wide = a == ATTUNE_F64 || b == ATTUNE_F64 || a == ATTUNE_C128 || b == ATTUNE_C128;
  return wide ? ATTUNE_C128 : ATTUNE_C64;
}

attune_dtype at_promote(attune_dtype a, attune_dtype b) {
  const at_dtype_kind x = at_dtype_kind_of(a), y = at_dtype_kind_of(b);
  if (x == AT_KIND_NONE || y == AT_KIND_NONE) return (attune_dtype)0;
  if (a == b) return a;
  if (is_float8(a) || is_float8(b)) return (attune_dtype)0;
  if (x == AT_KIND_COMPLEX || y == AT_KIND_COMPLEX) return promote_complex(a, b);
  if (x == AT_KIND_FLOAT && y == AT_KIND_FLOAT)
    return a == ATTUNE_F64 || b == ATTUNE_F64 ? ATTUNE_F64 : ATTUNE_F32; /* f16 with bf16, too */
  if (x == AT_KIND_FLOAT || y == AT_KIND_FLOAT) return x == AT_KIND_FLOAT ? a : b;
  if (x == AT_KIND_BOOL || y == AT_KIND_BOOL) return x == AT_KIND_BOOL ? b : a;
  return promote_integers(a, b);
}

/* Of two weak numbers: the greater kind. */
static attune_dtype promote_weak(attune_dtype a, attune_dtype b) {
  const at_dtype_kind x = at_dtype_kind_of(a), y = at_dtype_kind_of(b);
  if (x != y) return x > y ? a : b;
  return a == ATTUNE_U64 ? a : b; /* a literal above INT64_MAX */
}

/* The common dtype of a strong one and a weak number. */
static attune_dtype promote_mixed(attune_dtype strong, attune_dtype weak) {
  const at_dtype_kind kind = at_dtype_kind_of(weak);
  if (kind <= at_dtype_kind_of(strong)) return strong;
  if (kind == AT_KIND_INTEGER) return weak;
  if (kind == AT_KIND_FLOAT) return ATTUNE_F32;
  return strong == ATTUNE_F64 ? ATTUNE_C128 : ATTUNE_C64;
}

bool at_common(const at_value *values, int count, at_value *out, attune_dtype *one, attune_dtype *other) {
  attune_dtype strong = (attune_dtype)0, weak = (attune_dtype)0;
  for (int i = 0; i < count; i++) {
    attune_dtype *with = values[i].weak ? &weak : &strong;
    if (*with == 0) {
      *with = values[i].dtype;
      continue;
    }
    const attune_dtype both =
        values[i].weak ? promote_weak(*with, values[i].dtype) : at_promote(*with, values[i].dtype);
    *one = *with;
    *other = values[i].dtype;
    if (both == 0) return false;
    *with = both;
  }
  *out = (at_value){.node = -1, .weak = strong == 0};
  out->dtype = strong == 0 ? weak : weak == 0 ? strong : promote_mixed(strong, weak);
  return true;
}

/* Bits of an integer's magnitude; of a float's significand, with the implied one. */
static int digits(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F64:
  case ATTUNE_C128: return 53;
  case ATTUNE_F32:
  case ATTUNE_C64: return 24;
  case ATTUNE_F16: return 11;
  case ATTUNE_BF16: return 8;
  case ATTUNE_F8E4M3: return 4;
  case ATTUNE_F8E5M2: return 3;
  case ATTUNE_BOOL: return 1;
  default: return 8 * (int)attune_dtype_size(dtype) - !at_dtype_unsigned(dtype);
  }
}

/* Does the float hold every number of the other float? */
static bool holds_float(attune_dtype wide, attune_dtype narrow) {
  if (wide == ATTUNE_F64) return true;
  if (wide == ATTUNE_F32) return narrow != ATTUNE_F64;
  return wide == narrow || ((wide == ATTUNE_F16 || wide == ATTUNE_BF16) && is_float8(narrow));
}

bool at_holds(attune_dtype wide, attune_dtype narrow) {
  const at_dtype_kind w = at_dtype_kind_of(wide), n = at_dtype_kind_of(narrow);
  if (wide == narrow || n == AT_KIND_BOOL) return true;
  if (w < n) return false;
  if (n == AT_KIND_COMPLEX) return wide == ATTUNE_C128;
  if (w == AT_KIND_COMPLEX) return at_holds(wide == ATTUNE_C128 ? ATTUNE_F64 : ATTUNE_F32, narrow);
  if (n == AT_KIND_FLOAT) return holds_float(wide, narrow);
  if (w == AT_KIND_INTEGER && at_dtype_unsigned(wide) && !at_dtype_unsigned(narrow)) return false;
  /* -128 has one digit: a signed integer's least number is a power of two. */
  return digits(wide) >= digits(narrow) && !is_float8(wide);
}
