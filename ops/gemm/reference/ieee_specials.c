/* SPDX-License-Identifier: Apache-2.0
 * ieee_specials.c: which special values are tried with a problem, where they are planted, and the scalars that go with
 * them.
 */
#include "ops/gemm/reference/ieee_specials.h"

#include <math.h>
#include <string.h>

#include "ops/gemm/reference/reference.h"
#include "src/base/splitmix64.h"
#include "src/host/threads.h"

enum { FEW_LINES = 2 * AT_SPECIAL_ROLES, FEW_ELEMENTS = 64, C_ROLES = 6 };

/* ---- values ---- */

/* A power of two below the smallest normal number of the dtype. */
static double denormal_of(attune_dtype whole) {
  const attune_dtype dtype = at_gemm_part(whole);
  return dtype == ATTUNE_F64 ? 0x1p-1024 : dtype == ATTUNE_F16 ? 0x1p-16 : 0x1p-128;
}

/* Its square overflows; times -1.5 and any ordinary number it does not. */
static double huge_of(attune_dtype whole) {
  const attune_dtype dtype = at_gemm_part(whole);
  return dtype == ATTUNE_F64 ? 0x1p1020 : dtype == ATTUNE_F16 ? 0x1p13 : 0x1p125;
}

typedef enum value { ZERO, A_NAN, PLUS_INF, MINUS_INF, DENORMAL, A_HUGE } value;

static double number_of(value v, attune_dtype dtype) {
  switch (v) {
  case ZERO: return 0.0;
  case A_NAN: return (double)NAN;
  case PLUS_INF: return (double)INFINITY;
  case MINUS_INF: return -(double)INFINITY;
  case DENORMAL: return denormal_of(dtype);
  case A_HUGE: return huge_of(dtype);
  }
  return 0.0;
}

/* Of a complex number the real part; the other one is 0. */
static void store(void *data, attune_dtype dtype, size_t at, double x) {
  switch (dtype) {
  case ATTUNE_C128: memcpy((double *)data + 2 * at, (const double[]){x, 0.0}, 16); break;
  case ATTUNE_C64: memcpy((float *)data + 2 * at, (const float[]){(float)x, 0.0f}, 8); break;
  case ATTUNE_F64: ((double *)data)[at] = x; break;
  case ATTUNE_F32: ((float *)data)[at] = (float)x; break;
  case ATTUNE_F16: ((uint16_t *)data)[at] = at_f64_to_f16(x); break;
  case ATTUNE_BF16: ((uint16_t *)data)[at] = at_f64_to_bf16(x); break;
  default: break; /* no GEMM has the others */
  }
}

static uint64_t mixed(uint64_t x, uint64_t y) {
  uint64_t state = x + 0x9E3779B97F4A7C15u * y;
  return at_splitmix64(&state);
}

/* ---- lines of A and B ---- */

/* By place: first, last, two others. Where k is short and places coincide, the first that is not zero counts. */
static const unsigned char VALUES[AT_SPECIAL_ROLES][AT_SPECIAL_PLACES] = {
    [AT_ROLE_NAN_LAST] = {ZERO, A_NAN},
    [AT_ROLE_INF_FIRST] = {PLUS_INF},
    [AT_ROLE_DENORMAL_LAST] = {ZERO, DENORMAL},
    [AT_ROLE_HUGE_LAST] = {ZERO, A_HUGE},
    [AT_ROLE_NAN_FIRST] = {A_NAN},
    [AT_ROLE_MINUS_INF] = {ZERO, ZERO, MINUS_INF},
    [AT_ROLE_BOTH_INF] = {ZERO, PLUS_INF, ZERO, MINUS_INF},
    [AT_ROLE_DENORMAL] = {ZERO, ZERO, DENORMAL},
    [AT_ROLE_HUGE] = {ZERO, ZERO, A_HUGE},
    [AT_ROLE_NAN] = {ZERO, ZERO, ZERO, A_NAN}};

static void wanted_places(const at_gemm *g, int64_t out[AT_SPECIAL_PLACES]) {
  const uint64_t k = (uint64_t)g->k, seed = mixed((uint64_t)g->m, mixed((uint64_t)g->n, k));
  out[0] = 0;
  out[1] = g->k - 1;
  out[2] = (int64_t)(mixed(seed, 2) % k);
  out[3] = (int64_t)(mixed(seed, 3) % k);
}

