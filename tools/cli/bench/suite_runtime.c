/* SPDX-License-Identifier: Apache-2.0
 * suite_runtime.c: allocator, random numbers, dispatch, graphs and streams, as a program uses them. What a call costs
 * the calling thread is timed by the clock; what a GPU does, random numbers and replays, in its stream. */
#include "tools/cli/bench/suite_runtime.h"

#include <string.h>

enum { BLOCKS = 64, TRACE = 512, FILL = 1 << 20, SMALL = 4, ELEMENTS = 256, NODES = 10, QUEUED = 100 };

/* One case: what it is, and what it has while it is set up. */
typedef struct runtime_case {
  const char *name;
  attune_status (*make)(struct runtime_case *c); /* beyond a stream; NULL: nothing */
  attune_status (*run)(struct runtime_case *c, attune_stream *stream);
  double bytes;  /* of memory that a call writes */
  size_t size;   /* of what it allocates */
  bool streamed; /* on a GPU its stream's events time it */
  bool created;  /* it needs a stream of its own on the host too; else the default one, which runs work at once */

  attune_tuner *tuner;
  attune_device *device;
  attune_stream *stream, *second;
  attune_generator *generator;
  attune_graph *graph;
  attune_plan *plan;
  attune_event *event;
  void *memory;
  void *blocks[BLOCKS];
} runtime_case;

#define TRY(status, call)                         \
  do {                                            \
    if ((status) == ATTUNE_OK) (status) = (call); \
  } while (0)

/* ---- allocator ---- */

static attune_status alloc_free(runtime_case *c, attune_stream *stream) {
  void *block = NULL;
  const attune_status status = attune_alloc(&block, stream, c->size);
  return status == ATTUNE_OK ? attune_free(block, stream) : status;
}

/* Many blocks at once, freed in the order in which they came. */
static attune_status alloc_free_many(runtime_case *c, attune_stream *stream) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < BLOCKS; i++) TRY(status, attune_alloc(&c->blocks[i], stream, c->size));
  for (int i = 0; i < BLOCKS; i++) {
    TRY(status, attune_free(c->blocks[i], stream));
    c->blocks[i] = NULL;
  }
  return status;
}

/* A fixed mix: each step frees what its place holds, or takes 64 bytes to 8 MB, small sizes more often. */
static attune_status alloc_trace(runtime_case *c, attune_stream *stream) {
  attune_status status = ATTUNE_OK;
  unsigned draw = 1;
  for (int i = 0; i < TRACE; i++) {
    draw = draw * 1664525u + 1013904223u;
    void **block = &c->blocks[(draw >> 8) % BLOCKS];
    const size_t power = (draw >> 16) % 18, size = ((size_t)64 << (power * power / 17)) + (draw >> 24);
    if (*block) {
      TRY(status, attune_free(*block, stream));
      *block = NULL;
    } else
      TRY(status, attune_alloc(block, stream, size));
  }
  for (int i = 0; i < BLOCKS; i++) {
    if (c->blocks[i]) TRY(status, attune_free(c->blocks[i], stream));
    c->blocks[i] = NULL;
  }
  return status;
}

/* Memory of one stream that another one used, too. */
static attune_status alloc_two_streams(runtime_case *c, attune_stream *stream) {
  void *block = NULL;
  attune_status status = attune_alloc(&block, stream, c->size);
  TRY(status, attune_record_use(block, c->second));
  TRY(status, attune_free(block, stream));
  return status;
}

static attune_status make_second(runtime_case *c) {
  return attune_stream_create(&c->second, c->device);
}

/* ---- random numbers ---- */

static attune_status make_random(runtime_case *c) {
  attune_status status = attune_generator_create(&c->generator, 42);
  TRY(status, attune_alloc(&c->memory, c->stream, FILL * sizeof(float)));
  return status;
}

static attune_status fill_uniform(runtime_case *c, attune_stream *stream) {
  return attune_random_uniform(c->generator, stream, c->memory, ATTUNE_F32, FILL, 0.0, 1.0);
}

static attune_status fill_normal(runtime_case *c, attune_stream *stream) {
  return attune_random_normal(c->generator, stream, c->memory, ATTUNE_F32, FILL, 0.0, 1.0);
}

static attune_status fill_few(runtime_case *c, attune_stream *stream) {
  return attune_random_uniform(c->generator, stream, c->memory, ATTUNE_F32, ELEMENTS, 0.0, 1.0);
}

/* ---- dispatch ---- */

/* Three operands side by side, as numbers that are not all alike. */
static attune_status make_operands(runtime_case *c) {
  attune_status status = make_random(c);
  TRY(status, attune_random_uniform(c->generator, c->stream, c->memory, ATTUNE_F32, (size_t)3 * ELEMENTS, 0.0, 1.0));
  return status;
}

