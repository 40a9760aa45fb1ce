/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_kernels.c: the CUDA kernels of expressions compile for every architecture that we care for, without
 * spilling: each function in each way that it can be computed, each form with its tunables. Needs no GPU. Each on one
 * architecture in turn; with ATTUNE_TEST_ALL on each, and every dtype. */
#include "tests/support/check.h"

#include "ops/elementwise/language/compile.h"
#include "src/cuda/jit/kernel_compile.h"
#include "tests/ops/elementwise/elementwise_forms.h"
#include "tests/ops/elementwise/elementwise_texts.h"

static const char *const architectures[] = {"sm_80", "sm_90a", "sm_100", "sm_120"};
static const int capabilities[] = {80, 90, 100, 120};

/* Registers; 0 when this compiler does not know the architecture. */
static int compile(const char *text, const char *architecture, const char *what, bool spills) {
  const at_kernel_source source = {.file = "elementwise.cu", .text = text, .entry = AT_CUDA_ENTRY};
  at_architecture target;
  at_kernel_code code = {NULL, 0};
  char *report = NULL;
  snprintf(target.name, sizeof target.name, "%s", architecture);
  const attune_status status = at_kernel_compile(&code, &source, &target, &report);
  if (status == ATTUNE_UNSUPPORTED) return 0;
  if (status != ATTUNE_OK) fail_msg("%s for %s: %s", what, architecture, attune_last_message());
  for (const char *at = spills ? NULL : report; at && (at = strstr(at, "bytes spill stores")); at++)
    if (at[-2] != '0' || at[-3] != ' ') fail_msg("%s for %s spills: %s", what, architecture, report);
  const char *used = report ? strstr(report, "Used ") : NULL;
  const int registers = used ? atoi(used + 5) : 1;
  assert_true(code.size > 0);
  free(report);
  at_kernel_code_free(&code);
  return registers;
}

/* ---- each function with each dtype ---- */

/* f(inputs of dtype d), stored as torch would; false: the function does not take it. */
static bool add_function(graph *g, at_function f, attune_dtype d) {
  int x[3];
  if (!graph_computes(f, d)) return false;
  for (int a = 0; a < 3; a++) x[a] = g->e.input_count < 3 ? graph_input(g, d) : a;
  int node = graph_apply(g, f, d, x[0], x[1], x[2]);
  if (graph_is_half(d) && g->nodes[node].dtype == ATTUNE_F32) node = graph_cast(g, d, node);
  graph_output(g, node);
  return true;
}

/* The functions' results become one sum: it is the functions that are looked at. */
static void sum_up(graph *g, const int *results, int count) {
  int sum = graph_cast(g, ATTUNE_F32, results[0]);
  for (int i = 1; i < count; i++)
    sum = graph_apply(g, AT_FN_ADD, ATTUNE_F32, sum, graph_cast(g, ATTUNE_F32, results[i]), 0);
  g->e.output_count = 0;
  graph_output(g, sum);
}

/* Every function of a dtype in one kernel, of one element a thread. Such a kernel may spill. */
static int all_functions(attune_dtype d, bool reduced, const char *architecture, int *registers) {
  static graph g;
  const at_cuda_choice c = {.form = AT_FORM_STRIDED, .loads = 1, .block = 128};
  int results[AT_FN_COUNT], count = 0;
  graph_begin(&g);
  for (int f = 0; f < AT_FN_COUNT; f++) {
    const attune_dtype computes = graph_computes((at_function)f, d);
    if (computes != d && !(graph_is_half(d) && computes == ATTUNE_F32)) continue; /* comes with the other dtype */
    g.e.output_count = 0;
    if (add_function(&g, (at_function)f, d)) results[count++] = g.e.outputs[0];
  }
  sum_up(&g, results, count);
  at_cuda_problem p;
  make_problem(&p, &g, &(at_shape){1, {1000}}, NULL);
  p.reduced = reduced;
  char *text = generate(&p, &c);
  *registers = compile(text, architecture, attune_dtype_name(d), true);
  free(text);
  return count;
}

/* Each function in each way that it can be computed, for one architecture; with ATTUNE_TEST_ALL with every dtype of
 * that way, for each. */
