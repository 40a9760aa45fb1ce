/* SPDX-License-Identifier: Apache-2.0
 * virtual_clock.h: the library's clocks under the test's control, so that a test of measurements gives the same result
 * on a machine that is busy. A test that is linked with CLOCK (see CMakeLists.txt) and has called virtual_clock_start
 * sees time pass only where virtual_clock_pass says so, and READ_NS at each look at the clock, so that waiting ends.
 * Each thread has its own time, from the same start. */
#ifndef AT_TEST_VIRTUAL_CLOCK_H
#define AT_TEST_VIRTUAL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "src/host/cpu_capacity.h"
#include "src/host/cpu_count.h"
#include "src/host/cpu_preemption.h"

enum { VIRTUAL_READ_NS = 20 };

static bool virtual_clock_runs;
static _Thread_local int64_t virtual_ns, virtual_cpu_ns; /* since the start */
/* Time that other threads took from this one, and time that they kept a CPU busy. */
static _Thread_local int64_t virtual_taken_ns, virtual_others_ns;

/* The linker sends the library's calls here (ld --wrap), and `real` to the library. */
int64_t __real_at_now_ns(void);
int64_t __wrap_at_now_ns(void);
int64_t __real_at_ticks(void);
int64_t __wrap_at_ticks(void);
int64_t __real_at_cpu_time_ns(void);
int64_t __wrap_at_cpu_time_ns(void);
int64_t __real_at_thread_time_ns(void);
int64_t __wrap_at_thread_time_ns(void);
void __real_at_waits_look(at_waits *out);
void __wrap_at_waits_look(at_waits *out);
int64_t __real_at_busy_time_ns(void);
int64_t __wrap_at_busy_time_ns(void);

int64_t __wrap_at_now_ns(void) {
  if (!virtual_clock_runs) return __real_at_now_ns();
  virtual_ns += VIRTUAL_READ_NS;
  return 1000000000 + virtual_ns;
}

/* Two ticks a nanosecond. */
int64_t __wrap_at_ticks(void) {
  return virtual_clock_runs ? 2 * __wrap_at_now_ns() : __real_at_ticks();
}

int64_t __wrap_at_cpu_time_ns(void) {
  return virtual_clock_runs ? virtual_cpu_ns : __real_at_cpu_time_ns();
}

int64_t __wrap_at_thread_time_ns(void) {
  return virtual_clock_runs ? virtual_ns - virtual_taken_ns : __real_at_thread_time_ns();
}

void __wrap_at_waits_look(at_waits *out) {
  if (!virtual_clock_runs) {
    __real_at_waits_look(out);
    return;
  }
  out->count = 1;
  out->teams = 0;
  out->alone_ns = 0;
  out->each[0].thread = gettid();
  out->each[0].pool = false;
  out->each[0].ns = virtual_taken_ns;
}

int64_t __wrap_at_busy_time_ns(void) {
  return virtual_clock_runs ? virtual_cpu_ns + virtual_others_ns : __real_at_busy_time_ns();
}

/* Nor is it measured how many CPUs there are: that takes real time. */
static inline void virtual_clock_start(void) {
  at_cpu_capacity_set(at_cpu_share());
  virtual_clock_runs = true;
}

/* Real time again: for work whose time nobody says. */
static inline void virtual_clock_stop(void) {
  virtual_clock_runs = false;
}

/* So much time passes for this thread, in which `cpus` CPUs are busy for the process. */
static inline void virtual_clock_pass(int64_t ns, double cpus) {
  virtual_ns += ns;
  virtual_cpu_ns += (int64_t)((double)ns * cpus);
}

/* So much time passes for this thread while it waits for its CPU: `others` of other programs are busy meanwhile, 0
 * where it is this program that has the CPU. */
static inline void virtual_clock_take(int64_t ns, double others) {
  virtual_ns += ns;
  virtual_taken_ns += ns;
  virtual_others_ns += (int64_t)((double)ns * others);
}

#endif
