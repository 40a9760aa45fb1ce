/* SPDX-License-Identifier: Apache-2.0
 * cmd_eval.c: `attune eval`: one elementwise expression: tuned, run on random operands, checked, compared with a
 * copy. */
#include "tools/cli/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/eval.h"

enum { PRINTED = 4, MOST_PRINTED = 1000000, SAMPLE = 1 << 16, SEED = 1 };

typedef struct options {
  cli_options common;
  attune_elementwise_words words;
  double budget_s; /* 0: the tuner's own */
  int64_t sample;  /* elements to check; 0: all */
  int64_t print;
  uint64_t seed;
  bool no_tune;
} options;

typedef struct evaluating {
  const options *options;
  attune_device *device;
  attune_tuner *tuner;
  attune_stream *stream;
  attune_evaluation *evaluation;
  attune_decision *decision; /* how it was chosen */
  attune_evaluation_errors errors;
  attune_scalar *values; /* to be printed, a row for each tensor: calls that are timed may change them */
  eval_times times;
} evaluating;

typedef struct tensors {
  const attune_tensor *at[ATTUNE_ELEMENTWISE_INPUTS + ATTUNE_ELEMENTWISE_OUTPUTS];
  int count, outputs;
} tensors;

static tensors tensors_of(const evaluating *e) {
  const attune_elementwise_operands *o = attune_evaluation_operands(e->evaluation);
  tensors t = {.count = o->output_count + o->input_count, .outputs = o->output_count};
  for (int i = 0; i < t.count; i++) t.at[i] = i < t.outputs ? &o->outputs[i] : &o->inputs[i - t.outputs];
  return t;
}

static int64_t printed(const evaluating *e) {
  return e->options->print < e->errors.elements ? e->options->print : e->errors.elements;
}

/* ---- options ---- */

static attune_accuracy parse_contract(const char *text, struct argp_state *state) {
  static const char *const names[] = {"strict", "equivalent", "reduced"};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) return (attune_accuracy)i;
  cli_bad_usage(state, "--contract is \"%s\"; should be strict, equivalent or reduced", text);
  return ATTUNE_STRICT;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
  case CLI_OPTION_SHAPE: o->words.shape = argument; break;
  case CLI_OPTION_DTYPE: o->words.dtype = argument; break;
  case CLI_OPTION_INPUTS: o->words.inputs = argument; break;
  case CLI_OPTION_OUTPUTS: o->words.outputs = argument; break;
  case CLI_OPTION_SCALARS: o->words.scalars = argument; break;
  case CLI_OPTION_CONTRACT: o->words.accuracy = parse_contract(argument, state); break;
  case 's': o->budget_s = cli_positive("budget", argument, "seconds", 1e9, state); break;
  case 'n': o->sample = (int64_t)cli_whole("sample", argument, 0, INT64_MAX, ", 0 for all", state); break;
  case CLI_OPTION_PRINT: o->print = (int64_t)cli_whole("print", argument, 0, MOST_PRINTED, "", state); break;
  case CLI_OPTION_SEED: o->seed = cli_whole("seed", argument, 0, UINT64_MAX, "", state); break;
  case CLI_OPTION_NO_TUNE: o->no_tune = true; break;
  case ARGP_KEY_ARG:
    if (o->words.expression)
      cli_bad_usage(state, "unexpected argument \"%s\"; eval takes one EXPRESSION, in quotes", argument);
    o->words.expression = argument;
    break;
  case ARGP_KEY_END:
    if (!o->words.expression)
      cli_bad_usage(
          state,
          "no EXPRESSION; should be one like 'gelu(a + b) * b'; one that looks like an option goes after --: -- -j");
    if (!o->words.shape) cli_bad_usage(state, "no --shape; should be sizes like 4096x4096");
    break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

/* ---- work ---- */

