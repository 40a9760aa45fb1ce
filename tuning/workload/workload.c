/* SPDX-License-Identifier: Apache-2.0
 * workload.c: lists of problems, from a CSV file or from what tuners in mode record wrote down. */
#include <attune/tools.h>

#include "src/base/array.h"
#include "src/base/backend.h"
#include "tuning/measure/operand_set.h"
#include "tuning/op/columns.h"
#include "tuning/workload/csv.h"
#include "tuning/workload/recording.h"
#include "tuning/workload/workload.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES ((size_t)100000)
#define NAME_BYTES 64 /* the most of a name that a row gives, with the end */

struct attune_workload {
  attune_workload_entry *entries; /* their problems and names are allocated one by one */
  size_t size;
  size_t capacity;
};

/* State of a row on its way to an entry: too large for a small stack. */
typedef struct scratch {
  uint64_t problem[AT_PROBLEM_BYTES / 8];
  char text[AT_PROBLEM_CHARS], label[AT_PROBLEM_CHARS];
} scratch;

const char *const at_workload_columns[AT_WORKLOAD_COLUMNS] = {"name", "op", "problem", "count"};

/* The positions of at_workload_columns in the header, in their order; -1: not there. */
typedef struct header {
  at_csv_row row;
  int name, op, problem, count;
  int width; /* with the columns at its end that have no name */
  const at_workload_ops *ops;
} header;

void attune_workload_destroy(attune_workload *workload) {
  if (!workload) return;
  for (size_t i = 0; i < workload->size; i++) {
    const attune_workload_entry *entry = &workload->entries[i];
    if (entry->name != entry->written) free((char *)(uintptr_t)entry->name);
    if (entry->written != entry->problem) free((char *)(uintptr_t)entry->written);
    free((char *)(uintptr_t)entry->problem);
  }
  free(workload->entries);
  free(workload);
}

size_t attune_workload_size(const attune_workload *workload) {
  return workload ? workload->size : 0;
}

const attune_workload_entry *attune_workload_at(const attune_workload *workload, size_t index) {
  return workload && index < workload->size ? &workload->entries[index] : NULL;
}

static attune_workload *new_workload(void) {
  attune_workload *workload = calloc(1, sizeof *workload);
  if (!workload) at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a workload");
  return workload;
}

/* Room for one more, zeroed and counted; NULL when memory ends. */
static attune_workload_entry *add_entry(attune_workload *workload) {
  if (!AT_ARRAY_ROOM(workload->entries, workload->size, workload->capacity)) {
    at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for more than %zu problems", workload->size);
    return NULL;
  }
  attune_workload_entry *entry = &workload->entries[workload->size++];
  memset(entry, 0, sizeof *entry);
  return entry;
}

static attune_status fail_memory(void) {
  return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a problem");
}

/* Empty or equal to the text before: shared with it. */
static const char *text_or(const char *text, const char *other) {
  return *text && other && strcmp(text, other) != 0 ? strdup(text) : other;
}

static attune_status set_problem(attune_workload_entry *entry, const char *text, const char *written,
                                 const char *name) {
  entry->problem = strdup(text);
  entry->written = text_or(written, entry->problem);
  entry->name = text_or(name, entry->written);
  return entry->problem && entry->written && entry->name ? ATTUNE_OK : fail_memory();
}

static attune_status check_column(const at_csv *csv, const at_csv_row *row, int index) {
  const at_csv_cell *cell = &row->cells[index];
  for (int before = 0; before < index; before++)
    if (strcmp(row->cells[before].text, cell->text) == 0)
      return at_csv_fail(csv, cell->line, cell->column, "column \"%s\" occurs twice; should occur once", cell->text);
  return ATTUNE_OK;
}

static bool is_general(const header *head, int column) {
  return column == head->name || column == head->op || column == head->problem || column == head->count;
}

/* A column that no row can use is an error, reported at its position. Without a column `op` all rows are of one
 * operation. */
