/* SPDX-License-Identifier: Apache-2.0
 * unfused.c: an epilogue as two steps, the product by any implementation of plain products (inner.h), then a pass over
 * D. */
#include <stdlib.h>

#include "ops/gemm/epilogue/pass.h"
#include "ops/gemm/inner.h"
#include "src/host/host.h"
#include "src/host/threads.h"

enum { MOST_OF_ONE = 32 }; /* configurations of one implementation that a search tries */

static at_gemm product_of(const void *problem) {
  at_gemm g = *at_gemm_of(problem);
  g.epilogue = (attune_gemm_epilogue){0};
  g.ld_aux = g.ld_residual = g.stride_aux = g.stride_residual = 0;
  return g;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  if (!at_gemm_has_epilogue(at_gemm_of(problem)) || at_gemm_of(problem)->m > INT32_MAX ||
      at_gemm_of(problem)->n > INT32_MAX || at_gemm_of(problem)->batch > INT32_MAX)
    return false;
  const at_gemm product = product_of(problem);
  (void)self;
  return at_gemm_inner_any(&product, device);
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  const at_gemm product = product_of(problem);
  int count = 0;
  (void)self;
  for (size_t i = 0; i < at_gemm_op.implementation_count && count < max; i++) {
    const at_implementation *one = at_gemm_inner(i, &product, device);
    if (!one || (one->fallback && count > 0)) continue;
    const int room = max - count < MOST_OF_ONE ? max - count : MOST_OF_ONE;
    count += at_gemm_inner_prefix(one, out + count, one->configurations(one, &product, device, out + count, room));
  }
  return count;
}

static bool untuned(const at_implementation *self, const void *problem, attune_device *device, at_configuration *out) {
  const at_gemm product = product_of(problem);
  (void)self;
  return at_gemm_inner_untuned(&product, device, out);
}

static int neighbours(const at_implementation *self, const void *problem, attune_device *device,
                      const at_configuration *leader, at_configuration *out, int max) {
  at_configuration inner;
  const at_gemm product = product_of(problem);
  const at_implementation *one = at_gemm_inner_read(self, leader, device, &inner);
  return one && one->neighbours
             ? at_gemm_inner_prefix(one, out, one->neighbours(one, &product, device, &inner, out, max))
             : 0;
}

typedef struct two_steps {
  at_plan *product;
#ifdef AT_WITH_CUDA
  at_pass_kernels kernels;
#endif
} two_steps;

static void destroy(at_plan *plan) {
  two_steps *s = plan->state;
  if (!s) return;
  if (s->product) at_plan_destroy(s->product);
#ifdef AT_WITH_CUDA
  at_pass_release(&s->kernels);
#endif
  free(s);
  plan->state = NULL;
}

static attune_status open_plan(at_plan *plan, two_steps *s) {
  const at_gemm product = product_of(plan->problem);
  AT_TRY(at_gemm_inner_plan(&s->product, plan, &product));
  plan->workspace_bytes = s->product->workspace_bytes;
#ifdef AT_WITH_CUDA
  if (plan->device->properties.kind == ATTUNE_DEVICE_CUDA)
    return at_pass_open(&s->kernels, at_gemm_of(plan->problem), plan->device);
#endif
  return ATTUNE_OK;
}

static attune_status prepare(at_plan *plan) {
  two_steps *s = calloc(1, sizeof *s);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of %s", plan->implementation->name);
  plan->state = s;
  const attune_status status = open_plan(plan, s);
  if (status != ATTUNE_OK) destroy(plan);
  return status;
}

/* ---- on the host ---- */

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static void run(const void *args) {
  const work *w = args;
  at_gemm_pass_host(at_gemm_of(w->plan->problem), &w->operands, at_cpu_count());
}

static attune_status launch_host(const at_plan *plan, const void *operands, attune_stream *stream) {
  const two_steps *s = plan->state;
  const work w = {plan, *(const at_gemm_operands *)operands};
  AT_TRY(s->product->launch(s->product, operands, stream));
  return at_host_submit(stream, run, &w, sizeof w);
}

const at_implementation at_gemm_host_unfused = {
    .name = "host_unfused",
    .version = 1,
    .backend = "host",
    .supports = supports,
    .configurations = configurations,
    .untuned = untuned,
    .neighbours = neighbours,
    .prepare = prepare,
    .launch = launch_host,
    .destroy = destroy,
    .depends = at_gemm_inner_depends,
};

/* ---- on CUDA ---- */

#ifdef AT_WITH_CUDA
static void prepare_many(const at_implementation *self, const void *problem, attune_device *device,
                         const at_configuration *all, int count) {
  const at_gemm product = product_of(problem);
  at_configuration *inner = calloc((size_t)count, sizeof *inner);
  for (size_t i = 0; inner && i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    int found = 0;
    if (!one->prepare_many) continue;
    for (int j = 0; j < count; j++) found += at_gemm_inner_read(self, &all[j], device, &inner[found]) == one;
    if (found > 0) one->prepare_many(one, &product, device, inner, found);
  }
  free(inner);
}

static attune_status compile_pass(const at_gemm *g, attune_device *device, bool *made) {
  char *texts[2];
  bool any = false;
  AT_TRY(at_pass_texts(g, &texts[0], &texts[1]));
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < 2 && status == ATTUNE_OK; i++) {
    bool now = false;
    if (!texts[i]) continue;
    const at_kernel_source source = at_pass_source(texts[i], i == 1);
    status = at_jit_compile(device, &source, made ? &now : NULL);
    any = any || now;
  }
  free(texts[0]);
  free(texts[1]);
  if (made) *made = any;
  return status;
}

static attune_status compile(const at_implementation *self, const void *problem, attune_device *device,
                             const at_configuration *configuration, bool *made) {
  at_configuration inner;
  bool pass = false, of_product = false;
  const at_gemm product = product_of(problem);
  const at_implementation *one = at_gemm_inner_read(self, configuration, device, &inner);
  if (!one)
    return at_fail(ATTUNE_NOT_FOUND, "configuration \"%s\" is not one of %s for this problem", configuration->text,
                   self->name);
  AT_TRY(compile_pass(at_gemm_of(problem), device, made ? &pass : NULL));
  if (one->compile) AT_TRY(one->compile(one, &product, device, &inner, made ? &of_product : NULL));
  if (made) *made = pass || of_product;
  return ATTUNE_OK;
}

static attune_status launch_cuda(const at_plan *plan, const void *operands, attune_stream *stream) {
  const two_steps *s = plan->state;
  AT_TRY(s->product->launch(s->product, operands, stream));
  return at_pass_launch(&s->kernels, at_gemm_of(plan->problem), operands, stream);
}

const at_implementation at_gemm_cuda_unfused = {
    .name = "cuda_unfused",
    .version = 1,
    .backend = "cuda",
    .supports = supports,
    .configurations = configurations,
    .neighbours = neighbours,
    .prepare = prepare,
    .prepare_many = prepare_many,
    .compile = compile,
    .launch = launch_cuda,
    .destroy = destroy,
    .depends = at_gemm_inner_depends,
};
#endif
