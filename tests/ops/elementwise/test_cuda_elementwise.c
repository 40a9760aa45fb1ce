/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_elementwise.c: the CUDA kernels of expressions on the device, against evaluate.h: every form over every way
 * in which operands can lie, every function with every dtype, casts, the element's place, random numbers, more than
 * 2^31 elements. Needs a GPU. An argument names the tests to run: "forms". */
#include <attune/attune.h>

#include "tests/support/check.h"

#include "src/cuda/jit/jit.h"
#include "tests/ops/elementwise/elementwise_forms.h"
#include "tests/support/gpu.h"

enum { BATCH = 512 };

static attune_device *device;
static attune_stream *stream;
static int capability, processors;

/* A case with its kernel, which all of a batch get at once. */
typedef struct job {
  graph g;
  ecase c;
  at_cuda_choice choice;
  char *text;
  double allowed[AT_EXPRESSION_OUTPUTS];
  char name[96];
} job;

static job *jobs;
static at_jit_request *requests;
static int job_count, done_count;

/* The operands on the device, run, and back. */
static void run_job(job *j, at_jit_kernel *kernel, bool from_state) {
  const at_cuda_problem *p = &j->c.problem;
  const int tensors = p->expression->output_count + p->expression->input_count;
  unsigned char *memory[AT_CUDA_TENSORS];
  void *data[AT_CUDA_TENSORS];
  at_cuda_launch launch;
  for (int k = 0; k < tensors; k++) {
    case_operand *o = &j->c.operands[k];
    memory[k] = NULL;
    for (int i = 0; i < k; i++)
      if (j->c.operands[i].memory == o->memory) memory[k] = memory[i];
    if (!memory[k]) {
      OK(attune_alloc((void **)&memory[k], stream, o->bytes));
      assert_int_equal((uintptr_t)memory[k] % 256, 0);
      OK(attune_copy(stream, memory[k], o->memory, o->bytes));
    }
    data[k] = memory[k] + ((const unsigned char *)o->view.data - o->memory) +
              p->layout.operands[k].offset * (int64_t)attune_dtype_size(o->view.dtype);
  }
  uint64_t *state = NULL;
  const uint64_t values[2] = {j->c.draws.seed, j->c.draws.offset - 8};
  if (from_state) {
    OK(attune_alloc((void **)&state, stream, sizeof values));
    OK(attune_copy(stream, state, values, sizeof values));
  }
  OK(at_cuda_plan(&launch, p, &j->choice, processors, 2));
  at_cuda_bind_tensors(&launch, p, data);
  at_cuda_bind_scalars(&launch, p->expression, j->c.scalars);
  at_cuda_bind_random(&launch, state ? 0 : j->c.draws.seed, state ? 8 : j->c.draws.offset, state);
  if (launch.config.grid[0] > 0) {
    OK(at_jit_check(kernel, &launch.config));
    OK(at_jit_launch(kernel, &launch.config, launch.words, stream));
  }
  for (int k = 0; k < p->expression->output_count; k++) {
    unsigned char *got = malloc(j->c.operands[k].bytes);
    int64_t place = 0;
    OK(attune_copy(stream, got, memory[k], j->c.operands[k].bytes));
    OK(attune_stream_synchronize(stream));
    const double worst = case_compare(&j->c, k, got, &place);
    if (!(worst <= j->allowed[k])) {
      at_configuration text;
      const at_view *v = &j->c.expected[k].view;
      const size_t at = CASE_EDGE + (size_t)place * attune_dtype_size(v->dtype);
      (void)at_cuda_choice_format(&text, &j->choice);
      print_error("%s %s: output %d (%s), element %lld is off by %g units, allowed %g: %.17g, should be %.17g\n",
                  j->name, text.text, k, functions_name(&j->g, k), (long long)place, worst, j->allowed[k],
                  case_double(v->dtype, got + at), case_double(v->dtype, j->c.expected[k].memory + at));
      done_count += 1 << 20;
    }
    free(got);
  }
  for (int k = 0; k < tensors; k++) {
    bool shared = false;
    for (int i = 0; i < k; i++) shared = shared || memory[i] == memory[k];
    if (!shared) OK(attune_free(memory[k], stream));
  }
  if (state) OK(attune_free(state, stream));
  done_count++;
}

