/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_random.c: 10,000 random products with epilogues and 10,000 complex ones by attune_gemm on the host, against
 * sums made here, with bounds by the sums of |a| |b|. Nothing but the outputs may change. */
#include <attune/attune.h>

#include "tests/ops/gemm/gemm_oracle.h"

#include <complex.h>

#if defined(ORACLE_ADDRESS_SANITIZER) || defined(__SANITIZE_THREAD__)
enum { PROBLEMS = 2000 };
#else
enum { PROBLEMS = 10000 };
#endif
enum { SIDE = 12, BATCH = 3, GUARD = 64, BYTES = 16384 };

typedef long double complex number;

/* Memory between guards; what no matrix holds is 0xFF. */
typedef struct operand {
  oracle_matrix x;
  size_t first, bytes; /* of the matrix in `now`; of all */
  _Alignas(64) unsigned char now[BYTES], before[BYTES];
} operand;

enum { A, B, C, D, BIAS, RESIDUAL, AUX, SUMS, OPERANDS };

typedef struct trial {
  uint64_t state;
  bool whole; /* small whole numbers: every z is exact */
  attune_gemm_problem p;
  attune_gemm_operands o;
  attune_dtype out, vector;
  float scale;
  double complex alpha, beta;
  operand of[OPERANDS];
} trial;

static attune_device *host;
static attune_tuner *tuner;
static attune_stream *stream;

FIXTURE(open_tuner) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  stream = attune_stream_default(host);
  return attune_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_OFF}) == ATTUNE_OK
             ? 0
             : -1;
}

FIXTURE(close_tuner) {
  attune_tuner_destroy(tuner);
  return 0;
}

/* ---- problems ---- */

static int64_t draw(trial *t, int64_t count) {
  return (int64_t)(at_splitmix64_uniform(&t->state) * (double)count);
}

static double value(trial *t) {
  return t->whole ? (double)(draw(t, 5) - 2) : 2.0 * at_splitmix64_uniform(&t->state) - 1.0;
}

static void *pointer_to(operand *m) {
  return m->now + m->first;
}

/* The bytes of the matrix m->x, or of its bits, at an address that is aligned to an element alone. */
static void lay_out(trial *t, operand *m, bool bits) {
  const size_t element = attune_dtype_size(oracle_part(m->x.dtype)), extent = oracle_extent(&m->x);
  m->first = GUARD + (size_t)draw(t, 4) * (bits ? 1 : element);
  m->bytes = m->first + (bits ? (extent + 7) / 8 : extent * element * (size_t)m->x.parts) + GUARD;
  assert_true(m->bytes <= BYTES);
  memset(m->now, 0xFF, m->bytes);
}

static void fill(trial *t, operand *m) {
  const int64_t batch = m->x.stride ? m->x.batch : 1;
  const size_t parts = (size_t)m->x.parts;
  for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < m->x.rows; i++)
      for (int64_t j = 0; j < m->x.cols; j++)
        for (size_t part = 0; part < parts; part++)
          oracle_store(pointer_to(m), oracle_part(m->x.dtype), oracle_at(&m->x, b, i, j) * parts + part, value(t));
}

/* A pitch and a stride: packed as 0 or in numbers, or with gaps; of inputs also broadcast. */
static oracle_matrix shape(trial *t, attune_dtype dtype, int64_t rows, int64_t cols, bool input, int64_t *ld,
                           int64_t *stride) {
  const bool row = t->p.layout == ATTUNE_ROW_MAJOR;
  const int64_t inner = row ? cols : rows, outer = row ? rows : cols, least = inner > 1 ? inner : 1;
  *ld = draw(t, 2) ? 0 : least + draw(t, 4);
  *stride = draw(t, 2) ? 0 : (*ld ? *ld : least) * (outer > 1 ? outer : 1) + draw(t, 5);
  if (input && draw(t, 6) == 0) *stride = ATTUNE_BROADCAST;
  return oracle_matrix_of(&t->p, dtype, rows, cols, *ld, *stride);
}

static int64_t rows_of_d(const trial *t) {
  return t->p.gated == ATTUNE_GATED_M ? t->p.m / 2 : t->p.m;
}
static int64_t cols_of_d(const trial *t) {
  return t->p.gated == ATTUNE_GATED_N ? t->p.n / 2 : t->p.n;
}

