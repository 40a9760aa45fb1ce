/* SPDX-License-Identifier: Apache-2.0
 * fake_op.h: gemm with implementations whose cost and faults a test decides: "base", the default, and "spin", with as
 * many configurations as the test gives it. Both compute the right result by plain loops and then spin until "ns"
 * nanoseconds have passed, or let so many pass on the virtual clock. */
#ifndef AT_TEST_FAKE_OP_H
#define AT_TEST_FAKE_OP_H

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ops/gemm/host_reference.h"
#include "src/backend.h"
#include "tests/virtual_clock.h"
#include "tuning/dispatch.h"

#define FAKE_PROBLEM "gemm f32 nn 9x7x8 strict"

static char fake_base[64] = "ns=200000"; /* base's one configuration */
static const char *const *fake_spins;    /* spin's, up to NULL: "ns=100000", with ",fault=..." */
static const char *fake_refused;         /* a configuration that prepare does not know any more */
static _Atomic int fake_searches;        /* searches that came as far as verifying a winner */
static _Atomic int fake_launches;
static _Atomic int fake_running, fake_overlaps; /* launches at the same time, while it is watched */
static _Atomic bool fake_watched;

/* Where the operands of launches lay: the least alignment of all, and the placements: A's place in its page and B's
 * distance from A. */
enum { FAKE_PLACES = 256 };
static uint64_t fake_places[FAKE_PLACES];
static int fake_place_count;
static uintptr_t fake_address_bits, fake_least_aligned;
static atomic_flag fake_noting = ATOMIC_FLAG_INIT; /* two devices may be tuned at once */

static inline void fake_note_place_held(const at_gemm_operands *o) {
  const uintptr_t bits = (uintptr_t)o->a | (uintptr_t)o->b | (uintptr_t)o->d, low = bits & (~bits + 1);
  const uint64_t place = ((uint64_t)(uintptr_t)o->a & 4095) << 48 ^ ((uint64_t)(uintptr_t)o->b - (uintptr_t)o->a);
  fake_address_bits |= bits;
  if (!fake_least_aligned || low < fake_least_aligned) fake_least_aligned = low;
  for (int i = 0; i < fake_place_count; i++)
    if (fake_places[i] == place) return;
  if (fake_place_count < FAKE_PLACES) fake_places[fake_place_count++] = place;
}

static inline void fake_note_place(const at_gemm_operands *o) {
  while (atomic_flag_test_and_set_explicit(&fake_noting, memory_order_acquire)) sched_yield();
  fake_note_place_held(o);
  atomic_flag_clear_explicit(&fake_noting, memory_order_release);
}

static inline bool fake_supports(const void *problem, attune_device *device) {
  (void)problem, (void)device;
  return true;
}

static inline int fake_base_configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  (void)problem, (void)device;
  if (max < 1) return 0;
  at_copy_text(out[0].text, sizeof out[0].text, fake_base);
  return 1;
}

static inline int fake_spin_configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  (void)problem, (void)device;
  int count = 0;
  for (; fake_spins && fake_spins[count] && count < max; count++)
    at_copy_text(out[count].text, sizeof out[count].text, fake_spins[count]);
  return count;
}

/* What a plan does, read once from its configuration. */
typedef struct fake_plan {
  int64_t ns;
  int64_t far;     /* nanoseconds more where A and B lie in pages of another parity */
  int64_t noise;   /* up to so many more, drawn at each launch */
  int64_t threads; /* CPUs that are busy meanwhile, on the virtual clock */
  char fault[16];
} fake_plan;

static inline attune_status fake_prepare(at_plan *plan) {
  fake_plan *p = calloc(1, sizeof *p);
  const bool known = p && at_configuration_get(&plan->configuration, "ns", &p->ns);
  if (known) at_configuration_get(&plan->configuration, "far", &p->far);
  if (known) at_configuration_get(&plan->configuration, "noise", &p->noise);
  if (known && !at_configuration_get(&plan->configuration, "threads", &p->threads)) p->threads = 1;
  if (known) at_configuration_get_text(&plan->configuration, "fault", p->fault, sizeof p->fault);
  if (!known || strcmp(p->fault, "prepare") == 0 ||
      (fake_refused && strcmp(plan->configuration.text, fake_refused) == 0)) {
    free(p);
    return at_fail(ATTUNE_NOT_FOUND, "no configuration %s", plan->configuration.text);
  }
  plan->state = p;
  return ATTUNE_OK;
}

