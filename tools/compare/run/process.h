/* SPDX-License-Identifier: Apache-2.0
 * process.h: a child process in a process group of its own, its last words on standard error, and its end. */
#ifndef GATE_PROCESS_H
#define GATE_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { GATE_SOCKET = 3, GATE_WORDS = 400 };

/* How long anything may take, and what ends it sooner. */
typedef struct gate_limits {
  double hang_s;                            /* for one answer */
  const volatile sig_atomic_t *interrupted; /* nonzero: give up; NULL: never */
} gate_limits;

typedef struct gate_process {
  pid_t pid;  /* 0: none */
  int handle; /* readable at its end; -1: the kernel has none */
  int errors; /* the read end of its standard error; -1 */
  int status; /* as waitpid gives it; once it ended */
  double cpu_ns;
  bool absent;                /* it could not be started: there is no such program */
  char words[GATE_WORDS + 1]; /* the last it wrote there */
  size_t word_count;
} gate_process;

/* Gives the two ends of a pipe or socket numbers that nothing in a child stands for: where standard input, output or
 * error is closed they may have got those. */
void gate_lift(int ends[2]);

int64_t gate_now_ns(void);
int64_t gate_deadline(double seconds);
bool gate_interrupted(const gate_limits *limits);

/* From a state that is never 0; the state moves on. */
uint64_t gate_random(uint64_t *state);

/* Starts argv (found by PATH) with nothing to read and its output thrown away. `end`, unless -1, is its descriptor
 * GATE_SOCKET. Its environment has a variable of random length, so that its stack lies at a random place. NULL, or why
 * it could not be started. */
char *gate_process_start(gate_process *process, const char *const *argv, int end, uint64_t *random);

/* Reads what it wrote to standard error so far, without waiting. */
void gate_process_listen(gate_process *process);

/* Forgets what it wrote so far: it was about something else. */
void gate_process_forget(gate_process *process);

/* Has it ended? It stays to be waited for, and its group its own. */
bool gate_process_over(const gate_process *process);

/* Waits until the process has ended, or the deadline has come or an interruption: then false. */
bool gate_process_wait(gate_process *process, int64_t deadline_ns, const gate_limits *limits);

/* Kills its whole group and waits for its end. Safe where it has ended. */
void gate_process_kill(gate_process *process);

/* "crashed (signal 11, Segmentation fault)", "exited with code 3", of one that has ended, with its last words: to be
 * freed. */
char *gate_process_told(const gate_process *process);
/* `what` with the last words of the process: "hung (more than 60 s); its last words: ..." */
char *gate_process_say(const gate_process *process, const char *what);

/* The standard output of argv into *out, to be freed; false: it could not be run or did not end with code 0. */
bool gate_process_read(const char *const *argv, char **out);

#endif
