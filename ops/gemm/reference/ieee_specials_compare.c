/* SPDX-License-Identifier: Apache-2.0
 * ieee_specials_compare.c: what must become of special values, and what an output has lost of them.
 *
 * The rule is IEEE 754's for alpha times the sum of products, plus beta times C, in any order of summation: a NaN in a
 * row of A, a column of B, C, alpha or beta, Inf times 0, and Inf minus Inf give NaN; other infinities give infinity of
 * the right sign, and so do products beyond the largest number; denormals count; C is not read when beta is 0. The sign
 * of NaN and of zero does not matter. With alpha = Inf either Inf or NaN is right: multiplying B by alpha first gives
 * NaN.
 *
 * Of a complex number that is not finite one part at least must not be: which one, and whether it is Inf or NaN,
 * depends on how two complex numbers are multiplied, for C's Annex G, Fortran and BLAS differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/reference/reference_epilogue.h"
#include "src/host/threads.h"

enum { MOST_THREADS = 64 };

/* Where all lines are alike, columns are sampled beyond this many elements: all of the first and the last, some
 * between. */
enum { MANY_ELEMENTS = 1 << 18, FIRST_COLUMNS = 16, LAST_COLUMNS = 64 };

typedef enum rule {
  NAN_OF_A,
  NAN_OF_B,
  NAN_OF_C,
  NAN_OF_ALPHA,
  NAN_OF_BETA,
  INF_OF_A,
  INF_OF_B,
  INF_OF_C,
  INF_OF_ALPHA,
  INF_OF_BETA,
  C_UNREAD,
  DENORMALS,
  OVERFLOW,
  FINITE,
  SCALARS,
  ZEROS,
  RULES
} rule;

static const char *const NAMES[RULES] = {[NAN_OF_A] = "loses NaN of A",
                                         [NAN_OF_B] = "loses NaN of B",
                                         [NAN_OF_C] = "loses NaN of C",
                                         [NAN_OF_ALPHA] = "loses NaN of alpha",
                                         [NAN_OF_BETA] = "loses NaN of beta",
                                         [INF_OF_A] = "loses Inf of A",
                                         [INF_OF_B] = "loses Inf of B",
                                         [INF_OF_C] = "loses Inf of C",
                                         [INF_OF_ALPHA] = "loses Inf of alpha",
                                         [INF_OF_BETA] = "loses Inf of beta",
                                         [C_UNREAD] = "reads C although beta is 0",
                                         [DENORMALS] = "flushes denormals",
                                         [OVERFLOW] = "does not overflow to Inf",
                                         [FINITE] = "produces NaN or Inf from finite numbers",
                                         [SCALARS] = "is outside the tolerance with other scalars",
                                         [ZEROS] = "is outside the tolerance with zeros or huge numbers"};

const char *at_gemm_ieee_specials_name(int bit) {
  return bit >= 0 && bit < RULES ? NAMES[bit] : NULL;
}

typedef struct comparison {
  const at_reference *r;
  const void *output;
  at_special_case c;
  at_gemm_scalars s;
  double alpha, beta;                    /* in the accumulation's precision */
  double u, tiny, most;                  /* of the output: roundoff, smallest denormal, from where it is Inf */
  int64_t step;                          /* of the columns that are looked at */
  signed char *row_roles, *column_roles; /* of each matrix */
  double value[AT_SPECIAL_ROLES][AT_SPECIAL_PLACES];
  uint32_t lost[MOST_THREADS]; /* by rank */
} comparison;

/* One element as it must be. */
typedef struct element {
  int row, column;        /* roles */
  double product, addend; /* beta C */
  double c;
  double magnitude; /* |alpha| |A||B| + |beta C| */
} element;

static double at_place(const comparison *c, const double *kept, int64_t lines, int64_t line, int role, int place) {
  return role == AT_ROLE_ORDINARY ? kept[place * lines + line] : c->value[role][place];
}

/* Row i of A's matrix and column j of B's; all that is not at the places is zero in one of them. */
static void multiply(const comparison *c, int64_t row, int64_t column, element *e) {
  const at_reference *r = c->r;
  const int64_t rows = r->g.m * (r->g.stride_a ? r->g.batch : 1), columns = r->g.n * (r->g.stride_b ? r->g.batch : 1);
  double sum = 0.0, size = 0.0;
  for (int p = 0; p < r->places; p++) {
    const double x = at_place(c, r->a_at, rows, row, e->row, p) * at_place(c, r->b_at, columns, column, e->column, p);
    sum += x;
    size += fabs(x);
  }
  /* the sums are of the accumulation type, and may overflow there */
  e->product = r->g.dtype != ATTUNE_F64 && fabs(sum) > 0x1.ffffffp127 ? copysign((double)INFINITY, sum) : sum;
  e->magnitude = size;
}

