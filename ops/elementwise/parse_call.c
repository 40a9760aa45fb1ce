/* SPDX-License-Identifier: Apache-2.0
 * parse_call.c: name(arguments): functions, casts, rand, randn and index. */
#include "ops/elementwise/names.h"
#include "ops/elementwise/parse.h"

enum { DIMENSIONS = 8, DRAWS = 64 };

typedef struct call {
  at_token name;
  const char *text;
  int shown;
  at_value values[3];
  int count; /* of arguments */
} call;

/* min, max and hypot of more than two: from the left. */
static bool takes_more(int function) {
  return function == AT_FN_MINIMUM || function == AT_FN_MAXIMUM || function == AT_FN_FMINIMUM ||
         function == AT_FN_FMAXIMUM || function == AT_FN_HYPOT;
}

static void wrong_count(at_parser *p, const call *c, int most, const char *and_more, bool too_many) {
  if (too_many)
    AT_PARSE_FAIL(p, c->name.at, "%.*s has more than %d argument%s; should have %d%s", c->shown, c->text, most,
                  most == 1 ? "" : "s", most, and_more);
  else
    AT_PARSE_FAIL(p, c->name.at, "%.*s has %d argument%s; should have %d%s", c->shown, c->text, c->count,
                  c->count == 1 ? "" : "s", most, and_more);
}

static void add_argument(at_parser *p, call *c, at_value value, int function, int most) {
  if (c->count >= most && takes_more(function)) {
    c->values[1] = value;
    c->values[0] = at_type_function(p, c->name.at, (at_function)function, c->values);
    c->count++;
    return;
  }
  if (c->count == most) {
    wrong_count(p, c, most, "", true);
    return;
  }
  c->values[c->count++] = value;
  if (c->count == most && takes_more(function))
    c->values[0] = at_type_function(p, c->name.at, (at_function)function, c->values);
}

/* From "(" to ")": at most `most` arguments, and at least as many. */
static bool parse_arguments(at_parser *p, call *c, int function, int most) {
  at_parse_next(p);
  while (p->status == ATTUNE_OK && !at_parse_is(p, ")")) {
    const at_value value = at_parse_expression(p);
    if (p->status != ATTUNE_OK) return false;
    add_argument(p, c, value, function, most);
    if (p->status != ATTUNE_OK || at_parse_is(p, ")")) break;
    if (p->token.kind == AT_TOKEN_END)
      AT_PARSE_FAIL(p, c->name.at + c->name.length, "the call of %.*s is not closed; put a ) after its arguments",
                    c->shown, c->text);
    else if (!at_parse_is(p, ","))
      AT_PARSE_FAIL(
          p, p->token.at, "\"%.*s\" cannot stand in the arguments of %.*s; should be an operator, a comma or )",
          (int)(p->token.length > 40 ? 40 : p->token.length), p->source.text + p->token.at, c->shown, c->text);
    at_parse_next(p);
    if (at_parse_is(p, ")")) AT_PARSE_FAIL(p, p->token.at, "an argument is missing before this ); leave out the comma");
  }
  if (p->status != ATTUNE_OK) return false;
  if (c->count < most) wrong_count(p, c, most, takes_more(function) ? " or more" : "", false);
  at_parse_next(p);
  return p->status == ATTUNE_OK;
}

static at_value parse_draw(at_parser *p, call *c, bool normal) {
  if (!parse_arguments(p, c, -1, 0)) return AT_NONE;
  int *draws = normal ? &p->normal_count : &p->uniform_count;
  if (p->normal_count + p->uniform_count == DRAWS)
    return AT_PARSE_FAIL(p, c->name.at, "this is random number %d of an element; an expression has at most %d",
                         DRAWS + 1, DRAWS);
  const at_node_kind kind = normal ? AT_NODE_NORMAL : AT_NODE_UNIFORM;
  return (at_value){.node = at_build_leaf(&p->build, kind, ATTUNE_F32, (*draws)++), .dtype = ATTUNE_F32};
}

static at_value parse_index(at_parser *p, call *c) {
  const size_t open = p->token.at;
  at_token after;
  const attune_status status = at_token_read(&p->source, open + 1, &after);
  if (status != ATTUNE_OK) return at_parse_fail(p, status);
  if (after.kind == AT_TOKEN_SIGN && p->source.text[after.at] == ')') {
    parse_arguments(p, c, -1, 0);
    return (at_value){.node = at_build_leaf(&p->build, AT_NODE_ELEMENT, ATTUNE_I64, 0), .dtype = ATTUNE_I64};
  }
  if (!parse_arguments(p, c, -1, 1)) return AT_NONE;
  const at_node *n = at_is_constant(&p->build, c->values[0].node) ? &p->build.nodes[c->values[0].node] : NULL;
  if (!n || at_dtype_kind_of((attune_dtype)n->dtype) != AT_KIND_INTEGER)
    return AT_PARSE_FAIL(p, after.at,
                         "the dimension of index should be a number: 0 for the last dimension, 1 for the one "
                         "before it");
  const int64_t dimension = n->constant.integer;
  if (dimension < 0 || dimension >= DIMENSIONS)
    return AT_PARSE_FAIL(p, after.at,
                         "dimension %lld of index should be 0 to %d: 0 is the last one, 1 the one before it",
                         (long long)dimension, DIMENSIONS - 1);
  return (at_value){.node = at_build_leaf(&p->build, AT_NODE_POSITION, ATTUNE_I64, (int)dimension),
                    .dtype = ATTUNE_I64};
}

static at_value parse_function(at_parser *p, call *c, int function) {
  const int arity = at_function_arity((at_function)function);
  if (!parse_arguments(p, c, function, arity)) return AT_NONE;
  return takes_more(function) ? c->values[0] : at_type_function(p, c->name.at, (at_function)function, c->values);
}

static at_value parse_cast(at_parser *p, call *c, attune_dtype dtype) {
  if (!parse_arguments(p, c, -1, 1)) return AT_NONE;
  return at_type_cast(p, c->name.at, dtype, c->values[0]);
}

static at_value fail_unknown(at_parser *p, const call *c) {
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

static at_value dispatch(at_parser *p, call *c) {
  const int function = at_function_find(c->text, c->name.length);
  const attune_dtype dtype = at_dtype_find(c->text, c->name.length);
  if (function >= 0) return parse_function(p, c, function);
  if (dtype) return parse_cast(p, c, dtype);
  switch (at_special_find(c->text, c->name.length)) {
  case AT_SPECIAL_RAND: return parse_draw(p, c, false);
  case AT_SPECIAL_RANDN: return parse_draw(p, c, true);
  case AT_SPECIAL_INDEX: return parse_index(p, c);
  default: return fail_unknown(p, c);
  }
}

at_value at_parse_call(at_parser *p, const at_token *name) {
  call c = {.name = *name, .text = p->source.text + name->at, .shown = name->length > 40 ? 40 : (int)name->length};
  if (!at_parse_enter(p, name->at)) return AT_NONE;
  const at_value value = dispatch(p, &c);
  p->depth--;
  p->compared = false;
  return p->status == ATTUNE_OK ? value : AT_NONE;
}
