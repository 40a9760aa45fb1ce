/* SPDX-License-Identifier: Apache-2.0
 * op.h: what the tuner must know of an operation: its problems as plain bytes and as text, its operands, its reference.
 * ops/ fills one at_op for each operation; what only tests ask of it is tests/ops/op_test.h's. Helpers: problem_text.h
 * and columns.h parse texts and columns, contract.h has alignment and workspace. Every byte of a problem is set, also
 * those that nothing uses. tests/support/toy/toy_op.c is a small operation, wide_op.c one at all bounds. */
#ifndef AT_OP_H
#define AT_OP_H

#include <attune/plan.h>
#include <attune/tuner.h>

#include "src/base/support.h"
#include "tuning/op/random_data.h"

/* The most that any operation may have; room to spare. What one really has it says itself: problem_bytes,
 * operands_bytes, the numbers of its buffers and scalars. */
#define AT_PROBLEM_BYTES 4096
#define AT_PROBLEM_CHARS ATTUNE_PROBLEM_CHARS /* of its text, with the end */
#define AT_FAMILY_CHARS ATTUNE_PROBLEM_CHARS
#define AT_OPERANDS_BYTES 640
#define AT_MAX_BUFFERS 24
#define AT_MAX_SCALARS 8
#define AT_PLAN_SPANS 4

struct at_implementation;
struct attune_plan;

/* A row of calls: number i takes the operands of copy i % copies, which at_bare_operands finds. */
typedef struct at_bare_calls {
  const char *operands; /* of copy 0 */
  size_t stride;        /* bytes from one copy's to the next one's */
  int copies;
  int from, to;
} at_bare_calls;

/* The operands of a copy. */
static inline const void *at_bare_operands(const at_bare_calls *calls, int copy) {
  return calls->operands + (size_t)copy * calls->stride;
}

/* One memory area that a problem's operands point to. */
typedef struct at_buffer {
  size_t bytes;       /* from the first element's start to the last one's end */
  size_t alignment;   /* of its start: a multiple of this power of two */
  attune_dtype dtype; /* what it is filled with */
  bool input;
  bool output;
  at_range range; /* of the numbers that it is filled with: a logarithm wants positive ones; {0, 0}: the usual ones */
  bool addresses; /* it is filled with pointers into another buffer, `address_step` bytes apart */
  bool on_host;   /* launches get these in host memory, whatever the device */
  int address_of;
  size_t address_step;
} at_buffer;

/* A number that a call takes in addition to its buffers, such as alpha. Measuring uses the usual one. Verification
 * draws another one too, so that a plan which ignores it is found: low < high, and both are sensible. */
typedef struct at_scalar {
  const char *name;
  double usual;
  at_range range;
} at_scalar;

/* Outputs of a launch, in host memory. Each byte of an output that is no input was `poison` before. */
typedef struct at_outputs {
  const void *bytes[AT_MAX_BUFFERS]; /* by buffer; NULL: it is no output */
  unsigned char poison[AT_MAX_BUFFERS];
} at_outputs;

/* One field of a workload row. */
typedef struct at_column {
  const char *name;
  const char *value;
  int column; /* 1-based, for messages */
} at_column;

/* An operation is a table for each thing that the tuner asks of it. What is not called optional must be there:
 * at_op_check. */

/* Its problems: their bytes, text and cost. */
typedef struct at_problem_type {
  /* The canonical text; equal problems have equal texts and texts parse back to equal bytes. */
  attune_status (*format)(const void *problem, char *out, size_t size);
  attune_status (*parse)(const char *text, void *problem);
  /* Optional: the text as a caller wrote the problem, if in another form: `as` is what the op gave to
   * dispatch, 0 for the form of format. parse reads it too. */
  attune_status (*show)(const void *problem, int as, char *out, size_t size);
  /* The text without sizes: problems of one family may be neighbours. */
  attune_status (*family)(const void *problem, char *out, size_t size);
  /* How far two problems of one family are apart: sum of |log2| of size ratios. */
  double (*distance)(const void *problem, const void *other);
  /* The columns of a workload row for it: all that from_fields knows, NULL behind the last. */
  const char *const *columns;
  /* A workload row to a problem's text, and to what people read: the problem as the row has it, before it was
   * normalised. The message names the column at fault. */
  attune_status (*from_fields)(const at_column *fields, int count, char *out, size_t size, char *label,
                               size_t label_size);
  /* Arithmetic and memory traffic of one call. */
  double (*flops)(const void *problem);
  double (*bytes)(const void *problem);
  /* Folds what the device does not tell apart, such as alignment beyond its best class (at_device_alignment), so that
   * equal work has equal bytes. A problem is folded before it becomes a key, is measured or is stored. Where there is
   * nothing to fold it does nothing. */
  void (*fold)(void *problem, const attune_device *device);
  /* True when the winner must give the same bits in each run. */
  bool (*deterministic)(const void *problem);
  /* Optional: the problem draws random numbers: captures of these calls want a generator that is registered with the
   * graph, which at_prepared_calls do not have. NULL: none does. */
  bool (*draws)(const void *problem);
} at_problem_type;

