/* SPDX-License-Identifier: Apache-2.0
 * problem_text.c: see problem_text.h. */
#include "tuning/op/problem_text.h"

#include <stdio.h>
#include <string.h>

static const char *const ACCURACIES[] = {"strict", "equivalent", "reduced"};

bool at_text_put_accuracy(char *out, size_t size, size_t *at, attune_accuracy accuracy, bool deterministic) {
  return at_append(out, size, at, " %s%s", ACCURACIES[accuracy], deterministic ? " deterministic" : "");
}

bool at_text_put_limits(char *out, size_t size, size_t *at, uint8_t alignment, uint64_t workspace_cap) {
  if (alignment != AT_ALIGNMENT && !at_append(out, size, at, " align=%d", alignment)) return false;
  return workspace_cap == ATTUNE_WORKSPACE_DEFAULT ||
         at_append(out, size, at, " workspace=%llu", (unsigned long long)workspace_cap);
}

attune_status at_text_too_small(size_t size) {
  return AT_INVALID("out has %zu bytes, too few for the problem's text; should have %d", size, AT_PROBLEM_CHARS);
}

/* Expected form of the next word. */
typedef struct reader {
  const at_word_kind *kinds;
  int count, kind; /* the kind of the next word; the last one stays */
  void *into;
} reader;

/* *out: the first optional kind that the word is not of; NULL: none. */
static bool read_word(reader *r, char *word, const char **out) {
  *out = NULL;
  for (; r->kind < r->count - 1 && r->kinds[r->kind].optional; r->kind++) {
    if (!r->kinds[r->kind].read(word, r->into)) {
      if (!*out) *out = r->kinds[r->kind].expected;
      continue;
    }
    r->kind++;
    return true;
  }
  const bool ok = r->kinds[r->kind].read(word, r->into);
  if (ok && r->kind < r->count - 1) r->kind++;
  return ok;
}

bool at_text_too_large(const char *word) {
  static const char most[] = "9223372036854775807";
  for (size_t chars = 0; *word; word += chars ? chars : 1) {
    word += strspn(word, "0");
    chars = strspn(word, "0123456789");
    if (chars >= sizeof most || (chars == sizeof most - 1 && memcmp(word, most, chars) > 0)) return true;
    if (!*word) break;
  }
  return false;
}

/* What is wrong with a word whose form is known, but not its value; NULL: no such word. */
static const char *wrong_with(const char *word) {
  if (at_text_too_large(word)) return "a number in it is too large; should be at most 9223372036854775807";
  if (strncmp(word, "align=", 6) == 0) return "should be align= and a power of two, 1 to 128";
  if (strncmp(word, "workspace=", 10) == 0) return "should be workspace= and a number of bytes, 1 or more";
  return NULL;
}

/* What would be right for a number of the last kind, "lda=5", whose value is wrong; NULL: no such word. Reading has
 * failed by then, so it does not matter what this reads. */
static const char *wrong_value(reader *r, const char *word) {
  const size_t name = strcspn(word, "=");
  const at_word_kind *last = &r->kinds[r->count - 1];
  char other[64];
  if (!word[name] || name > 32) return NULL;
  (void)snprintf(other, sizeof other, "%.*s=1", (int)name, word);
  if (!last->read(other, r->into)) return NULL;
  (void)snprintf(other, sizeof other, "%.*s=broadcast", (int)name, word);
  return last->read(other, r->into) ? "its value should be a whole number, 1 or more, or broadcast"
                                    : "its value should be a whole number, 1 or more";
}

static attune_status read_words(char *text, const char *operation, reader *r) {
  char *rest = NULL, shown[48];
  int number = 0;
  for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    const char *skipped = NULL;
    at_copy_text(shown, sizeof shown, word);
    const char *wrong = wrong_with(word); /* before a reader changes the word */
    const bool first = number++ == 0;
    if (first ? strcmp(word, operation) == 0 : read_word(r, word, &skipped)) continue;
    if (!first && !wrong && (wrong = wrong_value(r, shown)) != NULL)
      return AT_INVALID("word %d of the problem is \"%s\"; %s", number, shown, wrong);
    if (!first && wrong && (r->kind == r->count - 1 || !strchr(shown, '=')))
      return AT_INVALID("word %d of the problem is \"%s\"; %s", number, shown, wrong);
    return AT_INVALID("word %d of the problem is \"%s\"; should be %s%s%s", number, shown, skipped ? skipped : "",
                      skipped ? ", or one of " : "", first ? operation : r->kinds[r->kind].expected);
  }
  while (r->kind < r->count - 1 && r->kinds[r->kind].optional) r->kind++;
  if (number > 0 && r->kind == r->count - 1) return ATTUNE_OK;
  return AT_INVALID("the problem ends after %d word%s; should continue with %s", number, number == 1 ? "" : "s",
                    number ? r->kinds[r->kind].expected : operation);
}