/* The tuner's own memory is taken before ours. A problem that cannot be tuned in its budget runs as it is. */
static int tune(evaluating *e) {
  const char *problem = attune_evaluation_problem(e->evaluation);
  cli_progress progress = {0};
  if (!e->options->no_tune) {
    attune_status status = attune_tuner_database_prepare(e->tuner);
    if (status != ATTUNE_OK) return cli_fail(status);
    cli_progress_begin(&progress, 1, 1);
    cli_progress_draw(&progress, e->options->words.expression, 0, 0);
    status = attune_tune(e->tuner, e->device, problem, &(attune_tune_options){.budget_ms = 1e3 * e->options->budget_s},
                         NULL);
    cli_progress_clear(&progress);
    if (status == ATTUNE_BUDGET_EXHAUSTED)
      cli_error("warning: not tuned: %s", attune_last_message());
    else if (status != ATTUNE_OK)
      return cli_fail(status);
  }
  const attune_status status = attune_explain(e->tuner, e->device, problem, e->decision);
  return status == ATTUNE_OK ? CLI_DONE : cli_fail(status);
}

static int run(evaluating *e) {
  const options *o = e->options;
  attune_status status = attune_evaluation_place(e->evaluation, e->stream, o->seed);
  if (status == ATTUNE_OK) status = attune_evaluation_check(e->evaluation, e->tuner, o->sample, &e->errors);
  if (status != ATTUNE_OK) return cli_fail(status);
  const int count = tensors_of(e).count;
  const int64_t rows = printed(e);
  e->values = cli_alloc((size_t)count * (size_t)rows + 1, sizeof *e->values);
  for (int i = 0; i < count; i++)
    for (int64_t index = 0; index < rows; index++)
      (void)attune_evaluation_element(e->evaluation, i, index, &e->values[i * rows + index]);
  return CLI_DONE;
}

static int take_time(evaluating *e) {
  const options *o = e->options;
  const attune_status status = eval_time(&e->times, e->tuner, e->stream, &o->words, e->evaluation, o->seed);
  return status == ATTUNE_OK ? CLI_DONE : cli_fail(status);
}

/* ---- results ---- */

static bool is_right(const evaluating *e) {
  return e->errors.max_error <= 1.0;
}

static double gb_per_s(double bytes, double ns) {
  return ns > 0 ? bytes / ns : 0;
}

static const char *value_text(char out[2 * CLI_CELL], const attune_scalar *s, attune_dtype dtype) {
  const size_t size = 2 * CLI_CELL;
  const int digits = dtype == ATTUNE_F64 || dtype == ATTUNE_C128  ? 15
                     : dtype == ATTUNE_F32 || dtype == ATTUNE_C64 ? 7
                                                                  : 5;
  if (s->kind == ATTUNE_BOOL)
    snprintf(out, size, "%s", s->integer ? "true" : "false");
  else if (dtype == ATTUNE_U64)
    snprintf(out, size, "%llu", (unsigned long long)s->integer);
  else if (s->kind == ATTUNE_I64)
    snprintf(out, size, "%lld", (long long)s->integer);
  else if (s->kind == ATTUNE_C128)
    snprintf(out, size, "%.*g%+.*gj", digits, s->value, digits, s->imaginary);
  else
    snprintf(out, size, "%.*g", digits, s->value);
  return out;
}

static json_t *value_json(const attune_scalar *s, attune_dtype dtype) {
  if (s->kind == ATTUNE_BOOL) return json_boolean(s->integer);
  if (dtype == ATTUNE_U64 && s->integer < 0) return json_real((double)(uint64_t)s->integer);
  if (s->kind == ATTUNE_I64) return json_integer(s->integer);
  if (s->kind == ATTUNE_C128) return json_pack("[o, o]", cli_json_number(s->value), cli_json_number(s->imaginary));
  return cli_json_number(s->value);
}

/* "a:f32", "out:bf16", "out1:f32" */
static void title_of(char *out, size_t size, const tensors *t, int i) {
  const char *dtype = attune_dtype_name(t->at[i]->dtype);
  if (i >= t->outputs)
    snprintf(out, size, "%s:%s", t->at[i]->name, dtype);
  else if (t->outputs == 1)
    snprintf(out, size, "out:%s", dtype);
  else
    snprintf(out, size, "out%d:%s", i, dtype);
}

