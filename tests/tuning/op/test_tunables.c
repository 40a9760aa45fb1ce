/* SPDX-License-Identifier: Apache-2.0
 * test_tunables.c: lists of tunables: a choice as text and back, what is out of bounds, and what no list writes. */
#include "tests/support/check.h"

#include "tuning/op/tunables.h"

static const char *const kinds[] = {"none", "some", "all", NULL};

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                 \
  PAIR("tile", tm, "TM", 16, 256, tn, NULL, 1, 100, 0, "rows and columns") \
  NUMBER("stages", stages, "STAGES", 0, 16, 0, "steps")                    \
  NUMBER("lanes", lanes, NULL, 4, 32, AT_POWERS, "lanes")                  \
  WORD("kind", kind, "KIND", kinds, AT_LEFT_OUT, "kinds")                  \
  NUMBER("wide", wide, NULL, 1, 3, AT_LEFT_OUT, "left out or so many")

typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
  double cost;
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

static bool parses(choice *c, const char *text) {
  at_configuration given = {""};
  snprintf(given.text, sizeof given.text, "%s", text);
  return at_tunables_parse(&tunables, c, &given);
}

TEST(there_and_back) {
  at_configuration text;
  choice c = {.tm = 128, .tn = 48, .stages = 0, .lanes = 8, .cost = 3.5}, back = {.kind = 2, .wide = 3, .cost = 7.0};
  assert_true(at_tunables_format(&tunables, &text, &c));
  assert_string_equal(text.text, "tile=128x48,stages=0,lanes=8");
  assert_true(at_tunables_parse(&tunables, &back, &text));
  assert_true(at_tunables_equal(&tunables, &c, &back));
  assert_true(back.cost == 7.0); /* no tunable */
  c.kind = 1, c.wide = 2;
  assert_false(at_tunables_equal(&tunables, &c, &back));
  assert_true(at_tunables_format(&tunables, &text, &c));
  assert_string_equal(text.text, "tile=128x48,stages=0,lanes=8,kind=some,wide=2");
  assert_true(at_tunables_parse(&tunables, &back, &text));
  assert_true(at_tunables_equal(&tunables, &c, &back));
  back.tn = 47;
  assert_false(at_tunables_equal(&tunables, &c, &back));
}

TEST(bounds) {
  static const char *const good[] = {"tile=16x1,stages=0,lanes=4", "tile=256x100,stages=16,lanes=32",
                                     "tile=17x3,stages=1,lanes=16,kind=all,wide=3"};
  static const char *const bad[] = {
      "tile=15x1,stages=0,lanes=4",        "tile=257x1,stages=0,lanes=4",        "tile=16x0,stages=0,lanes=4",
      "tile=16x101,stages=0,lanes=4",      "tile=16x1,stages=-1,lanes=4",        "tile=16x1,stages=17,lanes=4",
      "tile=16x1,stages=0,lanes=2",        "tile=16x1,stages=0,lanes=64",        "tile=16x1,stages=0,lanes=12",
      "tile=16x1,stages=0,lanes=4,wide=4", "tile=16x1,stages=4294967296,lanes=4"};
  choice c = {0};
  for (size_t i = 0; i < AT_COUNT(good); i++)
    if (!parses(&c, good[i])) fail_msg("%s is refused", good[i]);
  for (size_t i = 0; i < AT_COUNT(bad); i++)
    if (parses(&c, bad[i])) fail_msg("%s is taken", bad[i]);
}

