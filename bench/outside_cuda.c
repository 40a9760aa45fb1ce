/* SPDX-License-Identifier: Apache-2.0
 * outside_cuda.c: the CUDA side of bench_outside: memory from cudaMalloc, a stream and graphs of the program's own, and
 * cublasGemmEx called by the program. */
#include "bench/outside.h"

#include "bench/tool.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_CALLS = 40, LEAST_CALLS = 4, MOST_WINDOWS = 64 };
#define WORKSPACE_BYTES ((size_t)64 << 20) /* ATTUNE_WORKSPACE_DEFAULT, for both */
#define COLD_BYTES ((size_t)256 << 20)
#define BLOCK_BYTES ((size_t)64 << 20)
#define TARGET_NS 700e3

typedef struct way {
  cudaGraphExec_t graphs[MOST_WINDOWS];
  int windows;
} way;

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
  const outside_problem *problem;
  outside_place place;
  int calls, sets;
  way ways[2]; /* attune, vendor */
  unsigned turn;
} cuda_state;

static void must(cudaError_t error, const char *what) {
  if (error != cudaSuccess) bench_die("%s: %s", what, cudaGetErrorString(error));
}

static void blas_must(cublasStatus_t status, const char *what) {
  if (status != CUBLAS_STATUS_SUCCESS) bench_die("%s: %s", what, cublasGetStatusString(status));
}

