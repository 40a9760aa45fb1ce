/* SPDX-License-Identifier: Apache-2.0
 * compile.c: from text to a compiled expression, step by step. */
#include "ops/elementwise/language/compile.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/canonical.h"
#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/language/parser.h"
#include "ops/elementwise/language/plain.h"
#include "ops/elementwise/language/user_function_expression.h"
#include "src/process/floating.h"

enum { CANONICAL_CHARS = 256 * 1024 }; /* of a canonical text: its casts are all written */

static attune_status check_built(const at_parser *p, attune_status status) {
  if (p->build.no_memory || p->plain.no_memory) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression");
  if (p->build.full || p->plain.full)
    return AT_INVALID("the expression has too many operations; should be at most %d: split it into two expressions",
                      AT_EXPRESSION_NODES);
  return status;
}

static attune_status finish(at_parser *p, at_expression **out) {
  int outputs[AT_EXPRESSION_OUTPUTS];
  for (int i = 0; i < p->output_count; i++) {
    at_type_output(p, &p->outputs[i]);
    outputs[i] = p->outputs[i].node;
  }
  at_graph graph = {0};
  attune_status status = check_built(p, ATTUNE_OK);
  if (status == ATTUNE_OK) status = at_graph_create(&graph, &p->build, outputs, p->output_count);
  graph.signature = p->signature;
  if (status == ATTUNE_OK) status = at_canonical_order(&graph);
  if (status == ATTUNE_OK) status = at_canonical_finish(&graph, p->signature, out);
  at_graph_destroy(&graph);
  if (status == ATTUNE_OK && p->keeps_plain) status = at_plain_create(&(*out)->plain, p, *out);
  if (status == ATTUNE_OK) return status;
  at_expression_destroy(*out);
  *out = NULL;
  return status;
}

static attune_status compile(at_parser *p, at_expression **out) {
  for (int i = 0; i < p->signature->scalar_count; i++) p->build.scalar_dtypes[i] = p->signature->scalars[i].dtype;
  attune_status status = check_built(p, at_parse_program(p));
  if (status == ATTUNE_OK) status = finish(p, out);
  at_node_table_free(&p->build);
  at_node_table_free(&p->plain);
  free(p->locals);
  return status;
}

/* Numbers are read and written with a point, whatever the program's locale has. */
static attune_status compile_in_c(at_parser *p, at_expression **out) {
  const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!plain) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression");
  const locale_t before = uselocale(plain);
  const at_floating floating = at_floating_enter(); /* constants are part of the problem */
  const attune_status status = compile(p, out);
  at_floating_leave(&floating);
  uselocale(before);
  freelocale(plain);
  return status;
}

static attune_status create(at_expression **out, const char *text, size_t length, const at_signature *signature,
                            bool keeps_plain) {
  *out = NULL;
  AT_TRY(at_check_signature(signature));
  if (!text) return AT_INVALID("the expression is NULL; should be text, as in \"a + b\"");
  if (length > AT_EXPRESSION_CHARS)
    return AT_INVALID("the expression has more than %d characters, the maximum", AT_EXPRESSION_CHARS);
  at_parser p = {.source = {text, length}, .signature = signature, .keeps_plain = keeps_plain};
  return compile_in_c(&p, out);
}

attune_status at_expression_create(at_expression **out, const char *text, size_t length,
                                   const at_signature *signature) {
  return create(out, text, length, signature, false);
}

attune_status at_expression_create_checked(at_expression **out, const char *text, size_t length,
                                           const at_signature *signature) {
  return create(out, text, length, signature, true);
}

/* ---- canonical texts ---- */

typedef struct operands {
  at_operand_name tensors[AT_EXPRESSION_INPUTS], scalars[AT_EXPRESSION_SCALARS];
  int tensor_count, scalar_count;
} operands;

static attune_status bad_operand(const at_source *source, size_t at) {
  return at_fail_at(source, at, "expected a dtype and a name here, as in \"f32 i0, f64 s0: i0 * f32(s0)\"");
}

/* "f32 i0": the next tensor, or "f64 s0": the next scalar. */
static attune_status read_operand(const at_source *source, const at_token *dtype, const at_token *name,
                                  operands *into) {
  const attune_dtype found =
      dtype->kind == AT_TOKEN_NAME ? at_dtype_find(source->text + dtype->at, dtype->length) : (attune_dtype)0;
  if (!found || name->kind != AT_TOKEN_NAME) return bad_operand(source, dtype->at);
  const bool tensor = source->text[name->at] == 'i';
  int *count = tensor ? &into->tensor_count : &into->scalar_count;
  if (*count == (tensor ? AT_EXPRESSION_INPUTS : AT_EXPRESSION_SCALARS)) return bad_operand(source, name->at);
  const char scalar[] = {'s', (char)('0' + *count), '\0'}, *expected = tensor ? at_canonical_tensor(*count) : scalar;
  const size_t length = strlen(expected);
  if (name->length != length || memcmp(source->text + name->at, expected, length) != 0)
    return bad_operand(source, name->at);
  at_operand_name *operand = tensor ? &into->tensors[*count] : &into->scalars[*count];
  at_copy_text(operand->name, sizeof operand->name, expected);
  operand->dtype = (uint8_t)found;
  (*count)++;
  return ATTUNE_OK;
}

static attune_status next_token(const at_source *source, at_token *token) {
  return at_token_read(source, token->at + token->length, token);
}

/* Up to the colon; *after: where the expression begins. */
static attune_status read_operands(const at_source *source, operands *into, size_t *after) {
  at_token token = {0}, dtype;
  attune_status status = next_token(source, &token);
  while (status == ATTUNE_OK && !(token.kind == AT_TOKEN_SIGN && source->text[token.at] == ':')) {
    dtype = token;
    status = next_token(source, &token);
    if (status == ATTUNE_OK) status = read_operand(source, &dtype, &token, into);
    if (status == ATTUNE_OK) status = next_token(source, &token);
    const bool sign = token.kind == AT_TOKEN_SIGN, comma = sign && source->text[token.at] == ',';
    if (status == ATTUNE_OK && !comma && !(sign && source->text[token.at] == ':'))
      status = bad_operand(source, token.at);
    if (status == ATTUNE_OK && comma) status = next_token(source, &token);
  }
  *after = token.at + token.length;
  return status;
}

static attune_status parse_canonical(at_expression **out, const char *text, bool keeps_plain) {
  *out = NULL;
  if (!text) return AT_INVALID("the expression is NULL; should be text, as in \"f32 i0: -i0\"");
  const at_source source = {text, strnlen(text, CANONICAL_CHARS + 1)};
  if (source.length > CANONICAL_CHARS) return AT_INVALID("the expression has more than %d characters", CANONICAL_CHARS);
  operands o = {0};
  size_t after = 0;
  attune_status status = read_operands(&source, &o, &after);
  const at_signature signature = {o.tensors, o.scalars, o.tensor_count, o.scalar_count};
  if (status == ATTUNE_OK) status = at_check_signature(&signature);
  if (status != ATTUNE_OK) return status;
  if (at_user_function_expression_is(text + after))
    return at_user_function_expression_parse(out, text + after, &signature);
  at_parser p = {
      .source = source, .signature = &signature, .canonical = true, .keeps_plain = keeps_plain, .token = {.at = after}};
  return compile_in_c(&p, out);
}

attune_status at_expression_parse_canonical(at_expression **out, const char *text) {
  return parse_canonical(out, text, false);
}

attune_status at_expression_parse_canonical_checked(at_expression **out, const char *text) {
  return parse_canonical(out, text, true);
}
