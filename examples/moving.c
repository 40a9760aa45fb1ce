/* SPDX-License-Identifier: Apache-2.0
 * moving.c: a block of a matrix in the program's memory goes to the device and back, by a graph whose copy then takes
 * another matrix. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 100, BLOCK = 16 };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

int main(void) {
  static float matrix[ROWS][COLUMNS], other[ROWS][COLUMNS], out[ROWS][BLOCK];
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  attune_pointer_info info = {0};
  float *block = NULL;
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    matrix[i / COLUMNS][i % COLUMNS] = (float)i;
    other[i / COLUMNS][i % COLUMNS] = -(float)i;
  }
  check(attune_device_get(&device, "best"));
  check(attune_stream_from_pool(&stream, device, 0));
  check(attune_alloc((void **)&block, stream, sizeof out));
  check(attune_pinned_register(device, matrix, sizeof matrix)); /* copies from it need not wait */
  check(attune_pointer_get_info(&info, &matrix[3][5]));
  printf("the matrix is of kind %d, %zu bytes\n", (int)info.kind, info.bytes);

  const float zero = 0, *from = &matrix[0][8];
  attune_capture_options keep = ATTUNE_CAPTURE_OPTIONS_INIT;
  keep.keep_graph = 1;
  check(attune_graph_create(&graph, device));
  check(attune_graph_capture_begin(graph, stream, &keep));
  check(attune_copy_2d(stream, block, sizeof out[0], from, sizeof matrix[0], sizeof out[0], ROWS));
  check(attune_fill_2d(stream, block, sizeof out[0], &zero, sizeof zero, 1, ROWS)); /* the first column */
  check(attune_copy(stream, out, block, sizeof out));
  check(attune_graph_capture_end(graph, stream));
  check(attune_graph_replay(graph, stream));
  check(attune_stream_synchronize(stream));
  printf("row 2: %g %g ... %g\n", (double)out[2][0], (double)out[2][1], (double)out[2][BLOCK - 1]);

  attune_node node = {0};
  attune_node_parameters copy = {0};
  for (size_t i = 0; i < attune_graph_node_count(graph); i++) {
    check(attune_graph_get_node(&node, graph, i));
    printf("node %zu: %s\n", i, node.name);
  }
  check(attune_graph_get_parameters(&copy, graph, 0));
  copy.copy.source = &other[0][8]; /* the same graph, another matrix */
  check(attune_graph_set_parameters(graph, 0, &copy));
  check(attune_graph_set_enabled(graph, 1, 0)); /* and no fill */
  check(attune_graph_replay(graph, stream));
  check(attune_stream_synchronize(stream));
  printf("row 2: %g %g ... %g\n", (double)out[2][0], (double)out[2][1], (double)out[2][BLOCK - 1]);
  const int good = out[2][0] == other[2][8] && out[2][BLOCK - 1] == other[2][8 + BLOCK - 1];

  check(attune_pinned_unregister(matrix));
  attune_graph_destroy(graph);
  check(attune_free(block, stream));
  return good ? 0 : 1;
}
