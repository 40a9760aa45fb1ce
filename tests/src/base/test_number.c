/* SPDX-License-Identifier: Apache-2.0
 * test_number.c: what is a number in a text, and which, in every locale. */
#include "tests/support/check.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <time.h>

#include "src/base/support.h"
#include "tuning/measure/search_settings.h"

TEST(integers) {
  static const struct {
    const char *text;
    size_t chars; /* that are read; 0: none */
    int64_t value;
  } cases[] = {{"0", 1, 0},
               {"-0", 2, 0},
               {"007x", 3, 7},
               {"12,34", 2, 12},
               {"-9223372036854775808", 20, INT64_MIN},
               {"9223372036854775807", 19, INT64_MAX},
               {"9223372036854775808", 0, 0},
               {"-9223372036854775809", 0, 0},
               {"99999999999999999999999999", 0, 0},
               {"", 0, 0},
               {"-", 0, 0},
               {"+1", 0, 0},
               {" 1", 0, 0},
               {"x", 0, 0},
               {"0x10", 1, 0}};
  for (size_t i = 0; i < AT_COUNT(cases); i++) {
    int64_t value = 77, whole = 77;
    const bool alone = cases[i].chars == strlen(cases[i].text) && cases[i].chars;
    assert_int_equal(at_read_i64(&value, cases[i].text), cases[i].chars);
    assert_true(value == (cases[i].chars ? cases[i].value : 77));
    assert_int_equal(at_parse_i64(&whole, cases[i].text), alone);
    assert_true(whole == (alone ? cases[i].value : 77));
  }
}

TEST(reals) {
  static const struct {
    const char *text;
    size_t chars;
    double value;
    bool decimal; /* at_parse_decimal takes it */
  } cases[] = {{"0", 1, 0.0, true},
               {"12.5", 4, 12.5, true},
               {".5", 2, 0.5, true},
               {"5.", 2, 5.0, true},
               {"0.1", 3, 0.1, true},
               {"9007199254740993", 16, 9007199254740992.0, true}, /* to the nearest, ties to even */
               {"0.30000000000000004", 19, 0.30000000000000004, true},
               {"-2.5", 4, -2.5, false},
               {"1e3", 3, 1000.0, false},
               {"1E-3x", 4, 1e-3, false},
               {"1e", 1, 1.0, false},
               {"1e+", 1, 1.0, false},
               {"1.7976931348623157e308", 22, DBL_MAX, false},
               {"1e309", 0, 0.0, false},
               {"-1e309", 0, 0.0, false},
               {"4.9e-324", 8, 4.9406564584124654e-324, false},
               {"1e-400", 6, 0.0, false},
               {"0x1p3", 1, 0.0, false},
               {"1,5", 1, 1.0, false},
               {"1.5.2", 3, 1.5, false},
               {"nan", 0, 0.0, false},
               {"inf", 0, 0.0, false},
               {"-inf", 0, 0.0, false},
               {"infinity", 0, 0.0, false},
               {"", 0, 0.0, false},
               {".", 0, 0.0, false},
               {"-", 0, 0.0, false},
               {".e3", 0, 0.0, false},
               {"+1", 0, 0.0, false},
               {" 1", 0, 0.0, false}};
  for (size_t i = 0; i < AT_COUNT(cases); i++) {
    double value = 77.0, whole = 77.0;
    errno = 5;
    assert_int_equal(at_read_number(&value, cases[i].text), cases[i].chars);
    if (value != (cases[i].chars ? cases[i].value : 77.0)) fail_msg("%s gives %.17g", cases[i].text, value);
    assert_int_equal(at_parse_decimal(&whole, cases[i].text), cases[i].decimal);
    assert_true(whole == (cases[i].decimal ? cases[i].value : 77.0));
    assert_int_equal(errno, 5);
  }
}

/* More digits than a double's range has: neither power nor sum overflows. */
TEST(many_digits) {
  static char text[4096];
  double value = 0.0;
  (void)snprintf(text, sizeof text, "0.%0*d", 380, 0);
  memset(text + 2, '9', 380);
  assert_true(at_parse_decimal(&value, text) && value == 1.0);
  (void)snprintf(text, sizeof text, "%0*d.5", 2000, 3);
  assert_true(at_parse_decimal(&value, text) && value == 3.5);
  (void)snprintf(text, sizeof text, "0.%0*d", 2000, 3);
  assert_true(at_parse_decimal(&value, text) && value == 0.0); /* below the least double */
  memset(text, '9', 309);
  text[309] = '\0';
  assert_false(at_parse_decimal(&value, text));
  text[308] = '\0';
  assert_true(at_parse_decimal(&value, text) && value == 1e308);
}

