/* SPDX-License-Identifier: Apache-2.0
 * schedule.c: round after round, then the looks. */
#include "tools/compare/ranks/rank_test.h"
#include "tools/compare/run/schedule_parts.h"

#include <stdlib.h>
#include <string.h>

#define YARDSTICKS_S 10.0

gate_rounds *gate_rounds_create(const gate_schedule *schedule, const gate_rounds_side *sides, int side_count) {
  gate_rounds *r = gate_alloc(1, sizeof *r);
  *r = (gate_rounds){.schedule = *schedule, .side_count = side_count, .random = schedule->seed};
  for (int i = 0; i < side_count; i++) r->sides[i] = sides[i];
  return r;
}

void gate_rounds_destroy(gate_rounds *r) {
  if (!r) return;
  gate_rounds_stop(r);
  gate_yardsticks_free(r);
  gate_case_index_free(&r->index);
  free(r->entries);
  free(r);
}

/* "NAME: why", once where the reason begins with the name. */
static char *say_of(const gate_source *s, const char *why) {
  const size_t chars = strlen(s->name);
  return strncmp(why, s->name, chars) == 0 && why[chars] == ' ' ? gate_copy(why) : gate_say("%s: %s", s->name, why);
}

/* NULL also where there is no such program. */
static char *list_source(gate_rounds *r, int side, size_t i) {
  gate_source *s = r->sides[side].sources[i];
  char *why = gate_rounds_start(r, side, i);
  char *error = why && !s->absent ? say_of(s, why) : NULL;
  free(why);
  return error;
}

/* Does no side have the program that is the head's source i? Then the reason, again. */
static char *check_source(gate_rounds *r, size_t i) {
  gate_source *s = r->sides[GATE_HEAD].sources[i];
  if (!s->absent) return NULL;
  for (int side = 0; side < r->side_count; side++)
    if (i < r->sides[side].source_count && !r->sides[side].sources[i]->absent) return NULL;
  char *why = gate_rounds_start(r, GATE_HEAD, i),
       *error = say_of(s, why ? why : "it was missing at first and exists now");
  free(why);
  return error;
}

char *gate_rounds_list(gate_rounds *r) {
  char *error = NULL;
  for (int side = 0; side < r->side_count; side++)
    for (size_t i = 0; !error && i < r->sides[side].source_count; i++) error = list_source(r, side, i);
  for (size_t i = 0; !error && i < r->sides[GATE_HEAD].source_count; i++) error = check_source(r, i);
  r->listed = true;
  return error;
}

static char *start_all(gate_rounds *r) {
  char *error = NULL;
  for (int side = 0; side < r->side_count; side++)
    for (size_t i = 0; !error && i < r->sides[side].source_count && !gate_interrupted(&r->schedule.limits); i++)
      if (!r->sides[side].sources[i]->absent) error = gate_rounds_start_or_fail(r, side, i);
  return error;
}

/* --- a round --- */

static double spent_s(const gate_rounds *r) {
  return 1e-9 * (double)(gate_now_ns() - r->start_ns);
}

/* Without a bound or a number of rounds from the user a pair has a bound of its own, once it has enough rounds for a
 * verdict. */
static bool out_of_time(const gate_rounds *r, int round) {
  const gate_judging *j = &r->schedule.judging;
  const bool enough =
      j->judge && j->looks > 1 && round >= j->enough && round >= gate_judge_least_rounds(&j->rule, r->count, j->looks);
  const double all = r->schedule.time_s, pair = enough ? j->case_s * (double)r->count : 0;
  const double most = all > 0 ? all : pair;
  return most > 0 && spent_s(r) >= most;
}

static int by_place(const void *a, const void *b) {
  const size_t *x = a, *y = b;
  return x[1] != y[1] ? (x[1] > y[1]) - (x[1] < y[1]) : (x[2] > y[2]) - (x[2] < y[2]);
}

/* Brings peers together, where the first of them stands; among them the order stays. */
static void gather_peers(const gate_rounds *r, size_t *order, size_t count) {
  size_t(*places)[3] = gate_alloc(count, sizeof *places), *first = gate_alloc(r->count, sizeof *first);
  for (size_t i = count; i > 0; i--) first[r->entries[order[i - 1]].group] = i - 1;
  for (size_t i = 0; i < count; i++) {
    places[i][0] = order[i];
    places[i][1] = first[r->entries[order[i]].group];
    places[i][2] = i;
  }
  qsort(places, count, sizeof *places, by_place);
  for (size_t i = 0; i < count; i++) order[i] = places[i][0];
  free(first);
  free(places);
}

