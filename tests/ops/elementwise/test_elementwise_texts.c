/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_texts.c: the texts of CUDA kernels: the same each time, nothing in them but what the generator
 * wrote, one for all sizes; choices as text; which kernels may not be. Compiles nothing. */
#include "tests/support/check.h"

#include <ctype.h>

#include "tests/ops/elementwise/elementwise_texts.h"

/* A graph whose names are as bad as names can be. */
static void hostile(graph *g) {
  graph_begin(g);
  const int a = graph_input(g, ATTUNE_BF16), s = graph_scalar(g, ATTUNE_F64, ATTUNE_F32);
  snprintf(g->e.inputs[0].name, sizeof g->e.inputs[0].name, "\"); asm(\"trap;\"); /*\\\n#include </etc/passwd>");
  snprintf(g->e.scalars[0].name, sizeof g->e.scalars[0].name, "*/ } evil @`$");
  g->e.text = (char *)(uintptr_t) "evil text";
  const int b = graph_apply(g, AT_FN_ADD, ATTUNE_BF16, a, graph_constant(g, ATTUNE_F32, NAN), 0);
  graph_output(g, graph_apply(g, AT_FN_MULTIPLY, ATTUNE_F32, b, s, 0));
}

static size_t place_of(const char *text, const char *words) {
  const char *found = strstr(text, words);
  assert_non_null(found);
  return (size_t)(found - text);
}

/* The text is short, does not depend on names, and does not change. */
TEST(nothing_of_the_users) {
  static graph g, plain;
  const at_shape shape = {1, {1000}};
  const at_cuda_choice c = {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 2, .block = 128};
  at_cuda_problem p, q;
  hostile(&g);
  plain = g;
  plain.e.nodes = plain.nodes;
  memset(plain.e.inputs[0].name, 0, sizeof plain.e.inputs[0].name);
  memset(plain.e.scalars[0].name, 0, sizeof plain.e.scalars[0].name);
  plain.e.text = NULL;
  make_problem(&p, &g, &shape, NULL);
  make_problem(&q, &plain, &shape, NULL);
  char *text = generate(&p, &c), *same = generate(&q, &c), *again = generate(&p, &c);
  assert_string_equal(text, same);
  assert_string_equal(text, again);
  assert_null(strstr(text, "evil"));
  assert_null(strstr(text, "passwd"));
  const size_t own = place_of(text, "\nstruct at_arguments {"), end = place_of(text, "/* form_vector.cuh");
  for (size_t i = own; i < end; i++)
    if (!isalnum((unsigned char)text[i]) && !strchr(" \n_{}()[]<>;:,.&*=+-#", text[i]))
      fail_msg("'%c' in the text", text[i]);
  free(text);
  free(same);
  free(again);
}

/* Other sizes, strides, scalars and addresses are other arguments of the same kernel. */
TEST(one_text_for_all_sizes) {
  static graph g;
  static const at_shape shapes[] = {{2, {40, 64}}, {2, {1000, 8}}, {2, {3, 4096}}};
  static const lie rows[] = {PACKED, PACKED, BIAS, COLUMN}, turned[] = {PACKED, TURNED, PACKED, ONE};
  static const at_cuda_choice choices[] = {{.form = AT_FORM_ROWS, .bytes = 16, .loads = 4, .block = 128},
                                           {.form = AT_FORM_TRANSPOSE, .bytes = 4, .tile = 32, .block = 256}};
  three(&g, ATTUNE_F32, ATTUNE_F32, ATTUNE_F32, ATTUNE_F32);
  for (size_t k = 0; k < AT_COUNT(choices); k++) {
    char *first = NULL;
    at_cuda_launch launches[AT_COUNT(shapes)];
    for (size_t i = 0; i < AT_COUNT(shapes); i++) {
      ecase c;
      OK(case_make(&c, &g, &shapes[i], k ? turned : rows, NULL, false, true, 1));
      char *text = generate(&c.problem, &choices[k]);
      OK(at_cuda_plan(&launches[i], &c.problem, &choices[k], 4, 4));
      if (i > 0) {
        assert_string_equal(text, first);
        assert_int_equal(launches[i].word_count, launches[0].word_count);
        assert_memory_not_equal(launches[i].words, launches[0].words, sizeof launches[0].words);
      }
      if (i > 0)
        free(text);
      else
        first = text;
      case_free(&c);
    }
    free(first);
  }
}

