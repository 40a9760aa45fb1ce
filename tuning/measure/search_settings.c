/* SPDX-License-Identifier: Apache-2.0
 * search_settings.c: the keys of ATTUNE_SEARCH, and the bounds of their values. */
#include "tuning/measure/search_settings.h"

#include "src/base/settings.h"
#include "src/base/support.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* NOT is of members that are 0 as usual and 1 when the key is false. */
typedef enum kind { WHOLE, REAL, NOT } kind;

typedef struct key {
  const char *name;
  kind kind;
  size_t member;
  double least, most;
  const char *right;
} key;

#define MEMBER(name) offsetof(attune_search_options, name)
static const key keys[] = {
    {"rounds", WHOLE, MEMBER(rounds), 3, 61, "a whole number from 3 to 61, or 0 for the default"},
    {"warmups", WHOLE, MEMBER(warmups), 1, 1000, "a whole number from 1 to 1000, or 0 for the default"},
    {"configurations", WHOLE, MEMBER(configurations), 1, 256, "a whole number from 1 to 256, or 0 for the default"},
    {"warmup_ms", REAL, MEMBER(warmup_ms), 0.001, 10000, "milliseconds from 0.001 to 10000, or 0 for the default"},
    {"candidate_ms", REAL, MEMBER(candidate_ms), 0.001, 1e6, "milliseconds from 0.001 to 1000000, or 0 for no limit"},
    {"rotate_mb", WHOLE, MEMBER(rotate_mb), 1, 1e6, "a whole number of MB from 1 to 1000000, or 0 for the default"},
    {"tolerance", REAL, MEMBER(tolerance), 1e-6, 1, "a number from 0.000001 to 1, or 0 for the default"},
    {"guess", NOT, MEMBER(no_guess), 0, 1, "true or false"},
};
#define NAMES "rounds, warmups, warmup_ms, candidate_ms, configurations, rotate_mb, tolerance, guess"

static bool within(const key *k, double number) {
  return number == 0.0 || (number >= k->least && number <= k->most);
}

static bool set(attune_search_options *out, const key *k, const char *value) {
  void *at = (char *)out + k->member;
  double number = 0.0;
  if (k->kind == NOT) {
    *(int *)at = strcmp(value, "false") == 0;
    return *(int *)at || strcmp(value, "true") == 0;
  }
  if (!at_parse_decimal(&number, value) || !within(k, number)) return false;
  if (k->kind == REAL)
    *(double *)at = number;
  else
    *(int *)at = (int)number;
  return k->kind == REAL || number == (double)(int)number;
}

static attune_status set_one(attune_search_options *out, char *item, const char *source) {
  char *colon = strchr(item, ':');
  if (!colon) return AT_INVALID("%s has \"%.60s\"; should be key:value,key:value with keys " NAMES, source, item);
  *colon = '\0';
  for (size_t i = 0; i < AT_COUNT(keys); i++) {
    if (strcmp(item, keys[i].name) != 0) continue;
    if (set(out, &keys[i], colon + 1)) return ATTUNE_OK;
    return AT_INVALID("%s: %s is \"%.60s\"; should be %s", source, item, colon + 1, keys[i].right);
  }
  return AT_INVALID("%s has no key \"%.60s\"; should be one of " NAMES, source, item);
}

attune_status at_search_settings_parse(attune_search_options *out, const char *text, const char *source) {
  attune_search_options settings = *out;
  char copy[AT_SEARCH_CHARS], *rest = copy;
  if (!at_copy_text(copy, sizeof copy, text))
    return AT_INVALID("%s has %zu bytes; should have fewer than %zu", source, strlen(text), sizeof copy);
  for (char *item; rest && *rest && (item = strsep(&rest, ","));) AT_TRY(set_one(&settings, item, source));
  *out = settings;
  return ATTUNE_OK;
}

attune_status at_search_settings_check(const attune_search_options *options) {
  for (size_t i = 0; i < AT_COUNT(keys); i++) {
    const key *k = &keys[i];
    const void *at = (const char *)options + k->member;
    const double number = k->kind == REAL ? *(const double *)at : (double)*(const int *)at;
    if (k->kind != NOT && !within(k, number))
      return AT_INVALID("options.%s is %g; should be %s", k->name, number, k->right);
  }
  return ATTUNE_OK;
}
