/* SPDX-License-Identifier: Apache-2.0
 * bench.h: cases that `attune bench` times: the problems of a workload, or functions of your own.
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

#ifdef __cplusplus
}
#endif
#endif
