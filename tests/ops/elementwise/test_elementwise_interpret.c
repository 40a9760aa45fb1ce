/* SPDX-License-Identifier: Apache-2.0
 * The host's interpreter as a whole: strides, broadcasting, blocks, threads, in place, random graphs, conversions,
 * draws. ATTUNE_TEST_GRAPHS random graphs (default 60); ATTUNE_TEST_PATTERNS patterns of strides (default 300; -1: 400
 * for every shape up to 4 dimensions of sizes 1 to 5). */
#include "tests/support/check.h"

#include <attune/device.h>
#include <attune/random.h>

#include "ops/elementwise/host/interpret_program.h"
#include "ops/elementwise/language/compile.h"
#include "tests/ops/elementwise/elementwise_graph.h"
#include "tests/ops/elementwise/evaluate_views.h"

static int graph_count = 60, pattern_count = 300;

static at_expression *compile(const char *text, const char *names, const attune_dtype *dtypes) {
  at_operand_name tensors[AT_EXPRESSION_INPUTS] = {{{0}, 0, 0}}, scalar = {"s", ATTUNE_F64, 0};
  at_signature signature = {.tensors = tensors, .scalars = &scalar, .scalar_count = strstr(text, "s *") != NULL};
  for (int i = 0; names[i]; i++, signature.tensor_count++) {
    tensors[i].name[0] = names[i];
    tensors[i].dtype = (uint8_t)dtypes[i];
  }
  at_expression *e;
  OK(at_expression_create(&e, text, strlen(text), &signature));
  return e;
}

static void run_views(const at_interpreter *p, const at_view *outputs, int output_count, const at_view *inputs,
                      int input_count, at_interpreter_call call) {
  at_layout layout;
  OK(at_operands_check(&outputs[0].shape, outputs, output_count, inputs, input_count));
  OK(at_interpreter_layout(&layout, p, outputs, inputs));
  for (int i = 0; i < output_count; i++) call.outputs[i] = (void *)(uintptr_t)outputs[i].data;
  for (int i = 0; i < input_count; i++) call.inputs[i] = inputs[i].data;
  at_interpreter_run(p, &layout, &call);
}

/* ---- strides ---- */

enum { ROOM = 4096 };

/* Strides by pattern: packed in any order of dimensions, spread out, backwards, broadcast. `writable`: no elements fall
 * together. Memory starts in the middle. */
static void pattern_strides(at_view *view, uint64_t pattern, bool writable) {
  int64_t stride = pattern & 1 ? 2 : 1;
  int order[AT_DIMS];
  for (int d = 0; d < view->shape.dims; d++) order[d] = view->shape.dims - 1 - d;
  for (int d = view->shape.dims - 1; d > 0; d--) {
    const int other = (int)((pattern >> (4 * d)) % (uint64_t)(d + 1)), was = order[d];
    order[d] = order[other];
    order[other] = was;
  }
  for (int k = 0; k < view->shape.dims; k++) {
    const int d = order[k];
    const bool zero = !writable && (pattern >> (20 + k)) % 3 == 0, back = (pattern >> (26 + k)) % 4 == 0;
    view->strides[d] = zero ? 0 : back ? -stride : stride;
    if (!zero) stride *= view->shape.sizes[d];
    if ((pattern >> (32 + k)) % 5 == 0) stride += 1;
  }
}

