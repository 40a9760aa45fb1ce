/* SPDX-License-Identifier: Apache-2.0
 * libxsmm_library.h: LIBXSMM (1.x), found and loaded at run time as CBLAS libraries are. It compiles a kernel for each
 * shape of small products. */
#ifndef AT_GEMM_LIBXSMM_LIBRARY_H
#define AT_GEMM_LIBXSMM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <attune/device.h>

/* C = A B or C = C + A B, column-major. */
typedef void (*at_libxsmm_kernel)(const void *a, const void *b, void *c);

/* What a kernel is made for. */
typedef struct at_libxsmm_shape {
  bool f64, trans_b; /* f32 else; A is never transposed */
  bool onto;         /* adds to C */
  int64_t m, n, k, lda, ldb, ldc;
} at_libxsmm_shape;

/* Is it here? The first call loads it, which takes milliseconds; later ones cost a load. Any thread. */
bool at_libxsmm_here(void);

/* Version and instruction set of its kernels: "libxsmm-1.17-hsw"; "libxsmm-none" where it is not here. Any thread. */
const char *at_libxsmm_id(void);

/* The kernel of a shape, compiled at the first call; NULL: it has none, or the process ends. Any thread. */
at_libxsmm_kernel at_libxsmm_find(const at_libxsmm_shape *shape);

/* Around calls of kernels: a fork and the process's end wait for those inside. NULL: the process ends, and the kernels
 * are gone. Any thread. */
struct at_visitor *at_libxsmm_enter(void);
void at_libxsmm_leave(struct at_visitor *mine);

/* The library as attune_device_libraries tells it; nothing where it is not here. Any thread. */
int at_libxsmm_each(attune_library_fn fn, void *user);

#endif
