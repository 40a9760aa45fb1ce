/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_batched.c: arrays of pointers on a GPU, in host memory and in device memory: results, capture, tuning,
 * arrays on the wrong side. Exits 77 where there is no GPU. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include <stdlib.h>

#include "tests/support/gpu.h"

enum { BATCH = 70, SIDE = 24, ELEMENTS = SIDE * SIDE, COUNT = BATCH * ELEMENTS };

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;

/* Matrices and arrays in device memory, and the expected results. */
typedef struct scene {
  attune_gemm_problem p;
  attune_gemm_batched_operands o;
  float a[COUNT], b[COUNT], d[COUNT], c[COUNT], got[COUNT];
  char *on_device[4];       /* a, b, d, c */
  void *pointers[4][BATCH]; /* into them, backwards */
  void *arrays;             /* the same in device memory */
} scene;

static float value_of(int i, int salt) {
  return (float)((i * 7 + salt * 5 + i / 11) % 7 - 3);
}

/* Those of the scene, as its problem wants them. */
static void **arrays_of(scene *s) {
  return s->p.pointers == ATTUNE_POINTERS_HOST ? &s->pointers[0][0] : s->arrays;
}

static void open_scene(scene *s, attune_pointers pointers) {
  float *const all[] = {s->a, s->b, s->d, s->c};
  OK(attune_alloc(&s->arrays, stream, sizeof s->pointers));
  for (int which = 0; which < 4; which++) {
    void *memory = NULL;
    OK(attune_alloc(&memory, stream, sizeof s->a));
    s->on_device[which] = memory;
    for (int i = 0; i < COUNT; i++) all[which][i] = value_of(i, which);
    for (int i = 0; i < BATCH; i++)
      s->pointers[which][i] = s->on_device[which] + (size_t)(BATCH - 1 - i) * ELEMENTS * sizeof(float);
    OK(attune_copy(stream, memory, all[which], sizeof s->a));
  }
  s->pointers[0][3] = s->pointers[0][4]; /* an input twice */
  OK(attune_copy(stream, s->arrays, s->pointers, sizeof s->pointers));
  OK(attune_stream_synchronize(stream));
  s->p = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
  s->p.m = 20, s->p.n = 19, s->p.k = 18, s->p.batch = BATCH;
  s->p.lda = s->p.ldb = s->p.ldc = s->p.ldd = SIDE;
  s->p.trans_b = ATTUNE_T;
  s->p.pointers = (uint8_t)pointers;
  void **const from = arrays_of(s);
  s->o = (attune_gemm_batched_operands){.alpha = 2.0,
                                        .a = (const void *const *)from,
                                        .b = (const void *const *)(from + BATCH),
                                        .d = from + 2 * (size_t)BATCH};
}

static void close_scene(scene *s) {
  for (int i = 0; i < 4; i++) OK(attune_free(s->on_device[i], stream));
  OK(attune_free(s->arrays, stream));
}

static void check_scene(scene *s) {
  OK(attune_copy(stream, s->got, s->on_device[2], sizeof s->got));
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < BATCH; i++)
    for (int column = 0; column < SIDE; column++)
      for (int row = 0; row < SIDE; row++) {
        const int place = BATCH - 1 - i, at = place * ELEMENTS + row + column * SIDE, of_a = i == 3 ? place - 1 : place;
        float sum = 0.0f;
        for (int k = 0; k < s->p.k; k++)
          sum += s->a[of_a * ELEMENTS + row + k * SIDE] * s->b[place * ELEMENTS + column + k * SIDE];
        const float *const c = s->o.c == (const void *)s->o.d ? s->d : s->c;
        const float want = row < s->p.m && column < s->p.n
                               ? (float)s->o.alpha * sum + (s->o.beta != 0.0 ? (float)s->o.beta * c[at] : 0.0f)
                               : s->d[at];
        if (s->got[at] != want)
          fail_msg("matrix %d (%d,%d) is %g; should be %g", i, row, column, (double)s->got[at], (double)want);
      }
}

static void restore(scene *s) {
  OK(attune_copy(stream, s->on_device[2], s->d, sizeof s->d));
}

static void try_scalars(scene *s, double alpha, double beta, bool apart) {
  s->o.alpha = alpha, s->o.beta = beta;
  s->o.c = beta != 0.0 ? (const void *const *)s->o.d : NULL;
  if (apart) s->o.c = (const void *const *)(arrays_of(s) + 3 * (size_t)BATCH);
  restore(s);
  OK(attune_gemm_batched(tuner, stream, &s->p, &s->o));
  check_scene(s);
}

