/* SPDX-License-Identifier: Apache-2.0
 * text.c: text from elsewhere (names, paths, problems) as a terminal may show it: what it would obey, reorder or not
 * show is written as an escape; how wide text is; padding and cutting. */
#include "tools/cli/cli.h"
#include "tools/cli/commands.h"

#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

bool cli_utf8(void) {
  return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Characters that change the order of others or stand for nothing that is seen: Unicode's bidirectional controls, zero
 * width spaces and joiners, line and paragraph separators, tags and the byte order mark. */
static bool invisible(wchar_t c) {
  return c == 0x00AD || c == 0x061C || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE007F);
}

/* The next character of *text, moving it; false: it must be escaped, and *character is its number or its byte. */
static bool next_character(const char **text, wchar_t *character, bool *byte) {
  mbstate_t state = {0};
  size_t bytes = mbrtowc(character, *text, strlen(*text), &state);
  *byte = bytes == (size_t)-1 || bytes == (size_t)-2 || bytes == 0;
  if (*byte) {
    *character = (unsigned char)**text;
    bytes = 1;
  }
  *text += bytes;
  return !*byte && !invisible(*character) && wcwidth(*character) >= 0;
}

char *cli_clean(const char *text) {
  char *clean = cli_alloc(strlen(text) * 4 + 16, 1), *to = clean;
  while (*text) {
    const char *from = text;
    wchar_t character;
    bool byte;
    if (next_character(&text, &character, &byte)) {
      memcpy(to, from, (size_t)(text - from));
      to += text - from;
    } else {
      /* A character of several bytes is at least two, so four times the text is room enough. */
      to += sprintf(to,
                    byte || character < 0x80 ? "\\x%02lx"
                    : character > 0xFFFF     ? "\\U%08lx"
                                             : "\\u%04lx",
                    (unsigned long)character);
    }
  }
  *to = '\0';
  return clean;
}

static int clean_width(const char *clean) {
  int total = 0;
  for (wchar_t character; *clean;) {
    bool byte;
    (void)next_character(&clean, &character, &byte);
    total += wcwidth(character) > 0 ? wcwidth(character) : 0;
  }
  return total;
}

int cli_width(const char *text) {
  char *clean = cli_clean(text);
  const int width = clean_width(clean);
  free(clean);
  return width;
}

static void print_clean(FILE *out, const char *clean, int width, bool right, bool cut) {
  const int total = clean_width(clean), room = width ? width : total;
  const bool mark = cut && total > room;
  const int keep = mark ? room - 1 : total;
  if (right && total < room) fprintf(out, "%*s", room - total, "");
  int printed = 0;
  while (*clean) {
    const char *from = clean;
    wchar_t character;
    bool byte;
    (void)next_character(&clean, &character, &byte);
    const int step = wcwidth(character) > 0 ? wcwidth(character) : 0;
    if (printed + step > keep) break;
    fwrite(from, 1, (size_t)(clean - from), out);
    printed += step;
  }
  if (mark) fputs(cli_utf8() ? "\u2026" : "~", out);
  printed += mark;
  if (!right && printed < room) fprintf(out, "%*s", room - printed, "");
}

void cli_print_padded(FILE *out, const char *text, int width, bool right, bool cut) {
  char *clean = cli_clean(text);
  print_clean(out, clean, width, right, cut);
  free(clean);
}

/* --- numbers of options: decimal, in one form for all commands, with messages that say the unit and the bounds --- */

/* strtod alone takes blanks, a plus, hexadecimal numbers, "inf" and "nan". */
bool cli_read_number(const char *text, double *out) {
  char *end = NULL;
  if (strspn(text, "0123456789.eE+-") != strlen(text) || *text == '+' || !*text) return false;
  errno = 0;
  *out = strtod(text, &end);
  return !*end && isfinite(*out);
}

double cli_positive(const char *option, const char *text, const char *unit, double most,
                    const struct argp_state *state) {
  double value = 0;
  if (!cli_read_number(text, &value) || !(value > 0 && value <= most))
    cli_bad_usage(state, "--%s is \"%s\"; should be a number of %s above 0, at most %.0f", option, text, unit, most);
  return value;
}

uint64_t cli_whole(const char *option, const char *text, uint64_t least, uint64_t most, const char *note,
                   const struct argp_state *state) {
  char *end = NULL;
  errno = 0;
  const unsigned long long value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
  if (!end || *end || errno || value < least || value > most)
    cli_bad_usage(state, "--%s is \"%s\"; should be a whole number, %llu to %llu%s", option, text,
                  (unsigned long long)least, (unsigned long long)most, note);
  return value;
}

void *cli_alloc(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (memory) return memory;
  fputs("attune: out of memory\n", stderr);
  exit(CLI_FAILED);
}