/* Compiles what has come together, in parallel, and runs it. */
static void flush(void) {
  for (int i = 0; i < job_count; i++) {
    memset(&requests[i], 0, sizeof requests[i]);
    requests[i].source = (at_kernel_source){.file = "elementwise.cu", .text = jobs[i].text, .entry = AT_CUDA_ENTRY};
  }
  at_jit_get_all(requests, job_count, device);
  for (int i = 0; i < job_count; i++) {
    if (!requests[i].kernel) {
      fail_msg("%s: %.600s", jobs[i].name, requests[i].message); /* cmocka has room for 1024 characters */
      return;                                                    /* fail_msg does not come back */
    }
    run_job(&jobs[i], requests[i].kernel, false);
    if (jobs[i].g.e.uniform_count) {
      const case_operand *o = &jobs[i].c.operands[0];
      memset(o->memory, CASE_POISON, o->bytes);
      run_job(&jobs[i], requests[i].kernel, true);
    }
    at_jit_release(requests[i].kernel);
    free(jobs[i].text);
    case_free(&jobs[i].c);
  }
  job_count = 0;
}

/* False: the operands cannot lie so for the choice. `allowed`: units, of each output. */
static bool add_outputs(const graph *g, const at_shape *shape, const lie *ways, const attune_dtype *outputs,
                        const at_cuda_choice *choice, const double *allowed, bool reduced, bool tame,
                        const char *name) {
  job *j = &jobs[job_count];
  memset(j, 0, sizeof *j);
  j->g = *g;
  j->g.e.nodes = j->g.nodes;
  j->choice = *choice;
  memcpy(j->allowed, allowed, (size_t)g->e.output_count * sizeof *allowed);
  snprintf(j->name, sizeof j->name, "%s", name);
  OK(case_make(&j->c, &j->g, shape, ways, outputs, reduced, tame, (uint64_t)(done_count + job_count) + 3));
  if (!at_cuda_supports(&j->c.problem, choice, capability)) {
    case_free(&j->c);
    return false;
  }
  OK(at_cuda_generate(&j->text, &j->c.problem, choice));
  if (++job_count == BATCH) flush();
  return true;
}

static bool add(const graph *g, const at_shape *shape, const lie *ways, const attune_dtype *outputs,
                const at_cuda_choice *choice, double allowed, bool reduced, bool tame, const char *name) {
  double each[AT_EXPRESSION_OUTPUTS];
  for (int k = 0; k < AT_EXPRESSION_OUTPUTS; k++) each[k] = allowed;
  return add_outputs(g, shape, ways, outputs, choice, each, reduced, tame, name);
}

FIXTURE(setup) {
  done_count = job_count = 0;
  return 0;
}

/* All ran, and none was wrong (each wrong one adds 2^20). */
static void finish(int least) {
  flush();
  print_message("%d cases\n", done_count & ((1 << 20) - 1));
  if (done_count >> 20) fail_msg("%d cases are wrong", done_count >> 20);
  assert_true(done_count >= least);
}

TEST_WITH(forms, setup, NULL) {
  static graph g;
  for (size_t i = 0; i < AT_COUNT(form_cases); i++) {
    const form_case *f = &form_cases[i];
    char name[32];
    snprintf(name, sizeof name, "form case %zu", i);
    three(&g, f->dtypes[1], f->dtypes[2], f->dtypes[3], f->dtypes[0]);
    const bool added = add(&g, &f->shape, f->ways, f->dtypes, &f->choice, 1, false, true, name);
    if (!added && !(f->choice.form == AT_FORM_BULK && capability < 90)) fail_msg("%s is not supported", name);
  }
  finish(20);
}

/* Every candidate of larger problems: odd sizes, all dtypes of the choice's width. */
TEST_WITH(candidates, setup, NULL) {
  static graph g;
  static const struct {
    at_shape shape;
    lie ways[4];
    attune_dtype dtypes[4];
  } problems[] = {
      {{1, {500009}}, {PACKED, PACKED, PACKED, PACKED}, F32x4},
      {{1, {500009}}, {PACKED, PACKED, PACKED, ONE}, BF16x4},
      {{1, {300007}}, {SHIFTED, SHIFTED, SHIFTED, ONE}, BF16x4},
      {{2, {613, 1368}}, {PACKED, PACKED, BIAS, COLUMN}, BF16x4},
      {{2, {613, 1001}}, {PACKED, PACKED, BIAS, COLUMN}, F32x4},
      {{2, {1096, 840}}, {PACKED, TURNED, PACKED, ONE}, BF16x4},
      {{2, {1031, 517}}, {PACKED, TURNED, PACKED, ONE}, F32x4},
      {{3, {7, 264, 328}}, {PACKED, TURNED, TURNED, BIAS}, {ATTUNE_F16, ATTUNE_F8E4M3, ATTUNE_F16, ATTUNE_F16}},
  };
  for (size_t i = 0; i < AT_COUNT(problems); i++) {
    at_cuda_choice list[64];
    ecase c;
    char name[32];
    snprintf(name, sizeof name, "problem %zu", i);
    three(&g, problems[i].dtypes[1], problems[i].dtypes[2], problems[i].dtypes[3], problems[i].dtypes[0]);
    OK(case_make(&c, &g, &problems[i].shape, problems[i].ways, problems[i].dtypes, false, true, 1));
    const int count = at_cuda_candidates(&c.problem, capability, list, 64);
    case_free(&c);
    for (int k = 0; k < count; k++)
      assert_true(add(&g, &problems[i].shape, problems[i].ways, problems[i].dtypes, &list[k], 1, false, true, name));
    flush();
  }
  finish(50);
}

