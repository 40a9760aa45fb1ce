/* SPDX-License-Identifier: Apache-2.0
 * show_report.c: see show.h. A table with a summary, JSON, or CSV with a line for each row. */
#include "tools/cli/show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  NAME,
  PROBLEM,
  DEVICE,
  CALLS,
  IMPLEMENTATION,
  CONFIGURATION,
  TIME,
  DEFAULT,
  SPEEDUP,
  MARK,
  DEFAULT_BY,
  SPREAD,
  WHEN,
  MEASURE,
  DIFFERS,
  FINGERPRINT,
  COLUMNS
};

static const cli_column columns[COLUMNS] = {[NAME] = {"name", false, CLI_CUT, 0},
                                            [PROBLEM] = {"problem", false, CLI_LONG, 0},
                                            [DEVICE] = {"device", false, CLI_WHOLE, 5},
                                            [CALLS] = {"calls", true, CLI_WHOLE, 2},
                                            [IMPLEMENTATION] = {"implementation", false, CLI_WHOLE, 1},
                                            [CONFIGURATION] = {"configuration", false, CLI_CUT, 4},
                                            [TIME] = {"time", true, CLI_WHOLE, 0},
                                            [DEFAULT] = {"default", true, CLI_WHOLE, 3},
                                            [SPEEDUP] = {"speedup", true, CLI_WHOLE, 0},
                                            [MARK] = {"", false, CLI_WHOLE, 0},
                                            [DEFAULT_BY] = {"default by", false, CLI_CUT, 6},
                                            [SPREAD] = {"spread", true, CLI_WHOLE, 7},
                                            [WHEN] = {"when", false, CLI_WHOLE, 9},
                                            [MEASURE] = {"measure", false, CLI_WHOLE, 8},
                                            [DIFFERS] = {"differs", false, CLI_CUT, 3},
                                            [FINGERPRINT] = {"fingerprint", false, CLI_CUT, 10}};

void show_begin(show_report *r, show_format format, bool all, bool wide) {
  *r = (show_report){.format = format, .all = all, .wide = wide, .array = json_array()};
  r->table = (cli_table){.columns = columns, .column_count = all ? COLUMNS : DIFFERS};
  if (format == SHOW_CSV)
    puts("name,problem,written,devices,calls,call_ns,implementation,configuration,time_ns,default_time_ns,speedup,"
         "speedup_at_least,default_implementation,spread,tuned,valid,unsure,complete,tuned_at,measure,changed,"
         "fingerprint");
}

void show_free(show_report *r) {
  json_decref(r->array);
  cli_table_free(&r->table);
}

/* ---- one row ---- */

/* One that is unsure counts as 1, as in `attune tune'. */
static void count(show_report *r, const show_row *row) {
  const double speedup = row->tuned ? cli_speedup(row->decision) : 0, calls = (double)row->calls;
  if (row->tuned && !row->valid) return;
  r->rows++;
  r->all_ns += calls * row->call_ns;
  if (!row->tuned) r->untuned_ns += calls * row->call_ns;
  if (!row->tuned) return;
  r->tuned++;
  r->changed += *row->decision->changed != '\0';
  r->incomplete += !row->decision->complete;
  r->unsure += row->decision->complete && row->decision->unsure;
  if (!(speedup > 0)) return;
  r->known++;
  r->logs += log(speedup);
  if (!row->calls) return;
  r->counted++;
  r->default_ns += calls * row->decision->time_ns * speedup;
  r->winner_ns += calls * row->decision->time_ns;
}

static const char *number_text(char out[CLI_CELL], int64_t number) {
  snprintf(out, CLI_CELL, "%lld", (long long)number);
  return number ? out : "";
}

static void add_cells(show_report *r, const show_row *row) {
  const attune_decision_info *d = row->decision;
  char calls[CLI_CELL], time_text[CLI_CELL], default_time[CLI_CELL], about[CLI_CELL + 2] = "-", speedup[CLI_CELL],
                                                                                      spread[CLI_CELL], when[CLI_CELL];
  if (!row->tuned && row->call_ns > 0) snprintf(about, sizeof about, "~%s", cli_time_text(default_time, row->call_ns));
  const char *const cells[COLUMNS] = {[NAME] = row->name,
                                      [PROBLEM] = row->written,
                                      [DEVICE] = row->devices,
                                      [CALLS] = number_text(calls, row->calls),
                                      [IMPLEMENTATION] = row->tuned ? d->implementation : "-",
                                      [CONFIGURATION] = row->tuned && *d->configuration ? d->configuration : "-",
                                      [TIME] = row->tuned ? cli_time_text(time_text, d->time_ns) : "-",
                                      [DEFAULT] = row->tuned ? cli_time_text(default_time, d->default_time_ns) : about,
                                      [SPEEDUP] = row->tuned ? cli_speedup_cell(speedup, d) : "-",
                                      [MARK] = !row->tuned                 ? "not tuned"
                                               : d->unsure || !d->complete ? "?"
                                                                           : "",
                                      [DEFAULT_BY] =
                                          row->tuned && *d->default_implementation ? d->default_implementation : "-",
                                      [SPREAD] = row->tuned ? cli_percent_text(spread, d->spread) : "-",
                                      [WHEN] = row->tuned ? cli_date_text(when, d->tuned_at) : "-",
                                      [MEASURE] = row->tuned ? d->measure : "-",
                                      [DIFFERS] = *d->changed ? d->changed : "-",
                                      [FINGERPRINT] = row->fingerprint};
  cli_table_add(&r->table, cells);
  if (row->tuned) cli_table_tint(&r->table, SPEEDUP, cli_speedup_tint(d));
}