TEST(choices_as_text) {
  static const char *const bad[] = {"",
                                    "form=vector",
                                    "form=vectors,bytes=16,loads=4,block=256",
                                    "form=vector,bytes=16,loads=4,block=255",
                                    "form=vector,bytes=12,loads=4,block=256",
                                    "form=vector,bytes=16,loads=9,block=256",
                                    "form=vector,bytes=16,loads=4,block=256,",
                                    "form=vector,bytes=16,loads=4,block=256,load=fast",
                                    "form=vector,loads=4,bytes=16,block=256",
                                    "form=transpose,bytes=16,tile=48,block=256",
                                    "form=strided,bytes=16,loads=4,block=256",
                                    "form=vector,bytes=16,loads=4,block=256,more=1"};
  for (size_t i = 0; i < AT_COUNT(form_cases); i++) {
    at_configuration text, again;
    at_cuda_choice back;
    assert_true(at_cuda_choice_format(&text, &form_cases[i].choice));
    assert_true(at_cuda_choice_parse(&back, &text));
    assert_memory_equal(&back, &form_cases[i].choice, sizeof back);
    assert_true(at_cuda_choice_format(&again, &back));
    assert_string_equal(text.text, again.text);
  }
  for (size_t i = 0; i < AT_COUNT(bad); i++) {
    at_configuration text = {{0}};
    at_cuda_choice back;
    snprintf(text.text, sizeof text.text, "%s", bad[i]);
    if (at_cuda_choice_parse(&back, &text)) fail_msg("taken: %s", bad[i]);
  }
}

/* A kernel that may not be: what it writes itself, or a kernel that may still run, is not loaded as constant; no vector
 * across rows. */
TEST(what_is_not_supported) {
  static graph g;
  ecase c;
  three(&g, ATTUNE_F32, ATTUNE_F32, ATTUNE_F32, ATTUNE_F32);
  const lie in_place[] = {PACKED, SAME, PACKED, PACKED};
  OK(case_make(&c, &g, &(at_shape){1, {1000}}, in_place, NULL, false, true, 1));
  at_cuda_choice choice = {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 1, .block = 128, .load = 3};
  assert_true(c.problem.in_place);
  assert_false(at_cuda_supports(&c.problem, &choice, 90));
  choice.load = 2;
  assert_true(at_cuda_supports(&c.problem, &choice, 90));
  choice = (at_cuda_choice){.form = AT_FORM_BULK, .bytes = 16, .loads = 2, .block = 128, .persistent = 1};
  assert_true(at_cuda_supports(&c.problem, &choice, 90));
  assert_false(at_cuda_supports(&c.problem, &choice, 89));
  case_free(&c);
  const lie odd[] = {PACKED, SHIFTED, PACKED, PACKED};
  OK(case_make(&c, &g, &(at_shape){1, {1000}}, odd, NULL, false, true, 1));
  choice = (at_cuda_choice){.form = AT_FORM_VECTOR, .bytes = 8, .loads = 1, .block = 128};
  assert_false(at_cuda_supports(&c.problem, &choice, 90));
  char *text = NULL;
  FAILS(at_cuda_generate(&text, &c.problem, &choice), ATTUNE_UNSUPPORTED);
  assert_null(text);
  choice.bytes = 4;
  assert_true(at_cuda_supports(&c.problem, &choice, 90));
  for (choice.load = 0; choice.load < 4; choice.load++)
    for (choice.dependent = 0; choice.dependent <= 2; choice.dependent++)
      assert_int_equal(at_cuda_supports(&c.problem, &choice, 90), choice.load < 3 || choice.dependent == 0);
  at_cuda_choice list[64];
  const int count = at_cuda_candidates(&c.problem, 90, list, 64);
  assert_true(count >= 2);
  assert_int_equal(list[count - 1].form, AT_FORM_STRIDED);
  case_free(&c);
  const lie rows[] = {PACKED, PACKED, BIAS, COLUMN};
  OK(case_make(&c, &g, &(at_shape){2, {9, 33}}, rows, NULL, false, true, 1));
  choice = (at_cuda_choice){.form = AT_FORM_ROWS, .bytes = 8, .loads = 1, .block = 128};
  assert_false(at_cuda_supports(&c.problem, &choice, 90));
  choice.bytes = 4;
  assert_true(at_cuda_supports(&c.problem, &choice, 90));
  case_free(&c);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
