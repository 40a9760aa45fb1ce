/* SPDX-License-Identifier: Apache-2.0
 * report_html_data.c: what the page's script draws from, as JSON inside the page. All of it is ASCII, and <, > and &
 * are written as \u003c and so on, so that no text ends the <script> or begins a comment. */
#include "tools/compare/report/report_html.h"
#include "tools/compare/report/report_json.h"

#include "tools/compare/results/import.h"

#include <stdlib.h>

/* Every text in `json` as it may be shown: invisible characters are written by number. */
static bool make_harmless(json_t *json) {
  const char *key;
  size_t i;
  json_t *value;
  if (json_is_object(json)) {
    json_object_foreach(json, key, value) if (!make_harmless(value)) return false;
  } else if (json_is_array(json)) {
    json_array_foreach(json, i, value) if (!make_harmless(value)) return false;
  } else if (json_is_string(json)) {
    char *text = gate_text(GATE_PLAIN, json_string_value(json));
    const bool good = text && json_string_set(json, text) == 0;
    free(text);
    return good;
  }
  return true;
}

/* Takes `value`. */
static bool append(json_t *array, json_t *value) {
  if (value && make_harmless(value)) return json_array_append_new(array, value) == 0;
  json_decref(value);
  return false;
}

static json_t *rows_json(const gate_page *page) {
  json_t *rows = json_array();
  for (size_t i = 0; i < page->comparison->row_count; i++)
    if (!append(rows, gate_json_row(page->comparison, &page->comparison->rows[i], false))) {
      json_decref(rows);
      return NULL;
    }
  return rows;
}

static json_t *histories_json(const gate_page *page) {
  json_t *histories = json_array();
  for (size_t i = 0; i < page->history_count; i++)
    if (!append(histories, gate_json_history(&page->histories[i]))) {
      json_decref(histories);
      return NULL;
    }
  return histories;
}

static json_t *roofs_json(const gate_page *page) {
  json_t *roofs = gate_json_roofs(page->roofs, page->roof_count);
  if (roofs && make_harmless(roofs)) return roofs;
  json_decref(roofs);
  return NULL;
}

/* jansson gives ASCII; outside of texts JSON has none of the three. */
static int put_safely(const char *text, size_t size, void *out) {
  for (size_t i = 0; i < size; i++) {
    const bool markup = text[i] == '<' || text[i] == '>' || text[i] == '&';
    if ((markup ? fprintf(out, "\\u%04x", (unsigned)text[i]) : fputc(text[i], out)) < 0) return -1;
  }
  return 0;
}

bool gate_page_data(FILE *out, const gate_page *page) {
  const gate_comparison *c = page->comparison;
  json_t *json = json_pack("{s:{s:s, s:s}, s:o, s:o, s:o}", "counted", "base", gate_import_counted(c->base), "head",
                           gate_import_counted(c->head), "rows", rows_json(page), "histories", histories_json(page),
                           "roofs", roofs_json(page));
  const bool good =
      json && json_dump_callback(json, put_safely, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6)) == 0;
  json_decref(json);
  return good;
}
