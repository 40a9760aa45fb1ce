/* SPDX-License-Identifier: Apache-2.0
 * test_public_call.c: a second operation uses what gemm uses: recent calls, also of a problem longer than the words
 * they are told by; calls by key; plans of callers, which no other operation runs. "toy" asks with a name of any
 * length, adds up how often it ran, and borrows gemm's normalised problem. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <pthread.h>
#include <stdatomic.h>

#include "ops/gemm/problem/problem.h"
#include "tests/support/toy/call_recent.h"
#include "tuning/dispatch/plan_handle.h"
#include "tuning/dispatch/public_call.h"

static attune_device *device;
static attune_stream *stream;

/* ---- toy, as an operation's own files would have it ---- */

enum { TOY_ID = 7, TOY_NAME = 300 };

typedef struct toy_problem {
  int64_t size;
  char name[TOY_NAME]; /* zeros behind */
} toy_problem;

typedef struct toy_operands {
  int64_t *sum; /* gets toy_value of the problem that the plan is of */
} toy_operands;

/* The letters' sum tells names apart that are used here; same size, same name: same problem. */
static int64_t letters_of(const toy_problem *p) {
  int64_t letters = 1;
  for (int i = 0; i < TOY_NAME; i++) letters += (i + 1) * (unsigned char)p->name[i];
  return letters;
}

static int64_t toy_value(const toy_problem *p) {
  return p->size + 100 * letters_of(p);
}

static bool toy_supports(const at_implementation *self, const void *problem, attune_device *on) {
  (void)self, (void)problem, (void)on;
  return true;
}

static int toy_configurations(const at_implementation *self, const void *problem, attune_device *on,
                              at_configuration *out, int max) {
  (void)self, (void)problem, (void)on;
  if (max > 0) at_copy_text(out[0].text, sizeof out[0].text, "way=plain");
  return max > 0;
}

static attune_status toy_prepare(at_plan *plan) {
  (void)plan;
  return ATTUNE_OK;
}

static attune_status toy_launch(const at_plan *plan, const void *operands, attune_stream *on) {
  (void)on;
  const toy_operands *o = operands;
  const at_gemm *g = at_gemm_of(plan->problem);
  *o->sum += g->m + 100 * g->n;
  return ATTUNE_OK;
}

static const at_implementation toy_plain = {.name = "toy_plain",
                                            .version = 3,
                                            .backend = "host",
                                            .supports = toy_supports,
                                            .configurations = toy_configurations,
                                            .prepare = toy_prepare,
                                            .launch = toy_launch};
static const at_implementation *const toy_implementations[] = {&toy_plain};
static at_op toy;
static at_problem_type toy_problem_type;
static const at_op *ops[] = {&at_gemm_op, &toy};

static void toy_key(const toy_problem *p, at_key *key) {
  at_gemm *g = at_key_problem(key);
  *g = (at_gemm){.m = p->size,
                 .n = letters_of(p),
                 .k = 1,
                 .batch = 1,
                 .lda = p->size,
                 .ldb = 1,
                 .ldd = p->size,
                 .workspace_cap = 1,
                 .dtype = ATTUNE_F32,
                 .dtype_out = ATTUNE_F32,
                 .alignment = AT_ALIGNMENT};
}

static at_call_signature toy_asked(const toy_problem *p, uint64_t use) {
  at_call_signature a = {.use = at_call_signature_use(TOY_ID, use, true)};
  memcpy(&a.words, p, sizeof a.words);
  a.rest = (const char *)p + sizeof a.words;
  a.rest_bytes = sizeof *p - sizeof a.words;
  return a;
}

static attune_status toy_call(attune_tuner *tuner, const toy_problem *p, uint64_t use, const toy_operands *o) {
  const at_call_signature asked = toy_asked(p, use);
  const at_plan *plan = at_call_recent(tuner, stream, p, &asked);
  if (plan) return plan->launch(plan, o, stream);
  at_key key;
  toy_key(p, &key);
  const attune_status status = at_call_plan(tuner, stream, &toy, &key, 0, &asked, &plan);
  return status == ATTUNE_OK ? plan->launch(plan, o, stream) : status;
}

