/* SPDX-License-Identifier: Apache-2.0
 * implementations.h: the list `implementations` of an operation, from the file that AT_IMPLEMENTATIONS names: one
 * AT_IMPLEMENTATION(table), or of CUDA AT_CUDA_IMPLEMENTATION(table), a line. For the file with the at_op alone. */
#include "tuning/op/registry.h"

#ifdef AT_WITH_CUDA
#define AT_CUDA_IMPLEMENTATION(name) AT_IMPLEMENTATION(name)
#else
#define AT_CUDA_IMPLEMENTATION(name)
#endif

#define AT_IMPLEMENTATION(name) extern const at_implementation name;
#include AT_IMPLEMENTATIONS
#undef AT_IMPLEMENTATION

#define AT_IMPLEMENTATION(name) &name,
static const at_implementation *const implementations[] = {
#include AT_IMPLEMENTATIONS
};
#undef AT_IMPLEMENTATION
#undef AT_CUDA_IMPLEMENTATION
