/* SPDX-License-Identifier: Apache-2.0
 * bench_report.c: what `attune bench` prints below its table, its JSON, and the reports of two builds. */
#include "tools/cli/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare/report/report_text.h"
#include "tools/compare/stats/summary.h"

static bool failed(const gate_case *c) {
  return c && c->state == GATE_CASE_FAILED;
}

static gate_row row_of(const bench_report *r, size_t i) {
  return (gate_row){bench_base_of(r, i), bench_head_of(r, i), *bench_judged(r, i)};
}

/* --- counts --- */

typedef struct counts {
  size_t verdicts[GATE_MISSING + 1], failed;
  size_t judged; /* have times on both sides */
  size_t few;    /* unsure for want of rounds */
} counts;

static bool is_judged(const bench_report *r, size_t i) {
  const gate_judgement *j = bench_judged(r, i);
  return j && j->base_visits > 0 && j->head_visits > 0;
}

static int rounds_needed(const bench_report *r, size_t cases) {
  return gate_judge_least_rounds(&r->options->rule, cases, r->options->looks);
}

static counts count(const bench_report *r) {
  counts c = {.failed = 0};
  for (size_t i = 0; i < r->outcome->count; i++) {
    c.failed += failed(bench_head_of(r, i)) || failed(bench_base_of(r, i));
    if (bench_judged(r, i)) c.verdicts[bench_judged(r, i)->verdict]++;
    c.judged += is_judged(r, i);
  }
  for (size_t i = 0; i < r->outcome->count; i++)
    c.few += is_judged(r, i) && bench_judged(r, i)->verdict == GATE_UNSURE &&
             bench_judged(r, i)->head_visits < rounds_needed(r, c.judged);
  return c;
}

static const char *end_text(const bench_report *r) {
  if (r->outcome->interrupted) return ", interrupted";
  if (!r->outcome->out_of_time) return "";
  return r->options->time_s > 0 ? ", ended by --time"
                                : ", ended after the default time for a pair of builds (--time sets another)";
}

/* If a change is not the ratio of the two times next to it. */
static void print_basis(const bench_report *r) {
  gate_basis basis = {.paired = true};
  for (size_t i = 0; i < r->outcome->count; i++)
    if (bench_judged(r, i) && bench_head_of(r, i) && bench_base_of(r, i)) {
      double head_ns, base_ns;
      gate_case_summary(bench_head_of(r, i), &head_ns, NULL);
      gate_case_summary(bench_base_of(r, i), &base_ns, NULL);
      gate_basis_add(&basis, bench_shown(r, i)->name, bench_judged(r, i)->ratio, base_ns, head_ns);
    }
  if (!basis.rows) return;
  gate_put_basis(stdout, GATE_PLAIN, &basis);
  putchar('\n');
}

/* How many rounds a case was in, which is fewer than there were where time ended them. */
static void print_few(const bench_report *r, const counts *c) {
  const int needed = rounds_needed(r, c->judged);
  int most = 0;
  for (size_t i = 0; i < r->outcome->count; i++)
    if (is_judged(r, i) && bench_judged(r, i)->verdict == GATE_UNSURE && bench_judged(r, i)->head_visits < needed &&
        bench_judged(r, i)->head_visits > most)
      most = bench_judged(r, i)->head_visits;
  printf("%zu unsure case%s timed in %s%d round%s; with %zu case%s, no change can be certain in fewer than %d: give "
         "more %s.\n",
         c->few, c->few == 1 ? " was" : "s were", c->few == 1 ? "" : "at most ", most, most == 1 ? "" : "s", c->judged,
         c->judged == 1 ? "" : "s", needed, r->outcome->out_of_time ? "--time" : "--rounds");
}

static void print_summary(const bench_report *r) {
  const counts c = count(r);
  const char *between = ": ";
  printf("%zu case%s", r->outcome->count, r->outcome->count == 1 ? "" : "s");
  for (int i = 0; r->outcome->judged && i <= GATE_MISSING; i++) {
    if (!c.verdicts[i] && i != GATE_SLOWER) continue;
    printf("%s%zu %s", between, c.verdicts[i], gate_verdict_name((gate_verdict)i));
    between = ", ";
  }
  if (!r->outcome->judged && c.failed) printf(", %zu failed", c.failed);
  printf("; %d round%s in %.1f s%s", r->outcome->rounds, r->outcome->rounds == 1 ? "" : "s", r->seconds, end_text(r));
  if (r->options->save) {
    fputs("; saved in ", stdout);
    cli_print_padded(stdout, r->options->save, 0, false, false);
    printf(" as run %lld", (long long)r->head->run.id);
  }
  putchar('\n');
  print_basis(r);
  if (c.few) print_few(r, &c);
}

/* --- JSON --- */

static json_t *side_json(const gate_case *c) {
  double ns, spread;
  if (!c) return json_null();
  gate_case_summary(c, &ns, &spread);
  json_t *object = json_pack("{s:o, s:o, s:i, s:s}", "time_ns", c->visit_count ? cli_json_number(ns) : json_null(),
                             "spread", c->visit_count ? cli_json_number(spread) : json_null(), "visits", c->visit_count,
                             "state", failed(c) ? "failed" : "ok");
  json_object_set_new(object, "message", c->message ? cli_json_text(c->message) : json_null());
  return object;
}

static json_t *judged_json(const gate_judgement *j) {
  json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o}", "verdict", gate_verdict_name(j->verdict), "ratio",
                             cli_json_number(j->ratio), "low", cli_json_number(j->low), "high",
                             cli_json_number(j->high), "p_corrected", cli_json_number(j->p_corrected));
  if (j->why) json_object_set_new(object, "why", cli_json_text(j->why));
  return object;
}

