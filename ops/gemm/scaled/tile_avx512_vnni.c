/* SPDX-License-Identifier: Apache-2.0
 * tile_avx512_vnni.c: tile_avx512.c with VNNI's instruction, and compiled for CPUs that have it. */
#define WITH_VNNI
#include "ops/gemm/scaled/tile_avx512.c"
