/* SPDX-License-Identifier: Apache-2.0
 * test_gate_runner.c: the schedule of a benchmark: rounds, turns, peers, yardsticks, and more rounds for what is
 * unsure. What the workers tell as times is made up: nothing here depends on how fast the machine is. */
#include "tests/tools/compare/gate_bench.h"

TEST(samples_and_rounds) {
  bench b;
  do_all(&b, &plain, WORDS("a=time:1000", "b=time:2000.5"), WORDS("a=time:1100", "b=time:2000"));
  assert_int_equal(b.outcome.count, 2);
  assert_int_equal(b.outcome.rounds, 4);
  assert_false(b.outcome.interrupted);
  assert_null(b.outcome.judged);
  for (int side = 0; side < 2; side++) {
    does_well(&b, side, "a", 4);
    does_well(&b, side, "b", 4);
  }
  const gate_case *c = named(&b, GATE_BASE, "a");
  assert_string_equal(c->device, "-");
  assert_string_equal(c->mode, "hot");
  assert_true(c->bytes == 100);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(c->visits[i].round, i);
    assert_int_equal(c->visits[i].calls, 3);
    assert_int_equal(c->visits[i].sample_count, 3);
    assert_true(c->visits[i].clock_mhz == 1500);
    assert_true(c->visits[i].samples[2].ns == 1100 && c->visits[i].samples[2].cpu_ns == 550);
    assert_int_equal(c->visits[i].samples[2].start, 5);
  }
  assert_string_equal(b.sources[0][0]->version, "9.8.7");
  assert_ptr_equal(b.outcome.sides[GATE_BASE][0], c);
  end(&b);
}

/* In the log of both sides: processes are new in each round, sides take turns within a case and begin by turns that are
 * drawn, cases come in orders that are drawn, and both sides get the same seed. */
TEST(turns_and_orders) {
  bench b;
  gate_schedule schedule = plain;
  char turns[2048] = "", orders[2048] = "", seeds[2][64] = {"", ""};
  int starts = 0, first_head = 0, opens = 0, same_seeds = 0;
  schedule.rounds = 8;
  do_all(&b, &schedule, WORDS(log_word(), "--side=H", "a=time:1", "b=time:1", "c=time:1"),
         WORDS(log_word(), "--side=B", "a=time:1", "b=time:1", "c=time:1"));
  end(&b);
  char *log = text_of(path_of("log"));
  for (char *rest = log, *line; (line = strsep(&rest, "\n")) && *line;) {
    char side, request[16], name[16] = "", seed[64] = "";
    assert_in_range(sscanf(line, "%c %*s %15s %15s %63s", &side, request, name, seed), 3, 4);
    starts += strcmp(request, "start") == 0;
    if (strcmp(request, "open") == 0) {
      snprintf(seeds[opens % 2], sizeof seeds[0], "%s", seed);
      if (opens % 2 == 0) {
        strcat(orders, name);
        first_head += side == 'H';
        strcat(turns, " ");
      } else {
        same_seeds += strcmp(seeds[0], seeds[1]) == 0;
      }
      opens++;
    }
    if (strcmp(request, "sample") == 0) strncat(turns, &side, 1);
  }
  free(log);
  assert_int_equal(starts, 16);
  assert_int_equal(opens, 2 * 8 * 3);
  assert_int_equal(same_seeds, 8 * 3);
  assert_in_range(first_head, 4, 20);
  for (const char *turn = strtok(turns, " "); turn; turn = strtok(NULL, " "))
    assert_true(strcmp(turn, "HBBHHB") == 0 || strcmp(turn, "BHHBBH") == 0);
  assert_int_equal(strlen(orders), 24);
  int like_first = 0;
  for (int i = 1; i < 8; i++) like_first += strncmp(orders, orders + 3L * i, 3) == 0;
  assert_in_range(like_first, 0, 5);
}

/* Peers are opened one after the other in every round, in orders that are drawn, by the same seed, which is theirs
 * alone, and the ratio is of the rounds. */
