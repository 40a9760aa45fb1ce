/* SPDX-License-Identifier: Apache-2.0
 * kernel.c: plans of the families' kernels: compiled, launched, released. */
#include "ops/gemm/kernels/kernel.h"

#include <stdlib.h>

#include "src/cuda/context/cuda.h"

typedef struct kernel_plan {
  at_jit_kernel *kernel, *first;       /* `first`: launched before; NULL: that is `kernel` too */
  at_jit_config config, before, after; /* a grid of 0: there is none before or after */
  at_gemm_mapped_arguments given;      /* its maps only where `mapped` */
  at_tensor_shape maps[2];
  bool swapped, mapped, copied[2]; /* as of a spec */
  size_t places[2];
} kernel_plan;

static at_kernel_source source_of(const at_gemm_kernels *family, const char *text) {
  return (at_kernel_source){.file = family->file, .text = text, .entry = family->entry};
}

/* As many blocks as the device holds, where a grid may stay. The device is current. */
static attune_status settle_grid(kernel_plan *s, const at_gemm_launch_spec *r, const at_machine *machine,
                                 attune_device *device) {
  int blocks = 0;
  if (!r->stays) return ATTUNE_OK;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, (const void *)at_jit_native(s->kernel), (int)s->config.block[0], s->config.shared_bytes);
  const unsigned most = (unsigned)(blocks < 1 ? 1 : blocks) * (unsigned)machine->processors;
  if (s->config.grid[0] > most) s->config.grid[0] = most;
  return at_cuda_check(device, error, "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}

static bool supports(const at_gemm_kernels *family, const at_gemm *g, const at_machine *machine) {
  if (at_gemm_8bit(g->dtype) != family->scaled) return false;
  if (g->pointers && (!family->pointers || g->pointers != ATTUNE_POINTERS_DEVICE)) return false;
  if (at_gemm_complex(g->dtype) && (!family->complex || !at_gemm_aligned(g))) return false;
  if (at_gemm_has_epilogue(g) && (!family->has_epilogue || !at_gemm_in_registers(g))) return false;
  if (g->gated && !family->has_gated) return false;
  return family->supports(g, machine);
}

bool at_gemm_kernel_supports(const at_implementation *self, const void *problem, attune_device *device) {
  const at_machine machine = at_machine_of(device);
  return supports(at_gemm_kernels_of(self), at_gemm_of(problem), &machine);
}

int at_gemm_kernel_configurations(const at_implementation *self, const void *problem, attune_device *device,
                                  at_configuration *out, int max) {
  const at_machine machine = at_machine_of(device);
  return at_gemm_kernels_of(self)->candidates(at_gemm_of(problem), &machine, out, max, false);
}

bool at_gemm_kernel_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                            char *out, size_t size) {
  (void)self, (void)configuration, (void)device;
  return at_jit_depends(out, size);
}

static attune_status describe(at_gemm_launch_spec *spec, const at_implementation *self, const at_gemm *g,
                              const at_machine *machine, const at_configuration *configuration) {
  const at_gemm_kernels *family = at_gemm_kernels_of(self);
  if (!supports(family, g, machine) || !at_gemm_launch_spec_of(spec, family, g, machine, configuration))
    return at_fail(ATTUNE_NOT_FOUND, "configuration \"%s\" is not one of %s for this problem", configuration->text,
                   self->name);
  return ATTUNE_OK;
}

static attune_status load(at_jit_kernel **out, attune_device *device, const at_gemm_kernels *family,
                          const at_gemm_launch_spec *spec, bool before) {
  char *text = NULL;
  AT_TRY(at_gemm_text(&text, family, spec, before));
  const at_kernel_source source = source_of(family, text);
  attune_status status = at_jit_get(out, device, &source);
  free(text);
  return status;
}

static at_jit_kernel *before_of(const kernel_plan *s) {
  return s->first ? s->first : s->kernel;
}

/* Where maps are until a call says where its operands are: an address as devices have them. */
static const uintptr_t SOMEWHERE = 0x7f0000000000;

