/* SPDX-License-Identifier: Apache-2.0
 * Change points: those that are there, few where none is; and a case's history over the runs of a file.
 * ATTUNE_TEST_SUITES: how many series. */
#include "tests/tools/compare/gate_noise.h"

#include "tools/compare/report/report.h"
#include "tools/compare/stats/history.h"

enum { LONGEST = 120 };

static int series(int few) {
  const char *told = getenv("ATTUNE_TEST_SUITES");
  return told ? atoi(told) : few;
}

static size_t find(const double *values, size_t count, double alpha, size_t *at, double *p) {
  return gate_change_points(values, count, alpha, 1, at, p);
}

TEST(finds_steps_where_they_are) {
  const int runs = series(20);
  int both = 0;
  noise_state = 31;
  for (int run = 0; run < runs; run++) {
    double values[60], p[60];
    size_t at[60];
    for (int i = 0; i < 60; i++) values[i] = (i < 20 ? 1.0 : i < 45 ? 1.05 : 1.02) + 0.01 * noise_normal();
    const size_t found = find(values, 60, 0.01, at, p);
    both += found == 2 && at[0] >= 18 && at[0] <= 22 && at[1] >= 42 && at[1] <= 48;
    for (size_t i = 0; i < found; i++) assert_true(p[i] > 0.0 && p[i] <= 0.01 && (i == 0 || at[i] > at[i - 1]));
  }
  if (both < runs * 85 / 100) fail_msg("both changes in %d of %d series", both, runs);
}

TEST(a_clean_step_is_found_exactly) {
  double values[24], p[24];
  size_t at[24];
  for (int i = 0; i < 24; i++) values[i] = i < 17 ? 100.0 : 103.0;
  assert_int_equal(find(values, 24, 0.01, at, p), 1);
  assert_int_equal(at[0], 17);
  values[23] = 100.0; /* outliers are no change */
  values[4] = 140.0;
  assert_int_equal(find(values, 24, 0.01, at, p), 1);
  assert_int_equal(at[0], 17);
}

TEST(noise_alone_is_seldom_a_change) {
  const int runs = series(100);
  int wrong = 0;
  noise_state = 32;
  for (int run = 0; run < runs; run++) {
    double values[30], p[30];
    size_t at[30];
    const int kind = run % 3; /* normal, heavy tails, two levels at random */
    for (int i = 0; i < 30; i++)
      values[i] = kind == 0   ? noise_normal()
                  : kind == 1 ? noise_normal() / (0.05 + noise_uniform())
                              : (noise_uniform() < 0.3 ? 5.0 : 0.0) + 0.1 * noise_normal();
    wrong += find(values, 30, 0.05, at, p) > 0;
  }
  const double mean = 0.05 * runs;
  print_message("noise alone: a change in %d of %d series at alpha 0.05\n", wrong, runs);
  if (wrong > mean + 3.3 * sqrt(mean) + 2.0) fail_msg("a change in %d of %d series of noise", wrong, runs);
  if (runs >= 1000 && wrong < mean / 3.0) fail_msg("a change in %d of %d series: far too careful", wrong, runs);
}

TEST(short_and_constant_series_have_none) {
  double values[LONGEST], p[LONGEST];
  size_t at[LONGEST];
  for (int i = 0; i < LONGEST; i++) values[i] = 7.25;
  assert_int_equal(find(values, LONGEST, 0.01, at, p), 0);
  values[3] = values[4] = 9.0;
  for (size_t count = 0; count < 6; count++) assert_int_equal(find(values, count, 0.01, at, p), 0);
  assert_int_equal(find(values, 6, 0.0, at, p), 0);
  assert_int_equal(find(values, 6, NAN, at, p), 0);
}

TEST(the_same_seed_gives_the_same) {
  double values[50], p[2][50];
  size_t at[2][50];
  noise_state = 33;
  for (int i = 0; i < 50; i++) values[i] = noise_normal() + (i > 30 ? 1.2 : 0.0);
  const size_t one = gate_change_points(values, 50, 0.2, 5, at[0], p[0]);
  assert_int_equal(gate_change_points(values, 50, 0.2, 5, at[1], p[1]), one);
  for (size_t i = 0; i < one; i++) assert_true(at[0][i] == at[1][i] && p[0][i] == p[1][i]);
}

/* --- of a file --- */

static char *text(const char *words) {
  return (char *)(uintptr_t)words;
}

/* A run with `cases`, each with four visits of about `ns`. */
static void save_run(gate_file *file, int64_t started, double ns, const char *const *names, const char *fingerprint,
                     gate_run_state state) {
  gate_run run = made_up_run("nightly");
  run.started = started;
  if (fingerprint) run.fingerprint = text(fingerprint);
  FINE(gate_file_begin(file, &run));
  for (; *names; names++) {
    gate_case c = made_up_case(*names);
    if (strcmp(*names, "copy") == 0) c.mode = text(started % 2 ? "cold" : "hot");
    for (int v = 0; v < 4; v++) {
      gate_sample samples[3] = {{.ns = ns * (1.0 + 0.001 * v)}, {.ns = ns * 1.5}, {.ns = ns * 1.001}};
      const gate_visit visit = {
          .round = v, .calls = 1, .throttled = v == 3, .load = -1.0, .samples = samples, .sample_count = 3};
      FINE(gate_file_add(file, run.id, &c, &visit));
    }
  }
  if (state != GATE_RUN_OPEN) FINE(gate_file_end(file, run.id, state));
}

