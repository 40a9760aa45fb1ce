/* SPDX-License-Identifier: Apache-2.0
 * tools.h: calls for the command, benchmark programs and the bindings: cases for `attune bench`, elementwise calls
 * described by text, and a closer view of tuning. attune.h does not include it.
 *
 * libattune has them, not a library of their own: they stand on some sixty of its internal functions, which would
 * become an interface between two files. Instead their symbols have a version of their own, ATTUNE_TOOLS_0, and no
 * promise of stability: if a release changes one of them or its structs, it counts that version up. A program built for
 * another version does not start, and the loader names the version that it misses. Programs that use attune.h alone are
 * not affected. */
#ifndef ATTUNE_TOOLS_H
#define ATTUNE_TOOLS_H

#include <attune/elementwise.h>
#include <attune/workload.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- benchmark programs ----
 *
 * A program registers its cases and passes main's arguments to attune_bench_main:
 *
 *   static attune_status sum(void *arg, attune_stream *stream) { ... }
 *   int main(int argc, char **argv) {
 *     attune_bench *bench;
 *     if (attune_bench_create(&bench) != ATTUNE_OK) return 1;
 *     const attune_bench_case c = {.size = sizeof(attune_bench_case), .name = "sum/1M", .run = sum, .bytes = 4e6};
 *     attune_bench_add(bench, &c);
 *     return attune_bench_main(bench, argc, argv);
 *   }
 *
 * `attune bench --program ./mine --save results.db` then starts ./mine several times, times its cases, and records
 * every sample; `attune compare` reports whether they became slower. The program measures nothing unless it is started
 * this way: started by hand it lists its cases. A case that crashes or hangs is reported as failed, and the others
 * continue.
 *
 * A bench is used by one thread at a time. Cases run in the thread that called attune_bench_main. */

/* A list of cases. */
typedef struct attune_bench attune_bench;

/* How a case is timed. */
enum {
  ATTUNE_BENCH_COLD = 1, /* the device's caches are flushed before every call; otherwise calls run back to back */
  ATTUNE_BENCH_GRAPH = 2 /* the calls are captured once and replayed as a graph; needs a device */
};

/* A case. Set unused fields to 0 or NULL. */
typedef struct attune_bench_case {
  size_t size;      /* sizeof this struct, or 0 (types.h) */
  const char *name; /* copied; unique in its bench, 1 to 199 bytes without control characters: "sum/1M" */
  /* NULL: `run` finishes its work before it returns, and is timed by the clock. Otherwise `run` launches work on
   * `stream`, a stream of this device, and is timed by the stream's events. */
  attune_device *device;
  /* Called before the first call of `run`, each time that a runner opens the case; NULL: nothing to do. If it or `run`
   * does not return ATTUNE_OK, the case is reported as failed, with the thread's last message. */
  attune_status (*set_up)(void *arg);
  attune_status (*run)(void *arg, attune_stream *stream); /* one call; `stream` is NULL without a device */
  void (*tear_down)(void *arg); /* after the last call, if set_up succeeded; NULL: nothing to do */
  void *arg;
  double bytes;             /* read and written by one call, at most 1e24; 0: unknown */
  double flops;             /* floating-point operations of one call, at most 1e24; 0: unknown */
  attune_dtype dtype;       /* dtype of the flops, for the roofline; used if flops is above 0 */
  unsigned flags;           /* ATTUNE_BENCH_* */
  attune_accuracy accuracy; /* accuracy of the flops; other than strict has its own roofline, such as TF32 */
  /* Number of times that one call of `run` does the work that bytes, flops and all times refer to, if that work is too
   * short to be timed by one call: 1000 for a loop of 1000 that take nanoseconds each. 0: once. */
  unsigned repeats;
  /* Name of a case added before, which has no peer_of itself: in every round the two are timed one right after the
   * other, in an order drawn for each round, and the table reports this case's time as a multiple of the other's.
   * Copied. NULL: none. */
  const char *peer_of;
} attune_bench_case;

/* Creates an empty list into *out; the caller destroys it. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_bench_create(attune_bench **out);

/* Tears down every case that is set up and releases the list. NULL does nothing. */
ATTUNE_API void attune_bench_destroy(attune_bench *bench);

