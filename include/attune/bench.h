/* SPDX-License-Identifier: Apache-2.0
 * bench.h: cases that `attune bench` times: the problems of a workload, or functions of your own.
 *
 * A program registers its cases and gives its main's arguments to attune_bench_main:
 *
 *   static attune_status sum(void *arg, attune_stream *stream) { ... }
 *   int main(int argc, char **argv) {
 *     attune_bench *bench;
 *     if (attune_bench_create(&bench) != ATTUNE_OK) return 1;
 *     attune_bench_add(bench, &(attune_bench_case){.size = sizeof(attune_bench_case), .name = "sum/1M", .run = sum, .bytes = 4e6});
 *     return attune_bench_main(bench, argc, argv);
 *   }
 *
 * `attune bench --program ./mine --save results.db` then starts ./mine several times, times its cases, and writes every
 * sample down; `attune compare` tells whether they became slower. The program itself measures nothing unless it is
 * started so: by hand it lists its cases. A case that crashes or hangs is told as failed, and the others go on.
 *
 * One thread at a time for each bench. Cases run in the thread that called attune_bench_main. */
#ifndef ATTUNE_BENCH_H
#define ATTUNE_BENCH_H

#include <attune/stream.h>
#include <attune/workload.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A list of cases. */
typedef struct attune_bench attune_bench;

/* How a case is timed. */
enum {
  ATTUNE_BENCH_COLD = 1, /* the device's caches are emptied before every call; else calls follow each other */
  ATTUNE_BENCH_GRAPH = 2 /* the calls are captured once and replayed as a graph; needs a device */
};

/* What is timed. All that is not set is 0 or NULL. */
typedef struct attune_bench_case {
  size_t size;      /* sizeof(attune_bench_case) */
  const char *name; /* copied; unique in its bench, 1 to 199 bytes without control characters: "sum/1M" */
  /* NULL: `run` does its work before it returns, and the clock times it. Else it gives work to `stream`, a stream of this
   * device, and the stream's events time it. */
  attune_device *device;
  /* Before the first call, each time that a runner opens the case; NULL: nothing to do. What does not return ATTUNE_OK is told
   * as failed, with the thread's last message; so is `run`. */
  attune_status (*set_up)(void *arg);
  attune_status (*run)(void *arg, attune_stream *stream); /* one call, NULL stream without a device */
  void (*tear_down)(void *arg); /* after the last call of a set_up that did well; NULL: nothing */
  void *arg;
  double bytes;             /* that one call reads and writes, 1e24 at most; 0: not told */
  double flops;             /* floating-point operations of one call, 1e24 at most; 0: not told */
  attune_dtype dtype;       /* that these are in, for the roofline; used where flops is above 0 */
  unsigned flags;           /* ATTUNE_BENCH_* */
  attune_accuracy accuracy; /* of these: what is not strict has a roof of its own, as TF32 has beside f32 */
  /* How often one call of `run` does the work that bytes, flops and all times are of, where that is too little to be called
   * from outside: 1000 for a loop of 1000 that take nanoseconds. 0: once. */
  unsigned repeats;
  /* The name of a case added before, which is no peer itself: in every round the two are timed right after each other, in an
   * order drawn anew, and the table tells this one's time in times of that one's. Copied. NULL: none. */
  const char *peer_of;
} attune_bench_case;

/* An empty list into *out. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_bench_create(attune_bench **out);

/* Releases the list. Every case that is set up is torn down. NULL does nothing. */
ATTUNE_API void attune_bench_destroy(attune_bench *bench);

/* Adds a case. Errors: INVALID_ARGUMENT (the message names the member), OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_bench_add(attune_bench *bench, const attune_bench_case *c);

/* Adds a case for every problem of `workload`, named by its entry or by the problem's text: what runs is what `tuner`
 * dispatches to on `device`, as a program's call would, on random operands of its own. `flags` as in attune_bench_case.
 * `tuner` and `device` must outlive the bench; `workload` need not. Errors: INVALID_ARGUMENT, BAD_DATA (a text that is no
 * problem), OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_bench_add_workload(attune_bench *bench, attune_tuner *tuner, attune_device *device,
                                                   const attune_workload *workload, unsigned flags);

/* The number of cases; 0 for NULL. */
ATTUNE_API size_t attune_bench_size(const attune_bench *bench);

/* Case `index` with its name, borrowed until the bench goes or a case is added; NULL out of range. */
ATTUNE_API const attune_bench_case *attune_bench_at(const attune_bench *bench, size_t index);

/* Serves `attune bench` over the socket `fd`, until it says that it is done or goes: sets cases up, times them, tells the
 * times. What `run` prints to standard output is left alone. Errors: INVALID_ARGUMENT, IO_ERROR, OUT_OF_MEMORY,
 * BAD_DATA (not the protocol). */
ATTUNE_API attune_status attune_bench_serve(attune_bench *bench, int fd);

/* Does what the arguments ask: serves `attune bench`, which adds an argument of its own as the last, or lists the cases on
 * standard output; then destroys `bench`. Other arguments are the program's own: read them before. Returns what main
 * should return. */
ATTUNE_API int attune_bench_main(attune_bench *bench, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
