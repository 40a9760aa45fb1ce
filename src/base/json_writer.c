/* SPDX-License-Identifier: Apache-2.0
 * json_writer.c: nested values as JSON. */
#include "src/base/json_writer.h"

#include <math.h>

void at_json_key(at_json *values, const char *name) {
  at_string_builder_add(&values->text, "%s\"%s\":", values->count[values->depth - 1]++ > 0 ? "," : "", name);
  values->after_key = true;
}

/* Before each value: its name, or the comma. */
static void next_value(at_json *values, const char *name) {
  if (name)
    at_json_key(values, name);
  else if (!values->after_key && values->depth > 0 && values->count[values->depth - 1]++ > 0)
    at_string_builder_put(&values->text, ",", 1);
  values->after_key = false;
}

static void open_level(at_json *values, const char *name, const char *mark) {
  next_value(values, name);
  at_string_builder_put(&values->text, mark, 1);
  values->count[values->depth++] = 0;
}

static void close_level(at_json *values, const char *mark) {
  values->depth--;
  at_string_builder_put(&values->text, mark, 1);
}

attune_status at_json_end(at_json *values, char **out, size_t *out_bytes) {
  at_string_builder_put(&values->text, "\n", 1);
  *out_bytes = values->text.length;
  return at_string_builder_take(&values->text, out);
}

void at_json_object(at_json *values, const char *name) {
  open_level(values, name, "{");
}

void at_json_object_end(at_json *values) {
  close_level(values, "}");
}

void at_json_list(at_json *values, const char *name) {
  open_level(values, name, "[");
}

void at_json_list_end(at_json *values) {
  close_level(values, "]");
}

void at_json_number(at_json *values, const char *name, int64_t number) {
  next_value(values, name);
  at_string_builder_add(&values->text, "%lld", (long long)number);
}

void at_json_real(at_json *values, const char *name, double number, int digits) {
  double scale = 1.0;
  for (int i = 0; i < digits; i++) scale *= 10.0;
  const double scaled = round(fabs(number) * scale);
  const bool finite = scaled < 9e18;
  const unsigned long long all = finite ? (unsigned long long)scaled : 0, unit = (unsigned long long)scale;
  next_value(values, name);
  if (!finite)
    at_string_builder_add(&values->text, "null");
  else
    at_string_builder_add(&values->text, "%s%llu%s%.*llu", number < 0.0 && all ? "-" : "", all / unit,
                          digits ? "." : "", digits, digits ? all % unit : 0);
}

void at_json_truth(at_json *values, const char *name, bool truth) {
  next_value(values, name);
  at_string_builder_add(&values->text, truth ? "true" : "false");
}

void at_json_word(at_json *values, const char *name, const char *word) {
  next_value(values, name);
  at_string_builder_quote(&values->text, word);
}

void at_json_pair(at_json *values, const char *name, int64_t first, int64_t second) {
  next_value(values, name);
  at_string_builder_add(&values->text, "[%lld,%lld]", (long long)first, (long long)second);
}
