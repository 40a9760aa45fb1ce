/* SPDX-License-Identifier: Apache-2.0
 * Layouts: every element is met once and where the view says; classes; what overlaps. */
#include "tests/support/check.h"

#include "ops/elementwise/host/interpret_walk.h"
#include "ops/elementwise/layout/layout.h"

static char memory[1 << 16];

static at_view view_of(char *data, attune_dtype dtype, int dims, const int64_t *sizes, const int64_t *strides) {
  at_view view = {.data = data, .dtype = dtype, .shape = {.dims = dims}};
  for (int d = 0; d < dims; d++) {
    view.shape.sizes[d] = sizes[d];
    view.strides[d] = strides[d];
  }
  return view;
}

/* Walks all: the element's number must take each value once, and the offsets be those of its coordinates. */
static void check_walk(const at_shape *shape, const at_view *view) {
  at_view output = at_view_packed(memory, ATTUNE_U8, shape);
  at_view views[] = {output, *view, at_view_of_number(shape), at_view_of_position(shape, 0),
                     at_view_of_position(shape, 7)};
  at_layout layout;
  OK(at_layout_make(&layout, shape, views, 5));
  bool seen[625] = {false};
  for (int64_t i = 0; i < layout.count; i++) {
    const at_place place = at_place_of(&layout, i);
    int64_t number = at_place_offset(&place, &layout, 2);
    assert_true(number >= 0 && number < layout.count && !seen[number]);
    seen[number] = true;
    assert_int_equal(at_place_offset(&place, &layout, 0), number);
    assert_int_equal(at_place_offset(&place, &layout, 4), 0);
    int64_t offset = 0;
    for (int d = shape->dims - 1; d >= 0; d--) {
      const int64_t coordinate = number % shape->sizes[d], own = d - shape->dims + view->shape.dims;
      number /= shape->sizes[d];
      if (d == shape->dims - 1) assert_int_equal(at_place_offset(&place, &layout, 3), coordinate);
      if (own >= 0 && view->shape.sizes[own] > 1) offset += coordinate * view->strides[own];
    }
    assert_int_equal(at_place_offset(&place, &layout, 1), offset);
  }
}

TEST(every_element_once) {
  const int64_t strides[] = {0, 1, -1, 5, 7};
  for (int code = 0; code < 5 * 5 * 5; code++) {
    const at_shape shape = {3, {1 + code % 5, 1 + code / 5 % 5, 1 + code / 25}};
    for (int k = 0; k < 125; k += 3) {
      const int64_t own[] = {strides[k % 5], strides[k / 5 % 5], strides[k / 25]};
      const int64_t sizes[] = {k % 2 ? 1 : shape.sizes[0], k % 7 == 3 ? 1 : shape.sizes[1], shape.sizes[2]};
      const int skip = k % 4 == 1 ? 1 : 0; /* a view with fewer dimensions */
      const at_view view = view_of(NULL, ATTUNE_F32, 3 - skip, sizes + skip, own + skip);
      check_walk(&shape, &view);
    }
  }
}

TEST(classes) {
  const at_shape shape = {2, {4, 6}};
  const int64_t sizes[] = {4, 6}, packed[] = {6, 1}, one[] = {0, 0}, inner[] = {1, 0}, outer[] = {0, 1},
                rows[] = {9, 1}, turned[] = {1, 4}, wide[] = {12, 2};
  const struct {
    const int64_t *strides;
    at_layout_class expected;
  } cases[] = {{packed, AT_LAYOUT_CONTIGUOUS},     {one, AT_LAYOUT_ONE},   {inner, AT_LAYOUT_BROADCAST_INNER},
               {outer, AT_LAYOUT_BROADCAST_OUTER}, {rows, AT_LAYOUT_ROWS}, {turned, AT_LAYOUT_TRANSPOSED},
               {wide, AT_LAYOUT_STRIDED}};
  for (size_t i = 0; i < AT_COUNT(cases); i++) {
    const at_view views[] = {at_view_packed(memory, ATTUNE_F32, &shape),
                             view_of(memory, ATTUNE_F32, 2, sizes, cases[i].strides)};
    at_layout layout;
    OK(at_layout_make(&layout, &shape, views, 2));
    assert_int_equal(layout.operands[1].layout_class, cases[i].expected);
    assert_int_equal(layout.dims, cases[i].expected == AT_LAYOUT_CONTIGUOUS || cases[i].expected == AT_LAYOUT_ONE ||
                                          cases[i].expected == AT_LAYOUT_STRIDED
                                      ? 1
                                      : 2);
  }
}

