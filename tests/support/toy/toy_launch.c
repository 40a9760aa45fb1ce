/* SPDX-License-Identifier: Apache-2.0
 * toy_launch.c: a launch of the toy operation, with the faults of its configuration, and where its operands lay. */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/host.h"
#include "tests/support/toy/toy_reference.h"

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

void toy_forget_places(void) {
  toy_place_count = distance_count = 0;
  toy_least_aligned = 0;
}

/* ---- the work ---- */

static void spin_until(int64_t start, int64_t ns, int64_t cpus) {
  (void)cpus;
  while (at_now_ns() - start < ns) continue;
}
void (*toy_pass)(int64_t start, int64_t ns, int64_t cpus) = spin_until;

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

/* ---- a launch: all of it happens when its turn in the stream comes ---- */

typedef struct work {
  const at_plan *plan;
  toy_operands operands;
  double first; /* fault frozen: of x, as it was when the launch was captured */
  bool frozen;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static void work_hard(const work *w) {
  const toy_plan *p = w->plan->state;
  const toy *g = toy_of(w->plan->problem);
  const toy_operands *o = &w->operands;
  const int64_t count = (int64_t)g->rows * g->cols;
  const size_t real = attune_dtype_size((attune_dtype)g->real), integer = attune_dtype_size((attune_dtype)g->integer);
  char last[8], *end = (char *)o->n + (size_t)(count - 1) * integer,
                *was = strcmp(p->fault, "skips") == 0 ? malloc((size_t)count * real) : NULL;
  memcpy(last, end, integer);
  if (was) memcpy(was, o->y, (size_t)count * real);
  compute(g, o, count);
  for (int64_t i = 0; was && i < count; i++)
    if (isnan(real_at(o->y, (attune_dtype)g->real, i)))
      memcpy((char *)o->y + (size_t)i * real, was + (size_t)i * real, real);
  free(was);
  if (strcmp(p->fault, "leaves") == 0) memcpy(end, last, integer);
  if (w->frozen)
    put_real(o->y, (attune_dtype)g->real, 0, o->scale * log(w->first) + real_at(o->bias, (attune_dtype)g->real, 0));
  spoil(g, o, p->fault, count);
}

static void run(const void *args) {
  const work *w = args;
  const toy_plan *p = w->plan->state;
  const int64_t start = at_now_ns();
  toy_launches++;
  if (atomic_fetch_add(&toy_running, 1) > 0 && toy_watched) toy_overlaps++;
  work_hard(w);
  int64_t ns = p->ns;
  if (note_place(&w->operands) % 2 == 0) ns += p->far;
  if (p->noise) ns += (int64_t)((uint64_t)start * 0x9E3779B97F4A7C15u >> 33) % p->noise;
  toy_pass(start, ns, p->threads);
  toy_running--;
}

attune_status toy_launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const toy_plan *p = plan->state;
  work w = {.plan = plan, .operands = *(const toy_operands *)operands};
  attune_status status = ATTUNE_OK;
  if (strcmp(p->fault, "scale") == 0) w.operands.scale = 1.0;
  if (strcmp(p->fault, "offset") == 0) w.operands.offset = 0.0;
  if (strcmp(p->fault, "frozen") == 0 && stream->capture) {
    w.frozen = true;
    w.first = real_at(w.operands.x, (attune_dtype)toy_of(plan->problem)->real, 0);
  }
  if (strcmp(p->fault, "waits") == 0 && !stream->capture) status = attune_stream_synchronize(stream);
  if (strcmp(p->fault, "early") == 0)
    run(&w);
  else if (status == ATTUNE_OK)
    status = at_host_submit(stream, run, &w, sizeof w);
  if (strcmp(p->fault, "launch") == 0) status = at_fail(ATTUNE_DEVICE_ERROR, "a launch that fails");
  return status;
}
