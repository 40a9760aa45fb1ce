/* SPDX-License-Identifier: Apache-2.0
 * test_fingerprint.c: a stored winner holds by its own implementation's version and libraries, whatever changes in
 * others and whatever is added; what has changed there is told, and the next tuning run measures again. */
#include "tests/tuning/store/store_fixture.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include "ops/gemm/problem/problem.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/store/fingerprint.h"

static attune_device *host;
static char database[256], lines[1 << 14];
static const char *const FAST[] = {"ns=50000", NULL};
static const char *base_library, *one_library, *two_library;

/* "spin" calls two libraries; its configuration that wins calls the first. */
static bool base_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                         char *out, size_t size) {
  (void)self;
  size_t at = 0;
  (void)configuration, (void)device;
  return at_append(out, size, &at, "baselib-%s", base_library);
}

static bool spin_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                         char *out, size_t size) {
  (void)self;
  size_t at = 0;
  (void)device;
  return at_append(out, size, &at, "onelib-%s", one_library) &&
         (configuration || at_append(out, size, &at, " twolib-%s", two_library));
}

static int fresh(void **state) {
  if (setup(state) != 0) return -1;
  toy_reset();
  toy_spins = FAST;
  base_library = one_library = two_library = "1.0";
  toy_base_implementation.depends = base_depends;
  toy_spin_implementation.depends = spin_depends;
  snprintf(database, sizeof database, "%s", path_of("t.db"));
  lines[0] = '\0';
  return 0;
}

static attune_tuner *tuner_with(const at_op *const *ops, int count, attune_mode mode, const char *system) {
  attune_tuner_options options = {
      .database = system ? ":memory:" : database, .system_database = system, .mode = mode, .budget_ms = 3000.0};
  attune_tuner *tuner = NULL;
  OK(at_tuner_create(&tuner, &options, ops, count));
  OK(attune_tuner_database_status(tuner));
  return tuner;
}

static attune_decision explain_in(attune_tuner *tuner) {
  attune_decision d;
  OK(attune_explain(tuner, host, TOY_PROBLEM, &d));
  attune_tuner_destroy(tuner);
  return d;
}

/* Each in a tuner of its own, as another process would. */
static attune_decision explain(void) {
  return explain_in(tuner_with(toy_ops, 1, ATTUNE_MODE_CACHED, NULL));
}

static attune_decision tune(void) {
  attune_tuner *tuner = tuner_with(toy_ops, 1, ATTUNE_MODE_CACHED, NULL);
  attune_decision d;
  OK(attune_tune(tuner, host, TOY_PROBLEM, NULL, &d));
  attune_tuner_destroy(tuner);
  return d;
}

static void store_winner(void) {
  const attune_decision d = tune();
  assert_string_equal(d.implementation, "spin");
  assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
  assert_string_equal(d.changed, "");
  assert_int_equal(toy_searches, 1);
}

static void assert_holds(const char *changed) {
  const attune_decision d = explain();
  assert_int_equal(d.source, ATTUNE_SOURCE_STORED);
  assert_string_equal(d.implementation, "spin");
  assert_string_equal(d.changed, changed);
}

static void assert_miss(const char *why) {
  const attune_decision d = explain();
  assert_int_equal(d.source, ATTUNE_SOURCE_DEFAULT);
  assert_string_equal(d.changed, why);
}

/* ---- what makes a miss ---- */

TEST(only_its_own_part_counts) {
  store_winner();
  assert_holds("");
  base_library = "2.0";
  assert_holds("base's baselib 1.0 there, 2.0 here");
  toy_base_implementation.version = 2;
  assert_holds("base's version 1 there, 2 here; base's baselib 1.0 there, 2.0 here");
  base_library = "1.0";
  toy_base_implementation.version = 1;
  two_library = "none"; /* of its implementation, but not of its configuration */
  assert_holds("spin's twolib 1.0 there, none here");
  two_library = "1.0";
  one_library = "1.1";
  assert_miss("a stored winner is not valid here: spin's onelib 1.0 there, 1.1 here");
  one_library = "1.0";
  toy_spin_implementation.version = 2;
  assert_miss("a stored winner is not valid here: spin's version 1 there, 2 here");
  toy_spin_implementation.version = 1;
  assert_holds("");
}

