/* SPDX-License-Identifier: Apache-2.0
 * cuda_elementwise.c: elementwise on CUDA by a kernel made of the expression. The configuration is one of
 * cuda_choice.c. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/cuda/cuda_kernel.h"
#include "ops/elementwise/problem/problem.h"
#include "src/cuda/context/cuda.h"
#include "src/random/generator.h"
#include "tuning/op/registry.h"

#define VERSION 4
enum { MOST_CHOICES = 64 };

typedef struct cuda_plan {
  uint64_t id; /* of this state: never that of another */
  at_expression *expression;
  at_cuda_choice choice;
  at_jit_kernel *kernel;
  int processors, blocks; /* of the device; of the kernel that a processor holds */
} cuda_plan;

/* State shared by all launches of a layout, kept by the caller between calls. */
typedef struct at_elementwise_kept kept;
_Static_assert(sizeof(at_cuda_launch) <= sizeof(((kept *)0)->room), "a launch fits into what is kept");

static int capability_of(const attune_device *device) {
  return 10 * device->properties.capability_major + device->properties.capability_minor;
}

/* The problem as the kernel's makers see it, with the operands of a call, or with its own. */
static void problem_of(at_cuda_problem *out, const at_elementwise *p, const at_expression *e, const at_layout *layout,
                       int32_t head) {
  memset(out, 0, offsetof(at_cuda_problem, layout));
  out->expression = e;
  memcpy(out->outputs, p->dtypes, p->output_count);
  out->reduced = p->accuracy == ATTUNE_REDUCED;
  for (int i = 0; i < p->output_count; i++) out->in_place = out->in_place || p->in_place[i];
  if (layout)
    out->layout = *layout;
  else
    at_elementwise_layout_of(&out->layout, p);
  for (int k = 0; k < AT_TENSORS; k++) out->alignment[k] = p->alignment;
  out->head = head;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self, (void)problem;
  return device->backend.kind == ATTUNE_DEVICE_CUDA;
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  (void)self;
  const at_elementwise *p = at_elementwise_of(problem);
  at_cuda_choice choices[MOST_CHOICES];
  at_cuda_problem cuda;
  at_expression *expression = NULL;
  int count = 0;
  if (at_elementwise_expression(&expression, p) != ATTUNE_OK) return 0;
  problem_of(&cuda, p, expression, NULL, 0);
  const int found = at_cuda_candidates(&cuda, capability_of(device), choices, MOST_CHOICES);
  for (int i = 0; i < found && count < max; i++)
    if (at_cuda_choice_format(&out[count], &choices[i])) count++;
  at_expression_destroy(expression);
  return count;
}

/* ---- plans ---- */

static attune_status make_once(at_jit_kernel **out, attune_device *device, const at_cuda_problem *problem,
                               const at_cuda_choice *choice) {
  char *text = NULL;
  attune_status status = at_cuda_generate(&text, problem, choice);
  if (status == ATTUNE_OK) {
    const at_kernel_source source = at_cuda_source(problem, text);
    status = at_jit_get(out, device, &source);
  }
  free(text);
  return status;
}

/* Errors in a program's own function refer to its own lines, which are compiled as they were written. */
static attune_status make_kernel(at_jit_kernel **out, attune_device *device, const at_cuda_problem *problem,
                                 const at_cuda_choice *choice) {
  const attune_status status = make_once(out, device, problem, choice);
  if (status != ATTUNE_INVALID_ARGUMENT || !problem->expression->raw) return status;
  at_cuda_problem written = *problem;
  written.as_written = true;
  return make_once(out, device, &written, choice);
}

