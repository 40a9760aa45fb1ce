/* SPDX-License-Identifier: Apache-2.0
 * cblas_direct.h: CBLAS as a program calls it by itself: matrix times vector by gemv, and calls with nothing of
 * attune around them, which is what attune's own time is compared with. */
#ifndef AT_GEMM_CBLAS_DIRECT_H
#define AT_GEMM_CBLAS_DIRECT_H

#include "ops/gemm/host/cblas/cblas_library.h"
#include "ops/gemm/problem/problem.h"

struct attune_plan;

/* Has the problem one row or column, so that a program would call gemv, and does the library have it? */
bool at_cblas_can_gemv(const at_cblas *library, const at_gemm *g);

/* The problem as a program calls the library, matrix after matrix; by gemv where it can. */
void at_cblas_call(const at_cblas *library, const at_gemm *g, const at_gemm_operands *o, bool gemv);

/* The slots at_implementation.bare, bare_name and bare_threads of host_cblas. */
attune_status at_cblas_direct(const struct attune_plan *plan, const at_bare_calls *calls);
void at_cblas_direct_name(const struct attune_plan *plan, char *out, size_t size);
int at_cblas_direct_threads(const struct attune_plan *plan);

/* trans of at_gemm as CBLAS has it: no transpose 111, transpose 112, conjugate transpose 113. */
_Static_assert(ATTUNE_N == 0 && ATTUNE_T == 1 && ATTUNE_C == 2, "in CBLAS's order");
static inline int at_cblas_trans(int trans) {
  return 111 + trans;
}

#endif