TEST(peers_stay_together) {
  enum { ROUNDS = 8 };
  bench b;
  gate_schedule schedule = plain;
  char orders[ROUNDS * 6 + 1] = "";
  char seeds[4][64], last[64] = "";
  int peer_first = 0, like_first = 0, same_seeds = 0, other_seeds = 0;
  schedule.rounds = ROUNDS;
  do_all(&b, &schedule,
         WORDS(log_word(), "x=time:7", "a=time:1000", "b@a=time:1500", "y=time:7", "c@a=time:500", "z=time:7"), NULL);
  assert_string_equal(named(&b, GATE_HEAD, "c")->peer_of, "a");
  assert_null(named(&b, GATE_HEAD, "a")->peer_of);
  assert_true(gate_case_ratio(named(&b, GATE_HEAD, "b"), named(&b, GATE_HEAD, "a")) == 1.5);
  assert_true(gate_case_ratio(named(&b, GATE_HEAD, "c"), named(&b, GATE_HEAD, "a")) == 0.5);
  end(&b);
  char *log = text_of(path_of("log"));
  for (char *rest = log, *line; (line = strsep(&rest, "\n")) && *line;) {
    char request[16], name[16] = "", seed[64] = "";
    assert_in_range(sscanf(line, "%*s %*s %15s %15s %63s", request, name, seed), 2, 3);
    if (strcmp(request, "open") != 0) continue;
    strcat(orders, name);
    snprintf(seeds[*name == 'a' || *name == 'b' || *name == 'c' ? *name - 'a' : 3], sizeof seeds[0], "%s", seed);
    if (strlen(orders) % 6 == 0) same_seeds += strcmp(seeds[0], seeds[1]) == 0 && strcmp(seeds[0], seeds[2]) == 0;
    if (strlen(orders) % 6 == 0) other_seeds += strcmp(seeds[0], seeds[3]) != 0 && strcmp(seeds[0], last) != 0;
    if (strlen(orders) % 6 == 0) snprintf(last, sizeof last, "%s", seeds[0]);
  }
  free(log);
  assert_int_equal(strlen(orders), 6 * ROUNDS);
  assert_int_equal(same_seeds, ROUNDS);
  assert_int_equal(other_seeds, ROUNDS);
  for (int i = 0; i < ROUNDS; i++) {
    const char *round = orders + 6L * i, *a = memchr(round, 'a', 6), *p = memchr(round, 'b', 6),
               *q = memchr(round, 'c', 6);
    assert_true(a && p && q && labs(a - p) <= 2 && labs(a - q) <= 2 && labs(p - q) <= 2);
    peer_first += p < a;
    like_first += strncmp(orders, round, 6) == 0;
  }
  assert_in_range(peer_first, 1, ROUNDS - 1);
  assert_in_range(like_first, 1, ROUNDS - 1);
}

/* Without the case that it is a peer of it is a case like others. */
TEST(a_peer_alone) {
  bench b;
  gate_schedule schedule = plain;
  schedule.filter = "b";
  do_all(&b, &schedule, WORDS("a=time:1000", "b@a=time:1500"), NULL);
  does_well(&b, GATE_HEAD, "b", 4);
  assert_int_equal(b.outcome.count, 1);
  end(&b);
}

/* Only rounds that both have count. */
TEST(ratios_of_rounds) {
  gate_sample ns[] = {{.ns = 10}, {.ns = 20}, {.ns = 30}, {.ns = 40}, {.ns = 50}, {.ns = 120}};
  gate_visit mine[] = {{.round = 0, .samples = &ns[1], .sample_count = 1},
                       {.round = 2, .samples = &ns[2], .sample_count = 1},
                       {.round = 3, .samples = &ns[5], .sample_count = 1},
                       {.round = 5, .samples = &ns[3], .sample_count = 1}},
             theirs[] = {{.round = 0, .samples = &ns[0], .sample_count = 1},
                         {.round = 1, .samples = &ns[4], .sample_count = 1},
                         {.round = 2, .samples = &ns[0], .sample_count = 1},
                         {.round = 3, .samples = &ns[2], .sample_count = 1}};
  const gate_case one = {.visits = mine, .visit_count = 4}, other = {.visits = theirs, .visit_count = 4},
                  never = {.visits = &mine[3], .visit_count = 1};
  assert_true(gate_case_ratio(&one, &other) == 3.0); /* 2, 3, 4 */
  assert_true(gate_case_ratio(&never, &other) == 0.0);
}

TEST(a_case_of_one_side_and_a_filter) {
  bench b;
  gate_schedule schedule = plain;
  schedule.filter = "sum";
  do_all(&b, &schedule, WORDS("sum/new=time:5", "sum/both=time:6", "other=time:7"),
         WORDS("sum/both=time:8", "sum/old=time:9"));
  assert_int_equal(b.runs[GATE_HEAD].case_count, 2);
  assert_int_equal(b.runs[GATE_BASE].case_count, 2);
  assert_int_equal(b.outcome.count, 3);
  does_well(&b, GATE_HEAD, "sum/new", 4);
  does_well(&b, GATE_BASE, "sum/old", 4);
  does_well(&b, GATE_BASE, "sum/both", 4);
  assert_null(b.outcome.sides[GATE_BASE][0]);
  assert_null(b.outcome.sides[GATE_HEAD][2]);
  end(&b);
}

