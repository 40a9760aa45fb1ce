/* SPDX-License-Identifier: Apache-2.0
 * test_struct_size.c: programs compiled with other headers: each call that takes or fills a struct with a `size` is
 * made with the library's own size, with 0, with a shorter and a longer struct, and with what is no size. Structs lie
 * at the end of their memory, so that the address sanitizer sees a byte too many. */
#include "tests/support/check.h"

#include <attune/attune.h>
#include <attune/tools.h>

static attune_device *host;
static attune_stream *stream;
static attune_tuner *tuner;
static float numbers[3][16];

/* ---- the calls: each with one struct, all else as it should be ---- */

static attune_status take_tuner_options(void *s) {
  attune_tuner *out = NULL;
  const attune_status status = attune_tuner_create(&out, s);
  attune_tuner_destroy(out);
  return status;
}

static attune_status take_tune_options(void *s) {
  return attune_tune(tuner, host, "gemm f32 nn 2x2x2 strict", s, NULL);
}

static attune_status take_search_options(void *s) {
  return attune_tuner_set_search(tuner, s);
}

static attune_status take_capture_options(void *s) {
  attune_graph *graph = NULL;
  attune_stream *on = NULL;
  OK(attune_graph_create(&graph, host));
  OK(attune_stream_create(&on, host));
  const attune_status status = attune_graph_capture_begin(graph, on, s);
  if (status == ATTUNE_OK) OK(attune_graph_capture_end(graph, on));
  attune_graph_destroy(graph);
  attune_stream_destroy(on);
  return status;
}

static attune_status no_work(void *user, attune_stream *on, void *const *inputs, void *const *outputs) {
  (void)user, (void)on, (void)inputs, (void)outputs;
  return ATTUNE_OK;
}

static attune_status take_callable_options(void *s) {
  attune_graph_callable *out = NULL;
  const attune_status status = attune_graph_callable_create(&out, host, s, no_work, NULL);
  attune_graph_callable_destroy(out);
  return status;
}

static attune_status take_event_options(void *s) {
  attune_event *out = NULL;
  const attune_status status = attune_event_create(&out, host, s);
  attune_event_destroy(out);
  return status;
}

static attune_status take_file_options(void *s) {
  attune_file *out = NULL;
  const attune_status status = attune_file_open(&out, "/proc/self/exe", s);
  attune_file_close(out);
  return status;
}

static attune_status take_pool_options(void *s) {
  attune_pool *out = NULL;
  const attune_status status = attune_pool_create(&out, host, s);
  attune_pool_destroy(out);
  return status;
}

static attune_status take_managed_options(void *s) {
  attune_pool *out = NULL;
  const attune_status status = attune_pool_create(&out, host, &(attune_pool_options){.managed = s});
  attune_pool_destroy(out);
  return status;
}

static attune_status take_advice(void *s) {
  return attune_managed_advise(host, numbers, sizeof numbers, s);
}

static void *no_memory(void *user, size_t bytes, attune_device *device, attune_stream *on) {
  (void)user, (void)bytes, (void)device, (void)on;
  return NULL;
}

static void free_nothing(void *user, void *pointer, size_t bytes, attune_device *device, attune_stream *on) {
  (void)user, (void)pointer, (void)bytes, (void)device, (void)on;
}

static void set_functions(void *s) {
  ((attune_allocator *)s)->alloc = no_memory;
  ((attune_allocator *)s)->free = free_nothing;
}

static attune_status take_allocator(void *s) {
  attune_pool *out = NULL;
  const attune_status status = attune_pool_create(&out, host, &(attune_pool_options){.allocator = s});
  attune_pool_destroy(out);
  return status;
}

static attune_status set_allocator(void *s) {
  OK(attune_memory_empty_cache(host));
  const attune_status status = attune_memory_set_allocator(host, s);
  OK(attune_memory_set_allocator(host, NULL));
  return status;
}

static attune_status take_history_options(void *s) {
  const attune_status status = attune_memory_record_history(host, s);
  OK(attune_memory_record_history(host, NULL));
  return status;
}

static const attune_gemm_operands operands_4 = {.alpha = 1.0, .a = numbers[0], .b = numbers[1], .d = numbers[2]};
static const attune_gemm_problem problem_4 = {.dtype = ATTUNE_F32, .m = 4, .n = 4, .k = 4};

static void set_problem(void *s) {
  attune_gemm_problem *p = s;
  p->dtype = ATTUNE_F32;
  p->m = p->n = p->k = 4;
}

static void set_operands(void *s) {
  attune_gemm_operands *o = s;
  o->alpha = 1.0;
  o->a = numbers[0];
  o->b = numbers[1];
  o->d = numbers[2];
}

