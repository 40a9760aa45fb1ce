/* SPDX-License-Identifier: Apache-2.0
 * lexer_number.c: 1, 0x1f, 1.5, 1e-3, 1.5j. */
#include <string.h>
#include <strings.h>

#include "ops/elementwise/language/source.h"

enum { DIGITS = 400 }; /* of a number */

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char byte_at(const at_source *source, size_t at) {
  return at < source->length ? source->text[at] : '\0';
}

static size_t skip_digits(const at_source *source, size_t at) {
  while (is_digit(byte_at(source, at))) at++;
  return at;
}

static attune_status too_large(const at_source *source, size_t at) {
  return at_fail_at(source, at,
                    "this integer is above 18446744073709551615; write a floating-point number, as in 1e20");
}

static attune_status read_integer(const at_source *source, size_t digits, size_t end, unsigned base, at_token *out) {
  uint64_t value = 0;
  for (size_t i = digits; i < end; i++) {
    const char c = source->text[i];
    const unsigned digit = is_digit(c) ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a') + 10;
    if (value > (UINT64_MAX - digit) / base) return too_large(source, out->at);
    value = value * base + digit;
  }
  out->dtype = value > INT64_MAX ? ATTUNE_U64 : ATTUNE_I64;
  out->constant = (at_constant){.integer = (int64_t)value};
  return ATTUNE_OK;
}

static attune_status read_real(const at_source *source, size_t end, bool imaginary, at_token *out) {
  char digits[DIGITS + 1];
  const size_t length = end - out->at;
  if (length > DIGITS)
    return at_fail_at(source, out->at, "this number has %zu characters; should have at most %d", length, DIGITS);
  memcpy(digits, source->text + out->at, length);
  digits[length] = '\0';
  double value = 0.0;
  if (at_read_number(&value, digits) == 0)
    return at_fail_at(source, out->at, "this number is above 1.8e308; write inf if infinity is meant");
  if (value == 0.0 && strcspn(digits, "123456789") < strcspn(digits, "eE"))
    return at_fail_at(source, out->at, "this number is below 4.9e-324; write 0.0 if zero is meant");
  out->dtype = imaginary ? ATTUNE_C128 : ATTUNE_F64;
  out->constant = imaginary ? (at_constant){.im = value} : (at_constant){.re = value};
  return ATTUNE_OK;
}

/* The dtype that a suffix of C has; NULL: it is none. */
static const char *dtype_of_suffix(const char *suffix, int length, bool real) {
  static const struct {
    const char *name, *dtype;
    bool real;
  } each[] = {{"f", "f32", true},   {"h", "f16", true},    {"d", "f64", true},    {"l", "f64", true},
              {"l", "i64", false},  {"ll", "i64", false},  {"u", "u32", false},   {"ul", "u64", false},
              {"lu", "u64", false}, {"ull", "u64", false}, {"llu", "u64", false}, {"f", "f32", false}};
  for (size_t i = 0; i < AT_COUNT(each); i++)
    if (each[i].real == real && (size_t)length == strlen(each[i].name) &&
        strncasecmp(suffix, each[i].name, (size_t)length) == 0)
      return each[i].dtype;
  return NULL;
}

/* Text directly after a number: "2.5f", "10L", "1_000", "0b1". */
static attune_status refuse_suffix(const at_source *source, size_t end, const at_token *number) {
  size_t stop = end;
  while (is_word(byte_at(source, stop))) stop++;
  const int shown = (int)(end - number->at > 24 ? 24 : end - number->at),
            suffix = (int)(stop - end > 16 ? 16 : stop - end);
  const char *digits = source->text + number->at, *rest = source->text + end;
  if (rest[0] == '_') return at_fail_at(source, end, "numbers contain no _; write the digits together");
  if (shown == 1 && digits[0] == '0' && strchr("bBoO", rest[0]))
    return at_fail_at(source, end, "integers are written in decimal or as 0x1f");
  if ((rest[0] | 32) == 'e')
    return at_fail_at(source, end, "the exponent has no digits; write %.*se3 or %.*se-3", shown, digits, shown, digits);
  const bool hex = shown > 1 && (digits[1] | 32) == 'x';
  const bool real = !hex && (memchr(digits, '.', (size_t)shown) || memchr(digits, 'e', (size_t)shown));
  const char *dtype = dtype_of_suffix(rest, suffix, real);
  if (dtype)
    return at_fail_at(source, end, "\"%.*s\" cannot follow a number; leave it out, or write %s(%.*s)", suffix, rest,
                      dtype, shown, digits);
  return at_fail_at(source, end, "\"%.*s\" cannot follow a number; write its dtype as a cast, as in f32(%.*s)", suffix,
                    rest, shown, digits);
}

static attune_status read_hex(const at_source *source, size_t at, at_token *out) {
  size_t end = at + 2;
  while (is_hex(byte_at(source, end))) end++;
  out->length = end - at;
  if (end == at + 2) return at_fail_at(source, at, "0x has no digits; write 0x1f");
  if (byte_at(source, end) == '.')
    return at_fail_at(source, end, "hexadecimal numbers are integers; write fractions as 1.5 or 1e-3");
  if (is_word(byte_at(source, end))) return refuse_suffix(source, end, out);
  return read_integer(source, at + 2, end, 16, out);
}

/* After the digits of the exponent, or where it began if it has none. */
static size_t skip_exponent(const at_source *source, size_t end) {
  if ((byte_at(source, end) | 32) != 'e') return end;
  const char sign = byte_at(source, end + 1);
  const size_t digits = end + (sign == '+' || sign == '-' ? 2 : 1);
  return is_digit(byte_at(source, digits)) ? skip_digits(source, digits) : end;
}

attune_status at_number_read(const at_source *source, size_t at, at_token *out) {
  *out = (at_token){.kind = AT_TOKEN_NUMBER, .at = at};
  if (byte_at(source, at) == '0' && (byte_at(source, at + 1) | 32) == 'x') return read_hex(source, at, out);
  const size_t whole = skip_digits(source, at);
  size_t end = whole;
  if (byte_at(source, end) == '.') end = skip_digits(source, end + 1);
  end = skip_exponent(source, end);
  const bool imaginary = byte_at(source, end) == 'j' && !is_word(byte_at(source, end + 1)), real = end != whole;
  out->length = end - at + imaginary;
  if (byte_at(source, end) == '.') return at_fail_at(source, end, "a number has one decimal point");
  if (!imaginary && is_word(byte_at(source, end))) return refuse_suffix(source, end, out);
  if (real || imaginary) return read_real(source, end, imaginary, out);
  if (whole - at > 1 && source->text[at] == '0')
    return at_fail_at(source, at, "an integer does not begin with 0; leave out the 0, or write hexadecimal as 0x1f");
  return read_integer(source, at, whole, 10, out);
}
