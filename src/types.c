/* SPDX-License-Identifier: Apache-2.0
 * types.c: the version and the element types. */
#include <attune/types.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *attune_version(void) {
  return TEXT(ATTUNE_VERSION_MAJOR) "." TEXT(ATTUNE_VERSION_MINOR) "." TEXT(ATTUNE_VERSION_PATCH);
}

size_t attune_dtype_size(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F64:
  case ATTUNE_I64: return 8;
  case ATTUNE_F32:
  case ATTUNE_I32: return 4;
  case ATTUNE_F16:
  case ATTUNE_BF16: return 2;
  }
  return 0;
}

const char *attune_dtype_name(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F64: return "f64";
  case ATTUNE_F32: return "f32";
  case ATTUNE_F16: return "f16";
  case ATTUNE_BF16: return "bf16";
  case ATTUNE_I32: return "i32";
  case ATTUNE_I64: return "i64";
  }
  return "unknown";
}