/* Twice: the second call is met by the thread's memory of calls. */
static attune_status multiply(const attune_gemm_problem *p, const attune_gemm_operands *o) {
  const attune_status status = attune_gemm(tuner, stream, p, o);
  assert_int_equal(attune_gemm(tuner, stream, p, o), status);
  return status;
}

static attune_status take_problem(void *s) {
  return multiply(s, &operands_4);
}
static attune_status take_operands(void *s) {
  return multiply(&problem_4, s);
}

static attune_status plan_problem(void *s) {
  attune_plan *out = NULL;
  const attune_status status = attune_gemm_plan_create(&out, tuner, stream, s, &operands_4);
  attune_plan_destroy(out);
  return status;
}

static attune_status plan_operands(void *s) {
  attune_plan *out = NULL;
  const attune_status status = attune_gemm_plan_create(&out, tuner, stream, &problem_4, s);
  attune_plan_destroy(out);
  return status;
}

static attune_status run_operands(void *s) {
  attune_plan *plan = NULL;
  OK(attune_gemm_plan_create(&plan, tuner, stream, &problem_4, &operands_4));
  const attune_status status = attune_gemm_plan_run(plan, stream, s);
  attune_plan_destroy(plan);
  return status;
}

static attune_status format_problem(void *s) {
  char text[ATTUNE_PROBLEM_CHARS];
  return attune_gemm_problem_format(text, sizeof text, s, NULL);
}

static attune_status format_operands(void *s) {
  char text[ATTUNE_PROBLEM_CHARS];
  return attune_gemm_problem_format(text, sizeof text, &problem_4, s);
}

static const attune_tensor output = {.data = numbers[2], .dtype = ATTUNE_F32, .dims = 1, .sizes = {16}};
static const attune_tensor input = {.name = "x", .data = numbers[0], .dtype = ATTUNE_F32, .dims = 1, .sizes = {16}};

static void set_tensors(void *s) {
  attune_elementwise_operands *o = s;
  o->outputs = &output;
  o->inputs = &input;
  o->output_count = o->input_count = 1;
}

static attune_status take_tensors(void *s) {
  const attune_status status = attune_elementwise(tuner, stream, "2 * x", s);
  assert_int_equal(attune_elementwise(tuner, stream, "2 * x", s), status);
  return status;
}

static attune_status plan_tensors(void *s) {
  attune_plan *out = NULL;
  const attune_status status = attune_elementwise_plan_create(&out, tuner, stream, "2 * x", s);
  attune_plan_destroy(out);
  return status;
}

static attune_status run_tensors(void *s) {
  attune_elementwise_operands o = {0};
  attune_plan *plan = NULL;
  set_tensors(&o);
  OK(attune_elementwise_plan_create(&plan, tuner, stream, "2 * x", &o));
  const attune_status status = attune_elementwise_plan_run(plan, stream, s);
  attune_plan_destroy(plan);
  return status;
}

static attune_status format_tensors(void *s) {
  char text[ATTUNE_PROBLEM_CHARS];
  return attune_elementwise_problem_format(text, sizeof text, "2 * x", s);
}

static attune_status format_tensors_cuda(void *s) {
  char text[ATTUNE_PROBLEM_CHARS];
  return attune_elementwise_cuda_problem_format(text, sizeof text, "float f(float x) { return x; }", "f", s);
}

static attune_status give_properties(void *s) {
  return attune_device_get_properties(host, s);
}
static attune_status give_details(void *s) {
  return attune_device_get_details(host, s);
}
static attune_status give_telemetry(void *s) {
  return attune_device_get_telemetry(host, s);
}
static attune_status give_warmed(void *s) {
  return attune_tuner_warm(tuner, host, NULL, 0, NULL, NULL, s);
}
static attune_status give_totals(void *s) {
  return attune_tuner_profile(tuner, NULL, NULL, s);
}
static attune_status give_capture(void *s) {
  return attune_stream_capture_info(stream, s);
}
static attune_status give_managed(void *s) {
  return attune_managed_get_state(s, host, numbers, sizeof numbers);
}
static attune_status give_statistics(void *s) {
  return attune_memory_get_statistics(host, s);
}
static attune_status give_pinned(void *s) {
  return attune_pinned_get_statistics(host, s);
}
static attune_status give_pointer(void *s) {
  return attune_pointer_get_info(s, numbers);
}
static attune_status give_allocator(void *s) {
  return attune_memory_get_allocator(host, s);
}
static attune_status give_problem(void *s) {
  return attune_gemm_problem_parse(s, "gemm f32 nn 4x4x4 strict");
}

static attune_status give_search(void *s) {
  return attune_tuner_get_search(tuner, s);
}

