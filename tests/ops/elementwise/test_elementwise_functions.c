/* SPDX-License-Identifier: Apache-2.0
 * The host's interpreter: each function of each dtype, on every instruction set of this CPU, beside the reference.
 * ATTUNE_TEST_ELEMENTS numbers a function (default 4096); ATTUNE_TEST_ULP=1 prints how far off each one is. */
#include "tests/support/check.h"

#include "src/base/half.h"
#include "tests/ops/elementwise/elementwise_graph.h"

static int64_t element_count = 4096;
static bool show_table, rough; /* rough: valgrind computes long double in 53 bits */

/* Bounds in units in the last place: what is exact by IEEE 754 is, everything else is within 2. */
static double bound_of(at_function f) {
  switch (f) {
  case AT_FN_ADD:
  case AT_FN_SUBTRACT:
  case AT_FN_MULTIPLY:
  case AT_FN_DIVIDE:
  case AT_FN_SQRT:
  case AT_FN_FMA:
  case AT_FN_RECIPROCAL: return 0.5001;
  case AT_FN_FLOOR:
  case AT_FN_CEIL:
  case AT_FN_TRUNC:
  case AT_FN_ROUND:
  case AT_FN_NEGATE:
  case AT_FN_CONJUGATE:
  case AT_FN_ABS:
  case AT_FN_SIGN:
  case AT_FN_MINIMUM:
  case AT_FN_MAXIMUM:
  case AT_FN_FMINIMUM:
  case AT_FN_FMAXIMUM:
  case AT_FN_CLAMP:
  case AT_FN_RELU:
  case AT_FN_HARDTANH:
  case AT_FN_COPYSIGN:
  case AT_FN_NEXTAFTER:
  case AT_FN_FMOD: return 0.0;
  default: return 2.0;
  }
}

/* Numbers of all exponents, one after another. */
static void fill_sweep(void *out, attune_dtype dtype, int64_t n, uint64_t *state) {
  const size_t size = attune_dtype_size(dtype);
  for (int64_t i = 0; i < n; i++) {
    char *to = (char *)out + i * (int64_t)size;
    const uint32_t narrow =
        (uint32_t)((uint64_t)i * (UINT64_C(0xffffffff) / (uint64_t)n)) ^ (uint32_t)(at_splitmix64(state) & 0xff);
    const uint64_t wide = (uint64_t)i * (UINT64_MAX / (uint64_t)n) ^ (at_splitmix64(state) >> 24);
    if (dtype == ATTUNE_F32 && i % 2 == 0)
      memcpy(to, &narrow, sizeof narrow);
    else if (dtype == ATTUNE_F64 && i % 2 == 0)
      memcpy(to, &wide, sizeof wide);
    else
      draw_element(to, dtype, state);
  }
}

static void run_packed(const graph *g, const attune_dtype *dtypes, const at_interpret_isa *isa, void *out,
                       void *const *inputs, int64_t n) {
  at_interpreter *program;
  at_layout layout;
  const at_shape shape = {1, {n}};
  OK(at_interpreter_create(&program, &g->e, dtypes, isa));
  const attune_dtype node = (attune_dtype)g->nodes[g->e.outputs[0]].dtype;
  const at_view output = at_view_packed(out, dtypes ? dtypes[0] : node, &shape);
  at_view views[3];
  at_interpreter_call call = {.outputs = {out}};
  for (int i = 0; i < g->e.input_count; i++) {
    views[i] = at_view_packed(inputs[i], (attune_dtype)g->e.inputs[i].dtype, &shape);
    call.inputs[i] = inputs[i];
  }
  OK(at_interpreter_layout(&layout, program, &output, views));
  at_interpreter_run(program, &layout, &call);
  at_interpreter_destroy(program);
}

static at_wide_value exact_of(at_function f, attune_dtype dtype, attune_dtype result, void *const *inputs, int64_t i) {
  at_wide_value x[3] = {{0}};
  for (int k = 0; k < at_function_arity(f); k++) {
    const attune_dtype own = f == AT_FN_SELECT && k == 0 ? ATTUNE_BOOL : dtype;
    x[k] = at_wide_value_load(own, (char *)inputs[k] + i * (int64_t)attune_dtype_size(own));
  }
  return at_evaluate_function(f, dtype, result, x);
}