/* Each once; their number. */
static int distinct_places(const int64_t wanted[AT_SPECIAL_PLACES], int64_t out[AT_SPECIAL_PLACES]) {
  int count = 0;
  for (int i = 0; i < AT_SPECIAL_PLACES; i++) {
    bool again = false;
    for (int j = 0; j < count; j++) again = again || out[j] == wanted[i];
    if (!again) out[count++] = wanted[i];
  }
  return count;
}

int at_special_places(const at_gemm *g, int64_t out[AT_SPECIAL_PLACES]) {
  int64_t wanted[AT_SPECIAL_PLACES];
  wanted_places(g, wanted);
  return distinct_places(wanted, out);
}

/* A role's value at each place. */
static void line_values(const at_gemm *g, at_special_role role, double out[AT_SPECIAL_PLACES]) {
  int64_t wanted[AT_SPECIAL_PLACES], each[AT_SPECIAL_PLACES];
  wanted_places(g, wanted);
  const int places = distinct_places(wanted, each);
  for (int place = 0; place < places; place++) {
    out[place] = 0.0;
    for (int i = AT_SPECIAL_PLACES - 1; i >= 0; i--) /* the first that is not zero counts */
      if (wanted[i] == each[place] && VALUES[role][i] != ZERO)
        out[place] = number_of((value)VALUES[role][i], (attune_dtype)g->dtype);
  }
}

double at_special_line_value(const at_gemm *g, at_special_role role, int place, int places) {
  double values[AT_SPECIAL_PLACES] = {0.0};
  line_values(g, role, values);
  int64_t each[AT_SPECIAL_PLACES];
  return place < places && at_special_places(g, each) == places ? values[place] : 0.0;
}

/* Role 1 on the last line, role 2 on the first, each other one somewhere in its share of the lines; the next matrix of
 * a batch has them one further. */
static int64_t spread_line(int role, int64_t count, int64_t matrix) {
  const int64_t slot = 1 + (role - 1 + matrix) % (AT_SPECIAL_ROLES - 1), share = count / AT_SPECIAL_ROLES;
  if (slot == 1) return count - 1;
  if (slot == 2) return 0;
  return (slot - 2) * share + (int64_t)(mixed((uint64_t)(count + matrix), (uint64_t)slot) % (uint64_t)share);
}

void at_special_line_roles(signed char *roles, int pattern, int64_t count, int64_t matrix) {
  memset(roles, pattern >= AT_PATTERN_UNIFORM ? pattern - AT_PATTERN_UNIFORM : AT_ROLE_ORDINARY, (size_t)count);
  if (pattern == AT_PATTERN_SPREAD)
    for (int role = 1; role < AT_SPECIAL_ROLES; role++) roles[spread_line(role, count, matrix)] = (signed char)role;
  if (pattern >= AT_PATTERN_TURNS && pattern < AT_PATTERN_UNIFORM)
    for (int64_t i = 0; i < count; i++)
      roles[i] = (signed char)((i + matrix + pattern - AT_PATTERN_TURNS) % AT_SPECIAL_ROLES);
}

/* The lines of A or B as they lie in memory. */
typedef struct lines {
  int64_t count, line_step, depth_step, stride, matrices;
} lines;

static lines lines_of(const at_gemm *g, int buffer) {
  if (buffer == 0)
    return (lines){g->m, g->trans_a ? g->lda : 1, g->trans_a ? 1 : g->lda, g->stride_a, g->stride_a ? g->batch : 1};
  return (lines){g->n, g->trans_b ? 1 : g->ldb, g->trans_b ? g->ldb : 1, g->stride_b, g->stride_b ? g->batch : 1};
}

/* What is planted in A or B, and where: the same for all matrices of a batch. */
typedef struct planting {
  const at_gemm *g;
  lines l;
  int buffer, pattern, places;
  int64_t place[AT_SPECIAL_PLACES];
  double value[AT_SPECIAL_ROLES][AT_SPECIAL_PLACES];
  void *bytes;
} planting;

static void plant_line(const planting *p, at_special_role role, size_t first) {
  const attune_dtype dtype = (attune_dtype)p->g->dtype;
  for (int64_t i = 0; i < p->g->k; i++) store(p->bytes, dtype, first + (size_t)(i * p->l.depth_step), 0.0);
  for (int i = 0; i < p->places; i++)
    store(p->bytes, dtype, first + (size_t)(p->place[i] * p->l.depth_step), p->value[role][i]);
}

/* May something be planted in one matrix of the batch without another one changing? Inputs may overlap or
 * interleave. */
static bool are_apart(const at_gemm *g, int64_t rows, int64_t columns, int64_t ld, int64_t stride) {
  return g->batch == 1 || stride == 0 || stride >= ld * (columns - 1) + rows;
}

