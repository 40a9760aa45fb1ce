/* SPDX-License-Identifier: Apache-2.0
 * plain_check.c: does a rewritten text compute what the text does? Both graphs are evaluated for numbers that no
 * operand of a problem needs to have: special ones, any bits at all, and small ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/evaluate/element.h"
#include "src/base/dtype.h"
#include "src/process/floating.h"

enum { ELEMENTS = 256, BYTES = 16 };

/* The operands of one element. */
typedef struct operands {
  uint64_t state;
  _Alignas(BYTES) char inputs[AT_EXPRESSION_INPUTS][BYTES];
  at_constant scalars[AT_EXPRESSION_SCALARS];
} operands;

/* xorshift64 (Marsaglia 2003) */
static uint64_t draw(operands *o) {
  o->state ^= o->state << 13;
  o->state ^= o->state >> 7;
  o->state ^= o->state << 17;
  return o->state;
}

static double special(uint64_t which) {
  static const double each[] = {0.0,  -0.0, 1.0,    -1.0,   2.0,  -30.0, 0.5,  -2.5,   127.0,   128.0,
                                255., 256., 32767., 65535., 6e-8, 1e-40, 3e38, 0x1p31, -0x1p63, 1e300};
  static const double more[] = {(double)NAN, (double)INFINITY, (double)-INFINITY};
  which %= AT_COUNT(each) + AT_COUNT(more);
  return which < AT_COUNT(each) ? each[which] : more[which - AT_COUNT(each)];
}

/* Between -8 and 8, with all digits. */
static double small(operands *o) {
  return ldexp((double)(int64_t)draw(o), -60);
}

static double number(operands *o, int element) {
  return element % 3 == 0 ? special(draw(o) >> 20) : small(o);
}

static void fill_input(operands *o, attune_dtype dtype, int element, char to[BYTES]) {
  const uint64_t bits[2] = {draw(o), draw(o)};
  memcpy(to, bits, BYTES);
  if (!dtype || (element % 3 == 1 && dtype != ATTUNE_BOOL)) return; /* any bits */
  const double x = number(o, element), y = number(o, element);
  const at_wide_value value = at_dtype_whole(dtype)
                                  ? at_wide_value_cast(dtype, ATTUNE_F64, (at_wide_value){.re = 8 * x})
                                  : at_wide_value_round(dtype, (at_wide_value){.re = x, .im = y});
  at_wide_value_store(dtype, to, value);
}

static at_constant fill_scalar(operands *o, attune_dtype kind, int element) {
  const double x = number(o, element), y = number(o, element);
  if (kind == ATTUNE_BOOL) return (at_constant){.integer = (int64_t)(draw(o) >> 20 & 1)};
  if (kind == ATTUNE_I64)
    return (at_constant){.integer = element % 3 == 1 ? (int64_t)draw(o) : (int64_t)(8 * small(o))};
  return (at_constant){.re = x, .im = kind == ATTUNE_C128 ? y : 0.0};
}

static bool agree(const at_expression *e, at_wide_value *values, at_wide_value *plain) {
  operands o = {.state = 88172645463325252u};
  const at_random_draws draws = {.seed = AT_ELEMENTWISE_SEED};
  at_element element = {.scalars = o.scalars, .count = ELEMENTS, .draws = &draws};
  for (int k = 0; k < AT_EXPRESSION_INPUTS; k++) element.inputs[k] = o.inputs[k];
  for (int i = 0; i < ELEMENTS; i++) { /* names that only the text has come after the others: plain.h */
    for (int k = 0; k < AT_EXPRESSION_INPUTS; k++)
      fill_input(&o, (attune_dtype)e->plain->inputs[k].dtype, i, o.inputs[k]);
    for (int k = 0; k < AT_EXPRESSION_SCALARS; k++)
      o.scalars[k] = fill_scalar(&o, (attune_dtype)e->plain->scalars[k].dtype, i);
    element.number = i;
    for (int d = 0; d < AT_DIMS; d++) element.position[d] = (i >> d) % 5;
    at_evaluate(values, e, &element, AT_ROUND_NODES);
    at_evaluate(plain, e->plain, &element, AT_ROUND_NODES);
    if (!at_plain_same(e, values, plain)) return false;
  }
  return true;
}

attune_status at_plain_check(const at_expression *e) {
  at_wide_value *values = at_plain_values(e), *plain = at_plain_values(e->plain);
  attune_status status = ATTUNE_OK;
  const at_floating floating = at_floating_enter();
  if (!values || !plain)
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to check an expression");
  else if (!agree(e, values, plain))
    status = at_fail(ATTUNE_INTERNAL,
                     "the expression was rewritten as \"%.200s\", which gives different results: this is a bug of "
                     "attune; please report it, and write the expression differently",
                     e->text);
  at_floating_leave(&floating);
  free(values);
  free(plain);
  return status;
}
