/* SPDX-License-Identifier: Apache-2.0
 * unfused.c: an epilogue as two steps, the product by any implementation of plain products (inner.h), then a pass over
 * D; of a gated problem over scratch memory, where the product is made. */
#include <stdlib.h>

#include <stdatomic.h>

#include "ops/gemm/epilogue/gated.h"
#include "ops/gemm/inner.h"
#include "src/host/host.h"
#include "src/host/threads.h"
#ifdef AT_WITH_CUDA
#include "src/cuda/context/cuda.h"
#endif

enum { MOST_OF_ONE = 32 }; /* configurations of one implementation that a search tries */

/* Bytes for a gated problem's product: what a processor's caches hold; on a GPU what the product's own workspace
 * leaves. */
static size_t room_of(const at_implementation *self, const at_gemm *g) {
  const uint64_t caches = (uint64_t)16 << 20;
  if (strcmp(self->backend, "cuda") == 0) return (size_t)(g->workspace_cap / 4 * 3);
  return (size_t)(g->workspace_cap < caches ? g->workspace_cap : caches);
}

/* False: there is no room for it. */
static bool split_of(const at_implementation *self, const void *problem, at_gated_split *out) {
  const at_gemm *g = at_gemm_of(problem);
  if (g->gated) return at_gated_split_of(out, g, room_of(self, g));
  *out = (at_gated_split){.product = at_gemm_without_epilogue(g), .piece = *g, .count = 1, .matrices = 1};
  return true;
}

/* Of a problem that is supported. */
static at_gemm product_of(const at_implementation *self, const void *problem) {
  at_gated_split split;
  split_of(self, problem, &split);
  return split.product;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  if (!at_gemm_has_epilogue(at_gemm_of(problem)) || at_gemm_of(problem)->m > INT32_MAX ||
      at_gemm_of(problem)->n > INT32_MAX || at_gemm_of(problem)->batch > INT32_MAX)
    return false;
  at_gated_split split;
  return split_of(self, problem, &split) && at_gemm_inner_any(&split.product, device);
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  const at_gemm product = product_of(self, problem);
  int count = 0;
  for (size_t i = 0; i < at_gemm_op.implementation_count && count < max; i++) {
    const at_implementation *one = at_gemm_inner(i, &product, device);
    if (!one || (one->fallback && count > 0)) continue;
    const int room = max - count < MOST_OF_ONE ? max - count : MOST_OF_ONE;
    count += at_gemm_inner_prefix(one, out + count, one->configurations(one, &product, device, out + count, room));
  }
  return count;
}

static bool untuned(const at_implementation *self, const void *problem, attune_device *device, at_configuration *out) {
  const at_gemm product = product_of(self, problem);
  return at_gemm_inner_untuned(&product, device, out);
}

static int neighbours(const at_implementation *self, const void *problem, attune_device *device,
                      const at_configuration *leader, at_configuration *out, int max) {
  at_configuration inner;
  const at_gemm product = product_of(self, problem);
  const at_implementation *one = at_gemm_inner_read(self, leader, device, &inner);
  return one && one->neighbours
             ? at_gemm_inner_prefix(one, out, one->neighbours(one, &product, device, &inner, out, max))
             : 0;
}

typedef struct two_steps {
  at_plan *product;
  at_gated_split split;
  size_t place;           /* of the scratch memory in the workspace, behind that of the product */
  _Atomic(void *) unused; /* scratch memory of the host that no call has now */
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
  free(atomic_load(&s->unused));
  free(s);
  plan->state = NULL;
}