/* Complex results: the distance beside the result's size, in units of its parts. Infinite ones are not compared. */
static double complex_off(attune_dtype dtype, at_wide_value got, at_wide_value exact) {
  const long double size = hypotl(exact.re, exact.im), off = hypotl(got.re - exact.re, got.im - exact.im);
  const long double unit = dtype == ATTUNE_C64 ? 0x1p-23L : 0x1p-52L, most = dtype == ATTUNE_C64 ? 1e37L : 1e307L;
  if (!(size < most) || size < 1.0L / most) return 0.0;
  return (double)(off / (size * unit));
}

static double off_by(attune_dtype result, at_wide_value got, at_wide_value exact) {
  if (at_dtype_whole(result)) return got.integer == exact.integer ? 0.0 : INFINITY;
  if (at_dtype_kind_of(result) == AT_KIND_COMPLEX) return complex_off(result, got, exact);
  return units_off(result, got.re, exact.re);
}

static double bound_for(at_function f, attune_dtype dtype, attune_dtype result) {
  if (at_dtype_whole(result)) return 0.0;
  double bound = at_dtype_kind_of(dtype) == AT_KIND_COMPLEX ? 4.0 : bound_of(f);
  if (rough && bound > 0.0) bound += 3.0;
  return bound;
}

static void check_function(at_function f, attune_dtype dtype, const at_interpret_isa *isa, const char *isa_name) {
  const attune_dtype result = graph_result(f, dtype);
  const int arity = at_function_arity(f);
  const int64_t n = element_count;
  graph *g = malloc(sizeof *g);
  graph_start(g);
  void *inputs[3] = {NULL};
  int arguments[3];
  uint64_t state = 7u + 1000u * (uint64_t)f + (uint64_t)dtype;
  for (int k = 0; k < arity; k++) {
    const attune_dtype own = f == AT_FN_SELECT && k == 0 ? ATTUNE_BOOL : dtype;
    arguments[k] = graph_input(g, own);
    inputs[k] = malloc((size_t)n * attune_dtype_size(own));
    fill_sweep(inputs[k], own, n, &state);
  }
  graph_output(g, graph_function(g, f, result, arguments, arity));
  char *out = malloc((size_t)n * attune_dtype_size(result));
  run_packed(g, NULL, isa, out, inputs, n);
  double worst = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const at_wide_value got = at_wide_value_load(result, out + i * (int64_t)attune_dtype_size(result));
    const at_wide_value exact = exact_of(f, dtype, result, inputs, i);
    const double off = off_by(result, got, exact);
    worst = off > worst ? off : worst;
    if (off > bound_for(f, dtype, result)) {
      const at_wide_value x =
          at_wide_value_load(dtype, (char *)inputs[arity - 1] + i * (int64_t)attune_dtype_size(dtype));
      fail_msg("%s of %s (%s): element %lld, last argument %.9Lg %lld: %.17Lg %lld, should be %.17Lg %lld (%.3g units)",
               at_function_name(f), attune_dtype_name(dtype), isa_name, (long long)i, x.re, (long long)x.integer,
               got.re, (long long)got.integer, exact.re, (long long)exact.integer, off);
    }
  }
  if (show_table && !at_dtype_whole(result))
    printf("| %s | %s | %s | %.3f |\n", at_function_name(f), attune_dtype_name(dtype), isa_name, worst);
  for (int k = 0; k < arity; k++) free(inputs[k]);
  free(out);
  free(g);
}

TEST(every_function) {
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  int checked = 0;
  for (int s = 0; isas[s]; s++)
    for (int f = 0; f < AT_FN_COUNT; f++)
      for (int d = 1; d <= AT_DTYPE_LAST; d++)
        if (graph_result((at_function)f, (attune_dtype)d)) {
          check_function((at_function)f, (attune_dtype)d, isas[s], at_interpret_isa_name(isas[s]));
          checked++;
        }
  assert_true(checked > 600);
}