static attune_status check_known(const at_csv *csv, const header *head) {
  const at_op *const *ops = head->op < 0 ? &head->ops->unnamed : head->ops->each;
  const int count = head->op < 0 ? 1 : head->ops->count;
  for (int i = 0; i < head->row.count; i++) {
    const at_csv_cell *cell = &head->row.cells[i];
    bool known = is_general(head, i) || !*cell->text;
    if (!known && head->problem >= 0)
      return at_csv_fail(csv, cell->line, cell->column,
                         "column \"%s\" next to \"problem\"; should be name, op or count", cell->text);
    for (int op = 0; op < count; op++) known = known || at_op_knows_column(ops[op], cell->text);
    if (known) continue;
    for (int op = 0; head->op < 0 && op < head->ops->count; op++)
      if (at_op_knows_column(head->ops->each[op], cell->text))
        return at_csv_fail(csv, cell->line, cell->column,
                           "column \"%s\" belongs to %s; needs a column op with \"%s\" in its rows", cell->text,
                           head->ops->each[op]->name, head->ops->each[op]->name);
    (void)at_fail_column(ops, count, cell->text);
    return at_fail_prefix(ATTUNE_BAD_DATA, "%s:%d:%d: ", csv->name, cell->line, cell->column);
  }
  return ATTUNE_OK;
}

static attune_status read_header(at_csv *csv, const at_workload_ops *ops, header *out) {
  *out = (header){.name = -1, .op = -1, .problem = -1, .count = -1, .ops = ops};
  at_csv_row *row = &out->row;
  attune_status status = at_csv_next(csv, row);
  if (status != ATTUNE_OK) return status;
  out->width = row->count;
  while (row->count > 0 && !*row->cells[row->count - 1].text) row->count--; /* as check_row does */
  if (row->count == 0)
    return at_csv_fail(csv, row->line, 1, "no header; should name the columns: those of an operation, or problem");
  for (int i = 0; i < row->count; i++) {
    char *name = row->cells[i].text;
    for (char *c = name; *c; c++) *c = (char)tolower((unsigned char)*c);
    if (!*name) continue; /* a spreadsheet's empty column: check_row */
    status = check_column(csv, row, i);
    if (status != ATTUNE_OK) return status;
    int *const columns[] = {&out->name, &out->op, &out->problem, &out->count};
    for (int c = 0; c < AT_WORKLOAD_COLUMNS; c++)
      if (strcmp(name, at_workload_columns[c]) == 0) *columns[c] = i;
  }
  return check_known(csv, out);
}

/* The header's column whose name is the word word[0..length-1]; -1: none. */
static int column_called(const header *head, const char *word, size_t length) {
  for (int i = 0; length && i < head->row.count; i++)
    if (strlen(head->row.cells[i].text) == length && memcmp(head->row.cells[i].text, word, length) == 0) return i;
  return -1;
}

/* The op says in words which column is wrong, then, after a semicolon, what would be right; the first of its words that
 * is a column's name gives the place. */
static attune_status fail_in_row(const at_csv *csv, const header *head, const at_csv_row *row, attune_status status) {
  int found = -1;
  for (const char *word = attune_last_message(); *word && *word != ';' && found < 0;) {
    size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_");
    found = column_called(head, word, length);
    word += length ? length : 1;
  }
  const at_csv_cell *cell = &row->cells[found < 0 ? 0 : found];
  return at_fail_prefix(status == ATTUNE_OUT_OF_MEMORY ? status : ATTUNE_BAD_DATA, "%s:%d:%d: ", csv->name, cell->line,
                        cell->column);
}

static attune_status check_name(const at_csv *csv, const at_csv_cell *cell) {
  for (const char *c = cell->text; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7F)
      return at_csv_fail(csv, cell->line, cell->column,
                         "name contains the control character 0x%02x; should be plain text",
                         (unsigned)(unsigned char)*c);
  if (strlen(cell->text) < NAME_BYTES) return ATTUNE_OK;
  return at_csv_fail(csv, cell->line, cell->column, "name has %zu bytes; should have at most %d", strlen(cell->text),
                     NAME_BYTES - 1);
}

static attune_status read_count(const at_csv *csv, const at_csv_cell *cell, attune_workload_entry *entry) {
  if (!*cell->text) return ATTUNE_OK;
  if (!at_parse_i64(&entry->count, cell->text) || entry->count < 1)
    return at_csv_fail(csv, cell->line, cell->column, "count is \"%.40s\"; should be a whole number of 1 or more",
                       cell->text);
  return ATTUNE_OK;
}

