/* SPDX-License-Identifier: Apache-2.0
 * configuration.c: tunables as text, "key=value,key=value". */
#include <string.h>

#include "tuning/op/registry.h"

/* The value behind "key=", its length in *chars; NULL: the key is absent. */
static const char *value_of(const at_configuration *configuration, const char *key, size_t *chars) {
  const size_t key_chars = strlen(key);
  const char *at = configuration->text;
  while (*at) {
    const size_t item = strcspn(at, ",");
    if (item > key_chars && strncmp(at, key, key_chars) == 0 && at[key_chars] == '=') {
      *chars = item - key_chars - 1;
      return at + key_chars + 1;
    }
    at += item + (at[item] == ',');
  }
  return NULL;
}

bool at_configuration_get_text(const at_configuration *configuration, const char *key, char *out, size_t size) {
  size_t chars = 0;
  const char *value = value_of(configuration, key, &chars);
  if (!value || chars >= size) return false;
  memcpy(out, value, chars);
  out[chars] = '\0';
  return true;
}

bool at_configuration_get(const at_configuration *configuration, const char *key, int64_t *out) {
  char text[32];
  return at_configuration_get_text(configuration, key, text, sizeof text) && at_parse_i64(out, text);
}

bool at_configuration_put_text(at_configuration *configuration, const char *key, const char *value) {
  if (strpbrk(value, ",=")) return false;
  size_t at = strlen(configuration->text);
  const size_t before = at;
  if (at_append(configuration->text, sizeof configuration->text, &at, "%s%s=%s", at ? "," : "", key, value))
    return true;
  configuration->text[before] = '\0';
  return false;
}

int at_configurations_none(const at_implementation *self, const void *problem, attune_device *device,
                           at_configuration *out, int max) {
  (void)self, (void)problem, (void)device;
  if (max < 1) return 0;
  out[0] = (at_configuration){""};
  return 1;
}

attune_status at_configuration_check_none(const at_plan *plan) {
  if (plan->configuration.text[0] == '\0') return ATTUNE_OK;
  return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; %s has none", plan->configuration.text,
                 plan->implementation->name);
}
