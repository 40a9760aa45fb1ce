/* SPDX-License-Identifier: Apache-2.0
 * outside_worker.c: one of the two processes that bench_outside alternates on the host: it times attune, or a CBLAS and
 * nothing else, for as long as it is told, and otherwise sleeps in read().
 *
 * Commands, a line each: "open ALIGNMENT SPACING PROBLEM" -> "ok" or "none"; "run MILLISECONDS" -> nanoseconds a call;
 * "explain" -> the problem's text, the winner's time and its default's, the implementation. */
#include "bench/outside.h"

#include "bench/tool.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, TRANSPOSE = 112, SLACK = 4096 };

typedef void (*gemm_f64)(int, int, int, int, int, int, double, const double *, int, const double *, int, double,
                         double *, int);
typedef void (*gemm_f32)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                         int);
typedef void (*gemv_f64)(int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
typedef void (*gemv_f32)(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

typedef struct worker {
  attune_tuner *tuner; /* attune's side */
  attune_device *device;
  gemm_f64 dgemm; /* the vendor's side */
  gemm_f32 sgemm;
  gemv_f64 dgemv;
  gemv_f32 sgemv;
  outside_problem problem;
  attune_gemm_problem given;
  void *memory;
  attune_gemm_operands operands;
} worker;

static double next_random(uint64_t *state) {
  *state += 0x9E3779B97F4A7C15u;
  uint64_t z = (*state ^ (*state >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (double)(int64_t)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1.0;
}

static void fill(void *to, size_t bytes, attune_dtype dtype) {
  uint64_t state = (uint64_t)(uintptr_t)to;
  for (size_t i = 0; i < bytes / attune_dtype_size(dtype); i++) {
    const double value = next_random(&state);
    if (dtype == ATTUNE_F64)
      ((double *)to)[i] = value;
    else
      ((float *)to)[i] = (float)value;
  }
}

static bool open_problem(worker *w, outside_place place, const char *text) {
  const attune_workload_entry entry = {.problem = text, .count = 1};
  outside_problem_read(&w->problem, &entry);
  const attune_gemm_problem *g = &w->problem.gemm;
  if ((g->dtype != ATTUNE_F64 && g->dtype != ATTUNE_F32) || g->dtype_out != g->dtype) return false;
  size_t start[3];
  const size_t bytes = outside_lay_out(&w->problem, place, 0, start);
  free(w->memory);
  w->memory = aligned_alloc(4096, (bytes + SLACK) / 4096 * 4096 + 4096);
  if (!w->memory) bench_die("out of memory for %zu bytes of operands", bytes);
  char *base = w->memory;
  fill(base + start[0], w->problem.bytes_a, g->dtype);
  fill(base + start[1], w->problem.bytes_b, g->dtype);
  memset(base + start[2], 0, w->problem.bytes_d);
  w->operands = (attune_gemm_operands){.alpha = 1.0, .a = base + start[0], .b = base + start[1], .d = base + start[2]};
  w->given = *g;
  if (g->batch > 1 && g->stride_a == 0) w->given.stride_a = ATTUNE_BROADCAST;
  if (g->batch > 1 && g->stride_b == 0) w->given.stride_b = ATTUNE_BROADCAST;
  return true;
}

/* The vendor's call as a program would make it: gemv where D is a vector. */
static void vendor_f64(const worker *w, const double *a, const double *b, double *d) {
  const attune_gemm_problem *g = &w->problem.gemm;
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  if (n == 1)
    w->dgemv(COLUMN_MAJOR, g->trans_a ? TRANSPOSE : NO_TRANSPOSE, g->trans_a ? k : m, g->trans_a ? m : k, 1.0, a,
             (int)g->lda, b, g->trans_b ? (int)g->ldb : 1, 0.0, d, 1);
  else if (m == 1)
    w->dgemv(COLUMN_MAJOR, g->trans_b ? NO_TRANSPOSE : TRANSPOSE, g->trans_b ? n : k, g->trans_b ? k : n, 1.0, b,
             (int)g->ldb, a, g->trans_a ? 1 : (int)g->lda, 0.0, d, (int)g->ldd);
  else
    w->dgemm(COLUMN_MAJOR, g->trans_a ? TRANSPOSE : NO_TRANSPOSE, g->trans_b ? TRANSPOSE : NO_TRANSPOSE, m, n, k, 1.0,
             a, (int)g->lda, b, (int)g->ldb, 0.0, d, (int)g->ldd);
}

static void vendor_f32(const worker *w, const float *a, const float *b, float *d) {
  const attune_gemm_problem *g = &w->problem.gemm;
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  if (n == 1)
    w->sgemv(COLUMN_MAJOR, g->trans_a ? TRANSPOSE : NO_TRANSPOSE, g->trans_a ? k : m, g->trans_a ? m : k, 1.0f, a,
             (int)g->lda, b, g->trans_b ? (int)g->ldb : 1, 0.0f, d, 1);
  else if (m == 1)
    w->sgemv(COLUMN_MAJOR, g->trans_b ? NO_TRANSPOSE : TRANSPOSE, g->trans_b ? n : k, g->trans_b ? k : n, 1.0f, b,
             (int)g->ldb, a, g->trans_a ? 1 : (int)g->lda, 0.0f, d, (int)g->ldd);
  else
    w->sgemm(COLUMN_MAJOR, g->trans_a ? TRANSPOSE : NO_TRANSPOSE, g->trans_b ? TRANSPOSE : NO_TRANSPOSE, m, n, k, 1.0f,
             a, (int)g->lda, b, (int)g->ldb, 0.0f, d, (int)g->ldd);
}

static void vendor_call(const worker *w) {
  const attune_gemm_problem *g = &w->problem.gemm;
  for (int64_t i = 0; i < g->batch; i++) {
    if (g->dtype == ATTUNE_F64)
      vendor_f64(w, (const double *)w->operands.a + i * g->stride_a, (const double *)w->operands.b + i * g->stride_b,
                 (double *)w->operands.d + i * g->stride_d);
    else
      vendor_f32(w, (const float *)w->operands.a + i * g->stride_a, (const float *)w->operands.b + i * g->stride_b,
                 (float *)w->operands.d + i * g->stride_d);
  }
}

static void calls(const worker *w, long count) {
  attune_stream *stream = w->tuner ? attune_stream_default(w->device) : NULL;
  for (long i = 0; i < count; i++) {
    if (!w->tuner)
      vendor_call(w);
    else if (attune_gemm(w->tuner, stream, &w->given, &w->operands) != ATTUNE_OK)
      bench_die("attune_gemm: %s", attune_last_message());
  }
}

/* Calls for `ms`, after a first part that is not timed; nanoseconds a call. */
static double run(const worker *w, double ms) {
  double start = bench_now_ns();
  long part = 1;
  for (double spent = 0; spent < 0.1e6 * ms || spent < 2e4; part *= 2) {
    calls(w, part);
    spent = bench_now_ns() - start;
  }
  part = part > 16 ? part / 16 : 1;
  long done = 0;
  start = bench_now_ns();
  double now = start;
  for (; now - start < 1e6 * ms; now = bench_now_ns()) {
    calls(w, part);
    done += part;
  }
  return (now - start) / (double)done;
}

static void explain(const worker *w) {
  char text[256];
  attune_decision d;
  bench_check(attune_gemm_problem_format(text, sizeof text, &w->given, &w->operands), "attune_gemm_problem_format");
  bench_check(attune_explain(w->tuner, w->device, text, &d), text);
  printf("%d %.3f %.3f %s %s|%s\n", (int)d.source, d.time_ns, d.unsure ? 0.0 : d.default_time_ns, d.implementation,
         d.configuration[0] ? d.configuration : "-", text);
}

static void load_blas(worker *w, const char *blas) {
  void *handle = dlopen(blas, RTLD_NOW | RTLD_LOCAL);
  if (!handle) bench_die("%s: %s", blas, dlerror());
  const char *const names[] = {"cblas_dgemm", "cblas_sgemm", "cblas_dgemv", "cblas_sgemv"};
  void *const slots[] = {&w->dgemm, &w->sgemm, &w->dgemv, &w->sgemv};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    void *address = dlsym(handle, names[i]);
    if (!address) bench_die("%s has no %s", blas, names[i]);
    memcpy(slots[i], &address, sizeof address);
  }
}

static void open_tuner(worker *w, const char *database, bool tune) {
  attune_tuner_options settings = ATTUNE_TUNER_OPTIONS_INIT;
  settings.database = database;
  settings.mode = tune ? ATTUNE_MODE_TUNE : ATTUNE_MODE_CACHED;
  bench_check(attune_device_get(&w->device, "host"), "host");
  bench_check(attune_tuner_create(&w->tuner, &settings), "attune_tuner_create");
}

int outside_worker(const char *blas, const char *database, bool tune) {
  worker w = {0};
  char line[512];
  if (blas)
    load_blas(&w, blas);
  else
    open_tuner(&w, database, tune);
  while (fgets(line, sizeof line, stdin)) {
    outside_place place;
    double ms = 0;
    int at = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "open %zu %zu %n", &place.alignment, &place.spacing, &at) == 2 && at > 0)
      puts(open_problem(&w, place, line + at) ? "ok" : "none");
    else if (sscanf(line, "run %lf", &ms) == 1)
      printf("%.4f\n", run(&w, ms));
    else if (strcmp(line, "explain") == 0)
      explain(&w);
    else
      bench_die("worker: unknown command \"%s\"", line);
    fflush(stdout);
  }
  attune_tuner_destroy(w.tuner);
  free(w.memory);
  return 0;
}
