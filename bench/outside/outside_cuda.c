/* SPDX-License-Identifier: Apache-2.0
 * outside_cuda.c: the CUDA side of bench_outside: memory from cudaMalloc, a stream and graphs of the program's own, and
 * cublasGemmEx called by the program. */
#include "bench/outside/outside.h"

#include "bench/common/cublas.h"
#include "bench/common/tool.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_CALLS = 40, LEAST_CALLS = 4, MOST_WINDOWS = 64 };
#define WORKSPACE_BYTES ((size_t)64 << 20) /* ATTUNE_WORKSPACE_DEFAULT, for both */
#define COLD_BYTES ((size_t)256 << 20)
#define BLOCK_BYTES ((size_t)64 << 20)
#define TARGET_NS 700e3

typedef struct cuda_state {
  attune_tuner *tuner;
  attune_device *device;
  attune_stream *stream;
  cudaStream_t native;
  cudaEvent_t start, stop;
  cublasHandle_t blas;
  void *workspace;
  char *block; /* random numbers, for the present dtype */
  attune_dtype block_dtype;
  char *area;
  size_t area_bytes;
  const bench_problem *problem;
  bench_place place;
  int calls, sets;
  bench_windows ways[2]; /* attune, vendor */
  unsigned turn;
} cuda_state;

/* The pointers of set `set` at the present place. */
static void pointers(const cuda_state *cuda, int set, char *out[3]) {
  size_t start[3];
  bench_lay_out(cuda->problem, cuda->place, set, start);
  for (int i = 0; i < 3; i++) out[i] = cuda->area + start[i];
}

static bool vendor_call(const cuda_state *cuda, int set) {
  char *p[3];
  pointers(cuda, set, p);
  return bench_cublas_gemm(cuda->blas, &cuda->problem->gemm, p[0], p[1], p[2], CUBLAS_GEMM_DEFAULT) ==
         CUBLAS_STATUS_SUCCESS;
}

static attune_gemm_operands operands_of(const cuda_state *cuda, int set) {
  char *p[3];
  pointers(cuda, set, p);
  return (attune_gemm_operands){.alpha = 1.0, .a = p[0], .b = p[1], .d = p[2]};
}

static bool attune_call(const cuda_state *cuda, int set) {
  const attune_gemm_operands operands = operands_of(cuda, set);
  return attune_gemm(cuda->tuner, cuda->stream, &cuda->problem->given, &operands) == ATTUNE_OK;
}

static bool give_attune(void *arg, int set) {
  return attune_call(arg, set);
}
static bool give_vendor(void *arg, int set) {
  return vendor_call(arg, set);
}

/* A block of uniform random numbers in [-1,1] of the dtype. */
static void make_block(cuda_state *cuda, attune_dtype dtype) {
  if (cuda->block && cuda->block_dtype == dtype) return;
  void *host = bench_random_new(dtype, BLOCK_BYTES, 20260101u + (uint64_t)dtype);
  if (!cuda->block) bench_cuda_must(cudaMalloc((void **)&cuda->block, BLOCK_BYTES), "cudaMalloc");
  bench_cuda_must(cudaMemcpy(cuda->block, host, BLOCK_BYTES, cudaMemcpyHostToDevice), "cudaMemcpy");
  free(host);
  cuda->block_dtype = dtype;
}

/* `bytes` of random numbers from an address that is a multiple of the elements. */
static void fill_area(cuda_state *cuda, size_t bytes) {
  if (bytes > cuda->area_bytes) {
    if (cuda->area) bench_cuda_must(cudaFree(cuda->area), "cudaFree");
    bench_cuda_must(cudaMalloc((void **)&cuda->area, bytes), "cudaMalloc");
    cuda->area_bytes = bytes;
  }
  for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
    const size_t part = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
    bench_cuda_must(cudaMemcpyAsync(cuda->area + at, cuda->block, part, cudaMemcpyDeviceToDevice, cuda->native),
                    "cudaMemcpy");
  }
}

static cudaGraphExec_t capture(cuda_state *cuda, int index, int first) {
  cudaGraphExec_t exec =
      bench_capture(cuda->native, index ? give_vendor : give_attune, cuda, first, cuda->calls, cuda->sets);
  if (!exec)
    bench_die("%s: %s failed in a capture: %s", cuda->problem->name, index ? "cuBLAS" : "attune",
              attune_last_message());
  return exec;
}

/* Nanoseconds of one vendor call after a first one. */
static double once_ns(cuda_state *cuda) {
  for (int i = 0; i < 2; i++)
    if (!vendor_call(cuda, i % cuda->sets)) return 0.0;
  bench_cuda_must(cudaEventRecord(cuda->start, cuda->native), "cudaEventRecord");
  for (int i = 0; i < 3; i++) (void)vendor_call(cuda, i % cuda->sets);
  bench_cuda_must(cudaEventRecord(cuda->stop, cuda->native), "cudaEventRecord");
  const double ns = bench_between(cuda->start, cuda->stop);
  return ns > 0 ? ns / 3.0 : 1.0;
}

static int clamp(double value, int least, int most) {
  return value < least ? least : value > most ? most : (int)value;
}

