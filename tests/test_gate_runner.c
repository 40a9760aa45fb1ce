/* SPDX-License-Identifier: Apache-2.0
 * test_gate_runner.c: the schedule of a benchmark with workers that do well, crash, hang and talk nonsense. What the workers
 * tell as times is made up: nothing here depends on how fast the machine is. */
#include "tests/gate_fixture.h"

#include "tuning/gate/comparison.h"
#include "tuning/gate/rounds.h"
#include "tuning/gate/summary.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>

enum { ARGUMENTS = 16 };

typedef struct bench {
  gate_source *sources[GATE_SIDES][2];
  gate_rounds_side sides[GATE_SIDES];
  gate_run runs[GATE_SIDES];
  gate_rounds *rounds;
  gate_outcome outcome;
  int side_count;
} bench;

static volatile sig_atomic_t stopped;

static const gate_schedule plain = {.rounds = 4,
                                    .samples = 3,
                                    .sample_ns = 1000,
                                    .case_s = 1e6,
                                    .seed = 12345,
                                    .limits = {.hang_s = 120, .interrupted = &stopped}};

static gate_source *worker(const gate_limits *limits, const char *const *words) {
  const char *argv[ARGUMENTS + 2] = {AT_WORKER};
  for (int i = 0; words[i]; i++) argv[i + 1] = words[i];
  return gate_worker_create(argv, limits, 99);
}

/* One worker a side; NULL base: one side. */
static void begin(bench *b, const gate_schedule *schedule, const char *const *head, const char *const *base) {
  const char *const *words[GATE_SIDES] = {head, base};
  *b = (bench){.side_count = base ? 2 : 1};
  stopped = 0;
  for (int i = 0; i < b->side_count; i++) {
    b->sources[i][0] = worker(&schedule->limits, words[i]);
    b->sides[i] = (gate_rounds_side){b->sources[i], 1, &b->runs[i]};
  }
  b->rounds = gate_rounds_create(schedule, b->sides, b->side_count);
}

static void end(bench *b) {
  gate_outcome_free(&b->outcome);
  gate_rounds_destroy(b->rounds);
  for (int i = 0; i < b->side_count; i++) {
    gate_source_destroy(b->sources[i][0]);
    gate_run_free(&b->runs[i]);
  }
}

static void do_all(bench *b, const gate_schedule *schedule, const char *const *head, const char *const *base) {
  begin(b, schedule, head, base);
  FINE(gate_rounds_list(b->rounds));
  FINE(gate_rounds_run(b->rounds, &b->outcome));
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const gate_case *named(const bench *b, int side, const char *name) {
  for (size_t i = 0; i < b->runs[side].case_count; i++)
    if (strcmp(b->runs[side].cases[i].name, name) == 0) return &b->runs[side].cases[i];
  fail_msg("no case %s", name);
  return NULL;
}

static void does_well(const bench *b, int side, const char *name, int visits) {
  const gate_case *c = named(b, side, name);
  if (c->state != GATE_CASE_OK) fail_msg("%s failed: %s", name, c->message);
  assert_int_equal(c->visit_count, visits);
}

static void failed_with(const bench *b, int side, const char *name, const char *words) {
  const gate_case *c = named(b, side, name);
  assert_int_equal(c->state, GATE_CASE_FAILED);
  assert_non_null(c->message);
  if (!strstr(c->message, words)) fail_msg("%s: \"%s\"; should say \"%s\"", name, c->message, words);
}

/* --- the schedule --- */

static char *text_of(const char *path) {
  FILE *stream = fopen(path, "r");
  assert_non_null(stream);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  assert_in_range(fread(text, 1, (1 << 20) - 1, stream), 1, (1 << 20) - 2);
  fclose(stream);
  return text;
}

static const char *log_word(void) {
  static char word[160];
  snprintf(word, sizeof word, "--log=%s", path_of("log"));
  return word;
}

static void samples_and_rounds(void **state) {
  (void)state;
  bench b;
  do_all(&b, &plain, WORDS("a=time:1000", "b=time:2000.5"), WORDS("a=time:1100", "b=time:2000"));
  assert_int_equal(b.outcome.count, 2);
  assert_int_equal(b.outcome.rounds, 4);
  assert_false(b.outcome.interrupted);
  assert_null(b.outcome.judged);
  for (int side = 0; side < 2; side++) {
    does_well(&b, side, "a", 4);
    does_well(&b, side, "b", 4);
  }
  const gate_case *c = named(&b, GATE_BASE, "a");
  assert_string_equal(c->device, "-");
  assert_string_equal(c->mode, "hot");
  assert_true(c->bytes == 100);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(c->visits[i].round, i);
    assert_int_equal(c->visits[i].calls, 3);
    assert_int_equal(c->visits[i].sample_count, 3);
    assert_true(c->visits[i].clock_mhz == 1500);
    assert_true(c->visits[i].samples[2].ns == 1100 && c->visits[i].samples[2].cpu_ns == 550);
    assert_int_equal(c->visits[i].samples[2].start, 5);
  }
  assert_string_equal(b.sources[0][0]->version, "9.8.7");
  assert_ptr_equal(b.outcome.sides[GATE_BASE][0], c);
  end(&b);
}

