/* SPDX-License-Identifier: Apache-2.0
 * gate_made.c: see gate_made.h. */
#include "tests/support/check.h"

#include "tests/support/gate_made.h"

#include <math.h>

#define SAMPLES 5
#define POINTS 40

static uint64_t state;

static double uniform(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 11) / 9007199254740992.0;
}

static double normal(void) {
  return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

static void *zeros(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  assert_non_null(memory);
  return memory;
}

static char *copy(const char *text) {
  char *result = strdup(text);
  assert_non_null(result);
  return result;
}

/* --- cases --- */

static void make_name(char out[64], size_t i) {
  static const char *const kinds[] = {"product f64 nn", "product f32 tn", "sum f32", "alloc", "softmax f32"};
  const size_t size = (size_t)64 << (i / 5 % 5);
  if (i % 5 == 3)
    snprintf(out, 64, "runtime/allocate %zu KiB %zu", size, i);
  else if (i % 5 == 2 || i % 5 == 4)
    snprintf(out, 64, "%s %zux%zu", kinds[i % 5], size * 16, size + i);
  else
    snprintf(out, 64, "%s %zux%zux%zu strict", kinds[i % 5], size, size, size + i);
}

static void make_visits(gate_case *c, int rounds, double ns, double noise) {
  c->visit_count = rounds;
  c->visits = zeros((size_t)rounds, sizeof *c->visits);
  for (int i = 0; i < rounds; i++) {
    gate_visit *visit = &c->visits[i];
    *visit = (gate_visit){.round = i, .calls = 100, .clock_mhz = 2400, .load = 0.5, .sample_count = SAMPLES};
    visit->samples = zeros(SAMPLES, sizeof *visit->samples);
    const double here = ns * (1 + noise * normal());
    for (int j = 0; j < SAMPLES; j++)
      visit->samples[j] = (gate_sample){
          .ns = here * (1 + noise / 2 * fabs(normal())), .cpu_ns = here, .start = 1000000000ll * (i * SAMPLES + j)};
  }
}

static double work(size_t i, gate_case *c) {
  const double n = (double)((size_t)64 << (i / 5 % 5));
  c->dtype = copy(i % 5 == 0 ? "f64" : i % 5 == 1 ? "f32" : i % 5 == 4 ? "f32" : "-");
  if (i % 5 == 3) return 300 + 20 * n;
  if (i % 5 == 2) {
    c->bytes = 128 * n * n;
    return c->bytes / 14;
  }
  if (i % 5 == 4) {
    c->bytes = 64 * n * n;
    c->flops = 80 * n * n;
    return c->bytes / 9;
  }
  const double wide = i % 5 ? 4 : 8;
  c->bytes = 3 * wide * n * n;
  c->flops = 2 * n * n * n;
  return 2000 + c->flops / (i % 5 ? 95 : 45) * (1 + 30 / n);
}

static void make_case(gate_case *c, size_t i, const char *name, int rounds, double factor, double noise) {
  char other[64];
  make_name(other, i);
  *c = (gate_case){.name = copy(name ? name : other), .device = copy(i % 5 == 3 ? "-" : "host"), .mode = copy("hot")};
  make_visits(c, rounds, work(i, c) * factor, noise);
  if (i == 9 && rounds > 3) c->visits[1].samples[2].ns *= 30; /* far beyond the others */
}

/* --- rows --- */

static gate_verdict verdict_of(size_t i) {
  if (i % 100 == 11) return GATE_FAILED;
  if (i % 100 == 12 || i % 100 == 13) return GATE_MISSING;
  const size_t kind = (3 * i + i / 5) % 10;
  return kind == 3 ? GATE_SLOWER : kind == 6 ? GATE_FASTER : kind == 8 ? GATE_UNSURE : GATE_SAME;
}

static void judge(gate_row *row, size_t i, double factor, double noise, int rounds) {
  gate_judgement *judged = &row->judged;
  *judged = (gate_judgement){.floor = 0.01,
                             .verdict = verdict_of(i),
                             .ratio = factor,
                             .low = factor * (1 - noise),
                             .high = factor * (1 + noise),
                             .p = 0.3,
                             .p_corrected = 1,
                             .base_visits = rounds,
                             .head_visits = rounds,
                             .paired = true,
                             .base_clock = 2400,
                             .head_clock = 2400,
                             .base_spread = noise,
                             .head_spread = noise};
  const gate_case *any = row->base ? row->base : row->head;
  const double ns = any->visit_count ? any->visits[0].samples[0].ns : NAN;
  judged->base_ns = ns;
  judged->head_ns = ns * factor;
  if (judged->verdict == GATE_SLOWER || judged->verdict == GATE_FASTER) judged->p = 1e-7, judged->p_corrected = 5e-6;
  if (judged->verdict == GATE_UNSURE) judged->why = "the visits differ too much among themselves";
  if (judged->verdict == GATE_MISSING)
    judged->why = row->base ? "head does not have this case" : "base does not have this case";
  if (judged->verdict == GATE_FAILED) judged->why = "head has no times";
  if (judged->verdict == GATE_FAILED || judged->verdict == GATE_MISSING) {
    judged->ratio = judged->low = judged->high = judged->p = judged->p_corrected = NAN;
    if (!row->base || judged->verdict == GATE_FAILED) judged->head_ns = row->base ? NAN : ns;
    if (!row->base) judged->base_ns = NAN;
    if (!row->head) judged->head_ns = NAN;
  }
}

static void make_run(gate_run *run, size_t count, const char *revision, const char *label, int64_t started) {
  *run = (gate_run){.id = started % 100,
                    .suite = copy("suite.csv runtime"),
                    .label = copy(label),
                    .revision = copy(revision),
                    .command = copy("attune bench suite.csv --suite runtime --against base --save results.db"),
                    .fingerprint =
                        copy("{\"cpu\": \"Made CPU 9000 @ 2.40GHz\", \"cpus\": 2, \"kernel\": \"6.1.0\", \"governor\": "
                             "\"performance\", \"attune\": \"0.1.0\", \"device\": \"host\"}"),
                    .started = started,
                    .ended = started + 60};
  run->cases = zeros(count, sizeof *run->cases);
}

/* The change of a case, and how much its processes differ. */
static void nature(size_t i, double *factor, double *noise) {
  *noise = 0.004 + 0.006 * uniform();
  *factor = 1 + 0.002 * normal();
  if (verdict_of(i) == GATE_SLOWER) *factor = 1.02 + 0.1 * uniform() * uniform();
  if (verdict_of(i) == GATE_FASTER) *factor = 0.97 - 0.2 * uniform();
  if (verdict_of(i) == GATE_UNSURE) *noise = 0.03 + 0.03 * uniform(), *factor = 1.015;
}

static void make_row(made *out, size_t i, const char *name, int rounds) {
  double factor, noise;
  nature(i, &factor, &noise);
  gate_row *row = &out->comparison.rows[i];
  *row = (gate_row){0};
  if (i % 100 != 13) {
    gate_case *base = &out->base.cases[out->base.case_count++];
    make_case(base, i, name, rounds, 1, noise);
    row->base = base;
  }
  if (i % 100 != 12) {
    gate_case *head = &out->head.cases[out->head.case_count++];
    make_case(head, i, name, verdict_of(i) == GATE_FAILED ? 0 : rounds, factor, noise);
    row->head = head;
    if (verdict_of(i) == GATE_FAILED) {
      head->state = GATE_CASE_FAILED;
      head->message = copy("its process was ended by signal 11 (Segmentation fault)");
    }
  }
  judge(row, i, factor, noise, rounds);
  out->comparison.counts[row->judged.verdict]++;
}

/* --- histories, roofs --- */

static void make_history(gate_history *history, const char *name, double ns, double jump) {
  *history = (gate_history){.name = copy(name), .device = copy("host"), .mode = copy("hot"), .point_count = POINTS};
  history->points = zeros(POINTS, sizeof *history->points);
  for (size_t i = 0; i < POINTS; i++) {
    gate_point *point = &history->points[i];
    *point = (gate_point){.run = (int64_t)i + 1, .started = 1767225600 + 86400 * (int64_t)i, .spread = 0.006};
    snprintf(point->revision, sizeof point->revision, "%08x%032x", (unsigned)(uniform() * 4e9), 0u);
    point->ns = ns * (i < 25 ? 1 : jump) * (1 + 0.006 * normal());
  }
  history->change_count = 1;
  history->changes = zeros(1, sizeof *history->changes);
  history->changes[0] = (gate_change){.at = 25, .before = ns, .after = ns * jump, .p = 0.002};
}

void made_create(made *out, size_t count, const char *const *names, size_t name_count, int rounds) {
  state = 42;
  *out = (made){.roofs = {{"host", "f64", 20e9, 60e9}, {"host", "f32", 20e9, 120e9}}};
  make_run(&out->base, count, "27a36af0c1d2e3f405162738495a6b7c8d9e0f12", "main", 1767225600);
  make_run(&out->head, count, "3c8a6f8d21324354657687980a1b2c3d4e5f6071", "", 1767225601);
  out->head.dirty = true;
  out->head.pair = out->base.id;
  out->comparison = (gate_comparison){.base = &out->base,
                                      .head = &out->head,
                                      .rule = {.floor = 0.01, .alpha = 0.002},
                                      .alternated = true,
                                      .row_count = count,
                                      .rows = zeros(count, sizeof(gate_row))};
  for (size_t i = 0; i < count; i++) make_row(out, i, i < name_count ? names[i] : NULL, rounds);
  make_history(&out->histories[0], "runtime/allocate 64 KiB 3", 1600, 1.045);
  make_history(&out->histories[1], "sum f32 4096x322", 37000, 0.93);
}

static void free_run(gate_run *run) {
  for (size_t i = 0; i < run->case_count; i++) {
    gate_case *c = &run->cases[i];
    for (int j = 0; j < c->visit_count; j++) free(c->visits[j].samples);
    free(c->visits), free(c->name), free(c->device), free(c->mode), free(c->dtype), free(c->message);
  }
  free(run->cases), free(run->suite), free(run->label), free(run->revision), free(run->fingerprint), free(run->command);
}

void made_free(made *m) {
  free_run(&m->base);
  free_run(&m->head);
  free(m->comparison.rows);
  for (size_t i = 0; i < MADE_HISTORIES; i++) {
    gate_history *history = &m->histories[i];
    free(history->name), free(history->device), free(history->mode), free(history->points), free(history->changes);
  }
}

static char *report(bool (*write)(FILE *, const gate_comparison *), const gate_comparison *comparison) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  assert_true(write(out, comparison));
  assert_int_equal(fclose(out), 0);
  return text;
}

char *made_markdown(const gate_comparison *comparison) {
  return report(gate_report_markdown, comparison);
}

char *made_json(const gate_comparison *comparison) {
  return report(gate_report_json, comparison);
}

char *made_junit(const gate_comparison *comparison) {
  return report(gate_report_junit, comparison);
}

char *made_page(const made *m) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  assert_true(gate_report_html(out, &m->comparison, m->histories, MADE_HISTORIES, m->roofs, MADE_ROOFS));
  assert_int_equal(fclose(out), 0);
  return text;
}

char *made_history_json(const gate_history *history) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  assert_true(gate_history_json(out, history));
  assert_int_equal(fclose(out), 0);
  return text;
}

char *made_drawing(const gate_history *history, int width, bool utf8) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  assert_true(gate_history_draw(out, history, width, utf8));
  assert_int_equal(fclose(out), 0);
  return text;
}
