/* SPDX-License-Identifier: Apache-2.0
 * host_libxsmm.c: f32 and f64 products of small matrices by kernels that LIBXSMM compiles for their shape. They know
 * alpha = 1 and beta = 0 or 1 only; others go by way of sums. A batch may be shared among threads. */
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/host/blocked_run.h"
#include "ops/gemm/host/libxsmm/libxsmm_library.h"
#include "ops/gemm/host/small_run.h"
#include "src/host/host.h"
#include "src/host/threads.h"
#include "tuning/op/tunables.h"

typedef struct state {
  at_libxsmm_kernel plain, onto,
      sums; /* D = A B; D = D + A B where C is D, else NULL; the product alone, for `scale` */
  const at_gemm *g;
  int64_t size, padded; /* bytes of an element; rows between the columns of the sums */
  int threads;
  void (*scale)(const at_small_scale *scale);
} state;

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

/* ---- runs ---- */

/* Matrix i of the batch. */
static inline at_gemm_operands matrix(const state *s, const at_gemm_operands *o, int64_t i) {
  const at_gemm *g = s->g;
  at_gemm_operands one = *o;
  one.a = (const char *)o->a + i * g->stride_a * s->size;
  one.b = (const char *)o->b + i * g->stride_b * s->size;
  one.d = (char *)o->d + i * g->stride_d * s->size;
  if (g->c != AT_C_NONE) one.c = (const char *)o->c + i * g->stride_c * s->size;
  return one;
}

/* Kernels for this alpha and beta; NULL: by way of sums. Zeros by their bits: -0 is none. */
static inline at_libxsmm_kernel kernel_of(const state *s, const at_gemm_operands *o) {
  const double one = 1.0, zero = 0.0;
  if (AT_UNLIKELY(memcmp(&o->alpha, &one, sizeof one) != 0)) return NULL;
  if (AT_LIKELY(s->g->c == AT_C_NONE || memcmp(&o->beta, &zero, sizeof zero) == 0)) return s->plain;
  return memcmp(&o->beta, &one, sizeof one) == 0 ? s->onto : NULL;
}

/* The process ends, and the kernels are gone, or there is no memory for the sums: attune's own loops are still
 * there. */
static void run_without_library(const at_gemm *g, const at_gemm_operands *operands) {
  at_blocked_options options;
  at_blocked_defaults(&options, g, at_blocked_isa_find(NULL));
  at_blocked_run(g, operands, &options);
}

/* D = alpha sums + beta C. */
static void run_sums(const state *s, const at_gemm_operands *o, void *sums) {
  const at_gemm *g = s->g;
  const bool reads_c = g->c != AT_C_NONE && o->beta != 0.0;
  s->sums(o->a, o->b, sums);
  s->scale(&(at_small_scale){.alpha = o->alpha,
                             .beta = reads_c ? o->beta : 0.0,
                             .sums = sums,
                             .c = reads_c ? o->c : NULL,
                             .d = o->d,
                             .rows = g->m,
                             .columns = g->n,
                             .padded = s->padded,
                             .ldc = g->ldc,
                             .ldd = g->ldd});
}

static bool run_range(const state *s, const at_gemm_operands *o, int64_t from, int64_t to) {
  const at_libxsmm_kernel kernel = kernel_of(s, o);
  void *sums = kernel ? NULL : at_host_scratch((size_t)(s->padded * s->g->n * s->size));
  if (!kernel && !sums) return false;
  for (int64_t i = from; i < to; i++) {
    const at_gemm_operands one = matrix(s, o, i);
    if (AT_LIKELY(kernel))
      kernel(one.a, one.b, one.d);
    else
      run_sums(s, &one, sums);
  }
  return true;
}

typedef struct job {
  const state *s;
  const at_gemm_operands *o;
  _Atomic(bool) failed;
} job;

static void run_share(void *arg, const at_team *team) {
  job *j = arg;
  const int64_t batch = j->s->g->batch;
  if (!run_range(j->s, j->o, batch * team->rank / team->size, batch * (team->rank + 1) / team->size)) j->failed = true;
}

static bool run_all(const state *s, const at_gemm_operands *o) {
  if (s->threads <= 1) return run_range(s, o, 0, s->g->batch);
  job j = {.s = s, .o = o};
  at_parallel(s->threads, run_share, &j);
  return !j.failed;
}

static void run_now(const at_plan *plan, const at_gemm_operands *o) {
  const state *s = (const state *)plan->state;
  struct at_visitor *mine = at_libxsmm_enter();
  if (AT_LIKELY(mine && s->g->batch == 1)) {
    const at_libxsmm_kernel kernel = kernel_of(s, o);
    if (AT_LIKELY(kernel)) {
      kernel(o->a, o->b, o->d);
      at_libxsmm_leave(mine);
      return;
    }
  }
  const bool done = mine && run_all(s, o);
  if (mine) at_libxsmm_leave(mine);
  if (!done) run_without_library(s->g, o);
}

