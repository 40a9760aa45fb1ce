/* SPDX-License-Identifier: Apache-2.0
 * test_configuration.c: tunables as text, there and back; what is no configuration is not read as one. */
#include "tests/support/check.h"

#include "tuning/op/registry.h"

TEST(put_and_get) {
  at_configuration c = {""};
  int64_t number = 0;
  char text[32];
  assert_true(at_configuration_put_text(&c, "tile", "128x64"));
  assert_true(at_configuration_put_text(&c, "stages", "4"));
  assert_true(at_configuration_put_text(&c, "low", "-9223372036854775808"));
  assert_true(at_configuration_put_text(&c, "high", "9223372036854775807"));
  assert_string_equal(c.text, "tile=128x64,stages=4,low=-9223372036854775808,high=9223372036854775807");
  assert_true(at_configuration_get_text(&c, "tile", text, sizeof text));
  assert_string_equal(text, "128x64");
  assert_true(at_configuration_get(&c, "stages", &number) && number == 4);
  assert_true(at_configuration_get(&c, "low", &number) && number == INT64_MIN);
  assert_true(at_configuration_get(&c, "high", &number) && number == INT64_MAX);
  assert_false(at_configuration_get(&c, "tile", &number));
}

TEST(keys_match_whole) {
  const at_configuration c = {"stages=4,tag=stage=2,xsplit=7,split=3"};
  int64_t number = 0;
  char text[32];
  assert_false(at_configuration_get(&c, "stage", &number));
  assert_false(at_configuration_get(&c, "tages", &number));
  assert_true(at_configuration_get(&c, "split", &number) && number == 3);
  assert_false(at_configuration_get(&c, "", &number));
  assert_true(at_configuration_get_text(&c, "tag", text, sizeof text));
  assert_string_equal(text, "stage=2");
}

TEST(broken_text) {
  static const char *const texts[] = {
      "", ",", "=", "a", "a,=1,", "a=", "a= 1", "a=1x", "a=0x1", "a=9223372036854775808", "a=--1", "a =1"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    at_configuration c = {""};
    int64_t number = 77;
    snprintf(c.text, sizeof c.text, "%s", texts[i]);
    if (at_configuration_get(&c, "a", &number)) fail_msg("\"%s\" was read as %lld", texts[i], (long long)number);
  }
}

TEST(values_cannot_forge_keys) {
  at_configuration c = {""};
  assert_false(at_configuration_put_text(&c, "library", "openblas,threads=9"));
  assert_false(at_configuration_put_text(&c, "library", "a=b"));
  assert_string_equal(c.text, "");
}

/* A put that does not fit leaves all as it was. */
TEST(too_long) {
  at_configuration c = {""};
  char value[AT_CONFIGURATION_CHARS];
  memset(value, 'v', sizeof value);
  value[sizeof value - 1] = '\0';
  assert_false(at_configuration_put_text(&c, "k", value));
  assert_string_equal(c.text, "");
  value[AT_CONFIGURATION_CHARS - 3] = '\0'; /* "k=" and the value fill it */
  assert_true(at_configuration_put_text(&c, "k", value));
  assert_int_equal(strlen(c.text), AT_CONFIGURATION_CHARS - 1);
  assert_false(at_configuration_put_text(&c, "l", "1"));
  assert_int_equal(strlen(c.text), AT_CONFIGURATION_CHARS - 1);
}

TEST(small_out) {
  const at_configuration c = {"tile=128x64"};
  char text[7];
  assert_true(at_configuration_get_text(&c, "tile", text, 7));
  assert_string_equal(text, "128x64");
  assert_false(at_configuration_get_text(&c, "tile", text, 6));
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