/* A transposed output with a transposed input is one row; one that runs backwards is turned. */
TEST(order_is_the_outputs) {
  const at_shape shape = {3, {4, 1, 6}};
  const int64_t sizes[] = {4, 1, 6}, turned[] = {1, 77, 4}, backward[] = {-6, 3, -1};
  at_layout layout;
  at_view views[] = {view_of(memory, ATTUNE_F32, 3, sizes, turned), view_of(memory, ATTUNE_F32, 3, sizes, turned)};
  OK(at_layout_make(&layout, &shape, views, 2));
  assert_int_equal(layout.dims, 1);
  assert_int_equal(layout.sizes[0], 24);
  assert_int_equal(layout.operands[1].layout_class, AT_LAYOUT_CONTIGUOUS);
  views[0] = view_of(memory + 1024, ATTUNE_F32, 3, sizes, backward);
  views[1] = views[0];
  OK(at_layout_make(&layout, &shape, views, 2));
  assert_int_equal(layout.dims, 1);
  assert_int_equal(layout.operands[0].offset, -23);
  assert_int_equal(layout.operands[0].strides[0], 1);
}

TEST(large_sizes) {
  const int64_t sizes[] = {3, INT64_C(1) << 31, 5}, none[] = {0, 0, 0};
  const at_shape shape = {3, {3, INT64_C(1) << 31, 5}};
  at_view views[] = {at_view_packed(memory, ATTUNE_U8, &shape), view_of(memory, ATTUNE_F32, 3, sizes, none),
                     at_view_of_number(&shape), at_view_of_position(&shape, 1)};
  at_layout layout;
  OK(at_layout_make(&layout, &shape, views, 4));
  assert_int_equal(layout.count, INT64_C(15) << 31);
  const at_place last = at_place_of(&layout, layout.count - 1);
  assert_int_equal(at_place_offset(&last, &layout, 0), layout.count - 1);
  assert_int_equal(at_place_offset(&last, &layout, 1), 0);
  assert_int_equal(at_place_offset(&last, &layout, 2), layout.count - 1);
  assert_int_equal(at_place_offset(&last, &layout, 3), (INT64_C(1) << 31) - 1);
  at_place place = at_place_of(&layout, (INT64_C(1) << 33) - 3);
  at_place_move(&place, &layout, 9);
  assert_int_equal(at_place_offset(&place, &layout, 2), (INT64_C(1) << 33) + 6);
  const at_shape too_many = {3, {INT64_C(1) << 31, INT64_C(1) << 31, 2}};
  FAILS(at_layout_make(&layout, &too_many, views, 1), ATTUNE_INVALID_ARGUMENT);
  const int64_t far[] = {INT64_MAX / 2, 1, 1};
  views[1] = view_of(memory, ATTUNE_F32, 3, sizes, far);
  FAILS(at_layout_make(&layout, &shape, views, 2), ATTUNE_INVALID_ARGUMENT);
}