/* In the log of both sides: processes are new in each round, sides take turns within a case and begin by turns that are
 * drawn, cases come in orders that are drawn, and both sides get the same seed. */
static void turns_and_orders(void **state) {
  (void)state;
  bench b;
  gate_schedule schedule = plain;
  char turns[2048] = "", orders[2048] = "", seeds[2][64] = {"", ""};
  int starts = 0, first_head = 0, opens = 0, same_seeds = 0;
  schedule.rounds = 8;
  do_all(&b, &schedule, WORDS(log_word(), "--side=H", "a=time:1", "b=time:1", "c=time:1"),
         WORDS(log_word(), "--side=B", "a=time:1", "b=time:1", "c=time:1"));
  end(&b);
  char *log = text_of(path_of("log"));
  for (char *rest = log, *line; (line = strsep(&rest, "\n")) && *line;) {
    char side, request[16], name[16] = "", seed[64] = "";
    assert_in_range(sscanf(line, "%c %*s %15s %15s %63s", &side, request, name, seed), 3, 4);
    starts += strcmp(request, "start") == 0;
    if (strcmp(request, "open") == 0) {
      snprintf(seeds[opens % 2], sizeof seeds[0], "%s", seed);
      if (opens % 2 == 0) {
        strcat(orders, name);
        first_head += side == 'H';
        strcat(turns, " ");
      } else {
        same_seeds += strcmp(seeds[0], seeds[1]) == 0;
      }
      opens++;
    }
    if (strcmp(request, "sample") == 0) strncat(turns, &side, 1);
  }
  free(log);
  assert_int_equal(starts, 16);
  assert_int_equal(opens, 2 * 8 * 3);
  assert_int_equal(same_seeds, 8 * 3);
  assert_in_range(first_head, 4, 20);
  for (const char *turn = strtok(turns, " "); turn; turn = strtok(NULL, " "))
    assert_true(strcmp(turn, "HBBHHB") == 0 || strcmp(turn, "BHHBBH") == 0);
  assert_int_equal(strlen(orders), 24);
  int like_first = 0;
  for (int i = 1; i < 8; i++) like_first += strncmp(orders, orders + 3L * i, 3) == 0;
  assert_in_range(like_first, 0, 5);
}

/* Peers are opened one after the other in every round, in orders that are drawn, by the same seed, which is theirs alone,
 * and the ratio is of the rounds. */
