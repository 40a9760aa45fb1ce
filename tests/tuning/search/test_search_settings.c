/* SPDX-License-Identifier: Apache-2.0
 * test_search_settings.c: the settings of a search: read, written, and what each of them does; and the trace of
 * candidates. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include "tests/support/toy/toy_clock.h"
#include "tuning/search/search.h"
#include "tuning/tuner/tuner.h"

static attune_device *device;
static at_timer *timer;
static at_search_result result;

FIXTURE(fresh) {
  toy_reset();
  timer->settings = (attune_search_options){0};
  return 0;
}

static const char *const SPINS[] = {"ns=120000", "ns=60000", "ns=62000", "ns=64000", NULL};

static void search(const char *settings) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  toy_spins = SPINS;
  OK(at_search_settings_parse(&timer->settings, settings, "t"));
  OK(at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, 3e9, 0.0, NULL));
}

TEST(words_are_read) {
  attune_search_options s = {0};
  OK(at_search_settings_parse(&s, "", "t"));
  assert_true(s.rounds == 0 && s.warmups == 0 && s.warmup_ms == 0.0 && !s.no_guess);
  OK(at_search_settings_parse(&s,
                              "rounds:12,warmups:3,configurations:7,warmup_ms:2.5,candidate_ms:40,rotate_mb:512,"
                              "tolerance:0.5,guess:false",
                              "t"));
  assert_true(s.rounds == 12 && s.warmups == 3 && s.configurations == 7 && s.warmup_ms == 2.5 && s.no_guess);
  assert_true(s.candidate_ms == 40.0 && s.rotate_mb == 512 && s.tolerance == 0.5);
  OK(at_search_settings_parse(&s, "rounds:0,guess:true,tolerance:0", "t")); /* the others stay */
  assert_true(s.rounds == 0 && !s.no_guess && s.tolerance == 0.0 && s.warmups == 3);
}

/* The bounds that a message names are those that hold: they are taken, and what lies beyond them is not. */
TEST(messages_name_the_bounds) {
  static const char *const names[] = {"rounds",       "warmups",   "configurations", "warmup_ms",
                                      "candidate_ms", "rotate_mb", "tolerance"};
  for (size_t i = 0; i < AT_COUNT(names); i++) {
    attune_search_options s = {0};
    char text[64], right[256];
    double least = 0, most = 0;
    snprintf(text, sizeof text, "%s:-1", names[i]);
    FAILS(at_search_settings_parse(&s, text, "t"), ATTUNE_INVALID_ARGUMENT);
    const char *from = strstr(attune_last_message(), "from ");
    assert_non_null(from);
    assert_int_equal(sscanf(from, "from %lf to %lf", &least, &most), 2);
    snprintf(right, sizeof right, "%s", attune_last_message());
    const double inside[] = {least, most}, outside[] = {least / 2, most + 1};
    for (int k = 0; k < 2; k++) {
      snprintf(text, sizeof text, "%s:%.*f", names[i], inside[k] < 1 ? 7 : 0, inside[k]);
      if (at_search_settings_parse(&s, text, "t") != ATTUNE_OK) fail_msg("%s is refused: %s", text, right);
      snprintf(text, sizeof text, "%s:%.7f", names[i], outside[k]);
      if (at_search_settings_parse(&s, text, "t") == ATTUNE_OK) fail_msg("%s is taken: %s", text, right);
    }
  }
}

TEST(wrong_words_are_named) {
  static const char *const bad[] = {"rounds",        "rounds:2",     "rounds:62",      "rounds:3.5",    "rounds:-3",
                                    "rounds:x",      "warmups:1001", "candidate_ms:x", "tolerance:2",   "tolerance:1.5",
                                    "guess:maybe",   "guess:1",      "speed:9",        "rotate_mb:0.5", "rounds:5,x:1",
                                    "warmup_ms:1e3", "rotate_mb:nan"};
  attune_search_options s = {.warmups = 4};
  for (size_t i = 0; i < AT_COUNT(bad); i++) {
    FAILS_SAYING(at_search_settings_parse(&s, bad[i], "ATTUNE_SEARCH"), ATTUNE_INVALID_ARGUMENT, "ATTUNE_SEARCH");
    assert_true(s.rounds == 0 && s.warmups == 4);
  }
}

TEST(rounds_are_bounded) {
  search("rounds:5");
  assert_true(result.decision.samples <= 5);
  search("rounds:0");
  assert_true(result.decision.samples > 5);
}

TEST(the_race_of_a_candidate_is_bounded) {
  search("candidate_ms:0.001"); /* the least rounds that there are */
  const int few = result.decision.samples;
  search("candidate_ms:0");
  assert_true(few >= 3 && few < result.decision.samples);
}

TEST(few_configurations_are_asked_for) {
  search("configurations:1");
  assert_string_equal(result.decision.configuration, "ns=120000");
  search("configurations:2");
  assert_string_equal(result.decision.configuration, "ns=60000");
}

