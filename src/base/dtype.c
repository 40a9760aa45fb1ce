/* SPDX-License-Identifier: Apache-2.0
 * dtype.c: the names of element types, attune's and those of others. */
#include "src/base/dtype.h"

#include <string.h>
#include <strings.h>

static const struct {
  const char *name;
  attune_dtype dtype;
} SYNONYMS[] = {{"float64", ATTUNE_F64},
                {"double", ATTUNE_F64},
                {"fp64", ATTUNE_F64},
                {"float32", ATTUNE_F32},
                {"float", ATTUNE_F32},
                {"single", ATTUNE_F32},
                {"fp32", ATTUNE_F32},
                {"float16", ATTUNE_F16},
                {"half", ATTUNE_F16},
                {"fp16", ATTUNE_F16},
                {"bfloat16", ATTUNE_BF16},
                {"bfloat", ATTUNE_BF16},
                {"float8_e4m3fn", ATTUNE_F8E4M3},
                {"fp8_e4m3", ATTUNE_F8E4M3},
                {"fp8e4m3", ATTUNE_F8E4M3},
                {"e4m3", ATTUNE_F8E4M3},
                {"float8_e5m2", ATTUNE_F8E5M2},
                {"fp8_e5m2", ATTUNE_F8E5M2},
                {"fp8e5m2", ATTUNE_F8E5M2},
                {"e5m2", ATTUNE_F8E5M2},
                {"int8", ATTUNE_I8},
                {"int8_t", ATTUNE_I8},
                {"int16", ATTUNE_I16},
                {"int16_t", ATTUNE_I16},
                {"short", ATTUNE_I16},
                {"int32", ATTUNE_I32},
                {"int32_t", ATTUNE_I32},
                {"int", ATTUNE_I32},
                {"int64", ATTUNE_I64},
                {"int64_t", ATTUNE_I64},
                {"long", ATTUNE_I64},
                {"uint8", ATTUNE_U8},
                {"uint8_t", ATTUNE_U8},
                {"uint16", ATTUNE_U16},
                {"uint16_t", ATTUNE_U16},
                {"uint32", ATTUNE_U32},
                {"uint32_t", ATTUNE_U32},
                {"uint64", ATTUNE_U64},
                {"uint64_t", ATTUNE_U64},
                {"bool_", ATTUNE_BOOL},
                {"boolean", ATTUNE_BOOL},
                {"complex64", ATTUNE_C64},
                {"cfloat", ATTUNE_C64},
                {"complex128", ATTUNE_C128},
                {"cdouble", ATTUNE_C128}};

static bool is(const char *name, const char *text, size_t chars) {
  return strlen(name) == chars && strncasecmp(name, text, chars) == 0;
}

/* Without the module that it is written with: "torch." of "torch.float32". */
static void skip_module(const char **text, size_t *chars) {
  static const char *const modules[] = {"torch.", "numpy.", "np.", "cupy.", "cp.", "jnp.", "tl."};
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
    const size_t length = strlen(modules[i]);
    if (*chars <= length || strncasecmp(modules[i], *text, length) != 0) continue;
    *text += length;
    *chars -= length;
    return;
  }
}

attune_dtype at_dtype_from_text(const char *text, size_t chars) {
  skip_module(&text, &chars);
  for (int dtype = 1; dtype <= AT_DTYPE_LAST; dtype++)
    if (is(attune_dtype_name((attune_dtype)dtype), text, chars)) return (attune_dtype)dtype;
  for (size_t i = 0; i < sizeof SYNONYMS / sizeof *SYNONYMS; i++)
    if (is(SYNONYMS[i].name, text, chars)) return SYNONYMS[i].dtype;
  return (attune_dtype)0;
}
