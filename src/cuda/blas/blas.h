/* SPDX-License-Identifier: Apache-2.0
 * blas.h: a stream's cuBLAS handle in a given mode, for calls that differ from the default one. */
#ifndef AT_CUDA_BLAS_H
#define AT_CUDA_BLAS_H

#include "src/cuda/context/cuda.h"

/* The mode of strict arithmetic: partial sums stay in the accumulation type. at_cuda_blas gives the handle in this
 * mode. */
#define AT_CUDA_STRICT_MATH ((cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION))

/* The stream's handle with this math mode and at most `workspace` bytes of the stream's workspace. Borrowed; the
 * settings hold until the stream's next at_cuda_blas or at_cuda_blas_mode. */
attune_status at_cuda_blas_mode(attune_stream *stream, cublasMath_t math, size_t workspace, cublasHandle_t *out);

/* The same if the device is current and the handle is set so already, all in a few instructions; NULL: something is to
 * be done, or fails, which at_cuda_enter and at_cuda_blas_mode do. No scope is needed around a call with it, but
 * at_vendor_leave after it. */
cublasHandle_t at_cuda_blas_at_once(attune_stream *stream, cublasMath_t math, size_t workspace);

#endif