/* The device is current. */
static attune_status find_blocks(cuda_plan *s, attune_device *device) {
  s->blocks = 1;
  s->processors = device->properties.processors;
  if (!s->choice.persistent) return ATTUNE_OK;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &s->blocks, (const void *)at_jit_native(s->kernel), s->choice.block, 0);
  if (s->blocks < 1) s->blocks = 1;
  return at_cuda_check(device, error, "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}

static attune_status open_plan(cuda_plan *s, at_plan *plan) {
  const at_elementwise *p = at_elementwise_of(plan->problem);
  at_cuda_problem cuda;
  at_cuda_scope scope;
  if (!at_cuda_choice_parse(&s->choice, &plan->configuration))
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; no elementwise kernel has it", plan->configuration.text);
  AT_TRY(at_elementwise_expression(&s->expression, p));
  problem_of(&cuda, p, s->expression, NULL, 0);
  if (!at_cuda_supports(&cuda, &s->choice, capability_of(plan->device)))
    return at_fail(ATTUNE_NOT_FOUND, "%s does not support the layout of these operands", plan->configuration.text);
  AT_TRY(make_kernel(&s->kernel, plan->device, &cuda, &s->choice));
  AT_TRY(at_cuda_enter_relaxed(&scope, plan->device));
  attune_status status = find_blocks(s, plan->device);
  at_cuda_leave(&scope);
  return status;
}

static void close_plan(cuda_plan *s) {
  at_jit_release(s->kernel);
  at_expression_destroy(s->expression);
  free(s);
}

static attune_status prepare(at_plan *plan) {
  static _Atomic uint64_t states;
  cuda_plan *s = calloc(1, sizeof *s);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan");
  s->id = atomic_fetch_add_explicit(&states, 1, memory_order_relaxed) + 1;
  const attune_status status = open_plan(s, plan);
  if (status != ATTUNE_OK) {
    close_plan(s);
    return status;
  }
  plan->state = s;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  if (plan->state) close_plan(plan->state);
}

/* Compiles kernels in parallel; prepare reports failures. */
static void prepare_many(const at_implementation *self, const void *problem, attune_device *device,
                         const at_configuration *texts, int count) {
  (void)self;
  const at_elementwise *p = at_elementwise_of(problem);
  at_expression *expression = NULL;
  at_jit_request *requests = calloc((size_t)count, sizeof *requests);
  at_cuda_problem cuda;
  int made = 0;
  if (!requests || at_elementwise_expression(&expression, p) != ATTUNE_OK) {
    free(requests);
    return;
  }
  problem_of(&cuda, p, expression, NULL, 0);
  for (int i = 0; i < count; i++) {
    at_cuda_choice choice;
    char *text = NULL;
    if (at_cuda_choice_parse(&choice, &texts[i]) && at_cuda_generate(&text, &cuda, &choice) == ATTUNE_OK)
      requests[made++].source = at_cuda_source(&cuda, text);
  }
  at_jit_get_all(requests, made, device);
  for (int i = 0; i < made; i++) {
    at_jit_release(requests[i].kernel);
    free((char *)(uintptr_t)requests[i].source.text);
  }
  at_expression_destroy(expression);
  free(requests);
}

static attune_status compile(const at_implementation *self, const void *problem, attune_device *device,
                             const at_configuration *configuration, bool *made) {
  (void)self;
  at_expression *expression = NULL;
  at_cuda_problem cuda;
  at_cuda_choice choice;
  char *text = NULL;
  if (made) *made = false;
  if (!at_cuda_choice_parse(&choice, configuration))
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; no elementwise kernel has it", configuration->text);
  AT_TRY(at_elementwise_expression(&expression, at_elementwise_of(problem)));
  problem_of(&cuda, at_elementwise_of(problem), expression, NULL, 0);
  attune_status status = at_cuda_generate(&text, &cuda, &choice);
  if (status == ATTUNE_OK) {
    const at_kernel_source source = at_cuda_source(&cuda, text);
    status = at_jit_compile(device, &source, made);
  }
  free(text);
  at_expression_destroy(expression);
  return status;
}

/* ---- launches ---- */

static attune_status bind_random(at_cuda_launch *launch, const at_elementwise *p, const at_elementwise_operands *o,
                                 int64_t count, attune_stream *stream) {
  at_random_call taken = {.seed = o->draws.seed, .offset = o->draws.offset};
  attune_status status = ATTUNE_OK;
  if (at_elementwise_draws(p) == 0) return ATTUNE_OK;
  if (o->generator)
    status = at_generator_take(o->generator, stream, at_draw_words(count, at_elementwise_draws(p)), &taken);
  at_cuda_bind_random(launch, taken.seed, taken.offset, taken.state);
  return status;
}

static attune_status launch_bound(at_cuda_launch *launch, const at_elementwise *p, const at_expression *e,
                                  const at_elementwise_operands *o, int64_t count, at_jit_kernel *kernel,
                                  attune_stream *stream) {
  at_cuda_scope scope;
  for (int k = 0; k < at_elementwise_tensors(p); k++)
    launch->words[launch->tensor_at + k] = (uint64_t)(uintptr_t)o->tensors[k];
  at_cuda_bind_scalars(launch, e, o->scalars);
  AT_TRY(bind_random(launch, p, o, count, stream));
  AT_TRY(at_cuda_enter(&scope, stream->device));
  attune_status status = at_jit_launch(kernel, &launch->config, launch->words, stream);
  at_cuda_leave(&scope);
  return status;
}

/* Sizes of a class differ; should the plan's kernel not be for those of a call, one that is takes its place. */
static attune_status launch_other(const at_plan *plan, const at_cuda_problem *cuda, const at_elementwise_operands *o,
                                  attune_stream *stream) {
  const cuda_plan *s = plan->state;
  at_cuda_choice choice;
  at_jit_kernel *kernel = NULL;
  at_cuda_launch launch;
  if (at_cuda_candidates(cuda, capability_of(plan->device), &choice, 1) < 1)
    return at_fail(ATTUNE_UNSUPPORTED, "no elementwise kernel supports the layout of these operands");
  attune_status status = make_kernel(&kernel, plan->device, cuda, &choice);
  if (status == ATTUNE_OK) status = at_cuda_plan(&launch, cuda, &choice, s->processors, 1);
  if (status == ATTUNE_OK)
    status =
        launch_bound(&launch, at_elementwise_of(plan->problem), s->expression, o, cuda->layout.count, kernel, stream);
  at_jit_release(kernel);
  return status;
}

/* A launch with its words, as far as it has them. */
static void copy_launch(at_cuda_launch *to, const at_cuda_launch *from) {
  memcpy(to, from, offsetof(at_cuda_launch, words) + (size_t)from->word_count * sizeof *from->words);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const at_elementwise *p = at_elementwise_of(plan->problem);
  const at_elementwise_operands *o = operands;
  const cuda_plan *s = plan->state;
  at_cuda_launch bound;
  if (o->kept && atomic_load_explicit(&o->kept->owner, memory_order_acquire) == s->id) {
    copy_launch(&bound, (const at_cuda_launch *)(const void *)o->kept->room);
    return launch_bound(&bound, p, s->expression, o, o->kept->count, s->kernel, stream);
  }
  at_cuda_problem cuda;
  problem_of(&cuda, p, s->expression, o->layout, o->head);
  const attune_status status = at_cuda_plan(&bound, &cuda, &s->choice, s->processors, s->blocks);
  if (AT_UNLIKELY(status == ATTUNE_UNSUPPORTED)) return launch_other(plan, &cuda, o, stream);
  if (status != ATTUNE_OK) return status;
  if (o->kept && !atomic_exchange(&o->kept->taken, true)) {
    copy_launch((at_cuda_launch *)(void *)o->kept->room, &bound);
    o->kept->count = cuda.layout.count;
    atomic_store_explicit(&o->kept->owner, s->id, memory_order_release);
  }
  return launch_bound(&bound, p, s->expression, o, cuda.layout.count, s->kernel, stream);
}

static bool depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                    char *out, size_t size) {
  (void)self, (void)configuration, (void)device;
  return at_jit_depends(out, size);
}

const at_implementation at_elementwise_cuda_kernel = {
    .name = "cuda_kernel",
    .version = VERSION,
    .backend = "cuda",
    .tunables = &at_cuda_tunables,
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .prepare_many = prepare_many,
    .compile = compile,
    .launch = launch,
    .destroy = destroy,
    .depends = depends,
};
