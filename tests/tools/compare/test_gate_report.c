/* SPDX-License-Identifier: Apache-2.0
 * test_gate_report.c: Markdown, JSON and JUnit: what they say, and what hostile names, no cases, thousands of cases,
 * times that are no numbers and a full disk do to them. */
#include "tests/support/check.h"

#include "tests/support/documented_json.h"
#include "tests/support/gate_made.h"

#include <math.h>
#include <unistd.h>

/* --- of every report --- */

typedef char *(*make)(const gate_comparison *);
static const make makes[] = {made_markdown, made_json, made_junit};
#define MAKES (sizeof makes / sizeof *makes)

static const char *const hostile[] = {
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>&amp;<b>\"'",
    "a|b\\|c`d``e",
    "two\nlines\r\n\ttabs",
    "@everyone #12 www.example.com http://example.com",
    "bad \xff\xfe\xc0\x80 utf-8 \xed\xa0\x80",
    "\x01\x02\x1b[31mred\x7f",
    "right \xe2\x80\xae to left \xe2\x80\x8b",
    "not a character \xef\xbf\xbe \xf4\x8f\xbf\xbf",
    "",
    "\xe6\xbc\xa2\xe5\xad\x97 caf\xc3\xa9",
    "cut off \xe2\x82",
};
#define HOSTILE (sizeof hostile / sizeof *hostile)

/* Valid UTF-8 without control characters but tabs and newlines: jansson's own check, by lines. */
static void check_text(const char *text) {
  json_t *json = json_string(text);
  assert_non_null(json);
  json_decref(json);
  for (const char *c = text; *c; c++) assert_true((unsigned char)*c >= 0x20 || *c == '\n');
}

TEST(test_hostile_names_stay_text) {
  made m;
  made_create(&m, HOSTILE, hostile, HOSTILE, 2);
  for (size_t i = 0; i < MAKES; i++) {
    char *text = makes[i](&m.comparison);
    check_text(text);
    free(text);
  }
  made_free(&m);
}

static bool has_word(const char *text, const char *word) {
  for (const char *at = text; (at = strcasestr(at, word)); at++) {
    const bool begins = at == text || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", at[-1]);
    const char next = at[strlen(word)];
    if (begins && (!next || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", next))) return true;
  }
  return false;
}

/* Everything that is a number is none, in every verdict. */
static void ruin(made *m, double value) {
  for (size_t i = 0; i < m->comparison.row_count; i++) {
    gate_judgement *j = &m->comparison.rows[i].judged;
    j->ratio = j->low = j->high = j->p = j->p_corrected = j->base_ns = j->head_ns = value;
    j->base_spread = j->head_spread = j->base_clock = j->head_clock = value;
  }
  for (size_t i = 0; i < m->head.case_count; i++) {
    m->head.cases[i].bytes = m->head.cases[i].flops = value;
    for (int v = 0; v < m->head.cases[i].visit_count; v++) {
      m->head.cases[i].visits[v].clock_mhz = m->head.cases[i].visits[v].load = value;
      m->head.cases[i].visits[v].samples[0].ns = m->head.cases[i].visits[v].samples[0].cpu_ns = value;
    }
  }
  m->comparison.rule.floor = m->comparison.rule.alpha = value;
}

TEST(test_no_nan_is_printed) {
  const double values[] = {NAN, -NAN, INFINITY, -INFINITY, 1e308, -1e308, 0, 5e-324};
  for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
    made m;
    made_create(&m, 20, NULL, 0, 2);
    ruin(&m, values[v]);
    for (size_t i = 0; i < MAKES; i++) {
      char *text = makes[i](&m.comparison);
      assert_false(has_word(text, "nan"));
      assert_false(has_word(text, "inf"));
      free(text);
    }
    made_free(&m);
  }
}

TEST(test_full_disk_is_false) {
  made m;
  made_create(&m, 20, NULL, 0, 2);
  bool (*const reports[])(FILE *, const gate_comparison *) = {gate_report_markdown, gate_report_json,
                                                              gate_report_junit};
  for (size_t i = 0; i < 3; i++) {
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_false(reports[i](full, &m.comparison));
    fclose(full);
  }
  FILE *full = fopen("/dev/full", "w");
  assert_false(gate_history_json(full, &m.histories[0]));
  fclose(full);
  made_free(&m);
}

TEST(test_no_cases_and_one) {
  for (size_t count = 0; count < 2; count++) {
    made m;
    made_create(&m, count, NULL, 0, 1);
    char *text = made_markdown(&m.comparison);
    assert_non_null(strstr(text, count ? "No case is slower\n" : "There are no cases\n"));
    free(text);
    text = made_junit(&m.comparison);
    assert_non_null(strstr(text, count ? "tests=\"1\"" : "tests=\"0\""));
    free(text);
    text = made_json(&m.comparison);
    json_t *json = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), count);
    json_decref(json);
    free(text);
    made_free(&m);
  }
}

