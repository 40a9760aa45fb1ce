/* SPDX-License-Identifier: Apache-2.0
 * graph_cuda.c: bench_graph [--markdown FILE]: a graph of 100 bf16 GEMMs on the GPU: attune's; the same calls captured
 * by hand with the CUDA API, so the same kernels; cublasGemmEx captured by hand. Two times each: on the device, from
 * replay to replay, and of the host's call. The ways are interleaved. Exits with 1 when attune's takes more than 1.05
 * times the one by hand. On the host: parts_graph.c; torch_graph.py measures PyTorch's. */
#include <attune/graph.h>

#include "bench/common/tool.h"
#include "bench/common/turns.h"
#include "bench/runtime/graph_work.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#define MOST 1.05 /* attune's graph against the one by hand */

enum { ROUNDS = 61, REPLAYS = 20, WAYS = 3, WARMUPS = 3 };

static void cuda(cudaError_t error, const char *what) {
  if (error != cudaSuccess) bench_die("%s: %s", what, cudaGetErrorString(error));
}

typedef struct scene {
  graph_work work;
  cudaStream_t native;
  cublasHandle_t blas;
  void *workspace;
  attune_graph *graph;
  cudaGraphExec_t by_hand[WAYS]; /* [0]: none, it is attune's */
  cudaEvent_t start, stop;
  bench_turns host; /* the times of the calls */
} scene;

