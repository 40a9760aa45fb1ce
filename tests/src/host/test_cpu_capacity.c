/* SPDX-License-Identifier: Apache-2.0
 * test_cpu_capacity.c: how many CPUs there really are: bounded in time and value, the same where others take the CPUs;
 * and nobody spins where it does not pay. */
#include "tests/support/check.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/support.h"
#include "src/host/cpu_capacity.h"
#include "src/host/cpu_count.h"
#include "src/host/cpu_preemption.h"
#include "src/host/threads.h"

/* Runs this program as `role`, on one CPU if asked; its exit status. */
static int run_as(const char *role, bool one_cpu) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu() < 0 ? 0u : (size_t)sched_getcpu(), &one);
    if (one_cpu && sched_setaffinity(0, sizeof one, &one) != 0) _exit(99);
    execl(self, self, role, (char *)NULL);
    _exit(98);
  }
  int status = 0;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}

static void nothing(void *arg, const at_team *team) {
  (void)arg, (void)team;
}

static void pause_us(long us) {
  nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* Calls of a team with a millisecond between them: its threads soon learn that waiting awake does not pay. The first
 * test: the capacity is not measured yet. */
TEST(rare_teams_do_not_spin) {
  enum { LEARN = 100, ROUNDS = 100 };
  if (at_cpu_count() < 2) skip();
  double best_us = 1e9;
  for (int attempt = 0; attempt < 3; attempt++) {
    for (int i = 0; i < LEARN; i++) {
      at_parallel(2, nothing, NULL);
      pause_us(1000);
    }
    const int64_t start = at_cpu_time_ns();
    for (int i = 0; i < ROUNDS; i++) {
      at_parallel(2, nothing, NULL);
      pause_us(1000);
    }
    const double us = (double)(at_cpu_time_ns() - start) * 1e-3 / ROUNDS;
    if (us < best_us) best_us = us;
  }
  print_message("CPU time of a rare team of nothing: %.1f us\n", best_us);
  assert_true(best_us < 200.0); /* one that spins takes 200 us more than this */
}

TEST(it_is_bounded) {
  assert_true(at_cpu_capacity_known() == at_cpu_share());
  const int64_t start = at_now_ns();
  const double capacity = at_cpu_capacity();
  const double took_ms = (double)(at_now_ns() - start) * 1e-6;
  assert_true(capacity >= 1.0 && capacity <= at_cpu_share() + 1e-9);
  assert_true(took_ms < 40.0 * AT_CAPACITY_MS); /* other work may keep this thread from the CPU */
  const int64_t again = at_cpu_time_ns();
  assert_true(at_cpu_capacity() == capacity && at_cpu_capacity_known() == capacity);
  assert_true((double)(at_cpu_time_ns() - again) * 1e-6 < 10.0); /* it is not measured again */
}

/* Exit statuses: tenths of a CPU. */
static int play(const char *role) {
  if (strcmp(role, "limit") == 0) return at_spin_limit(5000) == 0 ? 0 : 1;
  const double capacity = at_cpu_capacity();
  if (strcmp(role, "spin") == 0) return (at_spin_limit(5000) == 0) == (capacity < 1.7) ? 0 : 1;
  return capacity < 9.0 ? (int)(10.0 * capacity) : 90;
}

TEST(one_cpu_is_one) {
  assert_int_equal(run_as("capacity", true), 10);
  assert_int_equal(run_as("limit", true), 0);
}

TEST(spinning_follows_capacity) {
  assert_int_equal(run_as("spin", false), 0);
}

static void start_burners(pid_t *burners, int count) {
  for (int i = 0; i < count; i++) {
    burners[i] = fork();
    assert_true(burners[i] >= 0);
    if (burners[i] > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int64_t end = at_now_ns() + 20000000000; at_now_ns() < end;) continue;
    _exit(0);
  }
}

static void stop_burners(const pid_t *burners, int count) {
  for (int i = 0; i < count; i++) {
    kill(burners[i], SIGKILL);
    waitpid(burners[i], NULL, 0);
  }
}

/* Three others on each CPU leave a quarter of it. The machine has as many CPUs as before, and that is what is told
 * where the kernel says how long threads waited; elsewhere it is less. */
TEST(other_work_does_not_count) {
  enum { MOST = 24, ATTEMPTS = 3 };
  const int cpus = at_cpu_count(), others = 3 * cpus;
  if (cpus < 2 || others > MOST) skip();
  const bool told = at_thread_waited_ns(gettid()) >= 0;
  pid_t burners[MOST];
  for (int attempt = 1;; attempt++) {
    const int quiet = run_as("capacity", false);
    start_burners(burners, others);
    const int tenths = run_as("capacity", false);
    stop_burners(burners, others);
    assert_in_range(tenths, 10, 10 * cpus);
    if (told ? 10 * tenths >= 7 * quiet : tenths <= 7 * cpus) return;
    if (attempt == ATTEMPTS) fail_msg("%d tenths of a CPU beside other work, %d without", tenths, quiet);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) return play(argv[1]);
  return RUN_TESTS(NULL, NULL);
}
