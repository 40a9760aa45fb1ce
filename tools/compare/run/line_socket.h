/* SPDX-License-Identifier: Apache-2.0
 * line_socket.h: lines of tab-separated words over a socket, within bounds and until a deadline. */
#ifndef GATE_LINES_H
#define GATE_LINES_H

#include "tools/bench/protocol.h"
#include "tools/compare/run/process.h"

enum { GATE_LINE_WORDS = 10 };

typedef struct gate_lines {
  int socket;
  char bytes[AT_BENCH_LINE];
  size_t start, end;
  char *words[GATE_LINE_WORDS]; /* of the last line, into bytes */
  int word_count;
} gate_lines;

typedef enum gate_answer { GATE_ANSWERED, GATE_ENDED, GATE_LATE, GATE_GARBAGE, GATE_INTERRUPTED } gate_answer;

/* Reads and parses the next line; until it comes, the process's standard error is read, too. GATE_ENDED: the other end
 * is closed, or the process has ended and all its output is read. */
gate_answer gate_lines_read(gate_lines *lines, gate_process *process, int64_t deadline_ns, const gate_limits *limits);

/* False: the other end is closed. */
bool gate_lines_write(gate_lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A number of the last line's word; false: there is no such word, or it is no finite number in the range. */
bool gate_lines_number(const gate_lines *lines, int word, double least, double most, double *out);

#endif