static void check_pattern(const at_expression *e, const at_interpreter *p, const at_shape *shape, uint64_t *state) {
  static float memory[4][ROOM], expected[ROOM];
  at_view output = {.data = memory[3] + ROOM / 2, .dtype = ATTUNE_F32, .shape = *shape}, inputs[2];
  pattern_strides(&output, at_splitmix64(state), true);
  for (int i = 0; i < 2; i++) {
    inputs[i] = (at_view){.data = memory[i] + ROOM / 2, .dtype = ATTUNE_F32, .shape = *shape};
    const uint64_t less = at_splitmix64(state);
    for (int d = 0; d < shape->dims; d++)
      if (less >> d & 1u && less & 64u) inputs[i].shape.sizes[d] = 1;
    pattern_strides(&inputs[i], at_splitmix64(state), false);
  }
  for (int k = 0; k < ROOM; k++) memory[3][k] = expected[k] = -77.0f;
  const at_interpreter_call call = {.threads = 1 + (int)(at_splitmix64(state) % 3), .block = 16};
  run_views(p, &output, 1, inputs, 2, call);
  at_view wanted = output;
  wanted.data = expected + ROOM / 2;
  OK(at_evaluate_views(e, &wanted, inputs, NULL, NULL, AT_ROUND_NODES));
  if (memcmp(memory[3], expected, sizeof expected) != 0)
    fail_msg("another result, or memory beside the output written");
}

TEST(strides) {
  uint64_t state = 5;
  at_expression *e = compile("a - 3 * b + f32(index(0) + 10 * index(1)) + 1000 * f32(index())", "ab",
                             (attune_dtype[]){ATTUNE_F32, ATTUNE_F32});
  at_interpreter *p;
  OK(at_interpreter_create(&p, e, NULL, NULL));
  if (pattern_count < 0) {
    for (int dims = 0; dims <= 4; dims++)
      for (int code = 0; code < (dims == 0 ? 1 : dims == 1 ? 5 : dims == 2 ? 25 : dims == 3 ? 125 : 625); code++)
        for (int k = 0; k < 400; k++)
          check_pattern(e, p, &(at_shape){dims, {1 + code % 5, 1 + code / 5 % 5, 1 + code / 25 % 5, 1 + code / 125}},
                        &state);
  }
  for (int k = 0; k < pattern_count; k++) {
    at_shape shape = {.dims = (int)(at_splitmix64(&state) % 5)};
    for (int d = 0; d < shape.dims; d++) shape.sizes[d] = 1 + (int64_t)(at_splitmix64(&state) % 5);
    check_pattern(e, p, &shape, &state);
  }
  at_interpreter_destroy(p);
  at_expression_destroy(e);
}

static void check_sizes(const char *text) {
  const int64_t most = 3 * AT_BLOCK_MOST + 7;
  float *a = malloc((size_t)most * sizeof *a), *b = malloc((size_t)most * sizeof *b);
  float *out = malloc((size_t)(most + 1) * sizeof *out), *expected = malloc((size_t)most * sizeof *expected);
  for (int64_t i = 0; i < most; i++) a[i] = (float)(i % 1000), b[i] = (float)(i % 77) - 30.0f;
  at_expression *e = compile(text, "ab", (attune_dtype[]){ATTUNE_F32, ATTUNE_F32});
  const at_constant scalar = {.re = 2.5};
  at_interpreter *p;
  OK(at_interpreter_create(&p, e, NULL, NULL));
  const int64_t counts[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, most};
  for (size_t c = 0; c < AT_COUNT(counts); c++)
    for (int threads = 1; threads <= 4; threads++)
      for (int how = 0; how < 4; how++) {
        const int64_t n = counts[c];
        /* how 1: rows of 100 with a bias; 2: an output with gaps, past the caches */
        at_shape shape = {.dims = 1, .sizes = {n}};
        if (how == 1) shape = (at_shape){2, {n / 100, 100}};
        at_view views[] = {at_view_packed(a, ATTUNE_F32, &shape), at_view_packed(b, ATTUNE_F32, &shape)};
        at_view output = at_view_packed(out, ATTUNE_F32, &shape), wanted = at_view_packed(expected, ATTUNE_F32, &shape);
        if (how == 1) views[1].strides[0] = 0;
        for (int64_t i = 0; i <= most; i++) out[i] = -1.0f;
        run_views(p, &output, 1, views, 2,
                  (at_interpreter_call){
                      .scalars = &scalar, .threads = threads, .stream = how == 2, .block = how == 3 ? 48 : 0});
        OK(at_evaluate_views(e, &wanted, views, &scalar, NULL, AT_ROUND_NODES));
        int64_t count;
        assert_true(at_shape_count(&count, &shape));
        assert_memory_equal(out, expected, (size_t)count * sizeof *out);
        assert_true(out[count] == -1.0f);
      }
  at_interpreter_destroy(p);
  at_expression_destroy(e);
  free(a);
  free(b);
  free(out);
  free(expected);
}

