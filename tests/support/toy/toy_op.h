/* SPDX-License-Identifier: Apache-2.0
 * toy_op.h: an operation that is no matrix product, so that tests see what the tuning floor does for any: for each
 * element of `rows` x `cols`
 *     y = scale log(x) + bias[column]          reals, f32 or f64; x is positive
 *     n = codes tap[column % taps] + offset    integers, i32 or i64, modulo their size
 * Five buffers, two outputs, two scalars; problem and text are longer than gemm's, and the problem ends within a word.
 *
 * Its implementations' cost and faults are the test's choice: "base", the default, and "spin", with as many
 * configurations as the test gives it. A configuration: "ns=100000", then what else there is:
 *   far=NS       so much longer at the first placement of x and bias since the start, the third, the fifth ...
 *   noise=NS     up to so much longer, drawn at each launch
 *   threads=N    CPUs that are busy meanwhile, on the virtual clock
 *   fault=WHAT   prepare, launch: fails there; wrong: y is a little off; second: n is off by one; leaves: the last n is
 *                not written; behind, second_behind: writes behind y, n; codes: writes into an input; scale, offset:
 *                takes the usual one; nan: loses each NaN; skips: does not write y where it is a NaN; bits: other bits
 * of y each time;
 *                early: runs at once, whatever the stream; waits: for all that the stream has; frozen: the graph that
 *                captures it keeps the first x as it was then */
#ifndef AT_TEST_TOY_OP_H
#define AT_TEST_TOY_OP_H

#include <stdatomic.h>

#include <attune/plan.h>

#include "tests/ops/op_test.h"
#include "tuning/dispatch/dispatch.h"
#include "tuning/op/contract.h"

enum { TOY_X, TOY_BIAS, TOY_CODES, TOY_Y, TOY_N, TOY_BUFFERS };
enum { TOY_SCALE, TOY_OFFSET, TOY_SCALARS };
enum { TOY_ALIGNMENT = 128, TOY_MOST_TAPS = 27 };

typedef struct toy {
  int32_t rows, cols, count; /* of taps */
  int32_t taps[TOY_MOST_TAPS];
  uint8_t real, integer; /* attune_dtype */
  uint8_t deterministic;
  uint8_t alignment; /* of the least aligned buffer */
} toy;
_Static_assert(sizeof(toy) % 8 == 4 && sizeof(toy) > 112, "the key of a toy problem has a tail");

typedef struct toy_operands {
  double scale, offset;
  const void *x, *bias, *codes;
  void *y, *n;
} toy_operands;

/* Problems are written TOY("f32 9x7"); words may follow, " deterministic", " align=8". */
#define TOY_TAPS                                                                                             \
  "2147483647/-2147483648/1999999973/-1999999943/1900000043/-1900000027/1800000011/-1800000017/1700000009/"  \
  "-1700000023/1600000009/-1600000033/1500000001/-1500000041/1400000023/-1400000011/1300000003/-1300000009/" \
  "1200000041/-1200000007/1100000009/-1100000027/1000000007/-1000000009/900000011/-900000019/3"
#define TOY(what) "toy " what " strict taps=" TOY_TAPS
#define TOY_PROBLEM TOY("f32 9x7")

extern at_op toy_op; /* with these, which a test may change: toy_reset puts all back */
extern at_problem_type toy_problem_type;
extern at_operand_type toy_operand_type;
extern at_reference_type toy_reference_type;
extern at_op_test toy_op_test;
extern const at_op *const toy_ops[1];
extern at_implementation toy_base_implementation, toy_spin_implementation;

extern char toy_base[64];            /* base's one configuration */
extern const char *const *toy_spins; /* spin's, up to NULL */
extern const char *toy_refused;      /* a configuration that prepare does not know any more */
extern _Atomic int toy_searches;     /* searches that came as far as verifying a winner */
extern _Atomic int toy_launches;
extern _Atomic int toy_running, toy_overlaps; /* launches at the same time, while it is watched */
extern _Atomic bool toy_watched;

/* Where the operands of launches lay: the least alignment of all, and how many placements of x and bias. */
enum { TOY_PLACES = 256 };
extern int toy_place_count;
extern uintptr_t toy_least_aligned;

/* Behaviour of a plan, read once from its configuration. */
typedef struct toy_plan {
  int64_t ns, far, noise, threads;
  char fault[16];
} toy_plan;

/* How time passes while a plan "works": since `start`, with so many CPUs. At first by spinning; see toy_clock.h. */
extern void (*toy_pass)(int64_t start, int64_t ns, int64_t cpus);

static inline const toy *toy_of(const void *problem) {
  return (const toy *)problem;
}

/* As it is at the start of a program. */
void toy_reset(void);
at_key toy_key(const char *problem, const attune_device *device);
/* The public calls, as a program has them: `problem` as it is written down, but for its alignment, which the operands
 * say (toy_call.c). */
attune_status toy_call(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands);
attune_status toy_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const void *problem,
                              const void *operands);
attune_status toy_plan_run(const attune_plan *plan, attune_stream *stream, const void *operands);
attune_status toy_launch(const at_plan *plan, const void *operands, attune_stream *stream);
attune_status toy_reference_create(void **out, const void *problem, attune_device *device, attune_stream *stream,
                                   void *const pointers[AT_MAX_BUFFERS]);

#endif
