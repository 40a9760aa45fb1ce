/* SPDX-License-Identifier: Apache-2.0
 * test_comm_processes.c: communicators over processes: what they compute, a process that dies, calls that do not match,
 * and that those who are left go on with a new communicator. With a made libnccl.so.2, fake_nccl_processes.c. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/host_devices.h"

enum { RANKS = 3, COUNT = 500, IDS = 2 };

extern char **environ;

static int numbers[COUNT], sums[COUNT];
static const void *ins[] = {numbers};
static void *outs[] = {sums};

/* ---- a rank ---- */

static int rounds(attune_comm *comm, int rank, int size, int count) {
  const attune_comm_data data = {ATTUNE_I32, COUNT, ins, outs};
  for (int k = 0; k < count; k++) {
    for (int i = 0; i < COUNT; i++) numbers[i] = i * k + rank;
    GOOD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
    for (int i = 0; i < COUNT; i++) EXPECT(sums[i] == size * i * k + size * (size - 1) / 2, "sum %d", sums[i]);
  }
  GOOD(attune_comm_check(comm));
  return 0;
}

/* Nobody else says that the call will never end: the program's own time does. Whether the call has begun by then or
 * not, it fails. */
static void *abort_late(void *user) {
  usleep(200000);
  return (void *)(intptr_t)attune_comm_abort(user);
}

static int stuck(attune_comm *comm, size_t count) {
  pthread_t thread;
  void *ended = NULL;
  const attune_comm_data data = {ATTUNE_I32, count, ins, outs};
  pthread_create(&thread, NULL, abort_late, comm);
  const attune_status status = attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data);
  EXPECT(status == ATTUNE_DEVICE_ERROR, "%d: %s", (int)status, attune_last_message());
  pthread_join(thread, &ended);
  EXPECT((intptr_t)ended == ATTUNE_OK, "abort");
  EXPECT(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data) == ATTUNE_DEVICE_ERROR, "used again");
  EXPECT(attune_comm_check(comm) == ATTUNE_DEVICE_ERROR && strstr(attune_last_message(), "was aborted"), "check");
  return 0;
}

static int as_rank(const char *way, int rank, const attune_comm_id ids[IDS]) {
  attune_comm *comm = NULL;
  const bool dies = strcmp(way, "dies") == 0, differs = strcmp(way, "differs") == 0;
  const int left = dies ? RANKS - 1 : RANKS;
  if (host_devices_begin() != 0) return 1;
  for (int i = 0; i < HOST_DEVICES; i++) host_devices[i].backend.nccl = true;
  GOOD(attune_comm_join(&comm, devices[0], &ids[0], rank, RANKS));
  EXPECT(attune_comm_rank(comm) == rank && attune_comm_size(comm) == RANKS, "rank");
  if (rounds(comm, rank, RANKS, 20) != 0) return 1;
  if (dies && rank == RANKS - 1) _exit(5);
  if ((dies || differs) && stuck(comm, differs && rank == 1 ? 7 : 8) != 0) return 1;
  attune_comm_destroy(comm);
  GOOD(attune_comm_join(&comm, devices[0], &ids[1], rank, left));
  if (rounds(comm, rank, left, 20) != 0) return 1;
  attune_comm_destroy(comm);
  host_devices_end();
  return 0;
}

/* ---- the test ---- */

static void start(pid_t *out, const char *way, int rank, const char *digits) {
  char self[4096] = "", number[8];
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(number, sizeof number, "%d", rank);
  const char *const words[] = {self, way, number, digits, NULL};
  assert_int_equal(posix_spawn(out, self, NULL, NULL, (char **)(uintptr_t)words, environ), 0);
}

static void run(const char *way, int last_ends) {
  attune_comm_id ids[IDS];
  char digits[IDS * sizeof ids->bytes * 2 + 1] = "";
  pid_t children[RANKS];
  for (int i = 0; i < IDS; i++) OK(attune_comm_make_id(&ids[i]));
  const unsigned char *bytes = ids[0].bytes;
  for (size_t i = 0; i < sizeof ids; i++) snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
  for (int r = 0; r < RANKS; r++) start(&children[r], way, r, digits);
  for (int r = 0; r < RANKS; r++) {
    int ended = 0;
    assert_int_equal(waitpid(children[r], &ended, 0), children[r]);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), r == RANKS - 1 ? last_ends : 0);
  }
  for (int i = 0; i < IDS; i++) (void)unlink((const char *)ids[i].bytes);
}

TEST(sums_over_processes) {
  run("lives", 0);
}

TEST(a_process_dies) {
  run("dies", 5);
}

TEST(calls_do_not_match) {
  run("differs", 0);
}

/* The test itself makes the ids: so it is started anew, with the made library's folder. */
int main(int argc, char **argv) {
  attune_comm_id ids[IDS];
  if (argc > 3) {
    unsigned char *bytes = ids[0].bytes;
    for (size_t i = 0; i < sizeof ids; i++) {
      unsigned byte = 0;
      if (sscanf(argv[3] + 2 * i, "%2x", &byte) != 1) return 1;
      bytes[i] = (unsigned char)byte;
    }
    return as_rank(argv[1], atoi(argv[2]), ids);
  }
  if (argc == 1) {
    setenv("LD_LIBRARY_PATH", FAKES "/nccl_processes", 1);
    return run_part("itself");
  }
  return RUN_TESTS(NULL, NULL);
}
