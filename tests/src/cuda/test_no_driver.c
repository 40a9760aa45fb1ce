/* SPDX-License-Identifier: Apache-2.0
 * test_no_driver.c: a program of a build with CUDA starts where no CUDA device is to be seen, and has only the host. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <unistd.h>

#include "src/base/backend.h"

TEST(only_the_host) {
  attune_device *device = NULL, *host = NULL;
  assert_int_equal(attune_device_count(), 1);
  assert_int_equal(attune_device_at(&device, 0), ATTUNE_OK);
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_ptr_equal(device, host);
  assert_int_equal(attune_device_get(&device, "best"), ATTUNE_OK);
  assert_ptr_equal(device, host);
  assert_int_equal(attune_device_get(&device, NULL), ATTUNE_OK);
  assert_ptr_equal(device, host);
}

TEST(cuda_is_not_found) {
  attune_device *device = NULL;
  assert_int_equal(attune_device_get(&device, "cuda:0"), ATTUNE_NOT_FOUND);
  assert_null(device);
  assert_non_null(strstr(attune_last_message(), "cuda:0"));
  assert_int_equal(attune_device_get(&device, "cuda"), ATTUNE_NOT_FOUND);
}

TEST(the_host_works) {
  attune_device *host = NULL;
  void *memory = NULL;
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  attune_stream *stream = attune_stream_default(host);
  assert_int_equal(attune_alloc(&memory, stream, 4096), ATTUNE_OK);
  assert_int_equal(attune_fill(stream, memory, 7, 4096), ATTUNE_OK);
  assert_int_equal(attune_stream_synchronize(stream), ATTUNE_OK);
  assert_int_equal(((unsigned char *)memory)[4095], 7);
  assert_int_equal(attune_free(memory, stream), ATTUNE_OK);
}

#ifdef AT_WITH_CUDA
TEST(the_count_is_silent) {
  int pipe_ends[2];
  assert_int_equal(pipe(pipe_ends), 0);
  int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
  dup2(pipe_ends[1], STDOUT_FILENO);
  dup2(pipe_ends[1], STDERR_FILENO);
  int first = at_cuda_backend.device->count(), second = at_cuda_backend.device->count();
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  close(out);
  close(err);
  close(pipe_ends[1]);
  char text[64];
  ssize_t written = read(pipe_ends[0], text, sizeof text);
  close(pipe_ends[0]);
  assert_int_equal(first, 0);
  assert_int_equal(second, 0);
  assert_int_equal(written, 0);
}
#endif

/* A driver that is there is hidden, so that the test says the same on every machine. */
int main(void) {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  return RUN_TESTS(NULL, NULL);
}