/* Complex ones at a place: what was there, or a planted real number. */
static void complex_at_place(const comparison *c, const double *kept, int64_t lines, int64_t line, int role, int place,
                             double out[2]) {
  out[0] = role == AT_ROLE_ORDINARY ? kept[2 * (place * lines + line)] : c->value[role][place];
  out[1] = role == AT_ROLE_ORDINARY ? kept[2 * (place * lines + line) + 1] : 0.0;
}

/* As multiply, the two parts into product[2]. */
static void multiply_complex(const comparison *c, int64_t row, int64_t column, element *e, double product[2]) {
  const at_reference *r = c->r;
  const int64_t rows = r->g.m * (r->g.stride_a ? r->g.batch : 1), columns = r->g.n * (r->g.stride_b ? r->g.batch : 1);
  product[0] = product[1] = e->magnitude = 0.0;
  for (int p = 0; p < r->places; p++) {
    double x[2], y[2];
    complex_at_place(c, r->a_at, rows, row, e->row, p, x);
    complex_at_place(c, r->b_at, columns, column, e->column, p, y);
    product[0] += x[0] * y[0] - x[1] * y[1];
    product[1] += x[0] * y[1] + x[1] * y[0];
    e->magnitude += hypot(x[0], x[1]) * hypot(y[0], y[1]);
  }
  for (int part = 0; part < 2 && r->g.dtype == ATTUNE_C64; part++)
    if (fabs(product[part]) > 0x1.ffffffp127) product[part] = copysign((double)INFINITY, product[part]);
}

static rule why_not_finite(const comparison *c, const element *e, bool nan) {
  if (isnan(c->beta)) return NAN_OF_BETA;
  if (isnan(c->alpha)) return NAN_OF_ALPHA;
  static const bool has_nan[AT_SPECIAL_ROLES] = {
      [AT_ROLE_NAN_LAST] = true, [AT_ROLE_NAN_FIRST] = true, [AT_ROLE_NAN] = true};
  static const bool has_inf[AT_SPECIAL_ROLES] = {
      [AT_ROLE_INF_FIRST] = true, [AT_ROLE_MINUS_INF] = true, [AT_ROLE_BOTH_INF] = true};
  if (nan && has_nan[e->row]) return NAN_OF_A;
  if (nan && has_nan[e->column]) return NAN_OF_B;
  if (nan && c->beta != 0.0 && isnan(e->c)) return NAN_OF_C;
  if (has_inf[e->row]) return INF_OF_A;
  if (has_inf[e->column]) return INF_OF_B;
  if (isinf(c->beta)) return INF_OF_BETA;
  if (isinf(c->alpha)) return INF_OF_ALPHA;
  return c->beta != 0.0 && isinf(e->c) ? INF_OF_C : OVERFLOW;
}

static bool denormal_role(int role) {
  return role == AT_ROLE_DENORMAL_LAST || role == AT_ROLE_DENORMAL;
}

static bool has_denormal(const comparison *c, const element *e) {
  return denormal_role(e->row) || denormal_role(e->column) || (c->alpha != 0.0 && fabs(c->alpha) < 0x1p-100) ||
         (c->beta != 0.0 && fabs(c->beta) < 0x1p-100) ||
         (e->c != 0.0 && c->c.c >= AT_C_PLANTED && fabs(e->c) < 0x1p-14);
}

static rule judge_finite(const comparison *c, const element *e, double value, double expected) {
  const double off = fabs(value - expected),
               allowed = c->u * fabs(expected) + c->r->gamma * (fabs(c->alpha) * e->magnitude + fabs(e->addend));
  if (off <= allowed) return RULES; /* adding denormals is slow: only where it matters */
  const double sums =
      fabs(c->alpha) < 0x1p-100 ? (double)c->r->g.k : 1.0; /* alpha a, denormal too, is rounded k times */
  if (off <= allowed + 4.0 * sums * c->tiny) return RULES;
  if (has_denormal(c, e)) return DENORMALS;
  return e->row || e->column ? ZEROS : c->c.c == AT_C_POISON ? C_UNREAD : SCALARS;
}

