/* SPDX-License-Identifier: Apache-2.0
 * lexer.c: text to tokens. The only bytes that mean something are printable ASCII, blanks and line ends. */
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/language/source.h"
#include "src/base/dtype.h"

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The byte, or NUL after the end: no token has one. */
static char byte_at(const at_source *source, size_t at) {
  return at < source->length ? source->text[at] : '\0';
}

static size_t skip_blanks(const at_source *source, size_t at) {
  for (; at < source->length; at++) {
    const char c = source->text[at];
    if (c == '#') {
      const char *end = memchr(source->text + at, '\n', source->length - at);
      const char *stop = memchr(source->text + at, '\0', source->length - at);
      if (stop && (!end || stop < end)) return (size_t)(stop - source->text); /* refused, also in a comment */
      at = end ? (size_t)(end - source->text) : source->length - 1;
    } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      break;
    }
  }
  return at;
}

static size_t skip_name(const at_source *source, size_t at) {
  while (is_letter(byte_at(source, at)) || is_digit(byte_at(source, at))) at++;
  return at;
}

/* "torch.float32" is one name, a dtype's. */
static attune_status read_name(const at_source *source, size_t at, at_token *out) {
  size_t end = skip_name(source, at);
  if (byte_at(source, end) == '.' && is_letter(byte_at(source, end + 1))) {
    const size_t after = skip_name(source, end + 1);
    if (at_dtype_from_text(source->text + at, after - at)) end = after;
  }
  *out = (at_token){.kind = AT_TOKEN_NAME, .at = at, .length = end - at};
  if (out->length < AT_EXPRESSION_NAME) return ATTUNE_OK;
  return at_fail_at(source, at, "this name has %zu characters; should have at most %d", out->length,
                    AT_EXPRESSION_NAME - 1);
}

static attune_status refuse(const at_source *source, size_t at) {
  const unsigned char byte = (unsigned char)source->text[at];
  if (byte == 0)
    return at_fail_at(source, at, "the expression has a NUL byte at %zu of %zu; should be text", at, source->length);
  if (byte > 126)
    return at_fail_at(source, at, "byte %zu, 0x%02x, is not ASCII; should be letters, digits and operators", at, byte);
  if (byte < ' ')
    return at_fail_at(source, at, "byte %zu is the control character 0x%02x; should be a blank or a newline", at, byte);
  if (byte == '"' || byte == '\'')
    return at_fail_at(source, at,
                      "quotes have no meaning here; names of operands are written without them, as in a + b");
  return at_fail_at(source, at,
                    "the character %c has no meaning here; the operators are + - * / // %% ** and those of comparison, "
                    "logic and bits",
                    byte);
}

/* Of "torch.exp" and "x.float()". */
static attune_status refuse_dot(const at_source *source, size_t at) {
  const char *name = source->text + at + 1;
  const size_t length = skip_name(source, at + 1) - at - 1;
  if (length &&
      (at_function_find(name, length) >= 0 || at_special_find(name, length) || at_dtype_from_text(name, length)))
    return at_fail_at(source, at, "a dot occurs only in numbers, as in 1.5; write %.*s(...) with nothing before it",
                      (int)length, name);
  return at_fail_at(source, at, "a dot occurs only in numbers, as in 1.5; a function is called as gelu(x)");
}

/* The longest sign that begins here. */
static attune_status read_sign(const at_source *source, size_t at, at_token *out) {
  static const char *const doubles[] = {"||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "**", "//"};
  *out = (at_token){.kind = AT_TOKEN_SIGN, .at = at, .length = 2};
  for (size_t i = 0; i < AT_COUNT(doubles); i++)
    if (byte_at(source, at) == doubles[i][0] && byte_at(source, at + 1) == doubles[i][1]) return ATTUNE_OK;
  out->length = 1;
  const char c = source->text[at];
  return c && strchr("|&<>*/^+-%!~=()?:,;", c) ? ATTUNE_OK : refuse(source, at);
}

attune_status at_token_read(const at_source *source, size_t at, at_token *out) {
  at = skip_blanks(source, at);
  if (at >= source->length) {
    *out = (at_token){.kind = AT_TOKEN_END, .at = source->length};
    return ATTUNE_OK;
  }
  const char c = source->text[at];
  if (is_letter(c)) return read_name(source, at, out);
  if (is_digit(c) || (c == '.' && is_digit(byte_at(source, at + 1)))) return at_number_read(source, at, out);
  if (c == '.') return refuse_dot(source, at);
  return read_sign(source, at, out);
}
