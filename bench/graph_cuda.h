/* SPDX-License-Identifier: Apache-2.0
 * graph_cuda.h: the part of bench_graph that runs on a GPU. */
#ifndef BENCH_GRAPH_CUDA_H
#define BENCH_GRAPH_CUDA_H

#include <stdbool.h>

/* Nothing when there is no CUDA device. Returns whether the goal was met. */
bool graph_report_cuda(void);

#endif
