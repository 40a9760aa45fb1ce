/* SPDX-License-Identifier: Apache-2.0
 * test_gate_page.c: the HTML page as text: names stay text, the table has every case without a script, the data is JSON
 * that cannot leave its element, nothing is loaded. What the script does is in test_gate_page.sh. */
#include "tests/support/check.h"

#include "tests/support/gate_made.h"

#include <jansson.h>
#include <math.h>

static const char *const hostile[] = {
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "--><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)",
    "</table></td></SCRIPT>",
    "{{data}}",
    "&lt;b&gt;",
    "bad \xff\xc0\x80 \xed\xa0\x80",
    "\x01\x1b[31m\n\r\t",
    "right \xe2\x80\xae left \xe2\x80\xa8 line",
    "",
    "\xe6\xbc\xa2\xe5\xad\x97 caf\xc3\xa9",
};
#define HOSTILE (sizeof hostile / sizeof *hostile)

static size_t count_of(const char *text, const char *what) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) count++;
  return count;
}

/* A copy of what lies between two words, each there once. */
static char *between(const char *text, const char *from, const char *to) {
  const char *start = strstr(text, from);
  assert_non_null(start);
  start += strlen(from);
  const char *end = strstr(start, to);
  assert_non_null(end);
  return strndup(start, (size_t)(end - start));
}

static json_t *data_of(const char *page) {
  char *text = between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  bool harmless = true;
  for (const char *c = text; *c; c++) harmless &= *c >= ' ' && *c <= '~' && *c != '<' && *c != '>' && *c != '&';
  assert_true(harmless);
  json_t *json = json_loads(text, 0, NULL);
  assert_non_null(json);
  free(text);
  return json;
}

/* Elements that any page has once: no name adds one. */
static void check_frame(const char *page, size_t cases) {
  assert_int_equal(count_of(page, "<script"), 2);
  assert_int_equal(count_of(page, "</script"), 2);
  assert_int_equal(count_of(page, "<table"), 1);
  assert_int_equal(count_of(page, "</table"), 1);
  assert_int_equal(count_of(page, "<!--"), 1);
  assert_int_equal(count_of(page, "<img"), 0);
  char *body = between(page, "<tbody>", "</tbody>");
  assert_int_equal(count_of(body, "<tr class="), cases);
  assert_int_equal(count_of(body, "<th scope=\"row\">"), cases);
  free(body);
}

TEST(test_hostile_names_stay_text) {
  made m;
  made_create(&m, HOSTILE, NULL, 0, 2);
  m.comparison.differences = (char[]){"kernel"};
  free(m.head.fingerprint);
  m.head.fingerprint = strdup("{\"cpu\": \"fast\"}");
  char *usual = made_page(&m);
  const size_t elements = count_of(usual, "<");
  free(usual);
  made_free(&m);
  made_create(&m, HOSTILE, hostile, HOSTILE, 2);
  for (size_t i = 0; i < MADE_HISTORIES; i++) {
    free(m.histories[i].name);
    m.histories[i].name = strdup(hostile[i]);
    strcpy(m.histories[i].points[0].revision, "</script>");
    strcpy(m.histories[i].points[0].label, "<!-- <b>");
  }
  free(m.head.label);
  m.head.label = strdup("</title><b>");
  free(m.head.fingerprint);
  m.head.fingerprint = strdup("{\"</dl><b>\": \"<script>\"}");
  m.comparison.differences = (char[]){"<b>kernel</b>"};
  snprintf(m.roofs[0].device, sizeof m.roofs[0].device, "<!--");
  char *page = made_page(&m);
  check_frame(page, HOSTILE);
  assert_int_equal(count_of(page, "<"), elements);
  assert_non_null(strstr(page, "&#60;b&#62;kernel&#60;/b&#62;"));
  for (const char *c = page; *c; c++) assert_true((unsigned char)*c >= ' ' || *c == '\n');
  json_t *json = data_of(page), *whole = json_string(page); /* NULL: not UTF-8 */
  assert_non_null(whole);
  const char *shown = json_string_value(json_object_get(json_array_get(json_object_get(json, "rows"), 0), "shown"));
  assert_string_equal(shown, hostile[0]);
  json_decref(whole);
  json_decref(json);
  free(page);
  made_free(&m);
}

TEST(test_sizes) {
  const size_t sizes[] = {0, 1, 2, 50, getenv("AT_UNDER_VALGRIND") ? 200 : 2000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    made m;
    made_create(&m, sizes[i], NULL, 0, 1);
    char *page = made_page(&m);
    check_frame(page, sizes[i]);
    assert_int_equal(count_of(page, "{{"), 0);
    json_t *json = data_of(page);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), sizes[i]);
    assert_int_equal(json_array_size(json_object_get(json, "histories")), MADE_HISTORIES);
    assert_int_equal(json_array_size(json_object_get(json, "roofs")), MADE_ROOFS);
    json_decref(json);
    free(page);
    made_free(&m);
  }
}