/* What `value` loses of what it should be; RULES: nothing. */
static rule judge(const comparison *c, const element *e, double value) {
  double expected = c->alpha * e->product + e->addend;
  if (fabs(expected) >= c->most) expected = copysign((double)INFINITY, expected);
  if (isnan(expected)) {
    if (isnan(value)) return RULES;
    return isinf(c->alpha) && isinf(value) ? RULES : why_not_finite(c, e, true);
  }
  if (isinf(expected)) {
    if (value == expected || (isinf(c->alpha) && !isfinite(value))) return RULES;
    if (isnan(value) && has_denormal(c, e)) return DENORMALS; /* 0 times Inf */
    return why_not_finite(c, e, false);
  }
  if (!isfinite(value)) return c->c.c == AT_C_POISON ? C_UNREAD : FINITE;
  return judge_finite(c, e, value, expected);
}

/* The scalars of all cases are real. */
static rule judge_complex(const comparison *c, const element *e, const double value[2], const double product[2],
                          const double addend[2]) {
  double expected[2];
  bool nan = false, finite = true;
  for (int part = 0; part < 2; part++) {
    expected[part] = c->alpha * product[part] + addend[part];
    nan = nan || isnan(expected[part]);
    finite = finite && isfinite(expected[part]) && fabs(expected[part]) < c->most;
  }
  const bool is_finite = isfinite(value[0]) && isfinite(value[1]);
  if (!finite) return is_finite ? why_not_finite(c, e, nan) : RULES;
  if (!is_finite) return c->c.c == AT_C_POISON ? C_UNREAD : FINITE;
  const rule real = judge_finite(c, e, value[0], expected[0]);
  return real != RULES ? real : judge_finite(c, e, value[1], expected[1]);
}

/* One element of a complex D. */
static rule compare_complex(const comparison *c, element *e, int64_t b, int64_t i, int64_t j) {
  const at_reference *r = c->r;
  const at_gemm *g = &r->g;
  const size_t at = (size_t)(2 * ((b * g->n + j) * g->m + i)), out = (size_t)(2 * (g->stride_d * b + g->ldd * j + i));
  double product[2], added[2] = {0.0, 0.0}, value[2];
  if (e->row || e->column) {
    multiply_complex(c, (g->stride_a ? b * g->m : 0) + i, (g->stride_b ? b * g->n : 0) + j, e, product);
  } else {
    memcpy(product, &r->product[at], sizeof product);
    e->magnitude = r->row_norms[b * g->m + i] * r->column_norms[b * g->n + j];
  }
  const int turn = r->added ? at_special_c_turn(g, c->c.c, i, j, g->stride_c ? b : 0) : -1;
  if (r->added) memcpy(added, turn < 0 ? &r->added[at] : (const double[]){at_special_c_number(g, turn), 0.0}, 16);
  e->c = added[0];
  for (int part = 0; part < 2; part++) {
    added[part] = c->beta != 0.0 ? c->beta * added[part] : 0.0;
    value[part] = at_reference_value(c->output, at_gemm_part(g->dtype_out), out + (size_t)part);
  }
  e->addend = hypot(added[0], added[1]);
  return judge_complex(c, e, value, product, added);
}

/* y of an epilogue where its z is `z`. */
static rule judge_y(const comparison *c, const element *e, int64_t b, int64_t i, int64_t j, double z, double value) {
  const int activation = c->r->g.epilogue.gradient ? ATTUNE_ACTIVATION_NONE : c->r->g.epilogue.activation;
  const double error = c->r->gamma * (fabs(c->alpha) * e->magnitude + fabs(e->addend));
  const at_epilogue_element x = at_epilogue_expect(c->r, &c->s, b, i, j, z, error);
  double y = x.y;
  if (fabs(y) >= c->most) y = copysign((double)INFINITY, y);
  /* -Inf times 0: the limit is right, too; and so is all that Inf times a derivative of nearly 0 may give */
  if (x.z == -(double)INFINITY && (activation == ATTUNE_ACTIVATION_GELU || activation == ATTUNE_ACTIVATION_GELU_TANH ||
                                   activation == ATTUNE_ACTIVATION_SILU))
    return RULES;
  if (isinf(x.z) && c->r->g.epilogue.gradient) return RULES;
  if (isnan(y)) return isnan(value) ? RULES : why_not_finite(c, e, true);
  if (isinf(y)) return value == y ? RULES : why_not_finite(c, e, false);
  if (!isfinite(value)) return c->c.c == AT_C_POISON ? C_UNREAD : FINITE;
  const double allowed = x.y_error + c->u * fabs(y) + 4.0 * c->tiny;
  if (fabs(value - y) <= allowed) return RULES;
  if (has_denormal(c, e)) return DENORMALS;
  return e->row || e->column ? ZEROS : c->c.c == AT_C_POISON ? C_UNREAD : SCALARS;
}