static cudaDataType_t data_type(attune_dtype dtype) {
  if (dtype == ATTUNE_F64) return CUDA_R_64F;
  if (dtype == ATTUNE_F32) return CUDA_R_32F;
  return dtype == ATTUNE_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

static cublasComputeType_t compute_type(const attune_gemm_problem *g) {
  if (g->dtype == ATTUNE_F64) return CUBLAS_COMPUTE_64F;
  return g->dtype == ATTUNE_F32 && g->contract.accuracy == ATTUNE_REDUCED ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                          : CUBLAS_COMPUTE_32F;
}

/* The pointers of set `set` at the present place. */
static void pointers(const cuda_state *cuda, int set, char *out[3]) {
  size_t start[3];
  outside_lay_out(cuda->problem, cuda->place, set, start);
  for (int i = 0; i < 3; i++) out[i] = cuda->area + start[i];
}

static bool vendor_call(const cuda_state *cuda, int set) {
  static const double one_f64 = 1.0, zero_f64 = 0.0;
  static const float one_f32 = 1.0f, zero_f32 = 0.0f;
  const attune_gemm_problem *g = &cuda->problem->gemm;
  const bool f64 = g->dtype == ATTUNE_F64;
  const void *one = f64 ? (const void *)&one_f64 : &one_f32, *zero = f64 ? (const void *)&zero_f64 : &zero_f32;
  const cublasOperation_t ta = g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, tb = g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cudaDataType_t in = data_type(g->dtype), out = data_type(g->dtype_out);
  char *p[3];
  pointers(cuda, set, p);
  if (g->batch == 1)
    return cublasGemmEx(cuda->blas, ta, tb, (int)g->m, (int)g->n, (int)g->k, one, p[0], in, (int)g->lda, p[1], in,
                        (int)g->ldb, zero, p[2], out, (int)g->ldd, compute_type(g),
                        CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
  return cublasGemmStridedBatchedEx(cuda->blas, ta, tb, (int)g->m, (int)g->n, (int)g->k, one, p[0], in, (int)g->lda,
                                    g->stride_a, p[1], in, (int)g->ldb, g->stride_b, zero, p[2], out, (int)g->ldd,
                                    g->stride_d, (int)g->batch, compute_type(g),
                                    CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
}

/* The problem as the program gives it: broadcast strides by name again. */
static attune_gemm_problem given(const cuda_state *cuda) {
  attune_gemm_problem g = cuda->problem->gemm;
  if (g.batch > 1 && g.stride_a == 0) g.stride_a = ATTUNE_BROADCAST;
  if (g.batch > 1 && g.stride_b == 0) g.stride_b = ATTUNE_BROADCAST;
  return g;
}

static attune_gemm_operands operands_of(const cuda_state *cuda, int set) {
  char *p[3];
  pointers(cuda, set, p);
  return (attune_gemm_operands){.alpha = 1.0, .a = p[0], .b = p[1], .d = p[2]};
}

static bool attune_call(const cuda_state *cuda, int set) {
  const attune_gemm_problem g = given(cuda);
  const attune_gemm_operands operands = operands_of(cuda, set);
  return attune_gemm(cuda->tuner, cuda->stream, &g, &operands) == ATTUNE_OK;
}

static bool call(const cuda_state *cuda, int index, int set) {
  return index == 0 ? attune_call(cuda, set) : vendor_call(cuda, set);
}

static double next_random(uint64_t *state) {
  *state += 0x9E3779B97F4A7C15u;
  uint64_t z = (*state ^ (*state >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (double)(int64_t)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1.0;
}

static void write_element(char *to, attune_dtype dtype, double value) {
  const float single = (float)value;
  uint32_t bits;
  __builtin_memcpy(&bits, &single, sizeof bits);
  switch (dtype) {
  case ATTUNE_F64: __builtin_memcpy(to, &value, 8); break;
  case ATTUNE_F32: __builtin_memcpy(to, &single, 4); break;
  case ATTUNE_BF16: *(uint16_t *)(void *)to = (uint16_t)(bits >> 16); break;
  case ATTUNE_F16: { /* normal numbers only: small ones become zero */
    const int exponent = (int)(bits >> 23 & 255) - 112;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    *(uint16_t *)(void *)to = exponent < 1 ? sign : (uint16_t)(sign | (unsigned)exponent << 10 | (bits >> 13 & 1023));
    break;
  }
  default: break; /* no GEMM has the others */
  }
}

/* A block of uniform random numbers in [-1, 1) of the dtype. */
static void make_block(cuda_state *cuda, attune_dtype dtype) {
  if (cuda->block && cuda->block_dtype == dtype) return;
  const size_t element = attune_dtype_size(dtype);
  char *host = malloc(BLOCK_BYTES);
  if (!host) bench_die("out of memory for random numbers");
  uint64_t state = 20260101u + (uint64_t)dtype;
  for (size_t at = 0; at < BLOCK_BYTES; at += element) write_element(host + at, dtype, next_random(&state));
  if (!cuda->block) must(cudaMalloc((void **)&cuda->block, BLOCK_BYTES), "cudaMalloc");
  must(cudaMemcpy(cuda->block, host, BLOCK_BYTES, cudaMemcpyHostToDevice), "cudaMemcpy");
  free(host);
  cuda->block_dtype = dtype;
}

/* `bytes` of random numbers from an address that is a multiple of the elements. */
static void fill_area(cuda_state *cuda, size_t bytes) {
  if (bytes > cuda->area_bytes) {
    if (cuda->area) must(cudaFree(cuda->area), "cudaFree");
    must(cudaMalloc((void **)&cuda->area, bytes), "cudaMalloc");
    cuda->area_bytes = bytes;
  }
  for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
    const size_t part = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
    must(cudaMemcpyAsync(cuda->area + at, cuda->block, part, cudaMemcpyDeviceToDevice, cuda->native), "cudaMemcpy");
  }
}

static cudaGraphExec_t capture(cuda_state *cuda, int index, int first) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  bool good = true;
  must(cudaStreamBeginCapture(cuda->native, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < cuda->calls && good; i++) good = call(cuda, index, (first + i) % cuda->sets);
  must(cudaStreamEndCapture(cuda->native, &graph), "cudaStreamEndCapture");
  if (!good)
    bench_die("%s: %s failed in a capture: %s", cuda->problem->name, index ? "cuBLAS" : "attune",
              attune_last_message());
  must(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  must(cudaGraphUpload(exec, cuda->native), "cudaGraphUpload");
  must(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return exec;
}

/* Nanoseconds of one vendor call after a first one. */
static double once_ns(cuda_state *cuda) {
  float ms = 0;
  for (int i = 0; i < 2; i++)
    if (!vendor_call(cuda, i % cuda->sets)) return 0.0;
  must(cudaEventRecord(cuda->start, cuda->native), "cudaEventRecord");
  for (int i = 0; i < 3; i++) (void)vendor_call(cuda, i % cuda->sets);
  must(cudaEventRecord(cuda->stop, cuda->native), "cudaEventRecord");
  must(cudaStreamSynchronize(cuda->native), "cudaStreamSynchronize");
  must(cudaEventElapsedTime(&ms, cuda->start, cuda->stop), "cudaEventElapsedTime");
  return ms > 0 ? ms * 1e6 / 3.0 : 1.0;
}

static int clamp(double value, int least, int most) {
  return value < least ? least : value > most ? most : (int)value;
}

static bool cuda_open(outside_side *side, const outside_problem *problem, outside_place place) {
  cuda_state *cuda = side->state;
  cuda->problem = problem;
  cuda->place = place;
  size_t start[3];
  const size_t one = outside_lay_out(problem, place, 0, start);
  const size_t touched = problem->bytes_a + problem->bytes_b + problem->bytes_d;
  cuda->sets = clamp((double)(COLD_BYTES / touched) + 1.0, 1, MOST_CALLS * MOST_WINDOWS);
  while (cuda->sets > 1 && (size_t)cuda->sets * one > ((size_t)12 << 30)) cuda->sets--;
  make_block(cuda, problem->gemm.dtype);
  fill_area(cuda, (size_t)cuda->sets * one + 512);
  /* Partial sums in the output type are what strict forbids; both sides have the same workspace. */
  const bool reduced = problem->gemm.contract.accuracy == ATTUNE_REDUCED;
  blas_must(
      cublasSetMathMode(cuda->blas, reduced ? CUBLAS_DEFAULT_MATH : CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
      "cublasSetMathMode");
  const double vendor_ns = once_ns(cuda);
  if (vendor_ns == 0.0) return false;
  for (int i = 0; i < 2; i++)
    if (!attune_call(cuda, i % cuda->sets)) bench_die("%s: attune_gemm: %s", problem->name, attune_last_message());
  must(cudaStreamSynchronize(cuda->native), "cudaStreamSynchronize");
  cuda->calls = clamp(TARGET_NS / vendor_ns, LEAST_CALLS, MOST_CALLS);
  for (int index = 0; index < 2; index++) {
    const int windows = cuda->sets / cuda->calls;
    cuda->ways[index].windows = windows < 1 ? 1 : windows > MOST_WINDOWS ? MOST_WINDOWS : windows;
    for (int w = 0; w < cuda->ways[index].windows; w++)
      cuda->ways[index].graphs[w] = capture(cuda, index, w * cuda->calls);
  }
  /* A long product heats the device up: both ways run until its clocks have settled. */
  const double warm_ns = vendor_ns * cuda->calls > 1e6 ? 60e6 : 3e6;
  for (double spent = 0; spent < warm_ns; spent += 2.0 * vendor_ns * cuda->calls)
    for (int index = 0; index < 2; index++)
      must(cudaGraphLaunch(cuda->ways[index].graphs[cuda->turn++ % (unsigned)cuda->ways[index].windows], cuda->native),
           "cudaGraphLaunch");
  must(cudaStreamSynchronize(cuda->native), "cudaStreamSynchronize");
  return true;
}

/* One replay between events behind an untimed one, so that no launch cost shows. */
static double sample(cuda_state *cuda, int index) {
  way *w = &cuda->ways[index];
  float ms = 0;
  must(cudaGraphLaunch(w->graphs[cuda->turn++ % (unsigned)w->windows], cuda->native), "cudaGraphLaunch");
  must(cudaEventRecord(cuda->start, cuda->native), "cudaEventRecord");
  must(cudaGraphLaunch(w->graphs[cuda->turn++ % (unsigned)w->windows], cuda->native), "cudaGraphLaunch");
  must(cudaEventRecord(cuda->stop, cuda->native), "cudaEventRecord");
  must(cudaStreamSynchronize(cuda->native), "cudaStreamSynchronize");
  must(cudaEventElapsedTime(&ms, cuda->start, cuda->stop), "cudaEventElapsedTime");
  return ms * 1e6 / cuda->calls;
}

static outside_round cuda_round(outside_side *side, int turn) {
  cuda_state *cuda = side->state;
  outside_round r;
  if (turn % 2) r.vendor_ns = sample(cuda, 1);
  r.attune_ns = sample(cuda, 0);
  if (turn % 2 == 0) r.vendor_ns = sample(cuda, 1);
  return r;
}

static void cuda_explain(outside_side *side, attune_decision *out) {
  cuda_state *cuda = side->state;
  const attune_gemm_problem g = given(cuda);
  const attune_gemm_operands operands = operands_of(cuda, 0);
  char text[256];
  bench_check(attune_gemm_problem_format(text, sizeof text, &g, &operands), "attune_gemm_problem_format");
  bench_check(attune_explain(cuda->tuner, cuda->device, text, out), text);
}

static void cuda_close(outside_side *side) {
  cuda_state *cuda = side->state;
  for (int index = 0; index < 2; index++)
    for (int w = 0; w < cuda->ways[index].windows; w++)
      must(cudaGraphExecDestroy(cuda->ways[index].graphs[w]), "cudaGraphExecDestroy");
}

static void cuda_end(outside_side *side) {
  cuda_state *cuda = side->state;
  attune_tuner_destroy(cuda->tuner);
  attune_stream_destroy(cuda->stream);
  blas_must(cublasDestroy(cuda->blas), "cublasDestroy");
  must(cudaFree(cuda->workspace), "cudaFree");
  must(cudaFree(cuda->area), "cudaFree");
  must(cudaFree(cuda->block), "cudaFree");
  must(cudaEventDestroy(cuda->start), "cudaEventDestroy");
  must(cudaEventDestroy(cuda->stop), "cudaEventDestroy");
  must(cudaStreamDestroy(cuda->native), "cudaStreamDestroy");
  free(cuda);
}

static void name_libraries(outside_side *side) {
  int runtime = 0, driver = 0, version = 0;
  cuda_state *cuda = side->state;
  must(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  blas_must(cublasGetVersion(cuda->blas, &version), "cublasGetVersion");
  snprintf(side->libraries, sizeof side->libraries, "CUDA %d.%d, driver %d.%d, cuBLAS %d", runtime / 1000,
           runtime % 1000 / 10, driver / 1000, driver % 1000 / 10, version);
}

void outside_cuda_open(outside_side *side, const outside_options *options) {
  cuda_state *cuda = calloc(1, sizeof *cuda);
  if (!cuda) bench_die("out of memory");
  side->state = cuda;
  int ordinal = 0;
  bench_check(attune_device_get(&cuda->device, options->device), "--device");
  (void)sscanf(attune_device_name(cuda->device), "cuda:%d", &ordinal);
  must(cudaSetDevice(ordinal), "cudaSetDevice");
  must(cudaStreamCreateWithFlags(&cuda->native, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  must(cudaEventCreate(&cuda->start), "cudaEventCreate");
  must(cudaEventCreate(&cuda->stop), "cudaEventCreate");
  blas_must(cublasCreate(&cuda->blas), "cublasCreate");
  must(cudaMalloc(&cuda->workspace, WORKSPACE_BYTES), "cudaMalloc");
  blas_must(cublasSetStream(cuda->blas, cuda->native), "cublasSetStream");
  blas_must(cublasSetWorkspace(cuda->blas, cuda->workspace, WORKSPACE_BYTES), "cublasSetWorkspace");
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
  side->round = cuda_round;
  side->explain = cuda_explain;
  side->close = cuda_close;
  side->end = cuda_end;
  name_libraries(side);
}
