/* SPDX-License-Identifier: Apache-2.0
 * reference_epilogue.c: see reference_epilogue.h. */
#include "ops/gemm/reference/reference_epilogue.h"

#include <stdlib.h>

#include "src/host/threads.h"

/* The derivative of an activation nowhere exceeds this: gelu's 1.129, silu's 1.0999. */
#define STEEPEST 1.13

static double root_2_pi(void) {
  return sqrt(2.0 / acos(-1.0));
}

static double activate(int activation, double x) {
  switch (activation) {
  case ATTUNE_ACTIVATION_RELU: return x <= 0.0 ? 0.0 : x;
  case ATTUNE_ACTIVATION_GELU: return 0.5 * x * erfc(-x / sqrt(2.0));
  case ATTUNE_ACTIVATION_GELU_TANH: return 0.5 * x * (1.0 + tanh(root_2_pi() * (x + 0.044715 * x * x * x)));
  case ATTUNE_ACTIVATION_SILU: return x / (1.0 + exp(-x));
  case ATTUNE_ACTIVATION_SIGMOID: return 1.0 / (1.0 + exp(-x));
  case ATTUNE_ACTIVATION_TANH: return tanh(x);
  default: return x;
  }
}

/* From 16 on the tanh is 1, and x^3 is far from overflow. */
static double derivative_gelu_tanh(double aux) {
  const double x = aux > 16.0 ? 16.0 : aux < -16.0 ? -16.0 : aux, u = tanh(root_2_pi() * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + u) + 0.5 * x * (1.0 - u * u) * root_2_pi() * (1.0 + 3.0 * 0.044715 * x * x);
}

static double derivative(int activation, double x) {
  const double s = 1.0 / (1.0 + exp(-x)), t = tanh(x);
  switch (activation) {
  case ATTUNE_ACTIVATION_RELU: return x <= 0.0 ? 0.0 : 1.0;
  case ATTUNE_ACTIVATION_GELU: return 0.5 * erfc(-x / sqrt(2.0)) + x * exp(-0.5 * x * x) * root_2_pi() / 2.0;
  case ATTUNE_ACTIVATION_GELU_TANH: return derivative_gelu_tanh(x);
  case ATTUNE_ACTIVATION_SILU: return s * (1.0 + x * (1.0 - s));
  case ATTUNE_ACTIVATION_SIGMOID: return s * (1.0 - s);
  case ATTUNE_ACTIVATION_TANH: return 1.0 - t * t;
  default: return 1.0;
  }
}

/* ---- the operands ---- */

static double *vector_of(const void *data, attune_dtype dtype, int64_t count) {
  double *out = at_alloc_large((size_t)count * sizeof *out);
  if (out) at_reference_convert(out, data, dtype, 0, count, 1, count);
  return out;
}

static double *matrix_of(const at_gemm *g, const void *data, int64_t ld, int64_t stride) {
  const int64_t rows = at_gemm_rows_d(g), columns = at_gemm_cols_d(g);
  double *out = at_alloc_large((size_t)(rows * columns * g->batch) * sizeof *out);
  for (int64_t b = 0; out && b < g->batch; b++)
    at_reference_convert(out + b * rows * columns, data, (attune_dtype)g->dtype_out, (size_t)(stride * b), rows,
                         columns, ld);
  return out;
}

static double *mask_of(const at_gemm *g, const unsigned char *bits) {
  double *out = at_alloc_large((size_t)(g->m * g->n * g->batch) * sizeof *out);
  for (int64_t column = 0; out && column < g->n * g->batch; column++)
    for (int64_t i = 0; i < g->m; i++) {
      const int64_t at = g->stride_aux * (column / g->n) + g->ld_aux * (column % g->n) + i;
      out[column * g->m + i] = bits[at / 8] >> at % 8 & 1 ? 1.0 : -1.0;
    }
  return out;
}