static int launches_of(const char *settings) {
  at_sampler sampler;
  at_timing_target target;
  at_plan *plan = NULL;
  const at_key key = toy_key(TOY_PROBLEM, device);
  const at_configuration one = {"ns=1000000"};
  OK(at_search_settings_parse(&timer->settings, settings, "t"));
  OK(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER));
  OK(at_plan_create(&plan, &toy_op, &toy_spin_implementation, &one, key.words + 1, device));
  toy_launches = 0;
  OK(at_sampler_try(&sampler, &target, plan, 1e12));
  const int launches = toy_launches;
  at_plan_destroy(plan);
  at_sampler_close(&sampler);
  return launches;
}

TEST(candidates_are_warmed_up) {
  const int usual = launches_of("warmups:0");
  assert_int_equal(launches_of("warmups:10"), usual + 9);
  assert_true(launches_of("warmups:0,warmup_ms:20") >= usual + 19); /* a launch takes a millisecond */
}

/* However long a warm-up is to be, a budget ends it. */
TEST(a_budget_ends_warm_ups) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  static const double budgets[][2] = {{5e6, 0.0}, {5e6, 9e9}, {9e9, 5e6}, {0.0, 5e6}};
  toy_spins = SPINS;
  for (size_t i = 0; i < AT_COUNT(budgets); i++) {
    OK(at_search_settings_parse(&timer->settings, i % 2 ? "warmups:1000,warmup_ms:0" : "warmup_ms:9000", "t"));
    const int64_t start_ns = at_now_ns();
    OK(at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, budgets[i][0], budgets[i][1], NULL));
    const int64_t took_ns = at_now_ns() - start_ns;
    if (took_ns > 100000000) fail_msg("budget %zu: %.0f ms", i, (double)took_ns * 1e-6);
  }
}

static int copies_of(const char *settings) {
  at_sampler sampler;
  const at_key key = toy_key(TOY("f32 1000x700"), device);
  OK(at_search_settings_parse(&timer->settings, settings, "t"));
  OK(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_COLD_EAGER));
  const int copies = sampler.operands->copies;
  at_sampler_close(&sampler);
  return copies;
}

TEST(operands_rotate_over_what_is_asked_for) {
  const int one = copies_of("rotate_mb:1"), more = copies_of("rotate_mb:100");
  assert_int_equal(one, 1);
  assert_true(more > 1 && more < 100);
}

static int looks, ends;

static void count_lines(void *user, attune_log_level level, const char *line) {
  (void)user;
  if (level != ATTUNE_LOG_DEBUG) return;
  looks += strstr(line, "candidate spin ns=60000: screened, ") != NULL;
  ends += strstr(line, "candidate spin ns=60000: raced, ") != NULL;
}

TEST(candidates_are_traced) {
  attune_set_log(count_lines, NULL, ATTUNE_LOG_DEBUG);
  search("rounds:0");
  attune_set_log(count_lines, NULL, ATTUNE_LOG_INFO);
  assert_true(looks == 1 && ends == 1);
  search("rounds:0");
  attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
  assert_true(looks == 1 && ends == 1);
}

TEST(a_tuner_takes_them) {
  const attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_CACHED};
  attune_tuner *tuner = NULL;
  attune_search_options search = ATTUNE_SEARCH_OPTIONS_INIT;
  setenv("ATTUNE_SEARCH", "rounds:9", 1);
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  OK(attune_tuner_get_search(tuner, &search));
  assert_true(search.rounds == 9 && search.warmups == 0);
  search.warmups = 2;
  OK(attune_tuner_set_search(tuner, &search));
  search = (attune_search_options){0};
  OK(attune_tuner_get_search(tuner, &search));
  assert_true(search.rounds == 9 && search.warmups == 2);
  search.warmups = 1001;
  FAILS_SAYING(attune_tuner_set_search(tuner, &search), ATTUNE_INVALID_ARGUMENT,
               "options.warmups is 1001; should be a whole number from 1 to 1000");
  FAILS(attune_tuner_set_search(tuner, &(attune_search_options){.tolerance = 0.0 / 0.0}), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tuner_set_search(NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tuner_get_search(tuner, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_decision d;
  toy_spins = SPINS;
  OK(attune_tune(tuner, device, TOY_PROBLEM, &(attune_tune_options){.budget_ms = 3000.0}, &d));
  assert_true(d.samples <= 9);
  attune_tuner_destroy(tuner);
  setenv("ATTUNE_SEARCH", "rounds:many", 1);
  FAILS_SAYING(at_tuner_create(&tuner, &options, toy_ops, 1), ATTUNE_INVALID_ARGUMENT,
               "ATTUNE_SEARCH: rounds is \"many\"");
  unsetenv("ATTUNE_SEARCH");
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_timer_create(&timer, device) != ATTUNE_OK) return 1;
  virtual_clock_runs = true;
  const int failed = RUN_TESTS_EACH(fresh, NULL, NULL, NULL);
  at_timer_destroy(timer);
  return failed;
}
