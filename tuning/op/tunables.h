/* SPDX-License-Identifier: Apache-2.0
 * tunables.h: the tunables of an implementation as data. One list says of each its key in a configuration's text, the
 * field that holds its value, the macro of a kernel that it becomes, which values it may have, and what it is: text,
 * parsing, macros and docs/configurations.md come from it. To add a tunable is to add a line:
 *
 *   #define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                       \
 *     PAIR("tile", tm, "TM", 16, 256, tn, "TN", 8, 128, AT_POWERS, "rows and columns of a block")    \
 *     NUMBER("stages", stages, "STAGES", 1, 16, 0, "steps in shared memory")                         \
 *     WORD("grid", stays, NULL, grids, 0, "`stays`: it steps over the work; `whole`: it has it all") \
 *     TEXT("library", library, 64, "what it calls")
 *   static const char *const grids[] = {"whole", "stays", NULL};
 *   typedef struct choice {
 *     AT_TUNABLE_FIELDS(TUNABLES)
 *     double cost;
 *   } choice;
 *   static const at_tunables tunables = AT_TUNABLES(TUNABLES);
 *
 * The struct with the values is called `choice`. The order of the list is that of the text. Which values a list of
 * candidates goes through are axes (below), not bounds. */
#ifndef AT_TUNABLES_H
#define AT_TUNABLES_H

#include <stddef.h>

#include "tuning/op/registry.h"

enum {
  AT_POWERS = 1,   /* each value is a power of two */
  AT_LEFT_OUT = 2, /* 0, or the first word, is not written */
  AT_TEXT = 4,     /* set by TEXT: the field is an array of characters */
};

/* A number in a choice: an integer of `size` bytes, 1 to 8, without a sign where `least` has none. */
typedef struct at_tunable_value {
  const char *macro; /* NULL: none */
  int64_t least, most;
  uint16_t offset, size; /* size 0: there is none, as the second of what is no pair */
} at_tunable_value;

typedef struct at_tunable {
  const char *key;
  at_tunable_value of[2];   /* "key=A", or "key=AxB" */
  const char *const *words; /* up to a NULL: the text has the word of that number; NULL: the number */
  int how;                  /* AT_POWERS, AT_LEFT_OUT */
  const char *about;        /* its row in docs/configurations.md */
} at_tunable;

typedef struct at_tunables {
  const at_tunable *rows;
  int count;
} at_tunables;

#define AT_TUNABLE_VALUE(FIELD, MACRO, LEAST, MOST)                                        \
  {                                                                                        \
    .macro = (MACRO), .least = (LEAST), .most = (MOST), .offset = offsetof(choice, FIELD), \
    .size = sizeof(((choice *)0)->FIELD)                                                   \
  }
#define AT_TUNABLE_NUMBER(KEY, FIELD, MACRO, LEAST, MOST, HOW, ABOUT) \
  {.key = (KEY), .of = {AT_TUNABLE_VALUE(FIELD, MACRO, LEAST, MOST)}, .how = (HOW), .about = (ABOUT)},
#define AT_TUNABLE_PAIR(KEY, ONE, MACRO_1, LEAST_1, MOST_1, TWO, MACRO_2, LEAST_2, MOST_2, HOW, ABOUT)       \
  {.key = (KEY),                                                                                             \
   .of = {AT_TUNABLE_VALUE(ONE, MACRO_1, LEAST_1, MOST_1), AT_TUNABLE_VALUE(TWO, MACRO_2, LEAST_2, MOST_2)}, \
   .how = (HOW),                                                                                             \
   .about = (ABOUT)},
#define AT_TUNABLE_WORD(KEY, FIELD, MACRO, WORDS, HOW, ABOUT) \
  {.key = (KEY), .of = {AT_TUNABLE_VALUE(FIELD, MACRO, 0, 0)}, .words = (WORDS), .how = (HOW), .about = (ABOUT)},

#define AT_TUNABLE_TEXT(KEY, FIELD, CHARS, ABOUT) \
  {.key = (KEY), .of = {AT_TUNABLE_VALUE(FIELD, NULL, 0, 0)}, .how = AT_TEXT, .about = (ABOUT)},

#define AT_TUNABLE_FIELD(KEY, FIELD, ...) int FIELD;
#define AT_TUNABLE_FIELD_2(KEY, ONE, MACRO_1, LEAST_1, MOST_1, TWO, ...) int ONE, TWO;
#define AT_TUNABLE_CHARS(KEY, FIELD, CHARS, ABOUT) char FIELD[CHARS];

#define AT_TUNABLE_FIELDS(LIST) LIST(AT_TUNABLE_FIELD, AT_TUNABLE_FIELD_2, AT_TUNABLE_FIELD, AT_TUNABLE_CHARS)
#define AT_TUNABLE_ROWS(LIST)                                                  \
  (const at_tunable[]) {                                                       \
    LIST(AT_TUNABLE_NUMBER, AT_TUNABLE_PAIR, AT_TUNABLE_WORD, AT_TUNABLE_TEXT) \
  }
#define AT_TUNABLES(LIST) \
  { AT_TUNABLE_ROWS(LIST), (int)AT_COUNT(AT_TUNABLE_ROWS(LIST)) }

/* False: a text that long does not fit. */
bool at_tunables_format(const at_tunables *tunables, at_configuration *out, const void *choice);

/* The text into list[count], unless it does not fit or is in the list already. The number of them added: 0 or 1. */
int at_tunables_add(const at_tunables *tunables, at_configuration *list, int count, const void *choice);

/* Sets the fields of the tunables, and no others. False: the text is not what at_tunables_format writes, or a value is
 * out of bounds. */
bool at_tunables_parse(const at_tunables *tunables, void *choice, const at_configuration *text);

bool at_tunables_equal(const at_tunables *tunables, const void *choice, const void *other);

/* Values that fields of a choice, integers, go through, several of them together: row after row. */
enum { AT_AXIS_FIELDS = 6 };
typedef struct at_axis {
  const uint16_t *values;
  uint16_t rows, fields, at[AT_AXIS_FIELDS]; /* at: offsets */
} at_axis;

#define AT_AXIS(VALUES, ...)                                                                                \
  {                                                                                                         \
    .values = (const uint16_t *)(VALUES), .rows = sizeof(VALUES) / sizeof((const uint16_t[]){__VA_ARGS__}), \
    .fields = AT_COUNT(((const uint16_t[]){__VA_ARGS__})), .at = {                                          \
      __VA_ARGS__                                                                                           \
    }                                                                                                       \
  }
#define AT_AT(FIELD) offsetof(choice, FIELD)

/* Sets a choice's fields to combination `number` of the axes' rows, of which the last axis's change first. False: there
 * are no more. */
bool at_axes_pick(const at_axis *axes, size_t count, int number, void *choice);

int64_t at_tunable_get(const at_tunable_value *value, const void *choice);

#endif