TEST_WITH(functions, setup, NULL) {
  static graph g;
  const lie ways[AT_CUDA_TENSORS] = {PACKED};
  int number = 0;
  for (int d = AT_DTYPE_LAST; d >= 1; d--)
    for (int tame = 0; tame < 2; tame++)
      for (int f = 0; f < AT_FN_COUNT;) {
        char name[64];
        double allowed[AT_EXPRESSION_OUTPUTS];
        f = functions_take(&g, f, (attune_dtype)d, tame != 0, allowed);
        if (g.e.output_count == 0) continue;
        snprintf(name, sizeof name, "functions of %s", attune_dtype_name((attune_dtype)d));
        assert_true(
            add_outputs(&g, &(at_shape){1, {4099}}, ways, NULL, &functions_choice, allowed, false, tame != 0, name));
        number += g.e.output_count;
      }
  print_message("%d functions of a dtype\n", number);
  assert_true(number > 1300);
  finish(100);
}

/* Each dtype to each, and what that is in f64: four of them a kernel. */
TEST_WITH(casts, setup, NULL) {
  static graph g;
  const lie ways[AT_CUDA_TENSORS] = {PACKED};
  int number = 0;
  for (int from = 1; from <= AT_DTYPE_LAST; from++)
    for (int to = 1; to <= AT_DTYPE_LAST;) {
      char name[64];
      attune_dtype outputs[AT_EXPRESSION_OUTPUTS];
      graph_begin(&g);
      const int x = graph_input(&g, (attune_dtype)from);
      for (; to <= AT_DTYPE_LAST && g.e.output_count < AT_EXPRESSION_OUTPUTS; to++, number++) {
        outputs[g.e.output_count] = (attune_dtype)to;
        graph_output(&g, x);
        outputs[g.e.output_count] = ATTUNE_F64;
        graph_output(&g, graph_cast(&g, ATTUNE_F64, graph_cast(&g, (attune_dtype)to, x)));
      }
      snprintf(name, sizeof name, "%s to four from %s on", attune_dtype_name((attune_dtype)from),
               attune_dtype_name(outputs[0]));
      assert_true(add(&g, &(at_shape){1, {2000}}, ways, outputs, &functions_choice, 0, false, false, name));
    }
  assert_int_equal(number, AT_DTYPE_LAST * AT_DTYPE_LAST);
  finish(80);
}

TEST_WITH(draws, setup, NULL) {
  static graph g;
  static const at_cuda_choice choices[] = {{.form = V, .bytes = 16, .loads = 2, .block = 64},
                                           {.form = R, .bytes = 16, .loads = 2, .block = 64},
                                           {.form = S, .loads = 2, .block = 64},
                                           {.form = T, .bytes = 4, .tile = 32, .block = 64}};
  static const lie ways[][2] = {{PACKED, PACKED}, {PACKED, BIAS}, {SPREAD, BACKWARD}, {PACKED, TURNED}};
  for (size_t i = 0; i < AT_COUNT(choices); i++) {
    graph_begin(&g);
    const int a = graph_input(&g, ATTUNE_F32), u = graph_node(&g, AT_NODE_UNIFORM, ATTUNE_F32, 0),
              n = graph_node(&g, AT_NODE_NORMAL, ATTUNE_F32, 0);
    g.e.uniform_count = 1, g.e.normal_count = 1;
    const int sum = graph_apply(&g, AT_FN_ADD, ATTUNE_F32, u, n, 0);
    graph_output(&g, graph_apply(&g, AT_FN_MULTIPLY, ATTUNE_F32, a, sum, 0));
    assert_true(add(&g, &(at_shape){2, {147, 236}}, ways[i], NULL, &choices[i], 0, false, true, "draws"));
  }
  finish(8);
}