static attune_gemm_problem small_problem(void) {
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  p.m = p.n = p.k = SMALL;
  return p;
}

static attune_gemm_operands small_operands(const runtime_case *c) {
  float *memory = c->memory;
  return (attune_gemm_operands){.alpha = 1.0, .a = memory, .b = memory + ELEMENTS, .d = memory + 2 * ELEMENTS};
}

static attune_status call_gemm(runtime_case *c, attune_stream *stream) {
  const attune_gemm_problem problem = small_problem();
  const attune_gemm_operands operands = small_operands(c);
  return attune_gemm(c->tuner, stream, &problem, &operands);
}

static attune_status make_plan(runtime_case *c) {
  attune_status status = make_operands(c);
  const attune_gemm_problem problem = small_problem();
  const attune_gemm_operands operands = small_operands(c);
  TRY(status, attune_gemm_plan_create(&c->plan, c->tuner, c->stream, &problem, &operands));
  return status;
}

static attune_status run_plan(runtime_case *c, attune_stream *stream) {
  const attune_gemm_operands operands = small_operands(c);
  return attune_gemm_plan_run(c->plan, stream, &operands);
}

static attune_tensor tensor_of(const runtime_case *c, const char *name, int place) {
  return (attune_tensor){
      .name = name, .data = (float *)c->memory + place * ELEMENTS, .dtype = ATTUNE_F32, .dims = 1, .sizes = {ELEMENTS}};
}

static attune_status call_elementwise(runtime_case *c, attune_stream *stream) {
  const attune_tensor out = tensor_of(c, NULL, 2), in[] = {tensor_of(c, "a", 0), tensor_of(c, "b", 1)};
  const attune_elementwise_operands operands = {.outputs = &out, .output_count = 1, .inputs = in, .input_count = 2};
  return attune_elementwise(c->tuner, stream, "a * b + 0.5", &operands);
}

static attune_status call_tensor_add(runtime_case *c, attune_stream *stream) {
  const attune_tensor out = tensor_of(c, NULL, 2), a = tensor_of(c, "a", 0), b = tensor_of(c, "b", 1);
  return attune_tensor_add(c->tuner, stream, &out, &a, &b);
}

/* ---- graphs ---- */

static attune_status give_nodes(void *user, attune_stream *stream) {
  runtime_case *c = user;
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < NODES / 2; i++) {
    TRY(status, attune_fill(stream, (float *)c->memory + i * ELEMENTS, i, ELEMENTS));
    TRY(status, call_gemm(c, stream));
  }
  return status;
}

/* The product is chosen before it is captured. */
static attune_status make_nodes(runtime_case *c) {
  attune_status status = make_operands(c);
  TRY(status, call_gemm(c, c->stream));
  TRY(status, attune_stream_create(&c->second, c->device));
  return status;
}

static attune_status capture(runtime_case *c, attune_stream *stream) {
  attune_graph *graph = NULL;
  (void)stream;
  attune_status status = attune_graph_create(&graph, c->device);
  TRY(status, attune_graph_capture_callback(graph, c->second, NULL, give_nodes, c));
  attune_graph_destroy(graph);
  return status;
}

static attune_status make_graph(runtime_case *c) {
  attune_status status = make_nodes(c);
  TRY(status, attune_graph_create(&c->graph, c->device));
  TRY(status, attune_graph_capture_callback(c->graph, c->second, NULL, give_nodes, c));
  return status;
}

static attune_status replay(runtime_case *c, attune_stream *stream) {
  return attune_graph_replay(c->graph, stream);
}

static attune_status update(runtime_case *c, attune_stream *stream) {
  (void)stream;
  return attune_graph_update(c->graph, c->second, give_nodes, c, NULL);
}

/* ---- streams ---- */

static void nothing(void *user) {
  (void)user;
}

static attune_status call_and_wait(runtime_case *c, attune_stream *stream) {
  attune_status status = attune_stream_call(stream, nothing, c);
  TRY(status, attune_stream_synchronize(stream));
  return status;
}

static attune_status many_calls(runtime_case *c, attune_stream *stream) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < QUEUED; i++) TRY(status, attune_stream_call(stream, nothing, c));
  TRY(status, attune_stream_synchronize(stream));
  return status;
}

static attune_status make_event(runtime_case *c) {
  const attune_status status = make_second(c);
  return status == ATTUNE_OK ? attune_event_create(&c->event, c->device, NULL) : status;
}

/* One stream waits for the other, and the caller for both. */
static attune_status hand_over(runtime_case *c, attune_stream *stream) {
  attune_status status = attune_stream_call(stream, nothing, c);
  TRY(status, attune_event_record(c->event, stream));
  TRY(status, attune_stream_wait_event(c->second, c->event));
  TRY(status, attune_stream_synchronize(c->second));
  return status;
}

