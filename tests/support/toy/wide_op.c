/* SPDX-License-Identifier: Apache-2.0
 * wide_op.c: see wide_op.h. Implementations, slots and public calls. */
#include "tests/support/toy/wide_op.h"
#include "tests/support/toy/call_recent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/host.h"
#include "tests/support/toy/toy_op.h"
#include "tuning/dispatch/plan_handle.h"

static const uint64_t SEAL = 0x5EA1ED0FF5EA1ED0u;

const char *const *wide_spins;
_Atomic int wide_launches, wide_unsealed, wide_alive;

/* ---- implementations ---- */

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self, (void)problem, (void)device;
  return true;
}

static int base_configurations(const at_implementation *self, const void *problem, attune_device *device,
                               at_configuration *out, int max) {
  (void)self, (void)problem, (void)device;
  if (max > 0) at_copy_text(out[0].text, sizeof out[0].text, "ns=200000");
  return max > 0;
}

static int spin_configurations(const at_implementation *self, const void *problem, attune_device *device,
                               at_configuration *out, int max) {
  (void)self, (void)problem, (void)device;
  int count = 0;
  for (; wide_spins && wide_spins[count] && count < max; count++)
    at_copy_text(out[count].text, sizeof out[count].text, wide_spins[count]);
  return count;
}

static attune_status prepare(at_plan *plan) {
  int64_t ns = 0;
  if (!at_configuration_get(&plan->configuration, "ns", &ns))
    return at_fail(ATTUNE_NOT_FOUND, "no configuration %s", plan->configuration.text);
  plan->state = (void *)(uintptr_t)ns;
  wide_alive++;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  (void)plan;
  wide_alive--;
}

typedef struct work {
  const at_plan *plan;
  wide_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static void run(const void *args) {
  const work *w = args;
  const int64_t start = at_now_ns();
  wide_launches++;
  if (w->operands.seal != SEAL) wide_unsealed++;
  wide_compute((const wide *)w->plan->problem, &w->operands);
  toy_pass(start, (int64_t)(uintptr_t)w->plan->state, 1);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  work w = {.plan = plan};
  memcpy(&w.operands, operands, sizeof w.operands);
  return at_host_submit(stream, run, &w, sizeof w);
}

#define IMPLEMENTATION(called)                                                                                         \
  {                                                                                                                    \
    .name = #called, .version = 1, .backend = "host", .supports = supports, .configurations = called##_configurations, \
    .prepare = prepare, .launch = launch, .destroy = destroy                                                           \
  }
at_implementation wide_base = IMPLEMENTATION(base), wide_spin = IMPLEMENTATION(spin);
static const at_implementation *const implementations[] = {&wide_base, &wide_spin};

/* ---- slots ---- */

static size_t problem_size(const void *problem) {
  return WIDE_HEAD + (size_t)(((const wide *)problem)->letters + 7) / 8 * 8;
}

static double distance(const void *problem, const void *other) {
  return fabs(log2((double)((const wide *)problem)->elements / ((const wide *)other)->elements));
}

static double flops(const void *problem) {
  const wide *g = problem;
  return 2.0 * g->elements * g->inputs * g->outputs;
}

static double bytes(const void *problem) {
  const wide *g = problem;
  return 8.0 * g->elements * (g->inputs + g->outputs);
}

static void fold(void *problem, const attune_device *device) {
  wide *g = problem;
  g->alignment = at_alignment_fold(device, g->alignment);
}

static bool deterministic(const void *problem) {
  (void)problem;
  return false;
}

static attune_status buffers(const void *problem, at_buffer out[AT_MAX_BUFFERS], int *count) {
  const wide *g = problem;
  *count = g->inputs + g->outputs;
  for (int i = 0; i < *count; i++)
    out[i] = (at_buffer){.bytes = (size_t)g->elements * sizeof(double),
                         .alignment = g->alignment,
                         .dtype = ATTUNE_F64,
                         .input = i < g->inputs,
                         .output = i >= g->inputs};
  return ATTUNE_OK;
}

static void bind(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *with, void *operands) {
  const wide *g = problem;
  wide_operands *o = operands;
  (void)with;
  memset(o, 0, sizeof *o);
  for (int k = 0; k < g->inputs; k++) o->x[k] = pointers[k];
  for (int j = 0; j < g->outputs; j++) o->y[j] = pointers[g->inputs + j];
  o->seal = SEAL;
}

/* Some of all lengths and of all numbers of tensors. */
static int case_count(void) {
  return 64;
}

static bool case_at(int index, void *problem) {
  char text[AT_PROBLEM_CHARS], shape[32];
  (void)wide_text(text, 1 + 37 * index % 50, 1 + 62 * index, index);
  snprintf(shape, sizeof shape, " %d:%d ", 1 + index % WIDE_INPUTS, 1 + index / 8);
  char *at = strstr(text, " 16:8 ");
  memmove(at + strlen(shape), at + 6, strlen(at + 6) + 1);
  memcpy(at, shape, strlen(shape));
  return wide_parse(text, problem) == ATTUNE_OK;
}

/* ---- the public calls ---- */

static uintptr_t bits_of(const wide *g, const wide_operands *o) {
  uintptr_t bits = 0;
  for (int k = 0; k < g->inputs; k++) bits |= (uintptr_t)o->x[k];
  for (int j = 0; j < g->outputs; j++) bits |= (uintptr_t)o->y[j];
  return bits;
}

static void key_of(at_key *key, const wide *problem, uint8_t alignment) {
  wide *g = memcpy(at_key_problem(key), problem, problem_size(problem));
  g->alignment = alignment;
}

static attune_status call(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands) {
  if (!tuner || !stream || !problem || !operands) return at_fail(ATTUNE_INVALID_ARGUMENT, "something is NULL");
  const uint8_t alignment = at_alignment_on(stream->device, bits_of(problem, operands));
  const wide *g = problem;
  at_call_signature asked = {
      .use = at_call_signature_use(wide_op.id, alignment, true), .rest = g->recipe, .rest_bytes = g->letters};
  memcpy(&asked.words, g, offsetof(wide, alignment));
  const at_plan *plan = at_call_recent(tuner, stream, problem, &asked);
  if (plan) return plan->launch(plan, operands, stream);
  at_key key;
  key_of(&key, g, alignment);
  const attune_status status = at_call_plan(tuner, stream, &wide_op, &key, 0, &asked, &plan);
  return status == ATTUNE_OK ? plan->launch(plan, operands, stream) : status;
}

static attune_status plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream, const void *problem,
                                 const void *operands) {
  *out = NULL;
  if (!tuner || !stream || !problem || !operands) return at_fail(ATTUNE_INVALID_ARGUMENT, "something is NULL");
  const uint8_t alignment = at_alignment_on(stream->device, bits_of(problem, operands));
  at_key key;
  key_of(&key, problem, alignment);
  return at_plan_handle_create(out, tuner, stream, &wide_op, &key, 0,
                               at_alignment_least(stream->device, alignment) - 1);
}