TEST(a_miss_lends_nothing) {
  const char *near = TOY("f32 10x7");
  attune_decision d;
  store_winner();
  for (int changed = 0; changed < 2; changed++) {
    attune_tuner *tuner = tuner_with(toy_ops, 1, ATTUNE_MODE_CACHED, NULL);
    one_library = changed ? "1.1" : "1.0";
    OK(attune_explain(tuner, host, near, &d));
    assert_int_equal(d.source, changed ? ATTUNE_SOURCE_DEFAULT : ATTUNE_SOURCE_NEIGHBOUR);
    attune_tuner_destroy(tuner);
  }
}

/* ---- what a winner was compared with ---- */

TEST(what_has_changed_is_measured_again) {
  store_winner();
  base_library = "2.0";
  attune_tuner *tuner = tuner_with(toy_ops, 1, ATTUNE_MODE_TUNE, NULL);
  const at_key key = toy_key(TOY_PROBLEM, host);
  const at_plan *plan = NULL;
  OK(at_dispatch_as(tuner, &toy_op, &key, 0, attune_stream_default(host), &plan));
  assert_string_equal(plan->implementation->name, "spin");
  assert_int_equal(toy_searches, 1); /* a call runs it, in mode tune too */
  attune_decision d;
  OK(attune_tune(tuner, host, TOY_PROBLEM, NULL, &d)); /* also where the tuner has it in use */
  attune_tuner_destroy(tuner);
  assert_int_equal(toy_searches, 2);
  assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
  assert_holds("");
  (void)tune();
  assert_int_equal(toy_searches, 2); /* once */
  assert_int_equal(query(database, "SELECT count(*) FROM winner"), 2);
  /* The library of before is not lost, and has its own winner. */
  base_library = "1.0";
  assert_holds("");
  (void)tune();
  assert_int_equal(toy_searches, 2);
}

/* Weaker evidence replaces nothing, but what was compared with something else is no stronger. */
TEST(new_evidence_counts_however_weak) {
  const attune_decision old = {.complete = 1, .samples = 20, .changed = "base's version 1 there, 2 here"};
  const attune_decision sure = {.complete = 1, .samples = 20}, part = {.samples = 20};
  assert_int_equal(at_evidence(&old), AT_EVIDENCE_OPEN);
  assert_int_equal(at_evidence(&sure), AT_EVIDENCE_FULL);
  assert_true(at_evidence_weaker(&part, &sure, false));
  assert_false(at_evidence_weaker(&part, &old, false));
}

TEST(an_implementation_more) {
  at_implementation late = toy_spin_implementation;
  late.name = "late";
  late.depends = NULL;
  const at_implementation *const three[] = {&toy_base_implementation, &toy_spin_implementation, &late};
  store_winner();
  toy_op.implementations = three;
  toy_op.implementation_count = 3;
  assert_holds("implementation none there, late here");
  const attune_decision d = tune();
  assert_int_equal(toy_searches, 2);
  assert_string_equal(d.changed, "");
  (void)tune();
  assert_int_equal(toy_searches, 2);
  late.fallback = true; /* and what no search would race is no reason */
  late.version = 2;
  assert_string_equal(explain().changed, "");
}

TEST(an_operation_more) {
  at_implementation strange = toy_base_implementation;
  const at_implementation *const list[] = {&strange};
  at_op other = at_gemm_op;
  strange.name = "strange";
  strange.depends = spin_depends;
  other.name = "other";
  other.id = 77;
  other.implementations = list;
  other.implementation_count = 1;
  const at_op *const ops[] = {&toy_op, &other};
  store_winner();
  const attune_decision d = explain_in(tuner_with(ops, 2, ATTUNE_MODE_CACHED, NULL));
  assert_int_equal(d.source, ATTUNE_SOURCE_STORED);
  assert_string_equal(d.changed, "");
  attune_tuner *tuner = tuner_with(ops, 2, ATTUNE_MODE_CACHED, NULL);
  OK(attune_tune(tuner, host, TOY_PROBLEM, NULL, NULL));
  attune_tuner_destroy(tuner);
  assert_int_equal(toy_searches, 1);
}

/* ---- told ---- */

typedef struct list {
  int rows, valid;
  attune_decision last;
  char fingerprint[AT_FINGERPRINT_CHARS];
} list;

