/* SPDX-License-Identifier: Apache-2.0
 * import.h: what other programs measured, as a run: JSON of Google Benchmark, and of Criterion.rs (cargo-criterion's
 * messages, or a sample.json or estimates.json).
 *
 * A verdict counts processes, and such a file has one. So of a file alone each repetition stands for a visit, and what
 * the run says of itself ("repetitions": "of one process" in its fingerprint) keeps small changes from counting; of
 * several files each is a visit. */
#ifndef GATE_IMPORT_H
#define GATE_IMPORT_H

#include "tools/compare/results/results.h"

/* Of two processes of one build: they may differ by as much, and repetitions do not show it. */
#define GATE_ONE_PROCESS_FLOOR 0.1

/* Does the file begin as JSON does? */
bool gate_import_is(const char *path);

/* The files, of one build, as one run that is not in a file yet. NULL, or why they are none. */
char *gate_import(const char *const *paths, size_t count, gate_run *run);

/* Is it a run whose visits are repetitions of one process? */
bool gate_import_is_one_process(const gate_run *run);
/* "repetitions", or "processes": what its visits are. */
const char *gate_import_counted(const gate_run *run);
/* The limits of an imported run, a sentence or two for the caller to free; NULL: not imported, or of several processes.
 * `floor`: the change that counts; `others`: some cases have floors of their own. */
char *gate_import_note(const gate_run *run, double floor, bool others);

/* import_criterion.c: the cases of a file into *run, each with one visit. NULL, or why it is not what it should be. */
char *gate_import_criterion(const char *path, const char *text, size_t size, gate_run *run);

/* --- what the two share --- */

/* The case of that name, with one visit that has room for one sample more; made where it is not there. */
gate_case *gate_import_case(gate_run *run, const char *name);
/* A sample of its last visit; what no clock gives is left out. `calls`: that it is the mean of. */
void gate_import_sample(gate_case *c, double ns, double cpu_ns, double calls);
/* Nanoseconds in "ns", "us", "ms" or "s"; 0: another unit. */
double gate_import_unit(const char *unit);

#endif
