/* SPDX-License-Identifier: Apache-2.0
 * interpret.h: an expression computed on the host without a compiler: block after block of elements, one loop a node,
 * each loop a vector loop for the CPU that it runs on.
 *
 * A program is made once from an expression and the dtypes of its outputs: a row of instructions, whose values live in
 * registers, blocks of elements that are used again after a value's last use. Then any thread may run it. */
#ifndef AT_INTERPRET_H
#define AT_INTERPRET_H

#include "ops/elementwise/host/interpret_kernels.h"
#include "ops/elementwise/ir/expression.h"
#include "ops/elementwise/layout/layout.h"
#include "ops/elementwise/layout/random_draws.h"

typedef struct at_interpreter at_interpreter;

enum { AT_BLOCK_MOST = 1024, AT_BLOCK_LEAST = 16 };

/* A program for `isa` (NULL: the best of this CPU) into *out. Output i is written as output_dtypes[i], or as its node's
 * dtype where output_dtypes is NULL. The expression may go afterwards. Errors: UNSUPPORTED (a function that its dtype
 * lacks), INVALID_ARGUMENT (a graph that breaks expression.h's rules), OUT_OF_MEMORY. */
attune_status at_interpreter_create(at_interpreter **out, const at_expression *expression,
                                    const attune_dtype *output_dtypes, const at_interpret_isa *isa);
void at_interpreter_destroy(at_interpreter *program);

/* How a program walks its operands: the layout of the outputs, the inputs, and of what it needs of the element's place.
 * Depends on shapes and strides only. Does not look for overlaps (at_operands_check does). Errors: as at_layout_make,
 * and INVALID_ARGUMENT for a view of another dtype than the program's. */
attune_status at_interpreter_layout(at_layout *out, const at_interpreter *program, const at_view *outputs,
                                    const at_view *inputs);

/* One run. Pointers are the views' data. */
typedef struct at_interpreter_call {
  void *outputs[AT_EXPRESSION_OUTPUTS];
  const void *inputs[AT_EXPRESSION_INPUTS];
  const at_constant *scalars;   /* in the order of the expression */
  const at_random_draws *draws; /* needed where the expression draws */
  int threads;                  /* at most this many; 0: one */
  int block;                    /* elements of a block, AT_BLOCK_LEAST to AT_BLOCK_MOST; 0: what fits the L1 cache */
  bool stream;                  /* write past the caches: pays where outputs are larger than those */
} at_interpreter_call;

/* Computes every element and returns when all is written. Allocates nothing. Any thread; a program may run many times
 * at once. */
void at_interpreter_run(const at_interpreter *program, const at_layout *layout, const at_interpreter_call *call);

/* The same for n elements, 1 to at_interpreter_small_most, that lie one after the other in every tensor: outputs, then
 * inputs. An output may be the memory of an input where there is one output alone. On the calling thread; no draws. */
void at_interpreter_run_small(const at_interpreter *program, void *const *tensors, const at_constant *scalars,
                              int64_t n);
int64_t at_interpreter_small_most(const at_interpreter *program); /* 0: the program cannot be run so */

/* Such a run of a program that is one loop over one input x or two, x and y, is f(output, x, y, x, n); with one input y
 * is x. NULL: it is no such program. */
typedef void (*at_straight)(void *out, const void *x, const void *y, const void *z, size_t n);
at_straight at_interpreter_straight(const at_interpreter *program);

/* The instruction sets that this CPU runs, best first, ended by NULL; and a set's name: "avx512", "avx2",
 * "portable". */
void at_interpret_isas(const at_interpret_isa *out[4]);
const char *at_interpret_isa_name(const at_interpret_isa *isa);

#endif
