/* SPDX-License-Identifier: Apache-2.0
 * gate_names.c: names of rows and verdicts for the tests of the reports, where the gate has none yet. */
#include "tuning/gate/comparison.h"

#include <string.h>

__attribute__((weak)) char *gate_row_name(const gate_comparison *comparison, const gate_row *row) {
  (void)comparison;
  return strdup((row->head ? row->head : row->base)->name);
}

__attribute__((weak)) const char *gate_verdict_name(gate_verdict verdict) {
  static const char *const names[] = {"same", "faster", "slower", "unsure", "failed", "missing"};
  return names[verdict];
}