TEST(functions) {
  static const struct {
    attune_dtype dtype;
    bool reduced;
  } ways[] = {{ATTUNE_F32, false}, {ATTUNE_F32, true},   {ATTUNE_BF16, false}, {ATTUNE_F64, false},
              {ATTUNE_I32, false}, {ATTUNE_I64, false},  {ATTUNE_U64, false},  {ATTUNE_U8, false},
              {ATTUNE_I16, false}, {ATTUNE_BOOL, false}, {ATTUNE_C64, false},  {ATTUNE_C128, false}};
  const bool all = getenv("ATTUNE_TEST_ALL") != NULL;
  int number = 0, kernels = 0;
  for (size_t i = 0; i < AT_COUNT(ways); i++)
    for (size_t a = 0; a < AT_COUNT(architectures); a++) {
      int registers = 0;
      if (!all && i % AT_COUNT(architectures) != a) continue;
      number += all_functions(ways[i].dtype, ways[i].reduced, architectures[a], &registers);
      print_message("%-7s %s%s: %d registers\n", architectures[a], attune_dtype_name(ways[i].dtype),
                    ways[i].reduced ? ", reduced" : "", registers);
      kernels++;
    }
  print_message("%d functions with a dtype, %d kernels\n", number, kernels);
  assert_true(number > 500);
}

/* Up to eight functions a kernel, without spilling: all with ATTUNE_TEST_ALL, else some. */
TEST(few_functions) {
  static graph g;
  const bool all = getenv("ATTUNE_TEST_ALL") != NULL;
  const at_cuda_choice c = {.form = AT_FORM_STRIDED, .loads = 1, .block = 256};
  int number = 0, compiled = 0;
  for (int d = 1; d <= AT_DTYPE_LAST; d++) {
    char what[512] = "";
    graph_begin(&g);
    for (int f = 0; f <= AT_FN_COUNT; f++) {
      const bool last = f == AT_FN_COUNT;
      if (!last && graph_computes((at_function)f, (attune_dtype)d) && (all || ++number % 61 == 0)) {
        assert_true(add_function(&g, (at_function)f, (attune_dtype)d));
        snprintf(what + strlen(what), sizeof what - strlen(what), "%s of %s; ", graph_functions[f].id,
                 attune_dtype_name((attune_dtype)d));
      }
      if (g.e.output_count == 0 || (g.e.output_count < AT_EXPRESSION_OUTPUTS && !last)) continue;
      at_cuda_problem p;
      make_problem(&p, &g, &(at_shape){1, {1000}}, NULL);
      for (size_t a = 0; a < AT_COUNT(architectures); a++) {
        if (!all && (size_t)compiled % AT_COUNT(architectures) != a) continue;
        p.reduced = compiled % 3 == 0;
        char *text = generate(&p, &c);
        const int registers = compile(text, architectures[a], what, false);
        if (all) print_message("%s: %s%d registers\n", architectures[a], what, registers);
        free(text);
      }
      compiled++;
      what[0] = 0;
      graph_begin(&g);
    }
  }
  print_message("%d kernels\n", compiled);
  assert_true(compiled >= (all ? 150 : 10));
}

/* ---- forms ---- */

TEST(forms) {
  static graph g;
  const bool all = getenv("ATTUNE_TEST_ALL") != NULL;
  int count = 0;
  for (size_t i = 0; i < AT_COUNT(form_cases); i++) {
    const form_case *f = &form_cases[i];
    ecase c;
    three(&g, f->dtypes[1], f->dtypes[2], f->dtypes[3], f->dtypes[0]);
    OK(case_make(&c, &g, &f->shape, f->ways, f->dtypes, false, true, 1));
    for (size_t a = 0; a < AT_COUNT(architectures); a++) {
      at_configuration what;
      assert_true(at_cuda_choice_format(&what, &f->choice));
      if (!at_cuda_supports(&c.problem, &f->choice, capabilities[a]) || (!all && i % AT_COUNT(architectures) != a))
        continue;
      char *text = generate(&c.problem, &f->choice);
      const int registers = compile(text, architectures[a], what.text, false);
      print_message("%-7s %-66s %d registers\n", architectures[a], what.text, registers);
      count++;
      free(text);
    }
    case_free(&c);
  }
  assert_true(count >= (all ? 90 : 20));
}

/* Text as programs give it: gelu(a + b) * b in bf16, and dropout. */
TEST(from_text) {
  static const char *const texts[] = {"gelu(a + b) * b", "rand() < s ? a * 2 : b", "where(isnan(a), b, a ** 2 + s)"};
  const at_operand_name tensors[] = {{"a", ATTUNE_BF16, 0}, {"b", ATTUNE_BF16, 0}}, scalar = {"s", ATTUNE_F64, 0};
  const at_shape shape = {1, {100000}};
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    const at_signature signature = {tensors, &scalar, 2, strstr(texts[i], " s") != NULL};
    at_view views[4];
    at_cuda_problem p = {0};
    at_cuda_choice list[64];
    at_expression *e = NULL;
    OK(at_expression_create(&e, texts[i], strlen(texts[i]), &signature));
    for (int k = 0; k < 3; k++) views[k] = view_at(ATTUNE_BF16, &shape, 4096);
    views[3] = at_view_of_number(&shape);
    p.expression = e;
    p.outputs[0] = ATTUNE_BF16;
    int indices[AT_CUDA_INDICES];
    OK(at_layout_make(&p.layout, &shape, views, 3 + at_cuda_indices(e, indices)));
    at_cuda_align(&p, (const void *const[]){(void *)4096, (void *)4096, (void *)4096});
    const int count = at_cuda_candidates(&p, 90, list, 64);
    assert_in_range(count, 8, 16 + 6); /* a search compiles each; 6 of them are dependent */
    for (int k = 0; k < count; k++)
      if (list[k].form == AT_FORM_VECTOR) assert_true(list[k].bytes >= 4);
    const at_cuda_choice first = {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 1, .block = 256};
    assert_memory_equal(&list[0], &first, sizeof first);
    char *text = generate(&p, &list[0]);
    print_message("%s: %d registers, %zu bytes of text\n", texts[i], compile(text, "sm_90a", texts[i], false),
                  strlen(text));
    free(text);
    at_expression_destroy(e);
  }
}