/* A function of a half type: every number, computed in f32 and rounded once at the end. */
TEST(every_half) {
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  const int64_t n = rough ? 4096 : 65536;
  uint16_t *in = malloc((size_t)n * sizeof *in), *out = malloc((size_t)n * sizeof *out);
  for (int64_t i = 0; i < n; i++) in[i] = (uint16_t)(i * (65536 / n));
  for (int h = 0; h < 2; h++)
    for (int f = 0; f < AT_FN_COUNT; f++) {
      const attune_dtype half = h ? ATTUNE_BF16 : ATTUNE_F16;
      if (at_function_arity((at_function)f) != 1 || graph_result((at_function)f, ATTUNE_F32) != ATTUNE_F32) continue;
      graph *g = malloc(sizeof *g);
      graph_start(g);
      const int x = graph_cast(g, ATTUNE_F32, graph_input(g, half));
      graph_output(g, graph_cast(g, half, graph_function(g, (at_function)f, ATTUNE_F32, &x, 1)));
      run_packed(g, NULL, isas[0], out, (void *[]){in}, n);
      double worst = 0.0;
      for (int64_t i = 0; i < n; i++) {
        const at_wide_value v[3] = {at_wide_value_load(half, &in[i])}, got = at_wide_value_load(half, &out[i]);
        const at_wide_value exact = at_evaluate_function((at_function)f, ATTUNE_F32, ATTUNE_F32, v);
        const double off = units_off(half, got.re, exact.re);
        worst = off > worst ? off : worst;
        if (off > 0.502)
          fail_msg("%s of %s: of %.6Lg is %.9Lg, should be %.9Lg (%.3f units)", at_function_name((at_function)f),
                   attune_dtype_name(half), v[0].re, got.re, exact.re, off);
      }
      if (show_table)
        printf("| %s | %s | all | %.4f |\n", at_function_name((at_function)f), attune_dtype_name(half), worst);
      free(g);
    }
  free(in);
  free(out);
}

/* Where f32 arithmetic is in danger: next to multiples of pi / 2, up to where those are counted and beyond; where exp
 * leaves the normal numbers; and tiny numbers. */
static float hard_argument(int64_t i) {
  const float circle = (float)((double)i * 1.5707963267948966);
  switch (i % 4) {
  case 0: return circle;
  case 1: return -nextafterf(circle, i % 8 == 1 ? 0.0f : INFINITY);
  case 2: return -120.0f + (float)(i % 16384) * 0.015f;
  default: return ldexpf(i % 8 == 3 ? -1.37f : 1.11f, -(int)(i / 4 % 150));
  }
}

TEST(hard_arguments) {
  static const at_function functions[] = {AT_FN_SIN,  AT_FN_COS,  AT_FN_EXP,      AT_FN_EXP2,  AT_FN_EXPM1,
                                          AT_FN_LOG,  AT_FN_TANH, AT_FN_ERF,      AT_FN_RSQRT, AT_FN_SIGMOID,
                                          AT_FN_SILU, AT_FN_GELU, AT_FN_SOFTPLUS, AT_FN_MISH,  AT_FN_GELU_TANH,
                                          AT_FN_SINH, AT_FN_COSH, AT_FN_TAN};
  static const float known[] = {
      -0.0f,          0.0f,          -92984.9f,    60087.7f,        1e5f,          99999.99f,    0x1.6ac5b2p+101f,
      3.4e38f,        -12.8262625f,  -13.0937605f, -0.00390367419f, 0.0150649128f, -17443620.0f, -17443532.0f,
      -2147483520.0f, 2147483520.0f, -3.4e38f,     16777216.0f,     -INFINITY,     INFINITY};
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  enum { COUNT = 1 << 16 };
  float *x = malloc(COUNT * sizeof *x), *out = malloc(COUNT * sizeof *out);
  for (int64_t i = 0; i < COUNT; i++) x[i] = i < (int64_t)AT_COUNT(known) ? known[i] : hard_argument(i);
  for (size_t f = 0; f < AT_COUNT(functions); f++) {
    at_wide_value *exact = malloc(COUNT * sizeof *exact);
    for (int64_t i = 0; i < COUNT; i++)
      exact[i] = at_evaluate_function(functions[f], ATTUNE_F32, ATTUNE_F32, (at_wide_value[3]){{.re = x[i]}});
    for (int s = 0; isas[s]; s++) {
      graph *g = malloc(sizeof *g);
      graph_start(g);
      const int argument = graph_input(g, ATTUNE_F32);
      graph_output(g, graph_function(g, functions[f], ATTUNE_F32, &argument, 1));
      run_packed(g, NULL, isas[s], out, (void *[]){x}, COUNT);
      for (int64_t i = 0; i < COUNT; i++) {
        const double off = units_off(ATTUNE_F32, out[i], exact[i].re);
        if (!(off <= 2.0) || (out[i] == 0.0f && exact[i].re == 0.0L && !signbit(out[i]) != !signbit(exact[i].re)))
          fail_msg("%s (%s) of %a is %a, should be %La (%.3g units)", at_function_name(functions[f]),
                   at_interpret_isa_name(isas[s]), (double)x[i], (double)out[i], exact[i].re, off);
      }
      free(g);
    }
    free(exact);
  }
  free(x);
  free(out);
}