static void peers_stay_together(void **state) {
  (void)state;
  enum { ROUNDS = 8 };
  bench b;
  gate_schedule schedule = plain;
  char orders[ROUNDS * 6 + 1] = "";
  char seeds[4][64], last[64] = "";
  int peer_first = 0, like_first = 0, same_seeds = 0, other_seeds = 0;
  schedule.rounds = ROUNDS;
  do_all(&b, &schedule,
         WORDS(log_word(), "x=time:7", "a=time:1000", "b@a=time:1500", "y=time:7", "c@a=time:500", "z=time:7"), NULL);
  assert_string_equal(named(&b, GATE_HEAD, "c")->peer_of, "a");
  assert_null(named(&b, GATE_HEAD, "a")->peer_of);
  assert_true(gate_case_ratio(named(&b, GATE_HEAD, "b"), named(&b, GATE_HEAD, "a")) == 1.5);
  assert_true(gate_case_ratio(named(&b, GATE_HEAD, "c"), named(&b, GATE_HEAD, "a")) == 0.5);
  end(&b);
  char *log = text_of(path_of("log"));
  for (char *rest = log, *line; (line = strsep(&rest, "\n")) && *line;) {
    char request[16], name[16] = "", seed[64] = "";
    assert_in_range(sscanf(line, "%*s %*s %15s %15s %63s", request, name, seed), 2, 3);
    if (strcmp(request, "open") != 0) continue;
    strcat(orders, name);
    snprintf(seeds[*name == 'a' || *name == 'b' || *name == 'c' ? *name - 'a' : 3], sizeof seeds[0], "%s", seed);
    if (strlen(orders) % 6 == 0) same_seeds += strcmp(seeds[0], seeds[1]) == 0 && strcmp(seeds[0], seeds[2]) == 0;
    if (strlen(orders) % 6 == 0) other_seeds += strcmp(seeds[0], seeds[3]) != 0 && strcmp(seeds[0], last) != 0;
    if (strlen(orders) % 6 == 0) snprintf(last, sizeof last, "%s", seeds[0]);
  }
  free(log);
  assert_int_equal(strlen(orders), 6 * ROUNDS);
  assert_int_equal(same_seeds, ROUNDS);
  assert_int_equal(other_seeds, ROUNDS);
  for (int i = 0; i < ROUNDS; i++) {
    const char *round = orders + 6L * i, *a = memchr(round, 'a', 6), *p = memchr(round, 'b', 6),
               *q = memchr(round, 'c', 6);
    assert_true(a && p && q && labs(a - p) <= 2 && labs(a - q) <= 2 && labs(p - q) <= 2);
    peer_first += p < a;
    like_first += strncmp(orders, round, 6) == 0;
  }
  assert_in_range(peer_first, 1, ROUNDS - 1);
  assert_in_range(like_first, 1, ROUNDS - 1);
}

/* Without the case that it is a peer of it is a case like others. */
static void a_peer_alone(void **state) {
  (void)state;
  bench b;
  gate_schedule schedule = plain;
  schedule.filter = "b";
  do_all(&b, &schedule, WORDS("a=time:1000", "b@a=time:1500"), NULL);
  does_well(&b, GATE_HEAD, "b", 4);
  assert_int_equal(b.outcome.count, 1);
  end(&b);
}

/* Only rounds that both have count. */
static void ratios_of_rounds(void **state) {
  (void)state;
  gate_sample ns[] = {{.ns = 10}, {.ns = 20}, {.ns = 30}, {.ns = 40}, {.ns = 50}, {.ns = 120}};
  gate_visit mine[] = {{.round = 0, .samples = &ns[1], .sample_count = 1},
                       {.round = 2, .samples = &ns[2], .sample_count = 1},
                       {.round = 3, .samples = &ns[5], .sample_count = 1},
                       {.round = 5, .samples = &ns[3], .sample_count = 1}},
             theirs[] = {{.round = 0, .samples = &ns[0], .sample_count = 1},
                         {.round = 1, .samples = &ns[4], .sample_count = 1},
                         {.round = 2, .samples = &ns[0], .sample_count = 1},
                         {.round = 3, .samples = &ns[2], .sample_count = 1}};
  const gate_case one = {.visits = mine, .visit_count = 4}, other = {.visits = theirs, .visit_count = 4},
                  never = {.visits = &mine[3], .visit_count = 1};
  assert_true(gate_case_ratio(&one, &other) == 3.0); /* 2, 3, 4 */
  assert_true(gate_case_ratio(&never, &other) == 0.0);
}

static void a_case_of_one_side_and_a_filter(void **state) {
  (void)state;
  bench b;
  gate_schedule schedule = plain;
  schedule.filter = "sum";
  do_all(&b, &schedule, WORDS("sum/new=time:5", "sum/both=time:6", "other=time:7"),
         WORDS("sum/both=time:8", "sum/old=time:9"));
  assert_int_equal(b.runs[GATE_HEAD].case_count, 2);
  assert_int_equal(b.runs[GATE_BASE].case_count, 2);
  assert_int_equal(b.outcome.count, 3);
  does_well(&b, GATE_HEAD, "sum/new", 4);
  does_well(&b, GATE_BASE, "sum/old", 4);
  does_well(&b, GATE_BASE, "sum/both", 4);
  assert_null(b.outcome.sides[GATE_BASE][0]);
  assert_null(b.outcome.sides[GATE_HEAD][2]);
  end(&b);
}

