/* SPDX-License-Identifier: Apache-2.0
 * graph.c: a step of work captured once and replayed: memory from the graph's pool, fresh random numbers in each
 * replay, a matrix product, a function of the program. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 128, COUNT = SIZE * SIZE, BYTES = COUNT * (int)sizeof(float) };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

typedef struct step {
  attune_tuner *tuner;
  attune_generator *generator;
  float *identity, *result; /* of the device */
  int steps;                /* completed so far */
} step;

/* Runs on a CPU thread after the product. */
static void count_step(void *user) {
  ((step *)user)->steps++;
}

/* result = noise x identity, which is noise. */
static attune_status give_step(void *user, attune_stream *stream) {
  step *s = user;
  void *noise = NULL;
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  problem.m = problem.n = problem.k = SIZE;
  attune_status status = attune_alloc(&noise, stream, BYTES); /* lives as long as the graph */
  if (status == ATTUNE_OK) status = attune_random_uniform(s->generator, stream, noise, ATTUNE_F32, COUNT, -1.0, 1.0);
  const attune_gemm_operands operands = {.alpha = 1.0, .a = noise, .b = s->identity, .d = s->result};
  if (status == ATTUNE_OK) status = attune_gemm(s->tuner, stream, &problem, &operands);
  if (status == ATTUNE_OK) status = attune_stream_call(stream, count_step, s);
  if (noise) (void)attune_free(noise, stream); /* free for later work of the graph */
  return status;
}

int main(void) {
  static float identity[COUNT], first[COUNT], second[COUNT];
  for (int i = 0; i < SIZE; i++) identity[i * (SIZE + 1)] = 1.0f;
  step s = {NULL, NULL, NULL, NULL, 0};
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  check(attune_device_get(&device, "best"));
  check(attune_tuner_create(&s.tuner, NULL));
  check(attune_generator_create(&s.generator, 42));
  check(attune_stream_from_pool(&stream, device, 0));
  check(attune_alloc((void **)&s.identity, stream, BYTES));
  check(attune_alloc((void **)&s.result, stream, BYTES));
  check(attune_copy(stream, s.identity, identity, BYTES));

  check(attune_graph_create(&graph, device));
  check(attune_graph_register_generator(graph, s.generator));
  check(attune_graph_capture_callback(graph, stream, NULL, give_step, &s));
  check(attune_graph_replay(graph, stream));
  check(attune_copy(stream, first, s.result, BYTES));
  check(attune_graph_replay(graph, stream));
  check(attune_copy(stream, second, s.result, BYTES));
  check(attune_stream_synchronize(stream));
  printf("%s: %zu nodes, %d steps; the first number is %g, in the next replay %g\n", attune_device_name(device),
         attune_graph_node_count(graph), s.steps, (double)first[0], (double)second[0]);

  attune_graph_destroy(graph);
  check(attune_free(s.identity, stream));
  check(attune_free(s.result, stream));
  attune_generator_destroy(s.generator);
  attune_tuner_destroy(s.tuner);
  return s.steps == 2 && first[0] != second[0] && first[0] >= -1.0f && first[0] < 1.0f ? 0 : 1;
}