/* ---- powers of f32, with exponents that are data ---- */

enum { POWERS = 1 << 16 };
typedef struct power_cases {
  float x[POWERS], y[POWERS], out[POWERS], exact[POWERS];
  int count;
  long checked;
} power_cases;

static void compute_powers(power_cases *p, const at_interpret_isa *isa) {
  graph *g = malloc(sizeof *g);
  graph_start(g);
  int arguments[2];
  for (int k = 0; k < 2; k++) arguments[k] = graph_input(g, ATTUNE_F32);
  graph_output(g, graph_function(g, AT_FN_POWER, ATTUNE_F32, arguments, 2));
  run_packed(g, NULL, isa, p->out, (void *[]){p->x, p->y}, p->count);
  free(g);
}

static void check_exact_powers(power_cases *p) {
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  for (int s = 0; isas[s]; s++) {
    compute_powers(p, isas[s]);
    for (int i = 0; i < p->count; i++)
      if (p->out[i] != p->exact[i])
        fail_msg("%a ** %a (%s) is %a, should be %a", (double)p->x[i], (double)p->y[i], at_interpret_isa_name(isas[s]),
                 (double)p->out[i], (double)p->exact[i]);
  }
  p->checked += p->count;
  p->count = 0;
}

/* 0 and values that are no numbers of f32 are left out. */
static void exact_power(power_cases *p, double x, double y, double exact) {
  const double most = 0x1.fffffep127;
  if (!(x > 0.0 && x <= most && exact > 0.0 && exact <= most)) return;
  if (x != (double)(float)x || y != (double)(float)y || exact != (double)(float)exact) return;
  p->x[p->count] = (float)x;
  p->y[p->count] = (float)y;
  p->exact[p->count] = (float)exact;
  if (++p->count == POWERS) check_exact_powers(p);
}

/* base^n, n >= 1, of base itself and of its 2nd, 4th and 8th power, times powers of 2. */
static void exact_powers_of(power_cases *p, int base) {
  for (int e = -140; e <= 100; e += 20) {
    double power = base;
    for (int n = 1; power <= 16777216.0; n++, power *= base) {
      exact_power(p, ldexp(base, e), n, ldexp(power, e * n));
      for (int part = 2; part <= 8; part *= 2)
        exact_power(p, ldexp(pow(base, part), e * part), (double)n / part, ldexp(power, e * n));
    }
  }
}

TEST(exact_powers) {
  power_cases *p = calloc(1, sizeof *p);
  for (int i = 0; i < 1 << 23; i++) exact_power(p, 1.0 + i * 0x1p-23, 1.0, 1.0 + i * 0x1p-23);
  for (uint32_t i = 1; i <= 0xffff; i++) {
    const double x = (double)at_f32_of_bits(i * 32639u); /* finite ones */
    exact_power(p, x, 1.0, x);
    exact_power(p, x, 0.0, 1.0);
    exact_power(p, 1.0, x, 1.0);
  }
  for (int base = 2; base <= 4096; base++) exact_powers_of(p, base);
  double ten = 1.0;
  for (int n = 0; n <= 10; n++, ten *= 10.0) exact_power(p, 10.0, n, ten);
  for (int k = -149; k <= 127; k++)
    for (int n = -1200; n <= 1200; n++)
      if (k * n % 8 == 0 && abs(k * n) < 8 * 150) exact_power(p, ldexp(1.0, k), n / 8.0, ldexp(1.0, k * n / 8));
  check_exact_powers(p);
  assert_true(p->checked > 1 << 23);
  free(p);
}