static inline void fake_destroy(at_plan *plan) {
  free(plan->state);
}

/* So much time has passed since `start`, on either clock; watched launches leave others the time to overlap. */
static inline void fake_pass(int64_t start, int64_t ns, int64_t cpus) {
  if (virtual_clock_runs && fake_watched) (void)nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
  if (virtual_clock_runs) virtual_clock_pass(ns, (double)cpus);
  while (at_now_ns() - start < ns) continue;
}

static inline attune_status fake_launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const int64_t start = at_now_ns();
  const fake_plan *p = plan->state;
  const at_gemm *g = at_gemm_of(plan->problem);
  const at_gemm_operands *o = operands;
  (void)stream;
  fake_launches++;
  if (atomic_fetch_add(&fake_running, 1) > 0 && fake_watched) fake_overlaps++;
  for (int64_t b = 0; b < g->batch; b++) at_gemm_plain(g, o, b, 0, g->m, 0, g->n);
  float *d = o->d;
  if (strcmp(p->fault, "wrong") == 0) d[g->m / 2] += 0.01f;
  if (strcmp(p->fault, "outside") == 0) d[g->ldd * g->n] = 0.0f;
  for (int64_t i = 0; strcmp(p->fault, "nan") == 0 && i < g->m * g->n; i++) /* packed; loses every NaN */
    if (d[i] != d[i]) d[i] = 0.0f;
  fake_note_place(o);
  int64_t ns = p->ns;
  if (((uintptr_t)o->a ^ (uintptr_t)o->b) >> 12 & 1) ns += p->far;
  if (p->noise) ns += (int64_t)((uint64_t)start * 0x9E3779B97F4A7C15u >> 33) % p->noise;
  fake_pass(start, ns, p->threads);
  fake_running--;
  return strcmp(p->fault, "launch") == 0 ? at_fail(ATTUNE_DEVICE_ERROR, "a launch that fails") : ATTUNE_OK;
}

static inline attune_status fake_reference_create(void **out, const void *problem, attune_device *device,
                                                  attune_stream *stream, void *const pointers[AT_MAX_BUFFERS]) {
  fake_searches++;
  return at_gemm_reference_create(out, problem, device, stream, pointers);
}

static at_implementation fake_base_implementation = {.name = "base",
                                                     .version = 1,
                                                     .backend = "host",
                                                     .supports = fake_supports,
                                                     .configurations = fake_base_configurations,
                                                     .prepare = fake_prepare,
                                                     .launch = fake_launch,
                                                     .destroy = fake_destroy};
static at_implementation fake_spin_implementation = {.name = "spin",
                                                     .version = 1,
                                                     .backend = "host",
                                                     .supports = fake_supports,
                                                     .configurations = fake_spin_configurations,
                                                     .prepare = fake_prepare,
                                                     .launch = fake_launch,
                                                     .destroy = fake_destroy};
static const at_implementation *const fake_implementations[] = {&fake_base_implementation, &fake_spin_implementation};
static at_op fake_op;
static const at_op *const fake_ops[] = {&fake_op};

static inline void fake_op_open(void) {
  fake_op = at_gemm_op;
  fake_op.implementations = fake_implementations;
  fake_op.implementation_count = AT_COUNT(fake_implementations);
  fake_op.reference_create = fake_reference_create;
}

/* As it is at the start of a program. */
static inline void fake_reset(void) {
  fake_op_open();
  fake_base_implementation.version = fake_spin_implementation.version = 1;
  at_copy_text(fake_base, sizeof fake_base, "ns=200000");
  fake_spins = NULL;
  fake_refused = NULL;
  fake_searches = fake_launches = fake_running = fake_overlaps = 0;
  fake_watched = false;
  fake_place_count = 0;
  fake_address_bits = fake_least_aligned = 0;
}

static inline at_key fake_key(const char *problem, const attune_device *device) {
  at_key key = {{0}};
  if (fake_op.parse(problem, at_key_problem(&key)) != ATTUNE_OK) abort();
  at_key_set(&key, &fake_op, device);
  return key;
}

#endif