static attune_status make_maps(kernel_plan *s, const at_gemm_launch_spec *r) {
  attune_status status = ATTUNE_OK;
  s->mapped = r->mapped;
  for (int i = 0; r->mapped && i < 2 && status == ATTUNE_OK; i++) {
    s->maps[i] = r->maps[i];
    s->copied[i] = r->copied[i], s->places[i] = r->places[i];
    status = at_tensor_map_make(&s->given.maps[i], &s->maps[i], (const void *)SOMEWHERE);
  }
  return status;
}

static attune_status open_plan(kernel_plan *s, at_plan *plan) {
  const at_gemm_kernels *family = at_gemm_kernels_of(plan->implementation);
  const at_machine machine = at_machine_of(plan->device);
  at_gemm_launch_spec spec;
  at_cuda_scope scope;
  attune_status status =
      describe(&spec, plan->implementation, at_gemm_of(plan->problem), &machine, &plan->configuration);
  if (status == ATTUNE_OK) status = load(&s->kernel, plan->device, family, &spec, false);
  if (status == ATTUNE_OK && at_gemm_has_before(family, &spec))
    status = load(&s->first, plan->device, family, &spec, true);
  if (status != ATTUNE_OK) return status;
  s->config = spec.config;
  s->before = spec.before, s->after = spec.after;
  plan->workspace_bytes = spec.workspace_bytes;
  s->given.arguments = spec.arguments;
  s->swapped = spec.swapped;
  status = make_maps(s, &spec);
  if (status == ATTUNE_OK) status = at_jit_check(s->kernel, &s->config);
  if (status == ATTUNE_OK && s->before.grid[0]) status = at_jit_check(before_of(s), &s->before);
  if (status == ATTUNE_OK && s->after.grid[0]) status = at_jit_check(s->kernel, &s->after);
  if (status == ATTUNE_OK) status = at_cuda_enter_relaxed(&scope, plan->device);
  if (status != ATTUNE_OK) return status;
  status = settle_grid(s, &spec, &machine, plan->device);
  at_cuda_leave(&scope);
  return status;
}

attune_status at_gemm_kernel_prepare(at_plan *plan) {
  kernel_plan *s = NULL;
  if (posix_memalign((void **)&s, alignof(kernel_plan), sizeof *s) != 0) s = NULL;
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of %s", plan->implementation->name);
  *s = (kernel_plan){0};
  plan->state = s;
  const attune_status status = open_plan(s, plan);
  if (status != ATTUNE_OK) at_gemm_kernel_destroy(plan);
  return status;
}

void at_gemm_kernel_destroy(at_plan *plan) {
  kernel_plan *s = plan->state;
  if (!s) return;
  at_jit_release(s->kernel);
  at_jit_release(s->first);
  free(s);
  plan->state = NULL;
}

/* Compiles kernels in parallel; prepare reports failures. */
void at_gemm_kernel_prepare_many(const at_implementation *self, const void *problem, attune_device *device,
                                 const at_configuration *configurations, int count) {
  const at_gemm_kernels *family = at_gemm_kernels_of(self);
  const at_machine machine = at_machine_of(device);
  at_jit_request *requests = calloc(2 * (size_t)count, sizeof *requests);
  int made = 0;
  for (int i = 0; requests && i < count; i++) {
    at_gemm_launch_spec spec;
    if (!at_gemm_launch_spec_of(&spec, family, at_gemm_of(problem), &machine, &configurations[i])) continue;
    for (int before = 0; before <= (int)at_gemm_has_before(family, &spec); before++) {
      char *text = NULL;
      if (at_gemm_text(&text, family, &spec, before) == ATTUNE_OK) requests[made++].source = source_of(family, text);
    }
  }
  if (made > 0) at_jit_get_all(requests, made, device);
  for (int i = 0; i < made; i++) {
    at_jit_release(requests[i].kernel);
    free((char *)(uintptr_t)requests[i].source.text);
  }
  free(requests);
}