/* Rows long enough to be walked one by one, and every size around a block, on one thread and more, past the caches too;
 * the second is one loop, which needs no blocks. */
TEST(sizes_and_threads) {
  check_sizes("s * a + b");
  check_sizes("a - b");
}

/* Both outputs over both inputs, and crosswise: all of a block is read before any of it is written. */
TEST(in_place) {
  static const struct {
    const char *text;
    bool crossed;
  } cases[] = {{"a + b, a * b", false}, {"a + b, a * b", true}, {"b, a", false}, {"a, b", true}, {"b + 1, a", false}};
  for (size_t c = 0; c < AT_COUNT(cases); c++) {
    enum { N = 2500 };
    static float a[N], b[N], first[N], second[N], x[N], y[N];
    for (int i = 0; i < N; i++) a[i] = x[i] = (float)i, b[i] = y[i] = 1000.0f - (float)(3 * i);
    at_expression *e = compile(cases[c].text, "ab", (attune_dtype[]){ATTUNE_F32, ATTUNE_F32});
    at_interpreter *p;
    OK(at_interpreter_create(&p, e, NULL, NULL));
    const at_shape shape = {1, {N}};
    /* The expression's order of operands is that of their first use. */
    const bool turned = e->inputs[0].name[0] == 'b';
    float *in0 = turned ? b : a, *in1 = turned ? a : b;
    const at_view inputs[] = {at_view_packed(in0, ATTUNE_F32, &shape), at_view_packed(in1, ATTUNE_F32, &shape)};
    const at_view same[] = {at_view_packed(turned ? y : x, ATTUNE_F32, &shape),
                            at_view_packed(turned ? x : y, ATTUNE_F32, &shape)};
    const at_view wanted[] = {at_view_packed(first, ATTUNE_F32, &shape), at_view_packed(second, ATTUNE_F32, &shape)};
    const at_view outputs[] = {inputs[cases[c].crossed], inputs[!cases[c].crossed]};
    run_views(p, outputs, 2, inputs, 2, (at_interpreter_call){.threads = 2});
    OK(at_evaluate_views(e, wanted, same, NULL, NULL, AT_ROUND_NODES));
    assert_memory_equal(outputs[0].data, first, sizeof first);
    assert_memory_equal(outputs[1].data, second, sizeof second);
    at_interpreter_destroy(p);
    at_expression_destroy(e);
  }
}

/* ---- conversions ---- */