static int take(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  list *l = user;
  l->rows++;
  l->valid += valid;
  if (valid || l->rows == 1) l->last = *decision;
  snprintf(l->fingerprint, sizeof l->fingerprint, "%s", fingerprint);
  return 0;
}

static list winners(void) {
  attune_tuner *tuner = tuner_with(toy_ops, 1, ATTUNE_MODE_CACHED, NULL);
  list l = {.rows = 0};
  OK(attune_tuner_winners(tuner, take, &l));
  attune_tuner_destroy(tuner);
  return l;
}

TEST(the_list_tells_it) {
  store_winner();
  base_library = "2.0";
  list l = winners();
  assert_true(l.rows == 1 && l.valid == 1);
  assert_string_equal(l.last.changed, "base's baselib 1.0 there, 2.0 here");
  assert_non_null(strstr(l.fingerprint, "; attune 1; with threads "));
  assert_non_null(strstr(l.fingerprint, "; spin 1 onelib-1.0 twolib-1.0"));
  assert_null(strstr(l.fingerprint, "baselib"));
  one_library = "2.0";
  l = winners();
  assert_true(l.rows == 1 && l.valid == 0);
  assert_string_equal(l.last.changed, "spin's onelib 1.0 there, 2.0 here");
  one_library = "1.0";
  (void)tune();
  l = winners(); /* two hold, one is used */
  assert_true(l.rows == 2 && l.valid == 1);
  assert_string_equal(l.last.changed, "");
}

static void collect(void *user, attune_log_level level, const char *line) {
  size_t at = strlen(lines);
  (void)user;
  (void)at_append(lines, sizeof lines, &at, "%d %s\n", (int)level, line);
}

TEST(the_log_tells_it) {
  store_winner();
  one_library = "1.1";
  attune_tuner *tuner = tuner_with(toy_ops, 1, ATTUNE_MODE_CACHED, NULL);
  const at_key key = toy_key(TOY_PROBLEM, host);
  const at_plan *plan = NULL;
  attune_set_log(collect, NULL, ATTUNE_LOG_INFO);
  OK(at_dispatch_as(tuner, &toy_op, &key, 0, attune_stream_default(host), &plan));
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  if (!strstr(lines, "; a stored winner is not valid here: spin's onelib 1.0 there, 1.1 here")) fail_msg("%s", lines);
  attune_tuner_destroy(tuner);
}

/* The library's own implementations: each says what it depends on in words that can be compared. */
TEST(real_implementations) {
  const at_op op = at_gemm_op;
  bool compiles = false;
  for (size_t i = 0; i < op.implementation_count; i++) {
    const at_implementation *implementation = op.implementations[i];
    char words[512] = "", small[3];
    if (!implementation->depends) continue;
    assert_true(implementation->depends(implementation, NULL, host, words, sizeof words));
    assert_false(implementation->depends(implementation, NULL, host, small, sizeof small));
    for (const char *word = words; *word;) {
      const size_t chars = strcspn(word, " ");
      const char *dash = memchr(word, '-', chars);
      if (!dash || dash == word || dash + 1 == word + chars) fail_msg("%s: %s", implementation->name, words);
      word += chars + (word[chars] == ' ');
    }
    if (strstr(implementation->name, "padded")) {
      compiles = strstr(words, "nvrtc-") && strstr(words, "jit-1") && strstr(words, "cublaslt-");
      if (!compiles) fail_msg("%s: %s", implementation->name, words);
    }
  }
#ifdef AT_WITH_CUDA
  assert_true(compiles);
#else
  assert_false(compiles);
#endif
}

FIXTURE(open_device) {
  virtual_clock_start();
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

/* Implementations of one name and version, as two operations have a host_reference, are told once. */
TEST(nothing_is_told_twice) {
  char text[AT_FINGERPRINT_CHARS], *entries[64], *rest = NULL;
  int count = 0;
  OK(attune_device_fingerprint(host, text, sizeof text));
  assert_non_null(strstr(text, "; host_reference "));
  for (char *entry = strtok_r(text, ";", &rest); entry; entry = strtok_r(NULL, ";", &rest)) {
    for (int i = 0; i < count; i++) assert_string_not_equal(entries[i], entry);
    assert_in_range(count, 0, 63);
    entries[count++] = entry;
  }
}

int main(void) {
  return RUN_TESTS_EACH(fresh, teardown, open_device, NULL);
}
