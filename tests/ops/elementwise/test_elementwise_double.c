/* SPDX-License-Identifier: Apache-2.0
 * The host's interpreter: the functions of f64 that have loops of their own, on every instruction set of this CPU,
 * beside the reference: special numbers at every place of arrays of 1 to 70 elements, and arguments next to where the
 * loops are in danger. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/elementwise_graph.h"

enum { LONGEST = 70, HARD = 1 << 13, SMALL = 48 };
#define SECOND 1.5 /* the other argument of elu and atan2, where one is tried */

static const at_function functions[] = {AT_FN_EXPM1, AT_FN_LOG1P,     AT_FN_SIN, AT_FN_COS,  AT_FN_TAN,   AT_FN_TANH,
                                        AT_FN_ERF,   AT_FN_ERFC,      AT_FN_ELU, AT_FN_GELU, AT_FN_SILU,  AT_FN_SIGMOID,
                                        AT_FN_EXP,   AT_FN_GELU_TANH, AT_FN_LOG, AT_FN_LOG2, AT_FN_LOG10, AT_FN_ATAN2};

/* At the last two libmvec's log2 and log10 of AVX2 are off by 2.07 and 2.08. */
/* clang-format off */
static const double special[] = {
    0.0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-1074, -0x1p-1074, 0x1p-1073, 0x1.8p-1023, 0x0.fffffffffffffp-1022,
    0x1p-1022, -0x1p-1022, 0x1p+1000, 0x1p+1023, 0x1.fp+1023, -0x1.fp+1023, 1.0, -1.0, 0x1p-53, -0x1p-53, 0x1p-54,
    -0x1p-54, 1e5, -1e5, 100000.1, 1e22, -1e300, 1e-100, 709.7, 709.79, 710.5, -708.5, -745.0, -746.0, -800.5, -1100.0,
    800.5, 26.5, 27.2, 27.3, 28.5, -28.5, -37.5, -38.4, -39.5, 39.5, -6.5, 20.5, -20.5, 0.75, -0.75, -25.5, -30.5, 30.5,
    -0.9999, -1.5, 1000.0, 1024.0, -0x1.fffffffffffffp-1, 0x1.fffffffffffffp-1, 0x1.6a09e667f3bccp+0,
    0x1.6a09e667f3bcdp+0, 0x1.6a09e667f3bcdp-1, 0x1.0021fdce2323p+0, 0x1.0020055104bd8p+0};
/* clang-format on */

/* Where arguments are reduced, where results leave the normal numbers, tiny ones, and those whose logarithm is. */
static double hard_argument(int64_t i) {
  const double circle = (double)(i * 7) * 1.5707963267948966;
  switch (i % 7) {
  case 0: return i % 12 == 0 ? circle : -nextafter(circle, INFINITY);
  case 1: return -760.0 + (double)(i % 4096) * 0.0171;
  case 2: return (i % 4 == 0 ? -1.0 : 1.0) * (double)i * 0.005;
  case 3: return -39.0 + (double)i * 0.0011;
  case 4: return (double)(i % 1500) * 0.001 - 0.9999;
  case 5: return 1.0 + ldexp((double)(i * 7919 % 1999) - 999.0, -10 - (int)(i / 7 % 44)); /* next to 1 */
  default: return ldexp(i % 12 == 5 ? -1.37 : 1.11, -(int)(i / 6 % 1080));
  }
}

/* out[] = f(x[], y), which may be the same memory as x[]. */
static void compute(const graph *g, const at_interpret_isa *isa, double *out, const double *x, double y, int64_t n) {
  static double others[HARD];
  at_interpreter *program;
  at_layout layout;
  const at_shape shape = {1, {n}};
  const at_view output = at_view_packed(out, ATTUNE_F64, &shape);
  const at_view views[2] = {at_view_packed(x, ATTUNE_F64, &shape), at_view_packed(others, ATTUNE_F64, &shape)};
  const at_interpreter_call call = {.outputs = {out}, .inputs = {x, others}};
  for (int64_t i = 0; i < n; i++) others[i] = y;
  OK(at_interpreter_create(&program, &g->e, NULL, isa));
  OK(at_interpreter_layout(&layout, program, &output, views));
  at_interpreter_run(program, &layout, &call);
  at_interpreter_destroy(program);
}

