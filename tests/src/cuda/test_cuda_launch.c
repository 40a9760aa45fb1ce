/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_launch.c: grids of three dimensions, dynamic shared memory, clusters and dependent launches on the device,
 * each in the stream and replayed from a graph whose nodes are looked at; and kernels unloaded under graphs. */
#include "src/cuda/jit/jit.h"

#include <attune/attune.h>

#include "tests/support/check.h"
#include "tests/support/folder.h"

#include <unistd.h>

#include "tests/src/cuda/jit_kernels.h"

#define VALUES 60000 /* of the memory that kernels write */
#define REPLAYS 3
#define NAPS 10000 /* of a millisecond, at most, until CUDA has let a destroyed graph's kernels go */

static attune_device *device;
static attune_stream *stream;
static unsigned long long *memory, *values;
static char root[64];
static int capability;

static at_jit_kernel *get(show_kernel which) {
  at_jit_kernel *kernel = NULL;
  OK(at_jit_get(&kernel, device, show_source(which)));
  return kernel;
}

static void fetch(size_t count) {
  OK(attune_copy(stream, values, memory, count * sizeof *values));
  OK(attune_stream_synchronize(stream));
}

/* Up to two launches, and what to look for. */
typedef struct show {
  at_jit_kernel *kernel[2];
  at_jit_config config[2];
  show_argument argument[2];
  int launches;
  size_t count; /* of values, which check looks at */
  void (*check)(const struct show *);
} show;

static attune_status give(void *user, attune_stream *to) {
  const show *s = user;
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < s->launches && status == ATTUNE_OK; i++)
    status = at_jit_launch(s->kernel[i], &s->config[i], &s->argument[i], to);
  return status;
}

static void look(const show *s) {
  fetch(s->count);
  s->check(s);
}

static void assert_clean(void) {
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

/* In the stream, then captured; the graph is the caller's. */
static attune_graph *run_both_ways(show *s) {
  attune_graph *graph = NULL;
  attune_capture_options options = {.keep_graph = 1};
  for (int i = 0; i < s->launches; i++) OK(at_jit_check(s->kernel[i], &s->config[i]));
  OK(attune_fill(stream, memory, 0, VALUES * sizeof *memory));
  OK(give(s, stream));
  look(s);
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_callback(graph, stream, &options, give, s));
  for (int i = 0; i < REPLAYS; i++) {
    OK(attune_fill(stream, memory, 0, VALUES * sizeof *memory));
    OK(attune_graph_replay(graph, stream));
    look(s);
  }
  assert_int_equal(attune_graph_node_count(graph), s->launches);
  assert_clean();
  return graph;
}

static void finish(show *s, attune_graph *graph) {
  attune_graph_destroy(graph);
  for (int i = 0; i < s->launches; i++) at_jit_release(s->kernel[i]);
}

static void check_places(const show *s) {
  const unsigned *g = s->config[0].grid, *b = s->config[0].block;
  const unsigned long long *at = values;
  for (unsigned long long z = 0; z < g[2]; z++)
    for (unsigned long long y = 0; y < g[1]; y++)
      for (unsigned long long x = 0; x < g[0]; x++)
        for (unsigned long long k = 0; k < b[2]; k++)
          for (unsigned long long j = 0; j < b[1]; j++)
            for (unsigned long long i = 0; i < b[0]; i++)
              assert_int_equal(*at++, x << 50 | y << 40 | z << 30 | i << 20 | j << 10 | k);
}

TEST(every_thread_knows_its_place) {
  show s = {.kernel = {get(SHOW_A_PLACE)},
            .config = {{.grid = {7, 5, 3}, .block = {9, 4, 6}}},
            .argument = {{.out = memory}},
            .launches = 1,
            .count = 7 * 5 * 3 * 9 * 4 * 6,
            .check = check_places};
  finish(&s, run_both_ways(&s));
}

static void check_shared(const show *s) {
  const unsigned count = s->argument[0].count;
  for (unsigned i = 0; i < count; i++) assert_int_equal(values[i], (count - 1 - i) * 2654435761u + s->argument[0].base);
}

