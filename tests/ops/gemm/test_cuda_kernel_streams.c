/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_kernel_streams.c: attune's own GEMM kernels give the same bits whatever runs beside them: one plan on
 * several streams at once, from a thread each, with a D and a workspace each. Exits 77 where there is no GPU. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <pthread.h>
#include <stdatomic.h>

#include "ops/gemm/implementations.h"
#include "ops/gemm/kernels/kernel.h"
#include "tests/ops/gemm/kernel_sweep.h"
#include "tests/support/gpu.h"

enum { STREAMS = 4, RUNS = 100, TOGETHER = 10, ROOM = 64, TRIED = 2 };

static attune_device *device;

/* A thread's part: RUNS runs, TOGETHER of them into as many Ds without waiting, compared with the bits of the first run
 * of all. */
typedef struct worker {
  const trial *t;
  const at_plan *plan;
  const unsigned char *expected;
  attune_stream *stream;
  unsigned char *d, *got; /* TOGETHER times D, `each` bytes apart */
  size_t each;
  attune_status status;
  int different;
} worker;

static atomic_int ready;

static attune_status run_together(const worker *w) {
  const trial *t = w->t;
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < TOGETHER && status == ATTUNE_OK; i++) {
    at_gemm_operands operands = t->operands;
    unsigned char *d = w->d + (size_t)i * w->each;
    operands.d = d + t->d.first;
    status = attune_copy(w->stream, d, t->old, t->d.bytes);
    if (status == ATTUNE_OK) status = w->plan->launch(w->plan, &operands, w->stream);
  }
  if (status == ATTUNE_OK) status = attune_copy(w->stream, w->got, w->d, TOGETHER * w->each);
  return status == ATTUNE_OK ? attune_stream_synchronize(w->stream) : status;
}

static void *work(void *given) {
  worker *w = given;
  atomic_fetch_add(&ready, 1);
  while (atomic_load(&ready) < STREAMS) continue; /* all begin together */
  for (int run = 0; run < RUNS && w->status == ATTUNE_OK; run += TOGETHER) {
    w->status = run_together(w);
    for (int i = 0; i < TOGETHER && w->status == ATTUNE_OK; i++)
      w->different += memcmp(w->got + (size_t)i * w->each, w->expected, w->t->d.bytes) != 0;
  }
  return NULL;
}