/* C is none, D itself or a matrix of its own, which is not read where beta is 0. */
static void draw_matrices(trial *t) {
  attune_gemm_problem *p = &t->p;
  const int use = p->gated ? 0 : (int)draw(t, 3);
  t->of[A].x = shape(t, p->dtype, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, true, &p->lda, &p->stride_a);
  t->of[B].x = shape(t, p->dtype, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, true, &p->ldb, &p->stride_b);
  t->of[C].x = shape(t, t->out, p->m, p->n, true, &p->ldc, &p->stride_c);
  t->of[D].x = shape(t, t->out, rows_of_d(t), cols_of_d(t), false, &p->ldd, &p->stride_d);
  if (use == 1) p->ldc = p->ldd, p->stride_c = p->stride_d;
  for (int i = A; i <= D; i++) lay_out(t, &t->of[i], false);
  if (use == 0) t->beta = 0.0;
  fill(t, &t->of[A]);
  fill(t, &t->of[B]);
  if (use && t->beta != 0.0) fill(t, &t->of[use == 1 ? D : C]);
  t->o.a = pointer_to(&t->of[A]), t->o.b = pointer_to(&t->of[B]), t->o.d = pointer_to(&t->of[D]);
  if (use) t->o.c = pointer_to(&t->of[use == 1 ? D : C]);
  t->o.alpha = creal(t->alpha), t->o.alpha_imag = cimag(t->alpha);
  t->o.beta = creal(t->beta), t->o.beta_imag = cimag(t->beta);
}

static void draw_shape(trial *t, uint64_t seed, attune_dtype dtype, attune_dtype out) {
  static const double scalars[] = {1.0, 1.0, -1.0, 2.0, 0.0};
  memset(t, 0, offsetof(trial, of));
  t->state = seed;
  t->whole = draw(t, 2);
  t->out = out;
  t->p = (attune_gemm_problem){.dtype = dtype,
                               .dtype_out = out,
                               .layout = (attune_layout)draw(t, 2),
                               .trans_a = (attune_transpose)draw(t, 3),
                               .trans_b = (attune_transpose)draw(t, 3),
                               .m = 1 + draw(t, SIDE),
                               .n = 1 + draw(t, SIDE),
                               .k = draw(t, 20) ? 1 + draw(t, SIDE) : 0,
                               .batch = draw(t, 2) ? 0 : 1 + draw(t, BATCH)};
  t->alpha = scalars[draw(t, 5)], t->beta = scalars[draw(t, 5)];
}

/* ---- epilogues ---- */

static void draw_parts(trial *t) {
  attune_gemm_problem *p = &t->p;
  attune_gemm_epilogue *e = &p->epilogue;
  e->bias = (uint8_t)draw(t, 3), e->activation = (uint8_t)draw(t, 7);
  e->residual = draw(t, 3) == 0, e->clamp = draw(t, 4) == 0, p->scaling.scale_d = draw(t, 4) == 0;
  if (draw(t, 4) == 0) {
    p->gated = (uint8_t)(1 + draw(t, 2));
    *(p->gated == ATTUNE_GATED_M ? &p->m : &p->n) = 2 * (1 + draw(t, SIDE / 2));
  } else {
    e->aux = (uint8_t)draw(t, e->activation == ATTUNE_ACTIVATION_RELU ? 3 : 2);
    e->gradient = e->aux && e->activation && draw(t, 2);
    e->bias_gradient = p->batch < 2 && draw(t, 2) ? (uint8_t)draw(t, 5) : 0;
  }
  if (e->bias_gradient >= ATTUNE_BIAS_GRADIENT_M) e->residual = e->clamp = p->scaling.scale_d = 0;
  const bool half = t->out == ATTUNE_F16 || t->out == ATTUNE_BF16;
  t->vector = half && draw(t, 2) ? ATTUNE_F32 : t->out;
  e->bias_dtype = draw(t, 2) || t->vector != t->out ? (uint8_t)t->vector : 0;
  if (e->aux == ATTUNE_AUX_RELU_MASK && !e->gradient) t->whole = true;
}

static void draw_vector(trial *t, operand *m, int64_t count) {
  m->x = (oracle_matrix){t->vector, 1, false, count, 1, count, count, 1};
  lay_out(t, m, false);
}