/* They are neither listed nor judged; the roof is of the head, and of both runs. The worker tells 100 bytes a call. */
static void yardsticks(void **state) {
  (void)state;
  bench b;
  begin(&b, &plain, WORDS("a=time:1", "yardstick/copy=time:50", "yardstick/bad=crash"),
        WORDS("a=time:1", "yardstick/copy=time:5"));
  for (int side = 0; side < 2; side++) b.sources[side][0]->yardsticks = true;
  FINE(gate_rounds_list(b.rounds));
  FINE(gate_rounds_run(b.rounds, &b.outcome));
  assert_int_equal(b.outcome.count, 1);
  does_well(&b, GATE_HEAD, "a", 4);
  for (int side = 0; side < 2; side++) {
    assert_int_equal(b.runs[side].case_count, 1);
    assert_int_equal(b.runs[side].roof_count, 1);
    assert_string_equal(b.runs[side].roofs[0].device, "-");
    assert_string_equal(b.runs[side].roofs[0].dtype, "-");
    assert_float_equal(b.runs[side].roofs[0].bytes_s, 2e9, 1);
    assert_true(b.runs[side].roofs[0].flops_s == 0);
  }
  end(&b);
}

/* A pair that may take only so long has them when its planned rounds are done, not before. */
static void yardsticks_of_a_bounded_pair_come_last(void **state) {
  (void)state;
  for (int bounded = 0; bounded < 2; bounded++) {
    bench b;
    gate_schedule schedule = plain;
    int opens = 0;
    schedule.time_s = bounded ? 1e6 : 0;
    (void)unlink(path_of("log"));
    begin(&b, &schedule, WORDS(log_word(), "a=time:1", "yardstick/copy=time:50"), WORDS("a=time:1"));
    b.sources[GATE_HEAD][0]->yardsticks = true;
    FINE(gate_rounds_list(b.rounds));
    FINE(gate_rounds_run(b.rounds, &b.outcome));
    assert_int_equal(b.runs[GATE_HEAD].roof_count, 1);
    end(&b);
    char *log = text_of(path_of("log"));
    for (const char *at = log; (at = strstr(at, " open yardstick")); at++) opens++;
    free(log);
    assert_int_equal(opens, bounded ? 1 : 2);
  }
}

/* A program's case may be called so too. */
static void a_program_has_no_yardsticks(void **state) {
  (void)state;
  bench b;
  do_all(&b, &plain, WORDS("yardstick/mine=time:50"), NULL);
  does_well(&b, GATE_HEAD, "yardstick/mine", 4);
  assert_int_equal(b.runs[GATE_HEAD].roof_count, 0);
  end(&b);
}

/* A source without a process: `version' says how many cases it has, and the rest is not asked for. */
static char *start_many(gate_source *source, gate_case **cases, size_t *count) {
  *count = (size_t)atol(source->version);
  *cases = gate_alloc(*count, sizeof **cases);
  for (size_t i = 0; i < *count; i++)
    (*cases)[i] = (gate_case){.name = gate_say("many/%zu", i * 7 % *count),
                              .device = gate_copy("-"),
                              .mode = gate_copy("hot"),
                              .dtype = gate_copy("-")};
  return NULL;
}

static void stop_many(gate_source *source) {
  source->alive = false;
}

