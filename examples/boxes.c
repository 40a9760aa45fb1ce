/* SPDX-License-Identifier: Apache-2.0
 * boxes.c: a box of a three-dimensional array goes to the device and is filled, converted and copied there. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { X = 16, Y = 8, Z = 4, BX = 4, BY = 3, BZ = 2, COUNT = BX * BY * BZ };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

int main(void) {
  static double array[Z][Y][X], box[BZ][BY][BX];
  const double one = 1.0, half = 0.5;
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_tuner *tuner = NULL;
  double *on_device = NULL;
  void *halves = NULL;
  for (int i = 0; i < X * Y * Z; i++) array[i / (X * Y)][i / X % Y][i % X] = (double)i;
  check(attune_device_get(&device, "best"));
  check(attune_stream_create(&stream, device));
  check(attune_tuner_create(&tuner, NULL));
  check(attune_alloc((void **)&on_device, stream, sizeof box));
  check(attune_alloc(&halves, stream, COUNT * attune_dtype_size(ATTUNE_F16)));

  const attune_box_copy in = {on_device,
                              sizeof box[0][0],
                              sizeof box[0],
                              &array[1][2][3],
                              sizeof array[0][0],
                              sizeof array[0],
                              sizeof box[0][0],
                              BY,
                              BZ};
  check(attune_copy_3d(stream, &in));
  attune_box_fill edge = {.destination = on_device,
                          .pitch = sizeof box[0][0],
                          .slice_pitch = sizeof box[0],
                          .element_bytes = sizeof one,
                          .count = 1,
                          .rows = BY,
                          .slices = BZ};
  for (size_t i = 0; i < sizeof one; i++) edge.element[i] = ((const unsigned char *)&one)[i];
  check(attune_fill_3d(stream, &edge));                                             /* the first column of each slice */
  check(attune_fill_elements(stream, on_device + BX * BY, &half, sizeof half, BX)); /* the second slice's first row */

  check(attune_copy_converted(tuner, stream, halves, ATTUNE_F16, on_device, ATTUNE_F64, COUNT));
  check(attune_copy_converted(tuner, stream, box, ATTUNE_F64, halves, ATTUNE_F16, COUNT)); /* to the host's memory */
  check(attune_stream_synchronize(stream));
  printf("%s: %g %g ... %g; the second slice begins with %g\n", attune_device_name(device), box[0][0][0], box[0][0][1],
         box[BZ - 1][BY - 1][BX - 1], box[1][0][0]);
  const int good = box[0][0][0] == one && box[0][0][1] == array[1][2][4] && box[1][0][0] == half &&
                   box[BZ - 1][BY - 1][BX - 1] == array[BZ][1 + BY][2 + BX];

  check(attune_free(halves, stream));
  check(attune_free(on_device, stream));
  attune_tuner_destroy(tuner);
  attune_stream_destroy(stream);
  return good ? 0 : 1;
}