/* They are neither listed nor judged; the roof is of the head, and of both runs. The worker tells 100 bytes a call. */
TEST(yardsticks) {
  bench b;
  begin(&b, &plain, WORDS("a=time:1", "yardstick/copy=time:50", "yardstick/bad=crash"),
        WORDS("a=time:1", "yardstick/copy=time:5"));
  for (int side = 0; side < 2; side++) b.sources[side][0]->yardsticks = true;
  FINE(gate_rounds_list(b.rounds));
  FINE(gate_rounds_run(b.rounds, &b.outcome));
  assert_int_equal(b.outcome.count, 1);
  does_well(&b, GATE_HEAD, "a", 4);
  for (int side = 0; side < 2; side++) {
    assert_int_equal(b.runs[side].case_count, 1);
    assert_int_equal(b.runs[side].roof_count, 1);
    assert_string_equal(b.runs[side].roofs[0].device, "-");
    assert_string_equal(b.runs[side].roofs[0].dtype, "-");
    assert_float_equal(b.runs[side].roofs[0].bytes_s, 2e9, 1);
    assert_true(b.runs[side].roofs[0].flops_s == 0);
  }
  end(&b);
}

/* A pair that has little time has them when its planned rounds are done, not before; one that has more is sure to have
 * them. */
TEST(yardsticks_of_a_short_pair_come_last) {
  static const double bounds[] = {0, 1e6, 9.9};
  for (int i = 0; i < 3; i++) {
    bench b;
    gate_schedule schedule = plain;
    int opens = 0;
    schedule.time_s = bounds[i];
    (void)unlink(path_of("log"));
    begin(&b, &schedule, WORDS(log_word(), "a=time:1", "yardstick/copy=time:50"), WORDS("a=time:1"));
    b.sources[GATE_HEAD][0]->yardsticks = true;
    FINE(gate_rounds_list(b.rounds));
    FINE(gate_rounds_run(b.rounds, &b.outcome));
    const int roofs = (int)b.runs[GATE_HEAD].roof_count;
    end(&b);
    char *log = text_of(path_of("log"));
    for (const char *at = log; (at = strstr(at, " open yardstick")); at++) opens++;
    free(log);
    if (i < 2) assert_int_equal(opens, 2);
    assert_in_range(opens, 0, i < 2 ? 2 : 1); /* none: a busy machine was not done by then */
    assert_int_equal(roofs, opens > 0);
  }
}

/* A program's case may be called so too. */
TEST(a_program_has_no_yardsticks) {
  bench b;
  do_all(&b, &plain, WORDS("yardstick/mine=time:50"), NULL);
  does_well(&b, GATE_HEAD, "yardstick/mine", 4);
  assert_int_equal(b.runs[GATE_HEAD].roof_count, 0);
  end(&b);
}

/* A source without a process: `version' says how many cases it has, and the rest is not asked for. */
static char *start_many(gate_source *source, gate_case **cases, size_t *count) {
  *count = (size_t)atol(source->version);
  *cases = gate_alloc(*count, sizeof **cases);
  for (size_t i = 0; i < *count; i++)
    (*cases)[i] = (gate_case){.name = gate_say("many/%zu", i * 7 % *count),
                              .device = gate_copy("-"),
                              .mode = gate_copy("hot"),
                              .dtype = gate_copy("-")};
  return NULL;
}

static void stop_many(gate_source *source) {
  source->alive = false;
}

/* So many that a walk through the list for each would take minutes. */
TEST(many_cases) {
  enum { COUNT = 90001 };
  static const gate_source_kind kind = {.start = start_many, .stop = stop_many};
  gate_source many[GATE_SIDES] = {{.kind = &kind, .name = "head"}, {.kind = &kind, .name = "base"}};
  gate_source *sources[GATE_SIDES] = {&many[0], &many[1]};
  gate_run runs[GATE_SIDES] = {{0}, {0}};
  const gate_rounds_side sides[GATE_SIDES] = {{&sources[0], 1, &runs[0]}, {&sources[1], 1, &runs[1]}};
#ifdef __SANITIZE_ADDRESS__
  const int count = 2999; /* its realloc always copies */
#else
  const int count = getenv("AT_UNDER_VALGRIND") ? 2999 : COUNT;
#endif
  gate_comparison c;
  for (int i = 0; i < GATE_SIDES; i++) snprintf(many[i].version, sizeof many[i].version, "%d", count + 2 * i);
  gate_rounds *rounds = gate_rounds_create(&plain, sides, GATE_SIDES);
  FINE(gate_rounds_list(rounds));
  assert_int_equal(runs[GATE_HEAD].case_count, count);
  assert_int_equal(runs[GATE_BASE].case_count, count + 2);
  FINE(gate_compare(&c, &runs[GATE_BASE], &runs[GATE_HEAD], NULL, true));
  assert_int_equal(c.row_count, count + 2);
  for (int i = 0; i < count; i++) assert_string_equal(c.rows[i].head->name, c.rows[i].base->name);
  assert_null(c.rows[count].head);
  gate_comparison_free(&c);
  gate_rounds_destroy(rounds);
  for (int i = 0; i < GATE_SIDES; i++) gate_run_free(&runs[i]);
}