TEST(all_of_the_shared_memory) {
  int most = 0;
  assert_int_equal(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), cudaSuccess);
  const unsigned sizes[] = {1024, 48 * 1024, 48 * 1024 + 4, 96 * 1024, (unsigned)most};
  for (size_t i = 0; i < AT_COUNT(sizes) && sizes[i] <= (unsigned)most; i++) {
    show s = {.kernel = {get(SHOW_A_SHARED)},
              .config = {{.grid = {1}, .block = {256}, .shared_bytes = sizes[i]}},
              .argument = {{.out = memory, .count = sizes[i] / 4, .base = 17}},
              .launches = 1,
              .count = sizes[i] / 4,
              .check = check_shared};
    assert_true(s.count <= VALUES);
    finish(&s, run_both_ways(&s));
  }
  at_jit_kernel *kernel = get(SHOW_A_SHARED);
  at_jit_config config = {.grid = {1}, .block = {256}, .shared_bytes = (unsigned)most + 1};
  FAILS_SAYING(at_jit_launch(kernel, &config, &(show_argument){.out = memory}, stream), ATTUNE_UNSUPPORTED,
               "shared of shared.cu needs");
  at_jit_release(kernel);
  assert_clean();
}

static void check_clusters(const show *s) {
  const unsigned long long size = s->config[0].cluster[0];
  for (unsigned long long i = 0; i < s->count; i++) {
    const unsigned long long rank = i % size, next = i - rank + (rank + 1) % size;
    assert_int_equal(values[i], rank << 48 | size << 32 | (next + s->argument[0].base));
  }
}

static void assert_cluster(const attune_graph *graph, unsigned size) {
  cudaGraphNode_t node = NULL;
  size_t count = 1;
  cudaKernelNodeAttrValue found;
  memset(&found, 0, sizeof found);
  assert_int_equal(cudaGraphGetNodes((cudaGraph_t)attune_graph_native(graph), &node, &count), cudaSuccess);
  assert_int_equal(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &found), cudaSuccess);
  assert_int_equal(found.clusterDim.x, size);
  assert_int_equal(found.clusterDim.y, 1);
}

TEST(blocks_read_of_their_cluster) {
  at_jit_kernel *kernel = get(SHOW_A_CLUSTER);
  if (capability < 90) {
    const at_jit_config config = {.grid = {4}, .block = {32}, .cluster = {2}};
    FAILS(at_jit_check(kernel, &config), ATTUNE_UNSUPPORTED);
    at_jit_release(kernel);
    print_message("no clusters on this device: refused\n");
    return;
  }
  for (unsigned size = 1; size <= 16; size *= 2) {
    show s = {.kernel = {get(SHOW_A_CLUSTER)},
              .config = {{.grid = {size * 5}, .block = {64}, .cluster = {size}}},
              .argument = {{.out = memory, .base = 1000 * size}},
              .launches = 1,
              .count = size * 5,
              .check = check_clusters};
    if (size > 8 && at_jit_check(kernel, &s.config[0]) != ATTUNE_OK) { /* a device, or a slice of one, with fewer */
      print_message("clusters of %u: %s\n", size, attune_last_message());
      at_jit_release(s.kernel[0]);
      continue;
    }
    attune_graph *graph = run_both_ways(&s);
    assert_cluster(graph, size);
    finish(&s, graph);
  }
  const at_jit_config large = {.grid = {64}, .block = {64}, .cluster = {32}};
  FAILS_SAYING(at_jit_check(kernel, &large), ATTUNE_UNSUPPORTED,
               "cluster of cluster.cu needs clusters of 32x1x1 blocks");
  at_jit_release(kernel);
  assert_clean();
}

static void check_dependent(const show *s) {
  const unsigned count = s->argument[0].count;
  for (unsigned i = 0; i < count; i++) assert_int_equal(values[i], i + s->argument[0].base + s->argument[1].base);
  print_message("the second kernel had %s before the first one's end\n", values[count + 1] ? "begun" : "not begun");
}

/* The edge between the two is a programmatic one. */
static void assert_programmatic(const attune_graph *graph) {
  cudaGraphNode_t from = NULL, to = NULL;
  cudaGraphEdgeData edge;
  size_t count = 1;
  memset(&edge, 0, sizeof edge);
#if CUDART_VERSION >= 13000
  const cudaError_t error = cudaGraphGetEdges((cudaGraph_t)attune_graph_native(graph), &from, &to, &edge, &count);
#else
  const cudaError_t error = cudaGraphGetEdges_v2((cudaGraph_t)attune_graph_native(graph), &from, &to, &edge, &count);
#endif
  assert_int_equal(error, cudaSuccess);
  assert_int_equal(count, 1);
  assert_int_equal(edge.type, cudaGraphDependencyTypeProgrammatic);
}

