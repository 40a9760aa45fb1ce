/* SPDX-License-Identifier: Apache-2.0
 * cuda_source.h: how the parts of a kernel's text are put together, for the files that write them. */
#ifndef AT_CUDA_SOURCE_H
#define AT_CUDA_SOURCE_H

#include "ops/elementwise/cuda/cuda_kernel.h"
#include "src/base/string_builder.h"

/* A kernel's text. */
typedef at_string_builder at_writer;
#define at_write at_string_builder_add

/* The kernel's argument, described once for both sides: as members of a struct in the text, if there is one, and as
 * words of a launch, if there is one. */
typedef struct at_arguments {
  at_writer *source;
  at_cuda_launch *launch;
  int count;
} at_arguments;

/* `count` words under one name, an array if `count` is not 1; the index of the first. `type` has 8 bytes. */
int at_argument(at_arguments *f, const char *type, const char *name, const uint64_t *values, int count);

/* Properties of operand k of the layout that the forms use. */
typedef struct at_cuda_operand {
  char letter;        /* o output, i input, p number of the element */
  int number;         /* among those of its letter */
  attune_dtype dtype; /* i64 for a number */
  size_t bytes;
} at_cuda_operand;
at_cuda_operand at_cuda_operand_of(const at_cuda_problem *p, int k);
int at_cuda_tensor_count(const at_cuda_problem *p); /* outputs and inputs: operands 0 to before this */

/* "at_bf16" and "float": the element type in memory and its values. */
const char *at_cuda_tag(attune_dtype dtype);
const char *at_cuda_value(attune_dtype dtype);

/* Elements of a vector: as many as the widest dtype of those that are accessed so (all tensors but those that lie
 * still) has in `bytes`; 0 when that is less than one. */
int at_cuda_width(const at_cuda_problem *p, int bytes);
bool at_cuda_moves(const at_cuda_problem *p, int k); /* some stride is not 0 */
/* Tensor k, contiguous along a dimension, may be accessed in vectors of `width` elements along it, as far as its first
 * address and its other strides go. */
bool at_cuda_aligned(const at_cuda_problem *p, int k, int dimension, int width);

/* So few elements that a launch's time is that of one thread: as many threads as possible, each with little to do. */
static inline bool at_cuda_is_small(const at_cuda_problem *p) {
  return p->layout.count <= 1 << 16;
}

/* n / d by multiplication, as device.cuh has it: for n < 2^31, and for n < 2^63 (two words). */
uint64_t at_cuda_divider(uint64_t d);
void at_cuda_long_divider(uint64_t out[2], uint64_t d);

/* generate.c: the structs of one element's values and the function between them. */
attune_status at_generate_element(at_writer *s, const at_cuda_problem *p);
/* The slots of scalars, in the order of their nodes; false: more than AT_CUDA_SLOTS. */
bool at_generate_slots(at_cuda_launch *out, const at_expression *e);

/* generate_draws.c: what the expression draws for an element, members r of at_in. For N elements that follow each other
 * as arrays r, from the text of the first one's number (`first`: of the first of all, where N is a multiple of 4), and
 * from these into x; or for the one element whose number x has. */
void at_generate_draw_members(at_writer *s, const at_expression *e);
void at_generate_draw_row(at_writer *s, const at_expression *e, const char *element, const char *first);
void at_generate_draw_take(at_writer *s, const at_expression *e);
void at_generate_draw_one(at_writer *s, const at_expression *e, const char *x);
/* rand() < bound without the number; false: `node` is nothing of the kind. */
bool at_generate_draw_below(at_writer *s, const at_expression *e, const at_node *node);

/* generate_user_function.c: the source of a function of the program's own, and the function that calls it for one
 * element. */
void at_generate_raw_text(at_writer *s, const at_cuda_problem *p);
void at_generate_raw_element(at_writer *s, const at_cuda_problem *p);

/* A form. */
typedef struct at_cuda_form_type {
  const char *skeleton; /* the kernel, which calls what `functions` writes */
  bool (*supports)(const at_cuda_problem *p, const at_cuda_choice *c);
  int (*candidates)(const at_cuda_problem *p, at_cuda_choice *out, int max);
  void (*fields)(at_arguments *f, const at_cuda_problem *p, const at_cuda_choice *c); /* its part of the argument */
  void (*functions)(at_writer *s, const at_cuda_problem *p, const at_cuda_choice *c);
  /* The grid and block of the kernel; 0 blocks: more than a grid has. */
  uint64_t (*blocks)(const at_cuda_problem *p, const at_cuda_choice *c);
  int capability; /* of the devices that have it */
} at_cuda_form_type;

extern const at_cuda_form_type at_form_vector, at_form_rows, at_form_transpose, at_form_strided, at_form_bulk;
const at_cuda_form_type *at_cuda_form_of(int form);

#endif
