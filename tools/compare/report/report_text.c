/* SPDX-License-Identifier: Apache-2.0
 * report_text.c: text from elsewhere (names, messages, revisions) as a report may show it. A name is whatever a user's
 * program says; in a report it stays text, in one line, and cannot reverse the order of the text next to it. */
#include "tools/compare/report/report_text.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a character that begins with `byte`, and the bits of that byte that belong to its number; 0: none begins
 * so. */
static int sequence(unsigned char byte, uint32_t *bits) {
  const int length = byte < 0x80 ? 1 : byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 0;
  *bits = length == 1 ? byte : length == 2 ? byte & 0x1Fu : length == 3 ? byte & 0x0Fu : byte & 0x07u;
  return length;
}

/* Control characters, direction controls, what has no width, surrogates and what Unicode says is no character. */
static bool is_hidden(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x061C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || (c >= 0xD800 && c <= 0xDFFF) ||
         (c >= 0xFDD0 && c <= 0xFDEF) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) || (c & 0xFFFE) == 0xFFFE ||
         (c >= 0xE0000 && c <= 0xE0FFF);
}

uint32_t gate_character(const char **text, bool *hidden) {
  const unsigned char *at = (const unsigned char *)*text;
  uint32_t character;
  const int length = sequence(*at, &character);
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  int have = length ? 1 : 0;
  while (have && have < length && (at[have] & 0xC0) == 0x80) character = character << 6 | (at[have++] & 0x3Fu);
  if (!have || have < length || character < least[length] || character > 0x10FFFF ||
      (character >= 0xD800 && character <= 0xDFFF)) {
    *text += 1;
    *hidden = true;
    return *at;
  }
  *text += length;
  *hidden = is_hidden(character);
  return character;
}

int gate_character_width(uint32_t c) {
  if ((c >= 0x0300 && c <= 0x036F) || (c >= 0x20D0 && c <= 0x20FF) || (c >= 0xFE00 && c <= 0xFE0F)) return 0;
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
                    (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                    (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

/* Whatever means something to Markdown, or makes GitHub link or mention a user: an entity is text and never
 * structure. */
static void put_ascii(FILE *out, gate_markup markup, char c) {
  const char *special = markup == GATE_MARKDOWN ? "\\`*_{}[]()<>|~&!:.$\"'" : markup == GATE_XML ? "&<>\"'" : "";
  /* Names of people and numbers of issues are looked for after entities were read, in the text between two tags. */
  if (markup == GATE_MARKDOWN && (c == '@' || c == '#'))
    fprintf(out, "<span>%c</span>", c);
  else if (strchr(special, c))
    fprintf(out, "&#%d;", c);
  else
    fputc(c, out);
}

static void put_plain(FILE *out, gate_markup markup, const char *text) {
  while (*text) put_ascii(out, markup, *text++);
}

void gate_put(FILE *out, gate_markup markup, const char *text, size_t most) {
  for (size_t count = 0; text && *text; count++) {
    if (most && count == most) {
      fputs("...", out);
      return;
    }
    const char *from = text;
    bool hidden;
    const uint32_t character = gate_character(&text, &hidden);
    if (hidden || (markup == GATE_ASCII && character > 0x7F)) {
      char number[16];
      snprintf(number, sizeof number,
               character < 0x100    ? "\\x%02x"
               : character > 0xFFFF ? "\\U%08x"
                                    : "\\u%04x",
               (unsigned)character);
      put_plain(out, markup, number);
    } else if (character < 0x80) {
      put_ascii(out, markup, (char)character);
    } else {
      fwrite(from, 1, (size_t)(text - from), out);
    }
  }
}

char *gate_text(gate_markup markup, const char *text) {
  char *result = NULL;
  size_t size;
  FILE *out = open_memstream(&result, &size);
  if (!out) return NULL;
  gate_put(out, markup, text, 0);
  if (fclose(out) == 0) return result;
  free(result);
  return NULL;
}

bool gate_written(FILE *out) {
  return fflush(out) == 0 && !ferror(out);
}
