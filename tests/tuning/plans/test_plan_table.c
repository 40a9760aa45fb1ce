/* SPDX-License-Identifier: Apache-2.0
 * test_plan_table.c: hits and misses, replacement, growth, withdrawal of guesses; readers without a lock beside
 * writers. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <pthread.h>

#include "src/base/backend.h"
#include "tuning/plans/plan_table.h"

enum { KEYS = 3000, READERS = 4, WRITERS = 2, ROUNDS = 6 };

static attune_device *device;
static _Atomic int alive; /* plans that exist */

static bool supports(const at_implementation *self, const void *problem, attune_device *on) {
  (void)self, (void)problem, (void)on;
  return true;
}
static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  (void)plan, (void)operands, (void)stream;
  return ATTUNE_OK;
}
static attune_status prepare(at_plan *plan) {
  (void)plan;
  alive++;
  return ATTUNE_OK;
}
static void destroy(at_plan *plan) {
  plan->launch = NULL;
  alive--;
}
static const at_implementation fake = {.name = "fake",
                                       .version = 1,
                                       .backend = "host",
                                       .supports = supports,
                                       .prepare = prepare,
                                       .launch = launch,
                                       .destroy = destroy};
static const at_implementation *const implementations[] = {&fake};
static void fold(void *problem, const attune_device *on) {
  (void)problem, (void)on;
}
static const at_problem_type problem_type = {.fold = fold};
static const at_operand_type operand_type;
static const at_op op = {.name = "fake",
                         .id = 3,
                         .implementations = implementations,
                         .implementation_count = 1,
                         .problem_bytes = 112,
                         .problem = &problem_type,
                         .operands = &operand_type};

static at_key key_of(int number) {
  at_key key = {{0}};
  at_key_set(&key, &op, device);
  key.words[1] = (uint64_t)number;
  key.words[14] = (uint64_t)number * 3; /* the last word counts too */
  return key;
}

static at_plan *variant_of(int number, int variant) {
  const at_key key = key_of(number);
  at_configuration configuration;
  at_plan *plan = NULL;
  snprintf(configuration.text, sizeof configuration.text, "number=%d,variant=%d", number, variant);
  assert_int_equal(at_plan_create(&plan, &op, &fake, &configuration, key.words + 1, device), ATTUNE_OK);
  return plan;
}

static at_plan *put_variant(at_plan_table *table, int number, int variant, attune_source source, bool keep) {
  const at_key key = key_of(number);
  at_plan *plan = variant_of(number, variant);
  attune_decision decision = {.source = source, .samples = number};
  assert_int_equal(at_plan_table_put(table, &key, &plan, &decision, keep), ATTUNE_OK);
  return plan;
}

static at_plan *put(at_plan_table *table, int number, attune_source source, bool keep) {
  return put_variant(table, number, (int)source, source, keep);
}

static const at_plan *find(at_plan_table *table, int number) {
  const at_key key = key_of(number);
  return at_plan_table_find(table, &key);
}

TEST(hits_and_misses) {
  at_plan_table table;
  assert_int_equal(at_plan_table_open(&table), ATTUNE_OK);
  assert_null(find(&table, 1));
  for (int i = 0; i < KEYS; i++) put(&table, i, ATTUNE_SOURCE_TUNED, false);
  for (int i = 0; i < KEYS; i++) {
    const at_plan *plan = find(&table, i);
    int64_t number = -1;
    assert_non_null(plan);
    assert_true(at_configuration_get(&plan->configuration, "number", &number) && number == i);
    attune_decision decision;
    const at_key key = key_of(i);
    assert_true(at_plan_table_decision(&table, &key, &decision));
    assert_int_equal(decision.samples, i);
  }
  for (int i = KEYS; i < 2 * KEYS; i++) assert_null(find(&table, i));
  assert_int_equal(alive, KEYS);
  at_plan_table_close(&table);
  assert_int_equal(alive, 0);
}

/* Every byte of the key matters, but those that say its size (they follow from the op). */
TEST(keys_differ_in_any_byte) {
  at_plan_table table;
  assert_int_equal(at_plan_table_open(&table), ATTUNE_OK);
  put(&table, 5, ATTUNE_SOURCE_TUNED, false);
  const at_key five = key_of(5);
  for (size_t byte = 0; byte < at_key_bytes(&five); byte++) {
    at_key key = five;
    if (byte == 6 || byte == 7) continue;
    ((unsigned char *)&key)[byte] ^= 0x10;
    assert_null(at_plan_table_find(&table, &key));
    attune_decision decision;
    assert_false(at_plan_table_decision(&table, &key, &decision));
  }
  assert_non_null(find(&table, 5));
  at_plan_table_close(&table);
}