attune_status at_text_read(const char *text, const char *operation, const at_word_kind *kinds, int count, void *into) {
  char words[AT_PROBLEM_CHARS];
  reader r = {.kinds = kinds, .count = count, .into = into};
  if (!at_copy_text(words, sizeof words, text))
    return AT_INVALID("the problem's text is %zu characters long; should be shorter than %d", strlen(text),
                      AT_PROBLEM_CHARS);
  return read_words(words, operation, &r);
}

bool at_text_dtype(const char *word, size_t chars, unsigned dtypes, attune_dtype *out) {
  const attune_dtype dtype = at_dtype_from_text(word, chars);
  if (!dtype || !(dtypes & AT_DTYPE_BIT(dtype))) return false;
  *out = dtype;
  return true;
}

bool at_text_sizes(char *word, int64_t *const *sizes, size_t least, size_t most) {
  size_t count = 0;
  for (char *size = word; size; count++) {
    char *next = strchr(size, 'x');
    if (next) *next++ = '\0';
    if (count == most || !at_parse_i64(sizes[count], size)) return false;
    size = next;
  }
  return count >= least;
}

bool at_text_accuracy(const char *word, attune_accuracy *out) {
  for (size_t i = 0; i < AT_COUNT(ACCURACIES); i++)
    if (strcmp(word, ACCURACIES[i]) == 0) {
      *out = (attune_accuracy)i;
      return true;
    }
  return false;
}

static bool read_positive(const char *value, int64_t *out) {
  return at_parse_i64(out, value) && *out > 0;
}

bool at_text_term(const char *word, at_contract *terms) {
  int64_t number = 0;
  if (strcmp(word, "deterministic") == 0) {
    terms->contract.deterministic = 1;
  } else if (strncmp(word, "align=", 6) == 0) {
    if (!read_positive(word + 6, &number) || number > AT_ALIGNMENT || (number & (number - 1))) return false;
    terms->alignment = (uint8_t)number;
  } else if (strncmp(word, "workspace=", 10) == 0) {
    if (!read_positive(word + 10, &number)) return false;
    terms->contract.workspace_cap = (size_t)number;
  } else {
    return false;
  }
  return true;
}

bool at_text_number(const char *word, const at_number *numbers, size_t count) {
  const size_t name = strcspn(word, "=");
  for (size_t i = 0; i < count && word[name]; i++) {
    if (strlen(numbers[i].name) != name || memcmp(numbers[i].name, word, name) != 0) continue;
    if (numbers[i].kind != AT_NUMBER_STRIDE || strcmp(word + name + 1, "broadcast") != 0)
      return read_positive(word + name + 1, numbers[i].value);
    *numbers[i].value = AT_BROADCAST;
    return true;
  }
  return false;
}

/* A word where it stands in a text. */
typedef struct span {
  const char *text;
  size_t chars;
} span;

/* False: there is no further one. */
static bool next_word(span *word) {
  word->text += word->chars;
  word->text += strspn(word->text, " ");
  word->chars = strcspn(word->text, " ");
  return word->chars > 0;
}

static bool is_among(span word, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strlen(words[i]) == word.chars && memcmp(words[i], word.text, word.chars) == 0) return true;
  return false;
}

static bool have_one_name(span x, span y) {
  const size_t name = strcspn(x.text, "= ");
  return strcspn(y.text, "= ") == name && memcmp(x.text, y.text, name) == 0;
}

attune_status at_text_check_once(attune_status failure, const char *subject, const char *words,
                                 const char *const *exclusive, size_t count) {
  for (span x = {words, 0}; next_word(&x);)
    for (span y = x; next_word(&y);)
      if (have_one_name(x, y) || (is_among(x, exclusive, count) && is_among(y, exclusive, count)))
        return at_fail(failure, "%s has \"%.*s\" and \"%.*s\"; should have one of them", subject,
                       (int)(x.chars < 40 ? x.chars : 40), x.text, (int)(y.chars < 40 ? y.chars : 40), y.text);
  return ATTUNE_OK;
}

attune_status at_text_check_alignment(uint8_t alignment, size_t element) {
  if (alignment >= element) return ATTUNE_OK;
  return AT_INVALID("align=%d is below the size of an element; should be %zu or more", alignment, element);
}

attune_status at_fail_accuracy(const attune_contract *contract) {
  return AT_INVALID("problem.contract.accuracy is %d; should be strict (0), equivalent (1) or reduced (2)",
                    (int)contract->accuracy);
}