/* A mask's ld and stride are multiples of 8; packed, ld is one of 128. */
static void draw_mask(trial *t) {
  attune_gemm_problem *p = &t->p;
  const bool row = p->layout == ATTUNE_ROW_MAJOR;
  const int64_t inner = row ? p->n : p->m, outer = row ? p->m : p->n, packed = (inner + 127) / 128 * 128;
  p->ld_aux = draw(t, 2) ? 0 : (inner + 7) / 8 * 8 + 8 * draw(t, 3);
  p->stride_aux = draw(t, 2) ? 0 : (p->ld_aux ? p->ld_aux : packed) * outer + 8 * draw(t, 3);
  t->of[AUX].x = oracle_matrix_of(p, t->out, p->m, p->n, p->ld_aux ? p->ld_aux : packed, p->stride_aux);
  lay_out(t, &t->of[AUX], true);
  for (size_t i = t->of[AUX].first; i < t->of[AUX].bytes - GUARD; i++) t->of[AUX].now[i] = (unsigned char)draw(t, 256);
}

static void draw_epilogue(trial *t, uint64_t seed) {
  static const attune_dtype types[][2] = {{ATTUNE_F64, ATTUNE_F64},   {ATTUNE_F32, ATTUNE_F32},
                                          {ATTUNE_F16, ATTUNE_F16},   {ATTUNE_F16, ATTUNE_F32},
                                          {ATTUNE_BF16, ATTUNE_BF16}, {ATTUNE_BF16, ATTUNE_F32}};
  const attune_dtype *pair = types[seed % 6];
  draw_shape(t, seed, pair[0], pair[1]);
  attune_gemm_problem *p = &t->p;
  draw_parts(t);
  const attune_gemm_epilogue e = p->epilogue;
  draw_matrices(t);
  draw_vector(t, &t->of[BIAS], e.bias == ATTUNE_BIAS_M ? p->m : p->n);
  fill(t, &t->of[BIAS]);
  draw_vector(t, &t->of[SUMS], e.bias_gradient % 2 ? p->m : p->n);
  t->of[RESIDUAL].x = shape(t, t->out, rows_of_d(t), cols_of_d(t), true, &p->ld_residual, &p->stride_residual);
  lay_out(t, &t->of[RESIDUAL], false);
  fill(t, &t->of[RESIDUAL]);
  t->of[AUX].x = shape(t, t->out, p->m, p->n, e.gradient, &p->ld_aux, &p->stride_aux);
  lay_out(t, &t->of[AUX], false);
  if (e.gradient) fill(t, &t->of[AUX]);
  if (e.aux == ATTUNE_AUX_RELU_MASK) draw_mask(t);
  t->scale = (float)value(t);
  if (e.bias) t->o.bias = pointer_to(&t->of[BIAS]);
  if (e.residual) t->o.residual = pointer_to(&t->of[RESIDUAL]);
  if (e.aux) t->o.aux = pointer_to(&t->of[AUX]);
  if (e.bias_gradient) t->o.bias_gradient = pointer_to(&t->of[SUMS]);
  if (p->scaling.scale_d) t->o.scale_d = &t->scale;
  t->o.clamp_min = draw(t, 3) ? -0.5 : -(double)INFINITY, t->o.clamp_max = draw(t, 3) ? 1.25 : (double)INFINITY;
}

/* ---- what is expected ---- */

/* A result, and how far from it the library's may be. */
typedef struct answer {
  number value;
  double error;
} answer;

static double unit_of(attune_dtype dtype) {
  if (oracle_part(dtype) == ATTUNE_F64) return 0x1p-53;
  return oracle_part(dtype) == ATTUNE_F32 ? 0x1p-24 : dtype == ATTUNE_F16 ? 0x1p-11 : 0x1p-8;
}

/* Of the accumulation type. */
static double unit_of_sums(const trial *t) {
  return oracle_part(t->p.dtype) == ATTUNE_F64 ? 0x1p-53 : 0x1p-24;
}

static double least_of(attune_dtype dtype) {
  return dtype == ATTUNE_F16 ? 0x1p-24 : oracle_part(dtype) == ATTUNE_F64 ? 0.0 : 0x1p-126;
}

/* As it was before the call. */
static number element(const operand *m, int64_t b, int64_t i, int64_t j) {
  const size_t at = oracle_at(&m->x, b, i, j) * (size_t)m->x.parts;
  const attune_dtype part = oracle_part(m->x.dtype);
  const long double real = oracle_load(m->before + m->first, part, at);
  return m->x.parts == 1 ? real : real + (long double)oracle_load(m->before + m->first, part, at + 1) * I;
}