/* So many that a walk through the list for each would take minutes. */
static void many_cases(void **state) {
  (void)state;
  enum { COUNT = 90001 };
  static const gate_source_kind kind = {.start = start_many, .stop = stop_many};
  gate_source many[GATE_SIDES] = {{.kind = &kind, .name = "head"}, {.kind = &kind, .name = "base"}};
  gate_source *sources[GATE_SIDES] = {&many[0], &many[1]};
  gate_run runs[GATE_SIDES] = {{0}, {0}};
  const gate_rounds_side sides[GATE_SIDES] = {{&sources[0], 1, &runs[0]}, {&sources[1], 1, &runs[1]}};
#ifdef __SANITIZE_ADDRESS__
  const int count = 2999; /* its realloc always copies */
#else
  const int count = getenv("AT_UNDER_VALGRIND") ? 2999 : COUNT;
#endif
  gate_comparison c;
  for (int i = 0; i < GATE_SIDES; i++) snprintf(many[i].version, sizeof many[i].version, "%d", count + 2 * i);
  gate_rounds *rounds = gate_rounds_create(&plain, sides, GATE_SIDES);
  FINE(gate_rounds_list(rounds));
  assert_int_equal(runs[GATE_HEAD].case_count, count);
  assert_int_equal(runs[GATE_BASE].case_count, count + 2);
  FINE(gate_compare(&c, &runs[GATE_BASE], &runs[GATE_HEAD], NULL, true));
  assert_int_equal(c.row_count, count + 2);
  for (int i = 0; i < count; i++) assert_string_equal(c.rows[i].head->name, c.rows[i].base->name);
  assert_null(c.rows[count].head);
  gate_comparison_free(&c);
  gate_rounds_destroy(rounds);
  for (int i = 0; i < GATE_SIDES; i++) gate_run_free(&runs[i]);
}

/* --- what goes wrong --- */

/* The bad case is told so and opened twice at most; its neighbours get all of their rounds. */
static void goes_on_beside(const char *what, const char *words) {
  bench b;
  char bad[64];
  int opens = 0;
  snprintf(bad, sizeof bad, "bad=%s", what);
  (void)unlink(path_of("log"));
  do_all(&b, &plain, WORDS(log_word(), "a=time:1", bad, "z=time:2"), WORDS("a=time:1", "bad=time:3", "z=time:2"));
  failed_with(&b, GATE_HEAD, "bad", words);
  assert_int_equal(named(&b, GATE_HEAD, "bad")->visit_count, 0);
  for (int side = 0; side < 2; side++) {
    does_well(&b, side, "a", 4);
    does_well(&b, side, "z", 4);
  }
  does_well(&b, GATE_BASE, "bad", 4);
  char *log = text_of(path_of("log"));
  for (const char *at = log; (at = strstr(at, " open bad")); at++) opens++;
  free(log);
  assert_int_equal(opens, 2);
  end(&b);
}

static void crashes(void **state) {
  (void)state;
  goes_on_beside("crash", "crashed (signal 11, Segmentation fault); its last words: about to crash");
  goes_on_beside("crash-open", "crashed (signal 11");
}

/* A child that has the socket too: the end of the process tells, not that of the socket. */
static void crashes_and_leaves_a_child(void **state) {
  (void)state;
  goes_on_beside("crash-fork", "crashed (signal 11, Segmentation fault); its last words: about to crash");
}

/* Is the process gone, or will it be within half a minute? A zombie that nobody waits for is. */
static bool gone(long pid) {
  for (int i = 0; i < 3000; i++) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *stream = fopen(path, "r");
    const bool there = stream && fgets(line, sizeof line, stream);
    if (stream) fclose(stream);
    const char *name_end = strrchr(line, ')');
    if (!there || (name_end && name_end[1] == ' ' && name_end[2] == 'Z')) return true;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  return false;
}

/* What a case forks and leaves ends with its process, however well that does. */
static void children_end_with_their_worker(void **state) {
  (void)state;
  bench b;
  char words[160];
  snprintf(words, sizeof words, "a=fork:%s", path_of("children"));
  do_all(&b, &plain, WORDS(words, "z=time:1"), NULL);
  does_well(&b, GATE_HEAD, "a", 4);
  end(&b);
  char *text = text_of(path_of("children"));
  int children = 0;
  for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line; children++)
    if (!gone(atol(line))) fail_msg("child %s is still there", line);
  assert_int_equal(children, 4);
  free(text);
}

/* What another case of the process wrote is not told as this one's last words. */
static void last_words_are_the_cases_own(void **state) {
  (void)state;
  bench b;
  do_all(&b, &plain, WORDS("a=talk", "bad=die", "z=talk"), NULL);
  does_well(&b, GATE_HEAD, "a", 4);
  does_well(&b, GATE_HEAD, "z", 4);
  failed_with(&b, GATE_HEAD, "bad", "crashed (signal 9");
  if (strstr(named(&b, GATE_HEAD, "bad")->message, "words")) fail_msg("%s", named(&b, GATE_HEAD, "bad")->message);
  end(&b);
}

