/* SPDX-License-Identifier: Apache-2.0
 * elementwise_cuda.c: bench_elementwise_cuda: bytes a second of expressions on cuda:0, beside a copy of the same memory
 * on the device, interleaved. --sweep times every configuration that is worth a try, which orders the best guesses;
 * --small those of few elements in replayed graphs, each as a kernel that waits for the one in front and as dependent
 * ones. torch_elementwise.py measures PyTorch in the same way. */
#include "bench/common/tool.h"
#include "bench/common/turns.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/cuda/cuda_kernel.h"
#include "ops/elementwise/language/compile.h"
#include "src/base/backend.h"

enum { MOST_CHOICES = BENCH_TURN_WAYS - 1, CALLS = 3, BUFFERS = 3, NODES = 50, REPLAYS = 4 };

/* How the inputs lie: each letter one: p packed, b a bias along rows, t transposed. */
typedef struct bench_case {
  const char *name, *text, *names, *lies;
} bench_case;

static const bench_case cases[] = {
    {"add", "a + b", "ab", "pp"},
    {"relu", "relu(a)", "a", "p"},
    {"gelu", "gelu(a)", "a", "p"},
    {"exp", "exp(a)", "a", "p"},
    {"gelu(a+b)*b", "gelu(a + b) * b", "ab", "pp"},
    {"bias", "a + b", "ab", "pb"},
    {"alpha*x*y+x", "s * a * b + a", "ab", "pp"},
    {"transposed add", "a + b", "ab", "pt"},
    {"dropout", "rand() < s ? a * 2 : 0", "a", "p"},
};

typedef struct bench {
  attune_device *device;
  attune_stream *stream;
  attune_event *start, *stop;
  attune_device_properties properties;
  int64_t rows, columns;
  char *memory[1 + BUFFERS]; /* the output, the inputs */
  int rounds;
  bool sweep, small;
} bench;

/* One configuration, ready. */
typedef struct way {
  at_cuda_choice choice;
  at_cuda_launch launch;
  at_jit_kernel *kernel;
  char *text;
  at_graph *graph; /* of NODES launches; --small */
  double median;
} way;

static double elapsed(bench *b) {
  double ns = 0;
  bench_check(attune_event_record(b->stop, b->stream), "attune_event_record");
  bench_check(attune_event_synchronize(b->stop), "attune_event_synchronize");
  bench_check(attune_event_elapsed_ns(&ns, b->start, b->stop), "attune_event_elapsed_ns");
  return ns / CALLS;
}

static void launch_way(bench *b, const way *w) {
  bench_check(at_jit_launch(w->kernel, &w->launch.config, w->launch.words, b->stream), "at_jit_launch");
}

static void capture_way(bench *b, way *w) {
  bench_check(b->device->backend.graph->capture_begin(b->stream), "capture_begin");
  for (int i = 0; i < NODES; i++) launch_way(b, w);
  bench_check(b->device->backend.graph->capture_end(b->stream, &w->graph), "capture_end");
}

/* Nanoseconds of a node. */
static double time_graph(bench *b, const way *w) {
  bench_check(attune_event_record(b->start, b->stream), "attune_event_record");
  for (int i = 0; i < REPLAYS; i++) bench_check(b->device->backend.graph->launch(w->graph, b->stream), "graph_launch");
  return elapsed(b) * CALLS / (NODES * REPLAYS);
}

static double time_way(bench *b, const way *w) {
  if (w->graph) return time_graph(b, w);
  bench_check(attune_event_record(b->start, b->stream), "attune_event_record");
  for (int i = 0; i < CALLS; i++) launch_way(b, w);
  return elapsed(b);
}

static double time_copy(bench *b, size_t bytes) {
  bench_check(attune_event_record(b->start, b->stream), "attune_event_record");
  for (int i = 0; i < CALLS; i++) bench_check(attune_copy(b->stream, b->memory[0], b->memory[1], bytes), "attune_copy");
  return elapsed(b);
}

static at_expression *parse(const bench_case *c, attune_dtype dtype) {
  at_operand_name tensors[BUFFERS] = {{{0}, 0, 0}}, scalar = {"s", ATTUNE_F64, 0};
  const at_signature signature = {tensors, &scalar, (int)strlen(c->names), strstr(c->text, "s ") != NULL};
  for (int i = 0; i < signature.tensor_count; i++) {
    tensors[i].name[0] = c->names[i];
    tensors[i].dtype = (uint8_t)dtype;
  }
  at_expression *e = NULL;
  bench_check(at_expression_create(&e, c->text, strlen(c->text), &signature), c->text);
  return e;
}