static json_t *case_json(const bench_report *r, size_t i) {
  const gate_case *c = bench_shown(r, i);
  json_t *object =
      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", cli_json_text(c->name), "device",
                cli_json_text(c->device), "mode", cli_json_text(c->mode), "dtype", cli_json_text(c->dtype), "bytes",
                cli_json_number(c->bytes), "flops", cli_json_number(c->flops), "head", side_json(bench_head_of(r, i)));
  if (r->base) json_object_set_new(object, "base", side_json(bench_base_of(r, i)));
  double ns = 0;
  if (bench_head_of(r, i)) gate_case_summary(bench_head_of(r, i), &ns, NULL);
  const double of_roof = bench_share(r, c, ns);
  json_object_set_new(object, "of_roof", of_roof > 0 ? cli_json_number(of_roof) : json_null());
  const double beside = bench_beside(r, i);
  if (c->peer_of) json_object_set_new(object, "peer_of", cli_json_text(c->peer_of));
  if (c->peer_of) json_object_set_new(object, "beside", beside > 0 ? cli_json_number(beside) : json_null());
  if (bench_judged(r, i)) {
    const gate_row row = row_of(r, i);
    json_object_set_new(object, "judged", judged_json(&row.judged));
    json_object_set_new(object, "regression", json_boolean(gate_row_regressed(&row)));
  }
  return object;
}

static json_t *run_json(const gate_run *run) {
  return json_pack("{s:I, s:o, s:o, s:b, s:o}", "id", (json_int_t)run->id, "label", cli_json_text(run->label),
                   "revision", cli_json_text(run->revision), "dirty", run->dirty, "fingerprint",
                   json_loads(run->fingerprint, 0, NULL));
}

static int print_json(const bench_report *r) {
  json_t *cases = json_array();
  for (size_t i = 0; i < r->outcome->count; i++) json_array_append_new(cases, case_json(r, i));
  json_t *object = json_pack("{s:o, s:i, s:o, s:b, s:b, s:o}", "cases", cases, "rounds", r->outcome->rounds, "seconds",
                             cli_json_number(r->seconds), "interrupted", r->outcome->interrupted, "out_of_time",
                             r->outcome->out_of_time, "head", run_json(&r->head->run));
  if (r->base) json_object_set_new(object, "base", run_json(&r->base->run));
  return cli_print_json(object);
}

/* The reports say what the table says: a case keeps the verdict of the look that decided it. */
static void take_verdicts(gate_comparison *c, const gate_outcome *outcome) {
  memset(c->counts, 0, sizeof c->counts);
  for (size_t i = 0; i < c->row_count; i++) {
    gate_row *row = &c->rows[i];
    for (size_t j = 0; outcome->judged && j < outcome->count; j++)
      if (outcome->sides[GATE_HEAD][j] == row->head && outcome->sides[GATE_BASE][j] == row->base)
        row->judged = outcome->judged[j];
    c->counts[row->judged.verdict]++;
  }
}

static int write_reports(const bench_report *r) {
  const compare_reports *wanted = &r->options->reports;
  gate_comparison comparison;
  if (!wanted->markdown && !wanted->junit && !wanted->html && !wanted->export_count) return CLI_DONE;
  if (!r->base) {
    const int code = compare_write_file(wanted->markdown, bench_markdown, r);
    return code == CLI_DONE ? compare_write_exports(wanted, &r->head->run, r->options->save) : code;
  }
  char *error = gate_compare(&comparison, &r->base->run, &r->head->run, &r->options->rule, true);
  if (error) {
    cli_error("%s", error);
    free(error);
    return CLI_FAILED;
  }
  take_verdicts(&comparison, r->outcome);
  const int code = compare_write(wanted, &comparison, r->options->save);
  gate_comparison_free(&comparison);
  return code;
}

/* An interrupted run reports what it has. */
static int code_of(const bench_report *r) {
  const size_t count_of_cases = r->outcome->count;
  if (!r->outcome->judged) return count(r).failed ? CLI_FAILED : CLI_DONE;
  gate_row *rows = cli_alloc(count_of_cases + 1, sizeof *rows);
  for (size_t i = 0; i < count_of_cases; i++) rows[i] = row_of(r, i);
  compare_name_unused(&r->options->rule, rows, count_of_cases);
  const int code = compare_code(rows, count_of_cases, !r->base->run.case_count || r->outcome->interrupted);
  free(rows);
  return code;
}

int bench_report_print(const bench_report *r) {
  int code = write_reports(r);
  if (r->options->common.json) {
    if (print_json(r) != CLI_DONE) code = CLI_FAILED;
  } else if (!compare_reports_printed(&r->options->reports)) {
    bench_table_print(r);
    print_summary(r);
  }
  return code != CLI_DONE ? code : code_of(r);
}

/* --- --list --- */

int bench_list_print(const bench_side *head, const bench_options *o) {
  static const cli_column columns[] = {
      {"case", false, true, 0}, {"device", false, false, 1}, {"mode", false, false, 2}};
  cli_table table = {.columns = columns, .column_count = 3};
  json_t *cases = json_array();
  for (size_t i = 0; i < head->run.case_count; i++) {
    const gate_case *c = &head->run.cases[i];
    cli_table_add(&table, (const char *const[]){c->name, c->device, c->mode});
    json_array_append_new(cases, json_pack("{s:o, s:o, s:o}", "name", cli_json_text(c->name), "device",
                                           cli_json_text(c->device), "mode", cli_json_text(c->mode)));
  }
  if (!o->common.json && table.rows) cli_table_print(&table, stdout, o->common.wide);
  cli_table_free(&table);
  if (o->common.json) return cli_print_json(json_pack("{s:o}", "cases", cases));
  json_decref(cases);
  return CLI_DONE;
}
