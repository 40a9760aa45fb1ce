/* SPDX-License-Identifier: Apache-2.0
 * search_report.c: what a search found, in figures and in words, and the trials that are its evidence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/search/search_parts.h"

/* A gain that noise could explain is not reported beyond this. */
static const double COULD_MOST = 2.0;

static const double SIGMAS = 3.0;

/* The best measured one except the winner: it would have won otherwise. */
static const at_candidate *runner_up(const at_search_state *s, const at_candidate *winner) {
  const at_candidate *second = NULL;
  for (int i = 0; i < s->race.count; i++) {
    const at_candidate *candidate = s->race.candidates[i];
    if (candidate == winner || candidate->bare || candidate->count == 0 || candidate->state == AT_WRONG ||
        candidate->state == AT_FAILED)
      continue;
    if (!second || candidate->speedup > second->speedup) second = candidate;
  }
  return second;
}

/* Writes the note about other work. */
static void note_load(const at_search_state *s, attune_decision *d) {
  const double others = at_sampler_others(&s->sampler);
  char used[48] = "other work";
  if (others >= 0.0) snprintf(used, sizeof used, "other work used %.1f CPUs and", others);
  snprintf(d->note, sizeof d->note, "unsure: %s disturbed the measurements; measure on a quiet machine", used);
}

/* In words: why this one. */
static void note(const at_candidate *winner, const at_search_state *s, const at_candidate *could, attune_decision *d) {
  const at_candidate *base = s->race.candidates[0];
  const double gain = could ? could->merit / winner->merit + 2.0 * could->error : 1.0; /* over what is chosen */
  if (d->unsure && at_race_shaken(&s->race, winner))
    note_load(s, d);
  else if (d->unsure && could && gain > COULD_MOST)
    snprintf(d->note, sizeof d->note,
             "unsure: the noise is larger than the times measured; measure on a quiet machine");
  else if (d->unsure && could)
    snprintf(d->note, sizeof d->note, "unsure: %.32s could be %.0f %% faster than %s, %s", could->implementation->name,
             100.0 * (gain - 1.0), winner == at_race_incumbent(&s->race) ? "the default" : "this",
             s->race.steady ? "hidden by noise or by the placement of operands" : "hidden by noise");
  else if (d->unsure && winner != at_race_incumbent(&s->race) && at_confirm_doubtful(&s->claim))
    snprintf(d->note, sizeof d->note,
             "unsure: it won the race, but alone it takes %.1f %% longer than the default, plus or minus %.1f points",
             100.0 * (1.0 / s->claim.ratio - 1.0), 100.0 * s->claim.error);
  else if (d->unsure)
    snprintf(d->note, sizeof d->note, "unsure: the times of the default vary by %.0f %%; measure on a quiet machine",
             100.0 * d->spread);
  else if (base->bare && winner == at_race_incumbent(&s->race))
    snprintf(d->note, sizeof d->note,
             "nothing is faster beyond the noise; the vendor's own call by itself takes %.3g of the time",
             d->default_time_ns / d->time_ns);
  else if (winner->speedup < 1.0)
    snprintf(
        d->note, sizeof d->note,
        "%.1f %% slower than the vendor's own call, the overhead of any call through attune; plus or minus %.2f points",
        100.0 * (1.0 / winner->speedup - 1.0), 100.0 * winner->error);
  else if (winner == base)
    snprintf(d->note, sizeof d->note, "no candidate beats the default beyond the noise");
  else
    snprintf(d->note, sizeof d->note, "%.1f %% faster than the default, plus or minus %.2f points",
             100.0 * (winner->speedup - 1.0), 100.0 * winner->error);
}

/* What the default itself does not do right with special values: no candidate was held to it. */
static void note_default_faults(const at_search_state *s, attune_decision *d) {
  char faults[96];
  size_t at = strlen(d->note);
  at_numerical_check_rules(s->check, at_numerical_check_default_lost(s->check), faults, sizeof faults);
  if (*faults) at_append(d->note, sizeof d->note, &at, "; the default %s", faults);
}

/* The race is open; or what was measured alone is, which where the default is chosen comes before how much the
 * default's own times vary. */
