/* SPDX-License-Identifier: Apache-2.0
 * toy_op.c: see toy_op.h. The implementations, and the slots of at_op; what is right is in toy_reference.c. */
#include "tests/toy_op.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/toy_reference.h"

char toy_base[64];
const char *const *toy_spins;
const char *toy_refused;
_Atomic int toy_searches, toy_launches, toy_running, toy_overlaps;
_Atomic bool toy_watched;

/* ---- where the operands lie ---- */

static uint64_t places[TOY_PLACES], distances[TOY_PLACES];
static int distance_count;
int toy_place_count;
uintptr_t toy_least_aligned;
static atomic_flag noting = ATOMIC_FLAG_INIT; /* two devices may be tuned at once */

/* Which one it is of those seen. */
static int number_of(uint64_t *seen, int *count, uint64_t one) {
  for (int i = 0; i < *count; i++)
    if (seen[i] == one) return i;
  if (*count < TOY_PLACES) seen[(*count)++] = one;
  return *count - 1;
}

/* Returns the number of the placement: of how far the bias lies from x. */
static int note_place(const toy_operands *o) {
  const uintptr_t x = (uintptr_t)o->x,
                  bits = x | (uintptr_t)o->bias | (uintptr_t)o->codes | (uintptr_t)o->y | (uintptr_t)o->n,
                  low = bits & (~bits + 1);
  const uint64_t distance = (uint64_t)(uintptr_t)o->bias - x;
  while (atomic_flag_test_and_set_explicit(&noting, memory_order_acquire)) sched_yield();
  if (!toy_least_aligned || low < toy_least_aligned) toy_least_aligned = low;
  (void)number_of(places, &toy_place_count, ((uint64_t)x & 4095) << 48 ^ distance);
  const int number = number_of(distances, &distance_count, distance);
  atomic_flag_clear_explicit(&noting, memory_order_release);
  return number;
}

/* ---- implementations ---- */

static void spin_until(int64_t start, int64_t ns, int64_t cpus) {
  (void)cpus;
  while (at_now_ns() - start < ns) continue;
}
void (*toy_pass)(int64_t start, int64_t ns, int64_t cpus) = spin_until;

static bool supports(const void *problem, attune_device *device) {
  (void)problem, (void)device;
  return true;
}

static int base_configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  (void)problem, (void)device;
  if (max < 1) return 0;
  at_copy_text(out[0].text, sizeof out[0].text, toy_base);
  return 1;
}

static int spin_configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  (void)problem, (void)device;
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

static double real_at(const void *data, attune_dtype dtype, int64_t i) {
  return dtype == ATTUNE_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void put_real(void *data, attune_dtype dtype, int64_t i, double x) {
  if (dtype == ATTUNE_F64)
    ((double *)data)[i] = x;
  else
    ((float *)data)[i] = (float)x;
}

static void put_integer(void *data, attune_dtype dtype, int64_t i, uint64_t value) {
  if (dtype == ATTUNE_I64)
    ((int64_t *)data)[i] = (int64_t)value;
  else
    ((int32_t *)data)[i] = (int32_t)(uint32_t)value;
}

static void compute(const toy *g, const toy_operands *o, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const int64_t column = i % g->cols;
    const uint64_t code = g->integer == ATTUNE_I64 ? (uint64_t)((const int64_t *)o->codes)[i]
                                                   : (uint64_t)(int64_t)((const int32_t *)o->codes)[i];
    put_real(o->y, g->real, i, o->scale * log(real_at(o->x, g->real, i)) + real_at(o->bias, g->real, column));
    put_integer(o->n, g->integer, i,
                code * (uint64_t)(int64_t)g->taps[column % g->count] + (uint64_t)(int64_t)o->offset);
  }
}

static void spoil(const toy *g, const toy_operands *o, const char *fault, int64_t count) {
  const attune_dtype real = (attune_dtype)g->real;
  const size_t integer = attune_dtype_size((attune_dtype)g->integer);
  const bool bits = strcmp(fault, "bits") == 0;
  if (strcmp(fault, "wrong") == 0 || bits)
    put_real(o->y, real, count / 2, real_at(o->y, real, count / 2) + (bits ? 1e-7 * (toy_launches % 2) : 0.01));
  if (strcmp(fault, "second") == 0) ++*(unsigned char *)o->n;
  if (strcmp(fault, "behind") == 0) put_real(o->y, real, count, 0.0);
  if (strcmp(fault, "second_behind") == 0) memset((char *)o->n + (size_t)count * integer, 0, 1);
  if (strcmp(fault, "codes") == 0) ++*(unsigned char *)(uintptr_t)o->codes;
  for (int64_t i = 0; strcmp(fault, "nan") == 0 && i < count; i++)
    if (isnan(real_at(o->y, real, i))) put_real(o->y, real, i, 0.0);
}

