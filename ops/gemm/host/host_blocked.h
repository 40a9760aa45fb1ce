/* SPDX-License-Identifier: Apache-2.0
 * host_blocked.h: the blocked f64 product for the library's own use, as the trusted reference of verification; and what
 * host_blocked and host_small share. */
#ifndef AT_GEMM_HOST_BLOCKED_H
#define AT_GEMM_HOST_BLOCKED_H

#include "tuning/op/tunables.h"

/* C = op(A) op(B), column-major, op(A) m x k, op(B) k x n, on up to `threads` threads. Errors: INVALID_ARGUMENT. Any
 * thread. */
attune_status at_blocked_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, bool trans_a,
                             const double *b, int64_t ldb, bool trans_b, double *c, int64_t ldc, int threads);

/* Names of the instruction sets, up to a NULL: words of the key `kernel`. */
extern const char *const at_blocked_isa_names[];
int at_blocked_isa_number(const char *name);

/* at_implementation.depends of both: the instruction sets that their kernels are made for, "avx2-yes avx512-none". */
bool at_blocked_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                        char *out, size_t size);

#endif
