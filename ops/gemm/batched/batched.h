/* SPDX-License-Identifier: Apache-2.0
 * batched.h: calls whose matrices are where arrays of pointers say. The operands' a, b, c and d are the arrays; in `g`
 * `pointers` is where the caller's lie, and A and B have changed places where the caller is row-major. */
#ifndef AT_GEMM_BATCHED_H
#define AT_GEMM_BATCHED_H

#include "ops/gemm/problem/arrays.h"
#include "tuning/dispatch/public_call.h"

/* The rest of a call, behind its checks but for overlaps: finds a plan and launches it. */
attune_status at_gemm_call_arrays(attune_tuner *tuner, attune_stream *stream, at_key *key, const at_gemm_operands *run,
                                  bool swap);

/* Launches if D lies apart from what is read. */
attune_status at_gemm_launch_arrays(const at_plan *plan, const at_gemm *g, const at_gemm_operands *run,
                                    attune_stream *stream, bool swap);

/* Each D = beta C. */
attune_status at_gemm_scale_arrays(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run);

/* The operands of a run of a plan, that must be aligned to `least` bytes; says how C is used. */
attune_status at_gemm_check_run_arrays(attune_stream *stream, const at_gemm *g, const attune_gemm_operands *o,
                                       int least, at_gemm_use *use);

#ifdef AT_WITH_CUDA
/* cublas_batched.c: D = beta C: the vendor's product with a sum of nothing. */
attune_status at_gemm_cublas_scale_arrays(attune_stream *stream, const at_gemm *g, const at_gemm_operands *run);

/* cuda_uploaded.c: copies the arrays in host memory into the stream's workspace, behind `used` bytes that are
 * another's, in stream order, and points *run to them. A copy that is captured reads the caller's arrays again whenever
 * its graph is launched. at_gemm_upload_bytes: what the workspace must have then. */
size_t at_gemm_upload_bytes(const at_gemm *g, size_t used);
attune_status at_gemm_upload(attune_stream *stream, const at_gemm *g, size_t used, at_gemm_operands *run);
#endif

#endif
