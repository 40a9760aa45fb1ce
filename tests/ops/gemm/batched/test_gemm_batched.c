/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_batched.c: attune_gemm_batched on the host: 10,000 random problems against sums made here, bad input with
 * the index named, overlapping matrices, capture, threads, tuning and the words of a problem. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "ops/gemm/problem/problem.h"
#include "src/base/half.h"

enum { PROBLEMS = 10000, BATCH = 9, SIDE = 9, PITCH = 12, ELEMENTS = PITCH * PITCH, THREADS = 4, ROUNDS = 200 };

static attune_device *host;
static attune_tuner *tuner;
static attune_stream *stream;

FIXTURE(open_tuner) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  stream = attune_stream_default(host);
  return attune_tuner_create(&tuner, &(attune_tuner_options){.database = ""}) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_tuner) {
  attune_tuner_destroy(tuner);
  return 0;
}

/* Matrices in a row of places, which arrays name in any order. */
typedef struct matrices {
  double complex values[BATCH * ELEMENTS]; /* their contents */
  _Alignas(128) char memory[BATCH * ELEMENTS * 16];
  void *pointers[BATCH];
  int place[BATCH];
} matrices;

typedef struct example {
  uint64_t state;
  attune_gemm_problem p;
  attune_gemm_batched_operands o;
  matrices a, b, c, d;
} example;

static int64_t draw(example *e, int64_t count) {
  e->state = e->state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((e->state >> 33) % (uint64_t)count);
}

static void put(void *memory, attune_dtype dtype, int64_t at, double complex x) {
  switch (dtype) {
  case ATTUNE_F64: ((double *)memory)[at] = creal(x); break;
  case ATTUNE_F32: ((float *)memory)[at] = (float)creal(x); break;
  case ATTUNE_F16: ((uint16_t *)memory)[at] = at_f64_to_f16(creal(x)); break;
  case ATTUNE_BF16: ((uint16_t *)memory)[at] = at_f64_to_bf16(creal(x)); break;
  case ATTUNE_C64: ((float complex *)memory)[at] = (float complex)x; break;
  default: ((double complex *)memory)[at] = x;
  }
}

static double complex get(const void *memory, attune_dtype dtype, int64_t at) {
  switch (dtype) {
  case ATTUNE_F64: return ((const double *)memory)[at];
  case ATTUNE_F32: return (double)((const float *)memory)[at];
  case ATTUNE_F16: return (double)at_f16_to_f32(((const uint16_t *)memory)[at]);
  case ATTUNE_BF16: return (double)at_bf16_to_f32(((const uint16_t *)memory)[at]);
  case ATTUNE_C64: return (double complex)((const float complex *)memory)[at];
  default: return ((const double complex *)memory)[at];
  }
}

/* Small whole numbers, whose products and sums every type holds; inputs may be one matrix several times. */
static void fill(example *e, matrices *m, attune_dtype dtype, bool repeats) {
  const int64_t turn = draw(e, BATCH);
  const bool is_complex = at_gemm_complex(dtype);
  for (int i = 0; i < BATCH; i++) {
    m->place[i] = repeats && draw(e, 4) == 0 ? m->place[0] : (int)((i * 2 + turn) % BATCH);
    m->pointers[i] = m->memory + (size_t)m->place[i] * ELEMENTS * attune_dtype_size(dtype);
  }
  for (int64_t at = 0; at < BATCH * ELEMENTS; at++) {
    m->values[at] = (double)(draw(e, 5) - 2) + (is_complex ? (double)(draw(e, 5) - 2) * I : 0.0);
    put(m->memory, dtype, at, m->values[at]);
  }
}