static bool lines_are_apart(const at_gemm *g, int buffer) {
  return buffer == 0 ? are_apart(g, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a)
                     : are_apart(g, at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b);
}

/* The matrix as stored. */
static int64_t rows_of(const planting *p) {
  return p->buffer == 0 ? at_gemm_rows_a(p->g) : at_gemm_rows_b(p->g);
}
static int64_t columns_of(const planting *p) {
  return p->buffer == 0 ? at_gemm_cols_a(p->g) : at_gemm_cols_b(p->g);
}
static int64_t ld_of(const planting *p) {
  return p->buffer == 0 ? p->g->lda : p->g->ldb;
}

/* The padding between the stored columns is never read: it may be NaN. */
static void plant_gaps(const planting *p, size_t first) {
  const int64_t rows = rows_of(p), columns = columns_of(p), ld = ld_of(p);
  const size_t element = attune_dtype_size((attune_dtype)p->g->dtype);
  for (int64_t j = 0; j + 1 < columns && ld > rows; j++)
    memset((char *)p->bytes + (first + (size_t)(j * ld + rows)) * element, 0xFF, (size_t)(ld - rows) * element);
}

typedef struct zeros {
  char *bytes;
  size_t column, step; /* bytes */
  int64_t columns;
} zeros;

static void zeros_share(void *arg, const at_team *team) {
  const zeros *z = arg;
  const int64_t from = z->columns * team->rank / team->size, to = z->columns * (team->rank + 1) / team->size;
  for (int64_t j = from; j < to; j++) memset(z->bytes + (size_t)j * z->step, 0, z->column);
}

static int threads_for(int64_t elements) {
  return elements > 65536 ? at_cpu_count() : 1;
}

/* Every line gets the same role: the matrix is zeros, but for the places. In memory's order: with lines along rows, one
 * after the other, each element would be in another part of memory. */
static void plant_all(const planting *p, at_special_role role, size_t first) {
  const attune_dtype dtype = (attune_dtype)p->g->dtype;
  const size_t element = attune_dtype_size(dtype);
  zeros z = {(char *)p->bytes + first * element, (size_t)rows_of(p) * element, (size_t)ld_of(p) * element,
             columns_of(p)};
  at_parallel(threads_for(rows_of(p) * z.columns), zeros_share, &z);
  for (int at = 0; at < p->places; at++)
    for (int64_t i = 0; i < p->l.count && p->value[role][at] != 0.0; i++)
      store(p->bytes, dtype, first + (size_t)(i * p->l.line_step + p->place[at] * p->l.depth_step), p->value[role][at]);
}

static void plant_matrix(const planting *p, int64_t matrix) {
  const lines *l = &p->l;
  const size_t first = (size_t)(matrix * l->stride);
  if (lines_are_apart(p->g, p->buffer)) plant_gaps(p, first);
  if (p->pattern == AT_PATTERN_SPREAD) {
    for (int role = 1; role < AT_SPECIAL_ROLES; role++)
      plant_line(p, (at_special_role)role, first + (size_t)(spread_line(role, l->count, matrix) * l->line_step));
  } else if (p->pattern >= AT_PATTERN_UNIFORM) {
    if (p->pattern > AT_PATTERN_UNIFORM) plant_all(p, (at_special_role)(p->pattern - AT_PATTERN_UNIFORM), first);
  } else {
    for (int64_t i = 0; i < l->count; i++) {
      const int role = (int)((i + matrix + p->pattern - AT_PATTERN_TURNS) % AT_SPECIAL_ROLES);
      if (role != AT_ROLE_ORDINARY) plant_line(p, (at_special_role)role, first + (size_t)(i * l->line_step));
    }
  }
}

static void matrices_share(void *arg, const at_team *team) {
  const planting *p = arg;
  const int64_t from = p->l.matrices * team->rank / team->size, to = p->l.matrices * (team->rank + 1) / team->size;
  for (int64_t matrix = from; matrix < to; matrix++) plant_matrix(p, matrix);
}

/* Many matrices by many threads. Matrices that lie in each other are planted in their order. */
static void plant_lines(const at_gemm *g, int buffer, int pattern, void *bytes) {
  planting p = {.g = g, .l = lines_of(g, buffer), .buffer = buffer, .pattern = pattern, .bytes = bytes};
  p.places = at_special_places(g, p.place);
  for (int role = 0; role < AT_SPECIAL_ROLES; role++) line_values(g, (at_special_role)role, p.value[role]);
  const bool many = p.l.matrices > 1 && lines_are_apart(g, buffer);
  at_parallel(many ? threads_for(p.l.matrices * p.l.count * g->k) : 1, matrices_share, &p);
}

