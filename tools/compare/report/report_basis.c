/* SPDX-License-Identifier: Apache-2.0
 * report_basis.c: what a row's change rests on, since dividing its two times may give another one: the change is
 * the middle of the ratios within the rounds, in which both met the same machine, the times are medians over all
 * rounds. */
#include "tools/compare/report/report_text.h"

#include <math.h>

static const double DIFFER = 0.005; /* what a reader sees in three digits */

void gate_basis_add(gate_basis *basis, const char *name, double ratio, double base_ns, double head_ns) {
  const double times = head_ns / base_ns, off = fabs(log(times / ratio));
  if (!isfinite(off) || off <= DIFFER) return;
  basis->rows++;
  if (off <= basis->most) return;
  basis->most = off;
  basis->name = name;
  basis->ratio = ratio;
  basis->times = times;
}

gate_basis gate_basis_of(const gate_comparison *comparison) {
  gate_basis basis = {.paired = comparison->alternated};
  for (size_t i = 0; i < comparison->row_count; i++) {
    const gate_judgement *judged = &comparison->rows[i].judged;
    gate_basis_add(&basis, gate_row_case(&comparison->rows[i])->name, judged->ratio, judged->base_ns, judged->head_ns);
  }
  return basis;
}

void gate_put_basis(FILE *out, gate_markup markup, const gate_basis *basis) {
  char ratio[GATE_CELL], times[GATE_CELL];
  fprintf(out, "change: the middle of the ratios %s; times: medians over all rounds",
          basis->paired ? "within the rounds" : "of each visit of the head to each of the base");
  if (!basis->rows) return;
  fprintf(out, ". They differ by more than 0.5 %% in %zu case%s, most in ", basis->rows, basis->rows == 1 ? "" : "s");
  gate_put(out, markup, basis->name, 100);
  fprintf(out, " (change %s, from the times %s)", gate_change_text(ratio, basis->ratio),
          gate_change_text(times, basis->times));
  if (basis->paired) fputs(": rely on the change", out);
}
