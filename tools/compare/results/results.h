/* SPDX-License-Identifier: Apache-2.0
 * results.h: what was measured, in memory and in a result file (SQLite, results.sql). A run is one side of one `attune
 * bench`; it has cases; a case has visits, one for each process that timed it; a visit has samples. All of it is
 * kept. */
#ifndef GATE_RESULTS_H
#define GATE_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The errors of this room are sentences for people: NULL, or a text for the caller to print and free. */

typedef struct gate_sample {
  double ns;     /* a call */
  double cpu_ns; /* CPU time of a call, all threads of the process; 0: not known */
  int64_t start; /* ns, CLOCK_MONOTONIC */
} gate_sample;

typedef struct gate_visit {
  int round;        /* from 0; visits of both sides of a pair with the same round alternated sample by sample */
  int calls;        /* in a sample */
  double clock_mhz; /* the device's, during the samples; 0: not known */
  bool throttled;
  double load; /* of the machine when it began: running processes; negative: not known */
  gate_sample *samples;
  int sample_count;
} gate_visit;

typedef enum gate_case_state { GATE_CASE_OK, GATE_CASE_FAILED } gate_case_state;

typedef struct gate_case {
  char *name;
  char *device;        /* "host", "cuda:0"; "-": the calling thread; "process": a command */
  char *mode;          /* "hot", "cold", "hot+graph", "cold+graph" */
  char *dtype;         /* of flops; "-" */
  double bytes, flops; /* of one call; 0: unknown */
  char *peer_of;       /* the case that it was timed beside; NULL: none. No file keeps it */
  gate_case_state state;
  char *message; /* of a failed one; NULL else */
  gate_visit *visits;
  int visit_count;
} gate_case;

typedef enum gate_run_state {
  GATE_RUN_COMPLETE,
  GATE_RUN_INTERRUPTED,
  GATE_RUN_OPEN /* still written, or its writer died */
} gate_run_state;

/* The best that a device did in a run with what only moves memory, and with what only computes in a dtype: for a
 * roofline. 0: not known. */
typedef struct gate_roof {
  char device[32];
  char dtype[16]; /* "-": of memory alone */
  double bytes_s, flops_s;
} gate_roof;

typedef struct gate_run {
  int64_t id;     /* in its file */
  char *suite;    /* what was asked for: "sums.csv runtime" */
  char *label;    /* the user's word for it; "" for none */
  char *revision; /* of git, 40 digits, in the folder of what was measured; "" */
  bool dirty;     /* that folder had changes */
  char *
      /* JSON object: cpu, cpus, kernel, governor, memory, libc, device, driver, libraries; what measurements depend
       * on */
      fingerprint;
  char *command;          /* line */
  int64_t started, ended; /* seconds since 1970 */
  int64_t pair;           /* the run (the base) that this one alternated with; 0: none */
  gate_run_state state;
  gate_case *cases; /* by first occurrence */
  size_t case_count;
  gate_roof *roofs; /* one a device and dtype */
  size_t roof_count;
} gate_run;

void gate_run_free(gate_run *run); /* what it holds, not itself */
void gate_case_free(gate_case *c); /* the same */
/* NULL: no case of that name, device and mode. */
const gate_case *gate_run_find(const gate_run *run, const gate_case *like);

/* --- a result file --- */

typedef struct gate_file gate_file;

/* `write`: made when it is not there. A file that is no result file, of a newer version, or damaged is an error and
 * stays as it is. Two writers wait for each other's transactions. After an error errno is ENOSPC where the file cannot
 * grow, else 0; then one that was made by this is gone again. */
char *gate_file_open(gate_file **out, const char *path, bool write);
void gate_file_close(gate_file *file);

/* Writes a run without cases; its number into run->id. */
char *gate_file_begin(gate_file *file, gate_run *run);
/* One transaction: a visit of one case, which is made at its first visit; NULL visit: the case as it is, failed too. */
char *gate_file_add(gate_file *file, int64_t run, const gate_case *c, const gate_visit *visit);
/* A roof of the run; one of the same device and dtype takes the place of an earlier one. */
char *gate_file_roof(gate_file *file, int64_t run, const gate_roof *roof);
char *gate_file_end(gate_file *file, int64_t run, gate_run_state state);

/* Runs without their cases, oldest first; the caller frees each and the array. */
char *gate_file_runs(gate_file *file, gate_run **runs, size_t *count);
/* One run with everything. `which`: a number of a run, a label, a revision (its first 7 digits or more), "latest" or
 * NULL (the latest that is not still written). */
char *gate_file_load(gate_file *file, const char *which, gate_run *run);

/* "FILE" or "FILE:RUN", where RUN is a `which` of gate_file_load, opened and loaded; or a FILE of import.h. */
char *gate_load(const char *name, gate_run *run);
/* Its path, for the caller to free, and *which: its RUN, in name; NULL: none. A file whose name has a colon is meant
 * whole where it is there. */
char *gate_split(const char *name, const char **which);
/* Two runs that alternated: the pair of that RUN, whichever side it is; else the latest pair of FILE. */
char *gate_load_pair(const char *name, gate_run *base, gate_run *head);

#endif