/* Adds a case. Errors: INVALID_ARGUMENT (the message names the member), OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_bench_add(attune_bench *bench, const attune_bench_case *c);

/* Adds a case for every problem of `workload`, named by its entry or by the problem's text. Each runs the
 * implementation that `tuner` dispatches to on `device`, as a program's call would, on random operands of its own.
 * `flags` as in attune_bench_case. `tuner` and `device` must outlive the bench; `workload` need not. Errors:
 * INVALID_ARGUMENT, BAD_DATA (a text that is no problem), OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_bench_add_workload(attune_bench *bench, attune_tuner *tuner, attune_device *device,
                                                   const attune_workload *workload, unsigned flags);

/* Returns the number of cases; 0 for NULL. */
ATTUNE_API size_t attune_bench_size(const attune_bench *bench);

/* Returns case `index` with its name, borrowed until the bench is destroyed or a case is added; NULL if out of
 * range. */
ATTUNE_API const attune_bench_case *attune_bench_at(const attune_bench *bench, size_t index);

/* Serves `attune bench` over the socket `fd`, until it reports that it is done or closes the connection: sets cases up,
 * times them, reports the times. Output of `run` to standard output is left alone. Errors: INVALID_ARGUMENT, IO_ERROR,
 * OUT_OF_MEMORY, BAD_DATA (not the protocol). */
ATTUNE_API attune_status attune_bench_serve(attune_bench *bench, int fd);

/* Runs as the arguments request: serves `attune bench`, which appends an argument of its own, or lists the cases on
 * standard output; then destroys `bench`. Other arguments belong to the program: read them before this call. Returns
 * the value that main should return. */
ATTUNE_API int attune_bench_main(attune_bench *bench, int argc, char **argv);

/* ---- elementwise calls described by text ----
 *
 * Create an evaluation, allocate its operands on a device (attune_evaluation_place), call attune_elementwise with them
 * any number of times, and check the results. An evaluation is used by one thread at a time; not in capture. */

/* A call described by text. NULL equals ""; set unused fields to zero.
 *
 * - shape: "64x1024", the outermost dimension first; "" is one element.
 * - dtype: of inputs that name none, "bf16"; "" is f32.
 * - inputs: "a b:bf16 c:f32:1024 d::1024x64:1x1024", separated by blanks: name, dtype, shape, strides in elements.
 *   Defaults: `dtype`, the whole shape, packed. Names that the expression uses need not be listed.
 * - outputs: "bf16 f32:1x64 @a": dtype and strides, or the input whose memory is used. Default: the expression's own
 *   dtype, packed.
 * - scalars: "alpha=0.5 n:i64=3": name, kind and value; by default f64 and a number that attune chooses. */
typedef struct attune_elementwise_words {
  const char *expression, *shape, *dtype, *inputs, *outputs, *scalars;
  attune_accuracy accuracy;
} attune_elementwise_words;

/* A call described by text, and its operands. */
typedef struct attune_evaluation attune_evaluation;

/* Creates the call that `words` describe into *out, without memory yet; the words need not outlive the call. The caller
 * destroys it. Errors: INVALID_ARGUMENT (the message names the field and the mistake; a mistake in the expression, with
 * its place; no elements), OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_evaluation_create(attune_evaluation **out, const attune_elementwise_words *words);

/* Releases an evaluation; work that uses its operands must be done. NULL does nothing. */
ATTUNE_API void attune_evaluation_destroy(attune_evaluation *evaluation);

/* Returns the problem's text, for attune_tune and attune_explain. Borrowed. */
ATTUNE_API const char *attune_evaluation_problem(const attune_evaluation *evaluation);

/* Returns the bytes that a call reads and writes: each element of each operand once. */
ATTUNE_API uint64_t attune_evaluation_bytes(const attune_evaluation *evaluation);

/* Allocates the operands on `stream`'s device and fills the inputs with random numbers, equal for equal seeds; inputs
 * of some expressions, such as those with logarithms, are positive. `stream` must outlive the evaluation. Errors:
 * INVALID_ARGUMENT (also: placed before), OUT_OF_MEMORY (the message says how much is needed and available),
 * DEVICE_ERROR. */