static number op_element(const operand *m, attune_transpose trans, int64_t b, int64_t i, int64_t j) {
  const number x = trans ? element(m, b, j, i) : element(m, b, i, j);
  return trans == ATTUNE_C ? conjl(x) : x;
}

/* alpha op(A) op(B) + beta C. Halves may be rounded before C, and before a bias. */
static answer product(const trial *t, int64_t b, int64_t i, int64_t j) {
  const attune_gemm_problem *p = &t->p;
  number sum = 0.0L;
  double size = 0.0;
  for (int64_t k = 0; k < p->k && t->alpha != 0.0; k++) {
    const number x = op_element(&t->of[A], p->trans_a, b, i, k), y = op_element(&t->of[B], p->trans_b, b, k, j);
    sum += x * y;
    size += (double)(cabsl(x) * cabsl(y));
  }
  sum *= (number)t->alpha, size *= cabs(t->alpha);
  double error = t->beta != 0.0 ? unit_of(t->out) * (double)cabsl(sum) : 0.0;
  if (t->beta != 0.0) {
    const number c = (number)t->beta * element(&t->of[t->o.c == t->o.d ? D : C], b, i, j);
    sum += c, size += (double)cabsl(c);
  }
  if (p->epilogue.bias) error += unit_of(t->out) * (double)cabsl(sum);
  error += (2.0 * (double)p->k + 8.0) * unit_of_sums(t) * size;
  return (answer){sum, error};
}

static double function(int activation, double x) {
  const double cube = sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x);
  switch (activation) {
  case ATTUNE_ACTIVATION_RELU: return fmax(x, 0.0);
  case ATTUNE_ACTIVATION_GELU: return 0.5 * x * erfc(-x / sqrt(2.0));
  case ATTUNE_ACTIVATION_GELU_TANH: return x / (1.0 + exp(-2.0 * cube));
  case ATTUNE_ACTIVATION_SILU: return x / (1.0 + exp(-x));
  case ATTUNE_ACTIVATION_SIGMOID: return 1.0 / (1.0 + exp(-x));
  case ATTUNE_ACTIVATION_TANH: return tanh(x);
  default: return x;
  }
}

static double derivative(int activation, double x) {
  const double root = sqrt(2.0 / acos(-1.0)), s = 1.0 / (1.0 + exp(-x)), c = cosh(x);
  const double q = 1.0 / (1.0 + exp(-2.0 * root * (x + 0.044715 * x * x * x)));
  switch (activation) {
  case ATTUNE_ACTIVATION_RELU: return x > 0.0;
  case ATTUNE_ACTIVATION_GELU: return 0.5 * erfc(-x / sqrt(2.0)) + 0.5 * root * x * exp(-0.5 * x * x);
  case ATTUNE_ACTIVATION_GELU_TANH: return q + x * q * (1.0 - q) * 2.0 * root * (1.0 + 0.134145 * x * x);
  case ATTUNE_ACTIVATION_SILU: return s + x * s * (1.0 - s);
  case ATTUNE_ACTIVATION_SIGMOID: return s * (1.0 - s);
  case ATTUNE_ACTIVATION_TANH: return 1.0 / (c * c);
  default: return 1.0;
  }
}

static bool bit_of(const unsigned char *bytes, size_t at) {
  return bytes[at / 8] >> at % 8 & 1;
}

/* z, which may be rounded to D's type. */
static answer with_bias(const trial *t, int64_t b, int64_t i, int64_t j) {
  answer z = product(t, b, i, j);
  const uint8_t bias = t->p.epilogue.bias;
  if (bias) z.value += element(&t->of[BIAS], 0, bias == ATTUNE_BIAS_M ? i : j, 0);
  const double size = fabs((double)creall(z.value));
  z.error += 4.0 * unit_of_sums(t) * (size + 2.0) + unit_of(t->out) * size + least_of(t->out);
  if (t->whole) z.error = 0.0;
  return z;
}

