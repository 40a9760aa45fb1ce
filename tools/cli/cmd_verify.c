/* SPDX-License-Identifier: Apache-2.0
 * cmd_verify.c: `attune verify`: times a sample of the stored winners again, in turns with the default, and reports
 * which no longer hold. */
#include "tools/cli/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SAMPLE = 20 };

typedef struct options {
  cli_options common;
  size_t sample; /* of the winners that hold here; 0: all */
  double budget_s;
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
  case 'n': o->sample = cli_whole("sample", argument, 0, 1000000, ", 0 for all", state); return 0;
  case 's': o->budget_s = cli_positive("budget", argument, "seconds", 1e9, state); return 0;
  case ARGP_KEY_ARG:
    cli_bad_usage(state, "unexpected argument \"%s\"; verify takes none (--db names a database)", argument);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* The problems with a winner that holds on the device. */
typedef struct problems {
  const char *device;
  char **texts;
  size_t count, room;
} problems;

static int note(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  problems *p = user;
  (void)fingerprint;
  const attune_decision_info d = cli_info(decision);
  if (!valid || strcmp(d.device, p->device) != 0) return 0;
  if (p->count == p->room) {
    p->room = p->room ? 2 * p->room : 64;
    p->texts = realloc(p->texts, p->room * sizeof *p->texts);
    if (!p->texts) {
      cli_error("out of memory");
      exit(CLI_FAILED);
    }
  }
  const size_t size = strlen(d.problem) + 1;
  p->texts[p->count++] = memcpy(cli_alloc(size, 1), d.problem, size);
  return 0;
}

static const char *verdict_name(attune_verdict verdict) {
  switch (verdict) {
  case ATTUNE_VERDICT_HOLDS: return "holds";
  case ATTUNE_VERDICT_GAINS_LESS: return "gains less";
  case ATTUNE_VERDICT_SLOWER: return "slower than the default";
  case ATTUNE_VERDICT_WRONG: return "wrong numbers";
  case ATTUNE_VERDICT_UNSURE: return "unsure: other work";
  default: return "unknown";
  }
}

static const cli_column columns[] = {
    {"problem", false, CLI_LONG, 0},    {"time", true, false, 2},    {"default", true, false, 1},
    {"stored", true, false, 0},         {"now", true, false, 0},     {"error", true, false, 3},
    {"implementation", false, true, 4}, {"verdict", false, false, 0}};
enum { NOW = 4, VERDICT = 7, COLUMNS = sizeof columns / sizeof columns[0] };

typedef struct report {
  cli_table table;
  json_t *array;
  size_t by_verdict[ATTUNE_VERDICT_UNSURE + 1], marked, failed, left;
  double logs; /* of what is measured over what was claimed */
} report;

/* The speedup that was stored, also of one that is marked as unsure since: what the verdict is about. */
static double claim_of(const attune_decision_info *d) {
  return d->time_ns > 0 && d->default_time_ns > 0 ? d->default_time_ns / d->time_ns : 0.0;
}

static void add(report *r, const options *o, const attune_decision_info *winner, const attune_recheck *c) {
  char time_text[CLI_CELL], default_time[CLI_CELL], stored[CLI_CELL], now[CLI_CELL], error[CLI_CELL];
  const double claim = claim_of(winner);
  r->by_verdict[c->verdict]++;
  r->marked += c->marked != 0;
  if (claim > 0 && c->verdict != ATTUNE_VERDICT_UNSURE) r->logs += log(c->speedup / claim);
  if (o->common.json) {
    json_array_append_new(r->array, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:s, s:b}", "stored",
                                              cli_json_decision(winner), "time_ns", cli_json_number(c->time_ns),
                                              "default_time_ns", cli_json_number(c->default_time_ns), "speedup",
                                              cli_json_number(c->speedup), "error", cli_json_number(c->error),
                                              "max_error", cli_json_number(c->max_error), "samples", c->samples,
                                              "verdict", verdict_name(c->verdict), "marked", c->marked));
    return;
  }
  cli_table_add(&r->table, (const char *const[COLUMNS]){
                               winner->problem, cli_time_text(time_text, c->time_ns),
                               cli_time_text(default_time, c->default_time_ns), cli_speedup_text(stored, claim),
                               cli_speedup_text(now, c->speedup), cli_percent_text(error, c->error),
                               winner->implementation, verdict_name(c->verdict)});
  if (c->verdict == ATTUNE_VERDICT_SLOWER || c->verdict == ATTUNE_VERDICT_WRONG)
    cli_table_tint(&r->table, NOW, CLI_RED), cli_table_tint(&r->table, VERDICT, CLI_RED);
}

static size_t held(const report *r) {
  return r->by_verdict[ATTUNE_VERDICT_HOLDS];
}

