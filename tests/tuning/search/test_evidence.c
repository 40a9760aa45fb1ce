/* SPDX-License-Identifier: Apache-2.0
 * test_evidence.c: what noise leaves open is unsure, is told and measured again; weaker evidence never replaces
 * stronger, and the winner so far is raced beside its challengers. */
#include "tests/support/toy/toy_database.h"
#include "tuning/store/decision.h"

#include "tuning/search/race.h"

/* The default's times when something else has the machine: from 0.3 to 3.3 ms. */
#define LOADED "ns=300000,noise=3000000"

FIXTURE(fresh) {
  toy_reset();
  remove_database();
  return 0;
}

/* Puts evidence of the given kind for "spin ns=50000" into the database. */
static void put(int complete, int unsure, double spread) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  attune_tuner *tuner = tuner_of();
  attune_decision d;
  char fingerprint[AT_FINGERPRINT_CHARS], family[AT_FAMILY_CHARS];
  OK(at_decision_begin(tuner, &toy_op, key.words + 1, device, &d));
  OK(at_fingerprint_whole(device, toy_ops, 1, fingerprint, sizeof fingerprint)); /* a search's winner replaces it */
  OK(toy_op.problem->family(key.words + 1, family, sizeof family));
  at_copy_text(d.implementation, sizeof d.implementation, "spin");
  at_copy_text(d.configuration, sizeof d.configuration, "ns=50000");
  d.implementation_version = 1;
  d.time_ns = 50000.0;
  d.default_time_ns = 200000.0;
  d.spread = spread;
  d.samples = 12;
  d.complete = complete;
  d.unsure = unsure;
  d.tuned_at = 1700000000;
  OK(at_store_put(at_tuner_store(tuner), fingerprint, family, &d, NULL, 0, 1000));
  attune_tuner_destroy(tuner);
}

/* ---- the order of evidence ---- */

TEST(evidence_has_an_order) {
  static const struct {
    int complete, unsure, samples;
    double spread;
  } each[] = {{0, 0, 12, 0.0}, {1, 1, 12, 0.0}, {1, 0, 12, 0.01}, {1, 0, 12, 0.014}, {1, 0, 12, 0.2}, {1, 0, 3, 0.05}};
  static const bool weaker[6][6] = {/* row: the new one */
                                    {0, 1, 1, 1, 1, 1}, {0, 0, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0},
                                    {0, 0, 0, 0, 0, 0}, {0, 0, 1, 1, 0, 0}, {0, 0, 1, 1, 0, 0}};
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++) {
      const attune_decision fresh_one = {.complete = each[i].complete,
                                         .unsure = each[i].unsure,
                                         .samples = each[i].samples,
                                         .spread = each[i].spread},
                            old = {.complete = each[j].complete,
                                   .unsure = each[j].unsure,
                                   .samples = each[j].samples,
                                   .spread = each[j].spread};
      if (at_evidence_weaker(&fresh_one, &old, false) != weaker[i][j]) fail_msg("%d against %d", i, j);
    }
}

/* A tiny budget, however forced, does not replace a winner that was looked for in full. */
TEST(a_tiny_budget_keeps_the_winner) {
  static const char *const slow[] = {"ns=5000000,a=1", "ns=5000000,a=2", "ns=5000000,a=3", NULL};
  put(1, 0, 0.01);
  toy_spins = slow;
  at_copy_text(toy_base, sizeof toy_base, "ns=2000000");
  const attune_decision d = tune(1.0, 1);
  assert_true(toy_launches > 0);
  assert_string_equal(d.configuration, "ns=50000");
  assert_int_equal(d.source, ATTUNE_SOURCE_STORED);
  assert_true(d.complete == 1 && d.tuned_at == 1700000000);
  assert_non_null(strstr(d.note, "stays"));
  assert_string_equal(stored().configuration, "ns=50000");
  assert_int_equal(stored().tuned_at, 1700000000);
}

/* Nor does a run on a loaded machine. */
TEST(a_loaded_machine_keeps_the_winner) {
  put(1, 0, 0.01);
  at_copy_text(toy_base, sizeof toy_base, LOADED);
  toy_refused = "ns=50000"; /* not even the winner itself runs */
  const attune_decision measured = tune(400.0, 1);
  assert_int_equal(measured.complete, 1);
  toy_refused = NULL;
  assert_string_equal(stored().implementation, "base"); /* what no longer runs is no evidence */
  put(1, 0, 0.01);
  static const char *const noisy[] = {"ns=100000,noise=3000000", NULL};
  toy_spins = noisy;
  at_copy_text(toy_base, sizeof toy_base, "ns=50000,noise=3000000");
  const attune_decision d = tune(400.0, 1);
  assert_string_equal(d.configuration, "ns=50000");
  assert_string_equal(stored().configuration, "ns=50000");
}