/* An equivalent text is refused: a winner is found by its text. */
TEST(other_texts) {
  static const char *const bad[] = {"",
                                    "tile=16x1",
                                    "tile=16x1,stages=0,lanes=4,",
                                    ",tile=16x1,stages=0,lanes=4",
                                    "stages=0,tile=16x1,lanes=4",
                                    "tile=16x1,stages=0,lanes=4,lanes=4",
                                    "tile=16x1,stages=0,lanes=4,more=1",
                                    "tile=016x1,stages=0,lanes=4",
                                    "tile=16x+1,stages=0,lanes=4",
                                    "tile=16X1,stages=0,lanes=4",
                                    "tile=16,stages=0,lanes=4",
                                    "tile=16x1x1,stages=0,lanes=4",
                                    "tile=16x1,stages=0 ,lanes=4",
                                    "tile=16x1,stages=,lanes=4",
                                    "tile=16x1,stages=0,lanes=4,kind=none",
                                    "tile=16x1,stages=0,lanes=4,kind=most",
                                    "tile=16x1,stages=0,lanes=4,wide=0"};
  choice c = {0};
  for (size_t i = 0; i < AT_COUNT(bad); i++)
    if (parses(&c, bad[i])) fail_msg("%s is taken", bad[i]);
}

TEST(fields_of_each_size) {
  typedef struct sizes {
    uint8_t one;
    uint16_t two;
    int32_t four;
    int64_t eight;
  } sizes;
  const at_tunable rows[] = {{.key = "one", .of = {{NULL, 0, 255, offsetof(sizes, one), 1}}},
                             {.key = "two", .of = {{NULL, 0, 65535, offsetof(sizes, two), 2}}},
                             {.key = "four", .of = {{NULL, -9, 1 << 30, offsetof(sizes, four), 4}}},
                             {.key = "eight", .of = {{NULL, -9, 1 << 30, offsetof(sizes, eight), 8}}}};
  const at_tunables list = {rows, AT_COUNT(rows)};
  const sizes c = {200, 60000, -7, 1 << 30};
  sizes back = {255, 0, 0, -1};
  at_configuration text;
  assert_true(at_tunables_format(&list, &text, &c));
  assert_string_equal(text.text, "one=200,two=60000,four=-7,eight=1073741824");
  assert_true(at_tunables_parse(&list, &back, &text));
  assert_true(back.one == 200 && back.two == 60000 && back.four == -7 && back.eight == 1 << 30);
}

TEST(a_text_that_does_not_fit) {
  static char key[AT_CONFIGURATION_CHARS];
  memset(key, 'k', sizeof key - 1);
  const at_tunable row = {.key = key, .of = {AT_TUNABLE_VALUE(stages, NULL, 0, 9)}};
  const at_tunables one = {&row, 1};
  at_configuration text;
  const choice c = {0};
  assert_false(at_tunables_format(&one, &text, &c));
}

/* A text is taken as it is, where a field has room for it; 32 bits without a sign hold what has all of them set. */
TEST(texts_and_large_numbers) {
  typedef struct called {
    char name[8];
    uint32_t count;
  } called;
  const at_tunable rows[] = {{.key = "name", .of = {{NULL, 0, 0, offsetof(called, name), 8}}, .how = AT_TEXT},
                             {.key = "count", .of = {{NULL, 0, UINT32_MAX, offsetof(called, count), 4}}}};
  const at_tunables list = {rows, AT_COUNT(rows)};
  const called c = {"abc-1.2", UINT32_MAX};
  called back = {"1234567", 3};
  at_configuration text[2], long_name = {"name=abc-1.23,count=1"}, no_name = {"name=,count=1"},
                            more = {"name=a,count=-1"};
  assert_int_equal(at_tunables_add(&list, text, 0, &c), 1);
  assert_string_equal(text[0].text, "name=abc-1.2,count=4294967295");
  assert_int_equal(at_tunables_add(&list, text, 1, &c), 0); /* it is there */
  assert_true(at_tunables_parse(&list, &back, &text[0]));
  assert_true(at_tunables_equal(&list, &c, &back));
  back.name[6] = '3';
  assert_false(at_tunables_equal(&list, &c, &back));
  assert_int_equal(at_tunables_add(&list, text, 1, &back), 1);
  assert_false(at_tunables_parse(&list, &back, &long_name));
  assert_false(at_tunables_parse(&list, &back, &no_name));
  assert_false(at_tunables_parse(&list, &back, &more));
  assert_int_equal(at_tunables_add(&list, text, 0, &(called){"a,b=c", 1}), 0);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
