/* SPDX-License-Identifier: Apache-2.0
 * test_call_cache.c: recent calls are found over the whole problem, and every call is counted: by threads that live and
 * threads that ended, beyond what is remembered, by plans, and never after the tuner is gone. */
#include "tests/support/check.h"

#include <pthread.h>

#include "ops/gemm/problem/problem.h"
#include "src/base/backend.h"
#include "tuning/plans/call_cache.h"
#include "tuning/tuner/tuner.h"

enum { MOST = 4096 };
static attune_stream *stream;
static _Alignas(128) double a[MOST], b[MOST], c[MOST];

static attune_tuner *open_tuner(void) {
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_OFF}));
  return tuner;
}

static attune_gemm_problem problem_of(int64_t m, int64_t n, int64_t k) {
  return (attune_gemm_problem){.dtype = ATTUNE_F64, .m = m, .n = n, .k = k, .batch = 1};
}

static int each_call(void *user, at_plan_entry *entry, uint64_t calls) {
  (void)entry;
  *(uint64_t *)user += calls;
  return 0;
}

/* All calls of the tuner that were counted up to now. */
static uint64_t calls_of(attune_tuner *tuner) {
  uint64_t sum = 0;
  at_call_cache_collect(tuner->id);
  at_plan_table_each(&tuner->plans, each_call, &sum);
  return sum;
}

/* The recent calls of this thread with this tuner; *least is how often the rarest was made. */
static int remembered(const attune_tuner *tuner, uint64_t *least) {
  const at_call_cache *mine = at_call_cache_mine();
  int count = 0;
  *least = UINT64_MAX;
  for (size_t i = 0; mine && i < AT_COUNT(mine->slots); i++) {
    if (mine->slots[i].tuner != tuner->id) continue;
    count++;
    if (mine->slots[i].calls < *least) *least = mine->slots[i].calls;
  }
  return count;
}

/* Each property that can differ from call to call, one at a time. */
enum { VARIANTS = 18 };
static void variant(int i, attune_gemm_problem *p, attune_gemm_operands *o, double *d) {
  *p = problem_of(5, 5, 5);
  *o = (attune_gemm_operands){.alpha = 1.0, .a = a, .b = b, .d = d};
  switch (i) {
  case 1: p->trans_a = ATTUNE_T; break;
  case 2: p->trans_b = ATTUNE_T; break;
  case 3: p->trans_a = p->trans_b = ATTUNE_T; break;
  case 4: p->lda = 9; break;
  case 5: p->ldb = 9; break;
  case 6: p->ldd = 9; break;
  case 7: o->beta = 1.0, o->c = c; break;
  case 8: o->beta = 1.0, o->c = c, p->ldc = 9; break;
  case 9: o->beta = 1.0, o->c = d; break;
  case 10: p->batch = 3; break;
  case 11: p->batch = 3, p->stride_a = ATTUNE_BROADCAST; break;
  case 12: p->batch = 3, p->stride_b = 31; break;
  case 13: p->batch = 3, p->stride_d = 29; break;
  case 14: p->batch = 3, o->beta = 1.0, o->c = c, p->stride_c = 33; break;
  case 15: p->layout = ATTUNE_ROW_MAJOR; break;
  case 16: p->contract.deterministic = 1; break;
  case 17: o->a = a + 1; break; /* a lesser alignment */
  default: break;
  }
}

/* The product by plain loops on the caller's own terms. */
static void expected(const attune_gemm_problem *p, const attune_gemm_operands *o, const double *before, double *out) {
  const bool row = p->layout == ATTUNE_ROW_MAJOR;
  const int64_t n = 5, lda = p->lda ? p->lda : n, ldb = p->ldb ? p->ldb : n, ldc = p->ldc ? p->ldc : n,
                ldd = p->ldd ? p->ldd : n;
  const int64_t strides[] = {p->stride_a == ATTUNE_BROADCAST ? 0
                             : p->stride_a                   ? p->stride_a
                                                             : lda * n,
                             p->stride_b ? p->stride_b : ldb * n, p->stride_c ? p->stride_c : ldc * n,
                             p->stride_d ? p->stride_d : ldd * n};
  const double *from = o->c == o->d ? before : o->c;
  for (int64_t s = 0; s < p->batch; s++)
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = 0.0;
        for (int64_t k = 0; k < n; k++) {
          const bool a_lines = (p->trans_a != ATTUNE_N) != row, b_lines = (p->trans_b != ATTUNE_N) != row;
          const double x = ((const double *)o->a)[s * strides[0] + (a_lines ? k + i * lda : i + k * lda)];
          const double y = ((const double *)o->b)[s * strides[1] + (b_lines ? j + k * ldb : k + j * ldb)];
          sum += x * y;
        }
        if (o->beta != 0.0) sum += from[s * strides[2] + (row ? j + i * ldc : i + j * ldc)];
        out[s * strides[3] + (row ? j + i * ldd : i + j * ldd)] = sum;
      }
}

