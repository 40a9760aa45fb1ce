/* SPDX-License-Identifier: Apache-2.0
 * cmd_import.c: `attune import`: what other programs measured, as a run of a result file. */
#include "tools/cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "tools/compare/message.h"
#include "tools/compare/results/import.h"

typedef struct options {
  cli_options common;
  const char **files;
  size_t file_count;
  const char *save, *label;
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
  case 'o': o->save = argument; return 0;
  case CLI_OPTION_LABEL: o->label = argument; return 0;
  case ARGP_KEY_ARG: o->files[o->file_count++] = argument; return 0;
  case ARGP_KEY_END:
    if (!o->file_count) cli_bad_usage(state, "no FILE; should be JSON of Google Benchmark or of Criterion.rs");
    if (!o->save || !*o->save)
      cli_bad_usage(state, "no --save; should name a result file, which is created if it does not exist");
    if (o->label && strcmp(o->label, "latest") == 0)
      cli_bad_usage(state, "--label is \"latest\", which always means the latest run; should be another word");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static char *save(const char *path, gate_run *run) {
  gate_file *file = NULL;
  char *error = gate_file_open(&file, path, true);
  if (!error) error = gate_file_begin(file, run);
  for (size_t i = 0; !error && i < run->case_count; i++) {
    const gate_case *c = &run->cases[i];
    if (!c->visit_count) error = gate_file_add(file, run->id, c, NULL);
    for (int k = 0; !error && k < c->visit_count; k++) error = gate_file_add(file, run->id, c, &c->visits[k]);
  }
  if (!error) error = gate_file_end(file, run->id, GATE_RUN_COMPLETE);
  gate_file_close(file);
  return error;
}

static int tell(const options *o, const gate_run *run) {
  char *note = gate_import_note(run, GATE_ONE_PROCESS_FLOOR, false);
  int code = CLI_DONE;
  if (o->common.json) {
    code = cli_print_json(json_pack("{s:I, s:I, s:o}", "run", (json_int_t)run->id, "cases", (json_int_t)run->case_count,
                                    "note", note ? cli_json_text(note) : json_null()));
  } else {
    printf("%zu case%s; saved in ", run->case_count, run->case_count == 1 ? "" : "s");
    cli_print_padded(stdout, o->save, 0, false, false);
    printf(" as run %lld\n", (long long)run->id);
    char *clean = note ? cli_clean(note) : NULL;
    if (clean) printf("%s.\n", clean);
    free(clean);
  }
  free(note);
  return code;
}

int cmd_import(int argc, char **argv) {
  options o = {.files = cli_alloc((size_t)argc + 1, sizeof *o.files)};
  gate_run run = {.state = GATE_RUN_OPEN};
  if (cli_parse("import", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  char *error = gate_import(o.files, o.file_count, &run);
  if (!error) {
    free(run.label);
    run.label = gate_copy(o.label ? o.label : "");
    run.state = GATE_RUN_OPEN; /* until all of it is there */
    error = save(o.save, &run);
  }
  const int code = error ? CLI_USAGE : tell(&o, &run);
  if (error) cli_error("%s", error);
  free(error);
  gate_run_free(&run);
  free(o.files);
  return code;
}
