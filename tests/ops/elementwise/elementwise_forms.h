/* SPDX-License-Identifier: Apache-2.0
 * elementwise_forms.h: a case for every form of kernel and every way in which its operands may lie. */
#ifndef AT_TESTS_ELEMENTWISE_FORMS_H
#define AT_TESTS_ELEMENTWISE_FORMS_H

#include "tests/ops/elementwise/elementwise_case.h"

/* a * b + c with three dtypes. */
static inline void three(graph *g, attune_dtype a, attune_dtype b, attune_dtype c, attune_dtype out) {
  graph_begin(g);
  const int x = graph_input(g, a), y = graph_input(g, b), z = graph_input(g, c);
  const int product = graph_apply(g, AT_FN_MULTIPLY, ATTUNE_F32, x, y, 0);
  graph_output(g, graph_cast(g, out, graph_apply(g, AT_FN_ADD, ATTUNE_F32, product, z, 0)));
}

typedef struct form_case {
  at_cuda_choice choice;
  at_shape shape;
  lie ways[4];
  attune_dtype dtypes[4]; /* output, a, b, c */
} form_case;

#define V AT_FORM_VECTOR
#define R AT_FORM_ROWS
#define T AT_FORM_TRANSPOSE
#define S AT_FORM_STRIDED
#define B AT_FORM_BULK
#define F32x4 \
  { ATTUNE_F32, ATTUNE_F32, ATTUNE_F32, ATTUNE_F32 }
#define BF16x4 \
  { ATTUNE_BF16, ATTUNE_BF16, ATTUNE_BF16, ATTUNE_BF16 }

static const form_case form_cases[] = {
    {{V, 2, 16, 0, 0, 0, .block = 64}, {1, {4 * 64 * 2 * 3 + 21}}, {PACKED, PACKED, PACKED, ONE}, F32x4},
    {{V, 4, 16, 1, 2, 1, .block = 32}, {2, {70, 97}}, {PACKED, PACKED, PACKED, PACKED}, BF16x4},
    {{V, 1, 16, 0, 0, 0, .block = 256}, {1, {1003}}, {SHIFTED, SHIFTED, SHIFTED, SHIFTED}, BF16x4},
    {{V, 1, 16, 0, 0, 0, .block = 256},
     {1, {1003}},
     {SHIFTED, SHIFTED, SHIFTED, SHIFTED},
     {ATTUNE_F32, ATTUNE_F16, ATTUNE_F8E5M2, ATTUNE_F64}},
    {{V, 1, 4, 0, 0, 0, .block = 128}, {1, {1001}}, {PACKED, PACKED, ONE, PACKED}, F32x4},
    {{V, 1, 4, 0, 0, 0, .block = 128}, {1, {1023}}, {SHIFTED, SHIFTED, SHIFTED, ONE}, BF16x4},
    {{V, 1, 16, 0, 0, 0, .block = 256}, {1, {(5 << 18) + 1003}}, {SHIFTED, SHIFTED, SHIFTED, SHIFTED}, BF16x4},
    {{V, 2, 32, 0, 0, 0, .block = 64}, {1, {2049}}, {PACKED, PACKED, SAME, PACKED}, F32x4},
    {{V, 1, 2, 0, 0, 0, .block = 64}, {1, {515}}, {PACKED, SHIFTED, PACKED, PACKED}, BF16x4},
    {{V, 3, 4, 1, 3, 0, .block = 64}, {1, {3}}, {PACKED, PACKED, PACKED, PACKED}, F32x4},
    {{V, 1, 64, 0, 0, 0, .block = 128},
     {1, {16384 + 63}},
     {PACKED, PACKED, PACKED, PACKED},
     {ATTUNE_F8E4M3, ATTUNE_I8, ATTUNE_U8, ATTUNE_F8E5M2}},
    {{B, 2, 16, 1, 0, 0, .block = 64}, {1, {64 * 4 * 11 + 9}}, {PACKED, PACKED, PACKED, ONE}, F32x4},
    {{B, 3, 16, 1, 0, 0, .block = 32}, {1, {32 * 8 * 7 + 100}}, {PACKED, PACKED, PACKED, SAME}, BF16x4},
    {{R, 4, 16, 0, 0, 0, .block = 64}, {2, {37, 104}}, {PACKED, PACKED, BIAS, COLUMN}, BF16x4},
    {{R, 2, 16, 0, 0, 1, .block = 64}, {3, {3, 5, 1000}}, {PACKED, PITCHED, BIAS, ONE}, F32x4},
    {{R, 8, 4, 0, 0, 0, .block = 32}, {2, {9, 7}}, {PITCHED, PACKED, BIAS, COLUMN}, F32x4},
    {{R, 1, 8, 0, 0, 0, .block = 128},
     {2, {5, 333}},
     {PITCHED, PITCHED, COLUMN, BIAS},
     {ATTUNE_F16, ATTUNE_BF16, ATTUNE_F32, ATTUNE_F16}},
    {{R, 2, 2, 0, 0, 0, .block = 64}, {2, {6, 33}}, {PACKED, SHIFTED, PACKED, BIAS}, BF16x4},
    {{T, 0, 16, 0, 0, 0, 64, .block = 128}, {2, {128, 192}}, {PACKED, TURNED, PACKED, ONE}, F32x4},
    {{T, 0, 16, 0, 0, 0, 64, .block = 256}, {2, {136, 72}}, {PACKED, TURNED, PACKED, BIAS}, BF16x4},
    {{T, 0, 16, 0, 0, 1, 32, .block = 64},
     {3, {2, 40, 64}},
     {PACKED, TURNED, TURNED, COLUMN},
     {ATTUNE_BF16, ATTUNE_BF16, ATTUNE_F16, ATTUNE_BF16}},
    {{T, 0, 4, 0, 0, 0, 32, .block = 256}, {2, {33, 35}}, {PACKED, TURNED, TURNED, PACKED}, F32x4},
    {{T, 0, 8, 0, 0, 0, 64, .block = 64},
     {2, {64, 128}},
     {PACKED, TURNED, PACKED, TURNED},
     {ATTUNE_F32, ATTUNE_F8E4M3, ATTUNE_F32, ATTUNE_F16}},
    {{T, 0, 16, 0, 0, 0, 32, .block = 128},
     {2, {64, 33}},
     {PITCHED, TURNED, ONE, PITCHED},
     {ATTUNE_F64, ATTUNE_F64, ATTUNE_F64, ATTUNE_F64}},
    {{T, 0, 1, 0, 0, 0, 64, .block = 256},
     {2, {70, 70}},
     {PACKED, TURNED, PACKED, ONE},
     {ATTUNE_U8, ATTUNE_U8, ATTUNE_I8, ATTUNE_U8}},
    {{S, 4, 0, 0, 0, 0, .block = 64}, {3, {5, 7, 11}}, {SPREAD, TURNED, BACKWARD, BIAS}, F32x4},
    {{S, 2, 0, 1, 0, 1, .block = 32},
     {4, {2, 3, 5, 7}},
     {PACKED, BACKWARD, COLUMN, SPREAD},
     {ATTUNE_I16, ATTUNE_BF16, ATTUNE_F64, ATTUNE_I64}},
    {{S, 1, 0, 0, 0, 0, 0, 1, .block = 128}, {8, {2, 3, 1, 2, 3, 2, 1, 2}}, {SPREAD, TURNED, PACKED, SPREAD}, F32x4},
    {{V, 1, 4, 0, 0, 0, .dependent = 1, .block = 128}, {1, {1003}}, {PACKED, PACKED, PACKED, ONE}, F32x4},
    {{S, 1, 0, 0, 0, 0, .dependent = 2, .block = 128}, {2, {9, 35}}, {PACKED, TURNED, PACKED, ONE}, F32x4},
    {{S, 1, 0, 0, 0, 0, .block = 128}, {0, {0}}, {PACKED, PACKED, PACKED, PACKED}, F32x4},
};

