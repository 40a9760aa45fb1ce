/* SPDX-License-Identifier: Apache-2.0
 * wide_numbers.c: what the wide operation computes, and what is right. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/toy/wide_op.h"

static double factor(const wide *g, int k, int j) {
  return (double)(g->recipe[(k + 7 * j) % g->letters] % 32);
}

void wide_compute(const wide *g, const wide_operands *o) {
  for (int j = 0; j < g->outputs; j++)
    for (int32_t i = 0; i < g->elements; i++) {
      double sum = 0.0;
      for (int k = 0; k < g->inputs; k++) sum += factor(g, k, j) * o->x[k][i];
      o->y[j][i] = sum;
    }
}

/* Backwards, one input after the other: the sums of small whole numbers are exact in any order. */
void wide_oracle(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *scalars) {
  const wide *g = problem;
  (void)scalars;
  for (int j = g->outputs - 1; j >= 0; j--) {
    double *y = pointers[g->inputs + j];
    for (int32_t i = 0; i < g->elements; i++) y[i] = 0.0;
    for (int k = g->inputs - 1; k >= 0; k--)
      for (int32_t i = 0; i < g->elements; i++) y[i] += factor(g, k, j) * ((const double *)pointers[k])[i];
  }
}

/* The sums of the inputs' magnitudes, of which an error is a part: rounding differs with the order. */
typedef struct reference {
  wide *g;
  double *x[WIDE_INPUTS];
} reference;

attune_status wide_reference_create(void **out, const void *problem, attune_device *device, attune_stream *stream,
                                    void *const pointers[AT_MAX_BUFFERS]) {
  (void)device;
  const wide *g = problem;
  const size_t bytes = (size_t)g->elements * sizeof(double), size = at_problem_bytes(&wide_op, problem);
  reference *r = calloc(1, sizeof *r);
  attune_status status = ATTUNE_OUT_OF_MEMORY;
  if (r && (r->g = malloc(size))) {
    memcpy(r->g, problem, size);
    status = ATTUNE_OK;
  }
  for (int k = 0; k < g->inputs && status == ATTUNE_OK; k++) {
    r->x[k] = malloc(bytes);
    status = r->x[k] ? attune_copy(stream, r->x[k], pointers[k], bytes) : ATTUNE_OUT_OF_MEMORY;
  }
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  if (status == ATTUNE_OK)
    *out = r;
  else
    wide_reference_destroy(r);
  return status;
}

attune_status wide_reference_compare(void *state, const double *scalars, const at_outputs *outputs, double *max_error) {
  const reference *r = state;
  (void)scalars;
  *max_error = 0.0;
  for (int j = 0; j < r->g->outputs; j++)
    for (int32_t i = 0; i < r->g->elements; i++) {
      double sum = 0.0, size = 1e-300;
      for (int k = 0; k < r->g->inputs; k++) {
        const double term = factor(r->g, k, j) * r->x[k][i];
        sum += term;
        size += fabs(term);
      }
      const double error = fabs(((const double *)outputs->bytes[r->g->inputs + j])[i] - sum) / (size * 0x1p-46);
      if (!(error <= *max_error)) *max_error = isnan(error) ? (double)INFINITY : error;
    }
  return ATTUNE_OK;
}

void wide_reference_destroy(void *state) {
  reference *r = state;
  for (int k = 0; r && k < WIDE_INPUTS; k++) free(r->x[k]);
  if (r) free(r->g);
  free(r);
}
