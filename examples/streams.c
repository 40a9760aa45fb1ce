/* SPDX-License-Identifier: Apache-2.0
 * streams.c: two streams of one device: copies on one, work on the other, ordered by events and timed. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 4, COUNT = 1 << 16, BYTES = COUNT * (int)sizeof(float) };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

/* What a library does that is not given a stream: it uses the thread's. */
static void fill_on_current(attune_device *device, void *memory, int value) {
  check(attune_fill(attune_stream_current(device), memory, value, BYTES));
}

int main(void) {
  static float numbers[COUNT], sums[COUNT];
  int least = 0, greatest = 0;
  double ns = 0.0;
  float *total = NULL;
  attune_device *device = NULL;
  attune_stream *work = NULL, *copies = NULL;
  attune_event *start = NULL, *stop = NULL, *arrived = NULL;
  attune_tuner *tuner = NULL;
  for (int i = 0; i < COUNT; i++) numbers[i] = 1.0f;
  check(attune_device_get(&device, "best"));
  check(attune_tuner_create(&tuner, NULL));
  check(attune_device_priority_range(device, &least, &greatest));
  check(attune_stream_create(&work, device));
  check(attune_stream_from_pool(&copies, device, greatest)); /* its work goes first */
  check(attune_event_create(&start, device, NULL));
  check(attune_event_create(&stop, device, NULL));
  check(attune_event_create(&arrived, device, &(attune_event_options){.no_timing = 1}));

  check(attune_stream_set_current(work));
  check(attune_alloc((void **)&total, work, BYTES));
  fill_on_current(device, total, 0);
  check(attune_event_record(start, work));
  for (int step = 0; step < STEPS; step++) {
    void *piece = NULL;
    check(attune_alloc(&piece, copies, BYTES));
    check(attune_copy(copies, piece, numbers, BYTES));
    check(attune_event_record(arrived, copies));
    check(attune_stream_wait_event(work, arrived)); /* the host does not wait */
    const attune_tensor in = {.data = piece, .dtype = ATTUNE_F32, .dims = 1, .sizes = {COUNT}},
                        out = {.data = total, .dtype = ATTUNE_F32, .dims = 1, .sizes = {COUNT}};
    check(attune_tensor_add(tuner, work, &out, &out, &in));
    check(attune_record_use(piece, work)); /* so that the next piece does not take this memory too early */
    check(attune_free(piece, copies));
  }
  check(attune_event_record(stop, work));
  check(attune_stream_wait_stream(copies, work)); /* after all of it */
  check(attune_copy(copies, sums, total, BYTES));
  const attune_status state = attune_stream_query(copies), reached = attune_event_query(stop);
  check(attune_stream_synchronize(copies));
  check(attune_event_synchronize(stop));
  check(attune_event_elapsed_ns(&ns, start, stop));
  printf("%s: %.0f us by the streams' clock; before the wait the copies were %s, the work %s; priorities %d to %d\n",
         attune_device_name(attune_stream_device(work)), ns / 1e3, state == ATTUNE_OK ? "done" : "not done",
         reached == ATTUNE_OK ? "done" : "not done", least, greatest);

  const int good = sums[0] == STEPS && sums[COUNT - 1] == STEPS && attune_stream_priority(copies) == greatest;
  check(attune_free(total, work));
  attune_event_destroy(arrived);
  attune_event_destroy(stop);
  attune_event_destroy(start);
  attune_stream_destroy(work); /* the device's default stream is this thread's again */
  attune_tuner_destroy(tuner);
  return good && attune_stream_current(device) == attune_stream_default(device) ? 0 : 1;
}