/* --- looks --- */

enum { FIRST = 17 }; /* of fewer only twice as many follow */

static int judged_looks;

/* "a" is the same at once, "b" slower at the second look, "c" never sure. */
static void judge_by_name(gate_judgement *out, const gate_case *const *base, const gate_case *const *head, size_t count,
                          bool alternated, const gate_rule *rule, int looks) {
  const int look = judged_looks++;
  assert_true(alternated && rule->floor == 0.5);
  assert_int_equal(looks, 3);
  assert_int_equal(count, 3);
  for (size_t i = 0; i < count; i++) {
    assert_non_null(base[i]);
    const char name = head[i]->name[0];
    const gate_verdict verdict = name == 'a' && look == 0   ? GATE_SAME
                                 : name == 'b' && look == 1 ? GATE_SLOWER
                                                            : GATE_UNSURE;
    out[i] = (gate_judgement){.verdict = verdict, .ratio = 1 + look, .base_visits = base[i]->visit_count};
  }
}

TEST(unsure_cases_get_more_rounds) {
  bench b;
  gate_schedule schedule = plain;
  schedule.rounds = FIRST;
  schedule.samples = 1;
  schedule.judging = (gate_judging){judge_by_name, {.floor = 0.5, .alpha = 0.1}, 3, 0, 0};
  judged_looks = 0;
  do_all(&b, &schedule, WORDS("a=time:1", "b=time:1", "c=time:1"), WORDS("a=time:1", "b=time:1", "c=time:1"));
  assert_int_equal(judged_looks, 3);
  assert_int_equal(b.outcome.rounds, 4 * FIRST);
  for (int side = 0; side < 2; side++) {
    does_well(&b, side, "a", FIRST);
    does_well(&b, side, "b", 2 * FIRST);
    does_well(&b, side, "c", 4 * FIRST);
  }
  static const gate_verdict verdicts[] = {GATE_SAME, GATE_SLOWER, GATE_UNSURE};
  for (int i = 0; i < 3; i++) { /* by name: listed so */
    assert_int_equal(b.outcome.judged[i].verdict, verdicts[i]);
    assert_true(b.outcome.judged[i].ratio == 1 + i);
    assert_int_equal(b.outcome.judged[i].base_visits, FIRST << i);
  }
  assert_int_equal(named(&b, GATE_HEAD, "c")->visits[4 * FIRST - 1].round, 4 * FIRST - 1);
  end(&b);
}

/* The pair's time is over before it begins: there are as many rounds as are enough, and one more look at them. */
TEST(no_time_for_more_rounds) {
  bench b;
  gate_schedule schedule = plain;
  schedule.judging = (gate_judging){judge_by_name, {.floor = 0.5, .alpha = 9}, 3, 1e-9, 3};
  judged_looks = 0;
  do_all(&b, &schedule, WORDS("a=time:1", "b=time:1", "c=time:1"), WORDS("a=time:1", "b=time:1", "c=time:1"));
  assert_int_equal(b.outcome.rounds, 3);
  assert_true(b.outcome.out_of_time);
  assert_int_equal(b.outcome.judged[0].verdict, GATE_SAME);
  assert_int_equal(b.outcome.judged[2].verdict, GATE_UNSURE);
  end(&b);
}

TEST(out_of_time) {
  bench b;
  gate_schedule schedule = plain;
  schedule.time_s = 1e-9;
  do_all(&b, &schedule, WORDS("a=time:1", "b=time:1"), NULL);
  assert_true(b.outcome.out_of_time);
  assert_int_equal(b.outcome.rounds, 1);
  does_well(&b, GATE_HEAD, "a", 1);
  does_well(&b, GATE_HEAD, "b", 1);
  end(&b);
}

int main(void) {
  return RUN_TESTS_EACH(set_up, tear_down, NULL, NULL);
}
