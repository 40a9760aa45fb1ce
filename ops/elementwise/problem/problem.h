/* SPDX-License-Identifier: Apache-2.0
 * problem.h: an elementwise problem as the tuner sees it: plain bytes that hold the expression itself, the dtypes, and
 * how the operands lie. Its length depends on these.
 *
 * Sizes and strides are those of the operands' common layout (layout.h), innermost dimension first. A folded problem
 * has those of its class instead (shape_buckets.c): the least ones for which the same kernels do and which take about
 * as long an element. So one winner serves all problems of a class, and a call brings its own sizes and strides with
 * it. */
#ifndef AT_ELEMENTWISE_PROBLEM_H
#define AT_ELEMENTWISE_PROBLEM_H

#include <attune/elementwise.h>

#include <stdatomic.h>

#include "ops/elementwise/ir/expression.h"
#include "ops/elementwise/layout/layout.h"
#include "ops/elementwise/layout/random_draws.h"
#include "ops/ops.h"
#include "tuning/op/contract.h"
#include "tuning/op/op.h"

/* Plans of one tuner that are found without a lock: programs make new expressions as they go. */
#define AT_ELEMENTWISE_PLANS 4096

enum { AT_TENSORS = AT_EXPRESSION_OUTPUTS + AT_EXPRESSION_INPUTS };

/* Requirements on an expression's inputs that make random data meaningful: see at_elementwise_buffers. */
typedef enum at_domain { AT_DOMAIN_ALL, AT_DOMAIN_POSITIVE, AT_DOMAIN_UNIT, AT_DOMAIN_ABOVE_ONE } at_domain;

/* Operands are outputs, inputs, then the numbers of the element that the expression needs: its number in row-major
 * order (`number`), and its coordinates 0 to positions - 1. */
typedef struct at_elementwise {
  uint16_t bytes;   /* of all, a multiple of 8 */
  uint16_t text_at; /* where the expression's canonical text begins; it ends with a zero byte */
  uint16_t nodes;   /* of the expression */
  uint8_t accuracy; /* attune_accuracy */
  uint8_t dims;     /* 1 to AT_DIMS */
  uint8_t output_count, input_count, scalar_count;
  uint8_t number, positions;
  uint8_t alignment; /* the class of all tensors that move: a power of two, 1 to AT_ALIGNMENT bytes */
  uint8_t uniforms, normals;
  uint8_t domain; /* at_domain */
  uint8_t raw;    /* the expression is a function of the program's own */
  uint8_t unused[6];
  uint8_t dtypes[AT_TENSORS];              /* of outputs as they are stored, then of inputs */
  uint8_t in_place[AT_EXPRESSION_OUTPUTS]; /* the input whose memory the output is, counted from 1; 0: none */
  uint8_t kinds[AT_EXPRESSION_SCALARS];
  /* Sizes of the dimensions; the strides of each operand; the offset of each number of the element. Then the text. */
  int64_t numbers[];
} at_elementwise;
_Static_assert(sizeof(at_elementwise) == 64 && AT_PROBLEM_BYTES <= UINT16_MAX, "no padding: bytes are compared");

static inline const at_elementwise *at_elementwise_of(const void *problem) {
  return (const at_elementwise *)problem;
}
static inline int at_elementwise_tensors(const at_elementwise *p) {
  return p->output_count + p->input_count;
}
static inline int at_elementwise_indices(const at_elementwise *p) {
  return p->number + p->positions;
}
static inline int at_elementwise_operand_count(const at_elementwise *p) {
  return at_elementwise_tensors(p) + at_elementwise_indices(p);
}
static inline int at_elementwise_draws(const at_elementwise *p) {
  return p->uniforms + p->normals;
}
static inline const char *at_elementwise_text(const at_elementwise *p) {
  return (const char *)p + p->text_at;
}
static inline const int64_t *at_elementwise_strides(const at_elementwise *p, int operand) {
  return p->numbers + p->dims * (1 + operand);
}
static inline int64_t at_elementwise_offset(const at_elementwise *p, int index) {
  return p->numbers[p->dims * (1 + at_elementwise_operand_count(p)) + index];
}
static inline int64_t at_elementwise_count(const at_elementwise *p) {
  int64_t count = 1;
  for (int d = 0; d < p->dims; d++) count *= p->numbers[d];
  return count;
}