static void run_beside(const trial *t, const at_plan *plan, const unsigned char *expected, const char *what) {
  worker workers[STREAMS];
  pthread_t threads[STREAMS];
  atomic_store(&ready, 0);
  for (int i = 0; i < STREAMS; i++) {
    workers[i] = (worker){.t = t, .plan = plan, .expected = expected, .each = (t->d.bytes + 511) / 512 * 512};
    workers[i].got = malloc(TOGETHER * workers[i].each);
    assert_non_null(workers[i].got);
    OK(attune_stream_create(&workers[i].stream, device));
    OK(attune_alloc((void **)&workers[i].d, workers[i].stream, TOGETHER * workers[i].each));
    OK(attune_stream_synchronize(workers[i].stream));
  }
  for (int i = 0; i < STREAMS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  for (int i = 0; i < STREAMS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < STREAMS; i++) {
    worker *w = &workers[i];
    if (w->status != ATTUNE_OK) fail_msg("%s: %s", what, attune_status_string(w->status));
    if (w->different) fail_msg("%s: %d of %d runs of stream %d gave other bits", what, w->different, RUNS, i);
    OK(attune_free(w->d, w->stream));
    attune_stream_destroy(w->stream);
    free(w->got);
  }
}

/* The first configurations of the implementation, and the first that needs a workspace. */
static void the_same_bits(const at_implementation *implementation, const shape *s) {
  static at_configuration list[ROOM];
  trial t = {.alpha = s->alpha, .data = s->data};
  set_problem(&t.g, s);
  at_gemm *g = &t.g;
  g->deterministic = 1;
  t.a = (block){.rows = at_gemm_rows_a(g), .cols = at_gemm_cols_a(g), .ld = g->lda, .stride = g->stride_a};
  t.b = (block){.rows = at_gemm_rows_b(g), .cols = at_gemm_cols_b(g), .ld = g->ldb, .stride = g->stride_b};
  t.d = (block){.rows = g->m, .cols = g->n, .ld = g->ldd, .stride = g->stride_d};
  trial_open(&t, (const int[4]){0});
  const int count = implementation->configurations(implementation, g, device, list, ROOM);
  assert_true(count > 0);
  bool worked = false;
  for (int i = 0, tried = 0; i < count && (tried < TRIED || !worked); i++) {
    at_plan *plan = NULL;
    char what[512];
    if (tried >= TRIED && i >= 3 * TRIED) break;
    OK(at_plan_create(&plan, &at_gemm_op, implementation, &list[i], g, device));
    if (tried < TRIED || plan->workspace_bytes > 0) {
      snprintf(what, sizeof what, "%s \"%.192s\"", implementation->name, list[i].text);
      OK(attune_copy(sweep_stream, t.d.device, t.old, t.d.bytes));
      OK(plan->launch(plan, &t.operands, sweep_stream));
      unsigned char *expected = block_fetch(&t.d);
      if (!(trial_error(&t) <= 1.0)) fail_msg("%s is wrong", what);
      run_beside(&t, plan, expected, what);
      free(expected);
      tried++;
      worked = worked || plan->workspace_bytes > 0;
    }
    at_plan_destroy(plan);
  }
  trial_close(&t);
}

TEST(small_families) {
  the_same_bits(&at_gemm_sm80_batched_smem, &(shape){ATTUNE_F32, .m = 16, .n = 16, .k = 16, .batch = 3000, .alpha = 1});
  the_same_bits(&at_gemm_sm80_batched_reg_16b,
                &(shape){ATTUNE_BF16, .m = 64, .n = 48, .k = 32, .batch = 300, .alpha = 1});
  the_same_bits(&at_gemm_sm80_skinny_mmajor,
                &(shape){ATTUNE_F32, .m = 1000, .n = 16, .k = 2000, .alpha = 1, .data = DATA_WIDE});
  the_same_bits(&at_gemm_sm80_skinny_reg, &(shape){ATTUNE_F32, .ta = 1, .m = 1000, .n = 4, .k = 2000, .alpha = 1});
  the_same_bits(&at_gemm_sm80_skinny_reg,
                &(shape){ATTUNE_BF16, .ta = 1, .m = 512, .n = 8, .k = 2048, .alpha = 1, .data = DATA_NORMAL});
}

TEST(large_families) {
  the_same_bits(&at_gemm_sm80_mma,
                &(shape){ATTUNE_BF16, .tb = 1, .m = 64, .n = 64, .k = 32768, .alpha = 1, .data = DATA_NORMAL});
  the_same_bits(&at_gemm_sm80_mma, &(shape){ATTUNE_F64, .m = 500, .n = 16, .k = 3000, .alpha = 1, .data = DATA_NORMAL});
  the_same_bits(&at_gemm_sm80_simt_f32,
                &(shape){ATTUNE_F32, .tb = 1, .m = 128, .n = 128, .k = 30000, .alpha = 1, .data = DATA_WIDE});
  the_same_bits(&at_gemm_sm80_simt_f32,
                &(shape){ATTUNE_F32, .m = 512, .n = 512, .k = 512, .alpha = 1, .data = DATA_WIDE});
  if (device->properties.capability_major != 9) return;
  the_same_bits(&at_gemm_sm90_wgmma_16b,
                &(shape){ATTUNE_BF16, .tb = 1, .m = 64, .n = 64, .k = 32768, .alpha = 1, .data = DATA_NORMAL});
  the_same_bits(&at_gemm_sm90_wgmma_16b,
                &(shape){ATTUNE_F16, .m = 1000, .n = 504, .k = 776, .alpha = 1, .data = DATA_NORMAL});
  the_same_bits(&at_gemm_sm90_wgmma_bf16x6, &(shape){ATTUNE_F32, .accuracy = ATTUNE_EQUIVALENT, .m = 700, .n = 333,
                                                     .k = 1000, .alpha = 1, .data = DATA_WIDE});
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  if (attune_stream_create(&sweep_stream, device) != ATTUNE_OK) return 1;
  const int failures = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(sweep_stream);
  return failures;
}
