/* SPDX-License-Identifier: Apache-2.0
 * wgmma_model.h: how long a configuration of wgmma.cuh is thought to take. */
#ifndef AT_GEMM_WGMMA_MODEL_H
#define AT_GEMM_WGMMA_MODEL_H

#include "ops/gemm/wgmma_choice.h"

/* The candidates slot of at_gemm_wgmma_family. */
int at_wgmma_candidates(const at_gemm *g, const at_gemm_machine *machine, at_configuration *out, int max, bool wide);

#endif
