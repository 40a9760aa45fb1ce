/* SPDX-License-Identifier: Apache-2.0
 * test_pad.c: the padding kernel's text and its arguments, run on the host: every byte that it writes, none that it
 * does not, and no load outside a source. */
#include "tests/ops/gemm/cublas/pad_on_host.h"

#include "tests/support/check.h"

#include "tests/support/pad_cases.h"

#define RANDOM_CASES 400

static void run_case(const pad_case *c, uint64_t *state, int number) {
  pad_memory memory[AT_PAD_MATRICES];
  unsigned char *source[AT_PAD_MATRICES], *destination[AT_PAD_MATRICES];
  at_pad_copy copies[AT_PAD_MATRICES];
  at_pad_arguments arguments;
  uint32_t blocks = 0;
  memset(source_range, 0, sizeof source_range);
  for (int i = 0; i < c->count; i++) {
    assert_true(pad_make(&memory[i], c, i, state));
    copies[i] = memory[i].copy;
  }
  assert_true(at_pad_plan(&arguments, copies, c->count, c->grain, &blocks));
  for (int i = 0; i < c->count; i++) {
    source[i] = aligned_alloc(16, (memory[i].source_bytes + 15) / 16 * 16);
    destination[i] = aligned_alloc(16, (memory[i].destination_bytes + 15) / 16 * 16);
    assert_non_null(source[i]);
    assert_non_null(destination[i]);
    memcpy(source[i], memory[i].source, memory[i].source_bytes);
    memset(destination[i], PAD_UNTOUCHED, memory[i].destination_bytes);
    arguments.matrix[i].source = source[i] + memory[i].source_offset;
    arguments.matrix[i].destination = destination[i] + memory[i].destination_offset;
    source_range[i].begin = arguments.matrix[i].source;
    source_range[i].end = (const char *)source[i] + memory[i].source_bytes;
  }
  pad_on_host(&arguments, c->grain, blocks);
  for (int i = 0; i < c->count; i++) {
    for (size_t b = 0; b < memory[i].destination_bytes; b++)
      if (destination[i][b] != memory[i].expected[b])
        fail_msg("case %d, matrix %d, byte %zu of %zu is %d; should be %d", number, i, b, memory[i].destination_bytes,
                 destination[i][b], memory[i].expected[b]);
    free(source[i]);
    free(destination[i]);
    pad_free(&memory[i]);
  }
  assert_int_equal(loads_outside, 0);
}

TEST(listed_cases) {
  uint64_t seed = 1;
  for (size_t i = 0; i < AT_COUNT(pad_cases); i++) run_case(&pad_cases[i], &seed, (int)i);
}

TEST(random_cases) {
  uint64_t seed = 2;
  for (int i = 0; i < RANDOM_CASES; i++) {
    const pad_case c = pad_random_case(&seed);
    run_case(&c, &seed, i);
  }
}

/* The last matrices may be left out by a smaller grid. */
TEST(a_smaller_grid) {
  const pad_case c = {{2, 2}, 2, {{40, 30, 1, 0, 0, 1, false, 0}, {50, 30, 1, 0, 0, 1, false, 0}}, 2};
  uint64_t seed = 3;
  pad_memory memory[2];
  at_pad_copy copies[2];
  at_pad_arguments arguments;
  uint32_t blocks = 0;
  for (int i = 0; i < 2; i++) {
    assert_true(pad_make(&memory[i], &c, i, &seed));
    copies[i] = memory[i].copy;
  }
  assert_true(at_pad_plan(&arguments, copies, 2, 2, &blocks));
  assert_true(arguments.matrix[1].first_block > 0 && arguments.matrix[1].first_block < blocks);
  unsigned char *destination = aligned_alloc(16, (memory[0].destination_bytes + 15) / 16 * 16);
  unsigned char *source = aligned_alloc(16, (memory[0].source_bytes + 15) / 16 * 16);
  assert_non_null(destination);
  assert_non_null(source);
  memset(destination, PAD_UNTOUCHED, memory[0].destination_bytes);
  memcpy(source, memory[0].source, memory[0].source_bytes);
  memset(source_range, 0, sizeof source_range);
  source_range[0].begin = (char *)source;
  source_range[0].end = (char *)source + memory[0].source_bytes;
  arguments.matrix[0].source = source + memory[0].source_offset;
  arguments.matrix[0].destination = destination + memory[0].destination_offset;
  pad_on_host(&arguments, 2, arguments.matrix[1].first_block);
  assert_memory_equal(destination, memory[0].expected, memory[0].destination_bytes);
  assert_int_equal(loads_outside, 0);
  free(destination);
  free(source);
  for (int i = 0; i < 2; i++) pad_free(&memory[i]);
}

TEST(bad_sizes) {
  at_pad_arguments arguments;
  uint32_t blocks;
  at_pad_copy copy = {
      .rows = 1, .cols = 1, .batch = 1, .ld_source = 1, .ld_destination = 8, .element = 2, .fill = true};
  assert_true(at_pad_plan(&arguments, &copy, 1, 2, &blocks));
  assert_false(at_pad_plan(&arguments, &copy, 0, 2, &blocks));
  copy.rows = 0;
  assert_false(at_pad_plan(&arguments, &copy, 1, 2, &blocks));
  copy.rows = (int64_t)1 << 31;
  assert_false(at_pad_plan(&arguments, &copy, 1, 2, &blocks));
  copy.rows = 1;
  copy.cols = (int64_t)1 << 31;
  assert_false(at_pad_plan(&arguments, &copy, 1, 2, &blocks));
  assert_null(at_pad_source(1));
  assert_null(at_pad_source(16));
  assert_non_null(at_pad_source(8));
}

/* The division by multiplication, around every multiple of some divisors. */
TEST(division) {
  const uint32_t divisors[] = {1,    2,     3,     5,       7,          125,        126,       127,
                               1000, 65535, 65537, 1000003, 0x3fffffff, 0x40000001, 0x7fffffff};
  for (size_t i = 0; i < AT_COUNT(divisors); i++) {
    const uint32_t d = divisors[i];
    at_pad_arguments arguments;
    uint32_t blocks;
    const at_pad_copy copy = {
        .rows = 1, .cols = d, .batch = 1, .ld_source = 1, .ld_destination = 8, .element = 2, .fill = true};
    assert_true(at_pad_plan(&arguments, &copy, 1, 2, &blocks));
    const at_pad_divider by = arguments.matrix[0].by_columns;
    const uint32_t steps = 0x7fffffffu / d < 2000 ? 0x7fffffffu / d : 2000;
    for (uint32_t s = 0; s <= steps; s++)
      for (int64_t near = -1; near <= 1; near++) {
        const int64_t n = (int64_t)((uint64_t)(0x7fffffffu / d) * s / (steps ? steps : 1)) * d + near;
        if (n < 0 || n > 0x7fffffff) continue;
        assert_int_equal(divide_2((unsigned)n, (struct divider_2){by.factor, by.shift}), (unsigned)n / d);
      }
  }
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
