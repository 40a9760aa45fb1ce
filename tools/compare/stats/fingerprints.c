/* SPDX-License-Identifier: Apache-2.0
 * fingerprints.c: what differs between two fingerprints, member by member. */
#include "tools/compare/stats/fingerprints.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/compare/message.h"

/* Adds a line to *lines, which it frees; takes both values. */
static void add(char **lines, const char *name, char *base, char *head) {
  char *old = *lines;
  *lines = gate_say("%s%s%s: %s, now %s", old ? old : "", old ? "\n" : "", name, base, head);
  free(old);
  free(base);
  free(head);
}

/* "a, b" */
static char *listed(const json_t *list) {
  char *text = gate_copy("");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *word = json_string_value(json_array_get(list, i));
    char *longer = gate_say("%s%s%s", text, i ? ", " : "", word ? word : "?");
    free(text);
    text = longer;
  }
  return text;
}

/* What could not be read is left out, or an empty text. */
static bool is_known(const json_t *value) {
  return value && !(json_is_string(value) && !*json_string_value(value));
}

/* Words without quotes, lists of words, numbers with their unit, everything else as JSON. */
char *gate_fact_text(const char *name, const json_t *value) {
  if (!is_known(value)) return gate_copy("unknown");
  if (json_is_string(value)) return gate_copy(json_string_value(value));
  if (json_is_array(value) && json_is_string(json_array_get(value, 0))) return listed(value);
  if (json_is_integer(value) && strcmp(name, "memory") == 0)
    return gate_say("%lld GiB", (long long)json_integer_value(value));
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS), *copy = gate_copy(text ? text : "?");
  free(text);
  return copy;
}

/* Only runs of attune's own cases and of programs know a device. The cases that they share with a run of commands alone
 * are commands, which it does not time. */
static bool counts(const char *name, bool device) {
  return device || (strcmp(name, "device") != 0 && strcmp(name, "driver") != 0 && strcmp(name, "libraries") != 0);
}

static char *member_by_member(json_t *base, json_t *head) {
  char *lines = NULL;
  const char *name;
  json_t *value;
  const bool device = !json_object_get(base, "libraries") == !json_object_get(head, "libraries");
  json_object_foreach(base, name, value) {
    if (!counts(name, device)) continue;
    const json_t *now = json_object_get(head, name);
    if ((is_known(value) || is_known(now)) && (!now || !json_equal(value, now)))
      add(&lines, name, gate_fact_text(name, value), gate_fact_text(name, now));
  }
  json_object_foreach(head, name, value) if (counts(name, device) && is_known(value) && !json_object_get(base, name))
      add(&lines, name, gate_fact_text(name, NULL), gate_fact_text(name, value));
  return lines;
}

char *gate_fingerprint_differences(const char *base, const char *head) {
  char *lines = NULL;
  base = base ? base : "";
  head = head ? head : "";
  if (strcmp(base, head) == 0) return NULL;
  json_t *one = json_loads(base, 0, NULL), *other = json_loads(head, 0, NULL);
  if (json_is_object(one) && json_is_object(other))
    lines = member_by_member(one, other);
  else
    add(&lines, "fingerprint", gate_copy(*base ? base : "none"), gate_copy(*head ? head : "none"));
  json_decref(one);
  json_decref(other);
  return lines;
}
