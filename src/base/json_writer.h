/* SPDX-License-Identifier: Apache-2.0
 * json_writer.h: nested values as JSON. */
#ifndef AT_MEMORY_JSON_WRITER_H
#define AT_MEMORY_JSON_WRITER_H

#include "src/base/string_builder.h"

#define AT_JSON_DEPTH 16

/* Starts from zeros and ends with at_json_end. */
typedef struct at_json {
  at_string_builder text;
  bool after_key;              /* the next value is that of a key */
  int depth;                   /* objects and lists that are open */
  size_t count[AT_JSON_DEPTH]; /* values in each of them */
} at_json;

/* Hands the text over, or fails; *out_bytes is its length. */
attune_status at_json_end(at_json *values, char **out, size_t *out_bytes);

/* Each value has its name in an object, and NULL in a list. */
void at_json_object(at_json *values, const char *name);
void at_json_object_end(at_json *values);
void at_json_list(at_json *values, const char *name);
void at_json_list_end(at_json *values);
void at_json_number(at_json *values, const char *name, int64_t number);
/* With `digits` decimals, and a point in every locale; null for what JSON has no number for. */
void at_json_real(at_json *values, const char *name, double number, int digits);
void at_json_truth(at_json *values, const char *name, bool truth);
void at_json_word(at_json *values, const char *name, const char *word);
/* A list of two numbers. */
void at_json_pair(at_json *values, const char *name, int64_t first, int64_t second);

/* The name of the value that comes next, which is written without one. */
void at_json_key(at_json *values, const char *name);

#endif
