/* SPDX-License-Identifier: Apache-2.0
 * test_graph_fork.c: a child of fork makes graphs and takes pooled streams again; the graphs that it inherited fail and
 * do not hang. */
#include "tests/support/check.h"

#include "src/base/backend.h"
#include "src/host/host.h"

#include <attune/graph.h>

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static attune_device *host;
static atomic_bool gate;
static int value;

FIXTURE(find_host) {
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

static void add_seven(const void *args) {
  **(int *const *)args += 7;
}
static void wait_for_gate(const void *args) {
  (void)args;
  while (!atomic_load(&gate)) usleep(100);
}

static attune_status seven_and_gate(void *user, attune_stream *stream) {
  int *slot = &value;
  attune_status status = at_host_submit(stream, add_seven, &slot, sizeof slot);
  return user && status == ATTUNE_OK ? at_host_submit(stream, wait_for_gate, NULL, 0) : status;
}

/* 0, or the number of what was wrong. */
static int graphs_work(void) {
  attune_stream *stream = NULL, *pooled = NULL;
  attune_graph *graph = NULL;
  value = 0;
  if (attune_stream_create(&stream, host) != ATTUNE_OK || attune_graph_create(&graph, host) != ATTUNE_OK) return 30;
  if (attune_graph_capture_callback(graph, stream, NULL, seven_and_gate, NULL) != ATTUNE_OK) return 31;
  if (attune_graph_replay(graph, stream) != ATTUNE_OK || attune_stream_synchronize(stream) != ATTUNE_OK || value != 7)
    return 32;
  for (int i = 0; i < 33; i++) {
    if (attune_stream_from_pool(&pooled, host, 0) != ATTUNE_OK || attune_graph_replay(graph, pooled) != ATTUNE_OK)
      return 33;
    if (attune_stream_synchronize(pooled) != ATTUNE_OK) return 34;
  }
  if (value != 34 * 7) return 35;
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  return 0;
}

typedef struct inherited {
  attune_stream *stream, *captured;
  attune_graph *graph, *open_graph;
} inherited;

static int use_inherited(const inherited *in) {
  attune_stream *mine = NULL;
  if (attune_stream_create(&mine, host) != ATTUNE_OK) return 1;
  if (attune_graph_replay(in->graph, in->stream) != ATTUNE_DEVICE_ERROR) return 2;
  if (attune_graph_replay(in->graph, mine) != ATTUNE_DEVICE_ERROR) return 3;
  if (!strstr(attune_last_message(), "before fork")) return 4;
  if (seven_and_gate(NULL, in->captured) != ATTUNE_DEVICE_ERROR) return 5;
  if (attune_graph_capture_end(in->open_graph, in->captured) != ATTUNE_DEVICE_ERROR) return 6;
  if (attune_graph_capture_callback(in->open_graph, mine, NULL, seven_and_gate, NULL) != ATTUNE_OK) return 7;
  attune_graph_destroy(in->open_graph);
  attune_graph_destroy(in->graph);
  attune_stream_destroy(in->captured);
  attune_stream_destroy(in->stream);
  attune_stream_destroy(mine);
  return graphs_work();
}

TEST(a_child_starts_anew) {
  inherited in = {0};
  int end = 0;
  assert_int_equal(graphs_work(), 0); /* the pool is full */
  OK(attune_stream_create(&in.stream, host));
  OK(attune_stream_create(&in.captured, host));
  OK(attune_graph_create(&in.graph, host));
  OK(attune_graph_create(&in.open_graph, host));
  OK(attune_graph_capture_callback(in.graph, in.stream, NULL, seven_and_gate, &in));
  OK(attune_graph_capture_begin(in.open_graph, in.captured, NULL));
  OK(seven_and_gate(NULL, in.captured));
  value = 0;
  OK(attune_graph_replay(in.graph, in.stream)); /* runs, and holds the graph, while the process forks */
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(600);
    _exit(use_inherited(&in));
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_true(WIFEXITED(end));
  assert_int_equal(WEXITSTATUS(end), 0);
  atomic_store(&gate, true);
  OK(attune_graph_capture_end(in.open_graph, in.captured)); /* the parent's are as before */
  OK(attune_graph_replay(in.open_graph, in.stream));
  OK(attune_stream_synchronize(in.stream));
  assert_int_equal(value, 14);
  assert_int_equal(graphs_work(), 0);
  attune_graph_destroy(in.graph);
  attune_graph_destroy(in.open_graph);
  attune_stream_destroy(in.stream);
  attune_stream_destroy(in.captured);
}

int main(void) {
  return RUN_TESTS(find_host, NULL);
}
