/* SPDX-License-Identifier: Apache-2.0
 * number.c: what is a number is decided here; its value is strtod's, in the C locale. */
#include "src/base/support.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static locale_t plain; /* (locale_t)0: there is none, and nothing is a real number */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_plain(void) {
  plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static size_t digits_of(const char *text) {
  return strspn(text, "0123456789");
}

size_t at_read_i64(int64_t *out, const char *text) {
  const size_t sign = *text == '-', digits = digits_of(text + sign);
  int64_t value = 0; /* kept negative: the smallest int64 has no positive twin */
  for (size_t i = sign; i < sign + digits; i++)
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, text[i] - '0', &value)) return 0;
  if (!digits || (!sign && value == INT64_MIN)) return 0;
  *out = sign ? value : -value;
  return sign + digits;
}

bool at_parse_i64(int64_t *out, const char *text) {
  int64_t value = 0;
  const size_t chars = at_read_i64(&value, text);
  if (!chars || text[chars]) return false;
  *out = value;
  return true;
}

/* Digits with a point among, before or behind them; 0: no digit. */
static size_t decimal_chars(const char *text) {
  const size_t whole = digits_of(text), point = text[whole] == '.', part = point ? digits_of(text + whole + 1) : 0;
  return whole + part ? whole + point + part : 0;
}

static size_t number_chars(const char *text) {
  const size_t sign = *text == '-', decimal = decimal_chars(text + sign), at = sign + decimal;
  if (!decimal) return 0;
  if (text[at] != 'e' && text[at] != 'E') return at;
  const size_t signs = text[at + 1] == '-' || text[at + 1] == '+', exponent = digits_of(text + at + 1 + signs);
  return exponent ? at + 1 + signs + exponent : at;
}

/* Of the first `chars` of the text, copied: strtod might see more in what follows, as in 0x1f. */
static bool value_of(double *out, const char *text, size_t chars) {
  char room[64], *copy = chars < sizeof room ? room : malloc(chars + 1);
  const int saved = errno;
  (void)pthread_once(&once, make_plain);
  if (!copy || !plain) {
    if (copy != room) free(copy);
    return false;
  }
  memcpy(copy, text, chars);
  copy[chars] = '\0';
  const double value = strtod_l(copy, NULL, plain);
  if (copy != room) free(copy);
  errno = saved;
  if (!isfinite(value)) return false;
  *out = value;
  return true;
}

size_t at_read_number(double *out, const char *text) {
  const size_t chars = number_chars(text);
  return chars && value_of(out, text, chars) ? chars : 0;
}

bool at_parse_decimal(double *out, const char *text) {
  const size_t chars = decimal_chars(text);
  return chars && !text[chars] && value_of(out, text, chars);
}
