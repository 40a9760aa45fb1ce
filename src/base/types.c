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
  case ATTUNE_C128: return 16;
  case ATTUNE_F64:
  case ATTUNE_I64:
  case ATTUNE_U64:
  case ATTUNE_C64: return 8;
  case ATTUNE_F32:
  case ATTUNE_I32:
  case ATTUNE_U32: return 4;
  case ATTUNE_F16:
  case ATTUNE_BF16:
  case ATTUNE_I16:
  case ATTUNE_U16: return 2;
  case ATTUNE_I8:
  case ATTUNE_U8:
  case ATTUNE_BOOL:
  case ATTUNE_F8E4M3:
  case ATTUNE_F8E5M2: return 1;
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
  case ATTUNE_I8: return "i8";
  case ATTUNE_I16: return "i16";
  case ATTUNE_U8: return "u8";
  case ATTUNE_U16: return "u16";
  case ATTUNE_U32: return "u32";
  case ATTUNE_U64: return "u64";
  case ATTUNE_BOOL: return "bool";
  case ATTUNE_F8E4M3: return "f8e4m3";
  case ATTUNE_F8E5M2: return "f8e5m2";
  case ATTUNE_C64: return "c64";
  case ATTUNE_C128: return "c128";
  }
  return "unknown";
}