/* More than 2^31 elements of a byte: out = a + 3, in three forms. */
TEST(many_elements) {
  static graph g;
  static const at_cuda_choice choices[] = {{.form = V, .bytes = 16, .loads = 4, .block = 256},
                                           {.form = V, .bytes = 16, .loads = 4, .block = 256, .persistent = 1},
                                           {.form = S, .loads = 4, .block = 256, .wide = 1}};
  const int64_t count = ((int64_t)1 << 31) + 12347;
  enum { PIECE = 1 << 26 };
  void *a = NULL, *out = NULL;
  attune_device_properties properties = {0};
  OK(attune_device_get_properties(device, &properties));
  if (attune_alloc(&a, stream, (size_t)count) != ATTUNE_OK || attune_alloc(&out, stream, (size_t)count) != ATTUNE_OK) {
    print_message("not enough memory for 2 x 2^31 bytes: left out\n");
    if (a) OK(attune_free(a, stream));
    return;
  }
  graph_begin(&g);
  const int x = graph_input(&g, ATTUNE_U8);
  graph_output(&g, graph_apply(&g, AT_FN_ADD, ATTUNE_U8, x, graph_constant(&g, ATTUNE_U8, 3), 0));
  const at_shape shape = {1, {count}};
  const at_view views[] = {at_view_packed(out, ATTUNE_U8, &shape), at_view_packed(a, ATTUNE_U8, &shape)};
  unsigned char *host = malloc(PIECE), *pattern = malloc(PIECE), *wanted = malloc(PIECE);
  assert_true(host && pattern && wanted);
  for (int64_t i = 0; i < PIECE; i++)
    pattern[i] = (unsigned char)(i * 131 >> 7), wanted[i] = (unsigned char)(pattern[i] + 3);
  for (int64_t at = 0; at < count; at += PIECE)
    OK(attune_copy(stream, (char *)a + at, pattern, (size_t)(count - at < PIECE ? count - at : PIECE)));
  for (size_t i = 0; i < AT_COUNT(choices); i++) {
    at_cuda_problem p;
    at_cuda_launch launch;
    at_jit_kernel *kernel = NULL;
    char *text = NULL;
    OK(graph_problem(&p, &g, &shape, views));
    OK(at_cuda_generate(&text, &p, &choices[i]));
    const at_kernel_source source = {.file = "elementwise.cu", .text = text, .entry = AT_CUDA_ENTRY};
    OK(at_jit_get(&kernel, device, &source));
    OK(at_cuda_plan(&launch, &p, &choices[i], processors, 4));
    at_cuda_bind_tensors(&launch, &p, (void *[]){out, a});
    OK(attune_fill(stream, out, 0, (size_t)count));
    OK(at_jit_launch(kernel, &launch.config, launch.words, stream));
    for (int64_t at = 0; at < count; at += PIECE) {
      const size_t length = (size_t)(count - at < PIECE ? count - at : PIECE);
      OK(attune_copy(stream, host, (char *)out + at, length));
      OK(attune_stream_synchronize(stream));
      if (memcmp(host, wanted, length) != 0)
        fail_msg("choice %zu: some of the %zu bytes from %lld on are wrong", i, length, (long long)at);
    }
    at_jit_release(kernel);
    free(text);
  }
  free(host);
  free(pattern);
  free(wanted);
  OK(attune_free(a, stream));
  OK(attune_free(out, stream));
}

/* ---- kernels that begin before the one in front of them is done ---- */

enum { LINKS = 5, STEPS = 400 };

/* to = from + 1, each in another form. */
typedef struct chain {
  int side, count;
  float *memory[2], *kept;
  at_jit_kernel *kernels[LINKS];
  at_cuda_launch launches[LINKS];
  at_cuda_problem problems[LINKS];
} chain;

static graph chain_graph;

static void add_link(chain *c, const at_cuda_choice *choice) {
  const at_shape shape = {2, {c->side, c->side}};
  at_view views[2] = {at_view_packed(c->memory[1], ATTUNE_F32, &shape),
                      at_view_packed(c->memory[0], ATTUNE_F32, &shape)};
  char *text = NULL;
  if (choice->form == T) views[1].strides[0] = 1, views[1].strides[1] = c->side;
  at_cuda_problem *p = &c->problems[c->count];
  OK(graph_problem(p, &chain_graph, &shape, views));
  if (!at_cuda_supports(p, choice, capability)) return;
  OK(at_cuda_generate(&text, p, choice));
  const at_kernel_source source = {.file = "elementwise.cu", .text = text, .entry = AT_CUDA_ENTRY};
  OK(at_jit_get(&c->kernels[c->count], device, &source));
  OK(at_cuda_plan(&c->launches[c->count], p, choice, processors, 2));
  assert_int_equal(c->launches[c->count].config.dependent, choice->dependent > 0);
  free(text);
  c->count++;
}