/* Incomplete or unsure evidence gives way to better, unasked. */
TEST(weak_evidence_is_replaced) {
  static const char *const spins[] = {"ns=20000", NULL};
  toy_spins = spins;
  for (int unsure = 0; unsure < 2; unsure++) {
    put(unsure, unsure, 1.0);
    const attune_decision d = tune(2000.0, 0);
    assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
    assert_string_equal(d.configuration, "ns=20000");
    assert_string_equal(stored().configuration, "ns=20000");
  }
  put(1, 0, 0.0);
  toy_launches = 0;
  assert_string_equal(tune(2000.0, 0).configuration, "ns=50000"); /* what is complete and sure is not measured */
  assert_int_equal(toy_launches, 0);
}

/* A winner that the lists no longer offer is raced all the same, and wins again. */
TEST(the_winner_so_far_is_raced) {
  static const char *const others[] = {"ns=150000", NULL};
  put(1, 0, 1.0);
  toy_spins = others;
  const attune_decision d = tune(2000.0, 1);
  assert_string_equal(d.configuration, "ns=50000");
  assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
}

/* ---- unsure ---- */

/* A default whose own times vary widely leaves it open; the next run measures again, and on a quiet machine is sure. */
TEST(noise_is_told_and_retried) {
  at_copy_text(toy_base, sizeof toy_base, LOADED);
  const attune_decision d = tune(400.0, 0);
  assert_true(d.complete == 1 && d.unsure == 1);
  assert_non_null(strstr(d.note, "unsure"));
  assert_int_equal(stored().unsure, 1);
  const int searches = toy_searches;
  (void)tune(400.0, 0);
  assert_int_equal(toy_searches, searches + 1);
  at_copy_text(toy_base, sizeof toy_base, "ns=200000");
  assert_int_equal(tune(400.0, 0).unsure, 0);
  const int sure = toy_searches;
  (void)tune(400.0, 0);
  assert_int_equal(toy_searches, sure);
}

static void put_samples(at_candidate *candidate, double ns, double noise, int count) {
  candidate->count = count;
  candidate->state = AT_SCREENED;
  for (int i = 0; i < count; i++) candidate->place[i] = (unsigned char)i;
  for (int i = 0; i < count; i++)
    candidate->samples[i] = ns * (1.0 + noise * (i % 2 ? 1.0 : -1.0) * (0.5 + (double)(i % 3)));
}

/* A runner-up far ahead in its median with a huge spread leaves the choice open; one that is settled does not. */
TEST(a_noisy_runner_up_leaves_it_open) {
  static const struct {
    double base_noise, ns, noise;
    int count;
    bool open;
  } rows[] = {{0.0, 42.0, 0.64, 12, true}, {0.0, 100.0, 0.0, 12, false},  {0.0, 80.0, 0.0, 12, false},
              {0.0, 101.0, 0.3, 12, true}, {0.0, 130.0, 0.02, 12, false}, {0.3, 150.0, 0.0, 12, true},
              {0.0, 97.0, 0.02, 12, true}, {0.0, 100.0, 0.0, 3, true},    {0.0, 99.9, 0.005, 40, false}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    static at_candidate base, other;
    at_candidate *both[] = {&base, &other};
    at_race race = {.candidates = both, .count = 2};
    at_candidate *could = NULL;
    put_samples(&base, 100.0, rows[i].base_noise, rows[i].count);
    put_samples(&other, rows[i].ns, rows[i].noise, rows[i].count);
    at_race_judge(&base, &base);
    at_race_judge(&base, &other);
    if (at_race_open(&race, &could) != rows[i].open)
      fail_msg("row %zu: speedup %g, error %g", i, other.speedup, other.error);
    other.state = AT_WRONG; /* what is wrong leaves nothing open */
    if (rows[i].base_noise == 0.0) assert_false(at_race_open(&race, NULL));
  }
}

int main(void) {
  if (!open_toy_database()) return 1;
  return close_toy_database(RUN_TESTS_EACH(fresh, NULL, NULL, NULL));
}
