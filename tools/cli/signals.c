/* SPDX-License-Identifier: Apache-2.0
 * signals.c: SIGINT, SIGTERM and SIGHUP end a long run where what is done is stored. */
#include "tools/cli/cli.h"

#include <unistd.h>

/* How long the present problem may go on after a signal: a library that has no memory may never come back. */
enum { FINISH_SECONDS = 3 };

/* Set by the handler, read between problems. */
volatile sig_atomic_t cli_interrupted;

static void on_signal(int number) {
  cli_interrupted = number;
  (void)alarm(FINISH_SECONDS);
}

/* The present problem did not come to its end. Every winner before it is stored. */
static void on_alarm(int number) {
  static const char line[] = "attune: interrupted: the current problem was not finished and is not stored\n";
  (void)number;
  if (write(STDERR_FILENO, line, sizeof line - 1) < 0) _exit(128 + cli_interrupted);
  _exit(128 + cli_interrupted);
}

/* Signals that were ignored at the start stay ignored: nohup and a shell's background jobs want that. */
static void set_handler(int number, const struct sigaction *action) {
  struct sigaction before;
  if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return;
  sigaction(number, action, NULL);
}

/* The first signal ends the run after the present problem, or after some seconds; a second one ends it at once. */
void cli_catch_signals(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  set_handler(SIGINT, &action);
  set_handler(SIGTERM, &action);
  set_handler(SIGHUP, &action);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
}
