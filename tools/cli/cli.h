/* SPDX-License-Identifier: Apache-2.0
 * cli.h: what the files of the `attune` command share. */
#ifndef CLI_H
#define CLI_H

#include <argp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include <attune/attune.h>
#include <attune/tools.h>
#include <jansson.h>

/* Exit codes; an interrupted run ends with 128 + the signal's number. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

typedef enum cli_tint { CLI_PLAIN, CLI_GREEN, CLI_RED } cli_tint;

/* main.c */

typedef struct cli_options {
  const char *database; /* NULL: the environment's or the user's own */
  const char *device;   /* NULL: the best one */
  bool json;
  bool wide; /* tables whole, whatever the terminal's width */
} cli_options;

int cmd_devices(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_warm(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);

/* "attune: message" on standard error, with what a terminal would obey escaped. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports the thread's last message; the exit code that fits: CLI_USAGE for input that is wrong or cannot be read. */
int cli_fail(attune_status status);

/* The device of --device into *out; an exit code. */
int cli_open_device(attune_device **out, const cli_options *options);

/* `path`, unless NULL, names a database to read: CLI_USAGE when there is none. */
int cli_need_database(const char *path);

/* Where WORKLOAD is read from; NULL, after a message: nowhere. Asked before anything is opened, which would take the
 * place of a closed standard input. */
const char *cli_workload_path(const char *named);

/* Memory or the end of the program. */
void *cli_alloc(size_t count, size_t size);

/* Ends the program with CLI_FAILED when what it printed could not be written, also where argp ends it (--help). */
void cli_check_output(void);

/* Prints and releases `value`; an exit code. */
int cli_print_json(json_t *value);

/* A string of any bytes, an unusable number as null. */
json_t *cli_json_text(const char *text);
json_t *cli_json_number(double number);

/* cmd_explain.c: a copy of `from`, or NULL: an empty one; without memory the command ends. */
attune_decision *cli_decision(const attune_decision *from);

/* Its fields, valid while it is kept. */
attune_decision_info cli_info(const attune_decision *decision);

/* Every field of a decision; NULL members never. */
json_t *cli_json_decision(const attune_decision_info *decision);

/* Default's time over the winner's; 0 when one is not known. */
double cli_speedup(const attune_decision_info *decision);

/* Of a decision that is unsure: what the speedup is at least, three standard errors below what was measured; 0: noise
 * leaves nothing above 1. */
double cli_speedup_bound(const attune_decision_info *decision);

/* "1.25x"; "> 1.2x" for one that is unsure; "-" for none. And its colour: red for slower. */
#define CLI_CELL 40
const char *cli_speedup_cell(char out[CLI_CELL], const attune_decision_info *decision);
cli_tint cli_speedup_tint(const attune_decision_info *decision);

/* table.c */

/* Treatment of a column's text that is too long. */
typedef enum cli_cut {
  CLI_WHOLE = 0,
  CLI_CUT = 1, /* cut to fit a terminal */
  CLI_LONG = 2 /* that, and where the table is whole it stands last */
} cli_cut;

typedef struct cli_column {
  const char *title;
  bool right; /* numbers */
  int shrink; /* a cli_cut */
  int rank;   /* which columns go first where the terminal is too narrow: the highest; 0: stays */
} cli_column;

typedef struct cli_table {
  const cli_column *columns;
  int column_count;
  char **cells;         /* by row */
  unsigned char *tints; /* a cli_tint for each cell */
  size_t rows;
  size_t capacity;
} cli_table;

/* A cell for every column, copied. */
void cli_table_add(cli_table *table, const char *const *cells);
/* Colours a cell of the row that was added last, where the output has colours. */
void cli_table_tint(cli_table *table, int column, cli_tint tint);
/* Columns without any text are left out. On a terminal so are those of the highest ranks, and others are cut, until a
 * line fits; cells that differ still do. With `wide`, and where there is no terminal, the table is whole. */
void cli_table_print(cli_table *table, FILE *out, bool wide);
/* As a table of Markdown, whole. */
void cli_table_markdown(const cli_table *table, FILE *out);
void cli_table_free(cli_table *table);

/* `text` as code, or where that cannot hold it, as text that is no markup. */
void cli_put_markdown(FILE *out, const char *text);

/* text.c: what a terminal would obey, reorder or not show (control and direction characters, bytes that are no text) as
 * \\x1b or \\u202e; the caller frees it. */
char *cli_clean(const char *text);

/* Prints `text`, cleaned, in `width` columns, cut to them when `cut`; width 0: as it is. */
void cli_print_padded(FILE *out, const char *text, int width, bool right, bool cut);
int cli_width(const char *text);

/* cut.c: each text in `width` columns at most, cleaned, in place of what it was; texts that differ do so after it, and
 * sizes such as 64x1024 are whole where there is room. */
void cli_cut_apart(char **texts, size_t count, int width);
/* The column behind a problem's sizes; 0: it has none. */
int cli_sizes_end(const char *text);

bool cli_utf8(void);
bool cli_color(FILE *out);
/* The sequence that begins a colour, or ends all of them; "": `out` shows none. */
const char *cli_tint_text(FILE *out, cli_tint tint);
/* Columns of the terminal behind `out`: COLUMNS, else what the terminal says; 0: not a terminal. */
int cli_terminal_width(FILE *out);

/* "12.3 us", "-" for nothing; "1.25x"; "0.8 %"; local date and time. */
const char *cli_time_text(char out[CLI_CELL], double time_ns);
const char *cli_speedup_text(char out[CLI_CELL], double speedup);
const char *cli_percent_text(char out[CLI_CELL], double fraction);
const char *cli_date_text(char out[CLI_CELL], int64_t seconds);

/* argp_error, for words that may hold anything: ends the command with CLI_USAGE. */
void cli_bad_usage(const struct argp_state *state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* attune_tuner_create, which prints errors that are logged while it opens the databases. */
attune_status cli_open_tuner(attune_tuner **out, const attune_tuner_options *options);

/* The device of --device and a tuner in mode `cached` of a database that must be there; an exit code. */
int cli_open_stored(attune_tuner **tuner, attune_device **device, const cli_options *options);

/* signals.c: SIGINT or SIGTERM, once one came; 0: none did. The first ends the run after the present problem, or after
 * some seconds; a second one ends it at once. */
extern volatile sig_atomic_t cli_interrupted;
void cli_catch_signals(void);

/* progress.c: a bar on standard error when that is a terminal, else nothing. Drawn between problems only: a
 * ticking thread would disturb what is being measured. */

typedef struct cli_progress {
  bool active;
  bool drawn;
  size_t total; /* problems */
  size_t to_measure;
  double start_s;
  double budget_s; /* set after cli_progress_begin: the run ends by then; 0: it has none */
} cli_progress;

double cli_now_s(void);
void cli_progress_begin(cli_progress *progress, size_t total, size_t to_measure);
void cli_progress_draw(cli_progress *progress, const char *name, size_t done, size_t measured);
void cli_progress_clear(cli_progress *progress);

/* watch.c: prints what every device tells of itself, a line for each, again and again with `interval_s` seconds
 * between, until SIGINT or SIGTERM, or `rounds` times (0: without end). An exit code. */
int cli_watch(double interval_s, long rounds, bool json);

#endif
