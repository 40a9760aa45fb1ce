/* SPDX-License-Identifier: Apache-2.0
 * bench_table.c: the table of `attune bench`, on the terminal and as Markdown: its cases, alone or next to those of
 * another build. */
#include "tools/cli/bench/bench.h"

#include <math.h>
#include <string.h>

#include "tools/compare/report/report_text.h"
#include "tools/compare/stats/summary.h"

const gate_case *bench_head_of(const bench_report *r, size_t i) {
  return r->outcome->sides[GATE_HEAD][i];
}

const gate_case *bench_base_of(const bench_report *r, size_t i) {
  return r->base ? r->outcome->sides[GATE_BASE][i] : NULL;
}

const gate_case *bench_shown(const bench_report *r, size_t i) {
  return bench_head_of(r, i) ? bench_head_of(r, i) : bench_base_of(r, i);
}

const gate_judgement *bench_judged(const bench_report *r, size_t i) {
  return r->outcome->judged ? &r->outcome->judged[i] : NULL;
}

static bool failed(const gate_case *c) {
  return c && c->state == GATE_CASE_FAILED;
}

/* Why the case has no good end, or "ok". */
static const char *state_text(const bench_report *r, size_t i, char *out, size_t size) {
  const gate_case *head = bench_head_of(r, i), *base = bench_base_of(r, i);
  const gate_judgement *j = bench_judged(r, i);
  const char *why = j && j->why ? j->why : "";
  if (failed(head))
    snprintf(out, size, "failed: %s", head->message);
  else if (failed(base))
    snprintf(out, size, "%sbase failed: %s", j && j->verdict == GATE_REPAIRED ? "repaired; " : "", base->message);
  else if (j)
    snprintf(out, size, "%s%s%s", gate_verdict_name(j->verdict), *why ? ": " : "", why);
  else
    snprintf(out, size, "%s", bench_shown(r, i)->visit_count ? "ok" : "not timed");
  return out;
}

/* --- cells --- */

static const char *rate_text(char out[CLI_CELL], double work, double ns, double unit) {
  if (!(work > 0 && ns > 0)) return "-";
  snprintf(out, CLI_CELL, "%.4g", work / ns / unit);
  return out;
}

double bench_share(const bench_report *r, const gate_case *c, double ns) {
  attune_device *device = NULL;
  attune_device_properties p = {.cache_bytes = 0};
  double least_s = 0, moving_s = 0;
  if (!(ns > 0) || attune_device_get(&device, c->device) != ATTUNE_OK ||
      attune_device_get_properties(device, &p) != ATTUNE_OK)
    return 0;
  const bool cached = strncmp(c->mode, "cold", 4) != 0 && c->bytes <= (double)p.cache_bytes;
  for (size_t i = 0; i < r->head->run.roof_count; i++) {
    const gate_roof *roof = &r->head->run.roofs[i];
    if (strcmp(roof->device, c->device) != 0) continue;
    if (roof->bytes_s > 0) moving_s = fmax(moving_s, c->bytes / roof->bytes_s);
    if (roof->flops_s > 0 && strcmp(roof->dtype, c->dtype) == 0) least_s = fmax(least_s, c->flops / roof->flops_s);
  }
  if (cached && moving_s > least_s) return 0;
  return 1e9 * fmax(least_s, moving_s) / ns;
}

static const char *share_text(char out[CLI_CELL], double share_of_roof) {
  if (!(share_of_roof > 0)) return "-";
  snprintf(out, CLI_CELL, "%.0f %%", 100 * share_of_roof);
  return out;
}

double bench_beside(const bench_report *r, size_t i) {
  const gate_case *c = bench_head_of(r, i), *other = NULL;
  for (size_t j = 0; c && c->peer_of && !other && j < r->outcome->count; j++)
    if (bench_head_of(r, j) && strcmp(bench_head_of(r, j)->name, c->peer_of) == 0) other = bench_head_of(r, j);
  return other ? gate_case_ratio(c, other) : 0;
}

static const char *beside_text(char out[CLI_CELL], double ratio) {
  if (!(ratio > 0)) return "-";
  snprintf(out, CLI_CELL, "%.3f x", ratio);
  return out;
}

/* --- the table --- */

enum { NAME, DEVICE, MODE, BASE, TIME, CHANGE, SPREAD, BYTES, FLOPS, ROOF, BESIDE, STATE, CELLS };
static const cli_column all_columns[CELLS] = {
    [NAME] = {"case", false, true, 0},     [DEVICE] = {"device", false, false, 6},
    [MODE] = {"mode", false, false, 7},    [BASE] = {"base", true, false, 3},
    [TIME] = {"time", true, false, 0},     [CHANGE] = {"change", true, false, 0},
    [SPREAD] = {"spread", true, false, 2}, [BYTES] = {"GB/s", true, false, 4},
    [FLOPS] = {"TFLOP/s", true, false, 5}, [ROOF] = {"of roof", true, false, 6},
    [BESIDE] = {"beside", true, false, 1}, [STATE] = {"state", false, true, 0}};

