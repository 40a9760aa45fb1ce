/* SPDX-License-Identifier: Apache-2.0
 * parse.c: the grammar: statements and operators. It descends once for each nested parenthesis, call or operator before
 * a value, and counts these; a row of operators is a loop. */
#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/language/parser.h"

static const char *token_text(const at_parser *p) {
  return p->source.text + p->token.at;
}

static int shown(size_t length) {
  return length > 40 ? 40 : (int)length;
}

/* The word or sign cannot stand here: the remedy where it is one of another language, "a and b", else what could. */
static void refuse_here(at_parser *p, const char *instead) {
  const at_token *t = &p->token;
  const char *hint = t->kind == AT_TOKEN_NAME ? at_word_hint(token_text(p), t->length) : NULL;
  if (hint)
    AT_PARSE_FAIL(p, t->at, "\"%.*s\" is not part of the language; %s", shown(t->length), token_text(p), hint);
  else
    AT_PARSE_FAIL(p, t->at, "\"%.*s\" is not allowed here; should be %s", shown(t->length), token_text(p), instead);
}

/* ---- values ---- */

static at_value parse_number(at_parser *p) {
  const at_token number = p->token;
  at_parse_next(p);
  return at_parse_constant(p, number.dtype, number.constant, !p->canonical);
}

static at_value parse_expression(at_parser *p);

static at_value parse_parentheses(at_parser *p) {
  const size_t open = p->token.at;
  at_parse_next(p);
  const at_value value = parse_expression(p);
  if (p->status != ATTUNE_OK) return AT_NONE;
  if (at_parse_is(p, ",")) return AT_PARSE_FAIL(p, p->token.at, "a comma only separates arguments and outputs");
  if (p->token.kind == AT_TOKEN_END)
    return AT_PARSE_FAIL(p, open, "this parenthesis is not closed; put a ) where its value ends");
  if (!at_parse_is(p, ")")) refuse_here(p, "an operator or )");
  at_parse_next(p);
  return p->status == ATTUNE_OK ? value : AT_NONE;
}

static at_value expected_value(at_parser *p) {
  const at_token *t = &p->token;
  if (t->kind == AT_TOKEN_END)
    return AT_PARSE_FAIL(p, t->at,
                         "the expression ends where a value is expected; should continue with a name or a number");
  if (at_parse_is(p, "="))
    return AT_PARSE_FAIL(p, t->at, "= only names a value, at the start of a statement; write == to compare");
  return AT_PARSE_FAIL(p, t->at, "\"%.*s\" is not a value; should be a name, a number or a parenthesis",
                       shown(t->length), token_text(p));
}

/* ---- names and calls ---- */

static void refuse_argument_end(at_parser *p, const at_call *c) {
  if (p->token.kind == AT_TOKEN_END)
    AT_PARSE_FAIL(p, c->name.at + c->name.length, "the call of %.*s is not closed; put a ) after its arguments",
                  shown(c->name.length), c->text);
  else if (p->token.kind == AT_TOKEN_NAME && at_word_hint(token_text(p), p->token.length))
    refuse_here(p, "");
  else if (!at_parse_is(p, ","))
    AT_PARSE_FAIL(p, p->token.at,
                  "\"%.*s\" is not allowed in the arguments of %.*s; should be an operator, a comma or )",
                  shown(p->token.length), token_text(p), shown(c->name.length), c->text);
}

/* From "(" to ")". */
static at_value parse_arguments(at_parser *p, const at_token *name) {
  at_call c;
  if (!at_call_begin(p, &c, name)) return AT_NONE;
  at_parse_next(p);
  while (p->status == ATTUNE_OK && !at_parse_is(p, ")")) {
    const at_value value = parse_expression(p);
    if (p->status == ATTUNE_OK) at_call_add(p, &c, value);
    if (p->status != ATTUNE_OK || at_parse_is(p, ")")) break;
    refuse_argument_end(p, &c);
    at_parse_next(p);
    if (at_parse_is(p, ")")) AT_PARSE_FAIL(p, p->token.at, "an argument is missing before this ); leave out the comma");
  }
  return p->status == ATTUNE_OK ? at_call_end(p, &c) : AT_NONE;
}