static void draw_example(example *e, uint64_t seed) {
  static const attune_dtype dtypes[] = {ATTUNE_F64, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16, ATTUNE_C64, ATTUNE_C128};
  static const double scalars[] = {0.0, 1.0, -1.0, 2.0};
  e->state = seed * 7919 + 1;
  attune_gemm_problem *p = &e->p;
  *p = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
  p->pointers = ATTUNE_POINTERS_HOST;
  p->dtype = dtypes[draw(e, 6)];
  p->dtype_out = (p->dtype == ATTUNE_F16 || p->dtype == ATTUNE_BF16) && draw(e, 2) ? ATTUNE_F32 : p->dtype;
  p->layout = (attune_layout)draw(e, 2);
  p->trans_a = (attune_transpose)draw(e, 3);
  p->trans_b = (attune_transpose)draw(e, 3);
  p->m = 1 + draw(e, SIDE), p->n = 1 + draw(e, SIDE), p->k = draw(e, 12) ? 1 + draw(e, SIDE) : 0;
  p->batch = 1 + draw(e, BATCH);
  p->lda = p->ldb = p->ldc = p->ldd = PITCH;
  fill(e, &e->a, p->dtype, true);
  fill(e, &e->b, p->dtype, true);
  fill(e, &e->c, p->dtype_out, true);
  fill(e, &e->d, p->dtype_out, false);
  e->o = (attune_gemm_batched_operands){.alpha = scalars[draw(e, 4)], .beta = scalars[draw(e, 4)]};
  if (at_gemm_complex(p->dtype)) e->o.alpha_imag = scalars[draw(e, 4)], e->o.beta_imag = scalars[draw(e, 4)];
  e->o.a = (const void *const *)e->a.pointers;
  e->o.b = (const void *const *)e->b.pointers;
  e->o.d = e->d.pointers;
  if (draw(e, 3)) e->o.c = (const void *const *)(draw(e, 2) ? e->c.pointers : e->d.pointers);
  if (!e->o.c) e->o.beta = e->o.beta_imag = 0.0;
}

static int64_t at_of(const attune_gemm_problem *p, int64_t row, int64_t column) {
  return p->layout == ATTUNE_ROW_MAJOR ? row * PITCH + column : row + column * PITCH;
}

static double complex element(const example *e, const matrices *m, int i, attune_transpose trans, int64_t row,
                              int64_t column) {
  const int64_t at = trans == ATTUNE_N ? at_of(&e->p, row, column) : at_of(&e->p, column, row);
  const double complex x = m->values[m->place[i] * ELEMENTS + at];
  return trans == ATTUNE_C ? conj(x) : x;
}

static double complex expected(const example *e, int i, int64_t row, int64_t column) {
  double complex sum = 0.0, c = 0.0;
  for (int64_t k = 0; k < e->p.k; k++)
    sum += element(e, &e->a, i, e->p.trans_a, row, k) * element(e, &e->b, i, e->p.trans_b, k, column);
  if (e->o.c) c = element(e, e->o.c == (const void *const *)e->d.pointers ? &e->d : &e->c, i, ATTUNE_N, row, column);
  return (e->o.alpha + e->o.alpha_imag * I) * sum + (e->o.beta + e->o.beta_imag * I) * c;
}

/* Every element of every place of D: those of the batch's matrices, and all others as they were. */
static void check_example(const example *e) {
  static _Thread_local double complex wanted[BATCH * ELEMENTS];
  memcpy(wanted, e->d.values, sizeof wanted);
  for (int i = 0; i < e->p.batch; i++)
    for (int64_t row = 0; row < e->p.m; row++)
      for (int64_t column = 0; column < e->p.n; column++)
        wanted[e->d.place[i] * ELEMENTS + at_of(&e->p, row, column)] = expected(e, i, row, column);
  for (int64_t at = 0; at < BATCH * ELEMENTS; at++) {
    double complex want = wanted[at];
    const double complex got = get(e->d.memory, e->p.dtype_out, at);
    const double unit = e->p.dtype_out == ATTUNE_BF16 ? 0x1p-7 : e->p.dtype_out == ATTUNE_F16 ? 0x1p-10 : 0.0;
    if (!(cabs(got - want) <= unit * cabs(want)))
      fail_msg("seed %llu: element %lld is %g%+gi; should be %g%+gi", (unsigned long long)e->state, (long long)at,
               creal(got), cimag(got), creal(want), cimag(want));
  }
}

TEST(random_problems_are_right) {
  example *e = malloc(sizeof *e);
  for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
    draw_example(e, seed);
    OK(attune_gemm_batched(tuner, stream, &e->p, &e->o));
    check_example(e);
  }
  free(e);
}