/* The entries of the round in a new random order, peers one after the other. */
static size_t draw_order(gate_rounds *r, int round, size_t *order) {
  size_t count = 0;
  for (size_t i = 0; i < r->count; i++)
    if (r->entries[i].active && gate_entry_due(r, &r->entries[i], round)) order[count++] = i;
  for (size_t i = count; i > 1; i--) {
    const size_t other = gate_random(&r->random) % i, kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
  if (r->grouped) gather_peers(r, order, count);
  return count;
}

static void tell(gate_rounds *r, const gate_entry *e, int round, int rounds, int look) {
  const gate_step step = {gate_entry_name(r, e), round, rounds, r->done, r->total, look};
  if (r->schedule.tell) r->schedule.tell(r->schedule.user, &step);
}

/* The first round does all, whatever the time. */
static char *one_round(gate_rounds *r, int round, int rounds, int look) {
  char *error = r->listed ? NULL : start_all(r);
  size_t *order = gate_alloc(r->count, sizeof *order);
  r->round_draw = gate_random(&r->random);
  const size_t count = draw_order(r, round, order);
  r->total = r->done + count * (size_t)(rounds - round);
  for (size_t i = 0; !error && i < count && !gate_interrupted(&r->schedule.limits); i++) {
    if (round > 0 && out_of_time(r, round)) break;
    tell(r, &r->entries[order[i]], round, rounds, look);
    error = gate_rounds_visit(r, &r->entries[order[i]], round);
    r->done++;
  }
  free(order);
  const double bound_s = r->side_count == 2 ? r->schedule.time_s : 0; /* of a short one verdicts need all */
  const bool early = round == 0 && !(bound_s > 0 && bound_s < YARDSTICKS_S);
  if (!error && !look && (early || round + 1 == rounds)) gate_yardsticks_take(r);
  gate_rounds_stop(r);
  return error;
}

static char *some_rounds(gate_rounds *r, int first, int count, int look, gate_outcome *out) {
  char *error = NULL;
  for (int i = first; !error && i < first + count; i++) {
    out->interrupted = gate_interrupted(&r->schedule.limits);
    out->out_of_time = i > 0 && out_of_time(r, i);
    if (out->interrupted || out->out_of_time) break;
    error = one_round(r, i, first + count, look);
    out->rounds++;
  }
  out->interrupted = gate_interrupted(&r->schedule.limits);
  return error;
}

/* --- the looks --- */

static void gather(const gate_rounds *r, gate_outcome *out) {
  out->count = r->count;
  for (int side = 0; side < GATE_SIDES; side++) {
    out->sides[side] = gate_alloc(r->count, sizeof *out->sides[side]);
    for (size_t i = 0; i < r->count; i++) out->sides[side][i] = gate_entry_case(r, &r->entries[i], side);
  }
}

/* All are judged, for the correction; a verdict that an earlier look gave stays. True: some are unsure. */
static bool judge(gate_rounds *r, gate_outcome *out) {
  const gate_judging *j = &r->schedule.judging;
  gate_judgement *now = gate_alloc(r->count, sizeof *now);
  bool unsure = false;
  j->judge(now, out->sides[GATE_BASE], out->sides[GATE_HEAD], r->count, true, &j->rule, j->looks);
  for (size_t i = 0; i < r->count; i++) {
    if (r->entries[i].active) out->judged[i] = now[i];
    r->entries[i].active = r->entries[i].active && now[i].verdict == GATE_UNSURE;
    unsure = unsure || r->entries[i].active;
  }
  free(now);
  return unsure;
}

static int twice(int rounds) {
  return rounds < GATE_MOST_VALUES / 2 ? 2 * rounds : GATE_MOST_VALUES;
}

static size_t count_judged(const gate_outcome *out) {
  size_t judged = 0;
  for (size_t i = 0; i < out->count; i++) judged += out->judged[i].base_visits > 0 && out->judged[i].head_visits > 0;
  return judged ? judged : 1;
}

/* A look at fewer rounds than any verdict needs takes nothing of alpha, and is none. */
static char *judge_and_go_on(gate_rounds *r, gate_outcome *out) {
  const gate_judging *j = &r->schedule.judging;
  char *error = NULL;
  int rounds = r->schedule.rounds, next;
  double spent = 0;
  int look = 0;
  out->judged = gate_alloc(r->count, sizeof *out->judged);
  for (; judge(r, out) && look + 1 < j->looks && !error && !out->interrupted && !out->out_of_time; rounds = next) {
    const bool could_tell = rounds >= gate_judge_least_rounds(&j->rule, count_judged(out), j->looks);
    next = could_tell ? gate_next_look(rounds, &spent) : twice(rounds);
    if (!next) break;
    look += could_tell;
    error = some_rounds(r, rounds, next - rounds, look > 0 ? look : 1, out);
  }
  return error;
}

/* In the order of the lists, not in that of the visits. */
static char *save_cases(const gate_rounds *r) {
  char *error = NULL;
  for (int side = 0; r->schedule.file && side < r->side_count; side++) {
    const gate_run *run = r->sides[side].run;
    for (size_t i = 0; !error && i < run->case_count; i++)
      error = gate_file_add(r->schedule.file, run->id, &run->cases[i], NULL);
  }
  return error;
}

char *gate_rounds_run(gate_rounds *r, gate_outcome *out) {
  *out = (gate_outcome){0};
  r->start_ns = gate_now_ns();
  char *error = save_cases(r);
  if (!error) error = some_rounds(r, 0, r->schedule.rounds, 0, out);
  gather(r, out);
  if (!error) error = gate_yardsticks_keep(r);
  if (!error && r->side_count == 2 && r->schedule.judging.judge && r->count) error = judge_and_go_on(r, out);
  return error;
}

void gate_outcome_free(gate_outcome *out) {
  for (int side = 0; side < GATE_SIDES; side++) free(out->sides[side]);
  free(out->judged);
  *out = (gate_outcome){0};
}