TEST(conversions) {
  enum { N = 65536 };
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  char *in = malloc(N * 16), *out = malloc(N * 16);
  for (int s = 0; isas[s]; s++)
    for (int from = 1; from <= AT_DTYPE_LAST; from++)
      for (int to = 1; to <= AT_DTYPE_LAST; to++) {
        const size_t from_size = attune_dtype_size((attune_dtype)from), to_size = attune_dtype_size((attune_dtype)to);
        const bool all = from_size <= 2 && from != ATTUNE_BOOL && s < 3;
        const int64_t n = all && !getenv("AT_UNDER_VALGRIND") ? (from_size == 1 ? 256 : N) : 600;
        uint64_t state = 11;
        for (int64_t i = 0; i < n; i++) {
          const uint16_t bits = (uint16_t)i;
          if (all)
            memcpy(in + (size_t)i * from_size, &bits, from_size);
          else
            draw_element(in + (size_t)i * from_size, (attune_dtype)from, &state);
        }
        graph g;
        graph_start(&g);
        graph_output(&g, graph_cast(&g, (attune_dtype)to, graph_input(&g, (attune_dtype)from)));
        at_interpreter *p;
        OK(at_interpreter_create(&p, &g.e, NULL, isas[s]));
        const at_shape shape = {1, {n}};
        const at_view output = at_view_packed(out, (attune_dtype)to, &shape),
                      input = at_view_packed(in, (attune_dtype)from, &shape);
        run_views(p, &output, 1, &input, 1, (at_interpreter_call){0});
        at_interpreter_destroy(p);
        for (int64_t i = 0; i < n; i++) {
          const at_wide_value x = at_wide_value_load((attune_dtype)from, in + (size_t)i * from_size),
                              exact = at_wide_value_cast((attune_dtype)to, (attune_dtype)from, x),
                              got = at_wide_value_load((attune_dtype)to, out + (size_t)i * to_size);
          const bool same = at_dtype_whole((attune_dtype)to)
                                ? got.integer == exact.integer
                                : (got.re == exact.re || (isnan(got.re) && isnan(exact.re))) &&
                                      (got.im == exact.im || (isnan(got.im) && isnan(exact.im))) &&
                                      signbit(got.re) == signbit(exact.re);
          if (!same)
            fail_msg("%s to %s (%s): %.20Lg %lld gives %.20Lg %lld, should be %.20Lg %lld",
                     attune_dtype_name((attune_dtype)from), attune_dtype_name((attune_dtype)to),
                     at_interpret_isa_name(isas[s]), x.re, (long long)x.integer, got.re, (long long)got.integer,
                     exact.re, (long long)exact.integer);
        }
      }
  free(in);
  free(out);
}

/* ---- random graphs ---- */

enum { GRAPH_NODES = 40, GRAPH_ELEMENTS = 150 };

static int pick(const graph *g, attune_dtype dtype, uint64_t *state) {
  for (int tries = 0; tries < 20; tries++) {
    const int i = (int)(at_splitmix64(state) % (uint64_t)g->e.node_count);
    if (g->nodes[i].dtype == dtype) return i;
  }
  return -1;
}

static void make_graph(graph *g, uint64_t *state) {
  graph_start(g);
  for (int i = 0; i < 5; i++) graph_input(g, (attune_dtype)(1 + at_splitmix64(state) % AT_DTYPE_LAST));
  graph_add(g, (at_node){.kind = AT_NODE_ELEMENT, .dtype = ATTUNE_I64});
  graph_add(g, (at_node){.kind = AT_NODE_POSITION, .dtype = ATTUNE_I64, .index = 1});
  g->e.uniform_count = g->e.normal_count = 1;
  graph_add(g, (at_node){.kind = AT_NODE_UNIFORM, .dtype = ATTUNE_F32});
  graph_add(g, (at_node){.kind = AT_NODE_NORMAL, .dtype = ATTUNE_F32});
  graph_add(g, (at_node){.kind = AT_NODE_CONSTANT, .dtype = ATTUNE_F32, .constant = {.re = 0.75}});
  graph_add(g, (at_node){.kind = AT_NODE_CONSTANT, .dtype = ATTUNE_I32, .constant = {.integer = -3}});
  while (g->e.node_count < GRAPH_NODES) {
    const at_function f = (at_function)(at_splitmix64(state) % AT_FN_COUNT);
    const int any = (int)(at_splitmix64(state) % (uint64_t)g->e.node_count);
    const attune_dtype dtype = (attune_dtype)g->nodes[any].dtype;
    if (at_splitmix64(state) % 4 == 0) {
      graph_cast(g, (attune_dtype)(1 + at_splitmix64(state) % AT_DTYPE_LAST), any);
      continue;
    }
    const attune_dtype result = graph_result(f, dtype);
    if (!result) continue;
    int arguments[3];
    bool good = true;
    for (int k = 0; k < at_function_arity(f); k++) {
      arguments[k] = pick(g, f == AT_FN_SELECT && k == 0 ? ATTUNE_BOOL : dtype, state);
      good = good && arguments[k] >= 0;
    }
    if (good) graph_function(g, f, result, arguments, at_function_arity(f));
  }
}