static answer activated(const trial *t, answer z) {
  const int activation = t->p.epilogue.activation;
  const double x = (double)creall(z.value), y = function(activation, x);
  if (activation <= ATTUNE_ACTIVATION_RELU) return (answer){y, z.error};
  const double size = activation >= ATTUNE_ACTIVATION_SIGMOID ? fmax(fabs(x), 1.0) : fabs(x);
  return (answer){y, 1.13 * z.error + (unit_of(t->out) + 16.0 * unit_of_sums(t)) * size};
}

static answer times_slope(const trial *t, answer z, int64_t b, int64_t i, int64_t j) {
  const attune_gemm_epilogue e = t->p.epilogue;
  const operand *aux = &t->of[AUX];
  if (e.aux == ATTUNE_AUX_RELU_MASK)
    return bit_of(aux->before + aux->first, oracle_at(&aux->x, b, i, j)) ? z : (answer){0.0, 0.0};
  const double x = (double)creall(element(aux, b, i, j)), slope = derivative(e.activation, x);
  const double more = e.activation == ATTUNE_ACTIVATION_RELU ? 0.0 : 32.0 * unit_of_sums(t) * (1.0 + fabs(x));
  return (answer){z.value * slope, z.error * fabs(slope) + more * (double)cabsl(z.value)};
}

/* D, before it is rounded for good. */
static answer result(const trial *t, int64_t b, int64_t i, int64_t j) {
  const attune_gemm_problem *p = &t->p;
  const answer z = with_bias(t, b, i, j);
  answer y = p->epilogue.gradient ? times_slope(t, z, b, i, j) : activated(t, z);
  if (p->gated) {
    const answer u = with_bias(t, b, i + (p->gated == ATTUNE_GATED_M ? p->m / 2 : 0),
                               j + (p->gated == ATTUNE_GATED_N ? p->n / 2 : 0));
    y.error = (double)(cabsl(u.value) * y.error + (cabsl(y.value) + y.error) * u.error);
    y.value *= u.value;
    y.error += 2.0 * unit_of_sums(t) * (double)cabsl(y.value);
  }
  y.error += (unit_of(t->out) + 2.0 * unit_of_sums(t)) * (double)cabsl(y.value) + least_of(t->out);
  if (p->epilogue.residual) y.value += element(&t->of[RESIDUAL], b, i, j);
  if (p->epilogue.clamp) y.value = fmaxl(fminl(creall(y.value), t->o.clamp_max), t->o.clamp_min);
  if (p->scaling.scale_d) y.value *= t->scale, y.error *= fabs((double)t->scale);
  y.error += (unit_of(t->out) + 2.0 * unit_of_sums(t)) * (double)cabsl(y.value) + least_of(t->out);
  return y;
}

/* ---- checks ---- */

/* The element is right; it becomes what it was. */
static void check_element(const trial *t, uint64_t seed, const char *name, operand *m, size_t at, answer wanted) {
  const size_t parts = (size_t)m->x.parts, size = attune_dtype_size(oracle_part(m->x.dtype));
  const double error = wanted.error + unit_of(m->x.dtype) * (double)cabsl(wanted.value) + least_of(m->x.dtype);
  for (size_t part = 0; part < parts; part++) {
    const double got = oracle_load(pointer_to(m), oracle_part(m->x.dtype), at * parts + part),
                 want = (double)(part ? cimagl(wanted.value) : creall(wanted.value));
    if (!(fabs(got - want) <= error)) {
      char text[ATTUNE_PROBLEM_CHARS] = "";
      (void)attune_gemm_problem_format(text, sizeof text, &t->p, &t->o);
      fail_msg("seed %llu, %s: %s[%zu] is %.9g; should be %.9g within %.3g (alpha %g, beta %g)",
               (unsigned long long)seed, text, name, at, got, want, error, t->o.alpha, t->o.beta);
    }
  }
  memcpy(m->now + m->first + at * parts * size, m->before + m->first + at * parts * size, parts * size);
}

static void check_mask(const trial *t, uint64_t seed, operand *m, int64_t b, int64_t i, int64_t j) {
  const size_t at = oracle_at(&m->x, b, i, j), byte = m->first + at / 8;
  const unsigned char bit = (unsigned char)(1u << at % 8);
  if (bit_of(pointer_to(m), at) != (creall(with_bias(t, b, i, j).value) > 0.0L))
    fail_msg("seed %llu: bit %zu of the mask is wrong", (unsigned long long)seed, at);
  m->now[byte] = (unsigned char)((m->now[byte] & ~bit) | (m->before[byte] & bit));
}