/* --- Markdown --- */

static size_t count_of(const char *text, const char *what) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) count++;
  return count;
}

TEST(test_markdown_says_what_changed_first) {
  made m;
  made_create(&m, 50, NULL, 0, 3);
  char *text = made_markdown(&m.comparison);
  assert_non_null(strstr(text, "### attune: 4 of 50 cases are slower, 1 failed\n"));
  assert_non_null(strstr(text, "4 slower, 1 failed, 6 faster, 5 unsure, 2 missing, 32 same"));
  const char *folded = strstr(text, "<details><summary>34 cases are the same or missing</summary>");
  assert_non_null(folded);
  assert_non_null(strstr(folded, "</details>"));
  const char *slower = strstr(text, "| **slower** |"), *failed = strstr(text, "| **failed** |");
  const char *faster = strstr(text, "| faster |"), *unsure = strstr(text, "| unsure |"),
             *same = strstr(text, "| same |");
  assert_true(slower && failed && faster && unsure && same);
  assert_true(slower < failed && failed < faster && faster < unsure && unsure < folded && folded < same);
  assert_int_equal(count_of(text, "\n| "), 50 + 2);
  assert_int_equal(count_of(text, "left out"), 0);
  assert_non_null(
      strstr(text, "base: 27a36af0c1, main, 2026&#45;") ? text : strstr(text, "base: 27a36af0c1, main, 2026-01-01"));
  assert_non_null(strstr(text, "Segmentation fault"));
  assert_non_null(strstr(text, "Made CPU 9000"));
  free(text);
  made_free(&m);
}

/* Where nothing is surely slower, what is not known is said in the same breath. */
TEST(test_headline_does_not_hide_what_is_unsure) {
  made m;
  made_create(&m, 3, NULL, 0, 1);
  for (int i = 0; i < 3; i++) m.comparison.rows[i].judged.verdict = i ? GATE_UNSURE : GATE_SAME;
  memset(m.comparison.counts, 0, sizeof m.comparison.counts);
  m.comparison.counts[GATE_SAME] = 1;
  m.comparison.counts[GATE_UNSURE] = 2;
  char *text = made_markdown(&m.comparison);
  assert_non_null(strstr(text, "### attune: No case is certainly slower, 2 unsure\n"));
  free(text);
  made_free(&m);
}

/* Where the change and the two times of a row disagree, each report says why, and where most. */
TEST(test_what_a_change_rests_on) {
  made m;
  made_create(&m, 3, NULL, 0, 1);
  for (int i = 0; i < 3; i++) {
    gate_judgement *j = &m.comparison.rows[i].judged;
    j->ratio = 1.01;
    j->base_ns = 1000;
    j->head_ns = i == 0 ? 1012 : i == 1 ? 970 : 1030; /* the first only by what rounding hides */
  }
  char *texts[] = {made_markdown(&m.comparison), made_page(&m)};
  for (int i = 0; i < 2; i++) {
    if (!strstr(texts[i], "change: the middle of the ratios within the rounds")) fail_msg("%s", texts[i]);
    assert_non_null(strstr(texts[i], ". They differ by more than 0.5 % in 2 cases, most in "));
    assert_non_null(strstr(texts[i], " (change +1.0 %, from the times -3.0 %): rely on the change"));
    free(texts[i]);
  }
  m.comparison.alternated = false;
  for (int i = 0; i < 3; i++) m.comparison.rows[i].judged.head_ns = 1010;
  char *text = made_markdown(&m.comparison);
  assert_non_null(strstr(text, "of each visit of the head to each of the base"));
  assert_null(strstr(text, "differ by more"));
  free(text);
  made_free(&m);
}

