/* SPDX-License-Identifier: Apache-2.0
 * tunables.c: configurations as text and back, by lists of tunables. */
#include "tuning/op/tunables.h"

#include <string.h>

enum { VALUE_CHARS = 64 };

int64_t at_tunable_get(const at_tunable_value *value, const void *choice) {
  const unsigned char *at = (const unsigned char *)choice + value->offset;
  int64_t wide = 0;
  uint32_t word = 0;
  uint16_t half = 0;
  if (value->size == sizeof wide) return memcpy(&wide, at, sizeof wide), wide;
  if (value->size == sizeof word)
    return memcpy(&word, at, sizeof word), value->least < 0 ? (int64_t)(int32_t)word : (int64_t)word;
  if (value->size == sizeof half) return memcpy(&half, at, sizeof half), half;
  return *at;
}

static void set(const at_tunable_value *value, void *choice, int64_t number) {
  unsigned char *at = (unsigned char *)choice + value->offset;
  const uint32_t word = (uint32_t)number;
  const uint16_t half = (uint16_t)number;
  if (value->size == sizeof number)
    memcpy(at, &number, sizeof number);
  else if (value->size == sizeof word)
    memcpy(at, &word, sizeof word);
  else if (value->size == sizeof half)
    memcpy(at, &half, sizeof half);
  else
    *at = (unsigned char)number;
}

static char *text_of(const at_tunable *t, const void *choice) {
  return (char *)(uintptr_t)choice + t->of[0].offset;
}

static bool write(const at_tunable *t, char out[VALUE_CHARS], const void *choice) {
  size_t at = 0;
  if (t->how & AT_TEXT) return at_copy_text(out, VALUE_CHARS, text_of(t, choice));
  const long long first = at_tunable_get(&t->of[0], choice);
  if (t->words) return at_append(out, VALUE_CHARS, &at, "%s", t->words[first]);
  if (!t->of[1].size) return at_append(out, VALUE_CHARS, &at, "%lld", first);
  return at_append(out, VALUE_CHARS, &at, "%lldx%lld", first, (long long)at_tunable_get(&t->of[1], choice));
}

bool at_tunables_format(const at_tunables *tunables, at_configuration *out, const void *choice) {
  char text[VALUE_CHARS];
  *out = (at_configuration){""};
  for (const at_tunable *t = tunables->rows; t < tunables->rows + tunables->count; t++) {
    if (t->how & AT_LEFT_OUT && at_tunable_get(&t->of[0], choice) == 0) continue;
    if (!write(t, text, choice) || !at_configuration_put_text(out, t->key, text)) return false;
  }
  return true;
}

int at_tunables_add(const at_tunables *tunables, at_configuration *list, int count, const void *choice) {
  at_configuration text;
  if (!at_tunables_format(tunables, &text, choice)) return 0;
  for (int i = 0; i < count; i++)
    if (strcmp(list[i].text, text.text) == 0) return 0;
  list[count] = text;
  return 1;
}

static bool set_checked(const at_tunable *t, int which, void *choice, int64_t number) {
  const at_tunable_value *value = &t->of[which];
  if (number < value->least || number > value->most || (t->how & AT_POWERS && !at_is_power_of_two(number)))
    return false;
  set(value, choice, number);
  return true;
}

static bool read_word(const at_tunable *t, void *choice, const char *text) {
  for (int i = 0; t->words[i]; i++)
    if (strcmp(text, t->words[i]) == 0) {
      set(&t->of[0], choice, i);
      return true;
    }
  return false;
}

/* Other faults of the text, such as a sign or leading zeros, are found when it is written again. */
static bool read(const at_tunable *t, void *choice, const char *text) {
  int64_t first = 0, second = 0;
  if (t->how & AT_TEXT) return *text && at_copy_text(text_of(t, choice), t->of[0].size, text);
  if (t->words) return read_word(t, choice, text);
  if (!t->of[1].size) return at_parse_i64(&first, text) && set_checked(t, 0, choice, first);
  const size_t chars = at_read_i64(&first, text);
  return chars && text[chars] == 'x' && at_parse_i64(&second, text + chars + 1) && set_checked(t, 0, choice, first) &&
         set_checked(t, 1, choice, second);
}

bool at_tunables_parse(const at_tunables *tunables, void *choice, const at_configuration *text) {
  char value[VALUE_CHARS];
  at_configuration again;
  for (const at_tunable *t = tunables->rows; t < tunables->rows + tunables->count; t++) {
    for (int i = 0; i < 2; i++) memset((char *)choice + t->of[i].offset, 0, t->of[i].size);
    if (at_configuration_get_text(text, t->key, value, sizeof value)) {
      if (!read(t, choice, value)) return false;
    } else if (!(t->how & AT_LEFT_OUT)) {
      return false;
    }
  }
  return at_tunables_format(tunables, &again, choice) && strcmp(again.text, text->text) == 0;
}

bool at_axes_pick(const at_axis *axes, size_t count, int number, void *choice) {
  for (const at_axis *x = axes + count; x-- > axes; number /= x->rows)
    for (int i = 0; i < x->fields; i++) {
      const int value = x->values[number % x->rows * x->fields + i];
      memcpy((char *)choice + x->at[i], &value, sizeof value);
    }
  return number == 0;
}

bool at_tunables_equal(const at_tunables *tunables, const void *choice, const void *other) {
  for (const at_tunable *t = tunables->rows; t < tunables->rows + tunables->count; t++)
    for (int i = 0; i < 2; i++)
      if (memcmp((const char *)choice + t->of[i].offset, (const char *)other + t->of[i].offset, t->of[i].size) != 0)
        return false;
  return true;
}