attune_status toy_launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const int64_t start = at_now_ns();
  const toy_plan *p = plan->state;
  const toy *g = toy_of(plan->problem);
  toy_operands o = *(const toy_operands *)operands;
  const int64_t count = (int64_t)g->rows * g->cols;
  const size_t real = attune_dtype_size((attune_dtype)g->real);
  char last[8], *was = strcmp(p->fault, "skips") == 0 ? malloc((size_t)count * real) : NULL;
  (void)stream;
  toy_launches++;
  if (atomic_fetch_add(&toy_running, 1) > 0 && toy_watched) toy_overlaps++;
  if (strcmp(p->fault, "scale") == 0) o.scale = 1.0;
  if (strcmp(p->fault, "offset") == 0) o.offset = 0.0;
  char *end = (char *)o.n + (size_t)(count - 1) * attune_dtype_size((attune_dtype)g->integer);
  memcpy(last, end, attune_dtype_size((attune_dtype)g->integer));
  if (was) memcpy(was, o.y, (size_t)count * real);
  compute(g, &o, count);
  for (int64_t i = 0; was && i < count; i++)
    if (isnan(real_at(o.y, (attune_dtype)g->real, i)))
      memcpy((char *)o.y + (size_t)i * real, was + (size_t)i * real, real);
  free(was);
  if (strcmp(p->fault, "leaves") == 0) memcpy(end, last, attune_dtype_size((attune_dtype)g->integer));
  spoil(g, &o, p->fault, count);
  const int place = note_place(&o);
  int64_t ns = p->ns;
  if (place % 2 == 0) ns += p->far;
  if (p->noise) ns += (int64_t)((uint64_t)start * 0x9E3779B97F4A7C15u >> 33) % p->noise;
  toy_pass(start, ns, p->threads);
  toy_running--;
  return strcmp(p->fault, "launch") == 0 ? at_fail(ATTUNE_DEVICE_ERROR, "a launch that fails") : ATTUNE_OK;
}

at_implementation toy_base_implementation = {.name = "base",
                                             .version = 1,
                                             .backend = "host",
                                             .supports = supports,
                                             .configurations = base_configurations,
                                             .prepare = prepare,
                                             .launch = toy_launch,
                                             .destroy = destroy};
at_implementation toy_spin_implementation = {.name = "spin",
                                             .version = 1,
                                             .backend = "host",
                                             .supports = supports,
                                             .configurations = spin_configurations,
                                             .prepare = prepare,
                                             .launch = toy_launch,
                                             .destroy = destroy};
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
  (void)toy_op.buffers(problem, buffers, &count);
  for (int i = 0; i < count; i++) sum += (double)buffers[i].bytes;
  return sum;
}

static void fold(void *problem, const attune_device *device) {
  toy *g = problem;
  if (g->alignment >= at_device_alignment(device)) g->alignment = TOY_ALIGNMENT;
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

at_op toy_op;
const at_op *const toy_ops[1] = {&toy_op};

static const at_op as_it_is = {.name = "toy",
                               .id = 7,
                               .implementations = implementations,
                               .implementation_count = AT_COUNT(implementations),
                               .problem_bytes = sizeof(toy),
                               .operands_bytes = sizeof(toy_operands),
                               .format = toy_format,
                               .parse = toy_parse,
                               .family = toy_family,
                               .distance = distance,
                               .columns = toy_columns,
                               .from_fields = toy_from_fields,
                               .flops = flops,
                               .bytes = bytes,
                               .fold = fold,
                               .deterministic = deterministic,
                               .buffers = buffers,
                               .scalars = scalars,
                               .bind = bind,
                               .reference_create = toy_reference_create,
                               .reference_compare = toy_reference_compare,
                               .reference_destroy = toy_reference_destroy,
                               .special_count = toy_special_count,
                               .special_contents = toy_special_contents,
                               .special_plant = toy_special_plant,
                               .special_scalars = toy_special_scalars,
                               .special_compare = toy_special_compare,
                               .special_name = toy_special_name,
                               .case_count = toy_case_count,
                               .case_at = toy_case_at,
                               .oracle = toy_oracle};

void toy_reset(void) {
  toy_op = as_it_is;
  toy_base_implementation.version = toy_spin_implementation.version = 1;
  toy_base_implementation.depends = toy_spin_implementation.depends = NULL;
  at_copy_text(toy_base, sizeof toy_base, "ns=200000");
  toy_spins = NULL;
  toy_refused = NULL;
  toy_searches = toy_launches = toy_running = toy_overlaps = 0;
  toy_watched = false;
  toy_place_count = distance_count = 0;
  toy_least_aligned = 0;
}

__attribute__((constructor)) static void toy_open(void) {
  toy_reset();
}

at_key toy_key(const char *problem, const attune_device *device) {
  at_key key;
  if (toy_op.parse(problem, at_key_problem(&key)) != ATTUNE_OK) abort();
  at_key_set(&key, &toy_op, device);
  return key;
}