/* The op called name[0..chars-1]; NULL: none. */
static const at_op *op_called(const at_workload_ops *ops, const char *name, size_t chars) {
  for (int i = 0; i < ops->count; i++)
    if (strlen(ops->each[i]->name) == chars && memcmp(ops->each[i]->name, name, chars) == 0) return ops->each[i];
  return NULL;
}

static attune_status fail_op(const at_csv *csv, const header *head, const at_csv_cell *cell, size_t chars) {
  char known[128] = "";
  size_t at = 0;
  for (int i = 0; i < head->ops->count; i++)
    at_append(known, sizeof known, &at, "%s%s", i ? ", " : "", head->ops->each[i]->name);
  return at_csv_fail(csv, cell->line, cell->column, "there is no operation \"%.*s\"; should be one of: %s",
                     (int)(chars < 40 ? chars : 40), cell->text, known);
}

/* The op of a row: its `op` cell, the first word of its problem, or the one of rows that name none. */
static attune_status find_op(const at_csv *csv, const header *head, const at_csv_row *row, const at_op **out) {
  const at_csv_cell *given = head->op >= 0 && *row->cells[head->op].text ? &row->cells[head->op] : NULL;
  const at_csv_cell *text = head->problem >= 0 ? &row->cells[head->problem] : NULL;
  const at_csv_cell *naming = given ? given : text;
  const size_t word = text ? strcspn(text->text, " ") : 0, chars = given ? strlen(given->text) : word;
  if (given && text && (chars != word || memcmp(given->text, text->text, word) != 0))
    return at_csv_fail(csv, given->line, given->column, "op is \"%.40s\"; should be \"%.*s\", as in the problem",
                       given->text, (int)(word < 40 ? word : 40), text->text);
  *out = naming ? op_called(head->ops, naming->text, chars) : head->ops->unnamed;
  return *out ? ATTUNE_OK : fail_op(csv, head, naming, chars);
}

static attune_status problem_from_text(const at_op *op, const char *text, scratch *s) {
  memset(s->problem, 0, sizeof s->problem);
  const attune_status status = op->problem->parse(text, s->problem);
  return status == ATTUNE_OK ? op->problem->format(s->problem, s->text, sizeof s->text) : status;
}

/* An empty cell is one that is not given, so that a column may concern some rows only. */
static attune_status problem_from_row(const at_op *op, const header *head, const at_csv_row *row, scratch *s) {
  at_column fields[AT_CSV_MAX_CELLS];
  int count = 0;
  for (int i = 0; i < head->row.count; i++) {
    if (i == head->name || i == head->op || i == head->count || !*row->cells[i].text) continue;
    fields[count++] = (at_column){head->row.cells[i].text, row->cells[i].text, row->cells[i].column};
  }
  return op->problem->from_fields(fields, count, s->text, sizeof s->text, s->label, sizeof s->label);
}

/* Columns without a name are empty. Spreadsheets write those at the end in some rows only, but never more than the
 * header has. */
static attune_status check_row(const at_csv *csv, const header *head, const at_csv_row *row) {
  int count = row->count;
  while (count > head->row.count && !*row->cells[count - 1].text) count--;
  const bool wide = count == head->row.count && row->count > head->width; /* only by empty fields */
  const int has = wide ? row->count : count, should = wide ? head->width : head->row.count;
  if (has != should)
    return at_csv_fail(csv, row->line, row->cells[has > should ? should : has - 1].column,
                       "the row has %d fields; should have %d, like the header in line %d", has, should,
                       head->row.line);
  for (int i = 0; i < count; i++)
    if (!*head->row.cells[i].text && *row->cells[i].text)
      return at_csv_fail(csv, row->cells[i].line, row->cells[i].column,
                         "\"%.40s\" is in column %d, which has no name in line %d; should have one", row->cells[i].text,
                         i + 1, head->row.line);
  return ATTUNE_OK;
}

/* A problem's text without zeros in front of its numbers: 064x64 is reported as 64x64. */
static void strip_zeros(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++) {
    const bool first = from == text || strchr(" x=,", from[-1]);
    if (first)
      while (*from == '0' && isdigit((unsigned char)from[1])) from++;
    *to++ = *from;
  }
  *to = '\0';
}

