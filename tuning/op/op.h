/* SPDX-License-Identifier: Apache-2.0
 * op.h: what the tuner must know of an operation: its problems as plain bytes and as text, its operands, its reference.
 * ops/ fills one at_op for each operation. */
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
} at_buffer;

/* A number that a call takes beside its buffers, such as alpha. Measuring uses the usual one. Verification draws
 * another one too, so that a plan which ignores it is found: low < high, and both are sensible. */
typedef struct at_scalar {
  const char *name;
  double usual;
  at_range range;
} at_scalar;

/* What a launch left in its outputs, in host memory. Each byte of an output that is no input was `poison` before. */
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

/* What is not called optional must be there: at_op_check. */
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

  /* The canonical text; equal problems have equal texts and texts parse back to equal bytes. */
  attune_status (*format)(const void *problem, char *out, size_t size);
  attune_status (*parse)(const char *text, void *problem);
  /* Optional: the text as a caller wrote the problem, who used it in another form: `as` is what the op gave to
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
  /* Optional: the libraries that its implementations use on the device, with their files, and those that are missing;
   * the last return value of `fn`. */
  int (*each_library)(attune_device *device, attune_library_fn fn, void *user);
  /* Arithmetic and memory traffic of one call. */
  double (*flops)(const void *problem);
  double (*bytes)(const void *problem);
  /* Folds what the device does not tell apart, such as alignment beyond its best class (at_device_alignment), so that
   * equal work has equal bytes. A problem is folded before it becomes a key, is measured or is stored. Where there is
   * nothing to fold it does nothing. */
  void (*fold)(void *problem, const attune_device *device);
  /* True when the winner must give the same bits in each run. */
  bool (*deterministic)(const void *problem);

  /* The buffers of a call, its scalars (optional; NULL: none) and their number, and the operands made of both. */
  attune_status (*buffers)(const void *problem, at_buffer out[AT_MAX_BUFFERS], int *count);
  int (*scalars)(const void *problem, at_scalar out[AT_MAX_SCALARS]);
  void (*bind)(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars, void *operands);

  /* The public functions, attune_NAME, attune_NAME_plan_create and attune_NAME_plan_run, called as a program would, for
   * a normalised problem and the operands that bind makes: the conformance tests run every implementation through them.
   * Each makes the public problem and operands from these, calls, and returns what the function returned. */
  attune_status (*call)(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands);
  attune_status (*plan_create)(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const void *problem,
                               const void *operands);
  attune_status (*plan_run)(const attune_plan *plan, attune_stream *stream, const void *operands);

  /* Optional: numbers of the problem by which a call sees at once that its operands do not overlap; a plan keeps them. */
  void (*spans)(const void *problem, uintptr_t out[AT_PLAN_SPANS]);

  /* Optional: the problem draws random numbers: captures of these calls want a generator that is registered with the
   * graph, which these slots do not have. NULL: none does. */
  bool (*draws)(const void *problem);

  /* Optional: a call of the plan as a program makes it, by the public function and a look-up that hits, so that what
   * dispatch costs is part of a measured time. create is NOT_FOUND where the public function would not come to the
   * plan. `plan` must outlive the caller; `operands` are some of those that it will be given. */
  attune_status (*caller_create)(void **out, const struct attune_plan *plan, const void *operands,
                                 attune_stream *stream);
  attune_status (*caller_run)(void *caller, const at_bare_calls *calls, attune_stream *stream);
  void (*caller_destroy)(void *caller);

  /* Optional, all or none: calls of the public function with this tuner, made ready, so that a benchmark times what a
   * program would: `problem` as its caller has it, not folded, and the operands of calls->copies, which outlive them.
   * run makes calls number from to to-1, as at_bare_calls has it. A problem that draws may not be captured so. */
  attune_status (*calls_create)(void **out, attune_tuner *tuner, const void *problem, const at_bare_calls *calls);
  attune_status (*calls_run)(void *calls, attune_stream *stream, int from, int to);
  void (*calls_destroy)(void *calls);

  /* The trusted result for the inputs at `pointers` (device memory, in stream order; the outputs are not touched unless
   * they are inputs too, and then read before). compare says of every output at once, for a call with `scalars`:
   * *max_error is the largest error as a fraction of what the contract allows (> 1 fails; infinity for a NaN, or for a
   * byte between the elements that is not as it was). */
  attune_status (*reference_create)(void **out, const void *problem, attune_device *device, attune_stream *stream,
                                    void *const pointers[AT_MAX_BUFFERS]);
  attune_status (*reference_compare)(void *reference, const double *scalars, const at_outputs *outputs,
                                     double *max_error);
  void (*reference_destroy)(void *reference);

  /* Optional, all or none, special values: NaN, infinities, denormals, zeros, in those operands and scalars where they
   * make sense. special_count says how many launches it takes to try them all; NULL: none. In launch `which` buffer i
   * holds what special_plant makes of a host copy of the reference's data, unless special_contents says 0, the data as
   * it was; equal numbers mean equal contents. special_scalars changes the usual scalars to those of the launch.
   * compare says in *lost, one bit for each rule, what the outputs have lost; name puts it in words, "loses NaN of
   * A". */
  int (*special_count)(const void *problem);
  int (*special_contents)(const void *problem, int which, int buffer);
  void (*special_plant)(const void *problem, int which, int buffer, void *bytes);
  void (*special_scalars)(const void *problem, int which, double *scalars);
  attune_status (*special_compare)(void *reference, int which, const at_outputs *outputs, uint32_t *lost);
  const char *(*special_name)(int bit); /* NULL: no such rule */

  /* What every implementation has to get right, so that tests of one kind serve all operations. case_at: problem
   * `index` of case_count, the same one in every run; false: a case that needs no implementation. oracle: the plainest
   * way to compute it, on buffers in host memory, laid out as `buffers` says. */
  int (*case_count)(void);
  bool (*case_at)(int index, void *problem);
  void (*oracle)(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars);
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