/* Whether the second one really begins early is the device's choice; that it sees all of the first one's is not. */
TEST(a_dependent_kernel_sees_all) {
  show s = {.kernel = {get(SHOW_A_FIRST), get(SHOW_A_SECOND)},
            .config = {{.grid = {1}, .block = {256}}, {.grid = {1}, .block = {256}, .dependent = true}},
            .argument = {{.out = memory, .count = 5000, .base = 3}, {.out = memory, .count = 5000, .base = 40}},
            .launches = 2,
            .count = 5002,
            .check = check_dependent};
  attune_graph *graph = run_both_ways(&s);
  if (capability >= 90) assert_programmatic(graph);
  finish(&s, graph);
}

/* The first piece of work in a graph, and one behind a fill, have no kernel before them. */
static attune_status give_behind_a_fill(void *user, attune_stream *to) {
  const attune_status status = attune_fill(to, memory, 0, VALUES * sizeof *memory);
  return status == ATTUNE_OK ? give(user, to) : status;
}

TEST(a_dependent_kernel_behind_no_kernel) {
  show s = {.kernel = {get(SHOW_A_SECOND)},
            .config = {{.grid = {1}, .block = {256}, .dependent = true}},
            .argument = {{.out = memory, .count = 5000, .base = 40}},
            .launches = 1};
  const attune_capture_fn ways[] = {give, give_behind_a_fill};
  for (size_t way = 0; way < AT_COUNT(ways); way++) {
    attune_graph *graph = NULL;
    OK(attune_graph_create(&graph, device));
    OK(attune_graph_capture_callback(graph, stream, NULL, ways[way], &s));
    for (int i = 0; i < REPLAYS; i++) {
      OK(attune_fill(stream, memory, 0, VALUES * sizeof *memory));
      OK(attune_graph_replay(graph, stream));
      fetch(5000);
      for (int v = 0; v < 5000; v++) assert_int_equal(values[v], 40);
    }
    attune_graph_destroy(graph);
  }
  at_jit_release(s.kernel[0]);
  assert_clean();
}

static uint64_t unloaded(void) {
  at_jit_counts c;
  at_jit_get_counts(&c);
  return c.unloaded;
}

static const char *const numbers[][2] = {{"N=0", NULL}, {"N=1", NULL}, {"N=2", NULL},
                                         {"N=3", NULL}, {"N=4", NULL}, {"N=5", NULL}};
#define NEVER_BEFORE 5 /* the last: made by a_full_table_in_a_capture alone */

static attune_status get_number(at_jit_kernel **out, int number) {
  at_kernel_source source = *show_source(SHOW_A_SHARED);
  source.macros = numbers[number];
  return at_jit_get(out, device, &source);
}

/* A captured kernel that nobody else holds stays while the graph can be replayed, in clones and executables of the
 * program's too, and goes after that. */
TEST(graphs_hold_their_kernels) {
  at_jit_kernel *other = NULL;
  show s = {.config = {{.grid = {1}, .block = {256}, .shared_bytes = 4096}},
            .argument = {{.out = memory, .count = 1024, .base = 5}},
            .launches = 1,
            .count = 1024,
            .check = check_shared};
  cudaGraph_t clone = NULL;
  cudaGraphExec_t executable = NULL;
  OK(get_number(&s.kernel[0], 0));
  attune_graph *graph = run_both_ways(&s);
  assert_int_equal(cudaGraphClone(&clone, (cudaGraph_t)attune_graph_native(graph)), cudaSuccess);
  assert_int_equal(cudaGraphInstantiate(&executable, clone, 0), cudaSuccess);
  finish(&s, graph); /* the clone has it still */
  assert_int_equal(cudaGraphDestroy(clone), cudaSuccess);
  const unsigned before = at_jit_set_most(1);
  FAILS_SAYING(get_number(&other, 1), ATTUNE_UNSUPPORTED, "plans and graphs use all of them");
  for (int i = 0; i < REPLAYS; i++) {
    OK(attune_fill(stream, memory, 0, VALUES * sizeof *memory));
    assert_int_equal(cudaGraphLaunch(executable, (cudaStream_t)attune_stream_native(stream)), cudaSuccess);
    look(&s);
  }
  assert_int_equal(cudaGraphExecDestroy(executable), cudaSuccess);
  const uint64_t count = unloaded();
  attune_status status = ATTUNE_UNSUPPORTED;
  for (int nap = 0; nap < NAPS && (status = get_number(&other, 1)) != ATTUNE_OK; nap++) usleep(1000);
  OK(status); /* CUDA's own thread lets it go */
  assert_true(unloaded() > count);
  at_jit_release(other);
  (void)at_jit_set_most(before);
  assert_clean();
}

