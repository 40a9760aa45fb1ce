/* SPDX-License-Identifier: Apache-2.0
 * parse_names.c: what a name of the text is: a value named before it, an operand, a constant. */
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/language/parser.h"
#include "src/base/array.h"

enum { SHOWN = 40 }; /* characters of a name in a message */

static int shown(const at_token *name) {
  return name->length > SHOWN ? SHOWN : (int)name->length;
}

static bool is(const at_parser *p, const at_token *name, const char *other, size_t length) {
  return name->length == length && memcmp(p->source.text + name->at, other, length) == 0;
}

static at_local *find_local(at_parser *p, const at_token *name) {
  for (int i = 0; i < p->local_count; i++)
    if (is(p, name, p->source.text + p->locals[i].at, p->locals[i].length)) return &p->locals[i];
  return NULL;
}

static int find_operand(const at_parser *p, const at_token *name, const at_operand_name *operands, int count) {
  for (int i = 0; i < count; i++)
    if (is(p, name, operands[i].name, strlen(operands[i].name))) return i;
  return -1;
}

static bool find_value(at_parser *p, const at_token *name, at_value *out) {
  const at_signature *s = p->signature;
  at_local *local = find_local(p, name);
  if (local) {
    local->used = true;
    *out = local->value;
    return true;
  }
  const int tensor = find_operand(p, name, s->tensors, s->tensor_count);
  if (tensor >= 0) {
    const attune_dtype dtype = (attune_dtype)s->tensors[tensor].dtype;
    p->tensor_used[tensor] = true;
    *out = at_parse_leaf(p, AT_NODE_INPUT, dtype, tensor, false);
    return true;
  }
  const int scalar = find_operand(p, name, s->scalars, s->scalar_count);
  if (scalar < 0) return false;
  const attune_dtype dtype = (attune_dtype)s->scalars[scalar].dtype;
  p->scalar_used[scalar] = true;
  *out = at_parse_leaf(p, AT_NODE_SCALAR, dtype, scalar, !p->canonical);
  return true;
}

/* "; the operands are a, b, c" */
static void list_operands(const at_parser *p, char *out, size_t size) {
  const at_signature *s = p->signature;
  size_t at = 0;
  out[0] = '\0';
  for (int i = 0; i < s->tensor_count + s->scalar_count; i++) {
    const at_operand_name *operand = i < s->tensor_count ? &s->tensors[i] : &s->scalars[i - s->tensor_count];
    if (at > 100) {
      at_append(out, size, &at, ", ...");
      return;
    }
    at_append(out, size, &at, "%s%.40s", i ? ", " : "", operand->name);
  }
}

static at_value fail_unknown(at_parser *p, const at_token *name) {
  const char *text = p->source.text + name->at, *hint = at_word_hint(text, name->length);
  char operands[200];
  if (at_parse_is(p, "="))
    return AT_PARSE_FAIL(p, p->token.at, "= only names a value, at the start of a statement; write == to compare");
  if (hint) return AT_PARSE_FAIL(p, name->at, "\"%.*s\" is not part of the language; %s", shown(name), text, hint);
  list_operands(p, operands, sizeof operands);
  const at_signature *s = p->signature;
  const char *near = at_nearest_name(text, name->length, s->tensors ? s->tensors[0].name : NULL,
                                     sizeof(at_operand_name), s->tensor_count);
  if (near)
    return AT_PARSE_FAIL(p, name->at, "\"%.*s\" is unknown; did you mean %.40s? %s%s", shown(name), text, near,
                         operands[0] ? "The operands are " : "There are no operands", operands);
  return AT_PARSE_FAIL(p, name->at, "\"%.*s\" is unknown; should be an operand or a value named earlier. %s%s",
                       shown(name), text, operands[0] ? "The operands are " : "There are no operands", operands);
}

bool at_name_value(at_parser *p, const at_token *name, at_value *out) {
  if (!find_value(p, name, out)) return false;
  const char *text = p->source.text + name->at;
  if (at_parse_is(p, "("))
    AT_PARSE_FAIL(p, name->at, "\"%.*s\" is a value, not a function; write %.*s * (...) to multiply", shown(name), text,
                  shown(name), text);
  return p->status == ATTUNE_OK;
}

at_value at_name_constant(at_parser *p, const at_token *name) {
  const char *text = p->source.text + name->at;
  at_constant constant;
  const attune_dtype dtype = at_constant_find(text, name->length, &constant);
  if (dtype) return at_parse_constant(p, dtype, constant, !p->canonical);
  if (at_function_find(text, name->length) >= 0 || at_special_find(text, name->length) ||
      at_dtype_find(text, name->length) || memchr(text, '.', name->length))
    return AT_PARSE_FAIL(p, name->at, "%.*s is %s and needs its parentheses, as in %.*s(%s)", shown(name), text,
                         at_name_taken(text, name->length), shown(name), text,
                         at_special_find(text, name->length) ? "" : "x");
  return fail_unknown(p, name);
}

/* ---- naming ---- */

bool at_name_assign(at_parser *p, const at_token *name, at_value value) {
  const char *text = p->source.text + name->at, *taken = at_name_taken(text, name->length);
  const at_signature *s = p->signature;
  if (taken)
    AT_PARSE_FAIL(p, name->at, "%.*s is %s and cannot be assigned; choose another name", shown(name), text, taken);
  else if (find_local(p, name))
    AT_PARSE_FAIL(p, name->at, "%.*s already has a value; choose another name", shown(name), text);
  else if (find_operand(p, name, s->tensors, s->tensor_count) >= 0 ||
           find_operand(p, name, s->scalars, s->scalar_count) >= 0)
    AT_PARSE_FAIL(p, name->at, "%.*s is an operand and cannot be assigned; choose another name", shown(name), text);
  if (p->status != ATTUNE_OK) return false;
  if (!AT_ARRAY_ROOM(p->locals, p->local_count, p->local_room)) {
    at_parse_fail(p, at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression"));
    return false;
  }
  p->locals[p->local_count++] = (at_local){.at = name->at, .length = name->length, .value = value};
  return true;
}

attune_status at_name_check_use(at_parser *p) {
  const at_signature *s = p->signature;
  for (int i = 0; i < p->local_count; i++) {
    const at_token name = {.at = p->locals[i].at, .length = p->locals[i].length};
    if (p->locals[i].used) continue;
    AT_PARSE_FAIL(p, name.at, "%.*s is assigned but never used; leave it out", shown(&name), p->source.text + name.at);
    return p->status;
  }
  for (int i = 0; i < s->tensor_count; i++)
    if (!p->tensor_used[i])
      return AT_INVALID("operand %.40s is not used by the expression; leave it out or use it", s->tensors[i].name);
  for (int i = 0; i < s->scalar_count; i++)
    if (!p->scalar_used[i])
      return AT_INVALID("scalar %.40s is not used by the expression; leave it out or use it", s->scalars[i].name);
  return ATTUNE_OK;
}