/* Bytes that one call reads and writes. */
static double make_problem(bench *b, at_cuda_problem *p, const bench_case *c, const at_expression *e,
                           attune_dtype dtype, void **tensors) {
  const at_shape shape = {2, {b->rows, b->columns}}, row = {1, {b->columns}};
  at_view views[AT_LAYOUT_OPERANDS];
  int indices[AT_CUDA_INDICES];
  double bytes = (double)(b->rows * b->columns) * (double)attune_dtype_size(dtype);
  const double whole = bytes;
  views[0] = at_view_packed(b->memory[0], dtype, &shape);
  for (int i = 0; c->lies[i]; i++) {
    views[i + 1] = at_view_packed(b->memory[i + 1], dtype, c->lies[i] == 'b' ? &row : &shape);
    if (c->lies[i] == 't') views[i + 1].strides[0] = 1, views[i + 1].strides[1] = b->rows;
    bytes += c->lies[i] == 'b' ? (double)b->columns * (double)attune_dtype_size(dtype) : whole;
  }
  const int count = 1 + e->input_count, numbers = at_cuda_indices(e, indices);
  for (int i = 0; i < numbers; i++)
    views[count + i] = indices[i] < 0 ? at_view_of_number(&shape) : at_view_of_position(&shape, indices[i]);
  memset(p, 0, sizeof *p);
  p->expression = e;
  p->outputs[0] = (uint8_t)dtype;
  bench_check(at_layout_make(&p->layout, &shape, views, count + numbers), "at_layout_make");
  for (int i = 0; i < count; i++) tensors[i] = b->memory[i];
  at_cuda_align(p, (const void *const *)tensors);
  return bytes;
}

/* How many blocks a multiprocessor holds. */
static int blocks_of(const way *w) {
  int blocks = 1;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, (const void *)at_jit_native(w->kernel), w->choice.block, 0);
  return error == cudaSuccess && blocks > 0 ? blocks : 1;
}

/* Each of the first ones as a dependent kernel too, of both kinds. */
static int add_dependent(at_cuda_choice *list, int found) {
  const int first = found < MOST_CHOICES / 3 ? found : MOST_CHOICES / 3;
  for (int i = 0; i < first; i++)
    for (int kind = 1; kind <= 2; kind++) {
      list[first + 2 * i + kind - 1] = list[i];
      list[first + 2 * i + kind - 1].dependent = (uint8_t)kind;
    }
  return 3 * first;
}

/* Makes all ways of a case; those that do not compile or launch are told and left out. */
static int make_ways(bench *b, way *ways, const at_cuda_problem *p, void **tensors) {
  static at_jit_request requests[MOST_CHOICES];
  at_cuda_choice list[MOST_CHOICES];
  const int capability = b->properties.capability_major * 10 + b->properties.capability_minor;
  int found = at_cuda_candidates(p, capability, list, b->sweep || b->small ? MOST_CHOICES : 1);
  int count = 0;
  if (b->small) found = add_dependent(list, found);
  for (int i = 0; i < found; i++) {
    memset(&ways[i], 0, sizeof ways[i]);
    memset(&requests[i], 0, sizeof requests[i]);
    bench_check(at_cuda_generate(&ways[i].text, p, &list[i]), "at_cuda_generate");
    requests[i].source = (at_kernel_source){.file = "elementwise.cu", .text = ways[i].text, .entry = AT_CUDA_ENTRY};
  }
  at_jit_get_all(requests, found, b->device);
  for (int i = 0; i < found; i++) {
    way w = ways[i];
    w.choice = list[i];
    w.kernel = requests[i].kernel;
    if (!w.kernel) {
      bench_line("not made: %.300s", requests[i].message);
      free(w.text);
      continue;
    }
    const at_constant half = {.re = 0.5};
    bench_check(at_cuda_plan(&w.launch, p, &w.choice, b->properties.processors, blocks_of(&w)), "at_cuda_plan");
    at_cuda_bind_tensors(&w.launch, p, tensors);
    at_cuda_bind_scalars(&w.launch, p->expression, &half);
    at_cuda_bind_random(&w.launch, 1, 0, NULL);
    bench_check(at_jit_check(w.kernel, &w.launch.config), "at_jit_check");
    if (b->small) capture_way(b, &w);
    ways[count++] = w;
  }
  return count;
}

static int by_median(const void *x, const void *y) {
  const way *a = x, *b = y;
  return (a->median > b->median) - (a->median < b->median);
}

typedef struct turn {
  bench *b;
  const way *ways;
  size_t copied;
} turn;

/* Way 0 is the copy. */
static double sample(void *arg, int index, int round) {
  const turn *t = arg;
  (void)round;
  return index ? time_way(t->b, &t->ways[index - 1]) : time_copy(t->b, t->copied);
}