static attune_status give_decision(void *s) {
  attune_decision *decision = NULL;
  OK(attune_decision_create(&decision, NULL));
  OK(attune_explain(tuner, host, "gemm f32 nn 4x4x4 strict", decision));
  const attune_status status = attune_decision_get_info(decision, s);
  attune_decision_destroy(decision);
  return status;
}

static attune_status give_recheck(void *s) {
  OK(attune_tune(tuner, host, "gemm f32 nn 2x2x2 strict", &(attune_tune_options){.budget_ms = 20.0}, NULL));
  return attune_verify(tuner, host, "gemm f32 nn 2x2x2 strict", 5.0, NULL, s);
}

static attune_status give_pool(void *s) {
  attune_pool *pool = NULL;
  OK(attune_pool_create(&pool, host, NULL));
  const attune_status status = attune_pool_get_info(pool, s);
  attune_pool_destroy(pool);
  return status;
}

static attune_status fill_numbers(void *user, attune_stream *on) {
  (void)user;
  return attune_fill(on, numbers, 0, sizeof numbers);
}

static attune_status with_graph(attune_status (*fn)(attune_graph *graph, void *s), void *s) {
  attune_graph *graph = NULL;
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, NULL, &(attune_capture_options){.keep_graph = 1}, fill_numbers, NULL));
  const attune_status status = fn(graph, s);
  attune_graph_destroy(graph);
  return status;
}

static attune_status node_of(attune_graph *graph, void *s) {
  return attune_graph_get_node(s, graph, 0);
}
static attune_status parameters_of(attune_graph *graph, void *s) {
  return attune_graph_get_parameters(s, graph, 0);
}
static attune_status set_parameters_of(attune_graph *graph, void *s) {
  return attune_graph_set_parameters(graph, 0, s);
}
static attune_status give_node(void *s) {
  return with_graph(node_of, s);
}
static attune_status give_parameters(void *s) {
  return with_graph(parameters_of, s);
}
static attune_status take_parameters(void *s) {
  return with_graph(set_parameters_of, s);
}

static void set_fill(void *s) {
  attune_node_parameters *p = s;
  p->kind = ATTUNE_NODE_FILL;
  p->fill.destination = numbers;
  p->fill.element_bytes = 1;
  p->fill.count = sizeof numbers;
  p->fill.rows = p->fill.slices = 1;
}

/* ---- all of them ---- */

typedef struct row {
  const char *name;
  size_t own;
  attune_status (*call)(void *s);
  void (*set)(void *s); /* NULL: zeros */
  int result;           /* 1: attune fills it */
  int remembered;       /* 1: the call may be found among the remembered ones */
} row;

