/* SPDX-License-Identifier: Apache-2.0
 * interpret_program.h: a program of the interpreter from inside: interpret_compile.c makes it, interpret_run.c runs
 * it. */
#ifndef AT_INTERPRET_PROGRAM_H
#define AT_INTERPRET_PROGRAM_H

#include "ops/elementwise/host/interpret.h"
#include "ops/elementwise/host/interpret_kernels.h"

enum {
  AT_JSON = 2 * AT_EXPRESSION_NODES, /* nodes, and the conversions put between them */
  AT_REGISTERS =
      AT_EXPRESSION_NODES + 16 /* values that live at once, those of one instruction's conversions with them */
};

/* Operation of an instruction. */
typedef enum at_step {
  AT_STEP_KERNEL, /* out = kernel(arguments) */
  AT_STEP_LOAD,   /* input `index` */
  AT_STEP_PLACE,  /* the element's number or a coordinate: operand `index` of the layout */
  AT_STEP_DRAW    /* draw `index`, of normal numbers or uniform ones */
} at_step;

typedef struct at_instruction {
  at_kernel kernel;
  uint16_t step, out, argument[3]; /* values */
  uint16_t index;
  bool normal;
} at_instruction;

/* A value that is the same for all elements: it has a register of its own, filled before the first block. */
typedef struct at_fixed {
  uint16_t value, scalar; /* scalar: its number + 1; 0: a constant */
  uint8_t dtype, kind;
  at_constant constant;
} at_fixed;

struct at_interpreter {
  const at_interpret_isa *isa;
  int instruction_count, fixed_count, value_count, register_count, element_bytes;
  int input_count, output_count, scalar_count, uniform_count;
  int block;     /* elements of a block, where a call does not say */
  int positions; /* operands of the layout for coordinates 0 to positions - 1 */
  bool number;   /* and one before them for the element's number */
  uint8_t input_dtypes[AT_EXPRESSION_INPUTS], output_dtypes[AT_EXPRESSION_OUTPUTS];
  uint16_t outputs[AT_EXPRESSION_OUTPUTS]; /* values */
  bool made[AT_EXPRESSION_OUTPUTS];        /* a kernel writes it, and no other output is the same value */
  uint8_t *dtypes;                         /* of values */
  uint16_t *registers;                     /* of values */
  at_instruction *instructions;
  at_fixed *fixed;
  /* interpret_small.c's: for runs of at most small_most elements; 0: none */
  int small_most, small_count, small_registers;
  bool direct; /* it is one loop from inputs to the output */
  struct at_small_step *small_steps;
  uint8_t *small_fixed; /* the place of each fixed value */
};

/* Operands of the layout: outputs, inputs, number, coordinates. */
static inline int at_operand_of_input(const at_interpreter *p, int i) {
  return p->output_count + i;
}
static inline int at_operand_of_number(const at_interpreter *p) {
  return p->output_count + p->input_count;
}
static inline int at_operand_of_position(const at_interpreter *p, int i) {
  return p->output_count + p->input_count + p->number + i;
}

/* interpret_run.c: the elements of a block, when so many are asked for; 0: what fits the L1 cache. */
int at_interpreter_block(const at_interpreter *p, int asked);

/* interpret_small.c: makes what runs of few elements need, of a program that is otherwise complete, and frees it.
 * Errors: OUT_OF_MEMORY. */
attune_status at_small_make(at_interpreter *p);
void at_small_free(at_interpreter *p);

/* A direct program on n elements of each tensor: the output, then inputs. */
void at_direct_run(const at_interpreter *p, char *const *tensors, size_t n);

#endif