static attune_status toy_plan_create(attune_plan **out, attune_tuner *tuner, const toy_problem *p) {
  at_key key;
  toy_key(p, &key);
  return at_plan_handle_create(out, tuner, stream, &toy, &key, 0, 0);
}

static attune_status toy_plan_run(const attune_plan *plan, attune_stream *on, const toy_operands *o) {
  if (!at_plan_handle_fits(plan, &toy, on, o)) return at_plan_handle_fail(plan, &toy, on, o);
  at_plan_handle_count(plan, stream);
  return plan->launch(plan, o, on);
}

static void fold_nothing(void *problem, const attune_device *on) {
  (void)problem, (void)on;
}

/* ---- */

static attune_tuner *open_tuner(void) {
  attune_tuner *tuner = NULL;
  OK(at_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_OFF}, ops, AT_COUNT(ops)));
  return tuner;
}

static toy_problem toy_of(int64_t size, const char *name) {
  toy_problem p;
  memset(&p, 0, sizeof p);
  p.size = size;
  at_copy_text(p.name, sizeof p.name, name);
  return p;
}

/* A name whose first `shared` letters are those of all such names, and then differs. */
static toy_problem toy_beyond(int64_t size, int shared, char last) {
  char name[TOY_NAME];
  memset(name, 'x', sizeof name);
  name[shared] = last;
  name[shared + 1] = '\0';
  return toy_of(size, name);
}

static int each_call(void *user, at_plan_entry *entry, uint64_t calls) {
  (void)entry;
  *(uint64_t *)user += calls;
  return 0;
}

static uint64_t calls_of(attune_tuner *tuner) {
  uint64_t sum = 0;
  at_call_cache_collect(tuner->id);
  at_plan_table_each(&tuner->plans, each_call, &sum);
  return sum;
}

/* The thread's recent calls with the tuner, and how often all of them were found. */
static int remembered(const attune_tuner *tuner, uint64_t *calls) {
  const at_call_cache *mine = at_call_cache_mine();
  int count = 0;
  *calls = 0;
  for (size_t i = 0; mine && i < AT_COUNT(mine->slots); i++)
    if (mine->slots[i].tuner == tuner->id) count++, *calls += mine->slots[i].calls;
  return count;
}

/* Problems that differ only far behind the words are told apart, in turn and from one address. */
TEST(long_problems) {
  enum { PROBLEMS = 26, ROUNDS = 8 };
  attune_tuner *tuner = open_tuner();
  toy_problem asked; /* at one address, so that the hint is wrong each time, but for what lies 250 bytes behind */
  int64_t sum = 0, expected = 0;
  const toy_operands o = {&sum};
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < PROBLEMS; i++) {
      asked = toy_beyond(5, 250, (char)('a' + i));
      OK(toy_call(tuner, &asked, 0, &o));
      expected += toy_value(&asked);
      assert_int_equal(sum, expected);
    }
  uint64_t calls = 0;
  assert_int_equal(remembered(tuner, &calls), PROBLEMS);
  assert_int_equal(calls, (ROUNDS - 1) * PROBLEMS); /* the first of each missed, and is in its entry */
  assert_int_equal(tuner->plans.count, PROBLEMS);
  assert_int_equal(calls_of(tuner), ROUNDS * PROBLEMS);
  attune_tuner_destroy(tuner);
}

/* The plan that a call found is that of its own problem. */
TEST(each_finds_its_own) {
  attune_tuner *tuner = open_tuner();
  for (int round = 0; round < 5; round++)
    for (int i = 0; i < 40; i++) {
      int64_t sum = 0;
      const toy_problem p = toy_beyond(1 + i % 8, 140 + i / 8, 'q');
      const toy_operands o = {&sum};
      OK(toy_call(tuner, &p, (uint64_t)(i & 1), &o));
      assert_int_equal(sum, toy_value(&p));
    }
  assert_int_equal(calls_of(tuner), 200);
  attune_tuner_destroy(tuner);
}

/* More long problems than are remembered: what the overwritten ones held is freed (LeakSanitizer), no call is lost. */
TEST(given_up) {
  enum { PROBLEMS = 1000 };
  attune_tuner *tuner = open_tuner();
  int64_t sum = 0, expected = 0;
  const toy_operands o = {&sum};
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < PROBLEMS; i++) {
      const toy_problem p = toy_beyond(1 + i, 200, 'z');
      OK(toy_call(tuner, &p, 0, &o));
      expected += toy_value(&p);
    }
  assert_int_equal(sum, expected);
  assert_int_equal(calls_of(tuner), 3 * PROBLEMS);
  attune_tuner_destroy(tuner);
}

