/* SPDX-License-Identifier: Apache-2.0
 * parser.h: the state of parsing, and the pieces of the parser. After an error every piece returns at once: `status`
 * says which, and the current token is the end. */
#ifndef AT_ELEMENTWISE_PARSER_H
#define AT_ELEMENTWISE_PARSER_H

#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/ir/node_table.h"
#include "ops/elementwise/ir/promote.h"
#include "ops/elementwise/language/source.h"

/* s of "s = a + b;" */
typedef struct at_local {
  size_t at, length; /* its name in the text */
  at_value value;
  bool used;
} at_local;

typedef struct at_parser {
  at_source source;
  const at_signature *signature;
  bool canonical; /* every number is of the dtype that it is written with, and none is weak */
  at_token token; /* the current one */
  int depth;
  bool compared; /* the value just parsed is a comparison without parentheses */
  at_node_table build;
  bool keeps_plain; /* the graph of the text as it is written is made, too; else `plain` of values is AT_NO_NODE */
  at_node_table plain;
  at_local *locals;
  int local_count;
  size_t local_room;
  bool tensor_used[AT_EXPRESSION_INPUTS], scalar_used[AT_EXPRESSION_SCALARS];
  int uniform_count, normal_count;
  at_value outputs[AT_EXPRESSION_OUTPUTS];
  int output_count;
  attune_status status;
} at_parser;

#define AT_NONE ((at_value){.node = AT_NO_NODE, .plain = AT_NO_NODE, .dtype = ATTUNE_F32})

/* parser.c. Remembers the first error; the value is AT_NONE. */
at_value at_parse_fail(at_parser *p, attune_status status);
#define AT_PARSE_FAIL(p, at, ...) at_parse_fail((p), at_fail_at(&(p)->source, (at), __VA_ARGS__))

void at_parse_next(at_parser *p);
bool at_parse_is(const at_parser *p, const char *sign);
bool at_parse_enter(at_parser *p, size_t at); /* one deeper; false: too deep */

/* A value that is a constant, and one that is a leaf of another kind: in both graphs. */
at_value at_parse_constant(at_parser *p, attune_dtype dtype, at_constant constant, bool weak);
at_value at_parse_leaf(at_parser *p, at_node_kind kind, attune_dtype dtype, int index, bool weak);

/* parse.c: `program` of docs/expressions.md. */
attune_status at_parse_program(at_parser *p);

/* parse_names.c; the current token is the one after the name. */
bool at_name_value(at_parser *p, const at_token *name,
                   at_value *out);                             /* false: no operand or named value, or an error */
at_value at_name_constant(at_parser *p, const at_token *name); /* a constant, else an error */
bool at_name_assign(at_parser *p, const at_token *name, at_value value); /* "name = value;" */
attune_status at_name_check_use(at_parser *p);                           /* everything named is used */

/* parse_call.c: a call while its arguments are read. */
typedef struct at_call {
  at_token name;
  const char *text; /* the name, `shown` characters of it in messages */
  int shown;
  int function;       /* what is called: this, or ... */
  at_special special; /* ... this, else `dtype` */
  attune_dtype dtype;
  size_t first; /* the place of the first argument */
  at_value values[3];
  int most, count; /* arguments: how many it takes, and has */
} at_call;

bool at_call_begin(at_parser *p, at_call *call, const at_token *name); /* the current token is "("; false: an error */
void at_call_add(at_parser *p, at_call *call, at_value value);
at_value at_call_end(at_parser *p, at_call *call); /* the current token is ")" */

/* type_inference.c: the function of the values with its casts; `at`: the place for messages. */
at_value at_type_function(at_parser *p, size_t at, at_function function, const at_value *values);
at_value at_type_cast(at_parser *p, size_t at, attune_dtype dtype, at_value value);
at_value at_type_plus(at_parser *p, at_value value); /* +x */

/* In the dtype that is stored for an output. */
void at_type_output(at_parser *p, at_value *value);

attune_status at_check_signature(const at_signature *signature);

#endif
