/* SPDX-License-Identifier: Apache-2.0
 * results_checksum.c: checksums of a result file's values, by which a number that was changed is found. SQLite has
 * no checksums. They cover values, not bytes, and are equal on every machine. */
#include "tools/compare/results/results_file.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void put_int(XXH64_state_t *state, int64_t value) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)value >> 8 * i);
  (void)XXH64_update(state, bytes, sizeof bytes);
}

static void put_real(XXH64_state_t *state, double value) {
  int64_t bits;
  value += 0.0; /* SQLite has no negative zero */
  memcpy(&bits, &value, sizeof bits);
  put_int(state, bits);
}

/* With its length, so that no two lists of texts are alike. */
static void put_text(XXH64_state_t *state, const char *text) {
  const size_t length = text ? strlen(text) : 0;
  put_int(state, text ? (int64_t)length : -1);
  (void)XXH64_update(state, text ? text : "", length);
}

/* `kind`: what the checksum is of. */
static void begin(XXH64_state_t *state, const char *kind) {
  (void)XXH64_reset(state, 0);
  put_text(state, kind);
}

/* 0 means that there is none. */
static int64_t end(const XXH64_state_t *state) {
  const uint64_t hash = XXH64_digest(state);
  return hash ? (int64_t)hash : 1;
}

/* Not of its state and its end: those change, and a wrong one is no number of a measurement. */
int64_t gate_run_checksum(const gate_run *run) {
  XXH64_state_t state;
  begin(&state, "run");
  put_text(&state, run->suite);
  put_text(&state, run->label);
  put_text(&state, run->revision);
  put_int(&state, run->dirty);
  put_text(&state, run->fingerprint);
  put_text(&state, run->command);
  put_int(&state, run->started);
  put_int(&state, run->pair);
  return end(&state);
}

static void put_identity(XXH64_state_t *state, int64_t run, const gate_case *c) {
  put_int(state, run);
  put_text(state, c->name);
  put_text(state, c->device);
  put_text(state, c->mode);
}

int64_t gate_case_checksum(int64_t run, const gate_case *c, int64_t visits) {
  XXH64_state_t state;
  begin(&state, "case");
  put_identity(&state, run, c);
  put_text(&state, c->dtype);
  put_real(&state, c->bytes);
  put_real(&state, c->flops);
  put_int(&state, c->state == GATE_CASE_FAILED);
  put_text(&state, c->message);
  put_int(&state, visits);
  return end(&state);
}

int64_t gate_visit_checksum(int64_t run, const gate_case *c, const gate_visit *v) {
  XXH64_state_t state;
  begin(&state, "visit");
  put_identity(&state, run, c);
  put_int(&state, v->round);
  put_int(&state, v->calls);
  put_real(&state, v->clock_mhz);
  put_int(&state, v->throttled);
  put_real(&state, v->load);
  put_int(&state, v->sample_count);
  for (int i = 0; i < v->sample_count; i++) {
    put_real(&state, v->samples[i].ns);
    put_real(&state, v->samples[i].cpu_ns);
    put_int(&state, v->samples[i].start);
  }
  return end(&state);
}

int64_t gate_roof_checksum(int64_t run, const gate_roof *roof) {
  XXH64_state_t state;
  begin(&state, "roof");
  put_int(&state, run);
  put_text(&state, roof->device);
  put_text(&state, roof->dtype);
  put_real(&state, roof->bytes_s);
  put_real(&state, roof->flops_s);
  return end(&state);
}