#define TAKES(type, call) \
  { #type ", " #call, sizeof(type), call, NULL, 0, 0 }
#define TAKES_SET(type, call, set) \
  { #type ", " #call, sizeof(type), call, set, 0, 0 }
#define REMEMBERED(type, call, set) \
  { #type ", " #call, sizeof(type), call, set, 0, 1 }
#define GIVES(type, call) \
  { #type ", " #call, sizeof(type), call, NULL, 1, 0 }

static const row rows[] = {
    TAKES(attune_tuner_options, take_tuner_options),
    TAKES(attune_tune_options, take_tune_options),
    TAKES(attune_search_options, take_search_options),
    TAKES(attune_capture_options, take_capture_options),
    TAKES(attune_graph_callable_options, take_callable_options),
    TAKES(attune_event_options, take_event_options),
    TAKES(attune_file_options, take_file_options),
    TAKES(attune_pool_options, take_pool_options),
    TAKES(attune_managed_options, take_managed_options),
    TAKES(attune_managed_options, take_advice),
    TAKES_SET(attune_allocator, take_allocator, set_functions),
    TAKES_SET(attune_allocator, set_allocator, set_functions),
    TAKES(attune_history_options, take_history_options),
    REMEMBERED(attune_gemm_problem, take_problem, set_problem),
    TAKES_SET(attune_gemm_problem, plan_problem, set_problem),
    TAKES_SET(attune_gemm_problem, format_problem, set_problem),
    REMEMBERED(attune_gemm_operands, take_operands, set_operands),
    TAKES_SET(attune_gemm_operands, plan_operands, set_operands),
    REMEMBERED(attune_gemm_operands, run_operands, set_operands),
    TAKES_SET(attune_gemm_operands, format_operands, set_operands),
    REMEMBERED(attune_elementwise_operands, take_tensors, set_tensors),
    TAKES_SET(attune_elementwise_operands, plan_tensors, set_tensors),
    REMEMBERED(attune_elementwise_operands, run_tensors, set_tensors),
    TAKES_SET(attune_elementwise_operands, format_tensors, set_tensors),
    TAKES_SET(attune_elementwise_operands, format_tensors_cuda, set_tensors),
    TAKES_SET(attune_node_parameters, take_parameters, set_fill),
    TAKES(attune_node_parameters, give_parameters),
    GIVES(attune_device_properties, give_properties),
    GIVES(attune_device_details, give_details),
    GIVES(attune_telemetry, give_telemetry),
    GIVES(attune_warmed, give_warmed),
    GIVES(attune_profile_totals, give_totals),
    GIVES(attune_capture_info, give_capture),
    GIVES(attune_managed_state, give_managed),
    GIVES(attune_memory_statistics, give_statistics),
    GIVES(attune_pinned_statistics, give_pinned),
    GIVES(attune_pointer_info, give_pointer),
    GIVES(attune_allocator, give_allocator),
    GIVES(attune_gemm_problem, give_problem),
    GIVES(attune_search_options, give_search),
    GIVES(attune_decision_info, give_decision),
    GIVES(attune_recheck, give_recheck),
    GIVES(attune_pool_info, give_pool),
    GIVES(attune_node, give_node),
};

/* The call with a struct of `bytes` bytes that says `size`; bytes behind the library's own are `surplus`. A result's
 * are as they were. */
static attune_status call_with(const row *r, size_t bytes, size_t size, unsigned char surplus) {
  unsigned char *whole = calloc(1, r->own), *s = calloc(1, bytes);
  assert_true(whole && s);
  if (r->set) r->set(whole);
  memcpy(s, whole, bytes < r->own ? bytes : r->own);
  if (bytes > r->own) memset(s + r->own, surplus, bytes - r->own);
  memcpy(s, &size, sizeof size);
  const attune_status status = r->call(s);
  for (size_t i = r->own; i < bytes; i++) assert_int_equal(s[i], surplus);
  if (r->result) assert_memory_equal(s, &size, sizeof size);
  free(whole);
  free(s);
  return status;
}

TEST(each_size) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row *r = &rows[i];
    const attune_status usual = call_with(r, r->own, r->own, 0);
    if (usual != ATTUNE_OK && usual != ATTUNE_UNSUPPORTED && usual != ATTUNE_NOT_FOUND)
      fail_msg("%s: %s", r->name, attune_last_message());
    const struct {
      size_t bytes, size;
      unsigned char surplus;
      int bad;
    } each[] = {{r->own, 0, 0, 0},
                {r->own + 24, r->own + 24, 0, 0},
                {r->own + 24, r->own + 24, 7, !r->result},
                {r->own + 24, 0, 7, 0},
                {r->own, (size_t)1 << 40, 0, 1},
                {r->own, r->own - 8, 0, 1}, /* less than in any version */
                {r->own, 8, 0, 1},
                {r->own, 13, 0, 1}};
    /* A remembered call is compared for what is longer only: all programs have the fields of version 0.1. */
    const size_t count = sizeof each / sizeof *each - (r->remembered ? 3 : 0);
    for (size_t k = 0; k < count; k++) {
      const size_t bytes = each[k].bytes < each[k].size && !each[k].bad ? each[k].size : each[k].bytes;
      const attune_status wanted = each[k].bad && usual == ATTUNE_OK ? ATTUNE_INVALID_ARGUMENT : usual;
      const attune_status got = call_with(r, bytes, each[k].size, each[k].surplus);
      if (got != wanted && !(each[k].bad && got == ATTUNE_INVALID_ARGUMENT))
        fail_msg("%s, size %zu of %zu: status %d, should be %d: %s", r->name, each[k].size, r->own, (int)got,
                 (int)wanted, attune_last_message());
      if (got != usual && !strstr(attune_last_message(), "size is"))
        fail_msg("%s: the message should name the size: %s", r->name, attune_last_message());
    }
  }
}

/* Whoever adds a field moves it to the end, and gives 0 the size of version 0.1 in src/base/struct_size.c. */
TEST(as_in_0_1) {
#if defined(__LP64__)
  assert_int_equal(sizeof(attune_gemm_problem), 200);
  assert_int_equal(sizeof(attune_gemm_operands), 168);
  assert_int_equal(sizeof(attune_elementwise_operands), 72);
  assert_int_equal(sizeof(attune_tuner_options), 56);
  assert_int_equal(sizeof(attune_tune_options), 32);
#endif
}

FIXTURE(open_all) {
  const attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_CACHED, .budget_ms = 1.0};
  OK(attune_device_get(&host, "host"));
  stream = attune_stream_default(host);
  OK(attune_tuner_create(&tuner, &options));
  return 0;
}

FIXTURE(close_all) {
  attune_tuner_destroy(tuner);
  return 0;
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