/* STEPS launches back and forth, one memory's contents kept on the way. */
static attune_status run_chain(chain *c) {
  const size_t bytes = (size_t)c->side * (size_t)c->side * sizeof(float);
  attune_status status = attune_fill(stream, c->memory[0], 0, bytes);
  for (int i = 0; i < STEPS && status == ATTUNE_OK; i++) {
    const int link = i * 7 % c->count;
    void *const tensors[] = {c->memory[(i + 1) % 2], c->memory[i % 2]};
    at_cuda_bind_tensors(&c->launches[link], &c->problems[link], tensors);
    status = at_jit_launch(c->kernels[link], &c->launches[link].config, c->launches[link].words, stream);
    if (status == ATTUNE_OK && i == STEPS / 2) status = attune_copy(stream, c->kept, c->memory[(i + 1) % 2], bytes);
  }
  return status;
}

static void assert_all(const float *memory, int count, float value) {
  float *host = malloc((size_t)count * sizeof *host);
  assert_non_null(host);
  OK(attune_copy(stream, host, memory, (size_t)count * sizeof *host));
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < count; i++)
    if (host[i] != value) fail_msg("element %d of %d is %g; should be %g", i, count, (double)host[i], (double)value);
  free(host);
}

static void chain_of(int side) {
  static const at_cuda_choice choices[LINKS] = {
      {.form = V, .bytes = 4, .loads = 1, .block = 128, .dependent = 1},
      {.form = S, .loads = 1, .block = 128, .dependent = 2},
      {.form = T, .bytes = 4, .tile = 32, .block = 128, .dependent = 2},
      {.form = R, .bytes = 4, .loads = 2, .block = 64, .dependent = 1},
      {.form = B, .bytes = 16, .loads = 2, .block = 64, .persistent = 1, .dependent = 2}};
  chain c = {.side = side};
  const int count = side * side;
  const size_t bytes = (size_t)count * sizeof(float);
  at_graph *captured = NULL;
  for (int i = 0; i < 2; i++) OK(attune_alloc((void **)&c.memory[i], stream, bytes));
  OK(attune_alloc((void **)&c.kept, stream, bytes));
  for (size_t i = 0; i < LINKS; i++) add_link(&c, &choices[i]);
  assert_true(c.count >= 4);
  OK(device->backend.graph->capture_begin(stream));
  const attune_status status = run_chain(&c);
  OK(device->backend.graph->capture_end(stream, &captured));
  OK(status);
  for (int round = 0; round < 6; round++) {
    OK(attune_fill(stream, c.kept, 0xff, bytes));
    OK(round % 2 ? device->backend.graph->launch(captured, stream) : run_chain(&c));
    assert_all(c.memory[STEPS % 2], count, STEPS);
    assert_all(c.kept, count, STEPS / 2 + 1);
  }
  device->backend.graph->destroy(captured);
  for (int i = 0; i < c.count; i++) at_jit_release(c.kernels[i]);
  for (int i = 0; i < 2; i++) OK(attune_free(c.memory[i], stream));
  OK(attune_free(c.kept, stream));
}

/* Each launch sees all that the one before wrote, and writes nothing that it still reads. */
TEST(chains) {
  graph_begin(&chain_graph);
  const int x = graph_input(&chain_graph, ATTUNE_F32);
  graph_output(&chain_graph,
               graph_apply(&chain_graph, AT_FN_ADD, ATTUNE_F32, x, graph_constant(&chain_graph, ATTUNE_F32, 1), 0));
  chain_of(32);
  chain_of(257);
  chain_of(2048);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  attune_device_properties properties = {0};
  if (attune_device_get_properties(device, &properties) != ATTUNE_OK ||
      attune_stream_create(&stream, device) != ATTUNE_OK)
    return 1;
  capability = properties.capability_major * 10 + properties.capability_minor;
  processors = properties.processors;
  jobs = calloc(BATCH, sizeof *jobs);
  requests = calloc(BATCH, sizeof *requests);
  if (!jobs || !requests) return 1;
  const int failures = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  free(jobs);
  free(requests);
  return failures;
}