/* In turn, so that each comes right after one that differs from it in one thing; whole numbers, so that it is exact. */
TEST(every_field_counts) {
  attune_tuner *tuner = open_tuner();
  static _Alignas(128) double d[256], want[256], before[256];
  for (int round = 0; round < 4; round++)
    for (int i = 0; i < 2 * VARIANTS; i++) {
      attune_gemm_problem p = {0};
      attune_gemm_operands o;
      variant(i % 2 ? i / 2 : 0, &p, &o, d);
      for (int x = 0; x < 256; x++) d[x] = want[x] = before[x] = (double)(x % 7);
      expected(&p, &o, before, want);
      OK(attune_gemm(tuner, stream, &p, &o));
      for (int x = 0; x < 256; x++)
        if (d[x] != want[x]) fail_msg("round %d, variant %d: element %d is %g, not %g", round, i, x, d[x], want[x]);
    }
  uint64_t least = 0;
  assert_int_equal(remembered(tuner, &least), VARIANTS);
  assert_int_equal(calls_of(tuner), 4 * 2 * VARIANTS);
  attune_tuner_destroy(tuner);
}

/* Sixty-four problems in turn, plain and transposed: none pushes another out. */
TEST(many_problems_are_remembered) {
  enum { ROUNDS = 10, PROBLEMS = 32 };
  attune_tuner *tuner = open_tuner();
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = c};
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < 2 * PROBLEMS; i++) {
      attune_gemm_problem p = problem_of(1 + i / 2 % 8, 1 + i / 16, 6);
      p.trans_b = i % 2 ? ATTUNE_T : ATTUNE_N;
      OK(attune_gemm(tuner, stream, &p, &o));
    }
  uint64_t least = 0;
  assert_int_equal(remembered(tuner, &least), 2 * PROBLEMS);
  assert_int_equal(least, ROUNDS - 1); /* the first call found nothing and is in the entry */
  assert_int_equal(calls_of(tuner), ROUNDS * 2 * PROBLEMS);
  attune_tuner_destroy(tuner);
}

/* Problems of one array, or of pages of their own, do not take each other's hint. */
TEST(neighbours_have_hints_of_their_own) {
  static const size_t steps[] = {sizeof(attune_gemm_problem), 144, 152, 192, 256, 1024, 4096, 65536, 1 << 20};
  static at_call_cache cache;
  enum { PROBLEMS = 64 };
  for (size_t s = 0; s < AT_COUNT(steps); s++)
    for (size_t from = 0; from < 4096; from += 8) {
      uint64_t taken[AT_CALL_CACHE_HINTS / 64] = {0};
      for (size_t i = 0; i < PROBLEMS; i++) {
        const uintptr_t address = 0x7f3ac5e00000 + from + i * steps[s];
        const size_t hint = (size_t)(at_call_cache_hint(&cache, (const void *)address) - cache.hints);
        if (taken[hint / 64] >> hint % 64 & 1) fail_msg("%zu of %zu bytes: hint %zu again", i, steps[s], hint);
        taken[hint / 64] |= UINT64_C(1) << hint % 64;
      }
    }
}