/* An epilogue sees what the product and C give; beyond D's largest number also infinity, as when that is rounded. */
static rule judge_epilogue(const comparison *c, const element *e, int64_t b, int64_t i, int64_t j, double value) {
  const double z = c->alpha * e->product + e->addend;
  if (isinf(c->alpha) && !isfinite(value)) return RULES;
  const rule exact = judge_y(c, e, b, i, j, z, value);
  if (exact == RULES || !(fabs(z) >= c->most)) return exact;
  return judge_y(c, e, b, i, j, copysign((double)INFINITY, z), value);
}

/* Element (i, j) of a product of real matrices. */
static element product_at(const comparison *c, int64_t b, int64_t i, int64_t j) {
  const at_reference *r = c->r;
  const at_gemm *g = &r->g;
  const int64_t row = (g->stride_a ? b * g->m : 0) + i, column = (g->stride_b ? b * g->n : 0) + j;
  element e = {.row = c->row_roles[row], .column = c->column_roles[column]};
  if (e.row || e.column) {
    multiply(c, row, column, &e);
  } else {
    e.product = at_reference_product(r, (size_t)((b * g->n + j) * g->m + i));
    e.magnitude = r->row_norms[b * g->m + i] * r->column_norms[b * g->n + j];
  }
  return e;
}

/* D of a gated product whose g and u are so large; 1: beyond D's largest number they are infinity. */
static bool gated_fits(const comparison *c, const element e[2], int64_t b, int64_t i, int64_t j, double value,
                       const int beyond[2]) {
  double sum[2], error[2];
  for (int half = 0; half < 2; half++) {
    sum[half] = c->alpha * e[half].product;
    error[half] = c->r->gamma * fabs(c->alpha) * e[half].magnitude;
    if (beyond[half] && fabs(sum[half]) >= c->most) sum[half] = copysign((double)INFINITY, sum[half]);
  }
  const at_epilogue_element x = at_epilogue_expect_gated(c->r, &c->s, b, i, j, sum, error);
  const double y = fabs(x.y) >= c->most ? copysign((double)INFINITY, x.y) : x.y;
  if (!isfinite(sum[0]) || !isfinite(sum[1])) {
    /* f(-Inf) as a limit or as Inf times 0, and then times u: a number, Inf or NaN */
    if (!isnan(sum[0]) && !isnan(sum[1]) && isnan(x.y)) return true;
    if (sum[0] == -(double)INFINITY && c->r->g.epilogue.activation > ATTUNE_ACTIVATION_RELU) return true;
  }
  if (isnan(y)) return isnan(value);
  if (isinf(y)) return value == y;
  return isfinite(value) && fabs(value - y) <= x.y_error + c->u * fabs(y) + 4.0 * c->tiny;
}

static rule compare_gated(const comparison *c, int64_t b, int64_t i, int64_t j, double value) {
  static const int beyond[][2] = {{0, 0}, {1, 1}, {1, 0}, {0, 1}};
  const at_gemm_place up = at_gemm_second_half(&c->r->g, i, j);
  const element e[2] = {product_at(c, b, i, j), product_at(c, b, up.row, up.column)};
  if (isinf(c->alpha) && !isfinite(value)) return RULES;
  for (size_t way = 0; way < AT_COUNT(beyond); way++)
    if (gated_fits(c, e, b, i, j, value, beyond[way])) return RULES;
  const element *worse = e[0].row || e[0].column ? &e[0] : &e[1];
  if (!isfinite(c->alpha * e[0].product) || !isfinite(c->alpha * e[1].product))
    return why_not_finite(c, worse, isnan(e[0].product) || isnan(e[1].product));
  if (!isfinite(value)) return FINITE;
  if (has_denormal(c, &e[0]) || has_denormal(c, &e[1])) return DENORMALS;
  return worse->row || worse->column ? ZEROS : SCALARS;
}

static uint32_t compare_column(const comparison *c, int64_t b, int64_t j) {
  const at_reference *r = c->r;
  const at_gemm *g = &r->g;
  const int64_t row = g->stride_a ? b * g->m : 0, column = (g->stride_b ? b * g->n : 0) + j;
  const size_t first = (size_t)(g->stride_d * b + g->ldd * j), at = (size_t)((b * g->n + j) * g->m);
  uint32_t lost = 0;
  for (int64_t i = 0; i < at_gemm_rows_d(g); i++) {
    if (r->parts == 2 || g->gated) {
      element e = {.row = c->row_roles[row + i], .column = c->column_roles[column]};
      const rule broken =
          g->gated
              ? compare_gated(c, b, i, j, at_reference_value(c->output, (attune_dtype)g->dtype_out, first + (size_t)i))
              : compare_complex(c, &e, b, i, j);
      if (broken != RULES) lost |= UINT32_C(1) << broken;
      continue;
    }
    element e = product_at(c, b, i, j);
    const int turn = r->added ? at_special_c_turn(g, c->c.c, i, j, g->stride_c ? b : 0) : -1;
    if (r->added) e.c = turn < 0 ? r->added[at + (size_t)i] : at_special_c_number(g, turn);
    if (c->beta != 0.0) e.addend = c->beta * e.c;
    const double value = at_reference_value(c->output, (attune_dtype)g->dtype_out, first + (size_t)i);
    const rule broken = r->epilogue ? judge_epilogue(c, &e, b, i, j, value) : judge(c, &e, value);
    if (broken != RULES) lost |= UINT32_C(1) << broken;
  }
  return lost;
}

