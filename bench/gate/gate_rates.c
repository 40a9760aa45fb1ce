/* SPDX-License-Identifier: Apache-2.0
 * gate_rates.c: false alarms and misses of `attune compare', and of three other tools' rules on the same samples.
 *
 *   bench_gate_rates [--slower PERCENT]... FILE...
 *
 * FILEs are result files with pairs of runs of a build with itself (attune bench --against): each "slower" there is
 * false. For misses the samples of one case at a time, of the head, are multiplied here by what --slower says (1.5 and
 * 3), and the whole comparison is judged again. Pairs whose head is labelled "slower:CASE" were slowed down for real:
 * they are counted apart. Several FILEs, parts of one campaign, are summed; a comparison that is in two of them (a
 * copy) is refused. Prints a Markdown table, and which file gave how many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gate/gate_peers.h"
#include "tools/compare/message.h"
#include "tools/compare/stats/comparison.h"

enum { RULES = PEERS + 1, SLOWER_MOST = 8, SEEN_MOST = 10000 };
static const char label_of_slowed[] = "slower:";

/* What no two comparisons have in common: when the first sample of the head's first case that has any was taken. */
typedef struct mark {
  int64_t started, sample;
} mark;

typedef struct tally {
  mark seen[SEEN_MOST];
  size_t seen_count;
  int comparisons, cases;
  int blind;               /* comparisons with too few rounds for any verdict */
  int alarmed[RULES];      /* comparisons with a false slower */
  int false_slower[RULES]; /* cases */
  int false_faster[RULES];
  int same, unsure; /* attune's */
  int slowed, found[SLOWER_MOST][RULES];
  int real, real_found[RULES];
} tally;

typedef struct options {
  double slower[SLOWER_MOST];
  int slower_count;
} options;

typedef struct pair {
  gate_run base, head;
  gate_comparison c;
} pair;

static int attune_verdict(const gate_row *row) {
  return row->judged.verdict == GATE_SLOWER ? 1 : row->judged.verdict == GATE_FASTER ? -1 : 0;
}

static int verdict(const pair *p, size_t row, int rule) {
  const gate_row *r = &p->c.rows[row];
  return rule == PEERS ? attune_verdict(r) : peer_verdict((peer)rule, r->base, r->head);
}

static bool both(const gate_row *row) {
  return row->base && row->head && row->base->visit_count && row->head->visit_count;
}

static void count_alarms(const pair *p, tally *t) {
  bool alarmed[RULES] = {false};
  t->comparisons++;
  for (size_t i = 0; i < p->c.row_count; i++) {
    if (!both(&p->c.rows[i])) continue;
    t->cases++;
    t->same += p->c.rows[i].judged.verdict == GATE_SAME;
    t->unsure += p->c.rows[i].judged.verdict == GATE_UNSURE;
    for (int rule = 0; rule < RULES; rule++) {
      const int v = verdict(p, i, rule);
      t->false_slower[rule] += v > 0;
      t->false_faster[rule] += v < 0;
      alarmed[rule] |= v > 0;
    }
  }
  for (int rule = 0; rule < RULES; rule++) t->alarmed[rule] += alarmed[rule];
}

/* Had no case enough rounds for a verdict? */
static bool is_blind(const pair *p) {
  size_t judged = 0;
  int most = 0;
  for (size_t i = 0; i < p->c.row_count; i++) {
    if (!both(&p->c.rows[i])) continue;
    judged++;
    if (p->c.rows[i].judged.head_visits > most) most = p->c.rows[i].judged.head_visits;
  }
  return most < gate_judge_least_rounds(&p->c.rule, judged, GATE_LOOKS);
}

/* NULL, or why the comparison is not counted. */
static char *note(tally *t, const char *path, const gate_run *head) {
  mark m = {.started = head->started};
  for (size_t i = 0; i < head->case_count && !m.sample; i++)
    if (head->cases[i].visit_count && head->cases[i].visits[0].sample_count)
      m.sample = head->cases[i].visits[0].samples[0].start;
  for (size_t i = 0; i < t->seen_count; i++)
    if (t->seen[i].started == m.started && t->seen[i].sample == m.sample)
      return gate_say("%s: run %lld is also in an earlier file; name each comparison once", path, (long long)head->id);
  if (t->seen_count == SEEN_MOST) return gate_say("more than %d comparisons; name fewer files", SEEN_MOST);
  t->seen[t->seen_count++] = m;
  return NULL;
}

static void scale(const gate_case *c, double factor) {
  for (int v = 0; v < c->visit_count; v++)
    for (int i = 0; i < c->visits[v].sample_count; i++) c->visits[v].samples[i].ns *= factor;
}

/* A comparison of the pair as it now is; the program ends where it cannot be made. */
static void judge(pair *p) {
  gate_comparison_free(&p->c);
  char *error = gate_compare(&p->c, &p->base, &p->head, NULL, false);
  if (!error) return;
  fprintf(stderr, "bench_gate_rates: %s\n", error);
  exit(2);
}

static void slow_down(pair *p, size_t row, double factor, int *found) {
  const gate_case *c = p->c.rows[row].head;
  scale(c, factor);
  judge(p);
  for (int rule = 0; rule < RULES; rule++) found[rule] += verdict(p, row, rule) > 0;
  scale(c, 1.0 / factor);
}