/* ---- the list ---- */

static runtime_case cases[] = {
    {.name = "runtime/alloc/512", .run = alloc_free, .size = 512},
    {.name = "runtime/alloc/64k", .run = alloc_free, .size = 65536},
    {.name = "runtime/alloc/4M", .run = alloc_free, .size = (size_t)4 << 20},
    {.name = "runtime/alloc/64x2k", .run = alloc_free_many, .size = 2048},
    {.name = "runtime/alloc/trace-512", .run = alloc_trace},
    {.name = "runtime/alloc/two-streams-4k", .make = make_second, .run = alloc_two_streams, .size = 4096},
    {.name = "runtime/random/uniform-f32-1M",
     .make = make_random,
     .run = fill_uniform,
     .bytes = 4.0 * FILL,
     .streamed = true},
    {.name = "runtime/random/normal-f32-1M",
     .make = make_random,
     .run = fill_normal,
     .bytes = 4.0 * FILL,
     .streamed = true},
    {.name = "runtime/random/uniform-f32-256",
     .make = make_random,
     .run = fill_few,
     .bytes = 4.0 * ELEMENTS,
     .streamed = true},
    {.name = "runtime/dispatch/gemm-f32-4x4x4", .make = make_operands, .run = call_gemm, .streamed = true},
    {.name = "runtime/dispatch/gemm-plan-f32-4x4x4", .make = make_plan, .run = run_plan, .streamed = true},
    {.name = "runtime/dispatch/elementwise-f32-256", .make = make_operands, .run = call_elementwise, .streamed = true},
    {.name = "runtime/dispatch/tensor-add-f32-256", .make = make_operands, .run = call_tensor_add, .streamed = true},
    {.name = "runtime/graph/capture-10", .make = make_nodes, .run = capture},
    {.name = "runtime/graph/update-10", .make = make_graph, .run = update},
    {.name = "runtime/graph/replay-10", .make = make_graph, .run = replay, .streamed = true},
    {.name = "runtime/stream/call-and-wait", .run = call_and_wait, .created = true},
    {.name = "runtime/stream/100-calls-and-wait", .run = many_calls, .created = true},
    {.name = "runtime/stream/event-between-two", .make = make_event, .run = hand_over, .created = true},
};

static void tear_down(void *arg) {
  runtime_case *c = arg;
  if (c->stream) (void)attune_stream_synchronize(c->stream);
  attune_graph_destroy(c->graph);
  attune_plan_destroy(c->plan);
  attune_event_destroy(c->event);
  attune_generator_destroy(c->generator);
  for (int i = 0; i < BLOCKS; i++) {
    if (c->blocks[i]) (void)attune_free(c->blocks[i], c->stream);
    c->blocks[i] = NULL;
  }
  if (c->memory) (void)attune_free(c->memory, c->stream);
  attune_stream_destroy(c->second);
  attune_stream_destroy(c->stream); /* a default stream stays */
  c->graph = NULL;
  c->plan = NULL;
  c->event = NULL;
  c->generator = NULL;
  c->memory = NULL;
  c->stream = c->second = NULL;
}

static bool on_host(const runtime_case *c) {
  attune_device_properties p = {0};
  return attune_device_get_properties(c->device, &p) == ATTUNE_OK && p.kind == ATTUNE_DEVICE_HOST;
}

static attune_status set_up(void *arg) {
  runtime_case *c = arg;
  attune_status status = ATTUNE_OK;
  if (on_host(c) && !c->created)
    c->stream = attune_stream_default(c->device);
  else
    status = attune_stream_create(&c->stream, c->device);
  if (c->make) TRY(status, c->make(c));
  TRY(status, attune_stream_synchronize(c->stream));
  if (status != ATTUNE_OK) tear_down(c);
  return status;
}

static attune_status run(void *arg, attune_stream *stream) {
  runtime_case *c = arg;
  return c->run(c, stream ? stream : c->stream);
}

bool suite_runtime_add(attune_bench *bench, attune_tuner *tuner, attune_device *device) {
  attune_status status = ATTUNE_OK;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    runtime_case *c = &cases[i];
    c->tuner = tuner;
    c->device = device;
    TRY(status, attune_bench_add(bench, &(attune_bench_case){.size = sizeof(attune_bench_case),
                                                             .name = c->name,
                                                             .device = c->streamed && !on_host(c) ? device : NULL,
                                                             .set_up = set_up,
                                                             .run = run,
                                                             .tear_down = tear_down,
                                                             .arg = c,
                                                             .bytes = c->bytes}));
  }
  return status == ATTUNE_OK;
}