/* Every node's values, a few nodes a run: each run has other registers. */
static void values_of_all(graph *g, char *const *values, const at_view *inputs, const at_shape *shape,
                          const at_random_draws *draws, uint64_t *state) {
  for (int from = 0; from < GRAPH_NODES;) {
    at_view outputs[AT_EXPRESSION_OUTPUTS];
    g->e.output_count = 0;
    const int many = 1 + (int)(at_splitmix64(state) % AT_EXPRESSION_OUTPUTS);
    for (int i = 0; i < many && from < GRAPH_NODES; i++, from++) {
      outputs[i] = at_view_packed(values[from], (attune_dtype)g->nodes[from].dtype, shape);
      graph_output(g, from);
    }
    at_interpreter *p;
    OK(at_interpreter_create(&p, &g->e, NULL, NULL));
    run_views(p, outputs, g->e.output_count, inputs, 5,
              (at_interpreter_call){.draws = draws, .threads = 2, .block = 16 * (int)(at_splitmix64(state) % 4)});
    at_interpreter_destroy(p);
  }
}

static double off_at(const graph *g, int i, char *const *values, int64_t k) {
  const at_node *node = &g->nodes[i];
  const attune_dtype dtype = (attune_dtype)node->dtype;
  const at_wide_value got = at_wide_value_load(dtype, values[i] + (size_t)k * attune_dtype_size(dtype));
  at_wide_value x[3] = {{0}}, exact;
  attune_dtype from = dtype;
  for (int n = 0; n < (node->kind == AT_NODE_CAST ? 1 : node->count); n++) {
    from = (attune_dtype)g->nodes[node->argument[n]].dtype;
    x[n] = at_wide_value_load(from, values[node->argument[n]] + (size_t)k * attune_dtype_size(from));
  }
  exact = node->kind == AT_NODE_CAST ? at_wide_value_cast(dtype, from, x[0])
                                     : at_evaluate_function((at_function)node->function, from, dtype, x);
  if (at_dtype_whole(dtype)) return got.integer == exact.integer ? 0.0 : INFINITY;
  if (at_dtype_kind_of(dtype) == AT_KIND_COMPLEX) {
    const long double size = hypotl(exact.re, exact.im);
    if (!(size < 1e37L) || size < 1e-37L) return 0.0; /* test_elementwise_functions has those */
    return (double)(hypotl(got.re - exact.re, got.im - exact.im) / size / (dtype == ATTUNE_C64 ? 0x1p-23L : 0x1p-52L)) /
           2.0;
  }
  return units_off(dtype, got.re, exact.re);
}

/* Each node beside the reference's function of the node's own arguments, as the interpreter computed those. */
TEST(random_graphs) {
  const bool rough = getenv("AT_UNDER_VALGRIND") != NULL;
  const at_shape shape = {2, {GRAPH_ELEMENTS / 10, 10}};
  const at_random_draws draws = {.seed = 3, .offset = 8};
  char *values[GRAPH_NODES], *memory[5];
  for (int i = 0; i < GRAPH_NODES; i++) values[i] = malloc(GRAPH_ELEMENTS * 16);
  for (int i = 0; i < 5; i++) memory[i] = malloc(GRAPH_ELEMENTS * 16);
  for (int seed = 0; seed < graph_count; seed++) {
    static graph g;
    uint64_t state = (uint64_t)seed * 77 + 1;
    make_graph(&g, &state);
    at_view inputs[5];
    for (int i = 0; i < 5; i++) {
      const attune_dtype dtype = (attune_dtype)g.e.inputs[i].dtype;
      for (size_t k = 0; k < GRAPH_ELEMENTS; k++) draw_element(memory[i] + k * attune_dtype_size(dtype), dtype, &state);
      inputs[i] = at_view_packed(memory[i], dtype, &shape);
    }
    values_of_all(&g, values, inputs, &shape, &draws, &state);
    for (int i = 0; i < GRAPH_NODES; i++) {
      const int kind = g.nodes[i].kind;
      if (kind != AT_NODE_CAST && kind != AT_NODE_FUNCTION) continue;
      for (int64_t k = 0; k < GRAPH_ELEMENTS; k++) {
        const double off = off_at(&g, i, values, k);
        if (off > (rough ? 6.0 : 2.0))
          fail_msg("graph %d: node %d, %s of %s, element %lld is off by %.3g units", seed, i,
                   kind == AT_NODE_CAST ? "cast" : at_function_name((at_function)g.nodes[i].function),
                   attune_dtype_name((attune_dtype)g.nodes[i].dtype), (long long)k, off);
      }
    }
    /* Functions without arguments, compared with the reference. */
    at_wide_value wanted[GRAPH_NODES];
    for (int64_t k = 0; k < GRAPH_ELEMENTS; k += 7) {
      at_element element = {.number = k, .position = {k % 10, k / 10}, .count = GRAPH_ELEMENTS, .draws = &draws};
      for (int i = 0; i < 5; i++)
        element.inputs[i] = memory[i] + (size_t)k * attune_dtype_size((attune_dtype)g.e.inputs[i].dtype);
      at_evaluate(wanted, &g.e, &element, AT_ROUND_NODES);
      for (int i = 5; i < 11; i++) {
        const attune_dtype dtype = (attune_dtype)g.nodes[i].dtype;
        const at_wide_value got = at_wide_value_load(dtype, values[i] + (size_t)k * attune_dtype_size(dtype));
        assert_true(got.re == wanted[i].re && got.integer == wanted[i].integer);
      }
    }
  }
  for (int i = 0; i < GRAPH_NODES; i++) free(values[i]);
  for (int i = 0; i < 5; i++) free(memory[i]);
}