/* Over k of the rows of op(A), or the columns of op(B). */
static void add_up(struct at_epilogue_reference *e, const at_gemm *g, const void *data) {
  const bool of_a = g->epilogue.bias_gradient == ATTUNE_BIAS_GRADIENT_A;
  const int64_t count = at_gemm_bias_gradient_count(g), ld = of_a ? g->lda : g->ldb;
  const bool contiguous = of_a ? g->trans_a != 0 : g->trans_b == 0; /* along k */
  for (int64_t i = 0; i < count; i++) {
    e->sums[i] = e->magnitudes[i] = 0.0;
    for (int64_t k = 0; k < g->k; k++) {
      const double x = at_reference_value(data, (attune_dtype)g->dtype, (size_t)(contiguous ? i * ld + k : k * ld + i));
      e->sums[i] += x;
      e->magnitudes[i] += fabs(x);
    }
  }
}

attune_status at_epilogue_reference_create(struct at_epilogue_reference **out, const at_gemm *g,
                                           const void *const seen[AT_MAX_BUFFERS]) {
  const attune_gemm_epilogue wanted = g->epilogue;
  const bool inputs = at_gemm_sums_inputs(g), aux = at_gemm_reads_aux(g);
  const size_t vector = (size_t)at_gemm_bias_gradient_count(g) * sizeof(double);
  int place[AT_GEMM_BUFFERS];
  at_gemm_buffer_places(g, place);
  struct at_epilogue_reference *e = *out = calloc(1, sizeof *e);
  if (e && wanted.bias) e->bias = vector_of(seen[place[AT_GEMM_BIAS]], at_gemm_bias_dtype(g), at_gemm_bias_count(g));
  if (e && wanted.residual)
    e->residual = matrix_of(g, seen[place[AT_GEMM_RESIDUAL]], g->ld_residual, g->stride_residual);
  if (e && aux)
    e->aux = wanted.aux == ATTUNE_AUX_RELU_MASK ? mask_of(g, seen[place[AT_GEMM_AUX]])
                                                : matrix_of(g, seen[place[AT_GEMM_AUX]], g->ld_aux, g->stride_aux);
  if (e && inputs) e->sums = malloc(vector), e->magnitudes = malloc(vector);
  if (!e || (wanted.bias && !e->bias) || (wanted.residual && !e->residual) || (aux && !e->aux) ||
      (inputs && (!e->sums || !e->magnitudes)))
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a float64 reference");
  e->scale = g->scaling.scale_d ? (double)*(const float *)seen[place[AT_GEMM_SCALE_D]] : 1.0;
  if (inputs) add_up(e, g, seen[wanted.bias_gradient == ATTUNE_BIAS_GRADIENT_A ? AT_GEMM_A : AT_GEMM_B]);
  return ATTUNE_OK;
}

void at_epilogue_reference_destroy(struct at_epilogue_reference *e) {
  if (!e) return;
  free(e->bias);
  free(e->residual);
  free(e->aux);
  free(e->sums);
  free(e->magnitudes);
  free(e);
}

/* ---- elements ---- */

static double accumulator_roundoff(const at_gemm *g) {
  return g->dtype == ATTUNE_F64 ? 0x1p-53 : 0x1p-24;
}

/* Halves may be rounded on the way: before the bias, and as the activation's argument. */
static double step_of(const at_gemm *g) {
  const attune_dtype out = (attune_dtype)g->dtype_out;
  return out == ATTUNE_F16 || out == ATTUNE_BF16 ? at_reference_roundoff(out) : 4.0 * accumulator_roundoff(g);
}

/* z of element (i, j) of the product. */
static at_epilogue_element with_bias(const at_reference *r, int64_t i, int64_t j, double sum, double error) {
  const at_gemm *g = &r->g;
  const double bias = !g->epilogue.bias ? 0.0 : r->epilogue->bias[g->epilogue.bias == ATTUNE_BIAS_M ? i : j];
  return (at_epilogue_element){.z = sum + bias,
                               .z_error = error + step_of(g) * fabs(sum) +
                                          2.0 * accumulator_roundoff(g) * (fabs(sum) + fabs(bias))};
}

