/* SPDX-License-Identifier: Apache-2.0
 * host_each.c: a batch whose matrices arrays of pointers name, product by product on the host: by any implementation
 * of one product (inner.h), one after the other or several at once: "matrices=2,product=host_small,...". */
#include <stdlib.h>

#include "ops/gemm/inner.h"
#include "ops/gemm/problem/arrays.h"
#include "src/host/host.h"
#include "src/host/threads.h"

enum { MOST_OF_ONE = 24 }; /* configurations of one implementation that a search tries */

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  if (!at_gemm_of(problem)->pointers) return false;
  const at_gemm one = at_gemm_one_of(at_gemm_of(problem));
  return at_gemm_inner_any(&one, device);
}

/* ---- configurations ---- */

/* Below this many operations a thread costs more than it gives. */
#define FLOPS_PER_THREAD 20e3

static int at_once(const at_gemm *g) {
  const double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
  int threads = at_cpu_count() < g->batch ? at_cpu_count() : (int)g->batch;
  while (threads > 1 && flops < FLOPS_PER_THREAD * (double)threads) threads /= 2;
  return threads;
}

static bool runs_alone(const at_configuration *configuration) {
  int64_t threads = 1;
  return !at_configuration_get(configuration, "threads", &threads) || threads == 1;
}

/* Puts "matrices=N" before the text. */
static bool put_matrices(at_configuration *configuration, int matrices) {
  at_configuration whole;
  size_t at = 0;
  if (!at_append(whole.text, sizeof whole.text, &at, "matrices=%d,%s", matrices, configuration->text)) return false;
  *configuration = whole;
  return true;
}

/* Each text as it is, a matrix at a time; before it, with several at once where it does not take threads itself. */
static int spread(const at_configuration *texts, int count, int most, at_configuration *out, int max) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    if (most > 1 && runs_alone(&texts[i]) && kept < max) {
      out[kept] = texts[i];
      kept += put_matrices(&out[kept], most);
    }
    if (kept == max) break;
    out[kept] = texts[i];
    kept += put_matrices(&out[kept], 1);
  }
  return kept;
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  const at_gemm one = at_gemm_one_of(at_gemm_of(problem));
  const int most = at_once(at_gemm_of(problem));
  int count = 0;
  (void)self;
  for (size_t i = 0; i < at_gemm_op.implementation_count && count < max; i++) {
    const at_implementation *maker = at_gemm_inner(i, &one, device);
    at_configuration texts[MOST_OF_ONE];
    if (!maker || (maker->fallback && count > 0)) continue;
    const int found = maker->configurations(maker, &one, device, texts, MOST_OF_ONE);
    count += spread(texts, at_gemm_inner_prefix(maker, texts, found), most, out + count, max - count);
  }
  return count;
}

static bool untuned(const at_implementation *self, const void *problem, attune_device *device, at_configuration *out) {
  const at_gemm one = at_gemm_one_of(at_gemm_of(problem));
  (void)self;
  return at_gemm_inner_untuned(&one, device, out) && put_matrices(out, 1);
}

static int neighbours(const at_implementation *self, const void *problem, attune_device *device,
                      const at_configuration *leader, at_configuration *out, int max) {
  const at_gemm one = at_gemm_one_of(at_gemm_of(problem));
  at_configuration inner, texts[MOST_OF_ONE];
  int64_t matrices = 1;
  const at_implementation *maker = at_gemm_inner_read(self, leader, device, &inner);
  if (!maker || !maker->neighbours || !at_configuration_get(leader, "matrices", &matrices)) return 0;
  const int found = maker->neighbours(maker, &one, device, &inner, texts, MOST_OF_ONE);
  return spread(texts, at_gemm_inner_prefix(maker, texts, found), (int)matrices, out, max);
}

/* ---- plans ---- */

typedef struct each_plan {
  at_plan *product;
  attune_stream *at_once; /* the default stream: its work is done in the calling thread */
  int matrices;           /* at once */
} each_plan;

static void destroy(at_plan *plan) {
  each_plan *s = plan->state;
  if (s && s->product) at_plan_destroy(s->product);
  free(s);
  plan->state = NULL;
}

static attune_status prepare(at_plan *plan) {
  int64_t matrices = 0;
  const at_gemm *g = at_gemm_of(plan->problem), one = at_gemm_one_of(g);
  if (!g->pointers || !at_configuration_get(&plan->configuration, "matrices", &matrices) || matrices < 1 ||
      matrices > INT32_MAX)
    return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; host_each does not have it for this problem",
                   plan->configuration.text);
  each_plan *s = calloc(1, sizeof *s);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of host_each");
  s->matrices = (int)matrices;
  s->at_once = attune_stream_default(plan->device);
  plan->state = s;
  const attune_status status = at_gemm_inner_plan(&s->product, plan, &one);
  if (status != ATTUNE_OK) destroy(plan);
  return status;
}

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

/* One share of the matrices. */
static void run_share(void *arg, const at_team *team) {
  const work *w = arg;
  const at_gemm *g = at_gemm_of(w->plan->problem);
  const each_plan *s = w->plan->state;
  const int64_t from = g->batch * team->rank / team->size, to = g->batch * (team->rank + 1) / team->size;
  for (int64_t i = from; i < to; i++) {
    const at_gemm_operands one = at_gemm_operands_at(g, &w->operands, i);
    (void)s->product->launch(s->product, &one, s->at_once);
  }
}

static void run(const void *args) {
  const work *w = args;
  const int matrices = ((const each_plan *)w->plan->state)->matrices;
  if (matrices > 1)
    at_parallel(matrices, run_share, (void *)(uintptr_t)w);
  else
    run_share((void *)(uintptr_t)w, &(at_team){.rank = 0, .size = 1});
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const work w = {plan, *(const at_gemm_operands *)operands};
  return at_host_submit(stream, run, &w, sizeof w);
}

const at_implementation at_gemm_host_each = {
    .name = "host_each",
    .version = 1,
    .backend = "host",
    .supports = supports,
    .configurations = configurations,
    .untuned = untuned,
    .neighbours = neighbours,
    .prepare = prepare,
    .launch = launch,
    .destroy = destroy,
    .depends = at_gemm_inner_depends,
};