/* Two problems asked from one address, and from one each, and two plans: each call counts once, at what it ran. */
TEST(wrong_hints_count_right) {
  enum { ROUNDS = 50 };
  attune_tuner *tuner = open_tuner();
  _Alignas(128) double d[9];
  attune_gemm_problem at_one = {0};
  attune_plan *plans[2];
  for (int i = 0; i < 2; i++) {
    const attune_gemm_problem p = problem_of(2 + i, 2, 3);
    const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
    OK(attune_gemm_plan_create(&plans[i], tuner, stream, &p, &o));
  }
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < 2; i++)
      for (int beta = 0; beta < 2; beta++) {
        const double want = a[0] * b[0] + a[2 + i] * b[1] + a[2 * (2 + i)] * b[2];
        const attune_gemm_operands o = {.alpha = 1.0, .beta = beta, .a = a, .b = b, .c = d, .d = d};
        at_one = problem_of(2 + i, 2, 3);
        d[0] = 5.0;
        OK(attune_gemm(tuner, stream, &at_one, &o));
        assert_true(d[0] == want + 5.0 * beta);
        if (beta) continue;
        d[0] = 0.0;
        OK(attune_gemm_plan_run(plans[i], stream, &o));
        assert_true(d[0] == want);
      }
  uint64_t least = 0;
  assert_int_equal(calls_of(tuner), ROUNDS * 2 * 3);
  assert_int_equal(remembered(tuner, &least), 2 * 3);
  for (int i = 0; i < 2; i++) attune_plan_destroy(plans[i]);
  attune_tuner_destroy(tuner);
}

/* A thread whose first place another has: nothing differs but the place. */
static void *work_elsewhere(void *arg) {
  attune_tuner *tuner = arg;
  const unsigned first = at_call_cache_place(at_thread_number());
  const bool free = at_call_cache_threads[first].thread == 0;
  if (free) at_call_cache_threads[first].thread = 1;
  _Alignas(128) double d[16];
  const attune_gemm_problem p = problem_of(4, 3, 2), q = problem_of(3, 3, 2);
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  attune_plan *plan = NULL;
  bool good = attune_gemm_plan_create(&plan, tuner, stream, &p, &o) == ATTUNE_OK;
  for (int i = 0; i < 100 && good; i++)
    good = attune_gemm(tuner, stream, i % 3 ? &p : &q, &o) == ATTUNE_OK &&
           attune_gemm_plan_run(plan, stream, &o) == ATTUNE_OK;
  uint64_t least = 0;
  good = good && at_call_cache_mine() && !at_call_cache_at_once() && remembered(tuner, &least) == 3;
  attune_plan_destroy(plan);
  if (free) at_call_cache_threads[first].thread = 0;
  return good ? NULL : arg;
}

TEST(a_thread_may_have_another_place) {
  attune_tuner *tuner = open_tuner();
  pthread_t thread;
  void *failed = NULL;
  assert_int_equal(pthread_create(&thread, NULL, work_elsewhere, tuner), 0);
  pthread_join(thread, &failed);
  assert_null(failed);
  assert_int_equal(calls_of(tuner), 200);
  attune_tuner_destroy(tuner);
}

TEST(padding_does_not_count) {
  attune_tuner *tuner = open_tuner();
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = c};
  for (int i = 0; i < 20; i++) {
    attune_gemm_problem p = problem_of(3, 3, 3);
    memset((char *)&p + offsetof(attune_gemm_problem, trans_b) + sizeof p.trans_b, 17 * i,
           offsetof(attune_gemm_problem, m) - offsetof(attune_gemm_problem, trans_b) - sizeof p.trans_b);
    OK(attune_gemm(tuner, stream, &p, &o));
  }
  uint64_t least = 0;
  assert_int_equal(remembered(tuner, &least), 1);
  assert_int_equal(least, 19);
  attune_tuner_destroy(tuner);
}

/* More problems than are remembered: counts of those given up are kept. */
TEST(counts_outlive_what_is_remembered) {
  enum { SIZES = 10, ROUNDS = 3 };
  attune_tuner *tuner = open_tuner();
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = c};
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < SIZES * SIZES * SIZES; i++) {
      const attune_gemm_problem p = problem_of(1 + i % SIZES, 1 + i / SIZES % SIZES, 1 + i / SIZES / SIZES);
      OK(attune_gemm(tuner, stream, &p, &o));
    }
  assert_int_equal(calls_of(tuner), ROUNDS * SIZES * SIZES * SIZES);
  assert_int_equal(calls_of(tuner), ROUNDS * SIZES * SIZES * SIZES); /* nothing is added twice */
  attune_tuner_destroy(tuner);
}

/* ---- threads ---- */

enum { THREADS = 6, CALLS = 2000 };
typedef struct team {
  attune_tuner *tuner;
  attune_plan *plan;
  pthread_barrier_t called, seen;
} team;