static size_t timed(const report *r) {
  size_t count = 0;
  for (int i = 1; i <= ATTUNE_VERDICT_UNSURE; i++) count += r->by_verdict[i];
  return count;
}

static void print_number(size_t number, const char *words) {
  if (number) printf(", %zu %s", number, words);
}

static int print(report *r, const options *o, const char *device, size_t stored) {
  const size_t count = timed(r);
  const size_t decided = count - r->by_verdict[ATTUNE_VERDICT_UNSURE];
  const double ratio = decided ? exp(r->logs / (double)decided) : 0.0;
  const size_t unsure = r->by_verdict[ATTUNE_VERDICT_UNSURE];
  const int code = held(r) + unsure == count && !r->failed ? CLI_DONE : CLI_FAILED;
  if (o->common.json) {
    const int printed = cli_print_json(json_pack(
        "{s:O, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "results", r->array, "stored", (json_int_t)stored, "timed",
        (json_int_t)count, "hold", (json_int_t)held(r), "unsure", (json_int_t)unsure, "failed", (json_int_t)r->failed,
        "left", (json_int_t)r->left, "now_over_stored", decided ? cli_json_number(ratio) : json_null()));
    return printed == CLI_DONE ? code : printed;
  }
  if (!stored) {
    printf("no stored winner is valid on %s: `attune tune' finds them\n", device);
    return code;
  }
  if (r->table.rows) cli_table_print(&r->table, stdout, o->common.wide);
  printf("%zu of %zu winner%s timed again: %zu still hold", count, stored, stored == 1 ? "" : "s", held(r));
  print_number(r->by_verdict[ATTUNE_VERDICT_GAINS_LESS], "gain less");
  print_number(r->by_verdict[ATTUNE_VERDICT_SLOWER], "slower than the default");
  print_number(r->by_verdict[ATTUNE_VERDICT_WRONG], "wrong");
  print_number(r->failed, "failed");
  print_number(unsure, "unsure");
  print_number(r->left, "not started for lack of time");
  putchar('\n');
  if (unsure) puts("unsure: other work used the CPUs; run attune verify again on a quiet machine");
  if (decided) printf("speedup now / stored speedup: geometric mean %.3f\n", ratio);
  const size_t bad = decided - held(r);
  if (bad && r->marked == bad)
    puts("winners that no longer hold are now unsure: `attune tune' measures them again");
  else if (bad)
    printf("%zu of %zu that no longer hold %s marked as unsure: `attune tune' measures again\n", r->marked, bad,
           r->marked == 1 ? "is" : "are");
  return code;
}

/* Every k-th winner from a place that changes from run to run, so that many runs see all. */
static void run_all(const options *o, attune_tuner *tuner, attune_device *device, const problems *p, report *r) {
  const size_t wanted = o->sample && o->sample < p->count ? o->sample : p->count;
  const size_t first = p->count ? (size_t)(cli_now_s() * 1e3) % p->count : 0;
  const double start = cli_now_s();
  attune_decision *stored = cli_decision(NULL);
  for (size_t i = 0; i < wanted; i++) {
    const char *problem = p->texts[(first + i * p->count / wanted) % p->count];
    attune_recheck c = {0};
    if (o->budget_s > 0 && cli_now_s() - start > o->budget_s) {
      r->left++;
      continue;
    }
    if (attune_verify(tuner, device, problem, 0.0, stored, &c) == ATTUNE_OK) {
      const attune_decision_info winner = cli_info(stored);
      add(r, o, &winner, &c);
    } else {
      r->failed++;
      cli_error("%s: %s", problem, attune_last_message());
    }
  }
  attune_decision_destroy(stored);
}

static void free_texts(problems *p) {
  for (size_t i = 0; i < p->count; i++) free(p->texts[i]);
  free(p->texts);
}

static int verify(const options *o, attune_tuner *tuner, attune_device *device) {
  attune_status status = attune_tuner_database_status(tuner);
  if (status != ATTUNE_OK) return cli_fail(status);
  problems p = {.device = attune_device_name(device)};
  status = attune_tuner_winners(tuner, note, &p);
  if (status != ATTUNE_OK) {
    free_texts(&p);
    return cli_fail(status);
  }
  report r = {.table = {.columns = columns, .column_count = COLUMNS}, .array = json_array()};
  run_all(o, tuner, device, &p, &r);
  const int code = print(&r, o, p.device, p.count);
  cli_table_free(&r.table);
  json_decref(r.array);
  free_texts(&p);
  return code;
}

int cmd_verify(int argc, char **argv) {
  options o = {.sample = DEFAULT_SAMPLE};
  if (cli_parse("verify", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  attune_device *device = NULL;
  attune_tuner *tuner = NULL;
  int code = cli_open_stored(&tuner, &device, &o.common);
  if (code != CLI_DONE) return code;
  code = verify(&o, tuner, device);
  attune_tuner_destroy(tuner);
  return code;
}