static void count_misses(pair *p, const options *o, tally *t) {
  for (size_t i = 0; i < p->c.row_count; i++) {
    if (!both(&p->c.rows[i])) continue;
    t->slowed++;
    for (int k = 0; k < o->slower_count; k++) slow_down(p, i, 1.0 + o->slower[k] / 100.0, t->found[k]);
  }
  judge(p);
}

/* The head's label names the case that was really slower. */
static void count_real(const pair *p, tally *t) {
  const char *name = p->head.label + strlen(label_of_slowed);
  for (size_t i = 0; i < p->c.row_count; i++) {
    if (!both(&p->c.rows[i]) || strcmp(p->c.rows[i].head->name, name) != 0) continue;
    t->real++;
    for (int rule = 0; rule < RULES; rule++) t->real_found[rule] += verdict(p, i, rule) > 0;
  }
}

static char *add_pair(gate_file *file, const char *path, int64_t head, const options *o, tally *t) {
  pair p = {.base = {.state = GATE_RUN_OPEN}};
  char which[24];
  snprintf(which, sizeof which, "%lld", (long long)head);
  char *error = gate_file_load(file, which, &p.head);
  if (!error) {
    snprintf(which, sizeof which, "%lld", (long long)p.head.pair);
    error = gate_file_load(file, which, &p.base);
  }
  if (!error) error = note(t, path, &p.head);
  if (!error) {
    judge(&p);
    t->blind += is_blind(&p);
    if (strncmp(p.head.label, label_of_slowed, strlen(label_of_slowed)) == 0) {
      count_real(&p, t);
    } else {
      count_alarms(&p, t);
      count_misses(&p, o, t);
    }
  }
  gate_comparison_free(&p.c);
  gate_run_free(&p.base);
  gate_run_free(&p.head);
  return error;
}

static char *add_file(const char *path, const options *o, tally *t) {
  gate_file *file = NULL;
  gate_run *runs = NULL;
  size_t count = 0;
  char *error = gate_file_open(&file, path, false);
  if (!error) error = gate_file_runs(file, &runs, &count);
  for (size_t i = 0; i < count; i++) {
    if (!error && runs[i].pair > 0 && runs[i].state == GATE_RUN_COMPLETE)
      error = add_pair(file, path, runs[i].id, o, t);
    gate_run_free(&runs[i]);
  }
  free(runs);
  gate_file_close(file);
  return error;
}

static double percent(int part, int whole) {
  return whole ? 100.0 * part / whole : 0.0;
}

static void print(const options *o, const tally *t) {
  printf("%d comparisons of a build with itself, %d cases in all; attune: %.1f %% same, %.1f %% unsure. Slower by a "
         "factor: each case in turn, its samples multiplied afterwards.\n\n",
         t->comparisons, t->cases, percent(t->same, t->cases), percent(t->unsure, t->cases));
  if (t->blind) printf("%d of all comparisons had too few rounds for any verdict.\n\n", t->blind);
  printf("| rule | comparisons with a false \"slower\" | cases falsely slower | falsely faster |");
  for (int k = 0; k < o->slower_count; k++) printf(" %g %% slower found |", o->slower[k]);
  printf("%s\n|:--|--:|--:|--:|", t->real ? " really slower found |" : "");
  for (int k = 0; k < o->slower_count + (t->real > 0); k++) printf("--:|");
  putchar('\n');
  for (int i = 0; i < RULES; i++) {
    const int rule = (i + PEERS) % RULES;
    printf("| %s | %d of %d (%.1f %%) | %d (%.2f %%) | %d (%.2f %%) |", rule == PEERS ? "attune" : peer_names[rule],
           t->alarmed[rule], t->comparisons, percent(t->alarmed[rule], t->comparisons), t->false_slower[rule],
           percent(t->false_slower[rule], t->cases), t->false_faster[rule], percent(t->false_faster[rule], t->cases));
    for (int k = 0; k < o->slower_count; k++) printf(" %.1f %% |", percent(t->found[k][rule], t->slowed));
    if (t->real) printf(" %d of %d |", t->real_found[rule], t->real);
    putchar('\n');
  }
}

/* Reads the words after the first: --slower into *o; the number of files, whose words come first in argv then. */
static int read_words(int argc, char **argv, options *o) {
  int files = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--slower") == 0 && i + 1 < argc && o->slower_count < SLOWER_MOST)
      o->slower[o->slower_count++] = strtod(argv[++i], NULL);
    else
      argv[files++] = argv[i];
  }
  if (o->slower_count) return files;
  o->slower[o->slower_count++] = 1.5;
  o->slower[o->slower_count++] = 3.0;
  return files;
}

int main(int argc, char **argv) {
  static tally t;
  options o = {.slower_count = 0};
  const int files = read_words(argc, argv, &o);
  int *counts = gate_alloc((size_t)files + 1, sizeof *counts);
  char *error = NULL;
  for (int i = 0; i < files && !error; i++) {
    const size_t before = t.seen_count;
    error = add_file(argv[i], &o, &t);
    counts[i] = (int)(t.seen_count - before);
  }
  if (!error && !t.comparisons && !t.real)
    error = gate_say("no finished pair of runs; usage: bench_gate_rates [--slower PERCENT]... FILE...");
  if (!error) print(&o, &t);
  for (int i = 0; i < files && !error && files > 1; i++)
    printf("%s- %s: %d comparisons\n", i ? "" : "\n", argv[i], counts[i]);
  if (error) fprintf(stderr, "bench_gate_rates: %s\n", error);
  const int code = error ? 2 : 0;
  free(counts);
  free(error);
  return code;
}
