/* SPDX-License-Identifier: Apache-2.0
 * test_copy_strided.c: copies and fills of rectangles and boxes on the host: every byte is compared with a plain loop,
 * in captures too; what is refused; what the race check is told; and the kernel of fill.cu run on the host. */
#include "tests/support/check.h"

#include <attune/check.h>
#include <attune/graph.h>
#include <attune/transfer.h>

#include "src/cuda/memory/fill.h"
#include "tests/support/host_stream.h"
#include "tests/support/unseen_wait.h"

enum { ROOM = 4096 };

static unsigned seed = 1;

static unsigned draw(unsigned below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static size_t at(size_t slice, size_t slice_pitch, size_t row, size_t pitch) {
  return slice * slice_pitch + row * pitch;
}

/* Marks the bytes of a box that begins at `begin`: how often each is touched. */
static void mark(unsigned char *touched, size_t begin, size_t pitch, size_t slice_pitch, const attune_box_copy *c) {
  for (size_t z = 0; z < c->slices; z++)
    for (size_t y = 0; y < c->rows; y++)
      for (size_t x = 0; x < c->bytes; x++) touched[begin + at(z, slice_pitch, y, pitch) + x]++;
}

static attune_box_copy random_copy(unsigned char *memory, size_t *to, size_t *from) {
  attune_box_copy c = {.bytes = 1 + draw(9), .rows = 1 + draw(4), .slices = 1 + draw(4)};
  c.destination_pitch = c.bytes + draw(24);
  c.source_pitch = draw(2) ? c.destination_pitch : c.bytes + draw(24);
  const size_t to_slice = (c.rows - 1) * c.destination_pitch + c.bytes,
               from_slice = (c.rows - 1) * c.source_pitch + c.bytes;
  c.destination_slice_pitch = to_slice + draw(64);
  c.source_slice_pitch =
      c.source_pitch == c.destination_pitch && draw(2) ? c.destination_slice_pitch : from_slice + draw(64);
  *to = draw(400);
  *from = draw(400);
  c.destination = memory + *to;
  c.source = memory + *from;
  return c;
}

/* Accepted and right, or refused: then they do overlap, or lie between each other's rows with other pitches. */
TEST(copies_are_those_of_a_loop) {
  static unsigned char memory[ROOM], expected[ROOM], touched[ROOM], source_touched[ROOM];
  int accepted = 0, refused = 0, between = 0;
  for (int turn = 0; turn < 4000; turn++) {
    size_t to = 0, from = 0;
    const attune_box_copy c = random_copy(memory, &to, &from);
    for (int i = 0; i < ROOM; i++) memory[i] = (unsigned char)draw(256);
    memcpy(expected, memory, ROOM);
    memset(touched, 0, ROOM);
    memset(source_touched, 0, ROOM);
    mark(touched, to, c.destination_pitch, c.destination_slice_pitch, &c);
    mark(source_touched, from, c.source_pitch, c.source_slice_pitch, &c);
    int common = 0, first = ROOM, last = 0, source_first = ROOM, source_last = 0;
    for (int i = 0; i < ROOM; i++) {
      common += touched[i] && source_touched[i];
      if (touched[i]) last = i, first = i < first ? i : first;
      if (source_touched[i]) source_last = i, source_first = i < source_first ? i : source_first;
    }
    const bool alike = (c.rows == 1 || c.destination_pitch == c.source_pitch) &&
                       (c.slices == 1 || c.destination_slice_pitch == c.source_slice_pitch);
    const bool apart = last < source_first || source_last < first;
    for (size_t z = 0; z < c.slices; z++)
      for (size_t y = 0; y < c.rows; y++)
        memcpy(expected + to + at(z, c.destination_slice_pitch, y, c.destination_pitch),
               memory + from + at(z, c.source_slice_pitch, y, c.source_pitch), c.bytes);
    if (common || (!alike && !apart)) {
      FAILS(attune_copy_3d(stream, &c), ATTUNE_INVALID_ARGUMENT);
      refused++;
      continue;
    }
    OK(attune_copy_3d(turn % 2 ? stream : attune_stream_default(host), &c));
    OK(attune_stream_synchronize(stream));
    assert_memory_equal(memory, expected, ROOM);
    accepted++;
    between += !apart;
  }
  assert_true(accepted > 200 && refused > 200 && between > 20);
}

TEST(fills_are_those_of_a_loop) {
  static unsigned char expected[ROOM];
  static unsigned char memory[ROOM] __attribute__((aligned(16)));
  for (int turn = 0; turn < 1500; turn++) {
    attune_box_fill f = {.element_bytes = (size_t)1 << draw(5)};
    const size_t step = f.element_bytes == 16 ? 8 : f.element_bytes;
    f.count = 1 + draw(5);
    f.rows = 1 + draw(4);
    f.slices = 1 + draw(3);
    f.pitch = f.count * f.element_bytes + step * draw(3);
    f.slice_pitch = (f.rows - 1) * f.pitch + f.count * f.element_bytes + step * draw(4);
    const size_t begin = step * draw(8);
    f.destination = memory + begin;
    for (size_t i = 0; i < f.element_bytes; i++) f.element[i] = (unsigned char)draw(turn % 3 ? 256 : 2);
    for (int i = 0; i < ROOM; i++) memory[i] = (unsigned char)draw(256);
    memcpy(expected, memory, ROOM);
    for (size_t z = 0; z < f.slices; z++)
      for (size_t y = 0; y < f.rows; y++)
        for (size_t x = 0; x < f.count; x++)
          memcpy(expected + begin + at(z, f.slice_pitch, y, f.pitch) + x * f.element_bytes, f.element, f.element_bytes);
    OK(attune_fill_3d(turn % 2 ? stream : attune_stream_default(host), &f));
    OK(attune_stream_synchronize(stream));
    assert_memory_equal(memory, expected, ROOM);
  }
}

/* The plain forms, long rows, and an element that is a number. */
TEST(rows_and_elements) {
  enum { ROWS = 40, COLUMNS = 50, LONG = 100001 };
  static double matrix[ROWS][COLUMNS], part[ROWS][8], line[LONG];
  const double value = 2.5;
  OK(attune_fill_elements(stream, line, &value, sizeof value, LONG));
  OK(attune_fill_2d(stream, &matrix[0][10], sizeof matrix[0], &value, sizeof value, 8, ROWS));
  OK(attune_copy_2d(stream, part, sizeof part[0], &matrix[0][9], sizeof matrix[0], sizeof part[0], ROWS));
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < LONG; i++) assert_true(line[i] == value);
  for (int y = 0; y < ROWS; y++) {
    for (int x = 0; x < COLUMNS; x++) assert_true(matrix[y][x] == (x >= 10 && x < 18 ? value : 0));
    for (int x = 0; x < 8; x++) assert_true(part[y][x] == (x > 0 ? value : 0));
  }
  /* A column to another one of the same matrix. */
  OK(attune_copy_2d(stream, &matrix[0][0], sizeof matrix[0], &matrix[0][17], sizeof matrix[0], sizeof(double), ROWS));
  OK(attune_stream_synchronize(stream));
  for (int y = 0; y < ROWS; y++) assert_true(matrix[y][0] == value && matrix[y][1] == 0);
}

