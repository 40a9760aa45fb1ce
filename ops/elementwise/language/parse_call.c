/* SPDX-License-Identifier: Apache-2.0
 * parse_call.c: name(arguments): functions, casts, rand, randn and index. */
#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/language/parser.h"

enum { DIMENSIONS = 8 };

/* min, max and hypot of more than two: from the left. */
static bool takes_more(int function) {
  return function == AT_FN_MINIMUM || function == AT_FN_MAXIMUM || function == AT_FN_FMINIMUM ||
         function == AT_FN_FMAXIMUM || function == AT_FN_HYPOT;
}

static void wrong_count(at_parser *p, const at_call *c, const char *and_more, bool too_many) {
  if (too_many)
    AT_PARSE_FAIL(p, c->name.at, "%.*s has more than %d argument%s; should have %d%s", c->shown, c->text, c->most,
                  c->most == 1 ? "" : "s", c->most, and_more);
  else
    AT_PARSE_FAIL(p, c->name.at, "%.*s has %d argument%s; should have %d%s", c->shown, c->text, c->count,
                  c->count == 1 ? "" : "s", c->most, and_more);
}

static at_value apply(at_parser *p, const at_call *c) {
  return at_type_function(p, c->name.at, (at_function)c->function, c->values);
}

void at_call_add(at_parser *p, at_call *c, at_value value) {
  const bool more = takes_more(c->function);
  if (c->count >= c->most && !more) {
    wrong_count(p, c, "", true);
    return;
  }
  c->values[c->count < c->most ? c->count : 1] = value;
  if (++c->count >= c->most && more) c->values[0] = apply(p, c);
}

static at_value draw(at_parser *p, const at_call *c) {
  const bool normal = c->special == AT_SPECIAL_RANDN;
  int *draws = normal ? &p->normal_count : &p->uniform_count;
  if (p->normal_count + p->uniform_count == AT_EXPRESSION_DRAWS)
    return AT_PARSE_FAIL(p, c->name.at, "this is random number %d of an element; an expression has at most %d",
                         AT_EXPRESSION_DRAWS + 1, AT_EXPRESSION_DRAWS);
  const at_node_kind kind = normal ? AT_NODE_NORMAL : AT_NODE_UNIFORM;
  return at_parse_leaf(p, kind, ATTUNE_F32, (*draws)++, false);
}

static at_value position(at_parser *p, const at_call *c) {
  if (c->most == 0) return at_parse_leaf(p, AT_NODE_ELEMENT, ATTUNE_I64, 0, false);
  const at_value *dimension_of = &c->values[0];
  const bool number = dimension_of->written && at_is_constant(&p->build, dimension_of->node);
  const at_node *n = number ? &p->build.nodes[dimension_of->node] : NULL;
  if (!n || at_dtype_kind_of((attune_dtype)n->dtype) != AT_KIND_INTEGER)
    return AT_PARSE_FAIL(
        p, c->first, "the dimension of index should be a number: 0 for the last dimension, 1 for the one before it");
  const int64_t dimension = n->constant.integer;
  if (dimension < 0 || dimension >= DIMENSIONS)
    return AT_PARSE_FAIL(p, c->first,
                         "dimension %lld of index should be 0 to %d: 0 is the last one, 1 the one before it",
                         (long long)dimension, DIMENSIONS - 1);
  return at_parse_leaf(p, AT_NODE_POSITION, ATTUNE_I64, (int)dimension, false);
}

static at_value fail_unknown(at_parser *p, const at_call *c) {
  const char *hint = at_word_hint(c->text, c->name.length);
  at_constant ignored;
  if (hint) return AT_PARSE_FAIL(p, c->name.at, "\"%.*s\" is not part of the language; %s", c->shown, c->text, hint);
  if (at_constant_find(c->text, c->name.length, &ignored))
    return AT_PARSE_FAIL(p, c->name.at, "%.*s is a constant, not a function; write %.*s * (...) to multiply", c->shown,
                         c->text, c->shown, c->text);
  const char *near = at_nearest_name(c->text, c->name.length, NULL, 0, 0);
  return AT_PARSE_FAIL(p, c->name.at, "there is no function \"%.*s\"; %s%s%s", c->shown, c->text, near ? "is " : "",
                       near ? near : "docs/expressions.md lists them", near ? " meant?" : "");
}

/* index() or index(number): where the first argument is, if there is one. */
static bool look_into_index(at_parser *p, at_call *c) {
  at_token after;
  const attune_status status = at_token_read(&p->source, p->token.at + 1, &after);
  if (status != ATTUNE_OK) at_parse_fail(p, status);
  c->first = after.at;
  c->most = !(after.kind == AT_TOKEN_SIGN && p->source.text[after.at] == ')');
  return status == ATTUNE_OK;
}

bool at_call_begin(at_parser *p, at_call *c, const at_token *name) {
  const char *text = p->source.text + name->at;
  *c = (at_call){.name = *name,
                 .text = text,
                 .shown = name->length > 40 ? 40 : (int)name->length,
                 .function = at_function_find(text, name->length)};
  if (c->function >= 0) {
    c->most = at_function_arity((at_function)c->function);
    return true;
  }
  c->dtype = at_dtype_from_text(text, name->length); /* also float32(x): a call of an unknown function else */
  c->special = at_special_find(text, name->length);
  c->most = c->dtype ? 1 : 0;
  if (c->special == AT_SPECIAL_INDEX) return look_into_index(p, c);
  if (!c->dtype && !c->special) fail_unknown(p, c);
  return p->status == ATTUNE_OK;
}

at_value at_call_end(at_parser *p, at_call *c) {
  if (c->count < c->most) wrong_count(p, c, takes_more(c->function) ? " or more" : "", false);
  at_parse_next(p);
  if (p->status != ATTUNE_OK) return AT_NONE;
  if (c->function >= 0) return takes_more(c->function) ? c->values[0] : apply(p, c);
  if (c->dtype) return at_type_cast(p, c->name.at, c->dtype, c->values[0]);
  return c->special == AT_SPECIAL_INDEX ? position(p, c) : draw(p, c);
}
