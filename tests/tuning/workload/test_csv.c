/* SPDX-License-Identifier: Apache-2.0
 * test_csv.c: RFC 4180 as it is met in practice, and every complaint with its place. */
#include "tests/support/check.h"

#include "tuning/workload/csv.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/attune-csv-XXXXXX";

/* A reader of the text as the file w.csv of the folder, which is the present one. */
static attune_status read_text(at_csv *out, const char *text, size_t size) {
  FILE *file = fopen("w.csv", "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  return at_csv_open(out, "w.csv");
}

/* The whole text as "cell|cell/cell|cell/", or the message of what fails. */
static char *flatten(const char *text, size_t size) {
  static char out[4096];
  at_csv csv;
  at_csv_row row;
  size_t at = 0;
  out[0] = '\0';
  attune_status status = read_text(&csv, text, size);
  if (status != ATTUNE_OK) {
    snprintf(out, sizeof out, "%s", attune_last_message());
    return out;
  }
  while ((status = at_csv_next(&csv, &row)) == ATTUNE_OK && row.count)
    for (int i = 0; i < row.count; i++)
      at_append(out, sizeof out, &at, "%s%s", row.cells[i].text, i + 1 < row.count ? "|" : "/");
  if (status != ATTUNE_OK) {
    assert_int_equal(status, ATTUNE_BAD_DATA);
    snprintf(out, sizeof out, "%s", attune_last_message());
  }
  at_csv_close(&csv);
  return out;
}

static void expect(const char *text, const char *wanted) {
  assert_string_equal(flatten(text, strlen(text)), wanted);
}

TEST(reads_cells) {
  expect("a,b\n1,2\n", "a|b/1|2/");
  expect("a,b\n1,2", "a|b/1|2/");
  expect("a,b\r\n1,2\r\n", "a|b/1|2/");
  expect("a,b\r\n1,2\r", "a|b/1|2/");
  expect("\xEF\xBB\xBF"
         "a,b\n",
         "a|b/");
  expect(" a ,\tb \n", "a|b/");
  expect("", "");
  expect("\n\n", "");
}

TEST(reads_quotes) {
  expect("\"a,b\",c\n", "a,b|c/");
  expect("\"a \"\"b\"\"\",\"\"\n", "a \"b\"|/");
  expect("\" a \" , b\n", " a |b/");
  expect("\"two\nlines\",x\ny\n", "two\nlines|x/y/");
  expect("\"#no comment\"\n", "#no comment/");
}

TEST(skips_comments) {
  expect("# one, \"two\n  \n\r\na\n#b\nc#d\n", "a/c#d/");
  expect("# only", "");
}

/* As spreadsheets write it. */
TEST(reads_what_spreadsheets_write) {
  expect("a;b\n1;\"x;y\"\n", "a|b/1|x;y/");
  expect("a\tb\n1\t\tc\n", "a|b/1||c/");
  expect("a,b;c\n1,2;3\n", "a|b;c/1|2;3/"); /* a comma in the head: what stands between */
  expect("sep=;\r\na;b\r\n", "a|b/");
  expect("\xEF\xBB\xBF"
         "sep=,\na,b\n",
         "a|b/");
  expect("# x, y\r\na;b\r\n", "a|b/"); /* of a comment */
  expect(",,,\na,b,,\n,,,\n\"\",\"\",,\n1,2,,\n,,,\n", "a|b||/1|2||/");
  expect("a,b,c\n\"# one, two\",,\n#x,,\n1,2,3\n", "a|b|c/1|2|3/");
  expect("a;b\n\"1\"2;3\n", "w.csv:2:4: text after a closing quote; should be a semicolon or the end of the line");
}

TEST(names_the_place) {
  expect("a,b\n1,x\"y\n",
         "w.csv:2:4: a quote inside a field; quotes should enclose the whole field and be doubled within it");
  expect("a,\"b\n\n", "w.csv:1:3: a quote that is never closed; should end with \"");
  expect("a,b\n\"1\"2,3\n", "w.csv:2:4: text after a closing quote; should be a comma or the end of the line");
  expect("a\rb\n", "w.csv:1:2: a carriage return without a line feed; lines should end in LF or CRLF");
  /* Lines inside a quoted cell count; a mark at the start takes no column. */
  expect("\"1\n2\",a\"b\n",
         "w.csv:2:5: a quote inside a field; quotes should enclose the whole field and be doubled within it");
  expect("\xEF\xBB\xBF"
         "a\"\n",
         "w.csv:1:2: a quote inside a field; quotes should enclose the whole field and be doubled within it");
}

TEST(refuses_what_is_no_text) {
  assert_string_equal(flatten("a,b\n1,\0\n", 8), "w.csv:2:3: contains a NUL byte; should be text");
  assert_string_equal(flatten("\xFF\xFE"
                              "a\0",
                              4),
                      "w.csv:1:1: is UTF-16 text; should be UTF-8");
}

TEST(holds_its_caps) {
  char wide[2 * AT_CSV_MAX_CELLS + 2];
  memset(wide, ',', sizeof wide);
  wide[0] = 'a';
  assert_non_null(strchr(flatten(wide, sizeof wide), '|')); /* those beyond are empty */
  wide[AT_CSV_MAX_CELLS + 1] = 'b';
  assert_string_equal(flatten(wide, AT_CSV_MAX_CELLS + 2), "w.csv:1:66: more than 64 fields in a row");
  char *longest = malloc(AT_CSV_MAX_RECORD + 2);
  memset(longest, 'x', AT_CSV_MAX_RECORD + 2);
  assert_string_equal(flatten(longest, AT_CSV_MAX_RECORD + 2), "w.csv:1:1: a row longer than 64 KiB");
  free(longest);
  at_csv csv;
  assert_int_equal(truncate("w.csv", (off_t)AT_CSV_MAX_BYTES + 1), 0);
  assert_int_equal(at_csv_open(&csv, "w.csv"), ATTUNE_BAD_DATA);
}

TEST(cells_know_their_place) {
  at_csv csv;
  at_csv_row row;
  const char text[] = "#\nab, \"c\nd\",e\n";
  assert_int_equal(read_text(&csv, text, sizeof text - 1), ATTUNE_OK);
  assert_int_equal(at_csv_next(&csv, &row), ATTUNE_OK);
  assert_int_equal(row.count, 3);
  assert_int_equal(row.line, 2);
  assert_int_equal(row.cells[1].line, 2);
  assert_int_equal(row.cells[1].column, 5);
  assert_int_equal(row.cells[2].line, 3);
  assert_int_equal(row.cells[2].column, 4);
  at_csv_close(&csv);
}

TEST(opens_files) {
  at_csv csv;
  at_csv_row row;
  char own[] = "/tmp/attune-test-csv-XXXXXX", path[64];
  assert_non_null(mkdtemp(own));
  FAILS_SAYING(at_csv_open(&csv, own), ATTUNE_INVALID_ARGUMENT, "is a directory");
  snprintf(path, sizeof path, "%s/w.csv", own);
  FAILS_SAYING(at_csv_open(&csv, path), ATTUNE_NOT_FOUND, path);
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 20000; i++) fprintf(file, "%d,%d\n", i, 2 * i);
  fclose(file);
  assert_int_equal(at_csv_open(&csv, path), ATTUNE_OK);
  for (int i = 0; i < 20000; i++) {
    assert_int_equal(at_csv_next(&csv, &row), ATTUNE_OK);
    assert_int_equal(row.count, 2);
    assert_int_equal(atoi(row.cells[1].text), 2 * i);
    assert_int_equal(row.line, i + 1);
  }
  assert_int_equal(at_csv_next(&csv, &row), ATTUNE_OK);
  assert_int_equal(row.count, 0);
  at_csv_close(&csv);
  chmod(path, 0);
  if (geteuid() != 0) assert_int_equal(at_csv_open(&csv, path), ATTUNE_PERMISSION);
  unlink(path);
  rmdir(own);
}

/* Nothing but OK or BAD_DATA comes of any bytes, and reading ends; under the sanitizers this is a small campaign. */
TEST(survives_any_bytes) {
  static const char alphabet[] = "a1,\"\"\n\r# \t\xEF\xBB\xBF";
  unsigned seed = 7;
  for (int round = 0; round < 20000; round++) {
    char text[48];
    size_t size = (size_t)(rand_r(&seed) % (int)sizeof text);
    for (size_t i = 0; i < size; i++) text[i] = alphabet[rand_r(&seed) % (int)(sizeof alphabet - 1)];
    flatten(text, size);
  }
}

FIXTURE(enter_folder) {
  return mkdtemp(folder) ? chdir(folder) : -1;
}

FIXTURE(leave_folder) {
  (void)unlink("w.csv");
  return chdir("/") | rmdir(folder);
}

int main(void) {
  return RUN_TESTS(enter_folder, leave_folder);
}
