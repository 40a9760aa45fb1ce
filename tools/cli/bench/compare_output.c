/* SPDX-License-Identifier: Apache-2.0
 * compare_output.c: a comparison on the terminal and in the files that were asked for. */
#include "tools/cli/bench/compare.h"

#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/compare/message.h"
#include "tools/compare/report/report.h"
#include "tools/compare/report/report_text.h"
#include "tools/compare/results/import.h"

enum { HISTORIES_MOST = 500, POINTS_LEAST = 3 };
static const double HISTORY_ALPHA = 0.01;

/* --- the table --- */

static const cli_column columns[] = {{"case", false, true, 0},   {"base", true, false, 2}, {"head", true, false, 1},
                                     {"change", true, false, 0}, {"95 %", true, false, 3}, {"verdict", false, false, 0},
                                     {"why", false, true, 4}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void add_row(cli_table *table, const gate_comparison *c, const gate_row *row) {
  const gate_judgement *j = &row->judged;
  char base[CLI_CELL], head[CLI_CELL], change[GATE_CELL], interval[GATE_CELL];
  char *name = gate_row_name(c, row);
  const char *why = gate_row_reason(row);
  const char *const cells[COLUMNS] = {name,
                                      cli_time_text(base, j->base_ns),
                                      cli_time_text(head, j->head_ns),
                                      gate_change_text(change, j->ratio),
                                      gate_interval_text(interval, j),
                                      gate_verdict_name(j->verdict),
                                      why ? why : ""};
  cli_table_add(table, cells);
  free(name);
}

static void print_side(const char *side, const gate_comparison *c, const gate_run *run) {
  printf("%s: ", side);
  gate_put_run(stdout, GATE_PLAIN, c, run);
  putchar('\n');
}

/* Notes on what an imported run lacks. */
static void print_notes(const gate_comparison *c) {
  const gate_run *const runs[] = {c->base, c->head};
  for (int i = 0; i < 2; i++) {
    char *note = gate_import_note(runs[i], c->rule.floor, c->rule.floor_count > 0),
         *clean = note ? cli_clean(note) : NULL;
    if (clean) printf("%s: %s.\n", i ? "head" : "base", clean);
    free(clean);
    free(note);
  }
}

static void print_differences(const gate_comparison *c) {
  if (!c->differences) return;
  for (const char *line = c->differences; *line;) {
    const size_t chars = strcspn(line, "\n");
    char *one = gate_say("%.*s", (int)chars, line), *clean = cli_clean(one);
    printf("differs: %s\n", clean);
    free(clean);
    free(one);
    line += chars + (line[chars] == '\n');
  }
}

static void print_table(const compare_options *o, const gate_comparison *c) {
  cli_table table = {.columns = columns, .column_count = COLUMNS};
  size_t *order = gate_rows_ordered(c);
  for (size_t i = 0; i < c->row_count; i++) add_row(&table, c, &c->rows[order ? order[i] : i]);
  print_side("base", c, c->base);
  print_side("head", c, c->head);
  if (gate_lacks_revisions(c)) printf("revision: %s\n", gate_no_revisions);
  print_differences(c);
  cli_table_print(&table, stdout, o->common.wide);
  gate_put_headline(stdout, c);
  if (c->counts[GATE_UNSURE] < c->row_count) { /* else the headline has said it */
    fputs(": ", stdout);
    gate_put_counts(stdout, c);
  }
  puts(c->alternated ? "; they alternated" : "; they did not alternate");
  const gate_basis basis = gate_basis_of(c);
  if (basis.rows) {
    gate_put_basis(stdout, GATE_PLAIN, &basis);
    putchar('\n');
  }
  print_notes(c);
  free(order);
  cli_table_free(&table);
}

/* --- files --- */

typedef struct page {
  gate_history *histories;
  size_t count;
} page;

/* Of every case that has one, from the file that head is of; what cannot be read is left out. */
static page load_histories(const gate_comparison *c, const char *results) {
  page p = {.histories = cli_alloc(HISTORIES_MOST, sizeof *p.histories)};
  gate_file *file = NULL;
  char *error = results ? gate_file_open(&file, results, false) : NULL;
  for (size_t i = 0; file && !error && i < c->row_count && p.count < HISTORIES_MOST; i++) {
    const gate_case *of = gate_row_case(&c->rows[i]);
    char *name = gate_say("%s [%s %s]", of->name, of->mode, of->device);
    gate_history *h = &p.histories[p.count];
    char *missing = gate_history_load(h, file, name, HISTORY_ALPHA);
    if (!missing && h->point_count >= POINTS_LEAST)
      p.count++;
    else
      gate_history_free(h);
    free(missing);
    free(name);
  }
  free(error);
  gate_file_close(file);
  return p;
}

typedef struct source {
  const gate_comparison *comparison;
  const char *results;
} source;

static bool write_html(FILE *out, const void *arg) {
  const source *s = arg;
  const gate_comparison *c = s->comparison;
  page p = load_histories(c, s->results);
  const bool written = gate_report_html(out, c, p.histories, p.count, c->head->roofs, c->head->roof_count);
  for (size_t i = 0; i < p.count; i++) gate_history_free(&p.histories[i]);
  free(p.histories);
  return written;
}

static bool write_markdown(FILE *out, const void *arg) {
  return gate_report_markdown(out, ((const source *)arg)->comparison);
}

static bool write_junit(FILE *out, const void *arg) {
  return gate_report_junit(out, ((const source *)arg)->comparison);
}

/* Has the file at `path` what no report may take the place of? */
static bool is_result_file(const char *path) {
  char header[16] = "";
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  FILE *file = fopen(path, "rb");
  const bool whole = file && fread(header, 1, sizeof header, file) == sizeof header;
  if (file) (void)fclose(file);
  return whole && memcmp(header, "SQLite format 3", sizeof header) == 0;
}

static bool refuse_database(const char *path) {
  if (!is_result_file(path)) return false;
  cli_error("%s is a database, which the report would overwrite; name another file", path);
  return true;
}

static int check_path(const char *path) {
  if (!path || strcmp(path, "-") == 0) return CLI_DONE;
  if (refuse_database(path)) return CLI_USAGE;
  char *copy = gate_copy(path);
  errno = 0;
  const bool there = access(path, F_OK) == 0;
  const bool can = there ? access(path, W_OK) == 0 : *path && access(dirname(copy), W_OK | X_OK) == 0;
  struct stat info;
  if (there && can && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) errno = EISDIR;
  const bool good = can && errno != EISDIR;
  if (!good) cli_error("cannot write %s: %s", path, strerror(errno ? errno : EINVAL));
  free(copy);
  return good ? CLI_DONE : CLI_USAGE;
}

int compare_check(const compare_reports *r) {
  int code = check_path(r->markdown) == CLI_DONE ? check_path(r->junit) : CLI_USAGE;
  if (code == CLI_DONE) code = check_path(r->html);
  for (int i = 0; code == CLI_DONE && i < r->export_count; i++) code = check_path(r->exports[i].path);
  return code;
}

int compare_write_file(const char *path, bool (*write)(FILE *out, const void *arg), const void *arg) {
  if (!path) return CLI_DONE;
  if (strcmp(path, "-") == 0) return write(stdout, arg) ? CLI_DONE : CLI_USAGE;
  if (refuse_database(path)) return CLI_USAGE;
  errno = 0;
  FILE *out = fopen(path, "w");
  bool written = out && write(out, arg);
  const int error = errno;
  if (out && fclose(out) != 0) written = false;
  if (!written) cli_error("cannot write %s: %s", path, strerror(errno ? errno : error));
  return written ? CLI_DONE : CLI_USAGE;
}

int compare_code(const gate_row *rows, size_t count, bool first) {
  for (size_t i = 0; i < count; i++)
    if (gate_row_regressed(&rows[i])) return CLI_FAILED;
  if (first || gate_rows_tell(rows, count)) return CLI_DONE;
  cli_error("nothing was compared: none of the shared cases could be timed in the head");
  return CLI_USAGE;
}

static bool holds(const gate_row *row, const gate_floor *f) {
  const char *name = gate_row_case(row)->name;
  return memmem(name, strlen(name), f->text, f->length) != NULL;
}

void compare_name_unused(const gate_rule *rule, const gate_row *rows, size_t count) {
  for (int i = 0; i < rule->floor_count; i++) {
    const gate_floor *f = &rule->floors[i];
    size_t k = 0;
    while (k < count && !holds(&rows[k], f)) k++;
    if (k == count)
      cli_error("--threshold %s applies to no case: no name contains \"%.*s\"; should be part of a case's name",
                f->text, (int)f->length, f->text);
  }
}

typedef struct export_source {
  const gate_exported *what;
  char *error;
} export_source;

static bool write_export(FILE *out, const void *arg) {
  export_source *s = (export_source *)(uintptr_t)arg;
  return gate_export(out, s->what, &s->error);
}

/* A sentence of the export's own says more than that a file could not be written. */
int compare_export_write(const char *path, const gate_exported *what) {
  export_source s = {.what = what};
  const int code = compare_write_file(path, write_export, &s);
  const size_t lost = gate_export_lost(what);
  if (s.error) cli_error("%s", s.error);
  free(s.error);
  if (code == CLI_DONE && lost)
    cli_error("%zu case%s failed or had no time, so %s %s", lost, lost == 1 ? "" : "s",
              strcmp(path, "-") == 0 ? "the export" : path,
              what->format == GATE_GOOGLE ? "marks them so" : "leaves them out");
  return code;
}

int compare_write_exports(const compare_reports *r, const gate_run *run, const char *results) {
  int code = CLI_DONE;
  for (int i = 0; code == CLI_DONE && i < r->export_count; i++) {
    const gate_exported what = {.format = r->exports[i].format, .run = run, .results = results};
    code = compare_export_write(r->exports[i].path, &what);
  }
  return code;
}

int compare_write(const compare_reports *r, const gate_comparison *c, const char *results) {
  const source s = {c, results};
  int code = compare_write_file(r->markdown, write_markdown, &s);
  if (code == CLI_DONE) code = compare_write_file(r->junit, write_junit, &s);
  if (code == CLI_DONE) code = compare_write_file(r->html, write_html, &s);
  return code == CLI_DONE ? compare_write_exports(r, c->head, results) : code;
}

int compare_reports_printed(const compare_reports *r) {
  const char *const paths[] = {r->markdown, r->junit, r->html};
  int printed = 0;
  for (int i = 0; i < 3; i++) printed += paths[i] && strcmp(paths[i], "-") == 0;
  for (int i = 0; i < r->export_count; i++) printed += strcmp(r->exports[i].path, "-") == 0;
  return printed;
}

int compare_output(const compare_options *o, const gate_comparison *c, const char *results) {
  const int code = compare_write(&o->reports, c, results);
  if (o->common.json)
    (void)gate_report_json(stdout, c);
  else if (!compare_reports_printed(&o->reports))
    print_table(o, c);
  compare_name_unused(&c->rule, c->rows, c->row_count);
  return code != CLI_DONE ? code : compare_code(c->rows, c->row_count, !c->base->case_count);
}
