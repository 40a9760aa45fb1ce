/* SPDX-License-Identifier: Apache-2.0
 * expression.c: the end of an expression. */
#include "ops/elementwise/expression.h"

#include <stdlib.h>

#include "ops/elementwise/raw.h"

void at_expression_destroy(at_expression *expression) {
  if (!expression) return;
  at_raw_release(expression->function);
  at_expression_destroy(expression->plain);
  free(expression->nodes);
  free(expression->text);
  free(expression);
}
