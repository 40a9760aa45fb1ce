/* SPDX-License-Identifier: Apache-2.0
 * toy_reference.c: what the toy operation's results must be: the reference of verification, its special values, and the
 * oracle of the conformance tests, which shares no arithmetic with it. */
#include "tests/support/toy/toy_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the reference: the inputs on the host, the result when it is asked for ---- */

typedef struct reference {
  toy g;
  int64_t elements;
  void *inputs[TOY_Y];
} reference;

attune_status toy_reference_make(void **out, const void *problem, attune_stream *stream,
                                 void *const pointers[AT_MAX_BUFFERS]) {
  at_buffer buffers[AT_MAX_BUFFERS];
  int count = 0;
  reference *r = calloc(1, sizeof *r);
  if (!r) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a reference");
  r->g = *toy_of(problem);
  r->elements = (int64_t)r->g.rows * r->g.cols;
  attune_status status = toy_op.operands->buffers(problem, buffers, &count);
  for (int i = 0; i < TOY_Y && status == ATTUNE_OK; i++) {
    r->inputs[i] = malloc(buffers[i].bytes);
    status = r->inputs[i] ? attune_copy(stream, r->inputs[i], pointers[i], buffers[i].bytes) : ATTUNE_OUT_OF_MEMORY;
  }
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  if (status == ATTUNE_OK)
    *out = r;
  else
    toy_reference_destroy(r);
  return status;
}

void toy_reference_destroy(void *state) {
  reference *r = state;
  for (int i = 0; r && i < TOY_Y; i++) free(r->inputs[i]);
  free(r);
}