static void compare_share(void *arg, const at_team *team) {
  comparison *c = arg;
  const at_gemm *g = &c->r->g;
  const int64_t each = at_gemm_cols_d(g), columns = each * g->batch;
  uint32_t lost = 0;
  for (int64_t column = team->rank; column < columns; column += team->size)
    if (column % c->step == 0 || column < FIRST_COLUMNS || column >= columns - LAST_COLUMNS)
      lost |= compare_column(c, column / each, column % each);
  c->lost[team->rank] = lost;
}

static void describe_output(comparison *c) {
  const attune_dtype dtype = at_gemm_part(c->r->g.dtype_out);
  c->u = at_reference_roundoff(dtype);
  switch (dtype) {
  case ATTUNE_F64: c->tiny = 0x1p-1074, c->most = (double)INFINITY; break;
  case ATTUNE_F32: c->tiny = 0x1p-149, c->most = 0x1.ffffffp127; break;
  case ATTUNE_F16: c->tiny = 0x1p-24, c->most = 65520.0; break;
  case ATTUNE_BF16: c->tiny = 0x1p-133, c->most = 0x1.ffp127; break;
  default: break; /* no GEMM has the others */
  }
}

static bool find_roles(comparison *c) {
  const at_gemm *g = &c->r->g;
  const int64_t matrices_a = g->stride_a ? g->batch : 1, matrices_b = g->stride_b ? g->batch : 1;
  c->row_roles = malloc((size_t)(g->m * matrices_a));
  c->column_roles = malloc((size_t)(g->n * matrices_b));
  if (!c->row_roles || !c->column_roles) return false;
  for (int64_t b = 0; b < matrices_a; b++) at_special_line_roles(c->row_roles + b * g->m, c->c.a, g->m, b);
  for (int64_t b = 0; b < matrices_b; b++) at_special_line_roles(c->column_roles + b * g->n, c->c.b, g->n, b);
  for (int role = 0; role < AT_SPECIAL_ROLES; role++)
    for (int p = 0; p < c->r->places; p++)
      c->value[role][p] = at_special_line_value(g, (at_special_role)role, p, c->r->places);
  return true;
}

attune_status at_gemm_ieee_specials_compare(void *reference, int which, const at_outputs *outputs, uint32_t *lost) {
  comparison c = {.r = reference, .output = outputs->bytes[AT_GEMM_D]};
  const at_gemm *g = &c.r->g;
  at_special_cases(g, which, &c.c);
  const at_gemm_scalars s = at_gemm_scalars_rounded(g, (at_gemm_scalars){.alpha = c.c.alpha,
                                                                         .beta = c.c.beta,
                                                                         .clamp_min = AT_GEMM_TEST_CLAMP_MIN,
                                                                         .clamp_max = AT_GEMM_TEST_CLAMP_MAX});
  c.s = s;
  c.alpha = s.alpha;
  c.beta = s.beta;
  describe_output(&c);
  const bool alike = (c.c.a == AT_PATTERN_NONE || c.c.a >= AT_PATTERN_UNIFORM) &&
                     (c.c.b == AT_PATTERN_NONE || c.c.b >= AT_PATTERN_UNIFORM);
  c.step = alike ? 1 + g->m * g->n * g->batch / MANY_ELEMENTS : 1;
  *lost = 0;
  attune_status status = ATTUNE_OK;
  if (find_roles(&c)) {
    const int cpus = at_cpu_count() < MOST_THREADS ? at_cpu_count() : MOST_THREADS;
    const int threads = g->m * g->n * g->batch > 65536 ? cpus : 1;
    at_parallel(threads, compare_share, &c);
    for (int i = 0; i < threads; i++) *lost |= c.lost[i];
  } else {
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to compare special values");
  }
  free(c.row_roles);
  free(c.column_roles);
  return status;
}
