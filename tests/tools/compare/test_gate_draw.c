/* SPDX-License-Identifier: Apache-2.0
 * test_gate_draw.c: a history on a terminal: within its width, changes marked, ends labelled, whatever the times and
 * names. */
#include "tests/support/check.h"

#include "tests/support/gate_made.h"

#include <math.h>

/* Characters of the longest line. */
static int widest(const char *text) {
  int most = 0, width = 0;
  for (; *text; text++) {
    if (((unsigned char)*text & 0xC0) != 0x80) width++;
    if (*text == '\n') width = 0;
    if (width > most) most = width;
  }
  return most;
}

static size_t count_of(const char *text, const char *what) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) count++;
  return count;
}

TEST(test_every_width) {
  made m;
  made_create(&m, 1, NULL, 0, 1);
  for (int width = -1; width < 300; width++)
    for (int utf8 = 0; utf8 < 2; utf8++) {
      char *text = made_drawing(&m.histories[0], width, utf8);
      const int most = width <= 0 ? 80 : width < 24 ? 24 : width;
      assert_true(widest(text) <= most);
      assert_int_equal(count_of(text, utf8 ? "\u25B2" : "^"), 2);
      if (!utf8)
        for (const char *c = text; *c; c++) assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
      free(text);
    }
  made_free(&m);
}

TEST(test_change_and_ends_are_told) {
  made m;
  made_create(&m, 1, NULL, 0, 1);
  gate_history *history = &m.histories[0];
  strcpy(history->points[0].revision, "aaaaaaaaaa11");
  strcpy(history->points[25].revision, "cccccccccc33");
  history->points[39].revision[0] = 0;
  strcpy(history->points[39].label, "nightly");
  char *text = made_drawing(history, 100, true);
  assert_non_null(strstr(text, "runtime/allocate 64 KiB 3\nhost, hot, 40 runs\n"));
  assert_non_null(strstr(text, "\u25B2 +4.5 % at cccccccccc, 1.60 us to 1.67 us\n"));
  assert_non_null(strstr(text, " aaaaaaaaaa  "));
  assert_non_null(strstr(text, "  nightly\n"));
  const size_t dashes = count_of(text, "\u250A"); /* a run may stand on one of the ten */
  assert_true(dashes == 9 || dashes == 10);
  free(text);
  made_free(&m);
}

/* In which line of the plot the marks of a column are, from 0 at the top; -1: none. */
static int line_of_mark(const char *text, int column) {
  int line = -2; /* the title has two */
  while (text && line < 10) {
    const char *bar = strchr(text, '|'), *end = strchr(text, '\n');
    if (line >= 0 && bar && bar < end && end - bar > column + 1 && bar[column + 1] == '*') return line;
    text = end ? end + 1 : NULL;
    line++;
  }
  return -1;
}

TEST(test_greater_times_stand_higher) {
  gate_point points[10] = {0};
  gate_history history = {.name = (char[]){"ladder"},
                          .device = (char[]){"host"},
                          .mode = (char[]){"hot"},
                          .points = points,
                          .point_count = 10};
  for (int i = 0; i < 10; i++) points[i] = (gate_point){.run = i, .ns = 1000 + 100 * i};
  char *text = made_drawing(&history, 60, false);
  for (int i = 0; i < 10; i++) assert_int_equal(line_of_mark(text, 3 * i), 9 - i);
  assert_non_null(strstr(text, "1.90 us |"));
  assert_non_null(strstr(text, "1.00 us |"));
  assert_non_null(strstr(text, " run 0 "));
  assert_non_null(strstr(text, " run 9\n"));
  free(text);
  /* 0.1 % is not blown up to the whole height. */
  for (int i = 0; i < 10; i++) points[i].ns = 1000 + 0.1 * i;
  text = made_drawing(&history, 60, false);
  assert_true(abs(line_of_mark(text, 0) - line_of_mark(text, 27)) <= 1);
  free(text);
}

TEST(test_more_runs_than_columns) {
  gate_point *points = calloc(5000, sizeof *points);
  gate_change changes[2] = {{.at = 2000, .before = 1000, .after = 1100, .p = 0.01},
                            {.at = 4000, .before = 1100, .after = 900}};
  gate_history history = {
      .name = (char[]){"many"}, .points = points, .point_count = 5000, .changes = changes, .change_count = 2};
  for (int i = 0; i < 5000; i++) points[i].ns = i < 2000 ? 1000 : i < 4000 ? 1100 : 900;
  char *text = made_drawing(&history, 80, true);
  assert_true(widest(text) <= 80);
  assert_non_null(strstr(text, "+10.0 %"));
  assert_non_null(strstr(text, "-18.2 %"));
  free(text);
  free(points);
}

TEST(test_hostile_and_empty) {
  const double values[] = {NAN, INFINITY, -INFINITY, 0, -1, 1e308, 5e-324, 1000};
  gate_point points[8] = {0};
  gate_change changes[] = {
      {.at = 0}, {.at = 3, .before = NAN, .after = NAN, .p = NAN}, {.at = 3}, {.at = 2}, {.at = 99}};
  gate_history history = {
      .name = (char[]){"\x1b[31m\xff two\nlines \xe6\xbc\xa2\xe5\xad\x97"}, .points = points, .changes = changes};
  for (size_t count = 0; count <= 8; count++)
    for (size_t first = 0; first < 8; first++)
      for (int utf8 = 0; utf8 < 2; utf8++) {
        for (size_t i = 0; i < count; i++) {
          points[i].ns = values[(first + i) % 8];
          memset(points[i].revision, 0x1b, sizeof points[i].revision - 1);
        }
        history.point_count = count;
        history.change_count = count > 3 ? 5 : 0;
        char *text = made_drawing(&history, 40, utf8);
        assert_true(widest(text) <= 40);
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        assert_null(strchr(text, 0x1b));
        assert_non_null(strstr(text, utf8 ? "\\x1b[31m\\xff two\\x0alines \xe6\xbc\xa2\xe5\xad\x97"
                                          : "\\x1b[31m\\xff two\\x0alines \\u"));
        free(text);
      }
}

/* A narrow terminal shows that text was cut. */
TEST(test_cut_text_ends_in_a_mark) {
  gate_point points[2] = {{.ns = 1000}, {.ns = 1000}};
  gate_history history = {.name = (char[]){"a name"}, .points = points, .point_count = 2, .bases = 1};
  char *text = made_drawing(&history, 30, true), *plain = made_drawing(&history, 30, false);
  assert_true(widest(text) == 30);
  assert_non_null(strstr(text, "a name\n"));
  assert_non_null(strstr(text, "without 1 base: of two altern\xe2\x80\xa6\n"));
  assert_non_null(strstr(plain, "without 1 base: of two altern~\n"));
  free(text);
  free(plain);
}

TEST(test_full_disk_is_false) {
  made m;
  made_create(&m, 1, NULL, 0, 1);
  FILE *full = fopen("/dev/full", "w");
  assert_non_null(full);
  assert_false(gate_history_draw(full, &m.histories[0], 80, true));
  fclose(full);
  made_free(&m);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