static void run(const void *args) {
  const work *w = (const work *)args;
  run_now(w->plan, &w->operands);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  if (at_host_inline(stream)) {
    run_now(plan, (const at_gemm_operands *)operands);
    return ATTUNE_OK;
  }
  work w = {plan, *(const at_gemm_operands *)operands};
  return at_host_submit(stream, run, &w, sizeof w);
}

/* ---- configurations: library=libxsmm-1.17-hsw ---- */

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                       \
  TEXT("library", library, 64, "version and instruction set of the library, `libxsmm-1.17-hsw`") \
  NUMBER("threads", threads, NULL, 1, 4096, AT_LEFT_OUT, "threads that share the batch; left out for one product")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

static at_libxsmm_shape shape_of(const at_gemm *g, int64_t ldc, bool onto) {
  return (at_libxsmm_shape){.f64 = g->dtype == ATTUNE_F64,
                            .trans_b = g->trans_b,
                            .onto = onto,
                            .m = g->m,
                            .n = g->n,
                            .k = g->k,
                            .lda = g->lda,
                            .ldb = g->ldb,
                            .ldc = ldc};
}

/* Not where the library's instruction set has no kernel like it. */
static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  const at_gemm *g = at_gemm_of(problem);
  if (device->backend.kind != ATTUNE_DEVICE_HOST || !at_gemm_plain_product(g) || !at_small_takes(g) ||
      at_gemm_complex(g->dtype) || g->trans_a)
    return false;
  const at_libxsmm_shape shape = shape_of(g, g->ldd, false);
  return at_libxsmm_find(&shape) != NULL;
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  (void)self;
  (void)device;
  const at_gemm *g = at_gemm_of(problem);
  const int threads = at_small_threads(g);
  choice c = {.threads = g->batch == 1 ? 0 : threads};
  int count = 0;
  if (!at_copy_text(c.library, sizeof c.library, at_libxsmm_id())) return 0;
  if (count < max) count += at_tunables_add(&tunables, out, count, &c);
  c.threads = 1;
  if (count < max && threads > 1) count += at_tunables_add(&tunables, out, count, &c);
  return count;
}

static bool find_kernels(state *s) {
  const at_gemm *g = s->g;
  const at_small_ops *ops = at_blocked_isa_find(NULL)->small[g->dtype == ATTUNE_F64 ? AT_SMALL_F64 : AT_SMALL_F32];
  s->scale = ops->scale;
  s->padded = (g->m + ops->lanes - 1) / ops->lanes * ops->lanes;
  const at_libxsmm_shape plain = shape_of(g, g->ldd, false), onto = shape_of(g, g->ldd, true),
                         sums = shape_of(g, s->padded, false);
  s->plain = at_libxsmm_find(&plain);
  s->onto = g->c == AT_C_INPLACE ? at_libxsmm_find(&onto) : NULL;
  s->sums = at_libxsmm_find(&sums);
  return s->plain && s->sums;
}

static attune_status prepare(at_plan *plan) {
  const at_gemm *g = at_gemm_of(plan->problem);
  choice c;
  if (!at_tunables_parse(&tunables, &c, &plan->configuration) || (c.threads == 0) != (g->batch == 1))
    return at_fail(ATTUNE_NOT_FOUND,
                   "configuration is %s; should be library=NAME-VERSION, for a batch with threads=1..4096",
                   plan->configuration.text);
  if (strcmp(c.library, at_libxsmm_id()) != 0)
    return at_fail(ATTUNE_NOT_FOUND, "library %s is not on this machine", c.library);
  state *s = malloc(sizeof *s);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of host_libxsmm");
  *s = (state){.g = g, .size = g->dtype == ATTUNE_F64 ? 8 : 4, .threads = c.threads};
  if (!find_kernels(s)) {
    free(s);
    return at_fail(ATTUNE_NOT_FOUND, "%s has no kernel for this problem", c.library);
  }
  plan->state = s;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  free(plan->state);
  plan->state = NULL;
}

/* Sums are scaled by the best instruction set, whatever the library's is. */
static bool depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                    char *out, size_t size) {
  (void)self;
  (void)configuration;
  (void)device;
  return at_copy_text(out, size, at_libxsmm_id());
}

const at_implementation at_gemm_host_libxsmm = {
    .name = "host_libxsmm",
    .version = 1,
    .backend = "host",
    .tunables = &tunables,
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .launch = launch,
    .destroy = destroy,
    .depends = depends,
};
