/* SPDX-License-Identifier: Apache-2.0
 * compare_databases.c: `attune compare old.db new.db`: the winners of two tuning databases, problem by problem. */
#include "tools/cli/bench/compare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/compare/message.h"
#include "tools/compare/stats/database_verdict.h"
#include "tools/compare/stats/fingerprints.h"

enum { HEADER = 100, APPLICATION_AT = 68 };
static const unsigned char application[4] = {0x41, 0x54, 0x44, 0x42}; /* tuning/store/schema.sql */

bool compare_is_database(const char *path) {
  unsigned char header[HEADER];
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  FILE *file = fopen(path, "rb");
  const bool whole = file && fread(header, 1, HEADER, file) == HEADER;
  if (file) (void)fclose(file);
  return whole && memcmp(header, "SQLite format 3", 16) == 0 &&
         memcmp(header + APPLICATION_AT, application, sizeof application) == 0;
}

typedef struct winner {
  char *problem, *measure, *device; /* the device's model */
  int threads;                      /* CPU threads that it was measured with; 0: not known, or a GPU */
  char *name;                       /* the problem, with the threads where there are several numbers of them */
  gate_stored stored;
} winner;

typedef struct side {
  winner *winners; /* by problem, measure, device, threads; of several the latest */
  size_t count, room;
  json_t *devices; /* what they hold for, as a set */
  int64_t last;
  gate_run run;
} side;

static char *copy(const char *text, size_t chars) {
  char *out = cli_alloc(chars + 1, 1);
  memcpy(out, text, chars);
  return out;
}

static int threads_of(const char *with) {
  static const char THREADS[] = "; with threads ";
  return with && strncmp(with, THREADS, sizeof THREADS - 1) == 0 ? atoi(with + sizeof THREADS - 1) : 0;
}

static int add_winner(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  side *s = user;
  const attune_decision_info info = cli_info(decision), *d = &info;
  (void)valid;
  if (s->count == s->room) s->winners = gate_grow(s->winners, s->room = s->room ? 2 * s->room : 64, sizeof *s->winners);
  const char *with = strstr(fingerprint, "; with ");
  char *part = copy(fingerprint, with ? (size_t)(with - fingerprint) : strlen(fingerprint));
  json_object_set_new(s->devices, part, json_true());
  s->winners[s->count++] = (winner){
      .problem = copy(d->problem, strlen(d->problem)),
      .measure = copy(d->measure, strlen(d->measure)),
      .device = copy(part, strcspn(part, ";")),
      .threads = threads_of(with),
      .stored = {d->time_ns, d->spread, d->placement_spread, d->samples, d->complete && !d->unsure, d->tuned_at}};
  if (d->tuned_at > s->last) s->last = d->tuned_at;
  free(part);
  return 0;
}

/* --- in order, one a key --- */

static int by_key(const winner *a, const winner *b, bool devices) {
  int order = strcmp(a->problem, b->problem);
  if (!order) order = strcmp(a->measure, b->measure);
  if (!order && devices) order = strcmp(a->device, b->device);
  return order ? order : (a->threads > b->threads) - (a->threads < b->threads);
}

static int by_age(const winner *a, const winner *b) {
  return (a->stored.tuned_at < b->stored.tuned_at) - (a->stored.tuned_at > b->stored.tuned_at);
}

static int by_all(const void *left, const void *right) {
  const winner *a = left, *b = right;
  const int order = by_key(a, b, true);
  return order ? order : by_age(a, b);
}

static int by_problem(const void *left, const void *right) {
  const winner *a = left, *b = right;
  const int order = by_key(a, b, false);
  return order ? order : by_age(a, b);
}

static void free_winner(winner *w) {
  free(w->problem);
  free(w->measure);
  free(w->device);
  free(w->name);
}

/* The latest of each key; `devices`: a device's model is part of it. */
static void put_in_order(side *s, bool devices) {
  size_t kept = 0;
  if (s->count) qsort(s->winners, s->count, sizeof *s->winners, devices ? by_all : by_problem);
  for (size_t i = 0; i < s->count; i++)
    if (kept && by_key(&s->winners[kept - 1], &s->winners[i], devices) == 0)
      free_winner(&s->winners[i]);
    else
      s->winners[kept++] = s->winners[i];
  s->count = kept;
}

/* --- as runs, for the reports --- */

static char *text(const char *words) {
  return (char *)(uintptr_t)words;
}

static char *fingerprint_of(const side *s) {
  char *joined = gate_copy("");
  const char *device;
  json_t *unused;
  json_object_foreach(s->devices, device, unused) {
    char *longer = gate_say("%s%s%s", joined, *joined ? " | " : "", device);
    free(joined);
    joined = longer;
  }
  json_t *object = json_pack("{s:o}", "winners hold for", cli_json_text(joined));
  char *out = json_dumps(object, 0);
  json_decref(object);
  free(joined);
  return out ? out : gate_copy("{}");
}

/* Do the winners of the two sides have several numbers of threads? */
static bool has_several(const side *base, const side *head) {
  const side *const sides[] = {base, head};
  int first = 0;
  for (size_t i = 0; i < 2; i++)
    for (size_t k = 0; k < sides[i]->count; k++) {
      const int threads = sides[i]->winners[k].threads;
      if (first && threads && threads != first) return true;
      if (!first) first = threads;
    }
  return false;
}

