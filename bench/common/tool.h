/* SPDX-License-Identifier: Apache-2.0
 * tool.h: what every program here uses: options, ending with a message, the head and the tables of a report, the
 * clock. */
#ifndef BENCH_TOOL_H
#define BENCH_TOOL_H

#include <attune/attune.h>

#include <stdbool.h>

/* Prints "PROGRAM: ..." on standard error and ends the program with 1. */
void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the program when attune failed. */
void bench_check(attune_status status, const char *what);

/* Of a decision, what benchmarks say. */
typedef struct bench_choice {
  char problem[256], implementation[32], configuration[192], note[128];
  attune_source source;
  double time_ns, default_time_ns, tuning_ms;
  bool unsure;
} bench_choice;

/* attune_explain; ends the program when attune failed. */
void bench_explain(bench_choice *out, attune_tuner *tuner, attune_device *device, const char *problem);

/* "--name VALUE". `out` by kind: FLAG, without a value: bool; TEXT: const char *; NUMBER: double; WHOLE: int. */
typedef struct bench_option {
  const char *name;
  enum { BENCH_FLAG, BENCH_TEXT, BENCH_NUMBER, BENCH_WHOLE } kind;
  void *out;
  double least, most; /* of a number */
} bench_option;

/* First of all in main: reads the options, ended by one without a name, and the words that are none, at most
 * `most_words`, into words[]; returns how many. --help prints `usage` and ends the program with 0, wrong usage prints
 * what is wrong and ends it with 2. Keeps the command line for bench_head. */
int bench_read_options(int argc, char **argv, const bench_option *options, const char *usage, const char **words,
                       int most_words);
void bench_bad_usage(const char *what, const char *usage) __attribute__((noreturn));

/* --- a report, in Markdown, to the terminal and to the file where one is open --- */

void bench_markdown_open(const char *path); /* NULL: none */
/* Nothing when none is open; ends the program when not all of it was written. */
void bench_markdown_close(void);
/* Title, device, libraries beside attune's own (NULL: none), command, date and load, how it was measured. */
void bench_head(const char *title, attune_device *device, const char *libraries, const char *method);
/* The head of a table "| a | b >|": a column with > stands at the right. */
void bench_table(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One line, of less than 1024 characters. */
void bench_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "cuda:1": true, and 1; others: false, and 0. */
bool bench_is_cuda(const attune_device *device);
int bench_ordinal(const attune_device *device);

double bench_now_ns(void);

#endif