/* ---- C ---- */

int at_special_c_turn(const at_gemm *g, int c, int64_t i, int64_t j, int64_t matrix) {
  if (c == AT_C_ORDINARY) return -1;
  if (c == AT_C_POISON) return 1;
  const int64_t elements = g->m * g->n * g->batch, at = (matrix * g->n + j) * g->m + i;
  const uint64_t role = elements < FEW_ELEMENTS ? (uint64_t)(at + c - AT_C_PLANTED) % C_ROLES
                                                : mixed((uint64_t)elements, (uint64_t)at) % (4 * C_ROLES);
  return role == 0 || role >= C_ROLES ? -1 : (int)role;
}

double at_special_c_number(const at_gemm *g, int turn) {
  static const value values[C_ROLES] = {ZERO, A_NAN, PLUS_INF, MINUS_INF, DENORMAL, ZERO};
  return number_of(values[turn], (attune_dtype)g->dtype_out);
}

static void plant_c(const at_gemm *g, int c, void *bytes) {
  const attune_dtype dtype = (attune_dtype)g->dtype_out;
  const int64_t matrices = g->stride_c ? g->batch : 1; /* one for all has the values of matrix 0 */
  for (int64_t b = 0; b < matrices; b++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) {
        const size_t at = (size_t)(b * g->stride_c + j * g->ldc + i);
        const int turn = at_special_c_turn(g, c, i, j, b);
        if (turn >= 0) store(bytes, dtype, at, at_special_c_number(g, turn));
      }
}

/* ---- cases ---- */

typedef struct list {
  int want, count;
  at_special_case *out;
  double alpha, beta; /* when a case says nothing of them */
} list;

static void put(list *l, int a, int b, int c, double alpha, double beta) {
  if (l->count++ == l->want) *l->out = (at_special_case){a, b, c, alpha, beta};
}

static void put_data(list *l, int a, int b, int c) {
  put(l, a, b, c, l->alpha, l->beta);
}

/* Special values in A and B. Matrices with few lines take several launches, until each role had its turn. */
static void put_lines(list *l, const at_gemm *g) {
  static const at_special_role cross[][2] = {{AT_ROLE_ZERO, AT_ROLE_NAN_LAST},
                                             {AT_ROLE_NAN_LAST, AT_ROLE_ZERO},
                                             {AT_ROLE_NAN_FIRST, AT_ROLE_ZERO},
                                             {AT_ROLE_NAN, AT_ROLE_ZERO},
                                             {AT_ROLE_INF_FIRST, AT_ROLE_ZERO},
                                             {AT_ROLE_ZERO, AT_ROLE_INF_FIRST},
                                             {AT_ROLE_ZERO, AT_ROLE_NAN_FIRST},
                                             {AT_ROLE_ZERO, AT_ROLE_NAN},
                                             {AT_ROLE_DENORMAL_LAST, AT_ROLE_HUGE_LAST},
                                             {AT_ROLE_HUGE_LAST, AT_ROLE_HUGE_LAST},
                                             {AT_ROLE_HUGE, AT_ROLE_DENORMAL}};
  const bool many = g->m >= FEW_LINES || g->n >= FEW_LINES;
  if (many && g->m >= FEW_LINES && g->n >= FEW_LINES) {
    put_data(l, AT_PATTERN_SPREAD, AT_PATTERN_SPREAD, AT_C_ORDINARY);
  } else if (many) { /* each role of the short side meets each of the long one, which is planted once */
    const int64_t few = g->m >= FEW_LINES ? g->n : g->m;
    for (int64_t at = 0; at < AT_SPECIAL_ROLES; at += few)
      put_data(l, g->m >= FEW_LINES ? AT_PATTERN_SPREAD : AT_PATTERN_TURNS + (int)at,
               g->n >= FEW_LINES ? AT_PATTERN_SPREAD : AT_PATTERN_TURNS + (int)at, AT_C_ORDINARY);
  } else {
    for (int64_t at = 0; at < AT_SPECIAL_ROLES; at += g->m) put_data(l, AT_PATTERN_TURNS + (int)at, 0, AT_C_ORDINARY);
    for (int64_t at = 0; at < AT_SPECIAL_ROLES; at += g->n) put_data(l, 0, AT_PATTERN_TURNS + (int)at, AT_C_ORDINARY);
  }
  for (size_t i = 0; i < (many ? 2 : AT_COUNT(cross)); i++) /* zero times NaN at the edges of large ones too */
    put_data(l, AT_PATTERN_UNIFORM + (int)cross[i][0], AT_PATTERN_UNIFORM + (int)cross[i][1], AT_C_ORDINARY);
}

