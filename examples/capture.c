/* SPDX-License-Identifier: Apache-2.0
 * capture.c: the life of a graph: captured in mode tune, whose search cannot run in a capture, tuned, updated, drawn,
 * cloned, reset; with a hook, and an object that lives as long as the captured work. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64, BYTES = SIZE * SIZE * (int)sizeof(float) };
static const char *const PICTURE = "attune-capture.dot";

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

typedef struct step {
  attune_tuner *tuner;
  void *a, *b, *d;
  int captured; /* whether the latest work was given in a capture */
} step;

static attune_status give_step(void *user, attune_stream *stream) {
  step *s = user;
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  const attune_gemm_operands operands = {.alpha = 1.0, .a = s->a, .b = s->b, .d = s->d};
  problem.m = problem.n = problem.k = SIZE;
  s->captured = attune_stream_is_capturing(stream);
  return attune_gemm(s->tuner, stream, &problem, &operands);
}

static void count_replays(void *user, attune_graph *graph, unsigned moment) {
  if (attune_graph_device(graph) && moment == ATTUNE_GRAPH_REPLAYED) ++*(int *)user;
}

static void release(void *object) {
  strcpy(object, "gone");
}

int main(void) {
  static float ones[SIZE * SIZE], result[SIZE * SIZE];
  char parameters[] = "here";
  int replays = 0, tuned = 0, in_place = 0;
  uint64_t used = 0, reserved = 0;
  step s = {NULL, NULL, NULL, NULL, 0};
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_capture_options keep = ATTUNE_CAPTURE_OPTIONS_INIT;
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_graph *graph = NULL, *clone = NULL;
  for (int i = 0; i < SIZE * SIZE; i++) ones[i] = 1.0f;
  options.database = ":memory:";
  options.mode = ATTUNE_MODE_TUNE;
  options.budget_ms = 200.0;
  check(attune_device_get(&device, "best"));
  check(attune_stream_create(&stream, device));
  check(attune_tuner_create(&s.tuner, &options));
  check(attune_alloc(&s.a, stream, BYTES));
  check(attune_alloc(&s.b, stream, BYTES));
  check(attune_alloc(&s.d, stream, BYTES));
  check(attune_copy(stream, s.a, ones, BYTES));
  check(attune_copy(stream, s.b, ones, BYTES));

  keep.keep_graph = 1;
  check(attune_graph_create(&graph, device));
  check(attune_graph_add_hook(graph, ATTUNE_GRAPH_REPLAYED, count_replays, &replays));
  check(attune_graph_capture_callback(graph, stream, &keep, give_step, &s)); /* with a guess */
  check(attune_graph_hold(graph, parameters, release));
  check(attune_tuner_tune_pending(s.tuner, 0.0, &tuned));
  check(attune_graph_update(graph, stream, give_step, &s, &in_place)); /* with the winner */
  check(attune_graph_debug_dump(graph, PICTURE, 1));
  check(attune_graph_clone(&clone, graph));
  check(attune_graph_upload(graph, stream)); /* so that the first replay takes no longer than the others */
  check(attune_graph_replay(graph, stream));
  check(attune_graph_replay(clone, stream)); /* hooks are the graph's own */
  check(attune_copy(stream, result, s.d, BYTES));
  check(attune_stream_synchronize(stream));
  check(attune_graph_memory(device, &used, &reserved));
  printf("%s: %d problem tuned, updated %s; %g, %d replay; graphs' own memory: %llu of %llu bytes\n",
         attune_device_name(device), tuned, in_place ? "in place" : "with a new executable", (double)result[0], replays,
         (unsigned long long)used, (unsigned long long)reserved);

  check(attune_graph_remove_hook(graph, count_replays, &replays));
  check(attune_graph_reset(graph)); /* may capture other work now */
  check(attune_graph_trim(device));
  const int good = s.captured && tuned == 1 && replays == 1 && result[0] == SIZE && remove(PICTURE) == 0 &&
                   strcmp(parameters, "gone") == 0;
  attune_graph_destroy(clone);
  attune_graph_destroy(graph);
  check(attune_free(s.a, stream));
  check(attune_free(s.b, stream));
  check(attune_free(s.d, stream));
  attune_tuner_destroy(s.tuner);
  attune_stream_destroy(stream);
  return good ? 0 : 1;
}