static attune_status read_row(const at_csv *csv, const header *head, const at_csv_row *row,
                              attune_workload_entry *entry, scratch *s) {
  const attune_status checked = check_row(csv, head, row);
  if (checked != ATTUNE_OK) return checked;
  entry->count = 1;
  attune_status status = head->count >= 0 ? read_count(csv, &row->cells[head->count], entry) : ATTUNE_OK;
  if (status == ATTUNE_OK && head->name >= 0) status = check_name(csv, &row->cells[head->name]);
  const at_op *op = NULL;
  s->text[0] = s->label[0] = '\0';
  if (status == ATTUNE_OK) status = find_op(csv, head, row, &op);
  if (status != ATTUNE_OK) return status;
  status = head->problem >= 0 ? problem_from_text(op, row->cells[head->problem].text, s)
                              : problem_from_row(op, head, row, s);
  if (status != ATTUNE_OK) return fail_in_row(csv, head, row, status);
  if (head->problem >= 0) strip_zeros(row->cells[head->problem].text);
  const char *written = head->problem >= 0 ? row->cells[head->problem].text : s->label;
  const char *named = head->name >= 0 ? row->cells[head->name].text : "";
  return set_problem(entry, s->text, written, named);
}

static attune_status read_rows(at_csv *csv, const at_workload_ops *ops, attune_workload *workload, scratch *s) {
  header head;
  at_csv_row row;
  attune_status status = read_header(csv, ops, &head);
  while (status == ATTUNE_OK) {
    status = at_csv_next(csv, &row);
    if (status != ATTUNE_OK) break;
    if (row.count == 0 && workload->size == 0)
      return at_csv_fail(csv, row.line, 1, "no rows after the header; should have at least one");
    if (row.count == 0) break;
    if (workload->size == MAX_ENTRIES)
      return at_csv_fail(csv, row.line, 1, "more than %zu problems; should be split", MAX_ENTRIES);
    attune_workload_entry *entry = add_entry(workload);
    status = entry ? read_row(csv, &head, &row, entry, s) : ATTUNE_OUT_OF_MEMORY;
  }
  return status;
}

attune_status at_workload_read(attune_workload **out, const char *path, const at_workload_ops *ops) {
  AT_REQUIRE_AS(out, "point to an attune_workload *");
  *out = NULL;
  if (!path || !*path) return AT_INVALID("path is %s; should be the path of a CSV file", path ? "empty" : "NULL");
  at_csv csv;
  AT_TRY(at_csv_open(&csv, path));
  attune_workload *workload = new_workload();
  scratch *s = workload ? malloc(sizeof *s) : NULL;
  if (workload && !s) (void)at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a workload");
  attune_status status = s ? read_rows(&csv, ops, workload, s) : ATTUNE_OUT_OF_MEMORY;
  free(s);
  at_csv_close(&csv);
  if (status != ATTUNE_OK) {
    attune_workload_destroy(workload);
    return status;
  }
  *out = workload;
  return ATTUNE_OK;
}

/* The walk's end for lack of memory shows as `failed`. */
typedef struct recorded_walk {
  attune_workload *workload;
  bool failed;
} recorded_walk;

static int add_recorded(void *user, const char *problem, int64_t count) {
  recorded_walk *walk = user;
  if (walk->workload->size == MAX_ENTRIES) return 1;
  if (strlen(problem) >= AT_PROBLEM_CHARS) return 0; /* a damaged row: no problem is that long */
  attune_workload_entry *entry = add_entry(walk->workload);
  walk->failed = !entry || set_problem(entry, problem, "", "") != ATTUNE_OK;
  if (walk->failed) return 1;
  entry->count = count;
  return 0;
}

/* What one call of the default takes, about: measured with whatever winner there is, else by arithmetic and traffic at
 * rates that devices of the kind reach. It decides what is tuned first and longest, no more. */
