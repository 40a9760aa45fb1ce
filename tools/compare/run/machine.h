/* SPDX-License-Identifier: Apache-2.0
 * machine.h: what a measurement depends on: machine, load, revision. */
#ifndef GATE_MACHINE_H
#define GATE_MACHINE_H

#include <stdbool.h>

#include <jansson.h>

/* cpu, cpus (usable), kernel, governor, memory (GiB), libc: a new object. No name of the machine. */
json_t *gate_machine(void);

/* Running processes but this one; negative: not known. */
double gate_load_now(void);

/* The revision of git that `path` (a folder, or a file in one) is of, "" where there is none; whether what git follows
 * there was changed. To be freed. */
char *gate_revision(const char *path, bool *dirty);

#endif
