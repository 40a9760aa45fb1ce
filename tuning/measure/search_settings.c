/* SPDX-License-Identifier: Apache-2.0
 * search_settings.c: the keys of ATTUNE_SEARCH, read and written. */
#include "tuning/measure/search_settings.h"

#include "src/base/settings.h"
#include "src/base/support.h"

#include <stdio.h>
#include <string.h>

/* NOT is of members that are false as usual and true when the key is false. */
typedef enum kind { WHOLE, MILLISECONDS, MEGABYTES, FRACTION, NOT } kind;

typedef struct key {
  const char *name;
  kind kind;
  size_t member;
  double least, most;
  const char *right;
} key;

#define MEMBER(name) offsetof(at_search_settings, name)
static const key keys[] = {
    {"rounds", WHOLE, MEMBER(rounds), 3, 61, "a whole number from 3 to 61, or 0 for the usual"},
    {"warmups", WHOLE, MEMBER(warmups), 1, 1000, "a whole number from 1 to 1000, or 0 for the usual"},
    {"configurations", WHOLE, MEMBER(configurations), 1, 256, "a whole number from 1 to 256, or 0 for the usual"},
    {"warmup_ms", MILLISECONDS, MEMBER(warmup_ns), 0.001, 10000,
     "milliseconds from 0.001 to 10000, or 0 for the usual"},
    {"candidate_ms", MILLISECONDS, MEMBER(candidate_ns), 0.001, 1e6,
     "milliseconds from 0.001 to 1000000, or 0 for no bound"},
    {"rotate_mb", MEGABYTES, MEMBER(rotate_bytes), 1, 1e6,
     "a whole number of MB from 1 to 1000000, or 0 for the usual"},
    {"tolerance", FRACTION, MEMBER(tolerance), 1e-6, 1, "a number from 0.000001 to 1"},
    {"guess", NOT, MEMBER(no_guess), 0, 1, "true or false"},
};
#define NAMES "rounds, warmups, warmup_ms, candidate_ms, configurations, rotate_mb, tolerance, guess"

static bool set(at_search_settings *out, const key *k, const char *value) {
  char *at = (char *)out + k->member;
  double number = 0.0;
  if (k->kind == NOT) {
    *(bool *)(void *)at = strcmp(value, "false") == 0;
    return *(bool *)(void *)at || strcmp(value, "true") == 0;
  }
  if (!at_parse_decimal(&number, value) || (number != 0.0 && (number < k->least || number > k->most))) return false;
  if (k->kind == FRACTION && number == 0.0) return false;
  if ((k->kind == WHOLE || k->kind == MEGABYTES) && number != (double)(int64_t)number) return false;
  if (k->kind == WHOLE)
    *(int *)(void *)at = (int)number;
  else if (k->kind == MEGABYTES)
    *(size_t *)(void *)at = (size_t)number << 20;
  else
    *(double *)(void *)at = k->kind == MILLISECONDS ? number * 1e6 : number;
  return true;
}

static attune_status set_one(at_search_settings *out, char *item, const char *source) {
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

attune_status at_search_settings_parse(at_search_settings *out, const char *text, const char *source) {
  at_search_settings settings = *out;
  char copy[AT_SEARCH_CHARS], *rest = copy;
  if (!at_copy_text(copy, sizeof copy, text))
    return AT_INVALID("%s has %zu bytes; should have fewer than %zu", source, strlen(text), sizeof copy);
  for (char *item; rest && *rest && (item = strsep(&rest, ","));) AT_TRY(set_one(&settings, item, source));
  *out = settings;
  return ATTUNE_OK;
}

attune_status at_search_settings_write(const at_search_settings *settings, char *out, size_t size) {
  size_t used = 0;
  bool fits = size > 0;
  if (size > 0) *out = '\0';
  for (size_t i = 0; i < AT_COUNT(keys) && fits; i++) {
    const key *k = &keys[i];
    const char *at = (const char *)settings + k->member, *comma = used ? "," : "";
    const int whole = k->kind == WHOLE ? *(const int *)(const void *)at : 0;
    const size_t bytes = k->kind == MEGABYTES ? *(const size_t *)(const void *)at : 0;
    const double number = k->kind == MILLISECONDS || k->kind == FRACTION ? *(const double *)(const void *)at : 0.0;
    if (whole) fits = at_append(out, size, &used, "%s%s:%d", comma, k->name, whole);
    if (bytes) fits = at_append(out, size, &used, "%s%s:%zu", comma, k->name, bytes >> 20);
    if (number != 0.0)
      fits = at_append(out, size, &used, "%s%s:%.9g", comma, k->name, k->kind == MILLISECONDS ? number * 1e-6 : number);
    if (k->kind == NOT && *(const bool *)(const void *)at)
      fits = at_append(out, size, &used, "%s%s:false", comma, k->name);
  }
  return fits ? ATTUNE_OK : AT_INVALID("size is %zu; should be %d", size, (int)AT_SEARCH_CHARS);
}
