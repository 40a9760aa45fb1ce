/* SPDX-License-Identifier: Apache-2.0
 * gemm.h: what the parts of bench_gemm share. A "way" is one way to do a problem: attune or a peer. A platform (host,
 * cuda) has the peers and knows how to time a way. These are parts of one program: what cannot go on ends it with a
 * message. */
#ifndef BENCH_H
#define BENCH_H

#include <attune/attune.h>

#include <stdbool.h>
#include <stdio.h>

#include "bench/common/problem.h"
#include "bench/common/tool.h"

#define BENCH_WAYS 6
#define BENCH_ATTUNE 0  /* way 0 is attune ... */
#define BENCH_DEFAULT 1 /* ... and way 1 the vendor's default */

/* The buffers of one call, alpha = 1, beta = 0. */
typedef struct bench_set {
  void *a, *b, *d;
  void **arrays; /* where pointers name the matrices: those of A, of B and of D, where the problem wants them */
} bench_set;

/* As attune takes them. */
static inline attune_gemm_operands bench_operands(const bench_problem *problem, const bench_set *set) {
  const int64_t batch = problem->gemm.batch;
  void **const p = set->arrays;
  if (p) return (attune_gemm_operands){.alpha = 1.0, .a = (void *)p, .b = (void *)(p + batch), .d = p + 2 * batch};
  return (attune_gemm_operands){.alpha = 1.0, .a = set->a, .b = set->b, .d = set->d};
}

typedef struct bench_sets {
  bench_set *items;
  int count;
  bool arrays_on_host;
} bench_sets;

typedef struct bench_platform bench_platform;

typedef struct bench_way {
  const char *name;
  /* Readies the way for a problem; false: it has no call for it, and its column stays empty. */
  bool (*prepare)(bench_platform *platform, struct bench_way *way, const bench_problem *problem,
                  const bench_set *example);
  /* Gives one call to the stream; false: it failed. */
  bool (*enqueue)(bench_platform *platform, struct bench_way *way, const bench_set *set);
  void *state;      /* the peer's ... */
  int variant;      /* ... and which of its ways this is */
  bool own;         /* attune called another way: no peer */
  bool active;      /* prepared for the present problem */
  const char *note; /* how it was timed, where that differs: "eager" */
} bench_way;

struct bench_platform {
  attune_device *device;
  attune_stream *stream;
  attune_tuner *tuner;
  const bench_problem *problem; /* the present one */
  bench_way ways[BENCH_WAYS];
  int way_count;
  size_t rotate_bytes;      /* inputs rotate over more than this; 0: one set, hot */
  double target_ns;         /* length of one sample */
  int min_calls, max_calls; /* in one sample */
  double floor_ratio;       /* a ratio below it counts as worse than the default */
  const char *method;       /* one line for the report */
  char libraries[256];      /* versions, for the report */
  void *state;
  /* Readies the timing of way `index` over the sets, `calls` calls a sample. */
  bool (*ready)(bench_platform *platform, int index, const bench_sets *sets, int calls);
  /* One sample: nanoseconds a call; negative: failed. */
  double (*sample)(bench_platform *platform, int index);
  /* Drops what ready made, for all ways. */
  void (*unready)(bench_platform *platform);
  void (*close)(bench_platform *platform);
};

typedef struct bench_figure {
  bool present;
  double median_ns;
  double spread; /* median absolute deviation / median */
  double ratio;  /* this way / attune: the median of the rounds' ratios */
  const char *note;
} bench_figure;

typedef struct bench_row {
  bench_problem problem;
  bench_choice decision;
  bench_figure figures[BENCH_WAYS];
  int best;         /* the peer whose ratio is least; 0: no peer can do the problem */
  double agreement; /* largest difference from the peer as a fraction of what rounding explains; negative: no peer */
  bool agrees;
} bench_row;

/* platform_host.c, platform_cuda.c: fill a platform for its device. `blas`: library to load as the host's peer; BLIS is
 * one where it is installed. */
void bench_host_open(bench_platform *platform, const char *blas, bool cpu_time);
#ifdef BENCH_WITH_CUDA
void bench_cuda_open(bench_platform *platform);
#endif

/* operands.c: `count` sets of A, B and D in the stream's memory, A and B uniform in [-1,1]. The numbers come from one
 * block a dtype, made at first use and kept until bench_random_release. */
void bench_sets_create(bench_sets *out, attune_stream *stream, const bench_problem *problem, int count);
void bench_sets_destroy(bench_sets *sets, attune_stream *stream);
void bench_random_release(attune_stream *stream);

/* agree.c: runs both ways on the set and compares their results, which start as NaN; *worst as bench_row.agreement. */
bool bench_agree(bench_platform *platform, bench_way *way, bench_way *peer, const bench_set *set, double *worst);

/* measure.c */
bench_way bench_attune_way(void);
void bench_measure(bench_platform *platform, const bench_problem *problem, int rounds, bench_row *row);

/* report.c */
typedef struct bench_ratios {
  int problems, below; /* below: the platform's floor_ratio */
  double log_sum, least;
  const char *least_name;
} bench_ratios;

typedef struct bench_summary {
  bench_ratios usual, best; /* of the vendor's default, of the best peer of each problem */
  int disagree, untuned, skipped;
  double tuning_s; /* sum over the winners, when they were measured */
  double tune_wall_s, bench_wall_s;
} bench_summary;
void bench_summary_add(bench_summary *summary, const bench_platform *platform, const bench_row *row);
void bench_report_head(const bench_platform *platform, int rounds);
void bench_report_row(const bench_platform *platform, const bench_row *row);
void bench_report_summary(const bench_platform *platform, const bench_summary *summary);
void bench_report_csv_head(FILE *file);
void bench_report_csv_row(FILE *file, const bench_platform *platform, const bench_row *row);

#endif