/* All over the numbers, x next to 1, results next to the largest and the least ones, and special numbers. */
static void hard_power(int64_t i, uint64_t *state, float *x, float *y) {
  static const float special[] = {0.0f,           -0.0f,       1.0f,         -1.0f,    2.0f,      -2.0f, 3.0f,
                                  -3.0f,          INFINITY,    -INFINITY,    NAN,      0.5f,      -0.5f, 0x1p-149f,
                                  -0x1p-149f,     0x1p-126f,   3.4e38f,      -3.4e38f, -7.0f,     1e30f, 0x1.fffffep-1f,
                                  0x1.000002p+0f, 16777215.0f, -16777215.0f, 1e-30f,   8388607.5f};
  const uint64_t bits = at_splitmix64(state);
  const double share = (double)(uint32_t)bits * 0x1p-32;
  *x = at_f32_of_bits((uint32_t)(bits >> 32) & 0x7fffffffu);
  if (i % 4 == 1) *x = 1.0f + (float)((int)(bits >> 40 & 0x3ffff) - 0x20000) * 0x1p-23f;
  *y = (float)((share * 300.0 - 155.0) / log2((double)*x));
  if (i % 4 == 2) *y = (float)(((bits & 1) ? 127.0 + share : 25.0 * share - 150.0) / log2((double)*x));
  if (i % 4 == 3) {
    *x = special[bits % AT_COUNT(special)];
    *y = special[(bits >> 20) % AT_COUNT(special)];
  }
}

/* Within 0.6 units, and 0.8 below the normal numbers; the last vector is not whole. */
TEST(hard_powers) {
  const at_interpret_isa *isas[4];
  at_interpret_isas(isas);
  power_cases *p = calloc(1, sizeof *p);
  uint64_t state = 5;
  for (int round = 0; round < 4; round++) {
    p->count = POWERS - 5;
    for (int i = 0; i < p->count; i++) hard_power(i, &state, &p->x[i], &p->y[i]);
    for (int s = 0; isas[s]; s++) {
      compute_powers(p, isas[s]);
      for (int i = 0; i < p->count; i++) {
        const long double exact = powl((long double)p->x[i], (long double)p->y[i]);
        const double off = units_off(ATTUNE_F32, p->out[i], exact), most = fabsl(exact) < 0x1p-126L ? 0.8 : 0.6;
        if (!(off <= most) || (p->out[i] == 0.0f && !signbit(p->out[i]) != !signbit(exact)))
          fail_msg("%a ** %a (%s) is %a, should be %La (%.3g units)", (double)p->x[i], (double)p->y[i],
                   at_interpret_isa_name(isas[s]), (double)p->out[i], exact, off);
      }
    }
  }
  free(p);
}

