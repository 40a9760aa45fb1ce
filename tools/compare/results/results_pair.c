/* SPDX-License-Identifier: Apache-2.0
 * results_pair.c: two runs of a file that alternated. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/compare/results/import.h"
#include "tools/compare/results/results_file.h"

/* The head of the pair that run `id` is of, 0: the latest pair that came to an end; *base: its base. 0: there is
 * none. */
static char *find_pair(gate_file *file, int64_t id, int64_t *base, int64_t *head) {
  gate_run *runs = NULL;
  size_t count = 0;
  *base = *head = 0;
  char *error = gate_file_runs(file, &runs, &count);
  for (size_t i = 0; i < count; i++) {
    const bool asked = id ? runs[i].id == id || runs[i].pair == id : runs[i].state != GATE_RUN_OPEN;
    if (runs[i].pair > 0 && asked) {
      *head = runs[i].id;
      *base = runs[i].pair;
    }
  }
  for (size_t i = 0; i < count; i++) gate_run_free(&runs[i]);
  free(runs);
  return error;
}

static char *load(gate_file *file, const char *which, gate_run *base, gate_run *head) {
  int64_t base_id = 0, head_id = 0, id = 0;
  if (which) {
    char *error = gate_file_load(file, which, head);
    if (error) return error;
    id = head->id;
    gate_run_free(head);
  }
  char *error = find_pair(file, id, &base_id, &head_id);
  if (error) return error;
  if (!head_id)
    return gate_say("%s: %s%s is not a pair of alternating runs (attune bench --against makes one); name two runs, "
                    "FILE:RUN FILE:RUN",
                    file->path, which ? "run " : "there", which ? which : "");
  error = gate_file_read(file, base_id, base);
  return error ? error : gate_file_read(file, head_id, head);
}

char *gate_load_pair(const char *name, gate_run *base, gate_run *head) {
  gate_file *file = NULL;
  const char *which = NULL;
  *base = *head = (gate_run){.state = GATE_RUN_OPEN};
  char *path = gate_split(name, &which);
  char *error = gate_import_is(path) ? gate_say("%s is JSON of one run; name a second file to compare it with", path)
                                     : gate_file_open(&file, path, false);
  if (!error) error = load(file, which, base, head);
  gate_file_close(file);
  free(path);
  if (error) {
    gate_run_free(base);
    gate_run_free(head);
  }
  return error;
}
