/* SPDX-License-Identifier: Apache-2.0
 * documented.h: what the pages in docs/ say of an operation: its columns, its words, its implementations with their
 * keys. Each function returns false, and says why in a message of the thread, where a page lacks it. */
#ifndef AT_TEST_DOCUMENTED_H
#define AT_TEST_DOCUMENTED_H

#include "tests/support/documented_page.h"
#include "tuning/op/registry.h"

/* In the operation's own part of the page, or in the part for all. */
static inline bool documented_word(const char *page, const char *all, const char *own, const char *word) {
  size_t length = 0;
  const char *part = documented_part(page, own, 3, &length);
  if (documented_row(part, length, word)) return true;
  part = documented_part(page, all, 3, &length);
  return documented_row(part, length, word);
}

/* Is it a word of a ".B a, b" line between the headings WORKLOADS and OUTPUT of the manual page? */
static inline bool documented_in_manual(const char *manual, const char *column) {
  const char *line = strstr(manual, "\n.SH WORKLOADS\n"), *end = strstr(manual, "\n.SH OUTPUT\n");
  const size_t chars = strlen(column);
  assert_true(line && end);
  for (line++; line < end; line += strcspn(line, "\n") + 1) {
    if (strncmp(line, ".B ", 3) != 0) continue;
    for (const char *word = line + 3; *word != '\n'; word += strcspn(word, " ,\n"), word += strspn(word, " ,"))
      if (strncmp(word, column, chars) == 0 && strchr(" ,\n", word[chars])) return true;
  }
  return false;
}

/* Each word of a problem's text: "nn", the key of "lda=8", both types of "bf16:f32"; sizes are "MxNxK"; "i3=" of
 * operand 3 is written as "i0=". What stands behind " : " is an expression, which has a page of its own. */
static inline bool documented_text(const at_op *op, const char *page, const char *text) {
  char own[64], words[AT_PROBLEM_CHARS], *rest = NULL;
  snprintf(own, sizeof own, "### Problem text of %s", op->name);
  assert_true(at_copy_text(words, sizeof words, text));
  char *behind = strstr(words, " : ");
  if (behind) *behind = '\0';
  bool value_is_next = false; /* what is behind a colon of a word with "=" is part of its value */
  for (char *c = words; *c; c++) {
    if (*c == ' ' || *c == '=') value_is_next = *c == '=';
    if (*c == ':' && value_is_next) *c = ',';
  }
  char *word = strtok_r(words, " :", &rest);
  while ((word = strtok_r(NULL, " :", &rest)) != NULL) {
    if (strspn(word, "0123456789x") == strlen(word)) continue;
    char *value = strchr(word, '=');
    if (documented_word(page, "## Problem text", own, word)) continue;
    if (value) value[1] = '\0';
    if (documented_word(page, "## Problem text", own, word)) continue;
    const char operand[] = {word[0], '0', '=', '\0'};
    if (strspn(word + 1, "0123456789") + 2 == strlen(word) && value &&
        documented_word(page, "## Problem text", own, operand))
      continue;
    (void)at_fail(ATTUNE_NOT_FOUND, "docs/formats.md, \"%s\", lacks `%s`", own, word);
    return false;
  }
  return true;
}

/* Each key of a configuration, under its implementation. */
static inline bool documented_configuration(const at_op *op, const char *page, const at_implementation *implementation,
                                            const at_configuration *configuration) {
  char heading[96], words[AT_CONFIGURATION_CHARS], *rest = NULL;
  size_t length = 0, own = 0;
  snprintf(heading, sizeof heading, "## %s", op->name);
  const char *part = documented_part(page, heading, 2, &length);
  snprintf(heading, sizeof heading, "### %s", implementation->name);
  const char *about = documented_part(part, heading, 3, &own);
  if (!length || !own || about + own > part + length) {
    (void)at_fail(ATTUNE_NOT_FOUND, "docs/configurations.md has no %s under \"## %s\"", heading, op->name);
    return false;
  }
  assert_true(at_copy_text(words, sizeof words, configuration->text));
  for (char *pair = strtok_r(words, ",", &rest); pair; pair = strtok_r(NULL, ",", &rest)) {
    const char *value = pair + strcspn(pair, "=") + 1;
    pair[strcspn(pair, "=")] = '\0';
    if (documented_row(about, own, pair)) {
      if (strcmp(pair, "product") != 0) continue; /* what follows is another implementation's configuration */
      snprintf(heading, sizeof heading, "### %s", value);
      about = documented_part(part, heading, 3, &own);
      if (own) continue;
    }
    (void)at_fail(ATTUNE_NOT_FOUND, "docs/configurations.md, \"%s\", lacks `%s`", heading, pair);
    return false;
  }
  return true;
}

#endif