static void try_side(attune_pointers pointers) {
  scene *s = calloc(1, sizeof *s);
  open_scene(s, pointers);
  for (int apart = 0; apart < 2; apart++) {
    s->p.k = 18;
    try_scalars(s, 2.0, 0.0, apart);
    try_scalars(s, -1.0, 1.0, apart);
    try_scalars(s, 0.0, 0.0, apart);
    try_scalars(s, 0.0, 2.0, apart);
    try_scalars(s, 0.0, 1.0, apart);
    s->p.k = 0;
    try_scalars(s, 1.0, -1.0, apart);
  }
  close_scene(s);
  free(s);
}

TEST(arrays_in_host_memory) {
  try_side(ATTUNE_POINTERS_HOST);
}

TEST(arrays_in_device_memory) {
  try_side(ATTUNE_POINTERS_DEVICE);
}

static void capture_side(attune_pointers pointers) {
  scene *s = calloc(1, sizeof *s);
  attune_graph *graph = NULL;
  open_scene(s, pointers);
  OK(attune_gemm_batched(tuner, stream, &s->p, &s->o)); /* libraries are open before the capture */
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_gemm_batched(tuner, stream, &s->p, &s->o));
  OK(attune_graph_capture_end(graph, stream));
  for (int i = 0; i < 3; i++) {
    restore(s);
    OK(attune_graph_replay(graph, stream));
    check_scene(s);
  }
  attune_graph_destroy(graph);
  close_scene(s);
  free(s);
}

TEST(captures) {
  capture_side(ATTUNE_POINTERS_HOST);
  capture_side(ATTUNE_POINTERS_DEVICE);
}

TEST(a_plan_runs) {
  scene *s = calloc(1, sizeof *s);
  attune_plan *plan = NULL;
  for (int side = ATTUNE_POINTERS_HOST; side <= ATTUNE_POINTERS_DEVICE; side++) {
    open_scene(s, (attune_pointers)side);
    const attune_gemm_operands o = {.alpha = 2.0, .a = s->o.a, .b = s->o.b, .d = (void *)(uintptr_t)s->o.d};
    OK(attune_gemm_plan_create(&plan, tuner, stream, &s->p, &o));
    OK(attune_gemm_plan_run(plan, stream, &o));
    check_scene(s);
    attune_plan_destroy(plan);
    close_scene(s);
  }
  free(s);
}

TEST(arrays_on_the_wrong_side) {
  scene *s = calloc(1, sizeof *s);
  open_scene(s, ATTUNE_POINTERS_HOST);
  s->p.pointers = ATTUNE_POINTERS_DEVICE;
  FAILS_SAYING(attune_gemm_batched(tuner, stream, &s->p, &s->o), ATTUNE_INVALID_ARGUMENT,
               "operands.a is in host memory");
  s->p.pointers = ATTUNE_POINTERS_HOST;
  s->o.b = s->arrays;
  FAILS_SAYING(attune_gemm_batched(tuner, stream, &s->p, &s->o), ATTUNE_INVALID_ARGUMENT, "operands.b is in memory of");
  close_scene(s);
  open_scene(s, ATTUNE_POINTERS_HOST);
  s->pointers[1][7] = NULL;
  FAILS_SAYING(attune_gemm_batched(tuner, stream, &s->p, &s->o), ATTUNE_INVALID_ARGUMENT, "operands.b[7] is NULL");
  close_scene(s);
  free(s);
}

TEST(problems_are_tuned) {
  static const char *const texts[] = {"gemm f32 nn 8x8x8x500 strict pointers=device",
                                      "gemm bf16 tn 64x32x48x40 strict beta=inplace pointers=device align=16",
                                      "gemm f64 nt 33x17x9x60 strict pointers=host",
                                      "gemm c64 cn 20x21x22x40 strict beta pointers=device align=8",
                                      "gemm f16 nn 128x128x128x16 strict pointers=device",
                                      "gemm f32 tn 300x1x200x9 strict pointers=device align=4",
                                      "gemm bf16:f32 nn 40x24x32x9 strict pointers=device align=2"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) OK(attune_tune(tuner, device, texts[i], NULL, NULL));
}

int main(int count, char **words) {
  if (count > 1) cmocka_set_test_filter(words[1]);
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  if (attune_stream_create(&stream, device) != ATTUNE_OK) return 1;
  if (attune_tuner_create(&tuner, &(attune_tuner_options){.database = ""}) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  attune_stream_destroy(stream);
  return failed;
}