/* Element by element, inputs first, in row-major order. */
static void print_values(const evaluating *e) {
  enum { MOST = 1 + ATTUNE_ELEMENTWISE_INPUTS + ATTUNE_ELEMENTWISE_OUTPUTS };
  const tensors t = tensors_of(e);
  char titles[MOST][96], cells[MOST][2 * CLI_CELL];
  const char *row[MOST] = {cells[0]};
  cli_column columns[MOST] = {{"element", true, false, 0}};
  for (int c = 0; c < t.count; c++) {
    const int i = (c + t.outputs) % t.count; /* inputs, then outputs */
    title_of(titles[c], sizeof titles[c], &t, i);
    columns[c + 1] = (cli_column){titles[c], true, false, i < t.outputs ? 0 : c + 1};
    row[c + 1] = cells[c + 1];
  }
  cli_table table = {.columns = columns, .column_count = t.count + 1};
  for (int64_t index = 0; index < printed(e); index++) {
    snprintf(cells[0], sizeof cells[0], "%lld", (long long)index);
    for (int c = 0; c < t.count; c++) {
      const int i = (c + t.outputs) % t.count;
      (void)value_text(cells[c + 1], &e->values[i * printed(e) + index], t.at[i]->dtype);
    }
    cli_table_add(&table, row);
  }
  if (table.rows) cli_table_print(&table, stdout, e->options->common.wide);
  cli_table_free(&table);
}

static void line(const char *label, const char *text) {
  printf("  %-11s", label);
  cli_print_padded(stdout, text, 0, false, false);
  putchar('\n');
}

static const char *origin(attune_source source) {
  switch (source) {
  case ATTUNE_SOURCE_TUNED: return "measured now";
  case ATTUNE_SOURCE_STORED:
  case ATTUNE_SOURCE_SYSTEM: return "the stored winner";
  case ATTUNE_SOURCE_NEIGHBOUR: return "a guess: the winner of a similar problem, or a rule";
  default: return "the default";
  }
}

static void print_words(const evaluating *e) {
  const attune_decision_info info = cli_info(e->decision), *d = &info;
  const eval_times *t = &e->times;
  const double bytes = (double)attune_evaluation_bytes(e->evaluation), rate = gb_per_s(bytes, t->call_ns),
               copy = gb_per_s(t->copy_bytes, t->copy_ns);
  char text[512], call[CLI_CELL];
  cli_print_padded(stdout, e->options->words.expression, 0, false, false);
  printf(" on %s\n", attune_device_name(e->device));
  line("problem", attune_evaluation_problem(e->evaluation));
  snprintf(text, sizeof text, "%s%s%s, %s", d->implementation, *d->configuration ? " " : "", d->configuration,
           origin(d->source));
  line("runs", text);
  snprintf(text, sizeof text,
           "%s of the %lld elements checked (of %lld) are %s: largest error %.3g of the contract's tolerance, %.3g ulp",
           is_right(e) ? "all" : "some", (long long)e->errors.checked, (long long)e->errors.elements,
           is_right(e) ? "right" : "WRONG", e->errors.max_error, e->errors.max_ulps);
  line("checked", text);
  snprintf(text, sizeof text, "%s per call (%s, median of %d round%s)", cli_time_text(call, t->call_ns), t->measure,
           t->rounds, t->rounds == 1 ? "" : "s");
  line("time", text);
  if (copy > 0)
    snprintf(text, sizeof text, "%.4g GB/s; a copy of as many bytes, timed in turns: %.4g GB/s", rate, copy);
  else
    snprintf(text, sizeof text, "%.4g GB/s", rate);
  line("bandwidth", text);
  print_values(e);
}

static json_t *values_json(const evaluating *e, bool outputs) {
  json_t *all = json_array();
  const tensors t = tensors_of(e);
  for (int i = outputs ? 0 : t.outputs; i < (outputs ? t.outputs : t.count); i++) {
    json_t *values = json_array();
    for (int64_t index = 0; index < printed(e); index++)
      json_array_append_new(values, value_json(&e->values[i * printed(e) + index], t.at[i]->dtype));
    json_t *one = json_pack("{s:s, s:o}", "dtype", attune_dtype_name(t.at[i]->dtype), "values", values);
    if (!outputs) json_object_set_new(one, "name", cli_json_text(t.at[i]->name));
    json_array_append_new(all, one);
  }
  return all;
}