/* Two operations that ask in the same words, with the same use, on the same device and tuner. */
TEST(operations_are_told_apart) {
  attune_tuner *tuner = open_tuner();
  at_call_signature a = {.use = at_call_signature_use(AT_OP_GEMM, 99, false)},
                    b = {.use = at_call_signature_use(TOY_ID, 99, false)},
                    rest = {.use = at_call_signature_use(TOY_ID, 99, true), .rest = "more", .rest_bytes = 4};
  int64_t sum = 0;
  const toy_problem p = toy_of(3, "same");
  const toy_operands o = {&sum};
  OK(toy_call(tuner, &p, 0, &o));
  at_key key;
  toy_key(&p, &key);
  at_key_set(&key, &toy, device);
  const at_plan_entry *entry = at_plan_table_entry(&tuner->plans, &key);
  assert_non_null(entry);
  at_call_cache_put(tuner->id, device, entry, &b);
  assert_null(at_call_recent(tuner, stream, &a, &a));
  assert_null(at_call_recent(tuner, stream, &a, &rest));
  assert_ptr_equal(at_call_recent(tuner, stream, &a, &b), at_plan_entry_plan(entry));
  at_call_cache_put(tuner->id, device, entry, &rest);
  assert_ptr_equal(at_call_recent(tuner, stream, &a, &rest), at_plan_entry_plan(entry));
  rest.rest = "mare";
  assert_null(at_call_recent(tuner, stream, &a, &rest));
  rest.rest_bytes = 3;
  assert_null(at_call_recent(tuner, stream, &a, &rest));
  attune_tuner_destroy(tuner);
}

static void refused(attune_status status, const char *words) {
  assert_int_equal(status, ATTUNE_INVALID_ARGUMENT);
  if (!strstr(attune_last_message(), words)) fail_msg("not \"%s\": %s", words, attune_last_message());
}

TEST(a_plan_knows_its_operation) {
  attune_tuner *tuner = open_tuner();
  _Alignas(128) float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, d[4] = {0};
  attune_gemm_problem g = {.dtype = ATTUNE_F32, .m = 2, .n = 2, .k = 2};
  const attune_gemm_operands of_gemm = {.alpha = 1.0, .a = a, .b = b, .d = d};
  const toy_problem p = toy_of(4, "four");
  int64_t sum = 0;
  const toy_operands of_toy = {&sum};
  attune_plan *gemm = NULL, *mine = NULL;
  OK(attune_gemm_plan_create(&gemm, tuner, stream, &g, &of_gemm));
  OK(toy_plan_create(&mine, tuner, &p));
  refused(attune_gemm_plan_run(mine, stream, &of_gemm), "plan is of toy, the operands of gemm");
  refused(toy_plan_run(gemm, stream, &of_toy), "plan is of gemm, the operands of toy");
  refused(attune_gemm_plan_run(mine, NULL, &of_gemm), "stream is NULL");
  refused(toy_plan_run(NULL, stream, &of_toy), "plan is NULL");
  refused(toy_plan_run(mine, stream, NULL), "operands is NULL");
  attune_device elsewhere = *device;
  attune_stream other = *stream;
  at_copy_text(elsewhere.name, sizeof elsewhere.name, "moon:0");
  other.device = &elsewhere;
  refused(toy_plan_run(mine, &other, &of_toy), "stream is of moon:0, the plan of host");
  assert_int_equal(sum, 0);
  assert_true(d[0] == 0.0f);
  OK(toy_plan_run(mine, stream, &of_toy));
  OK(attune_gemm_plan_run(gemm, stream, &of_gemm));
  assert_int_equal(sum, toy_value(&p));
  assert_true(d[0] == 23.0f);
  assert_int_equal(calls_of(tuner), 2);
  attune_plan_destroy(mine);
  attune_plan_destroy(gemm);
  attune_tuner_destroy(tuner);
}