static bool cuda_open(outside_side *side, const bench_problem *problem, bench_place place) {
  cuda_state *cuda = side->state;
  cuda->problem = problem;
  cuda->place = place;
  size_t start[3];
  const size_t one = bench_lay_out(problem, place, 0, start);
  const size_t touched = problem->bytes_a + problem->bytes_b + problem->bytes_d;
  cuda->sets = clamp((double)(COLD_BYTES / touched) + 1.0, 1, MOST_CALLS * MOST_WINDOWS);
  while (cuda->sets > 1 && (size_t)cuda->sets * one > ((size_t)12 << 30)) cuda->sets--;
  make_block(cuda, problem->gemm.dtype);
  fill_area(cuda, (size_t)cuda->sets * one + 512);
  bench_cublas_obey(cuda->blas, &problem->gemm); /* both sides have the same workspace */
  const double vendor_ns = once_ns(cuda);
  if (vendor_ns == 0.0) return false;
  for (int i = 0; i < 2; i++)
    if (!attune_call(cuda, i % cuda->sets)) bench_die("%s: attune_gemm: %s", problem->name, attune_last_message());
  bench_cuda_must(cudaStreamSynchronize(cuda->native), "cudaStreamSynchronize");
  cuda->calls = clamp(TARGET_NS / vendor_ns, LEAST_CALLS, MOST_CALLS);
  for (int index = 0; index < 2; index++) {
    const int windows = cuda->sets / cuda->calls;
    cuda->ways[index].count = windows < 1 ? 1 : windows > MOST_WINDOWS ? MOST_WINDOWS : windows;
    for (int w = 0; w < cuda->ways[index].count; w++)
      cuda->ways[index].graphs[w] = capture(cuda, index, w * cuda->calls);
  }
  /* A long product heats the device up: both ways run until its clocks have settled. */
  const double warm_ns = vendor_ns * cuda->calls > 1e6 ? 60e6 : 3e6;
  for (double spent = 0; spent < warm_ns; spent += 2.0 * vendor_ns * cuda->calls)
    for (int index = 0; index < 2; index++) bench_windows_replay(&cuda->ways[index], &cuda->turn, cuda->native);
  bench_cuda_must(cudaStreamSynchronize(cuda->native), "cudaStreamSynchronize");
  return true;
}

/* One replay between events behind an untimed one, so that no launch cost shows. */
static double cuda_sample(outside_side *side, int way) {
  cuda_state *cuda = side->state;
  return bench_windows_time(&cuda->ways[way], &cuda->turn, cuda->native, cuda->start, cuda->stop) / cuda->calls;
}

static void cuda_explain(outside_side *side, bench_choice *out) {
  cuda_state *cuda = side->state;
  const attune_gemm_operands operands = operands_of(cuda, 0);
  char text[256];
  bench_check(attune_gemm_problem_format(text, sizeof text, &cuda->problem->given, &operands),
              "attune_gemm_problem_format");
  bench_explain(out, cuda->tuner, cuda->device, text);
}

static void cuda_close(outside_side *side) {
  cuda_state *cuda = side->state;
  for (int index = 0; index < 2; index++) bench_windows_drop(&cuda->ways[index]);
}

static void cuda_end(outside_side *side) {
  cuda_state *cuda = side->state;
  attune_tuner_destroy(cuda->tuner);
  attune_stream_destroy(cuda->stream);
  bench_cublas_must(cublasDestroy(cuda->blas), "cublasDestroy");
  bench_cuda_must(cudaFree(cuda->workspace), "cudaFree");
  bench_cuda_must(cudaFree(cuda->area), "cudaFree");
  bench_cuda_must(cudaFree(cuda->block), "cudaFree");
  bench_cuda_must(cudaEventDestroy(cuda->start), "cudaEventDestroy");
  bench_cuda_must(cudaEventDestroy(cuda->stop), "cudaEventDestroy");
  bench_cuda_must(cudaStreamDestroy(cuda->native), "cudaStreamDestroy");
  free(cuda);
}

void outside_cuda_open(outside_side *side, const outside_options *options) {
  cuda_state *cuda = calloc(1, sizeof *cuda);
  if (!cuda) bench_die("out of memory");
  side->state = cuda;
  bench_check(attune_device_get(&cuda->device, options->device), "--device");
  bench_cuda_must(cudaSetDevice(bench_ordinal(cuda->device)), "cudaSetDevice");
  bench_cuda_must(cudaStreamCreateWithFlags(&cuda->native, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  bench_cuda_must(cudaEventCreate(&cuda->start), "cudaEventCreate");
  bench_cuda_must(cudaEventCreate(&cuda->stop), "cudaEventCreate");
  bench_cuda_must(cudaMalloc(&cuda->workspace, WORKSPACE_BYTES), "cudaMalloc");
  cuda->blas = bench_cublas_open(cuda->native, cuda->workspace, WORKSPACE_BYTES);
  bench_check(attune_stream_wrap(&cuda->stream, cuda->device, cuda->native), "attune_stream_wrap");
  attune_tuner_options settings = ATTUNE_TUNER_OPTIONS_INIT;
  settings.database = options->database;
  settings.mode = options->tune ? ATTUNE_MODE_TUNE : ATTUNE_MODE_CACHED;
  bench_check(attune_tuner_create(&cuda->tuner, &settings), "attune_tuner_create");
  if (attune_tuner_database_status(cuda->tuner) != ATTUNE_OK) bench_die("no database: %s", attune_last_message());
  side->vendor = "cublasGemmEx";
  side->method = "memory of cudaMalloc, inputs cold (more than 256 MiB), graphs of 4 to 40 calls on the program's own "
                 "stream between events, both ways in turns in one process";
  side->floor_ratio = 0.99;
  side->claim_tolerance = 0.03;
  side->open = cuda_open;
  side->sample = cuda_sample;
  side->explain = cuda_explain;
  side->close = cuda_close;
  side->end = cuda_end;
  bench_cuda_libraries(side->libraries, sizeof side->libraries);
}