ATTUNE_API attune_status attune_evaluation_place(attune_evaluation *evaluation, attune_stream *stream, uint64_t seed);

/* Returns the operands to pass to attune_elementwise with the words' expression. They have no data before
 * attune_evaluation_place. Outputs are in the expression's order. Borrowed. */
ATTUNE_API const attune_elementwise_operands *attune_evaluation_operands(const attune_evaluation *evaluation);

/* Result of a check. */
typedef struct attune_evaluation_errors {
  int64_t elements, checked; /* of the shape; of those, the number compared */
  double max_error;          /* largest error as a fraction of the contract's limit; above 1 is wrong */
  /* Largest difference from the exact value of the formula, which is rounded only at casts in the text, in units in the
   * last place of the output's dtype; meaningless for outputs that are not floating-point. */
  double max_ulps;
} attune_evaluation_errors;

/* Refills the inputs, runs the call once with `tuner`, waits, and compares at most `most` elements, drawn from all (<=
 * 0: all of them), with reference values in long double, or in double where that gives equal values. The text is also
 * evaluated as written, before any simplification; if the values differ, max_error is infinite. Wrong numbers are not
 * an error of the call. Errors: INVALID_ARGUMENT (also: not placed), and those of attune_elementwise. */
ATTUNE_API attune_status attune_evaluation_check(attune_evaluation *evaluation, attune_tuner *tuner, int64_t most,
                                                 attune_evaluation_errors *out);

/* Writes the element with row-major index `index` of an operand, broadcast to the whole shape, as of the latest check,
 * into *out. `tensor` counts outputs, then inputs, in the order of attune_evaluation_operands. An input that shares an
 * output's memory has its value before the call. out->kind is f64, i64, bool or c128; a u64 is given by its bits; the
 * name is NULL. Errors: INVALID_ARGUMENT (no such tensor or element; no check yet). On the host it reads the operands
 * themselves. */
ATTUNE_API attune_status attune_evaluation_element(const attune_evaluation *evaluation, int tensor, int64_t index,
                                                   attune_scalar *out);

/* ---- tuning many problems ---- */

/* Creates the user database if it does not exist, and writes to it. Returns OK, or why winners could not be stored.
 * Call it before a long run, to fail early. Also OK if no database was requested. Errors: those of
 * attune_tuner_database_status. Any thread. */
ATTUNE_API attune_status attune_tuner_database_prepare(attune_tuner *tuner);

/* Writes the approximate time of one call of the default for `problem` (its text) on `device` into *out_ns: measured,
 * if the tuner's database has it, else estimated from the sizes. Measures nothing. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY (also: the problem is too large to be measured there; *out_ns is set nevertheless). Any thread. */
ATTUNE_API attune_status attune_workload_estimate(double *out_ns, attune_tuner *tuner, attune_device *device,
                                                  const char *problem);

/* Problems to be tuned on a device, and threads that compile their candidates' kernels ahead. */
typedef struct attune_precompile attune_precompile;

/* Starts to compile, on idle CPUs and at low priority, the kernels that attune_tune would try for these problems (their
 * texts; not kept), so that compilation takes none of a problem's tuning time. First come winners in the tuner's
 * databases, then the best guesses for each problem, then the rest, in the order of the problems; at most a few dozen
 * problems ahead. For the host nothing is compiled, since that would disturb its measurements; for the same reason do
 * not measure the host while another device's problems are compiled. Nothing is compiled for a problem that cannot be
 * read: attune_tune reports the mistake. The caller ends it with attune_precompile_stop, before the tuner is destroyed.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_precompile_start(attune_precompile **out, attune_tuner *tuner, attune_device *device,
                                                 const char *const *problems, size_t count);

/* Writes the index of the problem to tune next into *out, each once: the first in the list whose kernels are all
 * compiled. If there is none, waits up to wait_ms for one (0: does not wait); then, with nonzero `any` or if no
 * compilation is in progress, takes the first one left, whose remaining kernels are compiled in its own tuning time.
 * Errors: INVALID_ARGUMENT, BUSY (none is ready yet, without `any`), NOT_FOUND (all were returned). One thread at a
 * time. */
