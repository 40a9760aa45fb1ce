/* SPDX-License-Identifier: Apache-2.0
 * collectives.c: the mean of arrays on all GPUs of the machine, one on each, as in data-parallel training; without a
 * GPU, only of the host's. Then many small arrays in one call, and a communicator of several processes. */
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

/* Each rank's array as two, which one call takes. Before it all ranks have equal numbers. */
static void in_pieces(attune_comm *comm, attune_stream **streams, void **gradients, int count) {
  void *halves[MOST];
  for (int d = 0; d < count; d++) halves[d] = (float *)gradients[d] + COUNT / 2;
  const attune_comm_data data[] = {{ATTUNE_F32, COUNT / 2, (const void *const *)gradients, gradients},
                                   {ATTUNE_F32, COUNT / 2, (const void *const *)halves, halves}};
  check(attune_comm_reduce(comm, 0, ATTUNE_REDUCE_MAX, streams, &data[0]));
  check(attune_comm_broadcast_coalesced(comm, 0, streams, data, 2));
  check(attune_comm_reduce_add_coalesced(comm, 0, streams, data, 2));
  check(attune_comm_broadcast_coalesced(comm, 0, streams, data, 2)); /* now count times as large everywhere */
  check(attune_comm_all_reduce_coalesced(comm, ATTUNE_REDUCE_MIN, streams, data, 2));
}

/* Each process of a job joins with its GPU. The first one makes the id and sends it to the others, by MPI or in a file;
 * rank and size come from the launcher. Here the job is this process alone. */
static void join_job(attune_device *device) {
  attune_comm_id id;
  attune_comm *comm = NULL;
  if (attune_comm_make_id(&id) != ATTUNE_OK || attune_comm_join(&comm, device, &id, 0, 1) != ATTUNE_OK) {
    printf("no job of several processes: %s\n", attune_last_message());
    return;
  }
  printf("rank %d of %d joined\n", attune_comm_rank(comm), attune_comm_size(comm));
  check(attune_comm_check(comm)); /* from time to time: another process may have died */
  check(attune_comm_abort(comm)); /* then no call waits for it any longer */
  attune_comm_destroy(comm);
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
  in_pieces(comm, streams, gradients, count);

  const int last = count - 1;
  check(attune_copy(streams[last], numbers, gradients[last], BYTES));
  check(attune_stream_synchronize(streams[last]));
  const float mean = numbers[10] / (float)count;
  printf("%d device%s by %s: the mean of number 10 is %g\n", count, count == 1 ? "" : "s", attune_comm_describe(comm),
         (double)mean);
  for (int d = 0; d < count; d++) {
    check(attune_free(gradients[d], streams[d]));
    check(attune_stream_synchronize(streams[d]));
    attune_stream_destroy(streams[d]);
  }
  attune_comm_destroy(comm);
  join_job(devices[0]);
  return mean == 10.0f + 0.5f * (float)last ? 0 : 1;
}
