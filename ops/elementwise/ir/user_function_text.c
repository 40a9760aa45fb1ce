/* SPDX-License-Identifier: Apache-2.0
 * user_function_text.c: see user_function.h. It is no parser: where in doubt, a text keeps what it has. */
#include "ops/elementwise/ir/user_function.h"

#include <stdlib.h>
#include <string.h>

typedef struct writer {
  const char *name;
  size_t name_chars;
  bool rename;
  char *out;
  size_t used;
} writer;

static bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Of names and numbers, which blanks hold apart. */
static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' || c == '$' ||
         (unsigned char)c >= 0x80;
}

/* Characters that stand for themselves, whatever is next to them. */
static bool is_alone(char c) {
  return strchr("(){}[],;", c) != NULL;
}

/* Skips blanks and comments; NULL: a comment has no end. */
static const char *skip(const char *at) {
  for (;;) {
    while (is_blank(*at)) at++;
    if (at[0] == '/' && at[1] == '/') {
      at += strcspn(at, "\n");
    } else if (at[0] == '/' && at[1] == '*') {
      at = strstr(at + 2, "*/");
      if (!at) return NULL;
      at += 2;
    } else {
      return at;
    }
  }
}

/* Text whose blanks and comments say nothing. */
static bool is_plain(const char *text) {
  if (strpbrk(text, "#\"'\\") || strstr(text, "%:") || strstr(text, "?\?")) return false;
  for (const char *at = text; *at; at++) {
    if (at[0] != '/' || (at[1] != '/' && at[1] != '*')) continue;
    at = skip(at);
    if (!at) return false;
    if (!*at) break;
    at--;
  }
  return true;
}

static size_t word_chars(const char *at) {
  size_t chars = 0;
  while (is_word(at[chars])) chars++;
  return chars;
}

static bool is_name(const writer *w, const char *at, size_t chars) {
  return chars == w->name_chars && memcmp(at, w->name, chars) == 0;
}

/* "x.name" is one word here. */
static bool has_part(const writer *w, const char *at, size_t chars) {
  for (size_t i = 1; i + w->name_chars <= chars; i++) {
    const size_t end = i + w->name_chars;
    if (at[i - 1] == '.' && memcmp(at + i, w->name, w->name_chars) == 0 && (end == chars || at[end] == '.'))
      return true;
  }
  return false;
}

/* Is every use of the name that of the function, and the new name free? A member or a qualified name may be
 * another's. */
static bool may_rename(const writer *w, const char *text) {
  char before = 0, last = 0;
  for (const char *at = skip(text); *at;) {
    const size_t chars = word_chars(at);
    const bool member = last == '.' || (before == '-' && last == '>') || (before == ':' && last == ':');
    if (chars >= strlen(AT_USER_FUNCTION_NAME) &&
        strncmp(at, AT_USER_FUNCTION_NAME, strlen(AT_USER_FUNCTION_NAME)) == 0)
      return false;
    if (is_name(w, at, chars) && member) return false;
    if (has_part(w, at, chars)) return false;
    before = chars == 1 || chars == 0 ? last : 0;
    last = chars ? at[chars - 1] : *at;
    at = skip(at + (chars ? chars : 1));
  }
  return true;
}

/* 0xe + 1: without the blank it would be one number. */
static bool is_open_number(const writer *w, char next) {
  size_t first = w->used;
  if ((next != '+' && next != '-') || !strchr("eEpP", w->out[w->used - 1])) return false;
  while (first > 0 && is_word(w->out[first - 1])) first--;
  return is_digit(w->out[first]) || w->out[first] == '.';
}

static bool needs_blank(const writer *w, char next) {
  if (w->used == 0) return false;
  const char last = w->out[w->used - 1];
  if (is_alone(last) || is_alone(next)) return false;
  return is_word(last) == is_word(next) || is_open_number(w, next);
}

static void put_words(writer *w, const char *text) {
  for (const char *at = skip(text), *next; *at; at = next) {
    const size_t own = word_chars(at), chars = own ? own : 1;
    const bool renamed = w->rename && is_name(w, at, chars);
    const size_t length = renamed ? strlen(AT_USER_FUNCTION_NAME) : chars;
    memcpy(w->out + w->used, renamed ? AT_USER_FUNCTION_NAME : at, length);
    w->used += length;
    next = skip(at + chars);
    if (next != at + chars && *next && needs_blank(w, *next)) w->out[w->used++] = ' ';
  }
  w->out[w->used] = '\0';
}

char *at_user_function_text(const char *text, const char *name, bool *renamed) {
  writer w = {.name = name, .name_chars = strlen(name)};
  *renamed = false;
  if (!is_plain(text)) return strdup(text);
  w.rename = may_rename(&w, text);
  /* A name grows by less than its new length, and has at least one character. */
  w.out = malloc(strlen(text) * (w.rename ? strlen(AT_USER_FUNCTION_NAME) + 1 : 1) + 1);
  if (!w.out) return NULL;
  put_words(&w, text);
  *renamed = w.rename;
  return w.out;
}
