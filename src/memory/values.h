/* SPDX-License-Identifier: Apache-2.0
 * values.h: nested values as text: JSON, or what Python's pickle module reads. Of the pickle's operations only those that
 * Python itself writes for such values are used, since a page that reads snapshots knows no others. */
#ifndef AT_MEMORY_VALUES_H
#define AT_MEMORY_VALUES_H

#include "src/memory/text.h"

#define AT_VALUES_DEPTH 16

/* Start from {.pickle = ...}, at_values_begin, and end with at_values_end. */
typedef struct at_values {
  at_text text;
  bool pickle;
  bool after_key;                /* the next value is that of a key */
  int depth;                     /* objects and lists that are open */
  size_t count[AT_VALUES_DEPTH]; /* values in each of them */
} at_values;

void at_values_begin(at_values *values);
/* Hands the text over, or fails; *out_bytes is its length. */
attune_status at_values_end(at_values *values, char **out, size_t *out_bytes);

void at_values_object(at_values *values);
void at_values_object_end(at_values *values);
void at_values_list(at_values *values);
void at_values_list_end(at_values *values);
/* The value that comes next is the object's of that name. */
void at_values_key(at_values *values, const char *name);

void at_values_number(at_values *values, int64_t number);
void at_values_real(at_values *values, double number);
void at_values_truth(at_values *values, bool truth);
/* What is no ASCII in it is left out. */
void at_values_word(at_values *values, const char *word);
/* Two numbers; to Python a tuple. */
void at_values_pair(at_values *values, int64_t first, int64_t second);

#endif
