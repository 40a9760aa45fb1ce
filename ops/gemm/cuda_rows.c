/* SPDX-License-Identifier: Apache-2.0
 * cuda_rows.c: the implementation rows: the kernels of rows.c. */
#include "ops/gemm/kernel.h"

#define VERSION 1

static bool supports(const void *problem, attune_device *device) {
  const at_gemm_machine machine = at_gemm_machine_of(device);
  return at_gemm_rows_family.supports(at_gemm_of(problem), &machine);
}

static int configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  const at_gemm_machine machine = at_gemm_machine_of(device);
  return at_gemm_rows_family.candidates(at_gemm_of(problem), &machine, out, max, false);
}

static attune_status prepare(at_plan *plan) {
  return at_gemm_kernel_prepare(plan, &at_gemm_rows_family);
}

static void prepare_many(const void *problem, attune_device *device, const at_configuration *list, int count) {
  at_gemm_kernel_prepare_many(&at_gemm_rows_family, problem, device, list, count);
}

static attune_status compile(const void *problem, attune_device *device, const at_configuration *configuration,
                             bool *made) {
  return at_gemm_kernel_compile(&at_gemm_rows_family, problem, device, configuration, made);
}

static bool depends(const at_configuration *configuration, attune_device *device, char *out, size_t size) {
  (void)configuration, (void)device;
  return at_jit_depends(out, size);
}

const at_implementation at_gemm_rows = {
    .name = "rows",
    .version = VERSION,
    .backend = "cuda",
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .prepare_many = prepare_many,
    .compile = compile,
    .launch = at_gemm_kernel_launch,
    .destroy = at_gemm_kernel_destroy,
    .depends = depends,
};