static void *call_often(void *arg) {
  team *t = arg;
  _Alignas(128) double d[64];
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  for (int i = 0; i < CALLS; i++) {
    const attune_gemm_problem p = problem_of(1 + i % 8, 2, 2);
    if (attune_gemm(t->tuner, stream, &p, &o) != ATTUNE_OK || attune_gemm_plan_run(t->plan, stream, &o) != ATTUNE_OK)
      return t;
  }
  pthread_barrier_wait(&t->called);
  pthread_barrier_wait(&t->seen);
  return NULL;
}

static int places(void) {
  int count = 0;
  for (size_t i = 0; i < AT_CALL_CACHE_THREADS; i++) count += at_call_cache_threads[i].thread != 0;
  return count;
}

TEST(threads_are_added_up) {
  team t = {.tuner = open_tuner()};
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = c};
  const attune_gemm_problem p = problem_of(2, 2, 2);
  pthread_t threads[THREADS];
  OK(attune_gemm_plan_create(&t.plan, t.tuner, stream, &p, &o));
  pthread_barrier_init(&t.called, NULL, THREADS + 1);
  pthread_barrier_init(&t.seen, NULL, THREADS + 1);
  const int before = places();
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_often, &t), 0);
  for (int i = 0; i < 100; i++) assert_true(calls_of(t.tuner) <= 2 * THREADS * CALLS); /* beside them */
  pthread_barrier_wait(&t.called);
  assert_int_equal(calls_of(t.tuner), 2 * THREADS * CALLS);
  assert_int_equal(places(), before + THREADS);
  pthread_barrier_wait(&t.seen);
  for (int i = 0; i < THREADS; i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  assert_int_equal(calls_of(t.tuner), 2 * THREADS * CALLS);
  assert_int_equal(places(), before);
  attune_plan_destroy(t.plan);
  attune_tuner_destroy(t.tuner);
  pthread_barrier_destroy(&t.called);
  pthread_barrier_destroy(&t.seen);
}

/* A thread that remembers calls of a tuner goes on, and ends, after the tuner was destroyed. */
static void *outlive(void *arg) {
  team *t = arg;
  void *failed = call_often(t);
  attune_tuner *mine = open_tuner();
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = a + 64};
  const attune_gemm_problem p = problem_of(2, 2, 2);
  for (int i = 0; i < 100 && !failed; i++) failed = attune_gemm(mine, stream, &p, &o) == ATTUNE_OK ? NULL : t;
  if (calls_of(mine) != 100) failed = t;
  attune_tuner_destroy(mine);
  return failed;
}

TEST(a_destroyed_tuner_is_forgotten) {
  team t = {.tuner = open_tuner()};
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = c};
  const attune_gemm_problem p = problem_of(2, 2, 2);
  pthread_t thread;
  void *failed = NULL;
  uint64_t least = 0;
  OK(attune_gemm_plan_create(&t.plan, t.tuner, stream, &p, &o));
  pthread_barrier_init(&t.called, NULL, 2);
  pthread_barrier_init(&t.seen, NULL, 2);
  assert_int_equal(pthread_create(&thread, NULL, outlive, &t), 0);
  for (int i = 0; i < 3; i++) OK(attune_gemm(t.tuner, stream, &p, &o));
  pthread_barrier_wait(&t.called);
  assert_true(remembered(t.tuner, &least) > 0);
  const attune_tuner gone = {.id = t.tuner->id};
  attune_plan_destroy(t.plan);
  attune_tuner_destroy(t.tuner);
  assert_int_equal(remembered(&gone, &least), 0);
  at_call_cache_collect(0);
  pthread_barrier_wait(&t.seen);
  pthread_join(thread, &failed);
  assert_null(failed);
  pthread_barrier_destroy(&t.called);
  pthread_barrier_destroy(&t.seen);
}

FIXTURE(open_host) {
  attune_device *device = NULL;
  for (int i = 0; i < MOST; i++) {
    a[i] = (double)(i % 5 - 2);
    b[i] = (double)(i % 9 - 4);
    c[i] = (double)(i % 3);
  }
  if (attune_device_get(&device, "host") != ATTUNE_OK) return -1;
  stream = attune_stream_default(device);
  return 0;
}

int main(void) {
  return RUN_TESTS(open_host, NULL);
}