/* Configuration that runs untuned for many elements: more loads a thread where numbers take long to make. */
TEST(many_elements) {
  static const struct {
    const char *text;
    attune_dtype dtype;
    at_cuda_choice first;
  } rows[] = {
      {"a + 1", ATTUNE_F32, {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 1, .block = 256}},
      {"gelu(a)", ATTUNE_BF16, {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 4, .block = 128}},
      {"rand() < 0.5 ? a * 2 : 0", ATTUNE_F32, {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 2, .block = 128}},
      {"rand() < 0.5 ? a * 2 : 0", ATTUNE_BF16, {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 6, .block = 128}}};
  const at_shape shape = {1, {1 << 24}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    const at_operand_name tensor = {"a", (uint8_t)rows[i].dtype, 0};
    const at_signature signature = {&tensor, NULL, 1, 0};
    at_view views[3] = {view_at(rows[i].dtype, &shape, 4096), view_at(rows[i].dtype, &shape, 4096),
                        at_view_of_number(&shape)};
    at_cuda_problem p = {0};
    at_cuda_choice list[64];
    at_expression *e = NULL;
    int indices[AT_CUDA_INDICES];
    OK(at_expression_create(&e, rows[i].text, strlen(rows[i].text), &signature));
    p.expression = e;
    p.outputs[0] = (uint8_t)rows[i].dtype;
    OK(at_layout_make(&p.layout, &shape, views, 2 + at_cuda_indices(e, indices)));
    at_cuda_align(&p, (const void *const[]){(void *)4096, (void *)4096});
    assert_in_range(at_cuda_candidates(&p, 90, list, 64), 8, 16 + 6);
    assert_memory_equal(&list[0], &rows[i].first, sizeof list[0]);
    at_expression_destroy(e);
  }
}

/* They differ from the plain ones in this alone. */
static int dependent_ones(const at_cuda_choice *list, int count) {
  int found = 0;
  for (int i = 0; i < count; i++) {
    at_cuda_choice plain = list[i];
    if (!plain.dependent) continue;
    plain.dependent = 0;
    int same = 0;
    for (int k = 0; k < count; k++) same += memcmp(&list[k], &plain, sizeof plain) == 0;
    assert_int_equal(same, 1);
    found++;
  }
  return found;
}

/* Few elements have many threads with one each, and no tile that is larger than the matrix; many have vectors. */
TEST(few_elements) {
  static graph g;
  static const lie packed[] = {PACKED, PACKED, PACKED, PACKED}, turned[] = {PACKED, TURNED, PACKED, ONE};
  static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_F32, ATTUNE_F32, ATTUNE_F32};
  at_cuda_choice list[64];
  three(&g, ATTUNE_F32, ATTUNE_F32, ATTUNE_F32, ATTUNE_F32);
  for (int side = 32; side <= 1024; side *= 2) {
    const bool few = side <= 256;
    for (int way = 0; way < 2; way++) {
      ecase c;
      OK(case_make(&c, &g, &(at_shape){2, {side, side}}, way ? turned : packed, dtypes, false, true, 1));
      const int plain = at_cuda_candidates(&c.problem, 80, list, 64);
      for (int k = 0; k < plain; k++) assert_int_equal(list[k].dependent, 0);
      const int count = at_cuda_candidates(&c.problem, 90, list, 64), twins = dependent_ones(list, count);
      assert_in_range(count, 4, 24);
      assert_in_range(twins, 3, 6);
      assert_int_equal(list[0].form, !way ? V : few ? S : T);
      assert_int_equal(list[0].loads, way && !few ? 0 : 1);
      if (!way) assert_int_equal(list[0].bytes, few ? 4 : 16);
      for (int k = 0; k < count; k++) {
        assert_true(list[k].tile <= (few ? 32 : 64));
        assert_false(few && list[k].form == B);
        assert_int_equal(list[k].dependent, k > 0 && k <= twins ? 2 : 0);
      }
      case_free(&c);
    }
  }
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
