/* SPDX-License-Identifier: Apache-2.0
 * test_float8.c: every 8-bit float against its definition, there and back, and rounding at every middle of two. */
#include "tests/support/check.h"

#include <math.h>

#include "src/base/float8.h"

/* sign, exponent, mantissa as the OCP specification has them. */
static double e4m3(int b) {
  const int exponent = b >> 3 & 15, mantissa = b & 7;
  const double magnitude = (b & 0x7f) == 0x7f ? (double)NAN
                           : exponent         ? ldexp(8 + mantissa, exponent - 10)
                                              : ldexp(mantissa, -9);
  return b & 0x80 ? -magnitude : magnitude;
}

static double e5m2(int b) {
  const int exponent = b >> 2 & 31, mantissa = b & 3;
  const double magnitude = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
                           : exponent     ? ldexp(4 + mantissa, exponent - 17)
                                          : ldexp(mantissa, -16);
  return b & 0x80 ? -magnitude : magnitude;
}

TEST(every_value) {
  for (int b = 0; b < 256; b++) {
    const double four = e4m3(b), five = e5m2(b);
    const float to_four = at_f8e4m3_to_f32((uint8_t)b), to_five = at_f8e5m2_to_f32((uint8_t)b);
    assert_true(four != four ? to_four != to_four : (double)to_four == four);
    assert_true(five != five ? to_five != to_five : (double)to_five == five);
    assert_int_equal(signbit(to_four) != 0, b >> 7);
    assert_int_equal(signbit(to_five) != 0, b >> 7);
    assert_int_equal(at_f64_to_f8e4m3((double)to_four), b);
    assert_int_equal(at_f64_to_f8e5m2((double)to_five), five != five ? (b & 0x80) | 0x7f : b);
  }
}

TEST(every_middle) {
  for (int b = 0; b < 0x7e; b++) {
    const double low = e4m3(b), high = e4m3(b + 1), middle = (low + high) / 2.0;
    assert_int_equal(at_f64_to_f8e4m3(nextafter(middle, low)), b);
    assert_int_equal(at_f64_to_f8e4m3(nextafter(middle, high)), b + 1);
    assert_int_equal(at_f64_to_f8e4m3(middle), b + b % 2);
    assert_int_equal(at_f64_to_f8e4m3(-middle), 0x80 | (b + b % 2));
  }
  for (int b = 0; b < 0x7c; b++) {
    const double low = e5m2(b), high = b == 0x7b ? 65536.0 : e5m2(b + 1), middle = (low + high) / 2.0;
    assert_int_equal(at_f64_to_f8e5m2(nextafter(middle, low)), b);
    assert_int_equal(at_f64_to_f8e5m2(nextafter(middle, high)), b + 1);
    assert_int_equal(at_f64_to_f8e5m2(middle), b + b % 2);
    assert_int_equal(at_f64_to_f8e5m2(-middle), 0x80 | (b + b % 2));
  }
}

/* Above the largest number: half way to the next one that would be still rounds down in E4M3, since its last bit is
 * even. */
TEST(overflow) {
  assert_int_equal(at_f64_to_f8e4m3(464.0), 0x7e);
  assert_int_equal(at_f64_to_f8e4m3(nextafter(464.0, 500.0)), 0x7f);
  assert_int_equal(at_f64_to_f8e4m3(-1e300), 0xff);
  assert_int_equal(at_f64_to_f8e4m3((double)INFINITY), 0x7f);
  assert_int_equal(at_f64_to_f8e4m3(-1e-300), 0x80);
  assert_int_equal(at_f64_to_f8e5m2(1e300), 0x7c);
  assert_int_equal(at_f64_to_f8e5m2(-(double)INFINITY), 0xfc);
  assert_int_equal(at_f64_to_f8e5m2(-1e-300), 0x80);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