static double real_of(const toy *g, const void *data, int64_t i) {
  return g->real == ATTUNE_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static int64_t integer_of(const toy *g, const void *data, int64_t i) {
  return g->integer == ATTUNE_I64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

/* y's error at element i, for x as given, as a fraction of what is allowed. */
static double error_at(const reference *r, const double *scalars, const at_outputs *outputs, int64_t i, double x) {
  const double unit = r->g.real == ATTUNE_F64 ? 0x1p-53 : 0x1p-24,
               bias = real_of(&r->g, r->inputs[TOY_BIAS], i % r->g.cols), product = scalars[TOY_SCALE] * log(x),
               got = real_of(&r->g, outputs->bytes[TOY_Y], i);
  return fabs(got - (product + bias)) / (8.0 * unit * (fabs(product) + fabs(bias) + 1e-30));
}

static bool integers_are_right(const reference *r, const double *scalars, const at_outputs *outputs) {
  const toy *g = &r->g;
  for (int64_t i = 0; i < r->elements; i++) {
    const int64_t exact = integer_of(g, r->inputs[TOY_CODES], i) * g->taps[i % g->cols % g->count] +
                          (int64_t)scalars[TOY_OFFSET]; /* codes are small: no overflow */
    const int64_t expected = g->integer == ATTUNE_I64 ? exact : (int64_t)(int32_t)exact;
    if (integer_of(g, outputs->bytes[TOY_N], i) != expected) return false;
  }
  return true;
}

attune_status toy_reference_compare(void *state, const double *scalars, const at_outputs *outputs, double *max_error) {
  const reference *r = state;
  *max_error = integers_are_right(r, scalars, outputs) ? 0.0 : (double)INFINITY;
  for (int64_t i = 0; i < r->elements; i++) {
    const double error = error_at(r, scalars, outputs, i, real_of(&r->g, r->inputs[TOY_X], i));
    if (!(error <= *max_error)) *max_error = isnan(error) ? (double)INFINITY : error;
  }
  return ATTUNE_OK;
}

/* ---- special values: in x and scale; integers have none ---- */

enum { IN_X, IN_SCALE, SPECIAL_LAUNCHES };
enum { NAN_OF_X, INF_OF_X, NAN_OF_SCALE, OTHERS };

int toy_special_count(const void *problem) {
  (void)problem;
  return SPECIAL_LAUNCHES;
}

int toy_special_contents(const void *problem, int which, int buffer) {
  (void)problem;
  return which == IN_X && buffer == TOY_X;
}

/* Value of x there. */
static double planted(int64_t elements, int64_t i, double was) {
  return i == 0 ? (double)NAN : i == elements / 2 ? 0.0 : i == elements - 1 ? (double)INFINITY : was;
}

void toy_special_plant(const void *problem, int which, int buffer, void *bytes) {
  const toy *g = toy_of(problem);
  const int64_t elements = (int64_t)g->rows * g->cols;
  (void)which, (void)buffer;
  for (int64_t i = 0; i < elements; i++) {
    const double x = planted(elements, i, real_of(g, bytes, i));
    if (g->real == ATTUNE_F64)
      ((double *)bytes)[i] = x;
    else
      ((float *)bytes)[i] = (float)x;
  }
}

void toy_special_scalars(const void *problem, int which, double *scalars) {
  (void)problem;
  if (which == IN_SCALE) scalars[TOY_SCALE] = (double)NAN;
}

attune_status toy_special_compare(void *state, int which, const at_outputs *outputs, uint32_t *lost) {
  const reference *r = state;
  double scalars[TOY_SCALARS] = {1.0, 0.0};
  toy_special_scalars(&r->g, which, scalars);
  *lost = integers_are_right(r, scalars, outputs) ? 0 : 1u << OTHERS;
  for (int64_t i = 0; i < r->elements; i++) {
    const double was = real_of(&r->g, r->inputs[TOY_X], i), x = which == IN_X ? planted(r->elements, i, was) : was,
                 expected = scalars[TOY_SCALE] * log(x), got = real_of(&r->g, outputs->bytes[TOY_Y], i);
    if (isnan(expected))
      *lost |= isnan(got) ? 0 : 1u << (which == IN_X ? NAN_OF_X : NAN_OF_SCALE);
    else if (isinf(expected))
      *lost |= got == expected ? 0 : 1u << INF_OF_X;
    else if (!(error_at(r, scalars, outputs, i, x) <= 1.0))
      *lost |= 1u << OTHERS;
  }
  return ATTUNE_OK;
}

const char *toy_special_name(int bit) {
  static const char *const names[] = {"loses NaN of X", "loses Inf of X", "loses NaN of scale",
                                      "is outside the tolerance beside special values"};
  return bit >= 0 && bit < (int)AT_COUNT(names) ? names[bit] : NULL;
}

/* ---- conformance ---- */

static const struct { int rows, cols, taps; } SHAPES[] = {{1, 1, 1}, {1, 9, 2}, {13, 1, 27}, {9, 7, 27}, {31, 33, 5}};
enum { KINDS = 4 };

int toy_case_count(void) {
  return KINDS * (int)AT_COUNT(SHAPES) + 1;
}

/* The last one is a problem of nothing, which no implementation sees. */
bool toy_case_at(int index, void *problem) {
  const int shape = index / KINDS;
  if (index == toy_case_count() - 1) return false;
  toy g = {.rows = SHAPES[shape].rows,
           .cols = SHAPES[shape].cols,
           .count = SHAPES[shape].taps,
           .real = index & 1 ? ATTUNE_F64 : ATTUNE_F32,
           .integer = index & 2 ? ATTUNE_I64 : ATTUNE_I32,
           .deterministic = index % 3 == 0,
           .alignment = (uint8_t)(8 << index % 5)};
  for (int i = 0; i < g.count; i++) g.taps[i] = (int32_t)(2654435761u * (unsigned)(i + index));
  *(toy *)problem = g;
  return true;
}

void toy_oracle(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars) {
  const toy *g = toy_of(problem);
  const int64_t offset = (int64_t)scalars[TOY_OFFSET];
  for (int row = 0; row < g->rows; row++)
    for (int col = 0; col < g->cols; col++) {
      const int64_t i = (int64_t)row * g->cols + col;
      const long double y = (long double)scalars[TOY_SCALE] * logl((long double)real_of(g, pointers[TOY_X], i)) +
                            (long double)real_of(g, pointers[TOY_BIAS], col);
      uint64_t n = (uint64_t)offset;
      for (int bit = 0; bit < 64; bit++) /* by shifts and adds */
        if ((uint64_t)(int64_t)g->taps[col % g->count] >> bit & 1)
          n += (uint64_t)integer_of(g, pointers[TOY_CODES], i) << bit;
      if (g->real == ATTUNE_F64)
        ((double *)pointers[TOY_Y])[i] = (double)y;
      else
        ((float *)pointers[TOY_Y])[i] = (float)y;
      if (g->integer == ATTUNE_I64)
        ((int64_t *)pointers[TOY_N])[i] = (int64_t)n;
      else
        ((int32_t *)pointers[TOY_N])[i] = (int32_t)(uint32_t)n;
    }
}
