/* SPDX-License-Identifier: Apache-2.0
 * inner.h: an implementation that makes its product by another one. Its configuration names that one, and the rest of
 * the text is that one's own configuration: "product=cublaslt,algo=66,...". */
#ifndef AT_GEMM_INNER_H
#define AT_GEMM_INNER_H

#include "ops/gemm/problem/problem.h"
#include "tuning/op/registry.h"

/* Implementation number i of gemm if it can make the product; NULL. */
const at_implementation *at_gemm_inner(size_t i, const at_gemm *product, attune_device *device);
bool at_gemm_inner_any(const at_gemm *product, attune_device *device);

/* "product=NAME" before each of `count` configurations; how many fit. */
int at_gemm_inner_prefix(const at_implementation *one, at_configuration *out, int count);

/* The implementation that the text names and its configuration; NULL: there is none, or it is `self`. */
const at_implementation *at_gemm_inner_read(const at_implementation *self, const at_configuration *whole,
                                            const attune_device *device, at_configuration *inner);

/* The configurations of the product, those of each implementation with its name before them, `most` of each. */
int at_gemm_inner_configurations(const at_gemm *product, attune_device *device, at_configuration *out, int max,
                                 int most);

/* The slots of at_implementation of these names, of the product that the configurations name. */
int at_gemm_inner_neighbours(const at_implementation *self, const at_gemm *product, attune_device *device,
                             const at_configuration *leader, at_configuration *out, int max);
void at_gemm_inner_prepare_many(const at_implementation *self, const at_gemm *product, attune_device *device,
                                const at_configuration *all, int count);
attune_status at_gemm_inner_compile(const at_implementation *self, const at_gemm *product, attune_device *device,
                                    const at_configuration *configuration, bool *made);

/* A plan of the product that plan->configuration names. */
attune_status at_gemm_inner_plan(at_plan **out, const at_plan *plan, const at_gemm *product);

/* The configuration that runs untuned, of the first implementation that has one. */
bool at_gemm_inner_untuned(const at_gemm *product, attune_device *device, at_configuration *out);

/* The slot of at_implementation: what the configuration's product depends on; on CUDA the compiler, too. */
bool at_gemm_inner_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                           char *out, size_t size);

#endif
