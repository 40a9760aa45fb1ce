/* SPDX-License-Identifier: Apache-2.0
 * sm90_tma_maps.h: where the tensor copies of sm90_wgmma_16b.cuh find A and B: as they lie, or, where they cannot take
 * these, padded copies in the workspace. */
#ifndef AT_GEMM_SM90_TMA_MAPS_H
#define AT_GEMM_SM90_TMA_MAPS_H

#include "ops/gemm/kernels/kernel.h"

enum { AT_WGMMA_PAD_THREADS = 256, AT_WGMMA_PIECES = 1024 /* that a block of sm90_wgmma_16b_pad.cuh copies */ };

/* A matrix (`b`: B, else A) as tensor copies find it, in boxes of 64 x box_lines. */
at_tensor_shape at_wgmma_tensor(const at_gemm *g, bool b, int box_lines);

/* Whether it is a copy in the workspace; the bytes that this takes there, a multiple of 256; blocks that make it. */
bool at_wgmma_pads(const at_gemm *g, bool b);
int64_t at_wgmma_padded_bytes(const at_gemm *g, bool b);
int64_t at_wgmma_pad_blocks(const at_gemm *g, bool b);

/* Whether tensor copies can reach both, and where one is copied first this may pay and there is room for it. */
bool at_wgmma_reaches(const at_gemm *g);

#endif
