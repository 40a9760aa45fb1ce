/* SPDX-License-Identifier: Apache-2.0
 * pass_template.h: an epilogue's loops over a piece of a column, for one instruction set: PASS(name). They become
 * vectors; a piece lies in the first cache from its first loop to its last. */
#include <math.h>
#include <string.h>

#include "ops/elementwise/host/vmath/vmath_activation32.h"
#include "ops/elementwise/host/vmath/vmath_activation64.h"
#include "ops/elementwise/host/vmath/vmath_erf64.h"
#include "ops/elementwise/host/vmath/vmath_trig32.h"
#include "ops/elementwise/host/vmath/vmath_trig64.h"

#include "ops/gemm/epilogue/pass.h"

#define ROOT_2_PI 0.79788456080286535588 /* sqrt(2 / pi) */
#define ROOT_HALF 0.70710678118654752440
#define ROOT_2PI_INVERSE 0.39894228040143267794
#define CUBE 0.044715
#define FLAT_FROM 16.0 /* from here on tanh(ROOT_2_PI (x + CUBE x^3)) is 1, and x^3 is far from overflow */

#ifndef __FMA__ /* vmath's of f64 want it */
static inline double exp64(double x) {
  return exp(x);
}
static inline double erf64(double x) {
  return erf(x);
}
static inline double tanh64(double x) {
  return tanh(x);
}
static inline double sigmoid64(double x) {
  return 1.0 / (1.0 + exp(-x));
}
static inline double silu64(double x) {
  return x / (1.0 + exp(-x));
}
static inline double gelu64(double x) {
  return 0.5 * x * erfc(-x * ROOT_HALF);
}
static inline double gelu_tanh64(double x) {
  return x / (1.0 + exp(-2.0 * ROOT_2_PI * (x + CUBE * x * x * x)));
}
#endif

/* Derivatives of the activations; the functions are vmath's. */
#define DERIVATIVES(REAL, SUFFIX, EXP, ERF, TANH, SIGMOID)                                                    \
  static inline REAL derivative_gelu_tanh##SUFFIX(REAL aux) {                                                 \
    const REAL most = (REAL)FLAT_FROM, x = aux > most ? most : aux < -most ? -most : aux;                     \
    const REAL t = TANH((REAL)ROOT_2_PI * (x + (REAL)CUBE * x * x * x));                                      \
    const REAL slope = (REAL)ROOT_2_PI * (1 + 3 * (REAL)CUBE * x * x);                                        \
    return (REAL)0.5 * (1 + t) + (REAL)0.5 * x * (1 - t * t) * slope;                                         \
  }                                                                                                           \
  static inline REAL derivative_gelu##SUFFIX(REAL x) {                                                        \
    return (REAL)0.5 * (1 + ERF(x * (REAL)ROOT_HALF)) + x * (REAL)ROOT_2PI_INVERSE * EXP((REAL)-0.5 * x * x); \
  }                                                                                                           \
  static inline REAL derivative_silu##SUFFIX(REAL x) {                                                        \
    const REAL s = SIGMOID(x);                                                                                \
    return s * (1 + x * (1 - s));                                                                             \
  }                                                                                                           \
  static inline REAL derivative_sigmoid##SUFFIX(REAL x) {                                                     \
    const REAL s = SIGMOID(x);                                                                                \
    return s * (1 - s);                                                                                       \
  }                                                                                                           \
  static inline REAL derivative_tanh##SUFFIX(REAL x) {                                                        \
    const REAL t = TANH(x);                                                                                   \
    return 1 - t * t;                                                                                         \
  }
DERIVATIVES(float, 32, exp32, erf32, tanh32, sigmoid32)
DERIVATIVES(double, 64, exp64, erf64, tanh64, sigmoid64)
#undef DERIVATIVES

/* rows elements of a type from `data` on, wide. */
#define LOAD(REAL, OUT, DATA, AT, DTYPE)                                                                      \
  switch (DTYPE) {                                                                                            \
  case ATTUNE_F64:                                                                                            \
    for (int64_t r = 0; r < rows; r++) (OUT)[r] = (REAL)((const double *)(DATA))[(AT) + r];                   \
    break;                                                                                                    \
  case ATTUNE_F32:                                                                                            \
    for (int64_t r = 0; r < rows; r++) (OUT)[r] = (REAL)((const float *)(DATA))[(AT) + r];                    \
    break;                                                                                                    \
  case ATTUNE_F16:                                                                                            \
    for (int64_t r = 0; r < rows; r++) (OUT)[r] = (REAL)at_f16_to_f32(((const uint16_t *)(DATA))[(AT) + r]);  \
    break;                                                                                                    \
  default:                                                                                                    \
    for (int64_t r = 0; r < rows; r++) (OUT)[r] = (REAL)at_bf16_to_f32(((const uint16_t *)(DATA))[(AT) + r]); \
  }
