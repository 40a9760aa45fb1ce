/* SPDX-License-Identifier: Apache-2.0
 * user_function_expression.c: see user_function_expression.h. */
#include "ops/elementwise/language/user_function_expression.h"

#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/canonical.h"
#include "ops/elementwise/ir/promote.h"
#include "ops/elementwise/ir/user_function.h"
#include "ops/elementwise/language/parser.h"

enum { TEXT_CHARS = 640 }; /* 24 operands of up to 13 characters and the rest */

static const char opening[] = " cuda ";

/* Type in which all arguments are computed. */
static attune_status find_dtype(attune_dtype *out, const at_signature *s) {
  at_value values[AT_EXPRESSION_INPUTS + AT_EXPRESSION_SCALARS], common;
  attune_dtype one, other;
  int count = 0;
  for (int i = 0; i < s->tensor_count; i++)
    values[count++] = (at_value){.dtype = (attune_dtype)s->tensors[i].dtype, .weak = false};
  for (int i = 0; i < s->scalar_count; i++)
    values[count++] = (at_value){.dtype = (attune_dtype)s->scalars[i].dtype, .weak = true};
  if (count == 0) return AT_INVALID("the function has neither inputs nor scalars; should have one at least");
  if (!at_common(values, count, &common, &one, &other))
    return AT_INVALID("the arguments have the same type, but %s and %s have no common dtype; convert one of them first",
                      attune_dtype_name(one), attune_dtype_name(other));
  *out = at_compute_dtype(common.dtype);
  if (common.weak && common.dtype == ATTUNE_F64) *out = ATTUNE_F32;
  if (common.weak && common.dtype == ATTUNE_C128) *out = ATTUNE_C64;
  return ATTUNE_OK;
}

static void add_node(at_expression *e, at_node_kind kind, attune_dtype dtype, int index) {
  e->nodes[e->node_count++] = (at_node){.kind = (uint8_t)kind, .dtype = (uint8_t)dtype, .index = (uint16_t)index};
}

static void name_operands(at_expression *e, const at_signature *s) {
  e->input_count = s->tensor_count;
  e->scalar_count = s->scalar_count;
  for (int i = 0; i < s->tensor_count; i++) {
    e->inputs[i] = (at_operand_name){.dtype = s->tensors[i].dtype};
    (void)at_copy_text(e->inputs[i].name, sizeof e->inputs[i].name, at_canonical_tensor(i));
  }
  for (int i = 0; i < s->scalar_count; i++)
    e->scalars[i] = (at_operand_name){.name = {'s', (char)('0' + i), '\0'}, .dtype = s->scalars[i].dtype};
}

static bool write_text(at_expression *e, const char *hash) {
  char text[TEXT_CHARS] = "";
  size_t at = 0;
  bool ok = true;
  for (int i = 0; i < e->input_count + e->scalar_count; i++) {
    const at_operand_name *o = i < e->input_count ? &e->inputs[i] : &e->scalars[i - e->input_count];
    ok = ok && at_append(text, sizeof text, &at, "%s%s %s", i ? ", " : "", attune_dtype_name((attune_dtype)o->dtype),
                         o->name);
  }
  ok = ok && at_append(text, sizeof text, &at, ":%s%d %s", opening, e->output_count, hash);
  return ok && (e->text = strdup(text));
}

static attune_status make(at_expression **out, const char *hash, const at_signature *s, int outputs) {
  attune_dtype dtype = (attune_dtype)0;
  AT_TRY(find_dtype(&dtype, s));
  const int arguments = s->tensor_count + s->scalar_count;
  at_expression *e = calloc(1, sizeof *e);
  if (!e || !(e->nodes = calloc((size_t)(arguments + s->tensor_count + outputs), sizeof *e->nodes))) {
    free(e);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a function of %d arguments", arguments);
  }
  e->raw = true;
  e->max_position = -1;
  e->output_count = outputs;
  name_operands(e, s);
  for (int i = 0; i < s->tensor_count; i++) add_node(e, AT_NODE_INPUT, (attune_dtype)s->tensors[i].dtype, i);
  for (int i = 0; i < s->scalar_count; i++) add_node(e, AT_NODE_SCALAR, dtype, i);
  for (int i = 0; i < s->tensor_count; i++) {
    add_node(e, AT_NODE_CAST, dtype, 0);
    e->nodes[e->node_count - 1].count = 1;
    e->nodes[e->node_count - 1].argument[0] = (uint16_t)i;
  }
  for (int i = 0; i < outputs; i++) {
    e->outputs[i] = (uint16_t)e->node_count;
    add_node(e, AT_NODE_RAW, dtype, i);
  }
  if (!write_text(e, hash)) {
    at_expression_destroy(e);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression");
  }
  *out = e;
  return ATTUNE_OK;
}

attune_status at_user_function_expression_create(at_expression **out, at_user_function *raw,
                                                 const at_signature *operands, int outputs) {
  attune_status status = at_check_signature(operands);
  if (status == ATTUNE_OK) status = make(out, raw->hash, operands, outputs);
  if (status == ATTUNE_OK) (*out)->function = at_user_function_hold(raw);
  return status;
}

bool at_user_function_expression_is(const char *body) {
  return strncmp(body, opening, sizeof opening - 1) == 0;
}

attune_status at_user_function_expression_parse(at_expression **out, const char *body, const at_signature *operands) {
  const char *at = body + sizeof opening - 1, *hash = at + 2;
  const bool good = at[0] >= '1' && at[0] <= '0' + AT_EXPRESSION_OUTPUTS && at[1] == ' ' &&
                    strspn(hash, "0123456789abcdef") == AT_USER_FUNCTION_HASH_CHARS - 1 &&
                    strlen(hash) == AT_USER_FUNCTION_HASH_CHARS - 1;
  if (!good)
    return AT_INVALID("\"cuda\" should be followed by the number of outputs and a hash of %d digits",
                      AT_USER_FUNCTION_HASH_CHARS - 1);
  const attune_status status = make(out, hash, operands, at[0] - '0');
  if (status == ATTUNE_OK) (*out)->function = at_user_function_find(hash);
  return status;
}
