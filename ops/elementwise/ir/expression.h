/* SPDX-License-Identifier: Apache-2.0
 * expression.h: an expression over elements as a typed graph: what the parser makes of a text, and what the evaluators,
 * the host's interpreter and the CUDA generator read. docs/expressions.md has the language.
 *
 * A program is a row of local names and then its outputs: "s = a + b; s, gelu(s) * c" has the inputs a, b, c and two
 * outputs. Names that are not assigned are operands; the signature says of each whether it is a tensor, with its dtype,
 * or a scalar, a number given at each call.
 *
 * A compiled expression is immutable, and any number of threads may read it. */
#ifndef AT_EXPRESSION_H
#define AT_EXPRESSION_H

#include <attune/types.h>

#include "src/base/support.h"

enum {
  AT_EXPRESSION_CHARS = 16384, /* of a text */
  AT_EXPRESSION_NODES = 1024,  /* of a graph, after folding and sharing */
  AT_EXPRESSION_DEPTH = 200,   /* of nested parentheses, calls and operators in the text */
  AT_EXPRESSION_INPUTS = 16,
  AT_EXPRESSION_SCALARS = 8,
  AT_EXPRESSION_OUTPUTS = 8,
  AT_EXPRESSION_DRAWS = 64, /* rand() and randn() together */
  AT_EXPRESSION_NAME = 64   /* of a name, with its end */
};

/* Operation of a node. The first group has no arguments. No node is AT_FN_GREATER or AT_FN_GREATER_EQUAL: a > b is
 * b < a. A complex constant has its parts in re and im, one of a half dtype does not exist: it is an f32 and its
 * cast. */
typedef enum at_node_kind {
  AT_NODE_INPUT,    /* an element of tensor `index` */
  AT_NODE_SCALAR,   /* scalar `index`, converted to the node's dtype */
  AT_NODE_CONSTANT, /* `constant` */
  AT_NODE_POSITION, /* the element's coordinate along dimension `index`, from the last one: 0 is the innermost; i64 */
  AT_NODE_ELEMENT,  /* the element's number in row-major order of the whole shape; i64 */
  AT_NODE_UNIFORM,  /* rand(), draw `index` of the element: f32 in [0, 1) */
  AT_NODE_NORMAL,   /* randn(), draw `index` of the element: f32 */
  AT_NODE_CAST,     /* argument 0 in the node's dtype */
  AT_NODE_FUNCTION, /* `function` of the arguments, all of which have the function's argument dtype */
  AT_NODE_RAW       /* output `index` of a function of the program's own, of all operands: user_function_expression.h */
} at_node_kind;

/* Every operator and function: functions.def says its name, arguments and dtypes. */
typedef enum at_function {
#define AT_FUNCTION(id, name, arity, rule, precedence, commutes) AT_FN_##id,
#include "ops/elementwise/ir/functions.def"
#undef AT_FUNCTION
  AT_FN_COUNT
} at_function;

/* Which dtypes a function takes and gives. "Common" is torch's promoted dtype of the arguments. Half and 8-bit floats
 * are computed in f32 and rounded once, where a value is cast or stored: a node is never of these dtypes unless it is
 * an input or a cast. */
typedef enum at_type_rule {
  AT_RULE_NUMBER,        /* common dtype in and out; not bool: it becomes i64 as torch.add of integers would have it */
  AT_RULE_FLOAT,         /* common dtype; integers and bool become f32 */
  AT_RULE_REAL,          /* as NUMBER, not complex */
  AT_RULE_FLOATING_REAL, /* as FLOAT, not complex */
  AT_RULE_COMPARE,       /* common dtype in, bool out; not complex */
  AT_RULE_EQUAL,         /* common dtype in, bool out */
  AT_RULE_BITS,          /* integers and bool: common dtype in and out */
  AT_RULE_SHIFT,         /* integers: common dtype in and out */
  AT_RULE_LOGIC,         /* bool in (a number counts as true when it is not 0), bool out */
  AT_RULE_SELECT,        /* bool, then two of common dtype; common dtype out */
  AT_RULE_CLASSIFY,      /* common floating dtype in, not complex, bool out: isnan */
  AT_RULE_PART           /* complex in, its real dtype out: real, imag, abs of complex */
} at_type_rule;

typedef struct at_constant {
  double re, im;   /* of a floating or complex constant */
  int64_t integer; /* of an integer or bool constant; u64 as its bits */
} at_constant;

typedef struct at_node {
  uint8_t kind;         /* at_node_kind */
  uint8_t dtype;        /* attune_dtype of the value */
  uint8_t function;     /* at_function */
  uint8_t count;        /* of arguments */
  uint16_t argument[3]; /* nodes before this one */
  uint16_t index;
  at_constant constant;
} at_node;

typedef struct at_operand_name {
  char name[AT_EXPRESSION_NAME];
  uint8_t dtype;  /* of a tensor; of a scalar f64, i64, bool or c128: what kind of number it is, which promotes as
                    Python's numbers do in torch: no more than its kind */
  uint8_t colour; /* of a tensor: orders those that the expression does not tell apart, x and bias of "x + bias" */
} at_operand_name;

typedef struct at_expression {
  int node_count, input_count, scalar_count, output_count;
  int uniform_count, normal_count; /* draws of an element */
  at_node *nodes;                  /* arguments first; each one reaches an output */
  /* Their nodes; the node's dtype is the output's, unless the caller's is another. */
  uint16_t outputs[AT_EXPRESSION_OUTPUTS];
  at_operand_name inputs[AT_EXPRESSION_INPUTS], scalars[AT_EXPRESSION_SCALARS]; /* in the order of their first use */
  int max_position; /* the largest dimension of AT_NODE_POSITION; -1: none */
  bool element;     /* has AT_NODE_ELEMENT */
  bool raw;         /* one function of the program's own, in CUDA C: nothing but the CUDA kernels can compute it */
  struct at_user_function *function; /* its source; NULL: this process does not have it now */
  /* The draws as the text has them, counted from 0: draw k is the uniform_of[k]-th rand() that is written. */
  uint8_t uniform_of[AT_EXPRESSION_DRAWS], normal_of[AT_EXPRESSION_DRAWS];
  struct at_expression *plain; /* plain.h; NULL: not asked for */
  /* Canonical: the operands with their dtypes, tensors i0, i1 ..., scalars s0 ..., then shared nodes t0 ..., then the
   * outputs: "bf16 i0, f64 s0: t0 = f32(i0); bf16(t0 * t0 + f32(s0))". Equal graphs have equal texts. */
  char *text;
} at_expression;

/* Meanings of the names in a text. A name that is neither is an error that names it; one that is not used is an error
 * too. */
typedef struct at_signature {
  const at_operand_name *tensors, *scalars;
  int tensor_count, scalar_count;
} at_signature;

void at_expression_destroy(at_expression *expression);

/* functions.def by number: its name, arity, rule. */
const char *at_function_name(at_function function);
int at_function_arity(at_function function);
at_type_rule at_function_rule(at_function function);

/* torch's promotion: of two tensors' dtypes; 0 where there is none: u64 with a signed integer, an 8-bit float with any
 * other dtype. docs/expressions.md says where it goes beyond torch's. */
attune_dtype at_promote(attune_dtype a, attune_dtype b);

#endif