/* A process that ended between two cases: the second one is told that it was before it. */
static void ends_between_cases(void **state) {
  (void)state;
  gate_case *cases = NULL;
  size_t count = 0;
  int calls;
  long pid = 0;
  gate_sample room[1];
  gate_visit visit = {.samples = room};
  (void)unlink(path_of("log"));
  gate_source *s = worker(&plain.limits, WORDS(log_word(), "a=die-after", "b=time:1"));
  FINE(s->kind->start(s, &cases, &count));
  FINE(s->kind->open(s, 0, 1000, 1, &calls));
  FINE(s->kind->sample(s, &visit, 1));
  FINE(s->kind->close(s));
  char *log = text_of(path_of("log"));
  assert_int_equal(sscanf(log, "- %ld", &pid), 1);
  free(log);
  assert_true(gone(pid));
  SAYS(s->kind->open(s, 1, 1000, 1, &calls),
       "its process had ended before, after another case: exited with code 6; its last words: a late end");
  assert_false(s->alive);
  gate_cases_free(cases, count);
  gate_source_destroy(s);
}

static void ends(void **state) {
  (void)state;
  goes_on_beside("exit:3", "exited with code 3; its last words: last words of bad");
  goes_on_beside("exit:0", "exited with code 0");
}

static void garbage(void **state) {
  (void)state;
  goes_on_beside("garbage", "answered what is not the protocol");
  goes_on_beside("flood", "answered what is not the protocol");
  goes_on_beside("short", "answered what is not the protocol");
  goes_on_beside("nan", "answered what is not the protocol");
  goes_on_beside("negative", "answered what is not the protocol");
}

static void fails_and_says_so(void **state) {
  (void)state;
  goes_on_beside("failed", "no set-up");
  goes_on_beside("fail-sample", "no more\tmemory\\");
}

/* Its samples are there, but what it did at its end is not right. */
static void fails_at_its_end(void **state) {
  (void)state;
  bench b;
  do_all(&b, &plain, WORDS("a=close-bad", "z=time:1"), NULL);
  failed_with(&b, GATE_HEAD, "a", "answered what is not the protocol");
  does_well(&b, GATE_HEAD, "z", 4);
  end(&b);
}

static void hangs(void **state) {
  (void)state;
  bench b;
  gate_schedule schedule = plain;
  schedule.limits.hang_s = 1.5;
  schedule.rounds = 1;
  do_all(&b, &schedule, WORDS("a=hang"), NULL);
  failed_with(&b, GATE_HEAD, "a", "hung (more than 1.5 s)");
  end(&b);
}

/* Failed, though it did well later: the message is of the failure, and what was measured stays. */
static void crashes_once(void **state) {
  (void)state;
  bench b;
  char once[160];
  snprintf(once, sizeof once, "a=once:%s", path_of("made"));
  do_all(&b, &plain, WORDS(once, "z=time:1"), NULL);
  failed_with(&b, GATE_HEAD, "a", "crashed (signal 11");
  assert_int_equal(named(&b, GATE_HEAD, "a")->visit_count, 3);
  does_well(&b, GATE_HEAD, "z", 4);
  end(&b);
}

static void no_start(const char *words, const char *hello) {
  bench b;
  begin(&b, &plain, WORDS(hello, "a=time:1"), NULL);
  SAYS(gate_rounds_list(b.rounds), words);
  end(&b);
}

static void workers_that_do_not_start(void **state) {
  (void)state;
  no_start("exited with code 3", "--hello=exit");
  no_start("answered what is not the protocol", "--hello=none");
  no_start("speaks version 77 of the protocol of attune bench, this attune speaks 1", "--hello=version");
  static const char *const argvs[][2] = {{"/no/such/program", NULL}, {"/bin/true", NULL}, {"/dev/null", NULL}};
  static const char *const words[] = {"could not be started: No such file", "exited with code 0",
                                      "could not be started"};
  for (int i = 0; i < 3; i++) {
    gate_run run = {0};
    gate_source *source = gate_worker_create(argvs[i], &plain.limits, 1);
    const gate_rounds_side side = {&source, 1, &run};
    gate_rounds *rounds = gate_rounds_create(&plain, &side, 1);
    /* Under valgrind a start that fails is a process that ends with 127. */
    SAYS(gate_rounds_list(rounds), i != 1 && getenv("AT_UNDER_VALGRIND") ? "exited with code 127" : words[i]);
    gate_rounds_destroy(rounds);
    gate_source_destroy(source);
  }
}

