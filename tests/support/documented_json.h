/* SPDX-License-Identifier: Apache-2.0
 * documented_json.h: the fields of a JSON output are those that docs/formats.md has for it. */
#ifndef AT_TEST_DOCUMENTED_JSON_H
#define AT_TEST_DOCUMENTED_JSON_H

#include "tests/support/documented_page.h"

#include <jansson.h>

/* True if all keys of the objects in `json` are rows of the part; else *missing is one that is not. The keys inside
 * `fingerprint` and `counts` are free. */
static inline bool documented_keys(const char *part, size_t length, const json_t *json, const char **missing) {
  const char *key = NULL;
  json_t *value = NULL;
  size_t index = 0;
  json_array_foreach(json, index, value) if (!documented_keys(part, length, value, missing)) return false;
  json_object_foreach((json_t *)(uintptr_t)json, key, value) {
    *missing = key;
    if (!documented_row(part, length, key)) return false;
    if (strcmp(key, "fingerprint") != 0 && strcmp(key, "counts") != 0 && !documented_keys(part, length, value, missing))
      return false;
  }
  return true;
}

/* The part of docs/formats.md has each field of `json`, and `json` each field that stands there. */
static inline void assert_documented(const char *heading, const json_t *json) {
  char *page = documented_page("formats.md"), *text = json_dumps(json, JSON_COMPACT);
  const char *missing = NULL;
  size_t length = 0;
  const char *part = documented_part(page, heading, 2, &length);
  if (!documented_keys(part, length, json, &missing)) fail_msg("docs/formats.md, \"%s\", lacks `%s`", heading, missing);
  for (const char *line = part; line < part + length; line += strcspn(line, "\n") + 1) {
    if (strncmp(line, "| `", 3) != 0) continue;
    for (const char *word = line + 2; *word == '`'; word += strspn(word, ", :")) {
      char key[64];
      const size_t chars = strcspn(word + 1, "`");
      snprintf(key, sizeof key, "\"%.*s\":", (int)chars, word + 1);
      if (!strstr(text, key)) fail_msg("docs/formats.md, \"%s\", has %s which the output has not", heading, key);
      word += chars + 2;
    }
  }
  free(text);
  free(page);
}

#endif