static attune_status open_plan(at_plan *plan, two_steps *s) {
  if (!split_of(plan->implementation, plan->problem, &s->split))
    return at_fail(ATTUNE_UNSUPPORTED, "the workspace is too small for the product of a gated problem");
  AT_TRY(at_gemm_inner_plan(&s->product, plan, &s->split.product));
  plan->workspace_bytes = s->product->workspace_bytes;
#ifdef AT_WITH_CUDA
  if (plan->device->properties.kind == ATTUNE_DEVICE_CUDA) {
    s->place = (s->product->workspace_bytes + 255) / 256 * 256;
    if (s->split.bytes) plan->workspace_bytes = s->place + s->split.bytes;
    return at_pass_open(&s->kernels, &s->split.piece, plan->device);
  }
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
  two_steps *steps;
  at_gemm_operands operands;
  at_pass_input from;
  void *done_with; /* scratch memory, after the last piece */
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static void run(const void *args) {
  const work *w = args;
  at_gemm_pass_host(&w->steps->split.piece, &w->operands, w->from, at_cpu_count());
  if (w->done_with) free(atomic_exchange(&w->steps->unused, w->done_with));
}

static attune_status launch_host(const at_plan *plan, const void *operands, attune_stream *stream) {
  two_steps *s = plan->state;
  const at_gemm_operands *o = operands;
  const work w = {s, *o, at_pass_input_of_d(at_gemm_of(plan->problem), o), NULL};
  AT_TRY(s->product->launch(s->product, o, stream));
  return at_host_submit(stream, run, &w, sizeof w);
}

static attune_status launch_pieces(two_steps *s, const at_gemm *g, const at_gemm_operands *o, void *scratch,
                                   attune_stream *stream) {
  const int64_t count = at_gated_pieces(&s->split);
  attune_status status = ATTUNE_OK;
  for (int64_t i = 0; i < count && status == ATTUNE_OK; i++) {
    const work w = {s, at_gated_operands(&s->split, g, o, i), at_gated_input(&s->split, scratch),
                    i == count - 1 ? scratch : NULL};
    at_gemm_operands product = w.operands;
    product.d = scratch;
    status = s->product->launch(s->product, &product, stream);
    if (status == ATTUNE_OK) status = at_host_submit(stream, run, &w, sizeof w);
  }
  if (status == ATTUNE_OK) return ATTUNE_OK;
  (void)attune_stream_synchronize(stream); /* earlier pieces use the memory */
  free(scratch);
  return status;
}

static attune_status launch_host_gated(const at_plan *plan, const void *operands, attune_stream *stream) {
  two_steps *s = plan->state;
  void *scratch = atomic_exchange(&s->unused, NULL);
  if (!scratch) scratch = at_alloc_large(s->split.bytes);
  if (!scratch) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the product of a gated problem");
  return launch_pieces(s, at_gemm_of(plan->problem), operands, scratch, stream);
}

static attune_status prepare_host(at_plan *plan) {
  AT_TRY(prepare(plan));
  if (at_gemm_of(plan->problem)->gated) plan->launch = launch_host_gated;
  return ATTUNE_OK;
}

const at_implementation at_gemm_host_unfused = {
    .name = "host_unfused",
    .version = 1,
    .backend = "host",
    .supports = supports,
    .configurations = configurations,
    .untuned = untuned,
    .neighbours = neighbours,
    .prepare = prepare_host,
    .launch = launch_host,
    .destroy = destroy,
    .depends = at_gemm_inner_depends,
};

/* ---- on CUDA ---- */

#ifdef AT_WITH_CUDA
static void prepare_many(const at_implementation *self, const void *problem, attune_device *device,
                         const at_configuration *all, int count) {
  const at_gemm product = product_of(self, problem);
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
  at_gated_split split;
  if (!split_of(self, problem, &split)) return at_fail(ATTUNE_UNSUPPORTED, "the workspace is too small");
  const at_implementation *one = at_gemm_inner_read(self, configuration, device, &inner);
  if (!one)
    return at_fail(ATTUNE_NOT_FOUND, "configuration \"%s\" is not one of %s for this problem", configuration->text,
                   self->name);
  AT_TRY(compile_pass(&split.piece, device, made ? &pass : NULL));
  if (one->compile) AT_TRY(one->compile(one, &split.product, device, &inner, made ? &of_product : NULL));
  if (made) *made = pass || of_product;
  return ATTUNE_OK;
}

static attune_status launch_cuda(const at_plan *plan, const void *operands, attune_stream *stream) {
  const two_steps *s = plan->state;
  const at_gemm *g = at_gemm_of(plan->problem);
  AT_TRY(s->product->launch(s->product, operands, stream));
  return at_pass_launch(&s->kernels, g, operands, at_pass_input_of_d(g, operands), stream);
}

static attune_status scratch_of(const at_plan *plan, attune_stream *stream, char **out) {
  const two_steps *s = plan->state;
  at_cuda_scope scope;
  void *workspace = NULL;
  AT_TRY(at_cuda_enter(&scope, plan->device));
  const attune_status status = at_cuda_workspace(stream, plan->workspace_bytes, &workspace);
  at_cuda_leave(&scope);
  *out = (char *)workspace + s->place;
  return status;
}

/* The product finds the same workspace, which is large enough, and takes its beginning. */
static attune_status launch_cuda_gated(const at_plan *plan, const void *operands, attune_stream *stream) {
  const two_steps *s = plan->state;
  const at_gemm *g = at_gemm_of(plan->problem);
  char *scratch = NULL;
  AT_TRY(scratch_of(plan, stream, &scratch));
  for (int64_t i = 0; i < at_gated_pieces(&s->split); i++) {
    const at_gemm_operands o = at_gated_operands(&s->split, g, operands, i);
    at_gemm_operands product = o;
    product.d = scratch;
    AT_TRY(s->product->launch(s->product, &product, stream));
    AT_TRY(at_pass_launch(&s->kernels, &s->split.piece, &o, at_gated_input(&s->split, scratch), stream));
  }
  return ATTUNE_OK;
}

static attune_status prepare_cuda(at_plan *plan) {
  AT_TRY(prepare(plan));
  if (at_gemm_of(plan->problem)->gated) plan->launch = launch_cuda_gated;
  return ATTUNE_OK;
}

const at_implementation at_gemm_cuda_unfused = {
    .name = "cuda_unfused",
    .version = 1,
    .backend = "cuda",
    .supports = supports,
    .configurations = configurations,
    .neighbours = neighbours,
    .prepare = prepare_cuda,
    .prepare_many = prepare_many,
    .compile = compile,
    .launch = launch_cuda,
    .destroy = destroy,
    .depends = at_gemm_inner_depends,
};
#endif