static void starts_no_more(void **state) {
  (void)state;
  bench b;
  char starts[160];
  snprintf(starts, sizeof starts, "--starts=%s:2", path_of("starts"));
  do_all(&b, &plain, WORDS(starts, "a=time:1"), WORDS("a=time:1"));
  failed_with(&b, GATE_HEAD, "a", "its process did not start: exited with code 4; its last words: enough starts");
  assert_int_equal(named(&b, GATE_HEAD, "a")->visit_count, 2);
  does_well(&b, GATE_BASE, "a", 4);
  end(&b);
}

/* --- stopped, saved --- */

static void stop_at(void *user, const gate_step *step) {
  (void)user;
  assert_int_equal(step->total, 4 * 2);
  if (step->done == 5) stopped = SIGINT;
}

static void interrupted(void **state) {
  (void)state;
  bench b;
  gate_schedule schedule = plain;
  gate_run run = made_up_run(""), back;
  schedule.tell = stop_at;
  FINE(gate_file_open(&schedule.file, path_of("r.db"), true));
  begin(&b, &schedule, WORDS("a=time:1", "b=time:2"), NULL);
  FINE(gate_rounds_list(b.rounds));
  FINE(gate_file_begin(schedule.file, &run));
  b.runs[GATE_HEAD].id = run.id;
  FINE(gate_rounds_run(b.rounds, &b.outcome));
  assert_true(b.outcome.interrupted);
  FINE(gate_file_end(schedule.file, run.id, GATE_RUN_INTERRUPTED));
  gate_file_close(schedule.file);
  FINE(gate_load(path_of("r.db"), &back));
  assert_int_equal(back.state, GATE_RUN_INTERRUPTED);
  assert_int_equal(back.case_count, 2);
  int visits = 0;
  for (int i = 0; i < 2; i++) {
    const gate_case *c = &back.cases[i], *measured = gate_run_find(&b.runs[GATE_HEAD], c);
    assert_int_equal(c->state, GATE_CASE_OK);
    assert_int_equal(c->visit_count, measured->visit_count);
    for (int v = 0; v < c->visit_count; v++) assert_int_equal(c->visits[v].sample_count, 3);
    visits += c->visit_count;
  }
  assert_int_equal(visits, 5);
  gate_run_free(&back);
  end(&b);
}

/* The signal comes while a worker hangs. */
static void on_alarm(int number) {
  stopped = number;
}

static void interrupted_while_it_waits(void **state) {
  (void)state;
  bench b;
  signal(SIGALRM, on_alarm);
  begin(&b, &plain, WORDS("a=hang"), NULL);
  FINE(gate_rounds_list(b.rounds));
  (void)alarm(1);
  FINE(gate_rounds_run(b.rounds, &b.outcome));
  assert_true(b.outcome.interrupted);
  assert_int_equal(b.runs[GATE_HEAD].cases[0].state, GATE_CASE_OK); /* not its fault */
  assert_int_equal(b.runs[GATE_HEAD].cases[0].visit_count, 0);
  end(&b);
  stopped = 0;
}

/* --- looks --- */

enum { FIRST = 17 }; /* of fewer only twice as many follow */

static int judged_looks;

/* "a" is the same at once, "b" slower at the second look, "c" never sure. */
static void judge_by_name(gate_judgement *out, const gate_case *const *base, const gate_case *const *head, size_t count,
                          bool alternated, const gate_rule *rule, int look, int looks) {
  assert_true(alternated && rule->floor == 0.5);
  assert_int_equal(looks, 3);
  assert_int_equal(look, judged_looks++);
  assert_int_equal(count, 3);
  for (size_t i = 0; i < count; i++) {
    assert_non_null(base[i]);
    const char name = head[i]->name[0];
    const gate_verdict verdict = name == 'a' && look == 0   ? GATE_SAME
                                 : name == 'b' && look == 1 ? GATE_SLOWER
                                                            : GATE_UNSURE;
    out[i] = (gate_judgement){.verdict = verdict, .ratio = 1 + look, .base_visits = base[i]->visit_count};
  }
}

