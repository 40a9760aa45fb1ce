/* SPDX-License-Identifier: Apache-2.0
 * cpu_affinity.c: two processes that are timed in turns run on the same CPU: CPUs differ by more than most changes, by
 * their clock and by other load. Measured with two processes of one binary while builds ran: the deviation of
 * their ratio fell by a third to a half. */
#include "tools/compare/run/cpu_affinity.h"

void gate_pin_set(gate_pin *pin, pid_t pid, uint64_t seed) {
  cpu_set_t one;
  pin->on = sched_getaffinity(pid, sizeof pin->before, &pin->before) == 0 && CPU_COUNT(&pin->before) > 1;
  if (!pin->on) return;
  uint64_t skip = (seed ^ seed >> 32) % (uint64_t)CPU_COUNT(&pin->before);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &pin->before) || skip-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pin->on = sched_setaffinity(pid, sizeof one, &one) == 0;
    return;
  }
}

void gate_pin_undo(gate_pin *pin, pid_t pid) {
  if (pin->on && pid > 0) (void)sched_setaffinity(pid, sizeof pin->before, &pin->before);
  pin->on = false;
}
