/* SPDX-License-Identifier: Apache-2.0
 * implementations.h: declares what implementations.def lists. */
#ifndef AT_GEMM_IMPLEMENTATIONS_H
#define AT_GEMM_IMPLEMENTATIONS_H

#include "tuning/op/registry.h"

#ifdef AT_WITH_CUDA
#define AT_CUDA_IMPLEMENTATION(name) extern const at_implementation name;
#else
#define AT_CUDA_IMPLEMENTATION(name)
#endif
#define AT_IMPLEMENTATION(name) extern const at_implementation name;
#include "ops/gemm/implementations.def"
#undef AT_IMPLEMENTATION
#undef AT_CUDA_IMPLEMENTATION

#endif
