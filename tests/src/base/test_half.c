/* SPDX-License-Identifier: Apache-2.0
 * test_half.c: every half to f32 and back, and rounding at every middle between two neighbours. */
#include "tests/support/check.h"

#include <math.h>

#include "src/base/half.h"

TEST(test_half_round_trip) {
  for (uint32_t h = 0; h < 65536; h++) {
    float x = at_f16_to_f32((uint16_t)h), y = at_bf16_to_f32((uint16_t)h);
    uint16_t quiet16 = (uint16_t)(x != x ? h | 0x200u : h), quietb = (uint16_t)(y != y ? h | 0x40u : h);
    assert_int_equal(at_f32_to_f16(x), quiet16);
    assert_int_equal(at_f64_to_f16((double)x), quiet16);
    assert_int_equal(at_f32_to_bf16(y), quietb);
    assert_int_equal(at_f64_to_bf16((double)y), quietb);
  }
}

/* Between two neighbours: below the middle down, above it up, in the middle to even; the middle is exact in f64. */
TEST(test_half_rounding) {
  for (uint32_t h = 0; h < 0x7c00u; h++) {
    double low = (double)at_f16_to_f32((uint16_t)h);
    double high = h == 0x7bffu ? 65536.0 : (double)at_f16_to_f32((uint16_t)(h + 1));
    double middle = (low + high) / 2.0;
    assert_int_equal(at_f64_to_f16(nextafter(middle, low)), h);
    assert_int_equal(at_f64_to_f16(nextafter(middle, high)), h + 1);
    assert_int_equal(at_f64_to_f16(middle), h % 2 == 0 ? h : h + 1);
    assert_int_equal(at_f64_to_f16(-middle), 0x8000u | (h % 2 == 0 ? h : h + 1));
  }
  for (uint32_t h = 0; h < 0x7f80u; h++) {
    double low = (double)at_bf16_to_f32((uint16_t)h);
    double high = h == 0x7f7fu ? 0x1p128 : (double)at_bf16_to_f32((uint16_t)(h + 1));
    double middle = (low + high) / 2.0;
    assert_int_equal(at_f64_to_bf16(nextafter(middle, low)), h);
    assert_int_equal(at_f64_to_bf16(nextafter(middle, high)), h + 1);
    assert_int_equal(at_f64_to_bf16(middle), h % 2 == 0 ? h : h + 1);
    if (h != 0) assert_int_equal(at_f32_to_bf16((float)middle), h % 2 == 0 ? h : h + 1);
  }
  assert_int_equal(at_f64_to_f16(1e300), 0x7c00);
  assert_int_equal(at_f64_to_f16(-1e-300), 0x8000);
  assert_int_equal(at_f64_to_bf16(1e300), 0x7f80);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
