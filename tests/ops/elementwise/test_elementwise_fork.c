/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_fork.c: elementwise in a child of a program that used it, and at the end of a process with work
 * queued. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/elementwise_call.h"

#include <sys/wait.h>
#include <unistd.h>

static attune_device *host;
static attune_tuner *tuner;
static float in[1000], out[1000];

static bool right(attune_stream *stream, const char *text, float factor) {
  call k;
  call_begin(&k);
  call_output(&k, out, ATTUNE_F32, 1, CALL_SIZES(1000));
  call_input(&k, "x", in, ATTUNE_F32, 1, CALL_SIZES(1000));
  memset(out, 0, sizeof out);
  if (attune_elementwise(tuner, stream, text, &k.operands) != ATTUNE_OK ||
      attune_stream_synchronize(stream) != ATTUNE_OK)
    return false;
  for (int i = 0; i < 1000; i++)
    if (out[i] != in[i] * factor + 1) return false;
  return true;
}

/* Calls that are remembered, new ones, and a stream made there. */
static int in_child(void) {
  attune_stream *stream = NULL;
  if (!right(attune_stream_default(host), "x * 2 + 1", 2)) return 1;
  if (!right(attune_stream_default(host), "x * 3 + 1", 3)) return 2;
  if (attune_stream_create(&stream, host) != ATTUNE_OK) return 3;
  if (!right(stream, "x * 2 + 1", 2) || !right(stream, "x * 4 + 1", 4)) return 4;
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return 0;
}

static int end_of(pid_t child) {
  int end = 0;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &end, 0), child);
  return WIFEXITED(end) ? WEXITSTATUS(end) : -WTERMSIG(end);
}

TEST(after_use) {
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, host));
  assert_true(right(attune_stream_default(host), "x * 2 + 1", 2));
  assert_true(right(stream, "x * 2 + 1", 2));
  const pid_t child = fork();
  if (child == 0) _exit(in_child());
  assert_int_equal(end_of(child), 0);
  assert_true(right(stream, "x * 2 + 1", 2)); /* the parent goes on */
  attune_stream_destroy(stream);
}

/* exit() while a stream's thread computes: the process ends as it was told to. */
TEST(at_the_end) {
  const pid_t child = fork();
  if (child == 0) {
    attune_stream *stream = NULL;
    call k;
    call_begin(&k);
    call_output(&k, out, ATTUNE_F32, 1, CALL_SIZES(1000));
    call_input(&k, "x", in, ATTUNE_F32, 1, CALL_SIZES(1000));
    if (attune_stream_create(&stream, host) != ATTUNE_OK) _exit(1);
    for (int i = 0; i < 500; i++)
      if (attune_elementwise(tuner, stream, "erfinv(x / 2000) + lgamma(x)", &k.operands) != ATTUNE_OK) _exit(2);
    exit(42);
  }
  assert_int_equal(end_of(child), 42);
}

FIXTURE(open_all) {
  OK(attune_device_get(&host, "host"));
  tuner = call_tuner(ATTUNE_MODE_CACHED);
  for (int i = 0; i < 1000; i++) in[i] = (float)i;
  return 0;
}

FIXTURE(close_all) {
  attune_tuner_destroy(tuner);
  return 0;
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
