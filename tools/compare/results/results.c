/* SPDX-License-Identifier: Apache-2.0
 * results.c: a run in memory: what is freed, what is found. */
#include "tools/compare/results/results.h"

#include <stdlib.h>
#include <string.h>

void gate_case_free(gate_case *c) {
  for (int i = 0; i < c->visit_count; i++) free(c->visits[i].samples);
  free(c->visits);
  free(c->name);
  free(c->device);
  free(c->mode);
  free(c->dtype);
  free(c->peer_of);
  free(c->message);
  *c = (gate_case){.name = NULL};
}

void gate_run_free(gate_run *run) {
  if (!run) return;
  for (size_t i = 0; i < run->case_count; i++) gate_case_free(&run->cases[i]);
  free(run->cases);
  free(run->roofs);
  free(run->suite);
  free(run->label);
  free(run->revision);
  free(run->fingerprint);
  free(run->command);
  *run = (gate_run){.state = GATE_RUN_OPEN};
}

const gate_case *gate_run_find(const gate_run *run, const gate_case *like) {
  for (size_t i = 0; i < run->case_count; i++) {
    const gate_case *c = &run->cases[i];
    if (strcmp(c->name, like->name) == 0 && strcmp(c->device, like->device) == 0 && strcmp(c->mode, like->mode) == 0)
      return c;
  }
  return NULL;
}