static void *work(void *arg) {
  example *e = malloc(sizeof *e);
  attune_stream *own = NULL;
  OK(attune_stream_create(&own, host));
  for (uint64_t i = 0; i < ROUNDS; i++) {
    draw_example(e, 50000 + i + (uint64_t)(uintptr_t)arg * ROUNDS);
    OK(attune_gemm_batched(tuner, own, &e->p, &e->o));
    OK(attune_stream_synchronize(own));
    check_example(e);
  }
  attune_stream_destroy(own);
  free(e);
  return NULL;
}

TEST(threads_with_streams_of_their_own) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* A 4 x 4 product of f32, three of them. */
static void make_plain(example *e) {
  draw_example(e, 3);
  e->p = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
  e->p.m = e->p.n = e->p.k = 4, e->p.batch = 3;
  e->p.lda = e->p.ldb = e->p.ldc = e->p.ldd = PITCH;
  e->p.pointers = ATTUNE_POINTERS_HOST;
  e->p.dtype_out = ATTUNE_F32;
  fill(e, &e->a, ATTUNE_F32, false);
  fill(e, &e->b, ATTUNE_F32, false);
  fill(e, &e->c, ATTUNE_F32, false);
  fill(e, &e->d, ATTUNE_F32, false);
  e->o.alpha = 1.0, e->o.beta = e->o.alpha_imag = e->o.beta_imag = 0.0;
  e->o.c = NULL;
}

#define REFUSED(WORDS) FAILS_SAYING(attune_gemm_batched(tuner, stream, &e->p, &e->o), ATTUNE_INVALID_ARGUMENT, WORDS)

TEST(bad_input_is_named) {
  example *e = malloc(sizeof *e);
  make_plain(e);
  e->a.pointers[2] = NULL;
  REFUSED("operands.a[2] is NULL");
  make_plain(e);
  e->d.pointers[1] = (char *)e->d.pointers[1] + 1;
  REFUSED("operands.d[1] is");
  make_plain(e);
  e->o.b = NULL;
  REFUSED("operands.b is NULL");
  make_plain(e);
  e->o.beta = 1.0;
  REFUSED("operands.c is NULL");
  make_plain(e);
  e->p.stride_b = 5;
  REFUSED("problem.stride_b is 5");
  make_plain(e);
  e->p.epilogue.activation = ATTUNE_ACTIVATION_RELU;
  REFUSED("problem.epilogue");
  make_plain(e);
  e->p.pointers = 3;
  REFUSED("problem.pointers is 3");
  e->p.pointers = 0;
  REFUSED("problem.pointers is none (0)");
  e->p.pointers = ATTUNE_POINTERS_DEVICE;
  REFUSED("problem.pointers is device (2)");
  e->p.pointers = ATTUNE_POINTERS_HOST, e->p.alignment = 16;
  REFUSED("problem.alignment is 16");
  e->p.alignment = 0, e->p.reserved[0] = 1;
  REFUSED("problem.reserved");
  free(e);
}

TEST(overlapping_outputs_are_refused) {
  example *e = malloc(sizeof *e);
  make_plain(e);
  e->d.pointers[2] = e->d.pointers[0];
  REFUSED("operands.d[0] overlaps operands.d[2]");
  make_plain(e);
  e->d.pointers[1] = (char *)e->d.pointers[0] + 3 * sizeof(float); /* shares the fourth row */
  REFUSED("operands.d[0] overlaps operands.d[1]");
  e->d.pointers[1] = (char *)e->d.pointers[0] + 4 * sizeof(float); /* the rows below, in the gaps */
  OK(attune_gemm_batched(tuner, stream, &e->p, &e->o));
  make_plain(e);
  e->d.pointers[1] = e->b.pointers[2];
  REFUSED("operands.d[1] overlaps operands.b[2]");
  e->p.layout = ATTUNE_ROW_MAJOR;
  REFUSED("operands.d[1] overlaps operands.b[2]");
  make_plain(e);
  e->o.beta = 1.0, e->o.c = (const void *const *)e->c.pointers;
  e->c.pointers[1] = e->d.pointers[1]; /* one of three */
  REFUSED("operands.c[0] is not operands.d[0], but operands.c[1] is operands.d[1]");
  memcpy(e->c.pointers, e->d.pointers, sizeof e->c.pointers);
  e->c.pointers[2] = e->a.pointers[2]; /* all but one */
  REFUSED("operands.c[2] is not operands.d[2], but operands.c[0] is operands.d[0]");
  e->c.pointers[0] = (char *)e->c.pointers[0] + sizeof(float);
  REFUSED("operands.d[0] overlaps operands.c[0]");
  make_plain(e);
  e->o.alpha = 0.0;
  e->d.pointers[1] = e->b.pointers[2]; /* which is not read */
  OK(attune_gemm_batched(tuner, stream, &e->p, &e->o));
  free(e);
}