/* The parts of a problem other than its expression and layout. */
typedef struct at_elementwise_use {
  uint8_t accuracy, alignment;
  uint8_t outputs[AT_EXPRESSION_OUTPUTS]; /* dtypes as they are stored */
  uint8_t in_place[AT_EXPRESSION_OUTPUTS];
} at_elementwise_use;

/* The problem of an expression whose operands lie so, not folded, into out[AT_PROBLEM_BYTES]. Errors: INVALID_ARGUMENT
 * (expression and layout do not fit into so many bytes: the message says by how much). */
attune_status at_elementwise_make(at_elementwise *out, const at_expression *expression, const at_layout *layout,
                                  const at_elementwise_use *use);

/* The layout that an expression's views have: outputs, inputs, and the numbers of the element that it needs. Errors: as
 * at_layout_make. */
attune_status at_elementwise_layout(at_layout *out, const at_expression *expression, const at_view *outputs,
                                    const at_view *inputs);

/* Sets the offsets of the numbers of the element: they begin where their lowest one is 0. */
void at_elementwise_set_offsets(at_elementwise *p);

/* The problem's own layout. */
void at_elementwise_layout_of(at_layout *out, const at_elementwise *p);

/* Its expression; at_expression_destroy releases it. Checked: with `plain` (plain.h), but not of a function of the
 * program's own. */
attune_status at_elementwise_expression(at_expression **out, const at_elementwise *p);
attune_status at_elementwise_expression_checked(at_expression **out, const at_elementwise *p);

/* What an implementation keeps of how a call's operands lie: numbers of the launch that depend on nothing else. Whoever
 * makes calls with one layout again and again gives room for it, all zeros at first. It is written once; any number of
 * threads may use it. */
typedef struct at_elementwise_kept {
  _Atomic uint64_t owner; /* the thread that has written it; 0: none yet */
  _Atomic bool taken;     /* a thread writes it, or has */
  int64_t count;          /* elements */
  uint64_t room[576];
} at_elementwise_kept;

/* Arguments of a launch. Tensors: where the first element walked of each lies. */
typedef struct at_elementwise_operands {
  void *tensors[AT_TENSORS];
  at_constant scalars[AT_EXPRESSION_SCALARS];
  const at_layout *layout; /* how the operands of this call lie, of the problem's class; NULL: as the problem says */
  attune_generator *generator; /* NULL: `draws` are the stretch to be drawn */
  at_random_draws draws;
  int32_t head;              /* elements to walk one by one before the tensors are aligned to their class; CUDA */
  at_elementwise_kept *kept; /* what an implementation keeps of the layout between calls; NULL: nothing */
} at_elementwise_operands;

/* Distribution of the random numbers with which a problem is measured and verified. */
#define AT_ELEMENTWISE_SEED UINT64_C(20240229)

/* Slots of at_elementwise_op. */
size_t at_elementwise_size(const void *problem);
void at_elementwise_fold(void *problem, const attune_device *device);
attune_status at_elementwise_format(const void *problem, char *out, size_t size);
attune_status at_elementwise_parse(const char *text, void *problem);
attune_status at_elementwise_family(const void *problem, char *out, size_t size);
attune_status at_elementwise_buffers(const void *problem, at_buffer out[AT_MAX_BUFFERS], int *count);
int at_elementwise_scalars(const void *problem, at_scalar out[AT_MAX_SCALARS]);
void at_elementwise_bind(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars,
                         void *operands);

extern const at_op at_elementwise_op;

#endif
