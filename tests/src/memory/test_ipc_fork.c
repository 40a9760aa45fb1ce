/* SPDX-License-Identifier: Apache-2.0
 * test_ipc_fork.c: memory for other processes over a fork: the child answers nobody in its parent's name, holds none of
 * its sockets, and may export again. The parent goes on. */
#include "tests/support/check.h"

#include "tests/src/memory/memfd_backend.h"

static attune_device *host;

typedef struct exchange {
  attune_memory_handle handle; /* the parent's */
  int to_child, from_child;
  int sockets; /* of the process before it exports */
} exchange;

static int export_in(attune_memory_handle *out, unsigned char value) {
  attune_stream *stream = NULL;
  unsigned char *p = NULL;
  if (attune_stream_create(&stream, host) != ATTUNE_OK || attune_alloc((void **)&p, stream, 4096) != ATTUNE_OK)
    return 1;
  *p = value;
  return attune_memory_export(out, p) == ATTUNE_OK ? 0 : 2;
}

static int in_child(const exchange *with) {
  attune_memory_handle own;
  void *p = NULL;
  char byte;
  alarm(600);
  if (count_descriptors(true) != with->sockets) return 10;
  if (attune_memory_import(&p, host, &with->handle) != ATTUNE_OK || *(unsigned char *)p != 5) return 11;
  if (attune_memory_close(p, host) != ATTUNE_OK) return 12;
  if (export_in(&own, 6) != 0) return 13;
  if (memcmp(own.base, with->handle.base, sizeof own.base) == 0) return 14;
  if (write(with->from_child, &own, sizeof own) != (ssize_t)sizeof own) return 15;
  return read(with->to_child, &byte, 1) == 0 ? 0 : 16;
}

TEST(the_child_has_no_service) {
  exchange with;
  attune_memory_handle theirs;
  void *p = NULL;
  int to[2], from[2], end = 0;
  assert_int_equal(pipe2(to, O_CLOEXEC), 0);
  assert_int_equal(pipe2(from, O_CLOEXEC), 0);
  with.sockets = count_descriptors(true); /* a driver may have its own */
  assert_int_equal(export_in(&with.handle, 5), 0);
  assert_int_equal(count_descriptors(true), with.sockets + 1);
  with.to_child = to[0];
  with.from_child = from[1];
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    close(to[1]);
    _exit(in_child(&with));
  }
  close(from[1]);
  assert_int_equal(read(from[0], &theirs, sizeof theirs), (ssize_t)sizeof theirs);
  OK(attune_memory_import(&p, host, &theirs));
  assert_int_equal(*(unsigned char *)p, 6);
  OK(attune_memory_close(p, host));
  close(to[1]);
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_true(WIFEXITED(end));
  assert_int_equal(WEXITSTATUS(end), 0);
}

int main(void) {
  host = memfd_host();
  if (!host) return 1;
  return RUN_TESTS(NULL, NULL);
}