attune_status at_gemm_kernel_compile(const at_implementation *self, const void *problem, attune_device *device,
                                     const at_configuration *configuration, bool *made) {
  const at_gemm_kernels *family = at_gemm_kernels_of(self);
  const at_machine machine = at_machine_of(device);
  at_gemm_launch_spec spec;
  bool any = false;
  attune_status status = describe(&spec, self, at_gemm_of(problem), &machine, configuration);
  for (int before = 0; status == ATTUNE_OK && before <= (int)at_gemm_has_before(family, &spec); before++) {
    char *text = NULL;
    bool now = false;
    status = at_gemm_text(&text, family, &spec, before);
    if (status != ATTUNE_OK) break;
    const at_kernel_source source = source_of(family, text);
    status = at_jit_compile(device, &source, made ? &now : NULL);
    any = any || now;
    free(text);
  }
  if (made) *made = any;
  return status;
}

static attune_status launch_phase(at_jit_kernel *kernel, const at_jit_config *config, at_gemm_arguments *arguments,
                                  int phase, attune_stream *stream) {
  if (config->grid[0] == 0) return ATTUNE_OK;
  arguments->phase = phase;
  return at_jit_launch(kernel, config, arguments, stream);
}

/* `arguments` are the first of what the kernel takes. */
static attune_status launch(const kernel_plan *s, at_gemm_arguments *arguments, attune_stream *stream) {
  attune_status status = launch_phase(before_of(s), &s->before, arguments, 2, stream);
  if (status == ATTUNE_OK) status = launch_phase(s->kernel, &s->config, arguments, 0, stream);
  if (status == ATTUNE_OK) status = launch_phase(s->kernel, &s->after, arguments, 1, stream);
  return status;
}

static attune_status launch_mapped(const kernel_plan *s, const at_gemm_arguments *arguments, attune_stream *stream) {
  at_gemm_mapped_arguments given = s->given;
  const void *const operands[] = {arguments->a, arguments->b};
  attune_status status = ATTUNE_OK;
  given.arguments = *arguments;
  for (int i = 0; i < 2 && status == ATTUNE_OK; i++)
    status = at_tensor_map_move(&given.maps[i], &s->maps[i],
                                s->copied[i] ? (const char *)arguments->sums + s->places[i] : operands[i]);
  return status == ATTUNE_OK ? launch(s, &given.arguments, stream) : status;
}

attune_status at_gemm_kernel_launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const kernel_plan *s = plan->state;
  at_gemm_arguments arguments = s->given.arguments;
  at_cuda_scope scope;
  at_gemm_bind(&arguments, at_gemm_of(plan->problem), s->swapped, operands);
  attune_status status = at_cuda_enter(&scope, plan->device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  if (plan->workspace_bytes > 0) status = at_cuda_workspace(stream, plan->workspace_bytes, &arguments.sums);
  if (status == ATTUNE_OK) status = s->mapped ? launch_mapped(s, &arguments, stream) : launch(s, &arguments, stream);
  at_cuda_leave(&scope);
  return status;
}

/* amax is 0 before the kernel raises it. */
attune_status at_gemm_kernel_launch_scaled(const at_plan *plan, const void *operands, attune_stream *stream) {
  const kernel_plan *s = plan->state;
  const at_gemm *g = at_gemm_of(plan->problem);
  const at_gemm_operands *o = operands;
  at_gemm_scaled_arguments a = {.arguments = s->given.arguments,
                                .scale_l = s->swapped ? o->scale_b : o->scale_a,
                                .scale_s = s->swapped ? o->scale_a : o->scale_b,
                                .scale_d = o->scale_d,
                                .amax = o->amax_d};
  at_cuda_scope scope;
  at_gemm_bind(&a.arguments, g, s->swapped, o);
  attune_status status = at_cuda_enter(&scope, plan->device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  if (g->scaling.amax_d)
    status = at_cuda_check(plan->device, cudaMemsetAsync(a.amax, 0, sizeof *a.amax, (cudaStream_t)stream->native),
                           "cudaMemsetAsync");
  if (status == ATTUNE_OK) status = at_jit_launch(s->kernel, &s->config, &a, stream);
  at_cuda_leave(&scope);
  return status;
}
