/* SPDX-License-Identifier: Apache-2.0
 * line_socket.c: the runner's end of the protocol's lines. Whatever the other end writes, nothing is read beyond a
 * line's bounds. */
#include "tools/compare/run/line_socket.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLICE_MS 200 /* between two looks at `interrupted` */

/* \t, \n and \\ in place; false: another escape. */
static bool unescape(char *word) {
  char *to = word;
  for (const char *from = word; *from; from++) {
    char c = *from;
    if (c == '\\') {
      from++;
      c = *from == 't' ? '\t' : *from == 'n' ? '\n' : *from == '\\' ? '\\' : '\0';
      if (!c) return false;
    }
    *to++ = c;
  }
  *to = '\0';
  return true;
}

static gate_answer take_apart(gate_lines *l, char *line) {
  l->word_count = 0;
  for (char *rest = line; rest;) {
    if (l->word_count == GATE_LINE_WORDS) return GATE_GARBAGE;
    char *word = strsep(&rest, "\t");
    if (!unescape(word)) return GATE_GARBAGE;
    l->words[l->word_count++] = word;
  }
  return GATE_ANSWERED;
}

/* A whole line that came already; false: more must come. */
static bool next_line(gate_lines *l, gate_answer *answer) {
  char *start = l->bytes + l->start, *end = memchr(start, '\n', l->end - l->start);
  if (!end) return false;
  *end = '\0';
  l->start = (size_t)(end + 1 - l->bytes);
  *answer = strlen(start) == (size_t)(end - start) ? take_apart(l, start) : GATE_GARBAGE;
  return true;
}

static gate_answer read_more(gate_lines *l) {
  memmove(l->bytes, l->bytes + l->start, l->end - l->start);
  l->end -= l->start;
  l->start = 0;
  if (l->end == sizeof l->bytes) return GATE_GARBAGE;
  const ssize_t got = recv(l->socket, l->bytes + l->end, sizeof l->bytes - l->end, MSG_DONTWAIT);
  if (got > 0) l->end += (size_t)got;
  if (got == 0) return GATE_ENDED;
  return got > 0 || errno == EINTR || errno == EAGAIN ? GATE_ANSWERED : GATE_ENDED;
}

gate_answer gate_lines_read(gate_lines *l, gate_process *process, int64_t deadline_ns, const gate_limits *limits) {
  for (gate_answer answer;;) {
    if (next_line(l, &answer)) return answer;
    const int64_t left_ns = deadline_ns - gate_now_ns();
    if (gate_interrupted(limits)) return GATE_INTERRUPTED;
    if (left_ns <= 0) return GATE_LATE;
    const bool over = gate_process_over(process); /* asked first: what it wrote before its end is there by now */
    struct pollfd ways[3] = {{.fd = l->socket, .events = POLLIN},
                             {.fd = process->errors, .events = POLLIN},
                             {.fd = process->handle, .events = POLLIN}};
    const int64_t left_ms = left_ns / 1000000 + 1;
    const int ready = poll(ways, over ? 2 : 3, over ? 0 : left_ms < SLICE_MS ? (int)left_ms : SLICE_MS);
    if (over && (ready <= 0 || !ways[0].revents)) return GATE_ENDED; /* though a child of it may keep the socket open */
    if (ready <= 0) continue;
    if (ways[1].revents & POLLIN)
      gate_process_listen(process);
    else if (ways[1].revents) {
      (void)close(process->errors);
      process->errors = -1;
    }
    if (ways[0].revents && (answer = read_more(l)) != GATE_ANSWERED) return answer;
  }
}

bool gate_lines_write(gate_lines *l, const char *format, ...) {
  char line[AT_BENCH_LINE];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof line) return false;
  ssize_t sent;
  do sent = send(l->socket, line, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent == length;
}

bool gate_lines_number(const gate_lines *l, int word, double least, double most, double *out) {
  char *end = NULL;
  if (word >= l->word_count || !*l->words[word]) return false;
  *out = strtod(l->words[word], &end);
  return !*end && isfinite(*out) && *out >= least && *out <= most;
}