static gate_file *file_with_history(void) {
  static const char *const names[] = {"sum/1M", "sum/10M", "copy", NULL}, *const other[] = {"sum/10M", NULL};
  gate_file *file = NULL;
  FINE(gate_file_open(&file, path_of("h.db"), true));
  for (int i = 0; i < 20; i++) save_run(file, 1000 + i, i < 12 ? 100.0 : 110.0, names, NULL, GATE_RUN_COMPLETE);
  save_run(file, 900, 500.0, names, "{\"cpu\": \"another\"}", GATE_RUN_COMPLETE);
  save_run(file, 2000, 99.0, other, NULL, GATE_RUN_COMPLETE); /* without the case */
  save_run(file, 500, 100.0, names, NULL, GATE_RUN_INTERRUPTED);
  save_run(file, 3000, 7.0, names, NULL, GATE_RUN_OPEN);
  return file;
}

TEST_WITH(a_case_is_followed_over_runs, set_up, tear_down) {
  gate_file *file = file_with_history();
  gate_history h;
  FINE(gate_history_load(&h, file, "sum/1M", 0.01));
  assert_string_equal(h.name, "sum/1M");
  assert_string_equal(h.device, "host");
  assert_string_equal(h.mode, "hot");
  assert_int_equal(h.point_count, 21); /* not the other machine's, not the open one's */
  assert_int_equal(h.points[0].started, 500);
  assert_int_equal(h.points[20].started, 1019);
  for (size_t i = 1; i < h.point_count; i++) assert_true(h.points[i].started > h.points[i - 1].started);
  assert_string_equal(h.points[0].revision, "0123456789abcdef0123456789abcdef01234567");
  assert_string_equal(h.points[0].label, "nightly");
  assert_true(fabs(h.points[1].ns - 100.1) < 0.01 && h.points[1].spread > 0.0 && h.points[1].spread < 0.01);
  assert_int_equal(h.change_count, 1);
  assert_int_equal(h.changes[0].at, 13);
  assert_true(fabs(h.changes[0].after / h.changes[0].before - 1.1) < 1e-9 && h.changes[0].p <= 0.01);
  gate_history_free(&h);
  gate_file_close(file);
}

TEST_WITH(a_part_of_a_name_is_enough, set_up, tear_down) {
  gate_file *file = file_with_history();
  gate_history h;
  FINE(gate_history_load(&h, file, "10M", 0.01));
  assert_string_equal(h.name, "sum/10M");
  assert_int_equal(h.point_count, 22);
  gate_history_free(&h);
  SAYS(gate_history_load(&h, file, "sum", 0.01), "part of the names of 2 cases");
  SAYS(gate_history_load(&h, file, "copy", 0.01), "copy [cold host]");
  FINE(gate_history_load(&h, file, "copy [cold host]", 0.01));
  assert_string_equal(h.mode, "cold");
  gate_history_free(&h);
  SAYS(gate_history_load(&h, file, "nothing", 0.01), "has no case \"nothing\"");
  assert_null(h.points);
  gate_file_close(file);
}

/* An older build of a pair is no point of its own, but it is counted; its head is one. */
TEST_WITH(bases_are_left_out_and_told, set_up, tear_down) {
  gate_file *file = NULL;
  gate_history h;
  char *drawn = NULL;
  size_t size = 0;
  FINE(gate_file_open(&file, path_of("pairs.db"), true));
  for (int i = 0; i < 6; i++) {
    gate_run run = made_up_run(i % 2 ? "head" : "base");
    gate_sample sample = {.ns = i % 2 ? 100.0 : 50.0};
    gate_case c = made_up_case("sum"), other = made_up_case(i < 2 ? "alone" : "sum");
    const gate_visit visit = {.calls = 1, .load = -1.0, .samples = &sample, .sample_count = 1};
    run.started = 1000 + i / 2;
    run.pair = i % 2 ? i : 0;
    FINE(gate_file_begin(file, &run));
    assert_int_equal(run.id, i + 1);
    FINE(gate_file_add(file, run.id, &c, &visit));
    if (i == 1) FINE(gate_file_add(file, run.id, &other, &visit));
    FINE(gate_file_end(file, run.id, GATE_RUN_COMPLETE));
  }
  FINE(gate_history_load(&h, file, "sum", 0.01));
  assert_int_equal(h.point_count, 3);
  assert_int_equal(h.bases, 3);
  for (size_t i = 0; i < 3; i++) assert_true(h.points[i].ns == 100.0 && strcmp(h.points[i].label, "head") == 0);
  FILE *out = open_memstream(&drawn, &size);
  assert_non_null(out);
  assert_true(gate_history_draw(out, &h, 80, false) && gate_history_json(out, &h));
  assert_int_equal(fclose(out), 0);
  if (!strstr(drawn, "without 3 bases: of two alternating runs") || !strstr(drawn, "\"bases\":"))
    fail_msg("the bases are not told: %s", drawn);
  free(drawn);
  gate_history_free(&h);
  FINE(gate_history_load(&h, file, "alone", 0.01)); /* the base did not have it */
  assert_int_equal(h.bases, 0);
  gate_history_free(&h);
  gate_file_close(file);
}

TEST_WITH(a_file_without_ended_runs_is_told, set_up, tear_down) {
  static const char *const names[] = {"sum", NULL};
  gate_file *file = NULL;
  gate_history h;
  FINE(gate_file_open(&file, path_of("open.db"), true));
  SAYS(gate_history_load(&h, file, "sum", 0.01), "has no case");
  save_run(file, 1, 5.0, names, NULL, GATE_RUN_OPEN);
  SAYS(gate_history_load(&h, file, "sum", 0.01), "in a finished run");
  gate_file_close(file);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
