/* SPDX-License-Identifier: Apache-2.0
 * bench_client.h: a runner in small, for tests of workers: it asks by hand, line by line, what a thread serves. */
#ifndef AT_TEST_BENCH_CLIENT_H
#define AT_TEST_BENCH_CLIENT_H

#include "tests/support/check.h"

#include <attune/tools.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/protocol.h"

typedef struct bench_client {
  attune_bench *bench;
  int fd, theirs;
  pthread_t thread;
  attune_status status; /* of the serving, once it ended */
  char message[512];
  char in[1 << 16];
  size_t in_bytes, used;
} bench_client;

static inline void *bench_client_thread(void *arg) {
  bench_client *c = arg;
  c->status = attune_bench_serve(c->bench, c->theirs);
  snprintf(c->message, sizeof c->message, "%s", c->status == ATTUNE_OK ? "" : attune_last_message());
  close(c->theirs);
  return NULL;
}

/* The next line without its end; NULL: there is none any more. Valid until the next call. */
static inline char *bench_client_line(bench_client *c) {
  for (;;) {
    char *at = c->in + c->used, *end = memchr(at, '\n', c->in_bytes - c->used);
    if (end) {
      *end = '\0';
      c->used = (size_t)(end + 1 - c->in);
      return at;
    }
    memmove(c->in, at, c->in_bytes - c->used);
    c->in_bytes -= c->used;
    c->used = 0;
    assert_true(c->in_bytes < sizeof c->in);
    const ssize_t got = recv(c->fd, c->in + c->in_bytes, sizeof c->in - c->in_bytes, 0);
    if (got <= 0) return NULL;
    c->in_bytes += (size_t)got;
  }
}

/* The next line is this one. */
static inline void bench_client_expect(bench_client *c, const char *line) {
  const char *got = bench_client_line(c);
  if (!got || strcmp(got, line) != 0) fail_msg("\"%s\" came, not \"%s\"", got ? got : "nothing", line);
}

/* It begins so. */
static inline char *bench_client_begins(bench_client *c, const char *start) {
  char *got = bench_client_line(c);
  if (!got || strncmp(got, start, strlen(start)) != 0)
    fail_msg("\"%s\" came, not \"%s\"", got ? got : "nothing", start);
  return got;
}

static inline void bench_client_ask(bench_client *c, const char *request) {
  const size_t bytes = strlen(request);
  assert_int_equal(send(c->fd, request, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

static inline void bench_client_start(bench_client *c, attune_bench *bench) {
  int pair[2];
  char hello[64];
  memset(c, 0, sizeof *c);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  c->bench = bench;
  c->fd = pair[0];
  c->theirs = pair[1];
  assert_int_equal(pthread_create(&c->thread, NULL, bench_client_thread, c), 0);
  snprintf(hello, sizeof hello, "attune-bench\t%d\t%s", AT_BENCH_PROTOCOL, attune_version());
  bench_client_expect(c, hello);
}

/* Closes this side, and waits for the other. */
static inline attune_status bench_client_end(bench_client *c) {
  if (c->fd >= 0) close(c->fd);
  assert_int_equal(pthread_join(c->thread, NULL), 0);
  return c->status;
}

/* Opens a case; the number of its calls. */
static inline long long bench_client_open(bench_client *c, int index, long long sample_ns) {
  char text[96];
  long long calls = 0;
  snprintf(text, sizeof text, "open\t%d\t%lld\t1\n", index, sample_ns);
  bench_client_ask(c, text);
  assert_int_equal(sscanf(bench_client_begins(c, "opened\t"), "opened\t%lld", &calls), 1);
  return calls;
}

static inline void bench_client_close(bench_client *c) {
  bench_client_ask(c, "close\n");
  bench_client_expect(c, "closed");
}

typedef struct bench_client_sample {
  long long start;
  double ns, cpu_ns;
} bench_client_sample;

/* So many samples; the words of their end behind them. */
static inline void bench_client_samples(bench_client *c, int count, bench_client_sample *out, const char *end) {
  char text[64];
  snprintf(text, sizeof text, "sample\t%d\n", count);
  bench_client_ask(c, text);
  for (int i = 0; i < count; i++)
    assert_int_equal(
        sscanf(bench_client_begins(c, "sample\t"), "sample\t%lld\t%lf\t%lf", &out[i].start, &out[i].ns, &out[i].cpu_ns),
        3);
  bench_client_expect(c, end);
}

#endif
