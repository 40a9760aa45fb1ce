/* SPDX-License-Identifier: Apache-2.0
 * collectives.c: the mean of arrays on all GPUs of the machine, one on each, as in data-parallel training; without a
 * GPU, only of the host's. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000, BYTES = COUNT * (int)sizeof(float), MOST = 8 };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

/* All GPUs, else the host. */
static int find_devices(attune_device *devices[MOST]) {
  attune_device_properties properties = {0};
  int found = 0;
  for (int i = 0; i < attune_device_count() && found < MOST; i++) {
    check(attune_device_at(&devices[found], i));
    check(attune_device_get_properties(devices[found], &properties));
    if (properties.kind == ATTUNE_DEVICE_CUDA || found == 0) found++;
  }
  return found;
}

int main(void) {
  static float numbers[COUNT];
  attune_device *devices[MOST];
  attune_stream *streams[MOST];
  void *gradients[MOST];
  attune_comm *comm = NULL;
  const int count = find_devices(devices);
  check(attune_comm_create(&comm, devices, count, ATTUNE_COMM_ANY));
  for (int d = 0; d < count; d++) {
    check(attune_stream_create(&streams[d], devices[d]));
    check(attune_alloc(&gradients[d], streams[d], BYTES));
    for (int i = 0; i < COUNT; i++) numbers[i] = (float)(i + d);
    check(attune_copy(streams[d], gradients[d], numbers, BYTES));
    check(attune_stream_synchronize(streams[d])); /* numbers is about to be overwritten */
  }

  /* In place; each stream's own order is all that is needed. */
  const attune_comm_data data = {ATTUNE_F32, COUNT, (const void *const *)gradients, gradients};
  check(attune_comm_all_reduce(comm, ATTUNE_REDUCE_AVERAGE, streams, &data));

  const int last = count - 1;
  check(attune_copy(streams[last], numbers, gradients[last], BYTES));
  check(attune_stream_synchronize(streams[last]));
  printf("%d device%s by %s: the mean of number 10 is %g\n", count, count == 1 ? "" : "s", attune_comm_describe(comm), (double)numbers[10]);
  for (int d = 0; d < count; d++) {
    check(attune_free(gradients[d], streams[d]));
    check(attune_stream_synchronize(streams[d]));
    attune_stream_destroy(streams[d]);
  }
  attune_comm_destroy(comm);
  return 0;
}