/* The reference itself at points known from tables, and where C leaves it open. */
TEST(known_values) {
  static const struct {
    at_function f;
    double x, y, value;
  } known[] = {{AT_FN_ERFINV, 0.5, 0, 0.4769362762044699},
               {AT_FN_ERFINV, 0.9375, 0, 1.31715033498613075},
               {AT_FN_ERFINV, -0x1.ffffep-1, 0, -3.46550502580333072},
               {AT_FN_ERFINV, 1.0, 0, INFINITY},
               {AT_FN_GELU, -10.0, 0, -7.619853024160495e-23},
               {AT_FN_GELU, 1.0, 0, 0.8413447460685429},
               {AT_FN_GELU_TANH, 1.0, 0, 0.8411919906082768},
               {AT_FN_MISH, 1.0, 0, 0.8650983882673103},
               {AT_FN_SOFTPLUS, 0.0, 0, 0.6931471805599453},
               {AT_FN_SOFTPLUS, 800.0, 0, 800.0},
               {AT_FN_SILU, -INFINITY, 0, NAN},
               {AT_FN_FLOOR_DIVIDE, -7.0, 2.0, -4.0},
               {AT_FN_REMAINDER, -7.0, 2.0, 1.0},
               {AT_FN_FLOOR_DIVIDE, INFINITY, 2.0, NAN},
               {AT_FN_FLOOR_DIVIDE, -1.0, INFINITY, -1.0},
               {AT_FN_FMOD, -7.0, 2.0, -1.0},
               {AT_FN_ROUND, 2.5, 0, 2.0},
               {AT_FN_MAXIMUM, NAN, 1.0, NAN},
               {AT_FN_FMAXIMUM, NAN, 1.0, 1.0},
               {AT_FN_RELU, NAN, 0, NAN},
               {AT_FN_SIGN, NAN, 0, NAN},
               {AT_FN_LOGIT, 0.75, 0, 1.0986122886681098},
               {AT_FN_ELU, -1.0, 2.0, -1.2642411176571153},
               {AT_FN_LDEXP, 3.0, 0.5, 4.242640687119286},
               {AT_FN_HARDSWISH, 1.0, 0, 0.6666666666666666},
               {AT_FN_TGAMMA, 0.5, 0, 1.772453850905516},
               {AT_FN_LGAMMA, 100.0, 0, 359.1342053695754}};
  for (size_t i = 0; i < AT_COUNT(known); i++) {
    const at_wide_value v[3] = {{.re = known[i].x}, {.re = known[i].y}};
    const double got = (double)at_evaluate_function(known[i].f, ATTUNE_F64, ATTUNE_F64, v).re;
    const bool same =
        isnan(known[i].value) ? isnan(got) : got == known[i].value || fabs(got / known[i].value - 1.0) < 1e-13;
    if (!same)
      fail_msg("%s(%g, %g) is %.17g, should be %.17g", at_function_name(known[i].f), known[i].x, known[i].y, got,
               known[i].value);
  }
  static const struct {
    at_function f;
    attune_dtype dtype;
    int64_t x, y, value;
  } whole[] = {{AT_FN_FLOOR_DIVIDE, ATTUNE_I32, 7, 0, 0},
               {AT_FN_REMAINDER, ATTUNE_I32, 7, 0, 0},
               {AT_FN_FLOOR_DIVIDE, ATTUNE_I64, INT64_MIN, -1, INT64_MIN},
               {AT_FN_FLOOR_DIVIDE, ATTUNE_I8, -128, -1, -128},
               {AT_FN_REMAINDER, ATTUNE_I64, INT64_MIN, -1, 0},
               {AT_FN_FLOOR_DIVIDE, ATTUNE_I32, -7, 2, -4},
               {AT_FN_REMAINDER, ATTUNE_I32, -7, 2, 1},
               {AT_FN_SHIFT_RIGHT, ATTUNE_I8, -3, 8, -1},
               {AT_FN_SHIFT_RIGHT, ATTUNE_U8, 200, 8, 0},
               {AT_FN_SHIFT_LEFT, ATTUNE_I32, 1, 32, 0},
               {AT_FN_SHIFT_LEFT, ATTUNE_I32, 1, -1, 0},
               {AT_FN_CLZ, ATTUNE_I16, 1, 0, 15},
               {AT_FN_CLZ, ATTUNE_BOOL, 0, 0, 1},
               {AT_FN_POPCOUNT, ATTUNE_I8, -1, 0, 8},
               {AT_FN_POWER, ATTUNE_I32, 3, 4, 81},
               {AT_FN_POWER, ATTUNE_I32, 2, -1, 0},
               {AT_FN_POWER, ATTUNE_I32, -1, -3, -1},
               {AT_FN_ABS, ATTUNE_I8, -128, 0, -128}};
  for (size_t i = 0; i < AT_COUNT(whole); i++) {
    const at_wide_value v[3] = {{.integer = whole[i].x}, {.integer = whole[i].y}};
    assert_int_equal(at_evaluate_function(whole[i].f, whole[i].dtype, whole[i].dtype, v).integer, whole[i].value);
  }
}

int main(void) {
  if (getenv("AT_UNDER_VALGRIND"))
    return skip_all("the reference is in long double, which valgrind computes as double");
  const char *count = getenv("ATTUNE_TEST_ELEMENTS");
  if (count) element_count = atoll(count);
  show_table = getenv("ATTUNE_TEST_ULP") != NULL;
  rough = getenv("AT_UNDER_VALGRIND") != NULL;
  if (rough) element_count = 256;
  return RUN_TESTS(NULL, NULL);
}