static at_value parse_call(at_parser *p, const at_token *name) {
  if (!at_parse_enter(p, name->at)) return AT_NONE;
  const at_value value = parse_arguments(p, name);
  p->depth--;
  p->compared = false;
  return p->status == ATTUNE_OK ? value : AT_NONE;
}

static at_value parse_name(at_parser *p) {
  const at_token name = p->token;
  at_value value;
  at_parse_next(p);
  if (p->status != ATTUNE_OK) return AT_NONE;
  if (at_name_value(p, &name, &value)) return value;
  if (p->status != ATTUNE_OK) return AT_NONE;
  return at_parse_is(p, "(") ? parse_call(p, &name) : at_name_constant(p, &name);
}

static at_value parse_primary(at_parser *p) {
  if (p->status != ATTUNE_OK) return AT_NONE;
  p->compared = false;
  if (p->token.kind == AT_TOKEN_NUMBER) return parse_number(p);
  if (p->token.kind == AT_TOKEN_NAME) return parse_name(p);
  return at_parse_is(p, "(") ? parse_parentheses(p) : expected_value(p);
}

/* ---- operators ---- */

static at_value parse_unary(at_parser *p);

/* -9223372036854775808: the number alone is one too many for i64. */
static bool parse_least(at_parser *p, at_value *out) {
  if (p->token.kind != AT_TOKEN_NUMBER || p->token.dtype != ATTUNE_U64 || p->token.constant.integer != INT64_MIN)
    return false;
  p->token.dtype = ATTUNE_I64;
  *out = parse_number(p);
  return true;
}

static at_value parse_power(at_parser *p) {
  const at_value base = parse_primary(p);
  if (!at_parse_is(p, "**")) return base;
  const size_t at = p->token.at;
  at_parse_next(p);
  const at_value values[2] = {base, parse_unary(p)};
  p->compared = false;
  return p->status == ATTUNE_OK ? at_type_function(p, at, AT_FN_POWER, values) : AT_NONE;
}

static at_value parse_signed(at_parser *p) {
  const size_t at = p->token.at;
  const bool plus = at_parse_is(p, "+"), minus = at_parse_is(p, "-");
  const int function = plus ? -1 : at_operator_find(p->source.text + at, p->token.length, 1);
  at_value value;
  at_parse_next(p);
  if (minus && parse_least(p, &value)) return value;
  value = parse_unary(p);
  if (p->status != ATTUNE_OK) return AT_NONE;
  return plus ? at_type_plus(p, value) : at_type_function(p, at, (at_function)function, &value);
}

static at_value parse_unary(at_parser *p) {
  if (!at_parse_enter(p, p->token.at)) return AT_NONE;
  const bool sign = at_parse_is(p, "-") || at_parse_is(p, "+") || at_parse_is(p, "!") || at_parse_is(p, "~");
  const at_value value = sign ? parse_signed(p) : parse_power(p);
  p->depth--;
  return value;
}

/* A binary operator of at least this precedence; ** is parse_power's. */
static int operator_at(const at_parser *p, int least) {
  if (p->token.kind != AT_TOKEN_SIGN) return -1;
  const int function = at_operator_find(token_text(p), p->token.length, 2);
  return function >= 0 && function != AT_FN_POWER && at_function_precedence((at_function)function) >= least ? function
                                                                                                            : -1;
}

static bool is_comparison(int function) {
  const at_type_rule rule = at_function_rule((at_function)function);
  return rule == AT_RULE_COMPARE || rule == AT_RULE_EQUAL;
}

static at_value parse_binary(at_parser *p, int least) {
  at_value left = parse_unary(p);
  bool compared = false;
  p->compared = false;
  for (int function; (function = operator_at(p, least)) >= 0;) {
    const size_t at = p->token.at;
    at_parse_next(p);
    const at_value values[2] = {left, parse_binary(p, at_function_precedence((at_function)function) + 1)};
    if (p->status != ATTUNE_OK) return AT_NONE;
    if (is_comparison(function) && (compared || p->compared))
      return AT_PARSE_FAIL(p, at, "comparisons do not chain; write a < b && b < c, or put one in parentheses");
    compared = is_comparison(function);
    left = at_type_function(p, at, (at_function)function, values);
  }
  p->compared = compared;
  return left;
}

