/* SPDX-License-Identifier: Apache-2.0
 * unfused.c: an epilogue as two steps, the product by any implementation of plain products, then a pass over D. Its
 * configuration names the product's implementation, and that one's configuration is the rest of the text:
 * "product=cublaslt,algo=66,...". */
#include <stdlib.h>

#include "ops/gemm/epilogue/pass.h"
#include "src/host/host.h"
#include "src/host/threads.h"
#include "tuning/op/registry.h"

enum { MOST_OF_ONE = 32 }; /* configurations of one implementation that a search tries */

static at_gemm product_of(const void *problem) {
  at_gemm g = *at_gemm_of(problem);
  g.epilogue = (attune_gemm_epilogue){0};
  g.ld_aux = g.ld_residual = g.stride_aux = g.stride_residual = 0;
  return g;
}

/* Implementation number i of gemm if it can make the product; NULL. */
static const at_implementation *maker(size_t i, const at_gemm *product, attune_device *device) {
  const at_implementation *one = at_gemm_op.implementations[i];
  return at_registry_usable(one, product, device) ? one : NULL;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  if (!at_gemm_has_epilogue(at_gemm_of(problem)) || at_gemm_of(problem)->m > INT32_MAX ||
      at_gemm_of(problem)->n > INT32_MAX || at_gemm_of(problem)->batch > INT32_MAX)
    return false;
  const at_gemm product = product_of(problem);
  (void)self;
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++)
    if (maker(i, &product, device)) return true;
  return false;
}

/* "product=NAME" before each of `count` configurations; how many fit. */
static int prefix(const at_implementation *one, at_configuration *out, int count) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    at_configuration whole;
    size_t at = 0;
    if (!at_append(whole.text, sizeof whole.text, &at, "product=%s%s%s", one->name, out[i].text[0] ? "," : "",
                   out[i].text))
      continue;
    out[kept++] = whole;
  }
  return kept;
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  const at_gemm product = product_of(problem);
  int count = 0;
  (void)self;
  for (size_t i = 0; i < at_gemm_op.implementation_count && count < max; i++) {
    const at_implementation *one = maker(i, &product, device);
    if (!one || (one->fallback && count > 0)) continue;
    const int room = max - count < MOST_OF_ONE ? max - count : MOST_OF_ONE;
    count += prefix(one, out + count, one->configurations(one, &product, device, out + count, room));
  }
  return count;
}

/* The implementation and configuration of the product that a text names; NULL: it is none of ours. */
static const at_implementation *read(const at_configuration *whole, const attune_device *device,
                                     at_configuration *inner) {
  char name[64];
  if (strncmp(whole->text, "product=", 8) != 0 || !at_configuration_get_text(whole, "product", name, sizeof name))
    return NULL;
  const char *comma = strchr(whole->text, ',');
  at_copy_text(inner->text, sizeof inner->text, comma ? comma + 1 : "");
  const at_implementation *one = at_registry_find(&at_gemm_op, name, device);
  return one && strstr(one->name, "unfused") == NULL ? one : NULL;
}

static bool untuned(const at_implementation *self, const void *problem, attune_device *device, at_configuration *out) {
  const at_gemm product = product_of(problem);
  (void)self;
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = maker(i, &product, device);
    if (one && one->untuned && one->untuned(one, &product, device, out)) return prefix(one, out, 1) == 1;
  }
  return false;
}

static int neighbours(const at_implementation *self, const void *problem, attune_device *device,
                      const at_configuration *leader, at_configuration *out, int max) {
  at_configuration inner;
  const at_gemm product = product_of(problem);
  const at_implementation *one = read(leader, device, &inner);
  (void)self;
  return one && one->neighbours ? prefix(one, out, one->neighbours(one, &product, device, &inner, out, max)) : 0;
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
  at_configuration inner;
  const at_gemm product = product_of(plan->problem);
  const at_implementation *one = read(&plan->configuration, plan->device, &inner);
  if (!one)
    return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; should be product= and an implementation of products",
                   plan->configuration.text);
  AT_TRY(at_plan_create(&s->product, &at_gemm_op, one, &inner, &product, plan->device));
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

/* Adds those of `words` that are not in the text yet. */
static bool add_words(char *out, size_t size, char *words) {
  char *rest = NULL;
  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    size_t at = strlen(out);
    if (strstr(out, word)) continue;
    if (!at_append(out, size, &at, "%s%s", at ? " " : "", word)) return false;
  }
  return true;
}

static bool depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                    char *out, size_t size) {
  char words[512];
  at_configuration inner;
  const at_implementation *chosen = configuration ? read(configuration, device, &inner) : NULL;
  *out = '\0';
#ifdef AT_WITH_CUDA
  if (device->properties.kind == ATTUNE_DEVICE_CUDA && !at_jit_depends(out, size)) return false;
#endif
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    if (!one->depends || one == self || strcmp(one->backend, self->backend) != 0) continue;
    if (configuration && one != chosen) continue;
    if (!one->depends(one, configuration ? &inner : NULL, device, words, sizeof words)) return false;
    if (!add_words(out, size, words)) return false;
  }
  return true;
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
    .depends = depends,
};

/* ---- on CUDA ---- */

#ifdef AT_WITH_CUDA
static void prepare_many(const at_implementation *self, const void *problem, attune_device *device,
                         const at_configuration *all, int count) {
  const at_gemm product = product_of(problem);
  at_configuration *inner = calloc((size_t)count, sizeof *inner);
  (void)self;
  for (size_t i = 0; inner && i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    int found = 0;
    if (!one->prepare_many) continue;
    for (int j = 0; j < count; j++) found += read(&all[j], device, &inner[found]) == one;
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
  const at_implementation *one = read(configuration, device, &inner);
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
    .depends = depends,
};
#endif