static bool is_unsure(at_search_state *s, const at_candidate *winner, at_candidate **could) {
  const bool open = at_race_open(&s->race, could), standard = winner == at_race_incumbent(&s->race);
  if (open && standard && s->settled && !*could) return at_race_shaken(&s->race, winner);
  return open || (!standard && at_confirm_doubtful(&s->claim));
}

/* The default cannot beat itself: what its call through attune seems to gain over its own call is noise. So is what it
 * seems to lose, unless it is clear: that is what dispatch costs. */
static bool is_itself(const at_candidate *incumbent) {
  return incumbent->speedup + SIGMAS * incumbent->error > 1.0;
}

void at_search_describe(at_search_state *s, at_candidate *winner, attune_decision *d) {
  const at_candidate *base = s->race.candidates[0], *second = runner_up(s, winner);
  at_candidate *could = NULL;
  at_copy_text(d->implementation, sizeof d->implementation, winner->implementation->name);
  at_copy_text(d->configuration, sizeof d->configuration, winner->configuration.text);
  d->implementation_version = winner->implementation->version;
  d->time_ns = at_race_time(winner, &d->spread);
  d->placement_spread = at_placed_spread(winner->samples, winner->place, winner->count);
  d->samples = winner->count;
  d->unsure = is_unsure(s, winner, &could);
  at_confirm_take(&s->claim, winner);
  if (s->claim.rounds) d->time_ns = s->claim.time_ns;
  at_copy_text(d->default_implementation, sizeof d->default_implementation, base->implementation->name);
  if (base->bare && base->implementation->bare_name)
    base->implementation->bare_name(base->plan, d->default_implementation, sizeof d->default_implementation);
  d->default_time_ns = winner == base ? d->time_ns : d->time_ns * winner->speedup;
  if (winner == at_race_incumbent(&s->race) && is_itself(winner)) d->default_time_ns = d->time_ns;
  if (second) {
    at_copy_text(d->runner_up, sizeof d->runner_up, second->implementation->name);
    at_copy_text(d->runner_up_configuration, sizeof d->runner_up_configuration, second->configuration.text);
    d->runner_up_time_ns = at_race_time(second, NULL);
  }
  for (int i = 0; i < s->race.count; i++) {
    d->candidates += s->race.candidates[i]->quick > 0.0;
    d->rejected += s->race.candidates[i]->state == AT_FAILED || s->race.candidates[i]->state == AT_WRONG;
  }
  d->disturbed = s->sampler.disturbed;
  note(winner, s, could, d);
  note_default_faults(s, d);
}

static int by_time(const void *left, const void *right) {
  const at_candidate *a = *(at_candidate *const *)left, *b = *(at_candidate *const *)right;
  if ((a->count > 0) != (b->count > 0)) return a->count > 0 ? -1 : 1;
  if (a->count == 0) return 0;
  const double first = at_race_time(a, NULL), second = at_race_time(b, NULL);
  return (first > second) - (first < second);
}

static const char *verdict(const at_candidate *c, const at_candidate *winner, const at_candidate *second, bool base) {
  if (c == winner) return "winner";
  if (c->state == AT_WRONG) return "wrong";
  if (c->state == AT_FAILED) return "failed";
  if (c == second) return "runner-up";
  return base ? "default" : "slower";
}

/* The raced ones first, the fastest before the others, then the failed and wrong ones: the evidence stored with the
 * winner. */
void at_search_list_trials(at_search_state *s, const at_candidate *winner, at_search_result *out) {
  const at_candidate *base = s->race.candidates[0], *second = runner_up(s, winner);
  qsort(s->race.candidates, (size_t)s->race.count, sizeof *s->race.candidates, by_time);
  for (int i = 0; i < s->race.count && out->trial_count < AT_MAX_TRIALS; i++) {
    const at_candidate *c = s->race.candidates[i];
    if (c->count == 0 && c->state != AT_FAILED && c->state != AT_WRONG) continue;
    at_trial *trial = &out->trials[out->trial_count++];
    at_copy_text(trial->implementation, sizeof trial->implementation, c->implementation->name);
    at_copy_text(trial->configuration, sizeof trial->configuration, c->configuration.text);
    if (c->count) trial->time_ns = at_race_time(c, &trial->spread);
    trial->samples = c->count;
    at_copy_text(trial->verdict, sizeof trial->verdict, verdict(c, winner, second, c == base));
  }
}