static double estimate_ns(attune_tuner *tuner, attune_device *device, const char *fingerprint, const char *text) {
  uint64_t problem[AT_PROBLEM_BYTES / 8] = {0};
  attune_decision row;
  const at_op *op = at_tuner_op(tuner, text);
  const char *measure = at_measure_name(at_tuner_measure(tuner, device));
  at_store *store = at_tuner_store(tuner);
  if (store && at_store_find(store, fingerprint, text, measure, &row) == ATTUNE_OK && row.default_time_ns > 0.0)
    return row.default_time_ns;
  if (!op || op->problem->parse(text, problem) != ATTUNE_OK) return 0.0;
  const bool host = device->properties.kind == ATTUNE_DEVICE_HOST;
  const double processors = device->properties.processors > 0 ? device->properties.processors : 1;
  const double flops_a_ns = processors * (host ? 30.0 : 400.0), bytes_a_ns = host ? 10.0 : 2000.0;
  const double arithmetic = op->problem->flops(problem) / flops_a_ns,
               traffic = op->problem->bytes(problem) / bytes_a_ns;
  return (host ? 50.0 : 3000.0) + (arithmetic > traffic ? arithmetic : traffic);
}

/* Can a problem of an operation be measured at all? */
static attune_status check_room(attune_tuner *tuner, attune_device *device, const char *text) {
  uint64_t problem[AT_PROBLEM_BYTES / 8] = {0};
  const at_op *op = at_tuner_op(tuner, text);
  size_t bytes = 0;
  if (!op) return ATTUNE_INVALID_ARGUMENT;
  attune_status status = op->problem->parse(text, problem);
  if (status == ATTUNE_OK) status = at_operand_bytes(op, problem, &bytes);
  return status == ATTUNE_OK ? at_operand_room(device, bytes) : status;
}

attune_status attune_workload_estimate(double *out_ns, attune_tuner *tuner, attune_device *device,
                                       const char *problem) {
  AT_REQUIRE(out_ns, tuner, device, problem);
  const char *fingerprint = NULL;
  const at_message kept = at_message_keep();
  attune_status status = at_tuner_fingerprint(tuner, device, &fingerprint);
  *out_ns = status == ATTUNE_OK ? estimate_ns(tuner, device, fingerprint, problem) : 0.0;
  if (status == ATTUNE_OK && *out_ns <= 0.0) status = AT_INVALID("\"%s\" is not a problem", problem);
  if (status == ATTUNE_OK) status = check_room(tuner, device, problem);
  return at_message_settle(&kept, status);
}

static int longest_first(const void *left, const void *right) {
  const attune_workload_entry *a = left, *b = right;
  const double a_ns = (double)a->count * a->time_ns, b_ns = (double)b->count * b->time_ns;
  if (a_ns != b_ns) return a_ns < b_ns ? 1 : -1;
  if (a->count != b->count) return a->count < b->count ? 1 : -1;
  return strcmp(a->problem, b->problem);
}

attune_status attune_workload_recorded(attune_workload **out, attune_tuner *tuner, attune_device *device) {
  AT_REQUIRE_AS(out, "point to an attune_workload *");
  *out = NULL;
  AT_REQUIRE_AS(tuner, "be a tuner");
  AT_REQUIRE_AS(device, "be a device");
  at_store *store = at_tuner_store(tuner);
  if (!store)
    return at_fail(ATTUNE_NOT_FOUND, "the tuner has no database; should be created with one written in mode record");
  const char *fingerprint = NULL;
  AT_TRY(at_tuner_fingerprint(tuner, device, &fingerprint));
  const at_message kept = at_message_keep();
  if (attune_tuner_get_mode(tuner) == ATTUNE_MODE_RECORD) at_recording_flush(tuner);
  recorded_walk walk = {.workload = new_workload()};
  if (!walk.workload) return ATTUNE_OUT_OF_MEMORY;
  attune_status status = at_store_each_recorded(store, fingerprint, add_recorded, &walk);
  if (status == ATTUNE_OK && walk.failed) status = ATTUNE_OUT_OF_MEMORY;
  if (status != ATTUNE_OK) {
    attune_workload_destroy(walk.workload);
    return status;
  }
  attune_workload *workload = walk.workload;
  for (size_t i = 0; i < workload->size; i++)
    workload->entries[i].time_ns = estimate_ns(tuner, device, fingerprint, workload->entries[i].problem);
  if (workload->size) qsort(workload->entries, workload->size, sizeof *workload->entries, longest_first);
  *out = workload;
  return at_message_settle(&kept, ATTUNE_OK);
}
