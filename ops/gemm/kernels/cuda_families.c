/* SPDX-License-Identifier: Apache-2.0
 * cuda_families.c: the implementations whose kernels are attune's own, one for each family of kernel.h. */
#include "ops/gemm/kernels/kernel.h"

static bool depends(const at_configuration *configuration, attune_device *device, char *out, size_t size) {
  (void)configuration, (void)device;
  return at_jit_depends(out, size);
}

/* at_gemm_NAME, an at_implementation of at_gemm_NAME_family. NUMBER is its version: a higher one where stored times or
 * configurations hold no longer. */
#define FAMILY(NAME, NUMBER)                                                                                     \
  static bool NAME##_supports(const void *problem, attune_device *device) {                                      \
    const at_gemm_machine machine = at_gemm_machine_of(device);                                                  \
    return at_gemm_##NAME##_family.supports(at_gemm_of(problem), &machine);                                      \
  }                                                                                                              \
  static int NAME##_configurations(const void *problem, attune_device *device, at_configuration *out, int max) { \
    const at_gemm_machine machine = at_gemm_machine_of(device);                                                  \
    return at_gemm_##NAME##_family.candidates(at_gemm_of(problem), &machine, out, max, false);                   \
  }                                                                                                              \
  static attune_status NAME##_prepare(at_plan *plan) {                                                           \
    return at_gemm_kernel_prepare(plan, &at_gemm_##NAME##_family);                                               \
  }                                                                                                              \
  static void NAME##_prepare_many(const void *problem, attune_device *device, const at_configuration *list,      \
                                  int count) {                                                                   \
    at_gemm_kernel_prepare_many(&at_gemm_##NAME##_family, problem, device, list, count);                         \
  }                                                                                                              \
  static attune_status NAME##_compile(const void *problem, attune_device *device,                                \
                                      const at_configuration *configuration, bool *made) {                       \
    return at_gemm_kernel_compile(&at_gemm_##NAME##_family, problem, device, configuration, made);               \
  }                                                                                                              \
  const at_implementation at_gemm_##NAME = {                                                                     \
      .name = #NAME,                                                                                             \
      .version = NUMBER,                                                                                         \
      .backend = "cuda",                                                                                         \
      .supports = NAME##_supports,                                                                               \
      .configurations = NAME##_configurations,                                                                   \
      .prepare = NAME##_prepare,                                                                                 \
      .prepare_many = NAME##_prepare_many,                                                                       \
      .compile = NAME##_compile,                                                                                 \
      .launch = at_gemm_kernel_launch,                                                                           \
      .destroy = at_gemm_kernel_destroy,                                                                         \
      .depends = depends,                                                                                        \
  };

FAMILY(sm80_batched_smem, 2)
FAMILY(sm80_batched_reg_16b, 1)
FAMILY(sm80_skinny_mmajor, 2)
FAMILY(sm80_skinny_reg, 2)
FAMILY(sm90_skinny_ring_16b, 1)
FAMILY(sm80_mma, 1)
FAMILY(sm90_wgmma_bf16x6, 1)
FAMILY(sm90_wgmma_16b, 3)
FAMILY(sm80_simt_f32, 2)