static void unsure_cases_get_more_rounds(void **state) {
  (void)state;
  bench b;
  gate_schedule schedule = plain;
  schedule.rounds = FIRST;
  schedule.samples = 1;
  schedule.judging = (gate_judging){judge_by_name, {.floor = 0.5, .alpha = 0.1}, 3, 0, 0};
  judged_looks = 0;
  do_all(&b, &schedule, WORDS("a=time:1", "b=time:1", "c=time:1"), WORDS("a=time:1", "b=time:1", "c=time:1"));
  assert_int_equal(judged_looks, 3);
  assert_int_equal(b.outcome.rounds, 4 * FIRST);
  for (int side = 0; side < 2; side++) {
    does_well(&b, side, "a", FIRST);
    does_well(&b, side, "b", 2 * FIRST);
    does_well(&b, side, "c", 4 * FIRST);
  }
  static const gate_verdict verdicts[] = {GATE_SAME, GATE_SLOWER, GATE_UNSURE};
  for (int i = 0; i < 3; i++) { /* by name: listed so */
    assert_int_equal(b.outcome.judged[i].verdict, verdicts[i]);
    assert_true(b.outcome.judged[i].ratio == 1 + i);
    assert_int_equal(b.outcome.judged[i].base_visits, FIRST << i);
  }
  assert_int_equal(named(&b, GATE_HEAD, "c")->visits[4 * FIRST - 1].round, 4 * FIRST - 1);
  end(&b);
}

/* The pair's time is over before it begins: there are as many rounds as are enough, and one more look at them. */
static void no_time_for_more_rounds(void **state) {
  (void)state;
  bench b;
  gate_schedule schedule = plain;
  schedule.judging = (gate_judging){judge_by_name, {.floor = 0.5, .alpha = 9}, 3, 1e-9, 3};
  judged_looks = 0;
  do_all(&b, &schedule, WORDS("a=time:1", "b=time:1", "c=time:1"), WORDS("a=time:1", "b=time:1", "c=time:1"));
  assert_int_equal(b.outcome.rounds, 3);
  assert_true(b.outcome.out_of_time);
  assert_int_equal(b.outcome.judged[0].verdict, GATE_SAME);
  assert_int_equal(b.outcome.judged[2].verdict, GATE_UNSURE);
  end(&b);
}

static void out_of_time(void **state) {
  (void)state;
  bench b;
  gate_schedule schedule = plain;
  schedule.time_s = 1e-9;
  do_all(&b, &schedule, WORDS("a=time:1", "b=time:1"), NULL);
  assert_true(b.outcome.out_of_time);
  assert_int_equal(b.outcome.rounds, 1);
  does_well(&b, GATE_HEAD, "a", 1);
  does_well(&b, GATE_HEAD, "b", 1);
  end(&b);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(samples_and_rounds),
      TEST(turns_and_orders),
      TEST(peers_stay_together),
      TEST(a_peer_alone),
      TEST(ratios_of_rounds),
      TEST(a_case_of_one_side_and_a_filter),
      TEST(yardsticks),
      TEST(yardsticks_of_a_bounded_pair_come_last),
      TEST(a_program_has_no_yardsticks),
      TEST(many_cases),
      TEST(crashes),
      TEST(crashes_and_leaves_a_child),
      TEST(children_end_with_their_worker),
      TEST(ends),
      TEST(last_words_are_the_cases_own),
      TEST(ends_between_cases),
      TEST(garbage),
      TEST(fails_and_says_so),
      TEST(fails_at_its_end),
      TEST(hangs),
      TEST(crashes_once),
      TEST(workers_that_do_not_start),
      TEST(starts_no_more),
      TEST(interrupted),
      TEST(interrupted_while_it_waits),
      TEST(unsure_cases_get_more_rounds),
      TEST(no_time_for_more_rounds),
      TEST(out_of_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
