/* SPDX-License-Identifier: Apache-2.0
 * cuda_uploaded.c: a batch that arrays of pointers in host memory name, on CUDA: the arrays are copied to the device
 * in stream order, then any implementation for arrays there (inner.h) makes the product: "product=cublas_batched". */
#include <attune/memory.h>

#include "ops/gemm/batched/batched.h"
#include "ops/gemm/inner.h"
#include "src/cuda/context/cuda.h"

enum { MOST_OF_ONE = 24 }; /* configurations of one implementation that a search tries */

/* ---- copies of the arrays ---- */

static int array_count(const at_gemm *g) {
  return g->c == AT_C_SEPARATE ? 4 : 3;
}

static size_t start_of(size_t used) {
  return (used + 255) / 256 * 256;
}

size_t at_gemm_upload_bytes(const at_gemm *g, size_t used) {
  return start_of(used) + (size_t)array_count(g) * (size_t)g->batch * sizeof(void *);
}

attune_status at_gemm_upload(attune_stream *stream, const at_gemm *g, size_t used, at_gemm_operands *run) {
  const size_t bytes = (size_t)g->batch * sizeof(void *);
  const void **const arrays[] = {&run->a, &run->b, (const void **)&run->d, &run->c};
  at_cuda_scope scope;
  void *workspace = NULL;
  AT_TRY(at_cuda_enter(&scope, stream->device));
  attune_status status = at_cuda_workspace(stream, at_gemm_upload_bytes(g, used), &workspace);
  for (int i = 0; i < array_count(g) && status == ATTUNE_OK; i++) {
    char *to = (char *)workspace + start_of(used) + (size_t)i * bytes;
    if (*arrays[i]) status = attune_copy(stream, to, *arrays[i], bytes);
    *arrays[i] = to;
  }
  if (g->c == AT_C_INPLACE) run->c = run->d;
  at_cuda_leave(&scope);
  return status;
}

/* ---- the implementation ---- */

static at_gemm on_device(const void *problem) {
  at_gemm g = *at_gemm_of(problem);
  g.pointers = ATTUNE_POINTERS_DEVICE;
  return g;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  const at_gemm product = on_device(problem);
  (void)self;
  return at_gemm_of(problem)->pointers == ATTUNE_POINTERS_HOST && at_gemm_inner_any(&product, device);
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  const at_gemm product = on_device(problem);
  (void)self;
  return at_gemm_inner_configurations(&product, device, out, max, MOST_OF_ONE);
}

static int neighbours(const at_implementation *self, const void *problem, attune_device *device,
                      const at_configuration *leader, at_configuration *out, int max) {
  const at_gemm product = on_device(problem);
  return at_gemm_inner_neighbours(self, &product, device, leader, out, max);
}

static void prepare_many(const at_implementation *self, const void *problem, attune_device *device,
                         const at_configuration *all, int count) {
  const at_gemm product = on_device(problem);
  at_gemm_inner_prepare_many(self, &product, device, all, count);
}

static attune_status compile(const at_implementation *self, const void *problem, attune_device *device,
                             const at_configuration *configuration, bool *made) {
  const at_gemm product = on_device(problem);
  return at_gemm_inner_compile(self, &product, device, configuration, made);
}

static attune_status prepare(at_plan *plan) {
  const at_gemm product = on_device(plan->problem);
  at_plan *inner = NULL;
  AT_TRY(at_gemm_inner_plan(&inner, plan, &product));
  plan->state = inner;
  plan->workspace_bytes = at_gemm_upload_bytes(&product, inner->workspace_bytes);
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  if (plan->state) at_plan_destroy(plan->state);
  plan->state = NULL;
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const at_plan *inner = plan->state;
  at_gemm_operands run = *(const at_gemm_operands *)operands;
  AT_TRY(at_gemm_upload(stream, at_gemm_of(plan->problem), inner->workspace_bytes, &run));
  return inner->launch(inner, &run, stream);
}

const at_implementation at_gemm_cuda_uploaded = {
    .name = "cuda_uploaded",
    .version = 1,
    .backend = "cuda",
    .supports = supports,
    .configurations = configurations,
    .neighbours = neighbours,
    .prepare = prepare,
    .prepare_many = prepare_many,
    .compile = compile,
    .launch = launch,
    .destroy = destroy,
    .depends = at_gemm_inner_depends,
};