ATTUNE_API attune_status attune_precompile_next(attune_precompile *ahead, double wait_ms, int any, size_t *out);

/* Stops compilation and releases `ahead`: waits for the kernels being compiled and starts no others. No other thread
 * may be using it. NULL does nothing. In a child of fork it only releases. */
ATTUNE_API void attune_precompile_stop(attune_precompile *ahead);

/* ---- stored winners and candidates ---- */

/* Result of checking a stored winner. */
typedef enum attune_verdict {
  ATTUNE_VERDICT_HOLDS = 1,
  ATTUNE_VERDICT_GAINS_LESS = 2, /* than its claim, by more than 3 % and three standard errors */
  ATTUNE_VERDICT_SLOWER = 3,     /* than the default, by more than 1 % and three standard errors */
  ATTUNE_VERDICT_WRONG = 4,      /* its numbers are outside the contract */
  ATTUNE_VERDICT_UNSURE = 5      /* its numbers are right; other work used the CPUs, so its times mean nothing */
} attune_verdict;

/* New measurements of a stored winner. Times are medians of one call in nanoseconds. */
typedef struct attune_recheck {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  double time_ns, default_time_ns;
  double speedup, error; /* the default's time over the winner's, round by round, and its standard error */
  double max_error;      /* largest error as a fraction of the contract's limit */
  int samples;
  attune_verdict verdict;
  int marked; /* 1: it does not hold and is marked unsure in the user database */
} attune_recheck;

/* Times the stored winner of `problem` again, in turns with the default and with operands at new placements, and checks
 * its numbers on new data. Copies the winner into `stored` (may be NULL). Takes about budget_ms (<= 0: 150 ms plus the
 * time of 150 calls). A winner of the user database that does not hold (GAINS_LESS, SLOWER, WRONG) is marked there as
 * unsure, with a note, and out->marked is set: it still runs, and the next attune_tune measures its problem again.
 * Winners of the system database or of a read-only one are not marked. Stores nothing else. The settings of
 * attune_tuner_set_search apply. Errors: INVALID_ARGUMENT, NOT_FOUND (no stored winner holds on this device, or it can
 * no longer run), OUT_OF_MEMORY, BUSY (another process measures on the device and does not end), DEVICE_ERROR. Any
 * thread; takes turns as attune_tune does. */
ATTUNE_API attune_status attune_verify(attune_tuner *tuner, attune_device *device, const char *problem,
                                       double budget_ms, attune_decision *stored, attune_recheck *out);

/* A candidate of the search that found a stored winner. The texts are valid only during the callback. */
typedef struct attune_trial {
  const char *implementation, *configuration;
  const char *verdict; /* "winner", "runner-up", "default", "slower", "wrong" (its numbers) or "failed" (to run) */
  double time_ns;      /* the median of one call; 0: it was not raced */
  double spread;       /* relative */
  int samples;
} attune_trial;

/* Called with a trial; a nonzero return ends the walk. */
typedef int (*attune_trial_fn)(void *user, const attune_trial *trial);

/* Calls `fn` for the candidates that the search for the stored winner of `problem` on `device` raced, and those that
 * failed or were wrong, fastest first, at most 32, as stored in the databases. If no winner holds, they are those of
 * the latest search; on the host, of the latest with the current number of CPU threads. Candidates dropped in the
 * screen are only logged, at level debug. Errors: INVALID_ARGUMENT, UNSUPPORTED, NOT_FOUND (nothing is stored),
 * BAD_DATA, IO_ERROR, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_tuner_trials(attune_tuner *tuner, attune_device *device, const char *problem,
                                             attune_trial_fn fn, void *user);

/* Called with an implementation and the number of configurations that it offers; a nonzero return ends the walk. */
typedef int (*attune_implementation_fn)(void *user, const char *implementation, int version, int configurations);

/* Calls `fn` for each implementation that can do `problem` on `device`, best guess first. Errors: INVALID_ARGUMENT. Any
 * thread. */
ATTUNE_API attune_status attune_tuner_implementations(attune_tuner *tuner, attune_device *device, const char *problem,
                                                      attune_implementation_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
