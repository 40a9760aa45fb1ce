/* SPDX-License-Identifier: Apache-2.0
 * toolkit.h: the libraries of the CUDA toolkit, opened when a CUDA device first needs them: nothing is linked with
 * them, so a program costs the same as one of the host alone until then, and starts where none is installed. The copy
 * that the program has loaded is the one that is used, whatever folder it comes from and however it was loaded. */
#ifndef AT_CUDA_TOOLKIT_H
#define AT_CUDA_TOOLKIT_H

#include <attune/device.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <nvrtc.h>

#include "src/process/library.h"

/* Products of halves with a vector, which the vendor's header declares for C++ only. */
#define AT_HALF_GEMV(NAME)                                                                                             \
  cublasStatus_t cublas##NAME##gemvStridedBatched_64(                                                                  \
      cublasHandle_t, cublasOperation_t, int64_t m, int64_t n, const float *alpha, const void *a, int64_t lda,         \
      long long stride_a, const void *x, int64_t inc_x, long long stride_x, const float *beta, void *y, int64_t inc_y, \
      long long stride_y, int64_t batch);                                                                              \
  cublasStatus_t cublas##NAME##gemvBatched_64(                                                                         \
      cublasHandle_t, cublasOperation_t, int64_t m, int64_t n, const float *alpha, const void *const a[], int64_t lda, \
      const void *const x[], int64_t inc_x, const float *beta, void *const y[], int64_t inc_y, int64_t batch);
AT_HALF_GEMV(HSH) /* f16, results in f16 */
AT_HALF_GEMV(HSS) /* in f32 */
AT_HALF_GEMV(TST) /* bf16, results in bf16 */
AT_HALF_GEMV(TSS) /* in f32 */
#undef AT_HALF_GEMV

/* The functions that attune calls, by the vendor's names: at_cublas.cublasLtMatmul(...). Filled by at_cublas_open. */
typedef struct at_cublas_functions {
#define AT_CUBLAS(name) __typeof__(&name) name;
#include "src/cuda/library/cublas_functions.def"
} at_cublas_functions;
extern at_cublas_functions at_cublas;

typedef struct at_nvrtc_functions {
#define AT_NVRTC(name) __typeof__(&name) name;
#include "src/cuda/library/nvrtc_functions.def"
} at_nvrtc_functions;
extern at_nvrtc_functions at_nvrtc;

/* Open the library and fill its functions; the first call opens, later ones only say how that went. UNSUPPORTED: it is
 * not here, of a version that attune does not know, or incomplete; the message says which and what to do. cuBLASLt is
 * the one that cuBLAS itself calls. Any thread; allowed in capture. */
attune_status at_cublas_open(void);
attune_status at_nvrtc_open(void);

/* The libraries as attune_device_libraries tells them; opens them. The last return value of `fn`. */
int at_cublas_each(attune_library_fn fn, void *user);
int at_nvrtc_each(attune_library_fn fn, void *user);

/* Their versions, "13.1.0", "130100" and "13.0"; "none" where the library is not here. They open it. */
const char *at_cublas_version(void);
const char *at_cublaslt_version(void);
const char *at_nvrtc_version(void);

/* toolkit.c: a library of the toolkit. */
typedef struct at_toolkit_library {
  const char *title;               /* "cuBLAS" */
  const char *stem;                /* "libcublas" */
  const char *packages;            /* what to install, for the message */
  bool (*named)(const char *file); /* a copy that the program may have loaded */
  int built_major;                 /* of the headers: looked for first */
} at_toolkit_library;

/* The copy that is loaded, else the first that is found. False: there is none; `why` says so. */
bool at_toolkit_open(at_library *out, const at_toolkit_library *wanted, char *why, size_t size);

/* True when attune knows this version: 12.4 to 13. Else `why` says so. */
bool at_toolkit_knows(const at_toolkit_library *wanted, const at_library *found, int major, int minor, char *why,
                      size_t size);

#endif