/* Which pairs of output and input may be; `message` is in what the refusal says. */
TEST(overlaps) {
  const int64_t sizes[] = {4, 6}, packed[] = {6, 1}, wide[] = {12, 1}, even[] = {12, 2}, turned[] = {1, 4},
                none[] = {0, 1};
  const int64_t single[] = {1, 6}, crossed[] = {3, 2};
  const at_shape shape = {2, {4, 6}};
  const struct {
    int at, other;
    const int64_t *strides, *other_sizes, *other_strides;
    attune_dtype dtype;
    const char *message; /* NULL: allowed */
  } cases[] = {
      {0, 0, packed, sizes, packed, ATTUNE_F32, NULL},       /* in place */
      {0, 0, packed, sizes, packed, ATTUNE_I32, NULL},       /* the same size of an element */
      {0, 0, packed, sizes, packed, ATTUNE_F16, "overlaps"}, /* another size */
      {0, 4, packed, sizes, packed, ATTUNE_F32, "output 0 overlaps input 0"},
      {0, 96, packed, sizes, packed, ATTUNE_F32, NULL}, /* right behind */
      {0, 92, packed, sizes, packed, ATTUNE_F32, "overlaps"},
      {96, 0, packed, sizes, packed, ATTUNE_F32, NULL},
      {0, 24, wide, sizes, wide, ATTUNE_F32, NULL}, /* columns beside each other */
      {0, 20, wide, sizes, wide, ATTUNE_F32, "overlaps"},
      {0, 4, even, sizes, even, ATTUNE_F32, NULL}, /* even and odd elements */
      {0, 6, even, sizes, even, ATTUNE_F16, "overlaps"},
      {0, 0, packed, sizes, turned, ATTUNE_F32, "overlaps"},  /* the transpose in place */
      {0, 0, packed, single, packed, ATTUNE_F32, "overlaps"}, /* a row of the output itself, broadcast */
      {0, 400, none, sizes, packed, ATTUNE_F32, "stride 0"},
      {0, 400, crossed, sizes, packed, ATTUNE_F32, "overlap"},
  };
  for (size_t i = 0; i < AT_COUNT(cases); i++) {
    const at_view output = view_of(memory + 4096 + cases[i].at, ATTUNE_F32, 2, sizes, cases[i].strides);
    const at_view input =
        view_of(memory + 4096 + cases[i].other, cases[i].dtype, 2, cases[i].other_sizes, cases[i].other_strides);
    const attune_status status = at_operands_check(&shape, &output, 1, &input, 1);
    if (status != (cases[i].message ? ATTUNE_INVALID_ARGUMENT : ATTUNE_OK))
      fail_msg("case %zu gives %s: %s", i, attune_status_string(status), attune_last_message());
    if (cases[i].message && !strstr(attune_last_message(), cases[i].message))
      fail_msg("case %zu: \"%s\" lacks \"%s\"", i, attune_last_message(), cases[i].message);
  }
}

/* Never allowed if bytes are shared in any other way than in place: by comparing all bytes of small views. */
TEST(overlap_by_bytes) {
  const int64_t strides[] = {1, 2, 3, 6, -1, -6, 0};
  int allowed = 0;
  for (int code = 0; code < 7 * 7 * 7 * 7; code++)
    for (int shift = -8; shift <= 26; shift += 2) {
      const int64_t sizes[] = {3, 2}, own[] = {strides[code % 7], strides[code / 7 % 7]},
                    other[] = {strides[code / 49 % 7], strides[code / 343]};
      const at_shape shape = {2, {3, 2}};
      const at_view output = view_of(memory + 2048, ATTUNE_F16, 2, sizes, own);
      const at_view input = view_of(memory + 2048 + shift, ATTUNE_F16, 2, sizes, other);
      if (at_operands_check(&shape, &output, 1, &input, 1) != ATTUNE_OK) continue;
      allowed++;
      for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
          const int64_t x = 2 * (i / 2 * own[0] + i % 2 * own[1]),
                        y = shift + 2 * (j / 2 * other[0] + j % 2 * other[1]);
          const int64_t z = 2 * (j / 2 * own[0] + j % 2 * own[1]);
          if (i != j && x == z) fail_msg("elements of the output overlap");
          if (x == y && i != j) fail_msg("case %d shift %d: output and input share memory", code, shift);
        }
    }
  assert_true(allowed > 1000);
}

TEST(bad_operands) {
  const at_shape shape = {1, {8}}, other = {1, {1}}, empty = {2, {0, 5}};
  at_view output = at_view_packed(memory, ATTUNE_F32, &shape), input = at_view_packed(memory + 64, ATTUNE_F32, &shape);
  at_view two[] = {output, output};
  FAILS_SAYING(at_operands_check(&shape, two, 2, &input, 1), ATTUNE_INVALID_ARGUMENT, "output 0 overlaps output 1");
  input.data = memory + 65;
  FAILS(at_operands_check(&shape, &output, 1, &input, 1), ATTUNE_INVALID_ARGUMENT);
  input.data = NULL;
  input.name = "mask";
  FAILS_SAYING(at_operands_check(&shape, &output, 1, &input, 1), ATTUNE_INVALID_ARGUMENT, "mask");
  output.shape = other;
  FAILS(at_operands_check(&shape, &output, 1, NULL, 0), ATTUNE_INVALID_ARGUMENT);
  output.data = NULL;
  OK(at_operands_check(&empty, &output, 1, &input, 1)); /* nothing is touched */
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
