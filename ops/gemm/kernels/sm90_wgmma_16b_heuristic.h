/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_16b_heuristic.h: how long a configuration of sm90_wgmma_16b.cuh is thought to take. */
#ifndef AT_GEMM_SM90_WGMMA_16B_HEURISTIC_H
#define AT_GEMM_SM90_WGMMA_16B_HEURISTIC_H

#include "ops/gemm/kernels/sm90_wgmma_16b_config.h"

/* The candidates slot of at_gemm_sm90_wgmma_16b_family. */
int at_wgmma_candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide);

#endif
