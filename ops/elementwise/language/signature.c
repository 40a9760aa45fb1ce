/* SPDX-License-Identifier: Apache-2.0
 * signature.c: are the names and dtypes of the operands in order? */
#include <string.h>

#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/language/parser.h"

static bool is_name(const char *name) {
  static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const size_t length = strnlen(name, AT_EXPRESSION_NAME);
  return length > 0 && length < AT_EXPRESSION_NAME && strspn(name, letters) == length &&
         !(name[0] >= '0' && name[0] <= '9');
}

static attune_status check_operand(const at_operand_name *operand, const char *what, int number) {
  if (!is_name(operand->name))
    return AT_INVALID("the name of %s %d is \"%.40s\"; should consist of at most %d letters, digits and _, and not "
                      "start with a digit",
                      what, number, operand->name, AT_EXPRESSION_NAME - 1);
  const char *taken = at_name_taken(operand->name, strlen(operand->name));
  if (taken) return AT_INVALID("the name of %s %d, %s, is %s; choose another name", what, number, operand->name, taken);
  const attune_dtype dtype = (attune_dtype)operand->dtype;
  if (at_dtype_kind_of(dtype) == AT_KIND_NONE)
    return AT_INVALID("the dtype of %s %.40s is %d; should be an attune_dtype", what, operand->name,
                      (int)operand->dtype);
  if (what[0] == 's' && dtype != ATTUNE_F64 && dtype != ATTUNE_I64 && dtype != ATTUNE_BOOL && dtype != ATTUNE_C128)
    return AT_INVALID("the dtype of scalar %.40s is %s; should be f64, i64, bool or c128, its kind of number",
                      operand->name, attune_dtype_name(dtype));
  return ATTUNE_OK;
}

static const char *name_of(const at_signature *s, int i) {
  return i < s->tensor_count ? s->tensors[i].name : s->scalars[i - s->tensor_count].name;
}

attune_status at_check_signature(const at_signature *s) {
  if (!s) return AT_INVALID("signature is NULL; should name the operands");
  if (s->tensor_count < 0 || s->tensor_count > AT_EXPRESSION_INPUTS)
    return AT_INVALID("the expression has %d tensors; should be at most %d", s->tensor_count, AT_EXPRESSION_INPUTS);
  if (s->scalar_count < 0 || s->scalar_count > AT_EXPRESSION_SCALARS)
    return AT_INVALID("the expression has %d scalars; should be at most %d", s->scalar_count, AT_EXPRESSION_SCALARS);
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < s->tensor_count && status == ATTUNE_OK; i++) status = check_operand(&s->tensors[i], "tensor", i);
  for (int i = 0; i < s->scalar_count && status == ATTUNE_OK; i++) status = check_operand(&s->scalars[i], "scalar", i);
  for (int i = 1; i < s->tensor_count + s->scalar_count && status == ATTUNE_OK; i++)
    for (int j = 0; j < i && status == ATTUNE_OK; j++)
      if (strcmp(name_of(s, i), name_of(s, j)) == 0)
        status = AT_INVALID("two operands are named %.40s; names should be unique", name_of(s, i));
  return status;
}