/* In each line of a table the pipes are the columns', and no name begins a line, a mention or a tag. */
TEST(test_markdown_names_are_no_markup) {
  made m;
  made_create(&m, HOSTILE, hostile, HOSTILE, 2);
  char *text = made_markdown(&m.comparison);
  assert_int_equal(count_of(text, "\n| "), HOSTILE + 2);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    assert_null(strstr(line, "@everyone"));
    assert_null(strstr(line, "#12 "));
    assert_null(strstr(line, "script>"));
    assert_null(strstr(line, "<!--"));
    assert_null(strstr(line, "www."));
    assert_null(strchr(line, '`'));
    if (line[0] == '|') assert_int_equal(count_of(line, "|"), 7);
  }
  free(text);
  made_free(&m);
}

TEST(test_markdown_is_cut) {
  char name[400];
  memset(name, '|', sizeof name - 1);
  name[sizeof name - 1] = 0;
  const char *const names[] = {name, name, name, name, name, name, name, name, name, name};
  for (size_t verdict = GATE_SAME; verdict <= GATE_MISSING; verdict++) {
    made m;
    made_create(&m, 2000, names, 10, 1);
    for (size_t i = 0; i < 2000; i++) m.comparison.rows[i].judged.verdict = (gate_verdict)verdict;
    memset(m.comparison.counts, 0, sizeof m.comparison.counts);
    m.comparison.counts[verdict] = 2000;
    char *text = made_markdown(&m.comparison);
    assert_true(strlen(text) <= 60000);
    assert_true(strlen(text) > 50000);
    assert_non_null(strstr(text, "cases are left out to keep the comment short."));
    assert_non_null(strstr(text, "\n- head: 3c8a6f8d21"));
    assert_int_equal(count_of(text, "<details>"), count_of(text, "</details>"));
    free(text);
    made_free(&m);
  }
}

/* --- JSON --- */

TEST(test_json_has_everything) {
  made m;
  made_create(&m, 14, NULL, 0, 3);
  m.head.cases[0].visits[0].samples[1].ns = NAN;
  m.comparison.differences = (char[]){"kernel: 6.1 and 6.2"};
  m.head.roofs = m.roofs;
  m.head.roof_count = MADE_ROOFS;
  char *text = made_json(&m.comparison);
  json_t *json = json_loads(text, 0, NULL), *rows = json_object_get(json, "rows");
  assert_non_null(json);
  assert_documented("## Comparison JSON", json);
  assert_int_equal(json_integer_value(json_object_get(json, "attune_comparison")), 1);
  assert_int_equal(json_array_size(rows), 14);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "counts"), "slower")), 1);
  assert_string_equal(json_string_value(json_object_get(json, "differences")), "kernel: 6.1 and 6.2");
  const json_t *head = json_object_get(json, "head");
  assert_string_equal(json_string_value(json_object_get(json_object_get(head, "fingerprint"), "kernel")), "6.1.0");
  assert_true(json_is_true(json_object_get(head, "dirty")));
  const json_t *roofs = json_object_get(head, "roofs");
  assert_int_equal(json_array_size(roofs), MADE_ROOFS);
  assert_true(json_number_value(json_object_get(json_array_get(roofs, 1), "flops_s")) == m.roofs[1].flops_s);
  for (size_t i = 0; i < 14; i++) {
    const json_t *row = json_array_get(rows, i);
    const gate_row *made_row = &m.comparison.rows[i];
    assert_true(json_number_value(json_object_get(row, "floor")) == 0.01);
    assert_string_equal(json_string_value(json_object_get(row, "verdict")),
                        gate_verdict_name(made_row->judged.verdict));
    for (int side = 0; side < 2; side++) {
      const gate_case *c = side ? made_row->head : made_row->base;
      const json_t *there = json_object_get(row, side ? "head" : "base"), *visits = json_object_get(there, "visits");
      if (!c)
        assert_true(json_is_null(there));
      else
        assert_int_equal(json_array_size(visits), (size_t)c->visit_count);
      for (int v = 0; c && v < c->visit_count; v++)
        for (int s = 0; s < c->visits[v].sample_count; s++) {
          const json_t *visit = json_array_get(visits, (size_t)v);
          const json_t *ns = json_array_get(json_object_get(visit, "ns"), (size_t)s);
          const gate_sample *sample = &c->visits[v].samples[s];
          if (isnan(sample->ns))
            assert_true(json_is_null(ns));
          else
            assert_true(fabs(json_real_value(ns) / sample->ns - 1) < 1e-11);
          assert_int_equal(json_integer_value(json_array_get(json_object_get(visit, "start"), (size_t)s)),
                           sample->start);
        }
    }
  }
  json_decref(json);
  free(text);
  made_free(&m);
}