/* rand() and randn() are the numbers that calls for as many would give, one after another, whatever the strides. */
TEST(draws_are_the_generators) {
  enum { N = 1003 };
  static float uniform[2][N], normal[N], got[3][N], turned[N];
  attune_generator *generator;
  attune_device *host;
  OK(attune_device_get(&host, "host"));
  OK(attune_generator_create(&generator, 42));
  OK(attune_generator_set_offset(generator, 12));
  for (int i = 0; i < 2; i++)
    OK(attune_random_uniform(generator, attune_stream_default(host), uniform[i], ATTUNE_F32, N, 0.0, 1.0));
  OK(attune_random_normal(generator, attune_stream_default(host), normal, ATTUNE_F32, N, 0.0, 1.0));
  uint64_t offset;
  OK(attune_generator_get_offset(generator, &offset));
  assert_int_equal(offset, 12 + at_draw_words(N, 3));
  attune_generator_destroy(generator);
  graph g;
  graph_start(&g);
  g.e.uniform_count = 2;
  g.e.normal_count = 1;
  for (int i = 0; i < 2; i++)
    graph_output(&g, graph_add(&g, (at_node){.kind = AT_NODE_UNIFORM, .dtype = ATTUNE_F32, .index = (uint16_t)i}));
  graph_output(&g, graph_add(&g, (at_node){.kind = AT_NODE_NORMAL, .dtype = ATTUNE_F32}));
  at_interpreter *p;
  OK(at_interpreter_create(&p, &g.e, NULL, NULL));
  const at_random_draws draws = {.seed = 42, .offset = 12};
  const at_shape shape = {2, {17, 59}};
  at_view outputs[3];
  for (int i = 0; i < 3; i++) outputs[i] = at_view_packed(got[i], ATTUNE_F32, &shape);
  run_views(p, outputs, 3, NULL, 0, (at_interpreter_call){.draws = &draws, .threads = 3, .block = 48});
  assert_memory_equal(got[0], uniform[0], sizeof normal);
  assert_memory_equal(got[1], uniform[1], sizeof normal);
  assert_memory_equal(got[2], normal, sizeof normal);
  g.e.output_count = 1;
  at_interpreter_destroy(p);
  OK(at_interpreter_create(&p, &g.e, NULL, NULL));
  outputs[0] = (at_view){.data = turned, .dtype = ATTUNE_F32, .shape = shape, .strides = {1, 17}};
  run_views(p, outputs, 1, NULL, 0, (at_interpreter_call){.draws = &draws, .threads = 2});
  for (int i = 0; i < N; i++) assert_true(turned[i / 59 + i % 59 * 17] == uniform[0][i]);
  at_interpreter_destroy(p);
}

