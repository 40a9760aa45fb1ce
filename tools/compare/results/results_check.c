/* SPDX-License-Identifier: Apache-2.0
 * results_check.c: numbers and names that no measurement gives. The same rules hold for what is written and for what is
 * read, since a file may come from anywhere. */
#include "tools/compare/results/results_file.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define NS_MOST 1e15          /* eleven days */
#define WORK_MOST 1e24        /* bytes, operations of a call */
#define CLOCK_MOST 1e6        /* MHz */
#define LOAD_MOST 1e9         /* processes */
#define CALLS_MOST 1000000000 /* in a sample */
#define ROUND_MOST 1000000000
#define FINGERPRINT_BYTES 65536

/* False for NaN. */
static bool within(double number, double least, double most) {
  return number >= least && number <= most;
}

static const char *sample_wrong(const gate_sample *s) {
  if (!(s->ns > 0 && s->ns <= NS_MOST)) return "a time that is not above 0 or is absurdly large";
  if (!within(s->cpu_ns, 0, NS_MOST)) return "a CPU time that is negative or absurdly large";
  if (s->start < 0) return "a sample that started before time 0";
  return NULL;
}

const char *gate_visit_wrong(const gate_visit *v) {
  if (v->round < 0 || v->round > ROUND_MOST) return "a round that is negative or absurdly large";
  if (v->calls < 1 || v->calls > CALLS_MOST) return "a number of calls that is not above 0 or is absurdly large";
  if (!within(v->clock_mhz, 0, CLOCK_MOST)) return "a clock that is negative or absurdly large";
  if (isnan(v->load) || v->load > LOAD_MOST) return "a load that is not a number or is absurdly large";
  if (v->sample_count < 0) return "a negative number of samples";
  for (int i = 0; i < v->sample_count; i++) {
    const char *wrong = sample_wrong(&v->samples[i]);
    if (wrong) return wrong;
  }
  return NULL;
}

static bool is_word(const char *text, size_t least) {
  const size_t length = text ? strnlen(text, GATE_NAME_BYTES + 1) : 0;
  return text && length >= least && length <= GATE_NAME_BYTES;
}

const char *gate_case_wrong(const gate_case *c) {
  if (!is_word(c->name, 1)) return "a case whose name is missing or too long";
  if (!is_word(c->device, 1) || !is_word(c->mode, 1) || !is_word(c->dtype, 1))
    return "a case without a device, a mode or a dtype";
  if (!within(c->bytes, 0, WORK_MOST)) return "a number of bytes that is negative or absurdly large";
  if (!within(c->flops, 0, WORK_MOST)) return "a number of operations that is negative or absurdly large";
  if (c->state != GATE_CASE_OK && c->state != GATE_CASE_FAILED) return "a case in an unknown state";
  return NULL;
}

const char *gate_roof_wrong(const gate_roof *roof) {
  if (!*roof->device || !*roof->dtype) return "a roof without a device or a dtype";
  if (!within(roof->bytes_s, 0, WORK_MOST) || !within(roof->flops_s, 0, WORK_MOST))
    return "a roof that is negative or absurdly large";
  return NULL;
}

static bool is_object(const char *text) {
  json_error_t error;
  json_t *value = strlen(text) <= FINGERPRINT_BYTES ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : NULL;
  const bool is = json_is_object(value);
  json_decref(value);
  return is;
}

const char *gate_run_wrong(const gate_run *run) {
  if (!is_word(run->label, 0) || !is_word(run->revision, 0)) return "a label or a revision that is too long";
  if (!run->suite || !run->command) return "no suite or no command";
  if (!run->fingerprint || !is_object(run->fingerprint)) return "a fingerprint that is not a JSON object";
  if (run->started < 0 || run->ended < 0) return "a date before 1970";
  if (run->pair < 0) return "a pair that is not a run";
  if (run->state < GATE_RUN_COMPLETE || run->state > GATE_RUN_OPEN) return "an unknown state";
  return NULL;
}
