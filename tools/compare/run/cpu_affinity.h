/* SPDX-License-Identifier: Apache-2.0
 * cpu_affinity.h: a process's first thread on one CPU for a while. */
#ifndef GATE_PIN_H
#define GATE_PIN_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct gate_pin {
  bool on;
  cpu_set_t before; /* what it could use */
} gate_pin;

/* To one of the CPUs that it can use, drawn by `seed`: the same one for processes that can use the same. Its other
 * threads stay where they are. Where the system refuses, nothing happens. */
void gate_pin_set(gate_pin *pin, pid_t pid, uint64_t seed);
void gate_pin_undo(gate_pin *pin, pid_t pid);

#endif