#define STORE(X, DATA, AT, DTYPE)                                                                      \
  switch (DTYPE) {                                                                                     \
  case ATTUNE_F64:                                                                                     \
    for (int64_t r = 0; r < rows; r++) ((double *)(DATA))[(AT) + r] = (double)(X)[r];                  \
    break;                                                                                             \
  case ATTUNE_F32:                                                                                     \
    for (int64_t r = 0; r < rows; r++) ((float *)(DATA))[(AT) + r] = (float)(X)[r];                    \
    break;                                                                                             \
  case ATTUNE_F16:                                                                                     \
    for (int64_t r = 0; r < rows; r++) ((uint16_t *)(DATA))[(AT) + r] = at_f32_to_f16((float)(X)[r]);  \
    break;                                                                                             \
  default:                                                                                             \
    for (int64_t r = 0; r < rows; r++) ((uint16_t *)(DATA))[(AT) + r] = at_f32_to_bf16((float)(X)[r]); \
  }

/* A bit for each row, where z is above 0. */
#define PUT_MASK(REAL, Z)                                                                                \
  for (int64_t r = 0; r < rows; r += 8) {                                                                \
    unsigned bits = 0;                                                                                   \
    for (int64_t bit = 0; bit < 8 && r + bit < rows; bit++) bits |= (unsigned)((Z)[r + bit] > 0) << bit; \
    uint8_t *to = (uint8_t *)o->aux + (at_aux + r) / 8;                                                  \
    const unsigned kept = rows - r < 8 ? 0xffu << (rows - r) & 0xffu : 0u;                               \
    *to = (uint8_t)((*to & kept) | bits);                                                                \
  }

/* The bias of `rows` elements from (ROW, COLUMN) of the product on is added to Z. */
#define ADD_BIAS(REAL, Z, ROW, COLUMN)                                                                          \
  if (e.bias == ATTUNE_BIAS_M) {                                                                                \
    LOAD(REAL, other, o->bias, ROW, e.bias_dtype)                                                               \
    EACH((Z)[r] += other[r];)                                                                                   \
  }                                                                                                             \
  if (e.bias == ATTUNE_BIAS_N) {                                                                                \
    const int64_t column = COLUMN;                                                                              \
    const REAL bias = e.bias_dtype == ATTUNE_F64   ? (REAL)((const double *)o->bias)[column]                    \
                      : e.bias_dtype == ATTUNE_F32 ? (REAL)((const float *)o->bias)[column]                     \
                      : e.bias_dtype == ATTUNE_F16 ? (REAL)at_f16_to_f32(((const uint16_t *)o->bias)[column])   \
                                                   : (REAL)at_bf16_to_f32(((const uint16_t *)o->bias)[column]); \
    EACH((Z)[r] += bias;)                                                                                       \
  }

#define EACH(BODY) \
  for (int64_t r = 0; r < rows; r++) BODY