/* condition ? a : b, from right to left. */
static at_value parse_choice(at_parser *p, at_value condition) {
  const size_t at = p->token.at;
  at_parse_next(p);
  at_value values[3] = {condition, parse_expression(p)};
  if (p->status != ATTUNE_OK) return AT_NONE;
  if (!at_parse_is(p, ":")) return AT_PARSE_FAIL(p, at, "this ? has no : after it; write condition ? a : b");
  at_parse_next(p);
  values[2] = parse_expression(p);
  return p->status == ATTUNE_OK ? at_type_function(p, at, AT_FN_SELECT, values) : AT_NONE;
}

static at_value parse_expression(at_parser *p) {
  if (!at_parse_enter(p, p->token.at)) return AT_NONE;
  at_value value = parse_binary(p, 1);
  if (p->status == ATTUNE_OK && at_parse_is(p, "?")) value = parse_choice(p, value);
  p->depth--;
  return value;
}

/* ---- statements ---- */

/* At a name: is "=" behind it? The token after it is read twice. */
static bool begins_assignment(at_parser *p) {
  at_token next;
  if (p->token.kind != AT_TOKEN_NAME) return false;
  const attune_status status = at_token_read(&p->source, p->token.at + p->token.length, &next);
  if (status != ATTUNE_OK) {
    at_parse_fail(p, status);
    return false;
  }
  return next.kind == AT_TOKEN_SIGN && next.length == 1 && p->source.text[next.at] == '=';
}

static void parse_assignment(at_parser *p) {
  const at_token name = p->token;
  at_parse_next(p);
  at_parse_next(p);
  const at_value value = parse_expression(p);
  if (p->status != ATTUNE_OK || !at_name_assign(p, &name, value)) return;
  if (at_parse_is(p, ";"))
    at_parse_next(p);
  else
    AT_PARSE_FAIL(p, p->token.at, "the value of %.*s should be followed by a ; and the outputs", shown(name.length),
                  p->source.text + name.at);
}

static void refuse_rest(at_parser *p) {
  if (p->token.kind == AT_TOKEN_END) return;
  if (at_parse_is(p, ")"))
    AT_PARSE_FAIL(p, p->token.at, "this ) closes nothing; leave it out");
  else if (at_parse_is(p, "="))
    expected_value(p);
  else if (at_parse_is(p, ":"))
    AT_PARSE_FAIL(p, p->token.at, "this : has no ? before it; write condition ? a : b");
  else
    refuse_here(p, "an operator, a comma or the end");
}

static void parse_outputs(at_parser *p) {
  size_t at;
  do {
    if (p->output_count) at_parse_next(p);
    at = p->token.at;
    const at_value value = parse_expression(p);
    if (p->status != ATTUNE_OK) return;
    if (p->output_count == AT_EXPRESSION_OUTPUTS) {
      AT_PARSE_FAIL(p, at, "this is output %d; an expression has at most %d", p->output_count + 1,
                    AT_EXPRESSION_OUTPUTS);
      return;
    }
    p->outputs[p->output_count++] = value;
  } while (at_parse_is(p, ","));
  if (at_parse_is(p, ";")) {
    at_parse_next(p);
    if (p->status == ATTUNE_OK && p->token.kind != AT_TOKEN_END)
      AT_PARSE_FAIL(p, at, "this value has no name and is not an output, since more follows; write NAME = ... ;");
  }
  refuse_rest(p);
}

attune_status at_parse_program(at_parser *p) {
  at_parse_next(p);
  while (p->status == ATTUNE_OK && begins_assignment(p)) parse_assignment(p);
  if (p->status == ATTUNE_OK && p->token.kind == AT_TOKEN_END)
    AT_PARSE_FAIL(p, p->token.at, "the expression has no output; should end with a value, as in a + b");
  if (p->status == ATTUNE_OK) parse_outputs(p);
  return p->status == ATTUNE_OK ? at_name_check_use(p) : p->status;
}
