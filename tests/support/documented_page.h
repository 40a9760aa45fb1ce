/* SPDX-License-Identifier: Apache-2.0
 * documented_page.h: a page of docs/: its parts, and the first cells of their tables. */
#ifndef AT_TEST_DOCUMENTED_PAGE_H
#define AT_TEST_DOCUMENTED_PAGE_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

/* Of docs/, whole. The caller frees it. */
static inline char *documented_page(const char *name) {
  char path[512];
  snprintf(path, sizeof path, AT_SOURCE_DIR "/docs/%s", name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  char *text = calloc(1, 1 << 16);
  assert_non_null(text);
  const size_t bytes = fread(text, 1, (1 << 16) - 1, file);
  fclose(file);
  assert_in_range(bytes, 1, (1 << 16) - 2);
  return text;
}

/* From behind the line `heading` to the next heading of `level` or less. *length is 0: there is none. */
static inline const char *documented_part(const char *page, const char *heading, int level, size_t *length) {
  const size_t chars = strlen(heading);
  const char *line = page, *begin = NULL;
  bool code = false;
  *length = 0;
  for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
    if (strncmp(line, "```", 3) == 0) code = !code;
    const size_t marks = code ? 0 : strspn(line, "#");
    if (!begin && strncmp(line, heading, chars) == 0 && line[chars] == '\n')
      begin = line + chars + 1;
    else if (begin && marks > 0 && marks <= (size_t)level)
      break;
  }
  if (begin) *length = (size_t)(line - begin);
  return begin ? begin : page;
}

/* Do the first cells of the part's tables have `word` in backquotes? */
static inline bool documented_row(const char *part, size_t length, const char *word) {
  char quoted[128];
  snprintf(quoted, sizeof quoted, "`%s`", word);
  for (const char *line = part; line < part + length; line += strcspn(line, "\n") + 1) {
    const char *found = strncmp(line, "| `", 3) == 0 ? strstr(line, quoted) : NULL;
    const char *cell = strchr(line + 2, '|');
    if (found && cell && found < cell) return true;
  }
  return false;
}

/* The words in backquotes in the first cells of the part's tables. */
static inline void documented_each(const char *part, size_t length, void (*each)(void *user, const char *word),
                                   void *user) {
  for (const char *line = part; line < part + length; line += strcspn(line, "\n") + 1) {
    const char *end = strncmp(line, "| `", 3) == 0 ? strchr(line + 2, '|') : NULL;
    for (const char *quote = end ? strchr(line, '`') : NULL; quote && quote < end; quote = strchr(quote, '`')) {
      char word[128] = "";
      const size_t chars = strcspn(quote + 1, "`");
      assert_in_range(chars, 1, sizeof word - 1);
      memcpy(word, quote + 1, chars);
      each(user, word);
      quote += chars + 2;
    }
  }
}

#endif