static void run_case(bench *b, const bench_case *c, attune_dtype dtype) {
  static way ways[MOST_CHOICES];
  at_expression *e = parse(c, dtype);
  at_cuda_problem p;
  void *tensors[AT_CUDA_TENSORS];
  static bench_turns turns;
  const double bytes = make_problem(b, &p, c, e, dtype, tensors);
  const size_t copied = (size_t)(b->rows * b->columns) * attune_dtype_size(dtype);
  const int count = make_ways(b, ways, &p, tensors);
  bench_take_turns(&turns, count + 1, 1, b->rounds, BENCH_ROTATED, sample, &(turn){b, ways, copied});
  const double copy = 2 * (double)copied / bench_turns_median(&turns, 0);
  for (int i = 0; i < count; i++) ways[i].median = bench_turns_median(&turns, i + 1);
  at_configuration guess = {""};
  if (count) (void)at_cuda_choice_format(&guess, &ways[0].choice);
  qsort(ways, (size_t)count, sizeof *ways, by_median);
  for (int i = 0; i < count; i++) {
    at_configuration text;
    (void)at_cuda_choice_format(&text, &ways[i].choice);
    const double rate = bytes / ways[i].median;
    if (b->small)
      bench_line("| %s %s %lld | %.3f | | %s%s |", c->name, attune_dtype_name(dtype), (long long)(b->rows * b->columns),
                 ways[i].median / 1e3, text.text, strcmp(text.text, guess.text) == 0 ? " (best guess)" : "");
    else
      bench_line("| %s %s | %.0f | %.1f %% | %s%s |", c->name, attune_dtype_name(dtype), rate, 100 * rate / copy,
                 text.text, strcmp(text.text, guess.text) == 0 ? " (best guess)" : "");
  }
  if (!b->small) bench_line("| copy %s | %.0f | | |", attune_dtype_name(dtype), copy);
  for (int i = 0; i < count; i++) {
    if (ways[i].graph) b->device->backend.graph->destroy(ways[i].graph);
    at_jit_release(ways[i].kernel);
    free(ways[i].text);
  }
  at_expression_destroy(e);
}

static void open_bench(bench *b) {
  bench_check(attune_device_get(&b->device, "cuda:0"), "attune_device_get");
  bench_check(attune_device_get_properties(b->device, &b->properties), "attune_device_get_properties");
  bench_check(attune_stream_create(&b->stream, b->device), "attune_stream_create");
  bench_check(attune_event_create(&b->start, b->device, NULL), "attune_event_create");
  bench_check(attune_event_create(&b->stop, b->device, NULL), "attune_event_create");
  for (int i = 0; i <= BUFFERS; i++)
    bench_check(attune_alloc((void **)&b->memory[i], b->stream, (size_t)(b->rows * b->columns) * 4), "attune_alloc");
  char method[128];
  snprintf(method, sizeof method, "%lld x %lld elements, median of %d rounds of %d calls, in turns with a copy",
           (long long)b->rows, (long long)b->columns, b->rounds, CALLS);
  bench_head("Elementwise kernels", b->device, NULL, method);
  bench_table(b->small ? "| expression | us of a node >| | configuration |"
                       : "| expression | GB/s >| of the copy >| configuration |");
}

/* Random numbers of the dtype into all buffers. */
static void fill(bench *b, attune_dtype dtype) {
  attune_generator *generator = NULL;
  bench_check(attune_generator_create(&generator, 1), "attune_generator_create");
  for (int i = 0; i <= BUFFERS; i++)
    bench_check(attune_random_normal(generator, b->stream, b->memory[i], dtype, (size_t)(b->rows * b->columns), 0, 1),
                "attune_random_normal");
  bench_check(attune_stream_synchronize(b->stream), "attune_stream_synchronize");
  attune_generator_destroy(generator);
}

static void close_bench(bench *b) {
  for (int i = 0; i <= BUFFERS; i++) bench_check(attune_free(b->memory[i], b->stream), "attune_free");
  attune_event_destroy(b->start);
  attune_event_destroy(b->stop);
  attune_stream_destroy(b->stream);
}

int main(int argc, char **argv) {
  static const char usage[] =
      "usage: bench_elementwise_cuda [--sweep] [--small] [--only NAME] [--rows N] [--columns N] [--markdown FILE]\n";
  bench b = {.rounds = 21};
  const char *only = NULL, *markdown = NULL;
  int rows = 1 << 14, columns = 1 << 14;
  const bench_option table[] = {{"markdown", BENCH_TEXT, &markdown, 0, 0},
                                {"rows", BENCH_WHOLE, &rows, 1, 1 << 24},
                                {"columns", BENCH_WHOLE, &columns, 1, 1 << 24},
                                {"only", BENCH_TEXT, &only, 0, 0},
                                {"sweep", BENCH_FLAG, &b.sweep, 0, 0},
                                {"small", BENCH_FLAG, &b.small, 0, 0},
                                {NULL, BENCH_FLAG, NULL, 0, 0}};
  (void)bench_read_options(argc, argv, table, usage, NULL, 0);
  bench_markdown_open(markdown);
  b.rows = rows;
  b.columns = columns;
  if (b.sweep) b.rounds = 7;
  open_bench(&b);
  static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_BF16};
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
    fill(&b, dtypes[d]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
      if (!only || strcmp(only, cases[i].name) == 0) run_case(&b, &cases[i], dtypes[d]);
  }
  close_bench(&b);
  bench_markdown_close();
  return 0;
}
