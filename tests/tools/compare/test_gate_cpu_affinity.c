/* SPDX-License-Identifier: Apache-2.0
 * Two processes are held on the same CPU for a while, and may use all of theirs again afterwards. */
#include "tests/support/check.h"

#include "tools/compare/run/cpu_affinity.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t sleeper(void) {
  const pid_t child = fork();
  if (child == 0) {
    (void)alarm(600);
    for (;;) (void)pause();
  }
  assert_true(child > 0);
  return child;
}

static cpu_set_t cpus_of(pid_t pid) {
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(pid, sizeof set, &set), 0);
  return set;
}

TEST(both_are_on_one_cpu) {
  const pid_t one = sleeper(), other = sleeper();
  const cpu_set_t before = cpus_of(one);
  cpu_set_t seen;
  CPU_ZERO(&seen);
  for (uint64_t seed = 0; seed < 64; seed++) {
    gate_pin first, second;
    gate_pin_set(&first, one, seed * 0x9e3779b97f4a7c15u);
    gate_pin_set(&second, other, seed * 0x9e3779b97f4a7c15u);
    cpu_set_t mine = cpus_of(one), its = cpus_of(other);
    assert_true(CPU_EQUAL(&mine, &its));
    assert_int_equal(CPU_COUNT(&mine), 1);
    CPU_OR(&seen, &seen, &mine);
    gate_pin_undo(&first, one);
    gate_pin_undo(&second, other);
    mine = cpus_of(one);
    assert_true(CPU_EQUAL(&mine, &before));
  }
  assert_true(CPU_COUNT(&before) == 1 || CPU_COUNT(&seen) > 1); /* drawn */
  kill(one, SIGKILL);
  kill(other, SIGKILL);
  while (waitpid(-1, NULL, 0) > 0) continue;
}

/* A process that is gone, or none: nothing happens, least of all to this one. */
TEST(one_that_is_gone_is_left_alone) {
  const pid_t gone = sleeper();
  const cpu_set_t before = cpus_of(0);
  gate_pin pin;
  gate_pin_set(&pin, gone, 1);
  kill(gone, SIGKILL);
  while (waitpid(-1, NULL, 0) > 0) continue;
  gate_pin_undo(&pin, gone);
  assert_false(pin.on);
  gate_pin_set(&pin, gone, 1);
  assert_false(pin.on);
  pin.on = true;
  CPU_ZERO(&pin.before);
  gate_pin_undo(&pin, 0);
  const cpu_set_t after = cpus_of(0);
  assert_true(CPU_EQUAL(&after, &before));
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
