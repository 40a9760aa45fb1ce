/* SPDX-License-Identifier: Apache-2.0
 * test_cpu_count.c: how many threads a process may use: quotas of nested groups of both versions, the affinity mask of
 * a child, ATTUNE_THREADS, attune_set_threads; and which stored winners hold then. */
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tuning/store/decision.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <attune/attune.h>

#include "src/base/support.h"
#include "src/host/cpu_count.h"
#include "src/host/threads.h"
#include "tests/support/store_open.h"
#include "tuning/op/registry.h"
#include "tuning/store/fingerprint.h"
#include "tuning/store/store.h"

extern const at_op at_gemm_op;

#define PROBLEM "gemm f64 nn 300x300x300 strict"

/* ---- a tree of groups that a test makes ---- */

static char tree[] = "/tmp/attune-groups-XXXXXX";

static void put(const char *path, const char *text) {
  char full[512];
  snprintf(full, sizeof full, "%s/%s", tree, path);
  for (char *slash = full + strlen(tree) + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = '\0';
    (void)mkdir(full, 0700);
    *slash = '/';
  }
  FILE *file = fopen(full, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static double quota(const char *membership) {
  char path[512];
  put("membership", membership);
  snprintf(path, sizeof path, "%s/membership", tree);
  return at_cgroup_quota(tree, path);
}

FIXTURE(make_tree) {
  return mkdtemp(tree) ? 0 : -1;
}

FIXTURE(remove_tree) {
  return folder_remove(tree);
}

TEST(quotas_of_version_2) {
  assert_true(quota("0::/\n") == 0.0);
  put("a/b/cpu.max", "max 100000\n");
  assert_true(quota("0::/a/b\n") == 0.0);
  put("a/cpu.max", "150000 100000\n");
  assert_true(quota("0::/a/b\n") == 1.5); /* a parent's binds */
  put("a/b/cpu.max", "50000 100000\n");
  assert_true(quota("0::/a/b\n") == 0.5);
  put("a/b/cpu.max", "900000 100000\n");
  assert_true(quota("0::/a/b\n") == 1.5);
  put("cpu.max", "120000 100000\n"); /* a container: its own path is not there, its limit stands at the root */
  assert_true(quota("0::/elsewhere/deep\n") == 1.2);
  assert_true(quota("0::/a/b\n") == 1.2);
  put("cpu.max", "nonsense\n");
  assert_true(quota("0::/a/b\n") == 1.5);
  assert_true(quota("no line of this kind\n") == 0.0);
}

TEST(quotas_of_version_1) {
  put("cpu,cpuacct/x/y/cpu.cfs_quota_us", "-1\n");
  put("cpu,cpuacct/x/y/cpu.cfs_period_us", "100000\n");
  assert_true(quota("5:memory:/x\n4:cpu,cpuacct:/x/y\n") == 0.0);
  put("cpu,cpuacct/x/cpu.cfs_quota_us", "250000\n");
  put("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  assert_true(quota("5:memory:/x\n4:cpu,cpuacct:/x/y\n") == 2.5);
  put("cpu/z/cpu.cfs_quota_us", "70000\n"); /* mounted under the short name */
  put("cpu/z/cpu.cfs_period_us", "100000\n");
  assert_true(quota("4:cpuacct,cpu:/z\n") == 0.7);
  assert_true(quota("4:cpuset:/x/y\n") == 0.0); /* another controller's group */
  assert_true(quota("4:cpuset:/x/y\n1:cpu,cpuacct:/x\n0::/none\n") == 2.5);
}

/* ---- the bound ---- */

static _Atomic int members;
static void count_member(void *arg, const at_team *team) {
  (void)arg, (void)team;
  members++;
}

static int team_of(int wanted) {
  members = 0;
  at_parallel(wanted, count_member, NULL);
  return members;
}

TEST(the_program_bounds_the_team) {
  const int all = attune_get_threads();
  assert_true(all >= 1 && all == at_cpu_count());
  assert_int_equal(team_of(3), 3);
  assert_int_equal(attune_set_threads(1), ATTUNE_OK);
  assert_int_equal(attune_get_threads(), 1);
  assert_int_equal(team_of(3), 1);
  assert_int_equal(attune_set_threads(2), ATTUNE_OK);
  assert_int_equal(attune_get_threads(), all < 2 ? all : 2);
  assert_int_equal(team_of(3), 2);
  assert_int_equal(attune_set_threads(4096), ATTUNE_OK);
  assert_int_equal(attune_get_threads(), all);
  FAILS_SAYING(attune_set_threads(-1), ATTUNE_INVALID_ARGUMENT, "threads is -1");
  assert_int_equal(attune_set_threads(4097), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_set_threads(0), ATTUNE_OK);
  assert_int_equal(attune_get_threads(), all);
}

/* ---- in a process of its own ---- */

/* Runs this program as `role` and gives its exit status. */
static int run_as(const char *role, const char *database, const char *threads, bool one_cpu) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  const pid_t child = fork();
  if (child == 0) {
    if (threads) setenv("ATTUNE_THREADS", threads, 1);
    cpu_set_t one;
    CPU_ZERO(&one);
    const int here = sched_getcpu();
    CPU_SET(here < 0 ? 0u : (size_t)here, &one);
    if (one_cpu && sched_setaffinity(0, sizeof one, &one) != 0) _exit(99);
    execl(self, self, role, database, (char *)NULL);
    _exit(98);
  }
  int status = 0;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}

static attune_tuner *tuner_of(const char *database) {
  attune_tuner_options options = {.database = database, .mode = ATTUNE_MODE_CACHED};
  attune_tuner *tuner = NULL;
  return attune_tuner_create(&tuner, &options) == ATTUNE_OK ? tuner : NULL;
}

/* The roles: how many threads there are; and from where the choice for PROBLEM comes. */
static int play(const char *role, const char *database) {
  if (strcmp(role, "count") == 0) return attune_get_threads();
  if (strcmp(role, "bad") == 0) {
    attune_tuner *tuner = NULL;
    const bool refused = attune_tuner_create(&tuner, NULL) == ATTUNE_INVALID_ARGUMENT;
    return refused && strstr(attune_last_message(), "ATTUNE_THREADS is \"many\"") ? 0 : 1;
  }
  attune_device *host = NULL;
  attune_decision decision;
  attune_tuner *tuner = tuner_of(database);
  if (!tuner || attune_device_get(&host, "host") != ATTUNE_OK) return 90;
  if (attune_explain(tuner, host, PROBLEM, &decision) != ATTUNE_OK) return 91;
  const bool force = strcmp(role, "force") == 0;
  if ((force || strcmp(role, "tune") == 0) &&
      attune_tune(tuner, host, PROBLEM, &(attune_tune_options){.budget_ms = 5000.0, .force = force}, &decision) !=
          ATTUNE_OK)
    return 92;
  const int source = (int)decision.source;
  if (strcmp(role, "why") == 0) return strstr(decision.changed, "CPU threads 2 there, 1 here") ? 0 : 93;
  attune_tuner_destroy(tuner);
  return source;
}

TEST(threads_of_a_child) {
  assert_int_equal(run_as("count", "", NULL, true), 1);
  assert_int_equal(run_as("count", "", "1", false), 1);
  assert_int_equal(run_as("count", "", "4000", false), attune_get_threads());
  assert_int_equal(run_as("bad", "", "many", false), 0);
}

/* Stores a winner of PROBLEM by host_blocked with so many threads. */
static void store_winner(const char *database, int threads) {
  attune_device *host = NULL;
  char fingerprint[4096], family[AT_FAMILY_CHARS];
  uint64_t problem[AT_PROBLEM_BYTES / 8] = {0};
  const at_op *const ops[] = {&at_gemm_op};
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(at_fingerprint_whole(host, ops, 1, fingerprint, sizeof fingerprint), ATTUNE_OK);
  assert_null(strstr(fingerprint, "processors"));
  assert_int_equal(at_gemm_op.problem->parse(PROBLEM, problem), ATTUNE_OK);
  assert_int_equal(at_gemm_op.problem->family(problem, family, sizeof family), ATTUNE_OK);
  const at_implementation *blocked = at_registry_find(&at_gemm_op, "host_blocked", host);
  at_configuration list[256], chosen = {""};
  const int count = blocked->configurations(blocked, problem, host, list, 256);
  assert_true(count > 0);
  for (int i = 0; i < count && !chosen.text[0]; i++) {
    int64_t has = 0;
    if (!at_configuration_get(&list[i], "threads", &has) || has != 1) continue;
    char *at = strstr(list[i].text, "threads=1");
    snprintf(chosen.text, sizeof chosen.text, "%.*sthreads=%d%s%s", (int)(at - list[i].text), list[i].text, threads,
             threads > 1 ? ",split=n" : "", at + strlen("threads=1"));
  }
  attune_decision d = {.time_ns = 100.0, .default_time_ns = 200.0, .samples = 11, .complete = 1, .candidates = 2};
  at_copy_text(d.problem, sizeof d.problem, PROBLEM);
  at_copy_text(d.device, sizeof d.device, "host");
  at_copy_text(d.measure, sizeof d.measure, "hot,eager");
  at_copy_text(d.implementation, sizeof d.implementation, blocked->name);
  d.implementation_version = blocked->version;
  at_copy_text(d.configuration, sizeof d.configuration, chosen.text);
  at_copy_text(d.default_implementation, sizeof d.default_implementation, "host_cblas");
  at_store *store = NULL;
  assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
  assert_int_equal(at_store_put(store, fingerprint, family, &d, NULL, 0, 5000), ATTUNE_OK);
  at_store_close(store);
}

/* Winners hold for as many CPUs as they were measured with; with fewer they are guesses, of fewer threads. */
TEST(winners_hold_for_their_number_of_cpus) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* there this process sees another CPU than the other ones do */
  char one[600], two[600];
  snprintf(one, sizeof one, "%s/one.db", tree);
  snprintf(two, sizeof two, "%s/two.db", tree);
  store_winner(one, 1);
  store_winner(two, 2);
  assert_int_equal(run_as("explain", one, NULL, false), ATTUNE_SOURCE_STORED);
  if (attune_get_threads() != 2) skip();
  assert_int_equal(run_as("explain", two, NULL, false), ATTUNE_SOURCE_STORED);
  assert_int_equal(run_as("explain", one, NULL, true), ATTUNE_SOURCE_NEIGHBOUR);
  assert_int_equal(run_as("explain", one, "1", false), ATTUNE_SOURCE_NEIGHBOUR);
  assert_int_equal(run_as("explain", two, NULL, true), ATTUNE_SOURCE_NEIGHBOUR);
  assert_int_equal(run_as("explain", two, "1", false), ATTUNE_SOURCE_NEIGHBOUR);
  assert_int_equal(run_as("why", two, "1", false), 0);
}

/* A winner with fewer threads is stored in addition to that with more, and never replaces it, even if forced. */
TEST(each_number_of_cpus_has_its_winner) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* there this process sees another CPU than the other ones do */
  char database[600];
  if (attune_get_threads() < 2) skip();
  snprintf(database, sizeof database, "%s/kept.db", tree);
  store_winner(database, 2);
  assert_int_equal(run_as("tune", database, NULL, true), ATTUNE_SOURCE_TUNED);
  assert_int_equal(run_as("explain", database, NULL, true), ATTUNE_SOURCE_STORED);
  assert_int_equal(run_as("explain", database, NULL, false), ATTUNE_SOURCE_STORED);
  const int forced = run_as("force", database, NULL, true); /* noise may leave the stored one in its place */
  assert_true(forced == ATTUNE_SOURCE_TUNED || forced == ATTUNE_SOURCE_STORED);
  assert_int_equal(run_as("explain", database, NULL, true), ATTUNE_SOURCE_STORED);
  assert_int_equal(run_as("explain", database, NULL, false), ATTUNE_SOURCE_STORED);
}

int main(int argc, char **argv) {
  if (argc > 2) return play(argv[1], argv[2]);
  return RUN_TESTS(make_tree, remove_tree);
}