static void activate_z(const at_gemm *g, at_epilogue_element *x) {
  const int activation = g->epilogue.activation;
  const double u = accumulator_roundoff(g), step = step_of(g);
  const bool bounded = activation == ATTUNE_ACTIVATION_SIGMOID || activation == ATTUNE_ACTIVATION_TANH;
  x->y = activate(activation, x->z);
  x->y_error = activation ? STEEPEST * (x->z_error + step * fabs(x->z)) : x->z_error;
  if (activation > ATTUNE_ACTIVATION_RELU) x->y_error += (step + 16.0 * u) * (bounded ? 1.0 : fabs(x->z));
}

/* The rest, of element (i, j) of D. */
static void finish(const at_reference *r, const at_gemm_scalars *s, int64_t b, int64_t i, int64_t j,
                   at_epilogue_element *x) {
  const at_gemm *g = &r->g;
  if (g->epilogue.residual) {
    const double more = r->epilogue->residual[(b * at_gemm_cols_d(g) + j) * at_gemm_rows_d(g) + i];
    x->y_error += step_of(g) * fabs(x->y) + accumulator_roundoff(g) * fabs(more);
    x->y += more;
  }
  if (g->epilogue.clamp) x->y = x->y < s->clamp_min ? s->clamp_min : x->y > s->clamp_max ? s->clamp_max : x->y;
  x->y *= r->epilogue->scale;
  x->y_error = fabs(r->epilogue->scale) * x->y_error + accumulator_roundoff(g) * fabs(x->y);
}

at_epilogue_element at_epilogue_expect(const at_reference *r, const at_gemm_scalars *s, int64_t b, int64_t i, int64_t j,
                                       double sum, double error) {
  const at_gemm *g = &r->g;
  const attune_gemm_epilogue e = g->epilogue;
  at_epilogue_element x = with_bias(r, i, j, sum, error);
  if (e.gradient) {
    const double aux = r->epilogue->aux[(b * g->n + j) * g->m + i], slope = derivative(e.activation, aux);
    x.y = e.activation == ATTUNE_ACTIVATION_RELU && slope == 0.0 ? 0.0 : x.z * slope;
    x.y_error = fabs(slope) * x.z_error;
    if (e.activation != ATTUNE_ACTIVATION_RELU)
      x.y_error += 32.0 * accumulator_roundoff(g) * fabs(x.z) * (1.0 + fabs(aux));
  } else {
    activate_z(g, &x);
  }
  finish(r, s, b, i, j, &x);
  return x;
}

at_epilogue_element at_epilogue_expect_gated(const at_reference *r, const at_gemm_scalars *s, int64_t b, int64_t i,
                                             int64_t j, const double sum[2], const double error[2]) {
  const at_gemm *g = &r->g;
  const at_gemm_place up = at_gemm_second_half(g, i, j);
  at_epilogue_element x = with_bias(r, i, j, sum[0], error[0]), u = with_bias(r, up.row, up.column, sum[1], error[1]);
  activate_z(g, &x);
  const double tiny = at_reference_underflow((attune_dtype)g->dtype_out);
  x.y_error += tiny;
  u.z_error += step_of(g) * fabs(u.z) + tiny;
  x.y_error =
      fabs(u.z) * x.y_error + (fabs(x.y) + x.y_error) * u.z_error + 2.0 * accumulator_roundoff(g) * fabs(x.y * u.z);
  x.y *= u.z;
  finish(r, s, b, i, j, &x);
  return x;
}

/* ---- outputs besides D ---- */

static const unsigned char *output_at(const at_reference *r, const at_outputs *outputs, int which,
                                      unsigned char *poison) {
  int place[AT_GEMM_BUFFERS];
  at_gemm_buffer_places(&r->g, place);
  if (poison) *poison = outputs->poison[place[which]];
  return outputs->bytes[place[which]];
}