/* Problems of any size: what lies behind one in memory is neither read nor part of the key or of a plan. */
TEST(a_key_ends_where_its_problem_does) {
  for (size_t bytes = 1; bytes <= AT_PROBLEM_BYTES; bytes += bytes < 40 ? 1 : 59) {
    at_op sized = op;
    at_plan_table table;
    at_key one, other;
    sized.problem_bytes = bytes;
    char *problem = malloc(bytes); /* so that a sanitizer sees what is read behind it */
    assert_non_null(problem);
    memset(problem, 0x5C, bytes);
    memset(&one, 0xEE, sizeof one);
    memset(&other, 0x11, sizeof other);
    at_key_make(&one, &sized, problem, device);
    at_key_make(&other, &sized, problem, device);
    assert_true(at_key_tail_is_zero(&one) && at_key_equal(&one, &other));
    assert_true(at_key_hash(&one) == at_key_hash(&other));
    assert_int_equal(at_key_bytes(&one) % 8, 0);
    assert_in_range(at_key_bytes(&one), 8 + bytes, 8 + bytes + 7);
    assert_int_equal(at_key_op(&one), op.id);
    assert_int_equal(at_key_device(&one), device->index);

    at_plan *plan = NULL;
    const at_configuration configuration = {""};
    attune_decision decision = {.source = ATTUNE_SOURCE_TUNED};
    assert_int_equal(at_plan_create(&plan, &sized, &fake, &configuration, problem, device), ATTUNE_OK);
    assert_memory_equal(plan->problem, problem, bytes);
    for (size_t i = bytes; i % 8; i++) assert_int_equal(((const char *)plan->problem)[i], 0);
    assert_int_equal(at_plan_table_open(&table), ATTUNE_OK);
    assert_int_equal(at_plan_table_put(&table, &one, &plan, &decision, false), ATTUNE_OK);
    assert_ptr_equal(at_plan_table_find(&table, &other), plan);
    problem[bytes - 1] ^= 1;
    at_key_make(&other, &sized, problem, device);
    assert_null(at_plan_table_find(&table, &other));
    at_plan_table_close(&table);
    free(problem);
  }
}

TEST(keep_and_replace) {
  at_plan_table table;
  assert_int_equal(at_plan_table_open(&table), ATTUNE_OK);
  at_plan *first = put(&table, 1, ATTUNE_SOURCE_DEFAULT, true);
  assert_ptr_equal(put(&table, 1, ATTUNE_SOURCE_TUNED, true), first); /* kept; the new one is gone */
  assert_int_equal(alive, 1);
  attune_decision decision;
  const at_key key = key_of(1);
  assert_true(at_plan_table_decision(&table, &key, &decision));
  assert_int_equal(decision.source, ATTUNE_SOURCE_DEFAULT);
  at_plan *second = put(&table, 1, ATTUNE_SOURCE_TUNED, false);
  assert_ptr_not_equal(second, first);
  assert_ptr_equal(find(&table, 1), second);
  assert_int_equal(alive, 2); /* a reader may still run the first */
  assert_true(first->launch != NULL);
  assert_true(at_plan_table_decision(&table, &key, &decision));
  assert_int_equal(decision.source, ATTUNE_SOURCE_TUNED);
  at_plan_table_close(&table);
  assert_int_equal(alive, 0);
}

TEST(guesses_are_withdrawn) {
  at_plan_table table;
  assert_int_equal(at_plan_table_open(&table), ATTUNE_OK);
  for (int i = 0; i < 100; i++) put(&table, i, (attune_source)(1 + i % 5), false);
  at_plan_table_drop_guesses(&table);
  for (int i = 0; i < 100; i++) {
    const at_key key = key_of(i);
    attune_decision decision;
    assert_int_equal(find(&table, i) != NULL, 1 + i % 5 > ATTUNE_SOURCE_NEIGHBOUR);
    assert_int_equal(at_plan_table_decision(&table, &key, &decision), 1 + i % 5 > ATTUNE_SOURCE_NEIGHBOUR);
  }
  put(&table, 0, ATTUNE_SOURCE_STORED, true); /* the entry is used again */
  assert_non_null(find(&table, 0));
  at_plan_table_drop_guesses(&table);
  assert_non_null(find(&table, 0));
  assert_int_equal(alive, 101);
  at_plan_table_close(&table);
  assert_int_equal(alive, 0);
}