/* Operands of a call. */
typedef struct at_operand_type {
  /* The buffers of a call, its scalars (optional; NULL: none) and their number, and the operands made of both. */
  attune_status (*buffers)(const void *problem, at_buffer out[AT_MAX_BUFFERS], int *count);
  int (*scalars)(const void *problem, at_scalar out[AT_MAX_SCALARS]);
  void (*bind)(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars, void *operands);
  /* Optional: numbers of the problem by which a call sees at once that its operands do not overlap; a plan keeps
   * them. */
  void (*spans)(const void *problem, uintptr_t out[AT_PLAN_SPANS]);
} at_operand_type;

/* The trusted result for the inputs at `pointers` (device memory, in stream order; the outputs are not touched unless
 * they are inputs too, and then read before). compare says of every output at once, for a call with `scalars`:
 * *max_error is the largest error as a fraction of what the contract allows (> 1 fails; infinity for a NaN, or for a
 * byte between the elements that is not as it was). */
typedef struct at_reference_type {
  attune_status (*create)(void **out, const void *problem, attune_device *device, attune_stream *stream,
                          void *const pointers[AT_MAX_BUFFERS]);
  attune_status (*compare)(void *reference, const double *scalars, const at_outputs *outputs, double *max_error);
  void (*destroy)(void *reference);
} at_reference_type;

/* NaN, infinities, denormals, zeros, in those operands and scalars where they make sense. */
typedef struct at_special_values {
  /* How many launches it takes to try them all. In launch `which` buffer i holds what plant makes of a host copy of the
   * reference's data, unless contents says 0, the data as it was; equal numbers mean equal contents. */
  int (*count)(const void *problem);
  int (*contents)(const void *problem, int which, int buffer);
  void (*plant)(const void *problem, int which, int buffer, void *bytes);
  /* Changes the usual scalars to those of the launch. There where at_operand_type.scalars is, and only there. */
  void (*scalars)(const void *problem, int which, double *scalars);
  /* Says in *lost, one bit for each rule, what the outputs have lost; name puts it in words, "loses NaN of A". */
  attune_status (*compare)(void *reference, int which, const at_outputs *outputs, uint32_t *lost);
  const char *(*name)(int bit); /* NULL: no such rule */
} at_special_values;

/* Calls of the public function with a tuner, made ready, so that they are timed as a program makes them: `problem` as
 * its caller has it, not folded, and the operands of calls->copies, which outlive them. run makes calls number from to
 * to-1, as at_bare_calls has it. A problem that draws may not be captured so. */
typedef struct at_prepared_calls {
  attune_status (*create)(void **out, attune_tuner *tuner, const void *problem, const at_bare_calls *calls);
  attune_status (*run)(void *calls, attune_stream *stream, int from, int to);
  void (*destroy)(void *calls);
} at_prepared_calls;

typedef struct at_op {
  const char *name;                                       /* first word of a problem's text */
  int id;                                                 /* position in the table of ops */
  const struct at_implementation *const *implementations; /* every one, best guess first, plain fallback last */
  size_t implementation_count;
  /* A normalised problem: so many plain bytes, no padding, no pointers; equal bytes = equal problems. It lies at an
   * address that is a multiple of 8. Where `problem_size` is there problems differ in length: it says how many bytes
   * this one has, a multiple of 8 that fold leaves as it is, and problem_bytes, a multiple of 8 too, is the most.
   * Only that many bytes are read, copied, compared and kept: see at_problem_bytes. */
  size_t problem_bytes;
  size_t (*problem_size)(const void *problem); /* optional */
  size_t operands_bytes;                       /* of what launch takes */
  /* Optional: how many problems have a place of their own in a plan table, where a call finds its plan without a lock;
   * 0: as many as the table has. Further ones share the places of plan_lru.h, which are bounded. */
  size_t plans_most;
  /* Optional: the libraries that its implementations use on the device, with their files, and those that are missing;
   * the last return value of `fn`. */
  int (*each_library)(attune_device *device, attune_library_fn fn, void *user);
  const at_problem_type *problem;
  const at_operand_type *operands;
  const at_reference_type *reference;
  const at_special_values *specials; /* optional */
  const at_prepared_calls *calls;    /* optional: else `attune bench` times launches */
  /* Optional: at_timed_call_by_look_up (single_plan_tuner.h), so that the host's short calls are timed with their
   * look-up. */
  const struct at_timed_call *timed_call;
} at_op;

/* How many bytes a problem has. */
static inline size_t at_problem_bytes(const at_op *op, const void *problem) {
  return AT_LIKELY(!op->problem_size) ? op->problem_bytes : op->problem_size(problem);
}

/* op.c: INTERNAL, naming what is missing or too large, when an operation cannot be tuned as it is: what is not marked
 * optional is required, of its implementations too. */
attune_status at_op_check(const at_op *op);

/* Checks each, and that no two share a name or a number. */
attune_status at_ops_check(const at_op *const *ops, int count);

#endif