static attune_status plan_run(const attune_plan *plan, attune_stream *stream, const void *operands) {
  if (!at_plan_handle_fits(plan, &wide_op, stream, operands))
    return at_plan_handle_fail(plan, &wide_op, stream, operands);
  if (bits_of((const wide *)plan->problem, operands) & (uintptr_t)plan->caller_flags)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "operands are less aligned than those that the plan was made with");
  at_plan_handle_count(plan, stream);
  return plan->launch(plan, operands, stream);
}

at_op wide_op;
const at_op *const wide_ops[1] = {&wide_op};

static const at_problem_type problem_type = {.format = wide_format,
                                             .parse = wide_parse,
                                             .family = wide_family,
                                             .distance = distance,
                                             .columns = wide_columns,
                                             .from_fields = wide_from_fields,
                                             .flops = flops,
                                             .bytes = bytes,
                                             .fold = fold,
                                             .deterministic = deterministic};
static const at_operand_type operand_type = {.buffers = buffers, .bind = bind};
static const at_reference_type reference_type = {
    .create = wide_reference_create, .compare = wide_reference_compare, .destroy = wide_reference_destroy};

static const at_op as_it_is = {.name = "wide",
                               .id = 8,
                               .implementations = implementations,
                               .implementation_count = AT_COUNT(implementations),
                               .problem_bytes = WIDE_BYTES,
                               .problem_size = problem_size,
                               .operands_bytes = sizeof(wide_operands),
                               .problem = &problem_type,
                               .operands = &operand_type,
                               .reference = &reference_type};

const at_op_test wide_op_test = {.op = &wide_op,
                                 .case_count = case_count,
                                 .case_at = case_at,
                                 .oracle = wide_oracle,
                                 .call = call,
                                 .plan_create = plan_create,
                                 .plan_run = plan_run};

void wide_reset(void) {
  wide_op = as_it_is;
  wide_spins = NULL;
  wide_launches = wide_unsealed = 0;
}

__attribute__((constructor)) static void wide_open(void) {
  wide_reset();
}

const char *wide_text(char out[AT_PROBLEM_CHARS], int elements, int letters, int number) {
  static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789+*";
  size_t at = 0;
  (void)at_append(out, AT_PROBLEM_CHARS, &at, "wide %d 16:8 strict ", elements);
  uint64_t state = (uint64_t)number * 0x9E3779B97F4A7C15u + 1;
  for (int i = 0; i < letters; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    out[at++] = LETTERS[(state >> 33) % (sizeof LETTERS - 1)];
  }
  out[at] = '\0';
  return out;
}

at_key wide_key(const char *problem, const attune_device *device) {
  at_key key;
  if (wide_op.problem->parse(problem, at_key_problem(&key)) != ATTUNE_OK) abort();
  at_key_set(&key, &wide_op, device);
  return key;
}
