/* SPDX-License-Identifier: Apache-2.0
 * parser.c: the current token, how deep the text is nested, the first error. */
#include <string.h>

#include "ops/elementwise/language/parser.h"

at_value at_parse_fail(at_parser *p, attune_status status) {
  if (p->status == ATTUNE_OK) p->status = status;
  p->token = (at_token){.kind = AT_TOKEN_END, .at = p->token.at};
  return AT_NONE;
}

void at_parse_next(at_parser *p) {
  if (p->status != ATTUNE_OK) return;
  const attune_status status = at_token_read(&p->source, p->token.at + p->token.length, &p->token);
  if (status != ATTUNE_OK) at_parse_fail(p, status);
}

bool at_parse_is(const at_parser *p, const char *sign) {
  return p->token.kind == AT_TOKEN_SIGN && p->token.length == strlen(sign) &&
         memcmp(p->source.text + p->token.at, sign, p->token.length) == 0;
}

at_value at_parse_constant(at_parser *p, attune_dtype dtype, at_constant constant, bool weak) {
  return (at_value){.node = at_build_constant(&p->build, dtype, constant),
                    .plain = p->keeps_plain ? at_build_constant(&p->plain, dtype, constant) : AT_NO_NODE,
                    .dtype = dtype,
                    .weak = weak,
                    .written = true};
}

at_value at_parse_leaf(at_parser *p, at_node_kind kind, attune_dtype dtype, int index, bool weak) {
  return (at_value){.node = at_build_leaf(&p->build, kind, dtype, index),
                    .plain = p->keeps_plain ? at_build_leaf(&p->plain, kind, dtype, index) : AT_NO_NODE,
                    .dtype = dtype,
                    .weak = weak};
}

bool at_parse_enter(at_parser *p, size_t at) {
  if (p->status != ATTUNE_OK) return false;
  if (p->depth < AT_EXPRESSION_DEPTH) return p->depth++, true;
  AT_PARSE_FAIL(p, at, "the expression is nested more than %d deep here; name a part of it, as in s = a + b;",
                AT_EXPRESSION_DEPTH);
  return false;
}