/* The choice as it was when the plan was made, also after a newer one took its place. */
TEST(a_plan_is_explained) {
  attune_tuner *tuner = open_tuner();
  const toy_problem p = toy_of(6, "six");
  attune_plan *plan = NULL;
  attune_decision told = {.samples = 1};
  refused(attune_plan_explain(NULL, &told), "plan is NULL");
  OK(toy_plan_create(&plan, tuner, &p));
  refused(attune_plan_explain(plan, NULL), "out is NULL");
  OK(attune_plan_explain(plan, &told));
  assert_string_equal(told.implementation, "toy_plain");
  assert_int_equal(told.implementation_version, 3);
  assert_string_equal(told.configuration, "way=plain");
  assert_string_equal(told.device, "host");
  assert_int_equal(told.source, ATTUNE_SOURCE_DEFAULT);
  at_key key;
  toy_key(&p, &key);
  at_key_set(&key, &toy, device);
  at_plan *newer = NULL;
  at_configuration configuration = {"way=newer"};
  attune_decision decision = {.source = ATTUNE_SOURCE_TUNED, .configuration = "way=newer"};
  OK(at_plan_create(&newer, &toy, &toy_plain, &configuration, at_key_problem(&key), device));
  OK(at_plan_table_put(&tuner->plans, &key, &newer, &decision, false));
  OK(attune_plan_explain(plan, &told));
  assert_string_equal(told.configuration, "way=plain");
  attune_plan_destroy(plan);
  OK(toy_plan_create(&plan, tuner,
                     &p)); /* the decision of the table does not name the implementation: not told as its */
  OK(attune_plan_explain(plan, &told));
  assert_string_equal(told.implementation, "toy_plain");
  assert_string_equal(told.configuration, "way=newer");
  attune_plan_destroy(plan);
  attune_tuner_destroy(tuner);
}

/* ---- threads: long problems are remembered, forgotten and freed while others do the same ---- */

enum { THREADS = 4, CALLS = 1500 };
typedef struct team {
  attune_tuner *tuner;
  attune_plan *plan;
} team;

static void *call_often(void *arg) {
  team *t = arg;
  int64_t sum = 0, expected = 0;
  const toy_problem two = toy_of(2, "two");
  const toy_operands o = {&sum};
  for (int i = 0; i < CALLS; i++) {
    const toy_problem p = toy_beyond(1 + i % 300, 220, (char)('a' + i % 3));
    if (toy_call(t->tuner, &p, 0, &o) != ATTUNE_OK || toy_plan_run(t->plan, stream, &o) != ATTUNE_OK) return t;
    expected += toy_value(&p) + toy_value(&two);
  }
  attune_tuner *own = open_tuner(); /* made and forgotten beside the others */
  for (int i = 0; i < 50; i++) {
    const toy_problem p = toy_beyond(1 + i % 5, 220, 'y');
    if (toy_call(own, &p, 0, &o) != ATTUNE_OK) return t;
    expected += toy_value(&p);
  }
  const bool right = calls_of(own) == 50;
  attune_tuner_destroy(own);
  return right && sum == expected ? NULL : t;
}

TEST(threads) {
  team t = {.tuner = open_tuner()};
  pthread_t ids[THREADS];
  const toy_problem p = toy_of(2, "two");
  OK(toy_plan_create(&t.plan, t.tuner, &p));
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&ids[i], NULL, call_often, &t), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failed = NULL;
    pthread_join(ids[i], &failed);
    assert_null(failed);
  }
  assert_int_equal(calls_of(t.tuner), 2 * THREADS * CALLS);
  attune_plan_destroy(t.plan);
  attune_tuner_destroy(t.tuner);
}

FIXTURE(open_host) {
  toy = at_gemm_op;
  toy.name = "toy";
  toy.id = TOY_ID;
  toy.implementations = toy_implementations;
  toy.implementation_count = AT_COUNT(toy_implementations);
  toy_problem_type = *at_gemm_op.problem;
  toy_problem_type.fold = fold_nothing;
  toy.problem = &toy_problem_type;
  if (attune_device_get(&device, "host") != ATTUNE_OK) return -1;
  stream = attune_stream_default(device);
  return 0;
}

int main(void) {
  return RUN_TESTS(open_host, NULL);
}