static void give_cublas(scene *s) {
  const float alpha = 1e-3f, beta = 0.0f;
  for (int i = 0; i < GRAPH_GEMMS; i++)
    if (cublasGemmEx(s->blas, CUBLAS_OP_N, CUBLAS_OP_N, GRAPH_SIDE, GRAPH_SIDE, GRAPH_SIDE, &alpha, s->work.a,
                     CUDA_R_16BF, GRAPH_SIDE, i % 2 ? s->work.y : s->work.x, CUDA_R_16BF, GRAPH_SIDE, &beta,
                     i % 2 ? s->work.x : s->work.y, CUDA_R_16BF, GRAPH_SIDE, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS)
      bench_die("cublasGemmEx failed");
}

static cudaGraphExec_t capture_by_hand(scene *s, int way) {
  cudaGraph_t captured = NULL;
  cudaGraphExec_t executable = NULL;
  cuda(cudaStreamBeginCapture(s->native, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  if (way == 1)
    bench_check(graph_work_give(&s->work, s->work.stream), "attune_gemm");
  else
    give_cublas(s);
  cuda(cudaStreamEndCapture(s->native, &captured), "cudaStreamEndCapture");
  cuda(cudaGraphInstantiateWithFlags(&executable, captured, 0), "cudaGraphInstantiateWithFlags");
  cuda(cudaGraphDestroy(captured), "cudaGraphDestroy");
  cuda(cudaGraphUpload(executable, s->native), "cudaGraphUpload");
  return executable;
}

static void open_scene(scene *s, attune_device *device) {
  const size_t workspace = (size_t)32 << 20;
  graph_work_open(&s->work, device, ATTUNE_BF16);
  s->native = (cudaStream_t)attune_stream_native(s->work.stream);
  bench_check(attune_alloc(&s->workspace, s->work.stream, workspace), "attune_alloc");
  if (cublasCreate(&s->blas) != CUBLAS_STATUS_SUCCESS || cublasSetStream(s->blas, s->native) != CUBLAS_STATUS_SUCCESS ||
      cublasSetWorkspace(s->blas, s->workspace, workspace) != CUBLAS_STATUS_SUCCESS)
    bench_die("cuBLAS could not be opened");
  give_cublas(s);
  cuda(cudaStreamSynchronize(s->native), "cudaStreamSynchronize");
  cuda(cudaEventCreate(&s->start), "cudaEventCreate");
  cuda(cudaEventCreate(&s->stop), "cudaEventCreate");
  bench_check(attune_graph_create(&s->graph, device), "attune_graph_create");
  bench_check(attune_graph_capture_callback(s->graph, s->work.stream, NULL, graph_work_give, &s->work),
              "attune_graph_capture_callback");
  for (int way = 1; way < WAYS; way++) s->by_hand[way] = capture_by_hand(s, way);
}

static void close_scene(scene *s) {
  cuda(cudaStreamSynchronize(s->native), "cudaStreamSynchronize");
  for (int way = 1; way < WAYS; way++) cuda(cudaGraphExecDestroy(s->by_hand[way]), "cudaGraphExecDestroy");
  attune_graph_destroy(s->graph);
  cuda(cudaEventDestroy(s->start), "cudaEventDestroy");
  cuda(cudaEventDestroy(s->stop), "cudaEventDestroy");
  cublasDestroy(s->blas);
  bench_check(attune_free(s->workspace, s->work.stream), "attune_free");
  graph_work_close(&s->work);
}

static void launch(scene *s, int way) {
  if (way == 0)
    bench_check(attune_graph_replay(s->graph, s->work.stream), "attune_graph_replay");
  else
    cuda(cudaGraphLaunch(s->by_hand[way], s->native), "cudaGraphLaunch");
}

/* The device's time from replay to replay; the host's time of a call goes into s->host. One replay goes first, so that
 * the device never waits for the host. */
static double sample(void *arg, int way, int round) {
  scene *s = arg;
  float ms = 0.0f;
  launch(s, way);
  cuda(cudaEventRecord(s->start, s->native), "cudaEventRecord");
  const double start = bench_now_ns();
  for (int i = 0; i < REPLAYS; i++) launch(s, way);
  if (round >= 0) s->host.ns[way][round] = (bench_now_ns() - start) / REPLAYS;
  cuda(cudaEventRecord(s->stop, s->native), "cudaEventRecord");
  cuda(cudaEventSynchronize(s->stop), "cudaEventSynchronize");
  cuda(cudaEventElapsedTime(&ms, s->start, s->stop), "cudaEventElapsedTime");
  return 1e6 * (double)ms / REPLAYS;
}

static bool report(void) {
  static const char *const names[WAYS] = {"attune_graph_replay",
                                          "the same calls, cudaStreamBeginCapture and cudaGraphLaunch",
                                          "cublasGemmEx, the same way"};
  static scene s = {.host = {.ways = WAYS, .rounds = ROUNDS}};
  static bench_turns turns;
  attune_device *device = NULL;
  bench_check(attune_device_get(&device, "cuda:0"), "cuda:0");
  open_scene(&s, device);
  bench_take_turns(&turns, WAYS, WARMUPS, ROUNDS, BENCH_ROTATED, sample, &s);
  bench_head("A graph of GEMMs beside one by hand", device, NULL, "ways in turns, medians of the rounds");
  bench_table("| graph of %d GEMMs bf16 %d^3 | device us, median of %d >| host us >| device / by hand >|", GRAPH_GEMMS,
              GRAPH_SIDE, ROUNDS);
  for (int way = 0; way < WAYS; way++)
    bench_line("| %s | %.2f | %.2f | %.3f |", names[way], bench_turns_median(&turns, way) * 1e-3,
               bench_turns_median(&s.host, way) * 1e-3,
               bench_turns_median(&turns, way) / bench_turns_median(&turns, 1));
  close_scene(&s);
  const double ratio = bench_turns_median(&turns, 0) / bench_turns_median(&turns, 1);
  bench_line("%s", "");
  bench_line("attune's graph takes %.3f times the one by hand; at most %.2f is the goal: %s", ratio, MOST,
             ratio <= MOST ? "met" : "MISSED");
  return ratio <= MOST;
}

int main(int argc, char **argv) {
  const char *markdown = NULL;
  const bench_option table[] = {{"markdown", BENCH_TEXT, &markdown, 0, 0}, {NULL, BENCH_FLAG, NULL, 0, 0}};
  (void)bench_read_options(argc, argv, table, "usage: bench_graph [--markdown FILE]\n", NULL, 0);
  bench_markdown_open(markdown);
  const bool met = report();
  bench_markdown_close();
  return met ? 0 : 1;
}