static void name_winners(side *s, bool several) {
  for (size_t i = 0; i < s->count; i++) {
    winner *w = &s->winners[i];
    w->name = several && w->threads
                  ? gate_say("%s, %d CPU thread%s", w->problem, w->threads, w->threads == 1 ? "" : "s")
                  : gate_copy(w->problem);
  }
}

static void make_run(side *s, const char *path) {
  s->run = (gate_run){.suite = text(path),
                      .label = text(""),
                      .revision = text(""),
                      .fingerprint = fingerprint_of(s),
                      .command = text("attune tune"),
                      .started = s->last,
                      .ended = s->last,
                      .state = GATE_RUN_COMPLETE,
                      .cases = cli_alloc(s->count + 1, sizeof(gate_case)),
                      .case_count = s->count};
  for (size_t i = 0; i < s->count; i++) {
    const winner *w = &s->winners[i];
    s->run.cases[i] = (gate_case){.name = w->name, .device = w->device, .mode = w->measure, .dtype = text("-")};
  }
}

static int read_side(side *s, const char *path, bool devices) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *tuner = NULL;
  options.database = path;
  options.mode = ATTUNE_MODE_CACHED;
  s->devices = json_object();
  attune_status status = cli_open_tuner(&tuner, &options);
  if (status == ATTUNE_OK) status = attune_tuner_database_status(tuner);
  if (status == ATTUNE_OK) status = attune_tuner_winners(tuner, add_winner, s);
  const int code = status == ATTUNE_OK ? CLI_DONE : cli_fail(status);
  attune_tuner_destroy(tuner);
  put_in_order(s, devices);
  return code == CLI_FAILED ? CLI_USAGE : code;
}

static void free_side(side *s) {
  for (size_t i = 0; i < s->count; i++) free_winner(&s->winners[i]);
  free(s->winners);
  free(s->run.cases);
  free(s->run.fingerprint);
  json_decref(s->devices);
}

/* --- side by side --- */

static void add_row(gate_comparison *c, const gate_stored **base, const gate_stored **head, const side *b, size_t i,
                    const side *h, size_t k) {
  gate_row *row = &c->rows[c->row_count];
  row->base = b ? &b->run.cases[i] : NULL;
  row->head = h ? &h->run.cases[k] : NULL;
  base[c->row_count] = b ? &b->winners[i].stored : NULL;
  head[c->row_count++] = h ? &h->winners[k].stored : NULL;
}

/* Both are in the same order. How many problems both have. */
static size_t match(gate_comparison *c, const side *base, const side *head, const gate_stored **bases,
                    const gate_stored **heads, bool devices) {
  size_t common = 0;
  for (size_t i = 0, k = 0; i < base->count || k < head->count;) {
    const int order = i == base->count   ? 1
                      : k == head->count ? -1
                                         : by_key(&base->winners[i], &head->winners[k], devices);
    common += order == 0;
    add_row(c, bases, heads, order <= 0 ? base : NULL, i, order >= 0 ? head : NULL, k);
    i += order <= 0;
    k += order >= 0;
  }
  return common;
}

static void judge(gate_comparison *c, const gate_stored *const *base, const gate_stored *const *head) {
  gate_judgement *judged = cli_alloc(c->row_count, sizeof *judged);
  gate_judge_stored(judged, base, head, c->row_count, &c->rule);
  for (size_t i = 0; i < c->row_count; i++) {
    c->rows[i].judged = judged[i];
    c->counts[judged[i].verdict]++;
  }
  free(judged);
}

static int compare(const compare_options *o, const side *base, const side *head) {
  const size_t most = base->count + head->count + 1;
  const gate_stored **bases = cli_alloc(most, sizeof *bases), **heads = cli_alloc(most, sizeof *heads);
  gate_comparison c = {
      .base = &base->run, .head = &head->run, .rule = o->rule, .rows = cli_alloc(most, sizeof *c.rows)};
  int code = CLI_USAGE;
  c.differences = gate_fingerprint_differences(base->run.fingerprint, head->run.fingerprint);
  if (match(&c, base, head, bases, heads, !o->allow_different)) {
    judge(&c, bases, heads);
    code = compare_output(o, &c, NULL);
  } else {
    cli_error("%s and %s have no winners with the same problem, device, measure and number of CPU threads; "
              "--allow-different also compares those of different devices",
              o->sides[0], o->sides[1]);
  }
  gate_comparison_free(&c);
  free(bases);
  free(heads);
  return code;
}

int compare_databases(const compare_options *o) {
  side base = {0}, head = {0};
  int code = read_side(&base, o->sides[0], !o->allow_different);
  if (code == CLI_DONE) code = read_side(&head, o->sides[1], !o->allow_different);
  if (code == CLI_DONE) {
    const bool several = has_several(&base, &head);
    name_winners(&base, several);
    name_winners(&head, several);
    make_run(&base, o->sides[0]);
    make_run(&head, o->sides[1]);
    code = compare(o, &base, &head);
  }
  free_side(&base);
  free_side(&head);
  return code;
}
