/* SPDX-License-Identifier: Apache-2.0
 * functions.c: functions.def by number and by name. */
#include "ops/elementwise/ir/keywords.h"

#include <string.h>

typedef struct entry {
  const char *name;
  uint8_t arity, rule, precedence, commutes;
} entry;

static const entry FUNCTIONS[] = {
#define AT_FUNCTION(id, name, arity, rule, precedence, commutes) {name, arity, rule, precedence, commutes},
#include "ops/elementwise/ir/functions.def"
#undef AT_FUNCTION
};

const char *at_function_name(at_function function) {
  return FUNCTIONS[function].name;
}

int at_function_arity(at_function function) {
  return FUNCTIONS[function].arity;
}

at_type_rule at_function_rule(at_function function) {
  return (at_type_rule)FUNCTIONS[function].rule;
}

int at_function_precedence(at_function function) {
  return FUNCTIONS[function].precedence;
}

bool at_function_commutes(at_function function) {
  return FUNCTIONS[function].commutes;
}

static bool is(const char *name, const char *text, size_t length) {
  return strlen(name) == length && memcmp(name, text, length) == 0;
}

int at_operator_find(const char *text, size_t length, int arity) {
  for (int i = 0; i < AT_FN_COUNT; i++)
    if (FUNCTIONS[i].precedence && FUNCTIONS[i].arity == arity && is(FUNCTIONS[i].name, text, length)) return i;
  return -1;
}

int at_function_find(const char *text, size_t length) {
  for (int i = 0; i < AT_FN_COUNT; i++)
    if (!FUNCTIONS[i].precedence && is(FUNCTIONS[i].name, text, length)) return i;
  return -1;
}

attune_dtype at_dtype_find(const char *text, size_t length) {
  for (int dtype = 1; dtype <= AT_DTYPE_LAST; dtype++)
    if (is(attune_dtype_name((attune_dtype)dtype), text, length)) return (attune_dtype)dtype;
  return (attune_dtype)0;
}
