/* SPDX-License-Identifier: Apache-2.0
 * cli_terminal.h: runs of the command in a shell and in a terminal of a given width, and what they print. */
#ifndef AT_TESTS_CLI_TERMINAL_H
#define AT_TESTS_CLI_TERMINAL_H

#include "tests/support/check.h"

#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST (1 << 20)

static char text[MOST];
static int code;

static inline void write_file(const char *path, const char *what) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(what, file);
  assert_int_equal(fclose(file), 0);
}

/* Runs a line of shell in which $A is the command; its output and errors in text, its exit code in code. */
static inline void shell(const char *line) {
  FILE *pipe = popen(line, "r");
  assert_non_null(pipe);
  text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
  const int status = pclose(pipe);
  code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In a terminal of `columns` and of the kind `name`. */
static inline void terminal_called(const char *name, unsigned short columns, const char *line) {
  int controller = -1;
  const struct winsize size = {.ws_row = 50, .ws_col = columns};
  const pid_t child = forkpty(&controller, NULL, NULL, &size);
  assert_true(child >= 0);
  if (child == 0) {
    setenv("TERM", name, 1);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
  }
  size_t at = 0;
  for (ssize_t got; at < sizeof text - 1 && (got = read(controller, text + at, sizeof text - 1 - at)) > 0;)
    at += (size_t)got;
  text[at] = '\0';
  close(controller);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* One without colours. */
static inline void terminal(unsigned short columns, const char *line) {
  terminal_called("dumb", columns, line);
}

static inline void expect(const char *what) {
  if (!strstr(text, what)) fail_msg("the output lacks \"%s\": %s", what, text);
}

static inline void expect_none(const char *what) {
  if (strstr(text, what)) fail_msg("the output has \"%s\": %s", what, text);
}

/* Characters of the longest line, one for each that is not a continuation byte of UTF-8. */
static inline int longest_line(void) {
  int most = 0, now = 0;
  for (const char *c = text; *c; c++) {
    if (*c == '\n' || *c == '\r')
      now = 0;
    else if ((*c & 0xC0) != 0x80 && ++now > most)
      most = now;
  }
  return most;
}

#endif