static bool has_peers(const bench_report *r) {
  for (size_t i = 0; i < r->outcome->count; i++)
    if (bench_shown(r, i)->peer_of) return true;
  return false;
}

/* The columns that this run has something for; how many. */
static int choose(const bench_report *r, int which[CELLS], cli_column columns[CELLS]) {
  const bool peers = has_peers(r);
  int count = 0;
  for (int k = 0; k < CELLS; k++) {
    if (((k == BASE || k == CHANGE) && !r->base) || (k == BESIDE && !peers)) continue;
    columns[count] = all_columns[k];
    which[count++] = k;
  }
  return count;
}

static void add_row(const bench_report *r, cli_table *table, const int *which, size_t i) {
  const gate_case *c = bench_shown(r, i), *base = bench_base_of(r, i);
  char state[512], time[CLI_CELL], base_time[CLI_CELL], change[GATE_CELL], spread_cell[CLI_CELL], bytes[CLI_CELL],
      flops[CLI_CELL], roof[CLI_CELL], beside[CLI_CELL];
  double ns = 0, spread = 0, base_ns = 0;
  if (bench_head_of(r, i)) gate_case_summary(bench_head_of(r, i), &ns, &spread);
  if (base) gate_case_summary(base, &base_ns, NULL);
  const char *const all[CELLS] = {[NAME] = c->name,
                                  [DEVICE] = c->device,
                                  [MODE] = c->mode,
                                  [BASE] = cli_time_text(base_time, base_ns),
                                  [TIME] = cli_time_text(time, ns),
                                  [CHANGE] =
                                      bench_judged(r, i) ? gate_change_text(change, bench_judged(r, i)->ratio) : "-",
                                  [SPREAD] = ns > 0 ? cli_percent_text(spread_cell, spread) : "-",
                                  [BYTES] = rate_text(bytes, c->bytes, ns, 1),
                                  [FLOPS] = rate_text(flops, c->flops, ns, 1e3),
                                  [ROOF] = share_text(roof, bench_share(r, c, ns)),
                                  [BESIDE] = beside_text(beside, bench_beside(r, i)),
                                  [STATE] = state_text(r, i, state, sizeof state)};
  const char *cells[CELLS];
  for (int k = 0; k < table->column_count; k++) cells[k] = all[which[k]];
  cli_table_add(table, cells);
}

static void fill(const bench_report *r, cli_table *table, cli_column columns[CELLS]) {
  int which[CELLS];
  *table = (cli_table){.columns = columns, .column_count = choose(r, which, columns)};
  for (size_t i = 0; i < r->outcome->count; i++) add_row(r, table, which, i);
}

void bench_table_print(const bench_report *r) {
  cli_column columns[CELLS];
  cli_table table;
  fill(r, &table, columns);
  if (table.rows) cli_table_print(&table, stdout, r->options->common.wide);
  cli_table_free(&table);
}

/* --- Markdown --- */

static void put_fact(void *out, const char *key, const char *value) {
  fprintf(out, "- %s: ", key);
  cli_put_markdown(out, value);
  fputc('\n', out);
}

bool bench_markdown(FILE *out, const void *arg) {
  const bench_report *r = arg;
  const gate_run *run = &r->head->run;
  cli_column columns[CELLS];
  cli_table table;
  char date[GATE_CELL];
  fputs("# ", out);
  gate_put(out, GATE_MARKDOWN, *run->label ? run->label : "attune bench", 200);
  fputs("\n\n", out);
  gate_each_fact(run, put_fact, out);
  put_fact(out, "command", run->command);
  fprintf(out, "- revision: ");
  gate_put_revision(out, GATE_MARKDOWN, run);
  fprintf(out, "\n- date: %s\n", gate_date_text(date, run->started));
  fprintf(out,
          "- method: %d round%s, each in fresh processes and with the cases in a new random order; times are per call, "
          "medians of the rounds\n",
          r->outcome->rounds, r->outcome->rounds == 1 ? "" : "s");
  if (has_peers(r))
    fputs("- beside: the time divided by that of the case listed above its peers, which is timed right before or after "
          "it in each round; the median of the rounds' ratios\n",
          out);
  fputc('\n', out);
  fill(r, &table, columns);
  cli_table_markdown(&table, out);
  cli_table_free(&table);
  return gate_written(out);
}