/* "device" is the first, "devices" are all. */
static void add_object(show_report *r, const show_row *row) {
  json_t *object = cli_json_decision(row->decision), *devices = json_array();
  for (const char *name = row->devices; *name;) {
    const size_t chars = strcspn(name, " ");
    json_array_append_new(devices, json_stringn(name, chars));
    name += chars + (name[chars] == ' ');
  }
  json_object_set_new(object, "devices", devices);
  json_object_set_new(object, "fingerprint", cli_json_text(row->fingerprint));
  json_object_set_new(object, "valid", json_boolean(row->valid));
  json_object_set_new(object, "tuned", json_boolean(row->tuned));
  json_object_set_new(object, "name", cli_json_text(row->name));
  json_object_set_new(object, "written", cli_json_text(row->written));
  json_object_set_new(object, "calls", row->calls ? json_integer((json_int_t)row->calls) : json_null());
  json_object_set_new(object, "call_ns", row->call_ns > 0 ? cli_json_number(row->call_ns) : json_null());
  json_array_append_new(r->array, object);
}

/* ---- CSV ---- */

/* RFC 4180: quoted where it has to be, and where a reader would take blanks away or a comment for the line. */
static void put_text(const char *text, char before) {
  if (before) putchar(before);
  const size_t chars = strlen(text);
  const bool edge = chars && (strchr(" \t#", text[0]) || strchr(" \t", text[chars - 1]));
  if (!edge && !strpbrk(text, ",;\"\r\n")) {
    fputs(text, stdout);
    return;
  }
  putchar('"');
  for (; *text; text++) {
    if (*text == '"') putchar('"');
    putchar(*text);
  }
  putchar('"');
}

/* Empty for what is not known. */
static void put_number(double number) {
  putchar(',');
  if (number > 0 && isfinite(number)) printf("%.6g", number);
}

static void put_line(const show_row *row) {
  const attune_decision_info *d = row->decision;
  put_text(row->name, 0);
  put_text(d->problem, ',');
  put_text(row->written, ',');
  put_text(row->devices, ',');
  put_number((double)row->calls);
  put_number(row->call_ns);
  put_text(row->tuned ? d->implementation : "", ',');
  put_text(row->tuned ? d->configuration : "", ',');
  put_number(row->tuned ? d->time_ns : 0);
  put_number(row->tuned ? d->default_time_ns : 0);
  put_number(row->tuned ? cli_speedup(d) : 0);
  put_number(row->tuned ? cli_speedup_bound(d) : 0);
  put_text(row->tuned ? d->default_implementation : "", ',');
  put_number(row->tuned ? d->spread : 0);
  printf(",%d,%d,%d,%d,%lld", row->tuned, row->valid, row->tuned && d->unsure, row->tuned && d->complete,
         (long long)(row->tuned ? d->tuned_at : 0));
  put_text(row->tuned ? d->measure : "", ',');
  put_text(d->changed, ',');
  put_text(row->fingerprint, ',');
  putchar('\n');
}

void show_add(show_report *r, const show_row *row) {
  count(r, row);
  if (r->format == SHOW_JSON)
    add_object(r, row);
  else if (r->format == SHOW_CSV)
    put_line(row);
  else
    add_cells(r, row);
}

/* ---- the end ---- */

static const char *plural(size_t number) {
  return number == 1 ? "" : "s";
}

static void print_sums(const show_report *r) {
  if (r->of_problems)
    printf("%zu problem%s, %zu tuned", r->rows, plural(r->rows), r->tuned);
  else
    printf("%zu problem%s", r->tuned, plural(r->tuned));
  if (r->known) printf(": geometric mean %.2fx", exp(r->logs / (double)r->known));
  if (r->counted) printf(", weighted by calls x time %.2fx", r->default_ns / r->winner_ns);
  putchar('\n');
  if (r->counted && r->counted < r->known) printf("(calls are known for %zu of the %zu)\n", r->counted, r->known);
}

/* Each fits 80 columns. */
static void print_remarks(const show_report *r, size_t elsewhere) {
  const size_t left = r->rows - r->tuned;
  if (left && r->untuned_ns > 0)
    printf("%zu not tuned, with about %.0f %% of the time of all calls:\n  `%s' measures %s\n", left,
           100 * r->untuned_ns / r->all_ns, r->command, left == 1 ? "it" : "them");
  else if (left)
    printf("%zu not tuned: `%s' measures %s\n", left, r->command, left == 1 ? "it" : "them");
  if (r->unsure)
    printf("? %zu unsure (noise or other work), counted as 1x:\n  `%s' measures them again\n", r->unsure, r->command);
  if (r->incomplete)
    printf("? %zu incomplete (the budget ended): `%s' measures them again\n", r->incomplete, r->command);
  const char *more = r->table.rows ? "more " : "", *with = "on other machines, drivers or libraries";
  if (elsewhere && r->other_threads == elsewhere)
    with = "with other numbers of CPU threads";
  else if (r->other_threads)
    with = "on other machines, drivers, libraries or CPU threads";
  if (elsewhere) printf("%zu %smeasured %s: --all lists %s\n", elsewhere, more, with, elsewhere == 1 ? "it" : "them");
  if (r->changed)
    printf("%zu compared with other libraries, or fewer implementations, than there are here:\n"
           "  `%s' measures them again%s\n",
           r->changed, r->command, r->all ? "" : ", --all shows what differs");
}

int show_end(show_report *r, const char *nothing, size_t elsewhere) {
  if (r->format == SHOW_JSON) return cli_print_json(json_incref(r->array));
  if (r->format == SHOW_CSV) return CLI_DONE;
  if (r->table.rows)
    cli_table_print(&r->table, stdout, r->wide);
  else
    puts(nothing);
  if (r->rows) print_sums(r);
  print_remarks(r, elsewhere);
  return CLI_DONE;
}