/* Function that an output is the result of. */
static inline const char *functions_name(const graph *g, int output) {
  const at_node *n = &g->nodes[g->e.outputs[output]];
  while (n->kind == AT_NODE_CAST) n = &g->nodes[n->argument[0]];
  return n->kind == AT_NODE_FUNCTION ? graph_functions[n->function].id : "";
}

/* ---- every function ---- */

static const at_cuda_choice functions_choice = {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 1, .block = 64};

static inline bool functions_are_tame(at_function f, attune_dtype d) {
  return case_is_tame(f) || at_dtype_kind_of(d) == AT_KIND_COMPLEX;
}

/* The next functions of a dtype, as many as a kernel can have outputs, over the same three inputs: compiling the text
 * that all kernels begin with takes longer than most functions do. Wide types get fewer: theirs take long. The function
 * to go on with. */
static inline int functions_take(graph *g, int from, attune_dtype d, bool tame, double *allowed) {
  const int most = attune_dtype_size(d) < 8 || at_dtype_whole(d) ? AT_EXPRESSION_OUTPUTS : AT_EXPRESSION_OUTPUTS / 2;
  int x[3], f = from;
  graph_begin(g);
  for (int a = 0; a < 3; a++) x[a] = graph_input(g, d);
  for (; f < AT_FN_COUNT && g->e.output_count < most; f++) {
    if (!graph_computes((at_function)f, d) || functions_are_tame((at_function)f, d) != tame) continue;
    int node = graph_apply(g, (at_function)f, d, x[0], x[1], x[2]);
    if (graph_is_half(d) && g->nodes[node].dtype == ATTUNE_F32) node = graph_cast(g, d, node);
    allowed[g->e.output_count] = case_allowed((at_function)f, (attune_dtype)g->nodes[node].dtype);
    graph_output(g, node);
  }
  return f;
}

/* Where the functions are hard: next to roots and poles, far out where results are no normal numbers, on either side of
 * each place where the way to compute changes. */
static const double hard_places[] = {-2.4570247382208006,
                                     -2.7476826467274127,
                                     -3.955294284858598,
                                     -9.99999972442663,
                                     -16.999999999999996,
                                     -20.25,
                                     -170.86132233539004,
                                     -184.5,
                                     0x1.fffffffffffffp-1,
                                     0x1.0000000000001p0,
                                     2.0000000000000004,
                                     1.9999999999999998,
                                     16.25,
                                     171.5,
                                     1e300,
                                     -1e300,
                                     -37.65640880000001,
                                     -21.1775862,
                                     -8.25,
                                     -14.25,
                                     -87.5,
                                     -90.5,
                                     -720.5,
                                     -744.75,
                                     0.138,
                                     0.4999,
                                     0.5001,
                                     0.2719,
                                     0.4151,
                                     -0.2341,
                                     -0.79174,
                                     0.00608,
                                     1e-25,
                                     1e-300,
                                     1e-310,
                                     -1e-40,
                                     -0.0,
                                     1.7e38,
                                     -1.7e38,
                                     0.99985480,
                                     26.5,
                                     27.9,
                                     39.5,
                                     0.34621301,
                                     -4.10463667,
                                     -58.0781555,
                                     -149.5,
                                     127.99999,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     -0.36};

#endif
