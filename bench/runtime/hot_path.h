/* SPDX-License-Identifier: Apache-2.0
 * hot_path.h: the part of bench_hot_path that runs on a GPU. */
#ifndef BENCH_HOT_PATH_H
#define BENCH_HOT_PATH_H

#include <attune/attune.h>

/* Nothing when there is no CUDA device. */
void hot_report_cuda(void);

/* hot_path_own.c: kernels of attune's own. */
void hot_report_own(attune_device *device);

#endif
