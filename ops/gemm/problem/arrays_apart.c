/* SPDX-License-Identifier: Apache-2.0
 * arrays_apart.c: does a matrix of D lie in another one, or in what is read, where arrays say where they are? The
 * addresses of D are sorted; each matrix is compared with those nearest to it. */
#include <stdlib.h>

#include "ops/gemm/problem/arrays.h"
#include "src/host/host.h"
#include "tuning/op/extent.h"

enum { NEAREST = 8 };

/* Matrices of one size, the first of them at 0. */
static at_extent shape_of(int64_t rows, int64_t columns, int64_t ld, unsigned dtype) {
  const int64_t size = (int64_t)attune_dtype_size((attune_dtype)dtype);
  at_extent e = {.high = (uintptr_t)(rows * size), .element = rows * size};
  at_extent_add(&e, columns, ld * size);
  return e;
}

static bool meet(at_extent x, uintptr_t at_x, at_extent y, uintptr_t at_y) {
  x.low += at_x, x.high += at_x;
  y.low += at_y, y.high += at_y;
  return at_extents_meet(&x, &y);
}

static int ascending(const void *x, const void *y) {
  const uintptr_t a = *(const uintptr_t *)x, b = *(const uintptr_t *)y;
  return (a > b) - (a < b);
}

typedef struct outputs {
  const uintptr_t *at; /* ascending */
  int64_t count;
  at_extent shape;
  void *const *given; /* as the caller has them */
} outputs;

static attune_status sort_outputs(outputs *d) {
  uintptr_t *at = at_host_scratch((size_t)d->count * sizeof *at);
  bool sorted = true;
  if (!at) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to sort %lld pointers", (long long)d->count);
  memcpy(at, d->given, (size_t)d->count * sizeof *at);
  for (int64_t i = 1; i < d->count; i++) sorted = sorted && at[i - 1] <= at[i];
  if (!sorted) qsort(at, (size_t)d->count, sizeof *at, ascending);
  d->at = at;
  return ATTUNE_OK;
}

/* Where the caller's array has it, behind number `after`. */
static int64_t index_of(const outputs *d, uintptr_t address, int64_t after) {
  int64_t i = after + 1;
  while (i < d->count && (uintptr_t)d->given[i] != address) i++;
  return i;
}

static attune_status check_outputs(const outputs *d) {
  for (int64_t i = 0; i < d->count; i++)
    for (int64_t j = i + 1; j < d->count && j <= i + NEAREST && d->at[j] - d->at[i] < d->shape.high; j++)
      if (meet(d->shape, d->at[i], d->shape, d->at[j])) {
        const int64_t first = index_of(d, d->at[i], -1),
                      other = index_of(d, d->at[j], d->at[i] == d->at[j] ? first : -1);
        return AT_INVALID("operands.d[%lld] overlaps operands.d[%lld]; should be disjoint",
                          (long long)(first < other ? first : other), (long long)(first < other ? other : first));
      }
  return ATTUNE_OK;
}

/* How many of D start below the address. */
static int64_t below(const outputs *d, uintptr_t address) {
  int64_t from = 0, to = d->count;
  while (from < to) {
    const int64_t middle = from + (to - from) / 2;
    if (d->at[middle] < address)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

/* Do the addresses from the first to the last byte of all of them have none in common with those of D? */
static bool all_apart(const outputs *d, const void *const *x, uintptr_t bytes) {
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (int64_t i = 0; i < d->count; i++) {
    const uintptr_t at = (uintptr_t)x[i];
    low = at < low ? at : low;
    high = at > high ? at : high;
  }
  return high + bytes <= d->at[0] || low >= d->at[d->count - 1] + d->shape.high;
}

/* C and D share a matrix, and not the others. */
static attune_status fail_partly_in_place(const outputs *d, const void *const *c, int64_t shared) {
  int64_t other = 0;
  while ((uintptr_t)c[other] == (uintptr_t)d->given[other]) other++;
  return AT_INVALID("operands.c[%lld] is not operands.d[%lld], but operands.c[%lld] is operands.d[%lld]; should be so "
                    "for all of the batch, or for none",
                    (long long)other, (long long)other, (long long)shared, (long long)shared);
}

static attune_status check_inputs(const outputs *d, const void *pointers, at_extent shape, char name) {
  const void *const *x = pointers;
  if (all_apart(d, x, shape.high)) return ATTUNE_OK;
  for (int64_t i = 0; i < d->count; i++) {
    const uintptr_t at = (uintptr_t)x[i];
    const int64_t end = below(d, at + shape.high);
    for (int64_t j = end - 1; j >= 0 && j >= end - NEAREST && d->at[j] + d->shape.high > at; j--)
      if (meet(d->shape, d->at[j], shape, at)) {
        if (name == 'c' && (uintptr_t)d->given[i] == at) return fail_partly_in_place(d, x, i);
        return AT_INVALID("operands.d[%lld] overlaps operands.%c[%lld]; should be disjoint%s",
                          (long long)index_of(d, d->at[j], -1), name, (long long)i,
                          name == 'c' ? ", or D be C itself" : "");
      }
  }
  return ATTUNE_OK;
}

attune_status at_gemm_check_arrays_apart(const at_gemm *g, const at_gemm_operands *o, bool products, bool swap) {
  outputs d = {.count = g->batch, .shape = shape_of(g->m, g->n, g->ldd, g->dtype_out), .given = o->d};
  AT_TRY(sort_outputs(&d));
  AT_TRY(check_outputs(&d));
  if (g->c == AT_C_SEPARATE) AT_TRY(check_inputs(&d, o->c, shape_of(g->m, g->n, g->ldc, g->dtype_out), 'c'));
  if (!products) return ATTUNE_OK;
  const at_extent a = shape_of(at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->dtype),
                  b = shape_of(at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->dtype);
  AT_TRY(check_inputs(&d, o->a, a, swap ? 'b' : 'a'));
  return check_inputs(&d, o->b, b, swap ? 'a' : 'b');
}