/* Special values in C and beta. */
static void put_c(list *l, const at_gemm *g) {
  const int turns = g->m * g->n * g->batch < FEW_ELEMENTS ? C_ROLES : 1;
  const int zero = AT_PATTERN_UNIFORM + AT_ROLE_ZERO; /* so that denormals are seen beside the product */
  const bool apart = are_apart(g, g->m, g->n, g->ldc, g->stride_c);
  for (int t = 0; apart && t < turns; t++) put_data(l, 0, 0, AT_C_PLANTED + t);
  for (int t = 0; apart && t < turns; t++) put_data(l, zero, 0, AT_C_PLANTED + t);
  put(l, 0, 0, apart ? AT_C_PLANTED : AT_C_ORDINARY, 1.0, 0.5);
  put(l, 0, 0, AT_C_POISON, l->alpha, 0.0);
  put(l, 0, 0, AT_C_ORDINARY, l->alpha, (double)NAN);
  put(l, 0, 0, AT_C_ORDINARY, l->alpha, (double)INFINITY);
  if (g->dtype_out != ATTUNE_F16)
    put(l, zero, 0, AT_C_ORDINARY, l->alpha,
        denormal_of(at_gemm_part(g->dtype) == ATTUNE_F64 ? ATTUNE_F64 : ATTUNE_F32));
}

int at_special_cases(const at_gemm *g, int want, at_special_case *out) {
  list l = {.want = want, .out = out, .alpha = 1.0};
  if (g->c != AT_C_NONE) {
    l.alpha = AT_GEMM_TEST_ALPHA;
    l.beta = AT_GEMM_TEST_BETA;
  }
  if (g->c != AT_C_NONE) put_c(&l, g);
  if (g->c == AT_C_NONE) put(&l, 0, 0, AT_C_ORDINARY, AT_GEMM_TEST_ALPHA, 0.0);
  put(&l, 0, 0, AT_C_ORDINARY, (double)NAN, l.beta);
  put(&l, 0, 0, AT_C_ORDINARY, (double)INFINITY, l.beta);
  if (g->c == AT_C_NONE && g->dtype_out != ATTUNE_F16)
    put(&l, 0, 0, AT_C_ORDINARY, denormal_of(at_gemm_part(g->dtype) == ATTUNE_F64 ? ATTUNE_F64 : ATTUNE_F32), 0.0);
  /* last: what fills A and B need not be taken away for others */
  if (lines_are_apart(g, 0) && lines_are_apart(g, 1)) put_lines(&l, g);
  return l.count;
}

/* ---- slots ---- */

static at_special_case case_of(const void *problem, int which) {
  at_special_case c = {0};
  at_special_cases(at_gemm_of(problem), which, &c);
  return c;
}

int at_gemm_ieee_specials_count(const void *problem) {
  if (at_gemm_8bit(at_gemm_of(problem)->dtype)) return 0;
  return at_special_cases(at_gemm_of(problem), -1, NULL);
}

static bool is_c(const at_gemm *g, int buffer) {
  return (g->c == AT_C_INPLACE && buffer == AT_GEMM_D) || (g->c == AT_C_SEPARATE && buffer == AT_GEMM_C);
}

int at_gemm_ieee_specials_contents(const void *problem, int which, int buffer) {
  const at_special_case c = case_of(problem, which);
  return buffer == 0 ? c.a : buffer == 1 ? c.b : is_c(at_gemm_of(problem), buffer) ? c.c : 0;
}

void at_gemm_ieee_specials_plant(const void *problem, int which, int buffer, void *bytes) {
  const at_gemm *g = at_gemm_of(problem);
  const int contents = at_gemm_ieee_specials_contents(problem, which, buffer);
  if (!contents) return;
  if (buffer < 2)
    plant_lines(g, buffer, contents, bytes);
  else
    plant_c(g, contents, bytes);
}

void at_gemm_ieee_specials_scalars(const void *problem, int which, double *scalars) {
  const at_special_case c = case_of(problem, which);
  const at_gemm *g = at_gemm_of(problem);
  scalars[0] = c.alpha;
  if (g->c != AT_C_NONE) scalars[at_gemm_complex(g->dtype) ? 2 : 1] = c.beta;
}