static int print_json(const evaluating *e) {
  const eval_times *t = &e->times;
  const double bytes = (double)attune_evaluation_bytes(e->evaluation);
  json_t *object = json_pack("{s:o, s:s, s:o, s:I, s:I, s:b, s:o, s:o, s:o, s:s, s:I}", "expression",
                             cli_json_text(e->options->words.expression), "device", attune_device_name(e->device),
                             "problem", cli_json_text(attune_evaluation_problem(e->evaluation)), "elements",
                             (json_int_t)e->errors.elements, "checked", (json_int_t)e->errors.checked, "correct",
                             is_right(e), "max_error", cli_json_number(e->errors.max_error), "max_ulps",
                             cli_json_number(e->errors.max_ulps), "time_ns", cli_json_number(t->call_ns), "measure",
                             t->measure, "bytes", (json_int_t)attune_evaluation_bytes(e->evaluation));
  json_object_set_new(object, "rounds", json_integer(t->rounds));
  json_object_set_new(object, "gb_per_s", cli_json_number(gb_per_s(bytes, t->call_ns)));
  json_object_set_new(object, "copy_time_ns", t->copy_ns > 0 ? cli_json_number(t->copy_ns) : json_null());
  json_object_set_new(object, "copy_gb_per_s",
                      t->copy_ns > 0 ? cli_json_number(gb_per_s(t->copy_bytes, t->copy_ns)) : json_null());
  const attune_decision_info info = cli_info(e->decision);
  json_object_set_new(object, "decision", cli_json_decision(&info));
  json_object_set_new(object, "inputs", values_json(e, false));
  json_object_set_new(object, "outputs", values_json(e, true));
  return cli_print_json(object);
}

/* ---- the command ---- */

static int evaluate(evaluating *e) {
  int code = tune(e);
  if (code == CLI_DONE) code = run(e);
  if (code == CLI_DONE) code = take_time(e);
  if (code != CLI_DONE) return code;
  if (e->options->common.json)
    code = print_json(e);
  else
    print_words(e);
  if (!is_right(e))
    cli_error("the results are wrong: an error is %.3g times the contract's tolerance", e->errors.max_error);
  return code == CLI_DONE && !is_right(e) ? CLI_FAILED : code;
}

static int open_tuner(evaluating *e) {
  attune_tuner_options tuner_options = ATTUNE_TUNER_OPTIONS_INIT;
  tuner_options.database = e->options->common.database;
  tuner_options.mode = ATTUNE_MODE_CACHED;
  attune_status status = attune_tuner_create(&e->tuner, &tuner_options);
  if (status == ATTUNE_OK) status = attune_tuner_database_status(e->tuner);
  return status == ATTUNE_OK ? CLI_DONE : cli_fail(status);
}

/* A stream of its own, since a default one cannot be captured; on the host the default one, which runs calls at
 * once. */
static int open_stream(evaluating *e) {
  attune_device_properties p = {0};
  attune_status status = attune_device_get_properties(e->device, &p);
  if (status == ATTUNE_OK && p.kind == ATTUNE_DEVICE_HOST) {
    e->stream = attune_stream_default(e->device);
    return CLI_DONE;
  }
  if (status == ATTUNE_OK) status = attune_stream_create(&e->stream, e->device);
  return status == ATTUNE_OK ? CLI_DONE : cli_fail(status);
}

int cmd_eval(int argc, char **argv) {
  options o = {.sample = SAMPLE, .print = PRINTED, .seed = SEED};
  if (cli_parse("eval", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  evaluating e = {.options = &o, .decision = cli_decision(NULL)};
  const attune_status status = attune_evaluation_create(&e.evaluation, &o.words);
  if (status != ATTUNE_OK) {
    attune_decision_destroy(e.decision);
    return cli_fail(status);
  }
  int code = cli_open_device(&e.device, &o.common);
  if (code == CLI_DONE) code = open_tuner(&e);
  if (code == CLI_DONE) code = open_stream(&e);
  if (code == CLI_DONE) code = evaluate(&e);
  free(e.values);
  attune_decision_destroy(e.decision);
  attune_evaluation_destroy(e.evaluation);
  attune_stream_destroy(e.stream);
  attune_tuner_destroy(e.tuner);
  return code;
}
