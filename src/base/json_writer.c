/* SPDX-License-Identifier: Apache-2.0
 * json_writer.c: nested values as JSON, or as a pickle of protocol 4 without memo and frames, which both are optional. */
#include "src/base/json_writer.h"

#include <string.h>

/* Python hands so many values at a time to a list or an object: readers are made for that. */
#define BATCH 1000

enum {
  PROTOCOL = 0x80,
  STOP = '.',
  MARK = '(',
  EMPTY_OBJECT = '}',
  EMPTY_LIST = ']',
  SET_ITEMS = 'u',
  APPENDS = 'e',
  BYTE = 'K',
  SHORT = 'M',
  INT = 'J',
  LONG = 0x8a,
  REAL = 'G',
  TRUTH = 0x88,
  UNTRUTH = 0x89,
  SHORT_WORD = 0x8c,
  WORD = 'X',
  PAIR = 0x86
};

static void put_byte(at_json *values, int byte) {
  const char c = (char)byte;
  at_string_builder_put(&values->text, &c, 1);
}

/* The lowest byte first. */
static void put_bytes(at_json *values, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; i++) put_byte(values, (int)(number >> (8 * i) & 0xff));
}

/* Before each value that is no key's: the comma, or the end of a batch. */
static void next_value(at_json *values) {
  if (values->after_key || values->depth == 0) {
    values->after_key = false;
    return;
  }
  size_t *count = &values->count[values->depth - 1];
  if (!values->pickle && *count > 0) at_string_builder_put(&values->text, ",", 1);
  if (values->pickle && *count > 0 && *count % BATCH == 0) {
    put_byte(values, APPENDS);
    put_byte(values, MARK);
  }
  ++*count;
}

static void open_level(at_json *values, int kind, const char *json) {
  next_value(values);
  if (values->pickle) {
    put_byte(values, kind);
    put_byte(values, MARK);
  } else {
    at_string_builder_put(&values->text, json, 1);
  }
  values->count[values->depth++] = 0;
}

static void close_level(at_json *values, int end, const char *json) {
  values->depth--;
  if (values->pickle)
    put_byte(values, end);
  else
    at_string_builder_put(&values->text, json, 1);
}

void at_json_begin(at_json *values) {
  if (!values->pickle) return;
  put_byte(values, PROTOCOL);
  put_byte(values, 4);
}

attune_status at_json_end(at_json *values, char **out, size_t *out_bytes) {
  if (values->pickle)
    put_byte(values, STOP);
  else
    at_string_builder_put(&values->text, "\n", 1);
  *out_bytes = values->text.length;
  return at_string_builder_take(&values->text, out);
}

void at_json_object(at_json *values) {
  open_level(values, EMPTY_OBJECT, "{");
}

void at_json_object_end(at_json *values) {
  close_level(values, SET_ITEMS, "}");
}

void at_json_list(at_json *values) {
  open_level(values, EMPTY_LIST, "[");
}

void at_json_list_end(at_json *values) {
  close_level(values, APPENDS, "]");
}

static void put_word(at_json *values, const char *word) {
  const size_t length = strlen(word);
  put_byte(values, length < 256 ? SHORT_WORD : WORD);
  put_bytes(values, length, length < 256 ? 1 : 4);
  at_string_builder_put(&values->text, word, length);
}

/* Objects are small: no batch of theirs is ever full. */
void at_json_key(at_json *values, const char *name) {
  size_t *count = &values->count[values->depth - 1];
  if (values->pickle)
    put_word(values, name);
  else
    at_string_builder_add(&values->text, "%s\"%s\":", *count > 0 ? "," : "", name);
  ++*count;
  values->after_key = true;
}

static void put_number(at_json *values, int64_t number) {
  if (number >= 0 && number < 256) {
    put_byte(values, BYTE);
    put_bytes(values, (uint64_t)number, 1);
  } else if (number >= 0 && number < 65536) {
    put_byte(values, SHORT);
    put_bytes(values, (uint64_t)number, 2);
  } else if (number >= INT32_MIN && number <= INT32_MAX) {
    put_byte(values, INT);
    put_bytes(values, (uint64_t)number, 4);
  } else {
    put_byte(values, LONG);
    put_byte(values, 8);
    put_bytes(values, (uint64_t)number, 8);
  }
}

void at_json_number(at_json *values, int64_t number) {
  next_value(values);
  if (values->pickle)
    put_number(values, number);
  else
    at_string_builder_add(&values->text, "%lld", (long long)number);
}

void at_json_real(at_json *values, double number) {
  uint64_t bits = 0;
  next_value(values);
  if (!values->pickle) {
    at_string_builder_add(&values->text, "%.6f", number);
    return;
  }
  memcpy(&bits, &number, sizeof bits);
  put_byte(values, REAL);
  put_bytes(values, __builtin_bswap64(bits), 8);
}

void at_json_truth(at_json *values, bool truth) {
  next_value(values);
  if (values->pickle)
    put_byte(values, truth ? TRUTH : UNTRUTH);
  else
    at_string_builder_add(&values->text, truth ? "true" : "false");
}

void at_json_word(at_json *values, const char *word) {
  char clean[1024];
  size_t length = 0;
  next_value(values);
  if (!values->pickle) {
    at_string_builder_quote(&values->text, word);
    return;
  }
  for (; *word && length + 1 < sizeof clean; word++)
    if (*word >= 0x20 && *word < 0x7f) clean[length++] = *word;
  clean[length] = '\0';
  put_word(values, clean);
}

void at_json_pair(at_json *values, int64_t first, int64_t second) {
  next_value(values);
  if (!values->pickle) {
    at_string_builder_add(&values->text, "[%lld,%lld]", (long long)first, (long long)second);
    return;
  }
  put_number(values, first);
  put_number(values, second);
  put_byte(values, PAIR);
}
