/* SPDX-License-Identifier: Apache-2.0
 * toy_op.c: see toy_op.h. The implementations, and the slots of at_op; a launch is in toy_launch.c, what is right in
 * toy_reference.c, the public calls in toy_call.c. */
#include "tests/support/toy/toy_op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/toy/toy_reference.h"

char toy_base[64];
const char *const *toy_spins;
const char *toy_refused;
_Atomic int toy_searches, toy_launches, toy_running, toy_overlaps;
_Atomic bool toy_watched;

/* ---- implementations ---- */

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self, (void)problem, (void)device;
  return true;
}

static int base_configurations(const at_implementation *self, const void *problem, attune_device *device,
                               at_configuration *out, int max) {
  (void)self, (void)problem, (void)device;
  if (max < 1) return 0;
  at_copy_text(out[0].text, sizeof out[0].text, toy_base);
  return 1;
}

static int spin_configurations(const at_implementation *self, const void *problem, attune_device *device,
                               at_configuration *out, int max) {
  (void)self, (void)problem, (void)device;
  int count = 0;
  for (; toy_spins && toy_spins[count] && count < max; count++)
    at_copy_text(out[count].text, sizeof out[count].text, toy_spins[count]);
  return count;
}

static attune_status prepare(at_plan *plan) {
  toy_plan *p = calloc(1, sizeof *p);
  const bool known = p && at_configuration_get(&plan->configuration, "ns", &p->ns);
  if (known) at_configuration_get(&plan->configuration, "far", &p->far);
  if (known) at_configuration_get(&plan->configuration, "noise", &p->noise);
  if (known && !at_configuration_get(&plan->configuration, "threads", &p->threads)) p->threads = 1;
  if (known) at_configuration_get_text(&plan->configuration, "fault", p->fault, sizeof p->fault);
  if (!known || strcmp(p->fault, "prepare") == 0 ||
      (toy_refused && strcmp(plan->configuration.text, toy_refused) == 0)) {
    free(p);
    return at_fail(ATTUNE_NOT_FOUND, "no configuration %s", plan->configuration.text);
  }
  plan->state = p;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  free(plan->state);
}

static const at_implementation base_as_it_is = {.name = "base",
                                                .version = 1,
                                                .backend = "host",
                                                .supports = supports,
                                                .configurations = base_configurations,
                                                .prepare = prepare,
                                                .launch = toy_launch,
                                                .destroy = destroy};
static const at_implementation spin_as_it_is = {.name = "spin",
                                                .version = 1,
                                                .backend = "host",
                                                .supports = supports,
                                                .configurations = spin_configurations,
                                                .prepare = prepare,
                                                .launch = toy_launch,
                                                .destroy = destroy};
at_implementation toy_base_implementation, toy_spin_implementation;
static const at_implementation *const implementations[] = {&toy_base_implementation, &toy_spin_implementation};

/* ---- slots ---- */

static double distance(const void *problem, const void *other) {
  const toy *g = toy_of(problem), *h = toy_of(other);
  return fabs(log2((double)g->rows / h->rows)) + fabs(log2((double)g->cols / h->cols));
}

static double flops(const void *problem) {
  return 20.0 * toy_of(problem)->rows * toy_of(problem)->cols;
}

static double bytes(const void *problem) {
  at_buffer buffers[AT_MAX_BUFFERS];
  int count = 0;
  double sum = 0.0;
  (void)toy_op.operands->buffers(problem, buffers, &count);
  for (int i = 0; i < count; i++) sum += (double)buffers[i].bytes;
  return sum;
}

static void fold(void *problem, const attune_device *device) {
  toy *g = problem;
  g->alignment = at_alignment_fold(device, g->alignment);
}

static bool deterministic(const void *problem) {
  return toy_of(problem)->deterministic != 0;
}

static attune_status buffers(const void *problem, at_buffer out[AT_MAX_BUFFERS], int *count) {
  const toy *g = toy_of(problem);
  const size_t elements = (size_t)g->rows * (size_t)g->cols;
  for (int i = 0; i < TOY_BUFFERS; i++) {
    const bool integer = i == TOY_CODES || i == TOY_N;
    const attune_dtype dtype = (attune_dtype)(integer ? g->integer : g->real);
    const size_t size = attune_dtype_size(dtype);
    out[i] = (at_buffer){.bytes = (i == TOY_BIAS ? (size_t)g->cols : elements) * size,
                         .alignment = g->alignment > size ? g->alignment : size,
                         .dtype = dtype,
                         .input = i < TOY_Y,
                         .output = i >= TOY_Y};
  }
  out[TOY_X].range = (at_range){0.25, 4.0};
  out[TOY_CODES].range = (at_range){-1000.0, 1000.0};
  *count = TOY_BUFFERS;
  return ATTUNE_OK;
}