double at_epilogue_compare_aux(const at_reference *r, const at_outputs *outputs, int64_t b, int64_t i, int64_t j,
                               const at_epilogue_element *e) {
  const at_gemm *g = &r->g;
  if (!at_gemm_writes_aux(g)) return 0.0;
  const unsigned char *aux = output_at(r, outputs, AT_GEMM_AUX, NULL);
  const int64_t at = g->stride_aux * b + g->ld_aux * j + i;
  if (g->epilogue.aux == ATTUNE_AUX_RELU_MASK) /* near 0 either bit is right */
    return fabs(e->z) <= e->z_error || (aux[at / 8] >> at % 8 & 1) == (e->z > 0.0) ? 0.0 : INFINITY;
  const attune_dtype out = (attune_dtype)g->dtype_out;
  const double fraction = fabs(at_reference_value(aux, out, (size_t)at) - e->z) /
                          (e->z_error + at_reference_roundoff(out) * fabs(e->z) + at_reference_underflow(out));
  return isnan(fraction) ? INFINITY : fraction;
}

bool at_epilogue_gaps_untouched(const at_reference *r, const at_outputs *outputs, int64_t b, int64_t j) {
  const at_gemm *g = &r->g;
  if (!at_gemm_writes_aux(g) || g->epilogue.aux != ATTUNE_AUX_INPUT) return true; /* a mask's may be written */
  unsigned char poison = 0;
  const unsigned char *aux = output_at(r, outputs, AT_GEMM_AUX, &poison);
  const int64_t element = (int64_t)attune_dtype_size((attune_dtype)g->dtype_out);
  const int64_t end = g->stride_aux * b + g->ld_aux * j + g->m;
  const int64_t next = j + 1 < g->n ? end - g->m + g->ld_aux : b + 1 < g->batch ? g->stride_aux * (b + 1) : end;
  for (int64_t at = end * element; at < next * element; at++)
    if (aux[at] != poison) return false;
  return true;
}

/* Sums of D are compared with those of the D that was written, which is right by itself. */
static void sum_of_output(const at_reference *r, const at_outputs *outputs, int64_t x, double *sum, double *magnitude) {
  const at_gemm *g = &r->g;
  const bool row = g->epilogue.bias_gradient == ATTUNE_BIAS_GRADIENT_M;
  const void *d = outputs->bytes[AT_GEMM_D];
  *sum = *magnitude = 0.0;
  for (int64_t y = 0; y < (row ? g->n : g->m); y++) {
    const double value =
        at_reference_value(d, (attune_dtype)g->dtype_out, (size_t)(row ? x + y * g->ldd : x * g->ldd + y));
    *sum += value;
    *magnitude += fabs(value);
  }
}

double at_epilogue_compare_vector(const at_reference *r, const at_outputs *outputs) {
  const at_gemm *g = &r->g;
  if (!g->epilogue.bias_gradient) return 0.0;
  const unsigned char *vector = output_at(r, outputs, AT_GEMM_BIAS_GRADIENT, NULL);
  const attune_dtype dtype = at_gemm_bias_dtype(g);
  const bool inputs = at_gemm_sums_inputs(g);
  const double terms = (double)(inputs ? g->k : g->epilogue.bias_gradient == ATTUNE_BIAS_GRADIENT_M ? g->n : g->m);
  const double each =
      terms * accumulator_roundoff(g) + (inputs ? 0.0 : at_reference_roundoff((attune_dtype)g->dtype_out));
  double worst = 0.0;
  for (int64_t x = 0; x < at_gemm_bias_gradient_count(g); x++) {
    double sum, magnitude;
    if (inputs)
      sum = r->epilogue->sums[x], magnitude = r->epilogue->magnitudes[x];
    else
      sum_of_output(r, outputs, x, &sum, &magnitude);
    const double fraction =
        fabs(at_reference_value(vector, dtype, (size_t)x) - sum) /
        (each * magnitude + at_reference_roundoff(dtype) * fabs(sum) + at_reference_underflow(dtype));
    if (!(fraction <= worst) &&
        !(sum == 0.0 && magnitude == 0.0 && at_reference_value(vector, dtype, (size_t)x) == 0.0))
      worst = isnan(fraction) ? INFINITY : fraction;
  }
  return worst;
}