TEST(an_array_like_that_of_d_is_in_place) {
  example *e = malloc(sizeof *e);
  make_plain(e);
  memcpy(e->c.pointers, e->d.pointers, sizeof e->c.pointers);
  e->o.beta = 2.0, e->o.c = (const void *const *)e->c.pointers;
  OK(attune_gemm_batched(tuner, stream, &e->p, &e->o));
  e->o.c = (const void *const *)e->d.pointers;
  check_example(e);
  free(e);
}

TEST(a_graph_reads_the_arrays_at_each_replay) {
  example *e = malloc(sizeof *e);
  attune_stream *own = NULL;
  attune_graph *graph = NULL;
  make_plain(e);
  OK(attune_stream_create(&own, host));
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_begin(graph, own, NULL));
  OK(attune_gemm_batched(tuner, own, &e->p, &e->o));
  OK(attune_graph_capture_end(graph, own));
  fill(e, &e->a, ATTUNE_F32, false);
  fill(e, &e->d, ATTUNE_F32, false);
  OK(attune_graph_replay(graph, own));
  OK(attune_stream_synchronize(own));
  check_example(e);
  attune_graph_destroy(graph);
  attune_stream_destroy(own);
  free(e);
}

TEST(a_plan_runs_as_it_was_created) {
  example *e = malloc(sizeof *e);
  attune_plan *plan = NULL;
  make_plain(e);
  attune_gemm_operands o = {.alpha = 1.0, .a = e->o.a, .b = e->o.b, .d = e->d.pointers};
  OK(attune_gemm_plan_create(&plan, tuner, stream, &e->p, &o));
  fill(e, &e->d, ATTUNE_F32, false);
  OK(attune_gemm_plan_run(plan, stream, &o));
  check_example(e);
  o.beta = 1.0, o.c = e->d.pointers;
  FAILS_SAYING(attune_gemm_plan_run(plan, stream, &o), ATTUNE_INVALID_ARGUMENT, "operands.beta");
  o.beta = 0.0;
  e->b.pointers[1] = NULL;
  FAILS_SAYING(attune_gemm_plan_run(plan, stream, &o), ATTUNE_INVALID_ARGUMENT, "operands.b[1] is NULL");
  e->b.pointers[1] = (char *)e->b.pointers[2] + sizeof(float);
  FAILS_SAYING(attune_gemm_plan_run(plan, stream, &o), ATTUNE_INVALID_ARGUMENT,
               "operands.b[1] is aligned to 4 bytes; should be aligned to ");
  attune_plan_destroy(plan);
  free(e);
}

/* A search verifies, measures and stores winners of such problems. */
TEST(problems_are_tuned) {
  static const char *const texts[] = {"gemm f32 nn 8x8x8x50 strict pointers=host",
                                      "gemm bf16:f32 tn 17x5x9x7 strict beta pointers=host align=4",
                                      "gemm c128 nc 6x7x8x9 strict deterministic beta=inplace pointers=host"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
    char text[ATTUNE_PROBLEM_CHARS];
    OK(attune_tune(tuner, host, texts[i], NULL, NULL));
    OK(attune_gemm_problem_parse(&p, texts[i]));
    assert_int_equal(p.pointers, ATTUNE_POINTERS_HOST);
    OK(attune_gemm_problem_format(text, sizeof text, &p, NULL));
    assert_non_null(strstr(text, " pointers=host"));
  }
  FAILS_SAYING(attune_tune(tuner, host, "gemm f32 nn 8x8x8x5 pointers=there", NULL, NULL), ATTUNE_INVALID_ARGUMENT,
               "pointers=");
}

int main(void) {
  return RUN_TESTS(open_tuner, close_tuner);
}
