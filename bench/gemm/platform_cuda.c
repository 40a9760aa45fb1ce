/* SPDX-License-Identifier: Apache-2.0
 * platform_cuda.c: timing on CUDA. A sample is one replay of a graph of several calls over cold inputs, between events,
 * queued behind an untimed replay of the same way so that no launch cost shows. What cannot be captured is timed
 * eagerly behind a gate. */
#include "bench/gemm/gemm.h"

#include "bench/common/cublas.h"
#include "bench/common/tool.h"
#include "bench/gemm/peers_cuda.h"

#include <stdatomic.h>
#include <stdlib.h>

#define GATE_LIMIT_NS 50e6

typedef struct cuda_state {
  cudaStream_t stream; /* the program's own, wrapped for attune */
  cudaEvent_t start, stop;
  bench_cuda_peers *peers;
  bench_windows windows[BENCH_WAYS];
  bench_platform *platform; /* whose present way is captured */
  bench_way *way;
  const bench_sets *sets;
  int calls;
  unsigned turn; /* the next window, over all ways, so that consecutive samples never meet the same sets */
} cuda_state;

static bool give(void *arg, int set) {
  cuda_state *cuda = arg;
  return cuda->way->enqueue(cuda->platform, cuda->way, &cuda->sets->items[set]);
}

static bool cuda_ready(bench_platform *platform, int index, const bench_sets *sets, int calls) {
  cuda_state *cuda = platform->state;
  bench_way *way = &platform->ways[index];
  cuda->sets = sets;
  cuda->calls = calls;
  /* Eagerly first: modules load, AUTOTUNE chooses; neither may happen in a capture. */
  for (int i = 0; i < 2; i++)
    if (!way->enqueue(platform, way, &sets->items[i % sets->count])) return false;
  bench_cuda_must(cudaStreamSynchronize(cuda->stream), way->name);
  int windows = sets->count <= calls ? 1 : sets->count / calls;
  if (windows > BENCH_WINDOWS_MOST) windows = BENCH_WINDOWS_MOST;
  cuda->platform = platform;
  cuda->way = way;
  bench_windows *made = &cuda->windows[index];
  for (made->count = 0; made->count < windows; made->count++) {
    made->graphs[made->count] = bench_capture(cuda->stream, give, cuda, made->count * calls, calls, sets->count);
    if (!made->graphs[made->count]) break;
  }
  if (made->count < windows) way->note = "eager";
  bench_cuda_must(cudaStreamSynchronize(cuda->stream), way->name);
  return true;
}

static atomic_int gate_open;

/* Holds the stream until all calls are queued, but not for ever: a library that waits for the stream would hang. */
static void CUDART_CB gate(void *unused) {
  (void)unused;
  double start = bench_now_ns();
  while (!atomic_load(&gate_open) && bench_now_ns() - start < GATE_LIMIT_NS) {}
}

static bool queue_eager(bench_platform *platform, int index) {
  cuda_state *cuda = platform->state;
  bench_way *way = &platform->ways[index];
  bool good = true;
  int first = (int)(cuda->turn++ % 1024u) * cuda->calls;
  for (int i = 0; i < cuda->calls && good; i++)
    good = way->enqueue(platform, way, &cuda->sets->items[(first + i) % cuda->sets->count]);
  return good;
}

/* Eagerly: behind a gate, and behind one untimed turn. */
static double eager_sample(bench_platform *platform, int index) {
  cuda_state *cuda = platform->state;
  atomic_store(&gate_open, 0);
  bench_cuda_must(cudaLaunchHostFunc(cuda->stream, gate, NULL), "cudaLaunchHostFunc");
  bool good = queue_eager(platform, index);
  bench_cuda_must(cudaEventRecord(cuda->start, cuda->stream), "cudaEventRecord");
  good = good && queue_eager(platform, index);
  bench_cuda_must(cudaEventRecord(cuda->stop, cuda->stream), "cudaEventRecord");
  atomic_store(&gate_open, 1);
  const double ns = bench_between(cuda->start, cuda->stop);
  return good ? ns / cuda->calls : -1.0;
}

static double cuda_sample(bench_platform *platform, int index) {
  cuda_state *cuda = platform->state;
  if (platform->ways[index].note != NULL) return eager_sample(platform, index);
  return bench_windows_time(&cuda->windows[index], &cuda->turn, cuda->stream, cuda->start, cuda->stop) / cuda->calls;
}

static void cuda_unready(bench_platform *platform) {
  cuda_state *cuda = platform->state;
  for (int way = 0; way < BENCH_WAYS; way++) bench_windows_drop(&cuda->windows[way]);
}

static void cuda_close(bench_platform *platform) {
  cuda_state *cuda = platform->state;
  bench_cuda_peers_close(cuda->peers, platform->stream);
  attune_stream_destroy(platform->stream);
  cudaEventDestroy(cuda->start);
  cudaEventDestroy(cuda->stop);
  cudaStreamDestroy(cuda->stream);
  free(cuda);
}

void bench_cuda_open(bench_platform *platform) {
  cuda_state *cuda = calloc(1, sizeof *cuda);
  if (cuda == NULL) bench_die("out of memory");
  platform->state = cuda;
  attune_device_properties properties = {0};
  bench_check(attune_device_get_properties(platform->device, &properties), "attune_device_get_properties");
  bench_cuda_must(cudaSetDevice(bench_ordinal(platform->device)), "cudaSetDevice");
  bench_cuda_must(cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  bench_cuda_must(cudaEventCreate(&cuda->start), "cudaEventCreate");
  bench_cuda_must(cudaEventCreate(&cuda->stop), "cudaEventCreate");
  bench_check(attune_stream_wrap(&platform->stream, platform->device, cuda->stream), "attune_stream_wrap");
  bench_cuda_libraries(platform->libraries, sizeof platform->libraries);
  platform->ways[platform->way_count++] = bench_attune_way();
  bench_cuda_peers_open(&cuda->peers, platform);
  size_t rotate = 2 * (size_t)properties.cache_bytes;
  platform->rotate_bytes = rotate > ((size_t)256 << 20) ? rotate : (size_t)256 << 20;
  platform->target_ns = 1.5e6;
  platform->min_calls = 4;
  platform->max_calls = 40;
  platform->floor_ratio = 0.99;
  platform->method = "cold inputs rotating over more than twice the L2 (256 MiB at least), graphs of 4 to 40 calls "
                     "replayed between events";
  platform->ready = cuda_ready;
  platform->sample = cuda_sample;
  platform->unready = cuda_unready;
  platform->close = cuda_close;
}