/* As many values alive at once as there can be; then a sum of them all. */
TEST(many_registers) {
  static graph g;
  graph_start(&g);
  const int x = graph_input(&g, ATTUNE_C128);
  enum { LIVE = 500 };
  int value[LIVE], sum = x;
  for (int i = 0; i < LIVE; i++)
    value[i] = graph_function(&g, AT_FN_ADD, ATTUNE_C128, (int[]){i ? value[i - 1] : x, x}, 2);
  for (int i = LIVE - 1; i >= 0; i--) sum = graph_function(&g, AT_FN_ADD, ATTUNE_C128, (int[]){sum, value[i]}, 2);
  graph_output(&g, sum);
  at_interpreter *p;
  OK(at_interpreter_create(&p, &g.e, NULL, NULL));
  assert_true(p->register_count >= LIVE && p->register_count <= LIVE + 2);
  double in[200], out[200];
  for (int i = 0; i < 200; i++) in[i] = i;
  const at_shape shape = {1, {100}};
  const at_view output = at_view_packed(out, ATTUNE_C128, &shape), input = at_view_packed(in, ATTUNE_C128, &shape);
  run_views(p, &output, 1, &input, 1, (at_interpreter_call){.threads = 2, .block = AT_BLOCK_MOST});
  for (int i = 0; i < 200; i++) assert_true(out[i] == in[i] * (1.0 + (LIVE + 1.0) * (LIVE + 2.0) / 2.0 - 1.0));
  at_interpreter_destroy(p);
  /* A chain needs two, and an input read where it lies none of its own beside them. */
  graph_start(&g);
  int last = graph_input(&g, ATTUNE_F32);
  for (int i = 0; i < 100; i++) last = graph_function(&g, AT_FN_NEGATE, ATTUNE_F32, &last, 1);
  graph_output(&g, last);
  OK(at_interpreter_create(&p, &g.e, NULL, NULL));
  assert_true(p->register_count <= 2);
  at_interpreter_destroy(p);
}

TEST(bad_graphs) {
  graph g;
  at_interpreter *p;
  graph_start(&g);
  FAILS(at_interpreter_create(&p, &g.e, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  const int x = graph_input(&g, ATTUNE_I32);
  graph_output(&g, graph_function(&g, AT_FN_SIN, ATTUNE_I32, &x, 1));
  FAILS_SAYING(at_interpreter_create(&p, &g.e, NULL, NULL), ATTUNE_UNSUPPORTED, "sin of i32");
  assert_null(p);
  g.nodes[1].argument[0] = 1; /* itself */
  FAILS(at_interpreter_create(&p, &g.e, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  g.nodes[1] = (at_node){.kind = AT_NODE_CAST, .dtype = ATTUNE_F32};
  OK(at_interpreter_create(&p, &g.e, NULL, NULL));
  const at_shape shape = {1, {4}};
  const at_view output = at_view_packed(&g, ATTUNE_F32, &shape), input = at_view_packed(&g, ATTUNE_F32, &shape);
  at_layout layout;
  FAILS_SAYING(at_interpreter_layout(&layout, p, &output, &input), ATTUNE_INVALID_ARGUMENT,
               "input 0 is f32; should be i32");
  at_interpreter_destroy(p);
}

int main(void) {
  if (getenv("AT_UNDER_VALGRIND"))
    return skip_all("the reference is in long double, which valgrind computes as double");
  if (getenv("ATTUNE_TEST_GRAPHS")) graph_count = atoi(getenv("ATTUNE_TEST_GRAPHS"));
  if (getenv("ATTUNE_TEST_PATTERNS")) pattern_count = atoi(getenv("ATTUNE_TEST_PATTERNS"));
  if (getenv("AT_UNDER_VALGRIND")) graph_count = 4, pattern_count = 40;
  return RUN_TESTS(NULL, NULL);
}