/* As ATTUNE_SEARCH has them. */
TEST(settings_hold_no_nan) {
  static const char *const names[] = {"warmup_ms", "candidate_ms", "tolerance"};
  for (size_t i = 0; i < AT_COUNT(names); i++) {
    char text[512];
    attune_search_options s = {0};
    (void)snprintf(text, sizeof text, "%s:0.%0*d", names[i], 380, 0);
    memset(text + strlen(names[i]) + 3, '9', 380);
    if (at_search_settings_parse(&s, text, "text") != ATTUNE_OK) continue;
    assert_true(isfinite(s.warmup_ms) && isfinite(s.candidate_ms) && isfinite(s.tolerance));
    assert_true(s.warmup_ms == (i == 0 ? 1.0 : 0.0) && s.candidate_ms == (i == 1 ? 1.0 : 0.0));
    assert_true(s.tolerance == (i == 2 ? 1.0 : 0.0));
  }
  attune_search_options s = {0};
  assert_int_equal(at_search_settings_parse(&s, "tolerance:nan", "text"), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(at_search_settings_parse(&s, "warmup_ms:inf", "text"), ATTUNE_INVALID_ARGUMENT);
}

/* A locale whose decimal point is a comma: the system's, else one that localedef makes here. */
static bool set_comma(void) {
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8"};
  for (size_t i = 0; i < AT_COUNT(names); i++)
    if (setlocale(LC_ALL, names[i])) return true;
  char folder[] = "/tmp/attune-number-XXXXXX", command[160];
  if (!mkdtemp(folder)) return false;
  (void)snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
  const bool made = system(command) == 0;
  setenv("LOCPATH", folder, 1);
  const bool set = made && setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
  (void)snprintf(command, sizeof command, "rm -rf -- %s", folder);
  return system(command) == 0 && set;
}

TEST(another_locale) {
  if (!set_comma()) {
    print_message("skipped: no locale with a decimal comma, and localedef cannot make one\n");
    skip();
  }
  assert_string_equal(localeconv()->decimal_point, ",");
  reals(NULL);
  integers(NULL);
  many_digits(NULL);
  settings_hold_no_nan(NULL);
  setlocale(LC_ALL, "C");
}

/* Dates without the C library's lock, beside the C library's. */
TEST(dates) {
  char own[AT_UTC_CHARS], other[64];
  for (int64_t i = -20000; i < 40000; i++) {
    const time_t when = (time_t)(i * 3155761 + i % 86401);
    struct tm parts;
    assert_non_null(gmtime_r(&when, &parts));
    assert_true(strftime(other, sizeof other, "%Y-%m-%d %H:%M:%S UTC", &parts) > 0);
    at_utc_text(own, when);
    if (parts.tm_year + 1900 >= 1000) assert_string_equal(own, other);
  }
  at_utc_text(own, INT64_MAX);
  assert_string_equal(own, "9999-12-31 23:59:59 UTC");
  at_utc_text(own, INT64_MIN);
  assert_string_equal(own, "0000-01-01 00:00:00 UTC");
}

TEST(times) {
  static const struct {
    double ns;
    int decimals;
    const char *text;
  } rows[] = {{8765.4321, 3, "8.765 us"}, {8765.4321, 1, "8.8 us"},
              {8765.4321, 0, "9 us"},     {0, 1, "0.0 ns"},
              {999.96, 1, "1000.0 ns"},   {-2.5e6, 1, "-2.5 ms"},
              {1e9, 3, "1.000 s"},        {3.6e12, 0, "3600 s"},
              {12.0046, 3, "12.005 ns"},  {(double)NAN, 1, "1000000000000000.0 ns"}};
  char text[AT_TIME_CHARS];
  for (size_t i = 0; i < AT_COUNT(rows); i++)
    assert_string_equal(at_time_text(text, rows[i].ns, rows[i].decimals), rows[i].text);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