TEST(test_json_keeps_names) {
  made m;
  made_create(&m, HOSTILE, hostile, HOSTILE, 1);
  char *text = made_json(&m.comparison);
  json_t *json = json_loads(text, 0, NULL), *rows = json_object_get(json, "rows");
  const char *const replaced =
      "bad \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd utf-8 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd";
  for (size_t i = 0; i < HOSTILE; i++) {
    const char *name = json_string_value(json_object_get(json_array_get(rows, i), "case"));
    const char *expected = i == 6 ? replaced : i == HOSTILE - 1 ? "cut off \xef\xbf\xbd\xef\xbf\xbd" : hostile[i];
    assert_string_equal(name, expected);
  }
  json_decref(json);
  free(text);
  made_free(&m);
}

TEST(test_json_of_a_history) {
  made m;
  made_create(&m, 1, NULL, 0, 1);
  m.histories[0].points[3].ns = NAN;
  char *text = made_history_json(&m.histories[0]);
  json_t *json = json_loads(text, 0, NULL), *points = json_object_get(json, "points");
  assert_documented("## History JSON", json);
  assert_int_equal(json_integer_value(json_object_get(json, "attune_history")), 1);
  assert_int_equal(json_array_size(points), m.histories[0].point_count);
  assert_true(json_is_null(json_object_get(json_array_get(points, 3), "ns")));
  assert_string_equal(json_string_value(json_object_get(json_array_get(points, 1), "revision")),
                      m.histories[0].points[1].revision);
  const json_t *change = json_array_get(json_object_get(json, "changes"), 0);
  assert_int_equal(json_integer_value(json_object_get(change, "at")), 25);
  json_decref(json);
  free(text);
  made_free(&m);
}

/* --- JUnit --- */

static bool have(const char *program) {
  char command[200];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
  return system(command) == 0;
}

/* By xmllint, else by Python's expat; else our own look: what is between < and > has no <, and & begins a reference. */
static void check_xml(const char *text) {
  const char *parser =
      have("xmllint") ? "xmllint --noout -"
      : have("python3")
          ? "python3 -c 'import sys, xml.parsers.expat as e; e.ParserCreate().Parse(sys.stdin.buffer.read(), True)'"
          : NULL;
  if (parser) {
    FILE *pipe = popen(parser, "w");
    assert_non_null(pipe);
    fputs(text, pipe);
    assert_int_equal(pclose(pipe), 0);
  }
  bool tag = false;
  for (; *text; text++) {
    assert_false(tag && *text == '<');
    tag = *text == '<' || (tag && *text != '>');
    assert_true(*text != '&' || (text[1] == '#' && strchr(text, ';') && strchr(text, ';') - text < 6));
  }
}

TEST(test_junit_is_xml_for_any_name) {
  char bytes[256], *names[257];
  for (int i = 0; i < 255; i++) bytes[i] = (char)(i + 1);
  bytes[255] = 0;
  names[0] = bytes;
  made m;
  made_create(&m, HOSTILE, hostile, HOSTILE, 1);
  char *text = made_junit(&m.comparison);
  check_xml(text);
  assert_non_null(strstr(text, "caf\xc3\xa9"));
  assert_non_null(strstr(text, "\\x01\\x02\\x1b[31mred\\x7f"));
  assert_non_null(strstr(text, "\\ufffe \\U0010ffff"));
  assert_non_null(strstr(text, "right \\u202e to left \\u200b"));
  free(text);
  made_free(&m);
  made_create(&m, 1, (const char *const *)names, 1, 1);
  text = made_junit(&m.comparison);
  check_xml(text);
  free(text);
  made_free(&m);
}

TEST(test_junit_counts) {
  made m;
  made_create(&m, 50, NULL, 0, 1);
  char *text = made_junit(&m.comparison);
  check_xml(text);
  assert_non_null(strstr(text, "tests=\"50\" failures=\"4\" errors=\"1\" skipped=\"7\""));
  assert_int_equal(count_of(text, "<testcase "), 50);
  assert_int_equal(count_of(text, "<failure type=\"slower\" message=\"+"), 4);
  assert_int_equal(count_of(text, "<error type=\"failed\" message=\"its process was ended by signal 11"), 1);
  assert_int_equal(count_of(text, "<skipped message=\"unsure: the visits differ"), 5);
  assert_int_equal(count_of(text, "<skipped message=\"missing: "), 2);
  assert_int_equal(count_of(text, "<testsuite "), 1);
  free(text);
  made_free(&m);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
