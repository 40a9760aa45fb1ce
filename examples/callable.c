/* SPDX-License-Identifier: Apache-2.0
 * callable.c: a function of the program captured once, which then runs as a graph with new inputs at each call. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1024, BYTES = COUNT * (int)sizeof(float) };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

/* outputs[0] = inputs[0] + inputs[1] */
static attune_status add(void *user, attune_stream *stream, void *const *inputs, void *const *outputs) {
  const attune_tensor a = {.data = inputs[0], .dtype = ATTUNE_F32, .dims = 1, .sizes = {COUNT}},
                      b = {.data = inputs[1], .dtype = ATTUNE_F32, .dims = 1, .sizes = {COUNT}},
                      out = {.data = outputs[0], .dtype = ATTUNE_F32, .dims = 1, .sizes = {COUNT}};
  return attune_tensor_add(user, stream, &out, &a, &b);
}

int main(void) {
  static float a[COUNT], b[COUNT], sum[COUNT], last[COUNT];
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_tuner *tuner = NULL;
  attune_graph_callable *adder = NULL;
  attune_graph_callable_options options = ATTUNE_GRAPHED_OPTIONS_INIT;
  for (int i = 0; i < COUNT; i++) a[i] = (float)i, b[i] = 0.5f;
  check(attune_device_get(&device, "best"));
  check(attune_stream_create(&stream, device));
  check(attune_tuner_create(&tuner, NULL));
  options.input_count = 2;
  options.input_bytes = (const size_t[]){BYTES, BYTES};
  options.output_count = 1;
  options.output_bytes = (const size_t[]){BYTES};
  check(attune_graph_callable_create(&adder, device, &options, add, tuner));

  const void *inputs[] = {a, b};
  void *outputs[] = {sum};
  check(attune_graph_callable_call(adder, stream, inputs, outputs));
  /* The next call finds its first input where the graph reads it, and its result is read where the graph writes it. */
  check(attune_fill(stream, attune_graph_callable_input(adder, 0), 0, BYTES));
  check(attune_graph_callable_call(adder, stream, (const void *[]){NULL, b}, NULL));
  check(attune_copy(stream, last, attune_graph_callable_output(adder, 0), BYTES));
  check(attune_stream_synchronize(stream));
  printf("%s: %zu nodes; %g, then %g\n", attune_device_name(device),
         attune_graph_node_count(attune_graph_callable_graph(adder)), (double)sum[COUNT - 1], (double)last[COUNT - 1]);

  attune_graph_callable_destroy(adder);
  attune_tuner_destroy(tuner);
  attune_stream_destroy(stream);
  return sum[COUNT - 1] == COUNT - 0.5f && last[COUNT - 1] == 0.5f ? 0 : 1;
}