/* ---- threads ---- */

typedef struct shared {
  at_plan_table table;
  _Atomic int put_up_to[WRITERS]; /* keys of each writer that are there and stay */
  _Atomic bool done;
  _Atomic long hits, wrong;
} shared;

typedef struct worker {
  shared *all;
  int index;
} worker;

/* Writer w puts the keys w, w + WRITERS, ...: stored ones, that stay, and guesses in a range of their own, that are
 * withdrawn. */
static void *write_keys(void *arg) {
  worker *w = arg;
  for (int i = w->index; i < KEYS; i += WRITERS) {
    put(&w->all->table, i, ATTUNE_SOURCE_TUNED, i % 3 == 0);
    atomic_store(&w->all->put_up_to[w->index], i);
    if (i % 5 == 0) put(&w->all->table, i, ATTUNE_SOURCE_STORED, false); /* replaced under the readers */
    if (i % 7 == 0) put(&w->all->table, KEYS + i % 50, ATTUNE_SOURCE_DEFAULT, true);
    if (i % 100 == w->index) at_plan_table_drop_guesses(&w->all->table);
  }
  return NULL;
}

/* Entries that were put are found, complete and alive. */
static void *read_keys(void *arg) {
  worker *w = arg;
  uint32_t random = (uint32_t)w->index + 1;
  long hits = 0, wrong = 0;
  for (bool last = false; !last;) {
    last = atomic_load(&w->all->done);
    for (int i = 0; i < 500; i++) {
      random = random * 1664525u + 1013904223u;
      const int number = (int)(random >> 8) % (KEYS + 50);
      const bool must = number < KEYS && atomic_load(&w->all->put_up_to[number % WRITERS]) >= number;
      const at_plan *plan = find(&w->all->table, number);
      int64_t own = -1;
      if (!plan) {
        wrong += must;
        continue;
      }
      hits++;
      at_configuration_get(&plan->configuration, "number", &own);
      wrong += own != number || plan->launch != launch || plan->launch(plan, NULL, NULL) != ATTUNE_OK;
    }
  }
  atomic_fetch_add(&w->all->hits, hits);
  atomic_fetch_add(&w->all->wrong, wrong);
  return NULL;
}

static void *ask_decisions(void *arg) {
  worker *w = arg;
  while (!atomic_load(&w->all->done))
    for (int i = 0; i < KEYS; i += 17) {
      const at_key key = key_of(i);
      attune_decision decision;
      if (at_plan_table_decision(&w->all->table, &key, &decision) && decision.samples != i)
        atomic_fetch_add(&w->all->wrong, 1);
    }
  return NULL;
}

static void one_round(void) {
  static shared all;
  memset(&all, 0, sizeof all);
  for (int i = 0; i < WRITERS; i++) atomic_store(&all.put_up_to[i], -1);
  assert_int_equal(at_plan_table_open(&all.table), ATTUNE_OK);
  pthread_t threads[READERS + WRITERS + 1];
  worker workers[READERS + WRITERS + 1];
  for (int i = 0; i < READERS + WRITERS + 1; i++) {
    workers[i] = (worker){&all, i < WRITERS ? i : i - WRITERS};
    assert_int_equal(pthread_create(&threads[i], NULL,
                                    i < WRITERS             ? write_keys
                                    : i < WRITERS + READERS ? read_keys
                                                            : ask_decisions,
                                    &workers[i]),
                     0);
  }
  for (int i = 0; i < WRITERS; i++) pthread_join(threads[i], NULL);
  atomic_store(&all.done, true);
  for (int i = WRITERS; i < READERS + WRITERS + 1; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < KEYS; i++) assert_non_null(find(&all.table, i));
  assert_int_equal(atomic_load(&all.wrong), 0);
  assert_true(atomic_load(&all.hits) > 0);
  at_plan_table_close(&all.table);
  assert_int_equal(alive, 0);
}

TEST(readers_beside_writers) {
  for (int round = 0; round < ROUNDS; round++) one_round();
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  return RUN_TESTS(NULL, NULL);
}