static void check_sums(const trial *t, uint64_t seed, operand *m) {
  const attune_gemm_problem *p = &t->p;
  const int which = p->epilogue.bias_gradient;
  const int64_t length = which <= ATTUNE_BIAS_GRADIENT_B ? p->k : which == ATTUNE_BIAS_GRADIENT_M ? p->n : p->m;
  for (int64_t i = 0; i < m->x.rows; i++) {
    answer sum = {0.0, 0.0};
    for (int64_t x = 0; x < length; x++) {
      const answer one = which == ATTUNE_BIAS_GRADIENT_A   ? (answer){op_element(&t->of[A], p->trans_a, 0, i, x), 0.0}
                         : which == ATTUNE_BIAS_GRADIENT_B ? (answer){op_element(&t->of[B], p->trans_b, 0, x, i), 0.0}
                         : which == ATTUNE_BIAS_GRADIENT_M ? result(t, 0, i, x)
                                                           : result(t, 0, x, i);
      sum.value += one.value;
      sum.error += one.error + 2.0 * (double)length * unit_of_sums(t) * (double)cabsl(one.value);
    }
    check_element(t, seed, "bias_gradient", m, (size_t)i, sum);
  }
}

static void run(trial *t) {
  for (int i = 0; i < OPERANDS; i++) memcpy(t->of[i].before, t->of[i].now, t->of[i].bytes);
  const bool sums =
      t->p.epilogue.bias_gradient == ATTUNE_BIAS_GRADIENT_A || t->p.epilogue.bias_gradient == ATTUNE_BIAS_GRADIENT_B;
  if (!sums && (t->alpha == 0.0 || t->p.k == 0)) t->o.a = t->o.b = NULL; /* not read */
  OK(attune_gemm(tuner, stream, &t->p, &t->o));
}

/* What was checked is as it was; so must be the rest. */
static void check_rest(const trial *t, uint64_t seed) {
  for (int i = 0; i < OPERANDS; i++)
    for (size_t at = 0; at < t->of[i].bytes; at++)
      if (t->of[i].now[at] != t->of[i].before[at])
        fail_msg("seed %llu: operand %d was written at byte %zd", (unsigned long long)seed, i,
                 (ssize_t)at - (ssize_t)t->of[i].first);
}

TEST(epilogues) {
  trial *t = calloc(1, sizeof *t);
  for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
    draw_epilogue(t, seed);
    run(t);
    const attune_gemm_epilogue e = t->p.epilogue;
    for (int64_t b = 0; b < t->of[D].x.batch; b++)
      for (int64_t i = 0; i < t->of[D].x.rows; i++)
        for (int64_t j = 0; j < t->of[D].x.cols; j++) {
          check_element(t, seed, "d", &t->of[D], oracle_at(&t->of[D].x, b, i, j), result(t, b, i, j));
          if (e.aux == ATTUNE_AUX_INPUT && !e.gradient)
            check_element(t, seed, "aux", &t->of[AUX], oracle_at(&t->of[AUX].x, b, i, j), with_bias(t, b, i, j));
          if (e.aux == ATTUNE_AUX_RELU_MASK && !e.gradient) check_mask(t, seed, &t->of[AUX], b, i, j);
        }
    if (e.bias_gradient) check_sums(t, seed, &t->of[SUMS]);
    check_rest(t, seed);
  }
  free(t);
}

TEST(complex_products) {
  static const double parts[] = {0.0, 1.0, -1.0, 0.5};
  trial *t = calloc(1, sizeof *t);
  for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
    const attune_dtype dtype = seed % 2 ? ATTUNE_C64 : ATTUNE_C128;
    draw_shape(t, seed, dtype, dtype);
    t->alpha += parts[draw(t, 4)] * I, t->beta += parts[draw(t, 4)] * I;
    draw_matrices(t);
    run(t);
    for (int64_t b = 0; b < t->of[D].x.batch; b++)
      for (int64_t i = 0; i < t->p.m; i++)
        for (int64_t j = 0; j < t->p.n; j++)
          check_element(t, seed, "d", &t->of[D], oracle_at(&t->of[D].x, b, i, j), product(t, b, i, j));
    check_rest(t, seed);
  }
  free(t);
}

int main(void) {
  return RUN_TESTS(open_tuner, close_tuner);
}
