/* SPDX-License-Identifier: Apache-2.0
 * test_bench_protocol.c: the worker's side of a benchmark and what may come to it: a runner that goes away, reads late
 * or talks nonsense; two at once. */
#include "tests/tools/bench/bench_work.h"

#include <fcntl.h>

TEST(a_runner_may_go_at_any_time) {
  static const char *const last[] = {
      "", "li", "list\n", "open\t0\t1000\n", "open\t0\t1000\nsample\t20000\n", "open\t0\t1000\nsample\t3"};
  for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
    work w = {.ns = 1000};
    const attune_bench_case one = case_of("one", &w);
    attune_bench *bench = bench_of(&one, 1);
    bench_client c;
    bench_client_start(&c, bench);
    if (*last[i]) bench_client_ask(&c, last[i]);
    if (i == 3) bench_client_begins(&c, "opened\t");
    if (bench_client_end(&c) != ATTUNE_OK) fail_msg("after \"%s\": %s", last[i], c.message);
    assert_int_equal(w.set_ups, w.tear_downs);
    attune_bench_destroy(bench);
  }
}

TEST(nonsense_is_refused) {
  static const char *const wrong[] = {"",
                                      "hello",
                                      "List",
                                      "list\t",
                                      "open",
                                      "open\t0",
                                      "open\t0\t0",
                                      "open\t-1\t1000",
                                      "open\t0\t1e6",
                                      "open\t0\t1000000000000",
                                      "open\t0\t1000\t-1",
                                      "open\t0\t1000\t1\t1",
                                      "open\t0\t1000\t1\t1\t1\t1\t1",
                                      "open\t99999999999999999999\t1000",
                                      "sample",
                                      "sample\t0",
                                      "sample\t100001",
                                      "sample\t ",
                                      "close\tnow",
                                      "quit\t1",
                                      " quit"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    work w = {.ns = 1000};
    const attune_bench_case one = case_of("one", &w);
    attune_bench *bench = bench_of(&one, 1);
    bench_client c;
    bench_client_start(&c, bench);
    (void)bench_client_open(&c, 0, 1000);
    bench_client_ask(&c, wrong[i]);
    bench_client_ask(&c, "\n");
    bench_client_begins(&c, "failed\tthe runner sent \"");
    assert_null(bench_client_line(&c));
    if (bench_client_end(&c) != ATTUNE_BAD_DATA) fail_msg("\"%s\" is not refused", wrong[i]);
    assert_int_equal(w.tear_downs, 1);
    attune_bench_destroy(bench);
  }
}

static void check_bytes(const char *bytes, size_t count, const char *message) {
  work w = {.ns = 1000};
  const attune_bench_case one = case_of("one", &w);
  attune_bench *bench = bench_of(&one, 1);
  bench_client c;
  bench_client_start(&c, bench);
  assert_int_equal(send(c.fd, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
  bench_client_begins(&c, message);
  FAILS(bench_client_end(&c), ATTUNE_BAD_DATA);
  attune_bench_destroy(bench);
}

TEST(a_line_is_text_of_a_bounded_length) {
  static char line[AT_BENCH_LINE + 1];
  memset(line, 'x', sizeof line);
  check_bytes(line, sizeof line, "failed\ta request has more than 4096 bytes");
  check_bytes("li\0st\n", 6, "failed\ta request contains a zero byte");
}

/* Bytes that are nearly requests: it never hangs or breaks, and what it opened it closes. */
TEST(random_bytes_do_no_harm) {
  static const char *const pieces[] = {"list\n",  "open\t", "0\t", "1\t", "1000\n", "sample\t",        "2\n",
                                       "close\n", "\t",     "\n",  "x",   "\\",     "open\t0\t1000\n", "sample\t1\n"};
  const int rounds = getenv("AT_UNDER_VALGRIND") ? 20 : 100;
  unsigned draw = 12345;
  for (int round = 0; round < rounds; round++) {
    work w = {.ns = 1000};
    const attune_bench_case one = case_of("one", &w);
    attune_bench *bench = bench_of(&one, 1);
    bench_client c;
    bench_client_start(&c, bench);
    for (int i = 0; i < 12; i++) {
      draw = draw * 1664525u + 1013904223u;
      const char *piece = pieces[(draw >> 16) % (sizeof pieces / sizeof *pieces)];
      if (send(c.fd, piece, strlen(piece), MSG_NOSIGNAL) < 0) break;
    }
    shutdown(c.fd, SHUT_WR);
    while (bench_client_line(&c)) continue;
    const attune_status status = bench_client_end(&c);
    assert_true(status == ATTUNE_OK || status == ATTUNE_BAD_DATA);
    assert_int_equal(w.set_ups, w.tear_downs);
    attune_bench_destroy(bench);
  }
}

TEST(arguments_are_checked) {
  int pipes[2];
  attune_bench *bench = bench_of(NULL, 0);
  FAILS(attune_bench_serve(NULL, 0), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(), "bench is NULL; should be given");
  FAILS(attune_bench_serve(bench, -1), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
  FAILS_SAYING(attune_bench_serve(bench, pipes[1]), ATTUNE_INVALID_ARGUMENT, "should be a connected socket");
  close(pipes[0]);
  close(pipes[1]);
  attune_bench_destroy(bench);
}

/* Two benches in two threads, sample by sample in turns; and sockets that do not block. */
TEST(benches_are_apart) {
  work w[2] = {{.ns = 1000}, {.ns = 3000}};
  attune_bench *benches[2];
  static bench_client c[2];
  for (int i = 0; i < 2; i++) {
    const attune_bench_case one = case_of("one", &w[i]);
    benches[i] = bench_of(&one, 1);
    bench_client_start(&c[i], benches[i]);
    assert_int_equal(fcntl(c[i].theirs, F_SETFL, O_NONBLOCK), 0);
    (void)bench_client_open(&c[i], 0, 100000);
  }
  for (int turn = 0; turn < 20; turn++) {
    bench_client_sample sample[2];
    for (int i = 0; i < 2; i++) bench_client_samples(&c[i], 1, &sample[i], "end\t0\t0");
    near(sample[1].ns, 3.0 * sample[0].ns, 0.01);
  }
  for (int i = 0; i < 2; i++) {
    OK(bench_client_end(&c[i]));
    attune_bench_destroy(benches[i]);
  }
}

/* An answer that is larger than what the socket holds, to a runner that reads late. */
TEST(a_slow_runner_is_waited_for) {
  enum { COUNT = 3000, ROOM = 4096 };
  static bench_client_sample samples[COUNT];
  work w = {.ns = 1000};
  const attune_bench_case one = case_of("one", &w);
  attune_bench *bench = bench_of(&one, 1);
  bench_client c;
  bench_client_start(&c, bench);
  assert_int_equal(fcntl(c.theirs, F_SETFL, O_NONBLOCK), 0);
  assert_int_equal(setsockopt(c.theirs, SOL_SOCKET, SO_SNDBUF, &(int){ROOM}, sizeof(int)), 0);
  (void)bench_client_open(&c, 0, 1000);
  bench_client_samples(&c, COUNT, samples, "end\t0\t0");
  bench_client_close(&c);
  OK(bench_client_end(&c));
  attune_bench_destroy(bench);
}

int main(void) {
  virtual_clock_start();
  return RUN_TESTS(NULL, NULL);
}