TEST(what_is_refused) {
  static char memory[ROOM] __attribute__((aligned(16)));
  char *half = memory + ROOM / 2;
  const char element[16] = {1};
  FAILS(attune_copy_2d(NULL, memory, 8, half, 8, 8, 2), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_copy_2d(stream, NULL, 8, half, 8, 8, 2), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_copy_2d(stream, memory, 7, half, 8, 8, 2), ATTUNE_INVALID_ARGUMENT,
               "destination has a pitch of 7");
  FAILS(attune_copy_2d(stream, memory, 8, half, 7, 8, 2), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_copy_2d(stream, memory, 8, half, 8, 8, SIZE_MAX / 4), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_copy_2d(stream, memory, 16, memory + 8, 16, 9, 2), ATTUNE_INVALID_ARGUMENT);
  OK(attune_copy_2d(stream, memory, 16, memory + 8, 16, 8, 2));
  OK(attune_copy_2d(stream, memory, 1, half, 2, 8, 1)); /* one row: no pitch */
  OK(attune_copy_2d(stream, NULL, 1, NULL, 2, 8, 0));
  OK(attune_copy_2d(stream, NULL, 1, NULL, 2, 0, 8));
  FAILS(attune_copy_3d(stream, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_box_copy box = {memory, 8, 16, half, 8, 15, 8, 2, 2};
  FAILS_SAYING(attune_copy_3d(stream, &box), ATTUNE_INVALID_ARGUMENT, "source has a slice pitch of 15");
  FAILS(attune_fill_elements(stream, memory, element, 3, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_fill_elements(stream, memory, element, 32, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_fill_elements(stream, memory, NULL, 4, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_fill_elements(stream, memory + 2, element, 4, 1), ATTUNE_INVALID_ARGUMENT);
  OK(attune_fill_elements(stream, memory + 8, element, 16, 1));
  FAILS(attune_fill_elements(stream, memory, element, 8, SIZE_MAX / 4), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_fill_2d(stream, memory, 10, element, 4, 2, 2), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_fill_2d(NULL, memory, 8, element, 4, 2, 2), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_fill_3d(stream, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_stream_synchronize(stream));
}

TEST(captures_write_them_down) {
  static int32_t matrix[6][8], copy[6][4];
  const int32_t value = 77;
  attune_graph *graph = NULL;
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_fill_2d(stream, &matrix[0][2], sizeof matrix[0], &value, 4, 4, 6));
  OK(attune_copy_2d(stream, copy, sizeof copy[0], &matrix[0][2], sizeof matrix[0], sizeof copy[0], 6));
  OK(attune_graph_capture_end(graph, stream));
  assert_int_equal(attune_graph_node_count(graph), 2);
  assert_int_equal(copy[3][3], 0);
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  for (int y = 0; y < 6; y++)
    for (int x = 0; x < 4; x++) assert_int_equal(copy[y][x], value);
  assert_int_equal(matrix[5][6], 0);
  attune_graph_destroy(graph);
}

/* Two streams on alternate columns of a matrix are in no order and need none; on the same one they race. */
TEST(races_are_found_byte_by_byte) {
  static int32_t matrix[16][8], other[16][4];
  const int32_t one = 1;
  attune_stream *beside = NULL;
  OK(attune_stream_create(&beside, host));
  OK(attune_set_race_check(1, NULL, NULL));
  OK(attune_fill_2d(stream, &matrix[0][0], sizeof matrix[0], &one, 4, 4, 16));
  OK(attune_fill_2d(beside, &matrix[0][4], sizeof matrix[0], &one, 4, 4, 16));
  assert_int_equal(attune_race_count(), 0);
  OK(attune_copy_2d(beside, other, sizeof other[0], &matrix[0][4], sizeof matrix[0], sizeof other[0], 16));
  assert_int_equal(attune_race_count(), 0);
  unseen_wait(stream);
  OK(attune_copy_2d(beside, other, sizeof other[0], &matrix[0][3], sizeof matrix[0], sizeof other[0], 16));
  assert_int_equal(attune_race_count(), 1);
  OK(attune_set_race_check(0, NULL, NULL));
  attune_stream_destroy(beside);
}

/* ---- the kernel ---- */

#define __global__ static
#define __grid_constant__
#define __launch_bounds__(threads)
static struct { unsigned x, y; } blockIdx, threadIdx, gridDim, blockDim;
#include "src/cuda/memory/fill.cu"

_Static_assert(sizeof(struct at_fill_arguments) == sizeof(at_fill_call), "fill.h and fill.cu agree");

TEST(the_kernel_fills_as_the_host) {
  static uint64_t memory[ROOM], expected[ROOM];
  for (int turn = 0; turn < 300; turn++) {
    const unsigned each = 1 + draw(2), count = 1 + draw(20), rows = 1 + draw(4), slices = 1 + draw(3);
    const unsigned pitch = each * count + draw(4), slice_pitch = rows * pitch + draw(9);
    const unsigned first = (unsigned)turn + 1;
    const uint64_t element[2] = {first, each == 2 ? first + 1000 : first};
    memset(memory, 0, sizeof memory);
    memset(expected, 0, sizeof expected);
    for (unsigned z = 0; z < slices; z++)
      for (unsigned y = 0; y < rows; y++)
        for (unsigned x = 0; x < each * count; x++) expected[z * slice_pitch + y * pitch + x] = element[x % 2];
    const struct at_fill_arguments a = {
        (unsigned long long *)memory, each * count, pitch, slice_pitch, rows, rows * slices, {element[0], element[1]}};
    gridDim.x = 1 + draw(3);
    gridDim.y = 1 + draw(rows * slices);
    blockDim.x = 8;
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) at_fill(a);
    assert_memory_equal(memory, expected, sizeof memory);
  }
}

int main(void) {
  return RUN_TESTS(open_stream, close_stream);
}
