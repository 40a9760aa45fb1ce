/* SPDX-License-Identifier: Apache-2.0
 * peers_cuda.h: the peers of bench_gemm on CUDA, each a way of the platform. */
#ifndef BENCH_PEERS_CUDA_H
#define BENCH_PEERS_CUDA_H

#include <cublas_v2.h>

#include "bench/gemm/gemm.h"

typedef struct bench_cuda_peers bench_cuda_peers;

/* Adds the peers' ways, on the platform's stream. They have the workspace that attune's contract allows, and the same
 * math mode. */
void bench_cuda_peers_open(bench_cuda_peers **out, bench_platform *platform);
/* After the last call of their ways, before the platform's stream is destroyed. */
void bench_cuda_peers_close(bench_cuda_peers *peers, attune_stream *stream);

/* peer_gemv.c: is it a matrix-vector product that cuBLAS has a call for? And that call. */
bool bench_gemv_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                        const bench_set *example);
cublasStatus_t bench_gemv(cublasHandle_t handle, const attune_gemm_problem *g, const bench_set *set);

#endif