#define CHUNK(REAL, SUFFIX)                                                                                       \
  static void chunk##SUFFIX(const at_pass_piece *piece) {                                                         \
    const at_gemm *g = piece->g;                                                                                  \
    const at_gemm_operands *o = piece->o;                                                                         \
    const attune_gemm_epilogue e = g->epilogue;                                                                   \
    const int64_t rows = piece->rows;                                                                             \
    const int64_t at_d = g->stride_d * piece->batch + g->ldd * piece->column + piece->row;                        \
    const int64_t at_aux = g->stride_aux * piece->batch + g->ld_aux * piece->column + piece->row;                 \
    const at_pass_input from = piece->from;                                                                       \
    const int64_t at_z = from.stride * piece->batch + piece->row;                                                 \
    REAL z[AT_PASS_ROWS] = {0}, other[AT_PASS_ROWS];                                                              \
    if (from.z) LOAD(REAL, z, from.z, at_z + from.ld * piece->column, g->dtype_out)                               \
    ADD_BIAS(REAL, z, piece->row, piece->column)                                                                  \
    if (at_gemm_writes_aux(g) && e.aux == ATTUNE_AUX_INPUT) STORE(z, o->aux, at_aux, g->dtype_out)                \
    if (at_gemm_writes_aux(g) && e.aux == ATTUNE_AUX_RELU_MASK) PUT_MASK(REAL, z)                                 \
    if (e.gradient && e.aux == ATTUNE_AUX_RELU_MASK) {                                                            \
      const uint8_t *bits = o->aux;                                                                               \
      EACH(z[r] = bits[(at_aux + r) / 8] >> (at_aux + r) % 8 & 1 ? z[r] : 0;)                                     \
    } else if (e.gradient) {                                                                                      \
      LOAD(REAL, other, o->aux, at_aux, g->dtype_out)                                                             \
      switch (e.activation) {                                                                                     \
      case ATTUNE_ACTIVATION_RELU: EACH(z[r] = other[r] <= 0 ? 0 : z[r];) break;                                  \
      case ATTUNE_ACTIVATION_GELU_TANH: EACH(z[r] *= derivative_gelu_tanh##SUFFIX(other[r]);) break;              \
      case ATTUNE_ACTIVATION_GELU: EACH(z[r] *= derivative_gelu##SUFFIX(other[r]);) break;                        \
      case ATTUNE_ACTIVATION_SILU: EACH(z[r] *= derivative_silu##SUFFIX(other[r]);) break;                        \
      case ATTUNE_ACTIVATION_SIGMOID: EACH(z[r] *= derivative_sigmoid##SUFFIX(other[r]);) break;                  \
      default: EACH(z[r] *= derivative_tanh##SUFFIX(other[r]);) break;                                            \
      }                                                                                                           \
    } else {                                                                                                      \
      switch (e.activation) {                                                                                     \
      case ATTUNE_ACTIVATION_RELU: EACH(z[r] = z[r] <= 0 ? 0 : z[r];) break;                                      \
      case ATTUNE_ACTIVATION_GELU_TANH: EACH(z[r] = gelu_tanh##SUFFIX(z[r]);) break;                              \
      case ATTUNE_ACTIVATION_GELU: EACH(z[r] = gelu##SUFFIX(z[r]);) break;                                        \
      case ATTUNE_ACTIVATION_SILU: EACH(z[r] = silu##SUFFIX(z[r]);) break;                                        \
      case ATTUNE_ACTIVATION_SIGMOID: EACH(z[r] = sigmoid##SUFFIX(z[r]);) break;                                  \
      case ATTUNE_ACTIVATION_TANH: EACH(z[r] = tanh##SUFFIX(z[r]);) break;                                        \
      default: break;                                                                                             \
      }                                                                                                           \
    }                                                                                                             \
    if (g->gated) {                                                                                               \
      const at_gemm_place half = at_gemm_second_half(g, 0, 0);                                                    \
      REAL up[AT_PASS_ROWS] = {0};                                                                                \
      if (from.z) LOAD(REAL, up, from.z, at_z + half.row + from.ld * (piece->column + half.column), g->dtype_out) \
      ADD_BIAS(REAL, up, piece->row + half.row, piece->column + half.column)                                      \
      EACH(z[r] *= up[r];)                                                                                        \
    }                                                                                                             \
    if (e.residual) {                                                                                             \
      const int64_t at = g->stride_residual * piece->batch + g->ld_residual * piece->column + piece->row;         \
      LOAD(REAL, other, o->residual, at, g->dtype_out)                                                            \
      EACH(z[r] += other[r];)                                                                                     \
    }                                                                                                             \
    if (e.clamp) {                                                                                                \
      const REAL low = (REAL)o->clamp_min, high = (REAL)o->clamp_max;                                             \
      EACH(z[r] = z[r] < low ? low : z[r];)                                                                       \
      EACH(z[r] = z[r] > high ? high : z[r];)                                                                     \
    }                                                                                                             \
    if (g->scaling.scale_d) {                                                                                     \
      const REAL scale = (REAL)*o->scale_d;                                                                       \
      EACH(z[r] *= scale;)                                                                                        \
    }                                                                                                             \
    STORE(z, o->d, at_d, g->dtype_out)                                                                            \
  }
CHUNK(float, 32)
CHUNK(double, 64)

void PASS(const at_pass_piece *piece) {
  if (piece->g->dtype == ATTUNE_F64)
    chunk64(piece);
  else
    chunk32(piece);
}