static int scalars(const void *problem, at_scalar out[AT_MAX_SCALARS]) {
  (void)problem;
  out[TOY_SCALE] = (at_scalar){"scale", 1.0, {0.5, 2.5}};
  out[TOY_OFFSET] = (at_scalar){"offset", 0.0, {-64.0, 64.0}};
  return TOY_SCALARS;
}

static void bind(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *with, void *operands) {
  (void)problem;
  *(toy_operands *)operands = (toy_operands){.scale = with[TOY_SCALE],
                                             .offset = with[TOY_OFFSET],
                                             .x = pointers[TOY_X],
                                             .bias = pointers[TOY_BIAS],
                                             .codes = pointers[TOY_CODES],
                                             .y = pointers[TOY_Y],
                                             .n = pointers[TOY_N]};
}

attune_status toy_reference_create(void **out, const void *problem, attune_device *device, attune_stream *stream,
                                   void *const pointers[AT_MAX_BUFFERS]) {
  (void)device;
  toy_searches++;
  return toy_reference_make(out, problem, stream, pointers);
}

/* ---- the tables, which tests may change ---- */

static const at_problem_type problem_as_it_is = {.format = toy_format,
                                                 .parse = toy_parse,
                                                 .family = toy_family,
                                                 .distance = distance,
                                                 .columns = toy_columns,
                                                 .from_fields = toy_from_fields,
                                                 .flops = flops,
                                                 .bytes = bytes,
                                                 .fold = fold,
                                                 .deterministic = deterministic};
static const at_operand_type operands_as_they_are = {.buffers = buffers, .scalars = scalars, .bind = bind};
static const at_reference_type reference_as_it_is = {
    .create = toy_reference_create, .compare = toy_reference_compare, .destroy = toy_reference_destroy};
static const at_special_values specials = {.count = toy_special_count,
                                           .contents = toy_special_contents,
                                           .plant = toy_special_plant,
                                           .scalars = toy_special_scalars,
                                           .compare = toy_special_compare,
                                           .name = toy_special_name};

at_problem_type toy_problem_type;
at_operand_type toy_operand_type;
at_reference_type toy_reference_type;
at_op toy_op;
const at_op *const toy_ops[1] = {&toy_op};

static const at_op as_it_is = {.name = "toy",
                               .id = 7,
                               .implementations = implementations,
                               .implementation_count = AT_COUNT(implementations),
                               .problem_bytes = sizeof(toy),
                               .operands_bytes = sizeof(toy_operands),
                               .problem = &toy_problem_type,
                               .operands = &toy_operand_type,
                               .reference = &toy_reference_type,
                               .specials = &specials};

at_op_test toy_op_test = {.op = &toy_op,
                          .case_count = toy_case_count,
                          .case_at = toy_case_at,
                          .oracle = toy_oracle,
                          .call = toy_call,
                          .plan_create = toy_plan_create,
                          .plan_run = toy_plan_run};

void toy_reset(void) {
  toy_op = as_it_is;
  toy_problem_type = problem_as_it_is;
  toy_operand_type = operands_as_they_are;
  toy_reference_type = reference_as_it_is;
  toy_base_implementation = base_as_it_is;
  toy_spin_implementation = spin_as_it_is;
  at_copy_text(toy_base, sizeof toy_base, "ns=200000");
  toy_spins = NULL;
  toy_refused = NULL;
  toy_searches = toy_launches = toy_running = toy_overlaps = 0;
  toy_watched = false;
  toy_forget_places();
}

/* Before a program's own constructors, which may change what this sets. */
__attribute__((constructor(101))) static void toy_open(void) {
  toy_reset();
}

at_key toy_key(const char *problem, const attune_device *device) {
  at_key key;
  if (toy_op.problem->parse(problem, at_key_problem(&key)) != ATTUNE_OK) abort();
  at_key_set(&key, &toy_op, device);
  return key;
}