/* Work in flight is waited for, and the captures of other streams do not break. */
TEST(kernels_come_and_go) {
  attune_stream *second = NULL;
  OK(attune_stream_create(&second, device));
  const unsigned before = at_jit_set_most(2);
  const uint64_t count = unloaded();
  for (int round = 0; round < 50; round++) {
    at_jit_kernel *kernel = NULL;
    const at_jit_config config = {.grid = {1}, .block = {256}, .shared_bytes = 4096};
    const show_argument argument = {.out = memory, .count = 1024, .base = (unsigned)round};
    OK(get_number(&kernel, round % NEVER_BEFORE));
    OK(at_jit_launch(kernel, &config, &argument, round % 2 ? stream : second));
    at_jit_release(kernel);
    if (round % 10 != 9) continue;
    OK(attune_stream_synchronize(second));
    OK(attune_stream_synchronize(stream));
    fetch(1024);
    for (unsigned i = 0; i < 1024; i++) assert_int_equal(values[i], (1023 - i) * 2654435761u + (unsigned)round);
  }
  assert_true(unloaded() >= count + 40);
  (void)at_jit_set_most(before);
  attune_stream_destroy(second);
  assert_clean();
}

/* Beside a capture nothing is unloaded: a kernel that would need it is refused, and the capture is whole. */
static attune_status ask_for_more(void *user, attune_stream *to) {
  at_jit_kernel *more = NULL;
  const unsigned before = at_jit_set_most(1);
  const attune_status refused = get_number(&more, NEVER_BEFORE);
  (void)at_jit_set_most(before);
  at_jit_release(more);
  if (refused == ATTUNE_OK) return at_fail(ATTUNE_INTERNAL, "a kernel too many was loaded");
  if (refused != ATTUNE_UNSUPPORTED || !strstr(attune_last_message(), "is being captured")) return ATTUNE_INTERNAL;
  return give(user, to);
}

TEST(a_full_table_in_a_capture) {
  attune_graph *graph = NULL;
  show s = {.config = {{.grid = {1}, .block = {256}, .shared_bytes = 4096}},
            .argument = {{.out = memory, .count = 1024, .base = 5}},
            .launches = 1,
            .count = 1024,
            .check = check_shared};
  at_jit_kernel *idle = NULL;
  OK(get_number(&s.kernel[0], 2));
  OK(get_number(&idle, 3));
  at_jit_release(idle);
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_callback(graph, stream, NULL, ask_for_more, &s));
  OK(attune_graph_replay(graph, stream));
  look(&s);
  finish(&s, graph);
}

static int run_all(void) {
  return RUN_TESTS(NULL, NULL);
}

int main(void) {
  attune_device_properties properties = {0};
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("no CUDA device");
  snprintf(root, sizeof root, "/tmp/attune-launch-XXXXXX");
  if (!mkdtemp(root) || setenv("ATTUNE_CACHE_DIR", root, 1) != 0 || attune_stream_create(&stream, device) != ATTUNE_OK)
    return 1;
  OK(attune_device_get_properties(device, &properties));
  capability = properties.capability_major * 10 + properties.capability_minor;
  OK(attune_alloc((void **)&memory, stream, VALUES * sizeof *memory));
  values = malloc(VALUES * sizeof *values);
  if (!values) return 1;
  const int failures = run_all();
  free(values);
  OK(attune_free(memory, stream));
  attune_stream_destroy(stream);
  return folder_remove(root) == 0 ? failures : 1;
}