static at_wide_value exact_of(at_function f, double x, double y) {
  return at_evaluate_function(f, ATTUNE_F64, ATTUNE_F64, (at_wide_value[3]){{.re = x}, {.re = y}});
}

static void expect(at_function f, const char *isa, double x, double y, double got, at_wide_value exact) {
  const double off = units_off(ATTUNE_F64, got, exact.re), value = (double)exact.re;
  if (!(off <= 2.0) || (got == 0.0 && value == 0.0 && !signbit(got) != !signbit(value)))
    fail_msg("%s (%s) of %a (and %a) is %a, should be %a (%.3g units)", at_function_name(f), isa, x, y, got, value,
             off);
}

static void begin(graph *g, at_function f) {
  graph_start(g);
  const int x = graph_input(g, ATTUNE_F64), arity = at_function_arity(f);
  const int arguments[2] = {x, arity > 1 ? graph_input(g, ATTUNE_F64) : x};
  graph_output(g, graph_function(g, f, ATTUNE_F64, arguments, arity));
}

/* Elements that differ from array to array; behind the last one nothing is written. */
TEST(special_numbers) {
  static graph g;
  const at_interpret_isa *isas[4];
  enum { COUNT = (int)AT_COUNT(special) };
  at_interpret_isas(isas);
  for (size_t k = 0; k < AT_COUNT(functions); k++) {
    const at_function f = functions[k];
    at_wide_value exact[COUNT];
    for (int i = 0; i < COUNT; i++) exact[i] = exact_of(f, special[i], SECOND);
    begin(&g, f);
    for (int s = 0; isas[s]; s++)
      for (int n = 1; n <= LONGEST; n++)
        for (int same = 0; same < 2; same++) {
          double x[LONGEST + 1], y[LONGEST + 1], *out = same ? x : y;
          for (int i = 0; i <= n; i++) x[i] = special[(n * 13 + i) % COUNT];
          out[n] = 12345.0;
          compute(&g, isas[s], out, x, SECOND, n);
          assert_true(out[n] == 12345.0);
          for (int i = 0; i < n; i++) {
            const int which = (n * 13 + i) % COUNT;
            expect(f, at_interpret_isa_name(isas[s]), special[which], SECOND, out[i], exact[which]);
          }
        }
  }
}

TEST(hard_arguments) {
  static graph g;
  static double x[HARD], out[HARD];
  static at_wide_value exact[HARD];
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  for (int64_t i = 0; i < HARD; i++) x[i] = hard_argument(i);
  for (size_t k = 0; k < AT_COUNT(functions); k++) {
    for (int64_t i = 0; i < HARD; i++) exact[i] = exact_of(functions[k], x[i], SECOND);
    begin(&g, functions[k]);
    for (int s = 0; isas[s]; s++) {
      compute(&g, isas[s], out, x, SECOND, HARD);
      for (int64_t i = 0; i < HARD; i++)
        expect(functions[k], at_interpret_isa_name(isas[s]), x[i], SECOND, out[i], exact[i]);
    }
  }
}

/* Special numbers beside each other, and the smallest ones, whose products with constants are rounded. */
TEST(pairs_of_angles) {
  static graph g;
  enum { COUNT = (int)AT_COUNT(special) + SMALL };
  double x[COUNT], out[COUNT];
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  for (int i = 0; i < COUNT; i++) x[i] = i < SMALL ? ldexp(i % 5 ? i + 1 : -i, -1074) : special[i - SMALL];
  begin(&g, AT_FN_ATAN2);
  for (int k = 0; k < COUNT; k++)
    for (int s = 0; isas[s]; s++) {
      compute(&g, isas[s], out, x, x[k], COUNT);
      for (int i = 0; i < COUNT; i++)
        expect(AT_FN_ATAN2, at_interpret_isa_name(isas[s]), x[i], x[k], out[i], exact_of(AT_FN_ATAN2, x[i], x[k]));
    }
}

int main(void) {
  if (getenv("AT_UNDER_VALGRIND"))
    return skip_all("the reference is in long double, which valgrind computes as double");
  return RUN_TESTS(NULL, NULL);
}