/* The table alone tells every case, its verdict, its times and why. */
TEST(test_whole_without_a_script) {
  made m;
  made_create(&m, 50, NULL, 0, 3);
  char *page = made_page(&m), *body = between(page, "<tbody>", "</tbody>");
  for (size_t i = 0; i < 50; i++) {
    const gate_row *row = &m.comparison.rows[i];
    char cell[100];
    snprintf(cell, sizeof cell, "<span class=\"name\">%s</span>", (row->head ? row->head : row->base)->name);
    const char *at = strstr(body, cell);
    assert_non_null(at);
    while (strncmp(at, "<tr", 3) != 0) at--;
    snprintf(cell, sizeof cell, "<tr class=\"%s\" data-row=\"%zu\">", gate_verdict_name(row->judged.verdict), i);
    assert_memory_equal(at, cell, strlen(cell));
  }
  assert_int_equal(count_of(body, "Segmentation fault"), 1);
  assert_int_equal(count_of(body, "the visits differ too much"), 5);
  assert_true(strstr(body, "<tr class=\"slower\"") < strstr(body, "<tr class=\"failed\""));
  assert_true(strstr(body, "<tr class=\"failed\"") < strstr(body, "<tr class=\"faster\""));
  assert_true(strstr(body, "<tr class=\"missing\"") < strstr(body, "<tr class=\"same\""));
  assert_non_null(strstr(page, "<h1>4 of 50 cases are slower, 1 failed</h1>"));
  assert_non_null(strstr(page, "<caption>50 cases."));
  free(body);
  free(page);
  made_free(&m);
}

TEST(test_data_has_the_samples) {
  made m;
  made_create(&m, 5, NULL, 0, 4);
  m.head.cases[1].visits[2].samples[3].ns = NAN;
  char *page = made_page(&m);
  json_t *json = data_of(page);
  for (size_t i = 0; i < 5; i++) {
    const json_t *head = json_object_get(json_array_get(json_object_get(json, "rows"), i), "head");
    const json_t *visits = json_object_get(head, "visits");
    assert_int_equal(json_array_size(visits), 4);
    for (int v = 0; v < 4; v++)
      for (int s = 0; s < 5; s++) {
        const json_t *ns = json_array_get(json_array_get(visits, (size_t)v), (size_t)s);
        const double made_ns = m.head.cases[i].visits[v].samples[s].ns;
        if (isnan(made_ns))
          assert_true(json_is_null(ns));
        else
          assert_true(fabs(json_number_value(ns) / made_ns - 1) < 1e-5);
      }
  }
  json_decref(json);
  free(page);
  made_free(&m);
}

/* "nan" or "inf" as a value: not within a word. */
static void check_numbers(const char *page) {
  const char *const words[] = {"nan", "inf", "-nan", "-inf"};
  const char *const before[] = {">", "\"", " ", "M", "H", ":", ",", "["}, *const after[] = {"<", "\"", " ",
                                                                                            ",", "]",  "%"};
  for (size_t w = 0; w < 4; w++)
    for (size_t b = 0; b < sizeof before / sizeof *before; b++)
      for (size_t a = 0; a < sizeof after / sizeof *after; a++) {
        char text[16];
        snprintf(text, sizeof text, "%s%s%s", before[b], words[w], after[a]);
        assert_null(strstr(page, text));
      }
}

TEST(test_no_nan_is_printed) {
  const double values[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 0, 5e-324};
  for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
    made m;
    made_create(&m, 20, NULL, 0, 2);
    const double value = values[v];
    for (size_t i = 0; i < 20; i++) {
      gate_judgement *j = &m.comparison.rows[i].judged;
      j->ratio = j->low = j->p = j->base_ns = j->head_ns = j->base_spread = value;
      if (i % 2) j->high = value;
    }
    for (size_t i = 0; i < m.head.case_count; i++) m.head.cases[i].bytes = value;
    m.roofs[0].bytes_s = m.roofs[1].flops_s = value;
    m.histories[0].points[0].ns = m.histories[0].points[1].spread = m.histories[0].changes[0].before = value;
    if (v % 2) m.comparison.rule.floor = m.comparison.rule.alpha = value;
    char *page = made_page(&m);
    check_frame(page, 20);
    check_numbers(page);
    json_decref(data_of(page));
    free(page);
    made_free(&m);
  }
}

/* No network: nothing in the page names a place elsewhere but SVG's name space. */
TEST(test_nothing_is_loaded) {
  made m;
  made_create(&m, 50, NULL, 0, 1);
  char *page = made_page(&m);
  assert_int_equal(count_of(page, "http://") + count_of(page, "https://"), 1);
  assert_int_equal(count_of(page, "http://www.w3.org/2000/svg"), 1);
  assert_int_equal(count_of(page, "url("), 1); /* of the plot's own clip path */
  assert_int_equal(count_of(page, "@import"), 0);
  assert_int_equal(count_of(page, " src="), 0);
  assert_int_equal(count_of(page, "<link"), 0);
  assert_int_equal(count_of(page, "default-src 'none'"), 1);
  free(page);
  made_free(&m);
}

TEST(test_full_disk_is_false) {
  made m;
  made_create(&m, 20, NULL, 0, 2);
  FILE *full = fopen("/dev/full", "w");
  assert_non_null(full);
  assert_false(gate_report_html(full, &m.comparison, NULL, 0, NULL, 0));
  fclose(full);
  made_free(&m);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
