/* SPDX-License-Identifier: Apache-2.0
 * cuda_kernel.h: an expression as a CUDA kernel: its text for the compiler, made from the graph alone, and how it is
 * launched. A problem has a kernel in several forms, each with tunables; a choice is one of them. Sizes, strides,
 * addresses, scalars and the generator's place are arguments of the launch: one text serves all sizes of a layout
 * class.
 *
 * Nothing of an expression's text gets into the source. Names are a letter and a number, constants are bit patterns. A
 * function of the program's own (user_function.h) stands in it as it is: generate_user_function.c. */
#ifndef AT_CUDA_KERNEL_H
#define AT_CUDA_KERNEL_H

#include "ops/elementwise/ir/expression.h"
#include "ops/elementwise/layout/layout.h"
#include "src/cuda/jit/jit.h"
#include "tuning/op/tunables.h"

enum {
  AT_CUDA_TENSORS = AT_EXPRESSION_OUTPUTS + AT_EXPRESSION_INPUTS,
  AT_CUDA_SLOTS = 32,  /* scalars of a kernel: each in each dtype that it is used in */
  AT_CUDA_WORDS = 500, /* of the arguments: 8 bytes each, below the 4 KiB that every launch takes */
  AT_CUDA_INDICES = 1 + AT_DIMS,
  AT_CUDA_DEPENDENT = 90 /* the capability from which kernels may be dependent */
};

/* What a kernel is made for. Operands lie in the layout as layout.h has them: outputs, inputs, and then the numbers of
 * the element that the expression needs (at_cuda_indices). */
typedef struct at_cuda_problem {
  const at_expression *expression;
  uint8_t outputs[AT_EXPRESSION_OUTPUTS]; /* dtypes as they are stored */
  bool reduced;                           /* the device's fast functions are allowed */
  bool in_place;                          /* an output's memory is an input's */
  bool as_written; /* of a function of the program's own: in its words, for the compiler's messages about it */
  at_layout layout;
  /* Of the first element walked of each tensor: its address is a multiple of this, a power of two up to 256. With a
   * `head`, that many elements further on, where the layout has one dimension and all tensors are contiguous. */
  uint16_t alignment[AT_CUDA_TENSORS];
  int32_t head;
} at_cuda_problem;

typedef enum at_cuda_form {
  AT_FORM_VECTOR,    /* all operands contiguous, or one element */
  AT_FORM_ROWS,      /* contiguous along the innermost dimension, or the same element along it */
  AT_FORM_TRANSPOSE, /* some inputs contiguous along another dimension: tiles in shared memory */
  AT_FORM_STRIDED,   /* anything */
  AT_FORM_BULK,      /* as VECTOR, through shared memory by the copy engine; capability 9.0 */
  AT_FORM_COUNT
} at_cuda_form;

/* A configuration, read. Fields that a form does not use are 0. */
typedef struct at_cuda_choice {
  uint8_t form;
  uint8_t loads;       /* vectors of a thread in flight; rows of a thread in AT_FORM_ROWS; stages in AT_FORM_BULK */
  uint8_t bytes;       /* of a vector of the widest dtype: 1 to 64 */
  uint8_t persistent;  /* the grid stays and steps over the work */
  uint8_t load, store; /* hints, AT_LOAD_ and AT_STORE_ of device.cuh */
  uint8_t tile;        /* side of a tile of AT_FORM_TRANSPOSE */
  uint8_t wide;        /* AT_FORM_STRIDED: numbers of 64 bits */
  uint8_t dependent;   /* started before the kernel in front is done: 1 or 2, at_begin of device.cuh */
  uint16_t block;      /* threads of a block */
} at_cuda_choice;

extern const at_tunables at_cuda_tunables; /* of an at_cuda_choice */

/* "form=vector,bytes=16,loads=4,block=256,store=stream,persistent=1" and back; docs/configurations.md has the keys.
 * False: the text is no choice; it did not fit. */
bool at_cuda_choice_parse(at_cuda_choice *out, const at_configuration *configuration);
bool at_cuda_choice_format(at_configuration *out, const at_cuda_choice *choice);

/* Whether the problem can be computed so. Strides, sizes and alignments decide; `capability` is the device's, 90 for
 * 9.0. */
bool at_cuda_supports(const at_cuda_problem *problem, const at_cuda_choice *choice, int capability);

/* Up to `max` choices for the problem, best guess first; the count, at least 1: the strided form takes everything. */
int at_cuda_candidates(const at_cuda_problem *problem, int capability, at_cuda_choice *out, int max);

/* The numbers of the element that the expression needs, in the order of the layout's operands: -1 for its number in
 * row-major order, then all dimensions up to the last one asked for, counted from the innermost one. Draws of random
 * numbers need the first. */
int at_cuda_indices(const at_expression *expression, int out[AT_CUDA_INDICES]);

/* Finds alignments and head from where the first elements lie. */
void at_cuda_align(at_cuda_problem *problem, const void *const *tensors);

/* The kernel's text into *out, to be freed by the caller: equal problems and choices give equal texts. Its entry is
 * AT_CUDA_ENTRY. Errors: UNSUPPORTED (at_cuda_supports says no; more than 32 scalars; a function of the program's own
 * that nobody has now), OUT_OF_MEMORY. */
#define AT_CUDA_ENTRY "at_elementwise"
at_kernel_source at_cuda_source(const at_cuda_problem *problem, const char *text); /* what compiles such a text */
attune_status at_cuda_generate(char **out, const at_cuda_problem *problem, const at_cuda_choice *choice);

/* A launch of the kernel of the same problem and choice: words are its one argument. */
typedef struct at_cuda_launch {
  at_jit_config config;                          /* no blocks: there is nothing to do */
  int word_count, tensor_at, slot_at, random_at; /* the last two -1: there are none */
  int slot_count;
  uint8_t slot_scalar[AT_CUDA_SLOTS], slot_dtype[AT_CUDA_SLOTS];
  uint64_t words[AT_CUDA_WORDS];
} at_cuda_launch;

/* What does not change between calls. `processors` of the device, and `blocks` of the kernel that one holds, which
 * count where the grid stays; both at least 1. */
attune_status at_cuda_plan(at_cuda_launch *out, const at_cuda_problem *problem, const at_cuda_choice *choice,
                           int processors, int blocks);

/* The operands of a call: where the first element walked of each tensor lies, and the scalars' values in the order of
 * the expression: each a number of the kind that it was declared as. */
void at_cuda_bind_tensors(at_cuda_launch *launch, const at_cuda_problem *problem, void *const *tensors);
void at_cuda_bind_scalars(at_cuda_launch *launch, const at_expression *expression, const at_constant *scalars);

/* The stretch of the generator: what at_generator_take gave for the problem's words. `state` is NULL outside of
 * graphs. */
void at_cuda_bind_random(at_cuda_launch *launch, uint64_t seed, uint64_t offset, const uint64_t *state);

#endif
