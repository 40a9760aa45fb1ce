/* SPDX-License-Identifier: Apache-2.0
 * test_search_graphs.c: a search on a device that replays graphs, as a GPU does, played by the host: a graph holds the
 * pointers it was captured with, so each placement has graphs of its own; all targets of a round share the placement;
 * every graph is released. */
#include "tests/support/check.h"

#include <math.h>

#include "tests/support/toy/toy_clock.h"
#include "tuning/search/search.h"
#include "tuning/search/search_parts.h"

enum { CALLS = 128, LAUNCHES = 4096 };

typedef struct toy_graph {
  int calls;
  const at_plan *plan[CALLS];
  toy_operands operands[CALLS];
} toy_graph;

static attune_device *host, gpu;
static attune_stream gpu_stream;
static at_backend_graph graph_calls;
static at_backend_stream stream_calls;
static at_timer timer;
static at_search_result result;
static toy_graph *recording;
static int graphs_made, graphs_alive, capture_failures;
static ptrdiff_t launched[LAUNCHES]; /* by launch of a graph: the bias's distance from x in its first call */
static int launch_count;
static int most_calls;               /* of a graph */
static int64_t late_ns;              /* work that was given and is waited for: of plans with "late" */
static int late_launches, out_tried; /* launches of those; of plans with "c=7" outside of graphs */
static int capture_limit;            /* graphs are made until plans with "fault=capture" can be captured no more */
static int coughs, cough_at; /* launches of graphs of plans with "cough"; the one that takes half as long again */
static int loads;            /* launches outside of graphs of a plan with "loads": the first waits for its code */
static int launch_limit;     /* so many launches of plans with "fault=later" succeed, in graphs or not */
static int launch_failures;
static bool lost; /* the device does not answer any more once a launch failed */

static attune_status capture_begin(attune_stream *stream) {
  (void)stream;
  assert_null(recording);
  recording = calloc(1, sizeof *recording);
  return recording ? ATTUNE_OK : ATTUNE_OUT_OF_MEMORY;
}

static attune_status capture_end(attune_stream *stream, at_graph **out) {
  (void)stream;
  if (recording->calls > most_calls) most_calls = recording->calls;
  *out = (at_graph *)(void *)recording;
  recording = NULL;
  graphs_made++;
  graphs_alive++;
  return ATTUNE_OK;
}

static void graph_destroy(at_graph *graph) {
  graphs_alive--;
  free(graph);
}

static attune_status fail_later(const at_plan *plan) {
  const toy_plan *p = plan->state;
  if (strcmp(p->fault, "later") != 0 || launch_limit-- > 0) return ATTUNE_OK;
  launch_failures++;
  return at_fail(ATTUNE_DEVICE_ERROR, "a launch that fails");
}

static attune_status graph_launch(at_graph *graph, attune_stream *stream) {
  const toy_graph *g = (const toy_graph *)(void *)graph;
  if (launch_count < LAUNCHES) {
    launched[launch_count] = (const char *)g->operands[0].bias - (const char *)g->operands[0].x;
    launch_count++;
  }
  const attune_status failed = fail_later(g->plan[0]);
  if (failed != ATTUNE_OK) return failed;
  for (int i = 0; i < g->calls; i++) {
    const attune_status status = toy_launch(g->plan[i], &g->operands[i], stream);
    if (status != ATTUNE_OK) return status;
  }
  const toy_plan *p = g->plan[0]->state;
  if (strstr(g->plan[0]->configuration.text, "cough=1") && ++coughs == cough_at)
    toy_pass(at_now_ns(), g->calls * p->ns / 2, 1);
  return ATTUNE_OK;
}

/* Work of a plan with "late" passes when it is waited for, as a GPU's does. */
static attune_status synchronize(attune_stream *stream) {
  (void)stream;
  toy_pass(at_now_ns(), late_ns, 1);
  late_ns = 0;
  return lost && launch_failures ? at_fail(ATTUNE_DEVICE_ERROR, "the device is lost") : ATTUNE_OK;
}

static attune_status launch_now(const at_plan *plan, const void *operands, attune_stream *stream) {
  const toy_plan *p = plan->state;
  const attune_status failed = fail_later(plan);
  if (failed != ATTUNE_OK) return failed;
  out_tried += strstr(plan->configuration.text, "c=7") != NULL;
  if (strstr(plan->configuration.text, "loads=1") && loads++ == 0) late_ns += 150000;
  if (!strstr(plan->configuration.text, "late=1")) return toy_launch(plan, operands, stream);
  late_launches++;
  late_ns += p->ns;
  return ATTUNE_OK;
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  if (!recording) return launch_now(plan, operands, stream);
  assert_true(recording->calls < CALLS);
  const toy_plan *p = plan->state;
  if (strcmp(p->fault, "capture") == 0 && graphs_made > capture_limit) { /* it was captured before, and can no more */
    capture_failures++;
    return at_fail(ATTUNE_DEVICE_ERROR, "a capture that fails");
  }
  recording->plan[recording->calls] = plan;
  recording->operands[recording->calls++] = *(const toy_operands *)operands;
  return ATTUNE_OK;
}

/* The trusted result is the host's own. */
static attune_status reference_create(void **out, const void *problem, attune_device *device, attune_stream *stream,
                                      void *const pointers[AT_MAX_BUFFERS]) {
  (void)device, (void)stream;
  return toy_reference_create(out, problem, host, attune_stream_default(host), pointers);
}

FIXTURE(fresh) {
  toy_reset();
  toy_reference_type.create = reference_create;
  toy_base_implementation.launch = toy_spin_implementation.launch = launch;
  at_copy_text(toy_base, sizeof toy_base, "ns=20000");
  toy_spin_implementation.neighbours = NULL;
  timer.favourite_count = 0;
  graphs_made = graphs_alive = launch_count = capture_failures = most_calls = late_launches = out_tried = loads =
      coughs = cough_at = launch_failures = 0;
  launch_limit = 0;
  lost = false;
  capture_limit = 6;
  late_ns = 0;
  return 0;
}

static attune_status search_by(const char *const *spins, attune_measure measure) {
  const at_key key = toy_key(TOY_PROBLEM, &gpu);
  toy_spins = spins;
  const attune_status status = at_search(&result, &timer, &toy_op, key.words + 1, measure, 1000e6, 0.0, NULL);
  assert_int_equal(graphs_alive, 0);
  return status;
}

static void search(const char *const *spins) {
  OK(search_by(spins, ATTUNE_MEASURE_COLD_GRAPH));
}

static int distinct(void) {
  int count = 0;
  for (int i = 0; i < launch_count; i++) {
    bool old = false;
    for (int j = 0; j < i; j++) old = old || launched[j] == launched[i];
    count += !old;
  }
  return count;
}

TEST(each_placement_has_its_graphs) {
  static const char *const spins[] = {"ns=10000", "ns=14000", "ns=19000", NULL};
  search(spins);
  const attune_decision *d = &result.decision;
  assert_string_equal(d->configuration, "ns=10000");
  assert_true(d->samples >= 12 && d->placement_spread >= 0.0);
  assert_true(graphs_made >= 3 * AT_GRAPH_PLACEMENTS / 2);
  assert_true(distinct() >= AT_GRAPH_PLACEMENTS / 2 && distinct() <= 5 * AT_GRAPH_PLACEMENTS);
}

/* Between two launches the placement changes with a round or a batch only. */
TEST(a_round_has_one_placement) {
  static const char *const spins[] = {"ns=10000", "ns=10300", NULL};
  const at_key key = toy_key(TOY_PROBLEM, &gpu);
  int changes = 0;
  toy_spins = spins;
  OK(at_search(&result, &timer, &toy_op, key.words + 1, ATTUNE_MEASURE_COLD_GRAPH, 1000e6, 0.0, NULL));
  for (int i = 1; i < launch_count; i++) changes += launched[i] != launched[i - 1];
  assert_true(changes >= 4);
  if (changes > result.decision.samples + 8) fail_msg("%d changes in %d rounds", changes, result.decision.samples);
}

/* A candidate that can no longer be captured drops out alone. */
TEST(a_failing_capture_drops_its_candidate) {
  static const char *const spins[] = {"ns=9000,fault=capture", "ns=10000", NULL};
  search(spins);
  assert_true(capture_failures > 0);
  assert_string_equal(result.decision.configuration, "ns=10000");
}

static const attune_measure MEASURES[] = {ATTUNE_MEASURE_COLD_GRAPH, ATTUNE_MEASURE_HOT_GRAPH,
                                          ATTUNE_MEASURE_HOT_EAGER};

/* Whenever that is, before the rounds or when it has left others behind, which come back then. */
TEST(a_capture_may_fail_at_any_time) {
  static const char *const spins[] = {"ns=40000,fault=capture", "ns=46000", NULL};
  for (int hot = 0; hot < 2; hot++) {
    int failed = 0;
    for (int limit = 0; limit < 60; limit += 1 + limit / 20) {
      (void)fresh(NULL);
      at_copy_text(toy_base, sizeof toy_base, "ns=60000"); /* the device gets hot: there are rounds that do not count */
      capture_limit = limit;
      OK(search_by(spins, MEASURES[hot]));
      const char *won = result.decision.configuration;
      failed += capture_failures > 0;
      if (strcmp(won, spins[capture_failures > 0]) != 0)
        fail_msg("%d: after %d graphs, %d failures: %s %s", hot, limit, capture_failures,
                 result.decision.implementation, won);
    }
    if (failed < 10) fail_msg("%d: %d captures failed", hot, failed);
  }
}

/* So may a launch, of a graph or not: who fails is out, and the others race on. */
TEST(a_launch_may_fail_at_any_time) {
  static const char *const spins[] = {"ns=20000,fault=later", "ns=46000", NULL};
  for (size_t m = 0; m < AT_COUNT(MEASURES); m++) {
    int failed = 0;
    for (int limit = 0; limit < 4000; limit += 1 + limit / 12) {
      (void)fresh(NULL);
      at_copy_text(toy_base, sizeof toy_base, "ns=60000");
      launch_limit = limit;
      OK(search_by(spins, MEASURES[m]));
      const char *won = result.decision.configuration;
      failed += launch_failures > 0;
      if (strcmp(won, spins[launch_failures > 0]) != 0)
        fail_msg("%zu: after %d launches, %d failures: %s %s", m, limit, launch_failures,
                 result.decision.implementation, won);
    }
    if (failed < 20) fail_msg("%zu: %d launches failed", m, failed);
  }
}

/* But a device that is lost then ends the search. */
TEST(a_lost_device_ends_the_search) {
  static const char *const spins[] = {"ns=20000,fault=later", "ns=46000", NULL};
  for (size_t m = 0; m < AT_COUNT(MEASURES); m++)
    for (int limit = 0; limit < 16; limit++) {
      (void)fresh(NULL);
      launch_limit = limit;
      lost = true;
      const attune_status status = search_by(spins, MEASURES[m]);
      if (status != ATTUNE_DEVICE_ERROR || launch_failures != 1)
        fail_msg("%zu: after %d launches: status %d, %d failures", m, limit, (int)status, launch_failures);
    }
}

/* Fast at half of the placements, slow at the others: it does not win. */
TEST(a_winner_wins_over_placements) {
  static const char *const spins[] = {"ns=16000,far=20000", NULL};
  search(spins);
  assert_string_equal(result.decision.implementation, "base");
}

/* One disturbed sample is no slow placement: where it was taken more are. */
TEST(one_disturbed_sample_loses_nothing) {
  static const char *const spins[] = {"ns=16000,cough=1", NULL};
  search(spins);
  const int all = coughs;
  assert_string_equal(result.decision.configuration, "ns=16000,cough=1");
  assert_true(all > 12);
  for (int at = 1; at <= all; at++) {
    (void)fresh(NULL);
    cough_at = at;
    search(spins);
    if (strcmp(result.decision.configuration, spins[0]) != 0 || result.decision.unsure)
      fail_msg("disturbed at %d of %d: %s %s", at, all, result.decision.implementation, result.decision.note);
    if (result.decision.samples > AT_GRAPH_PLACEMENTS + 2) /* not only when its turn comes again */
      fail_msg("disturbed at %d of %d: %d samples", at, all, result.decision.samples);
  }
}

/* ---- what is not measured ---- */

TEST(what_is_far_too_slow_runs_once) {
  static const char *const spins[] = {"ns=10000", "ns=800000,late=1", "ns=12000", NULL};
  search(spins);
  assert_int_equal(late_launches, 1);
  assert_string_equal(result.decision.configuration, "ns=10000");
}

/* A kernel's first launch may last long because its code is loaded or the CPU is away: that says nothing of the
 * kernel. */
TEST(a_first_launch_that_waits_drops_nobody) {
  static const char *const spins[] = {"ns=14000", "ns=8000,loads=1", NULL};
  search(spins);
  assert_true(loads > 1);
  assert_string_equal(result.decision.configuration, "ns=8000,loads=1");
}

/* Two changes of the leader that are hopeless, each alone; both together, and one beside a third. */
static int neighbours(const at_implementation *self, const void *problem, attune_device *device,
                      const at_configuration *leader, at_configuration *out, int max) {
  (void)self;
  static const char *const texts[] = {"ns=90000,a=1,b=0,c=0", "ns=90000,a=0,b=1,c=0", "ns=90000,a=1,b=1,c=7",
                                      "ns=90000,a=1,b=0,c=7", "ns=9000,a=0,b=0,c=1"};
  (void)problem, (void)device;
  const int count = strcmp(leader->text, "ns=10000,a=0,b=0,c=0") == 0 ? (int)AT_COUNT(texts) : 0;
  for (int i = 0; i < count && i < max; i++) at_copy_text(out[i].text, sizeof out[i].text, texts[i]);
  return count;
}

TEST(hopeless_changes_are_not_combined) {
  static const char *const spins[] = {"ns=10000,a=0,b=0,c=0", NULL};
  toy_spin_implementation.neighbours = neighbours;
  search(spins);
  assert_int_equal(out_tried, 0);
  assert_string_equal(result.decision.configuration, "ns=9000,a=0,b=0,c=1");
}

static int no_neighbours(const at_implementation *self, const void *problem, attune_device *device,
                         const at_configuration *leader, at_configuration *out, int max) {
  (void)self, (void)problem, (void)device, (void)leader, (void)out, (void)max;
  return 0;
}

/* The winner of one problem is tried for the next, which does not list it; if it cannot run there, nothing fails. */
TEST(what_was_good_is_tried_again) {
  static const char *const spins[] = {"ns=10000,a=0,b=0,c=0", NULL}, *const others[] = {"ns=12000", NULL};
  toy_spin_implementation.neighbours = neighbours;
  search(spins);
  assert_string_equal(result.decision.configuration, "ns=9000,a=0,b=0,c=1");
  toy_spin_implementation.neighbours = no_neighbours;
  search(others);
  assert_string_equal(result.decision.configuration, "ns=9000,a=0,b=0,c=1");
  toy_refused = "ns=9000,a=0,b=0,c=1";
  search(others);
  assert_string_equal(result.decision.configuration, "ns=12000");
  assert_int_equal(result.decision.rejected, 0);
  toy_refused = NULL;
}

/* As many as there is room for, the latest first, each once; of a race also those that are as good. */
TEST(favourites_are_few) {
  at_candidate ones[3];
  at_candidate *candidates[] = {&ones[0], &ones[1], &ones[2]};
  const at_race race = {.candidates = candidates, .count = 3};
  toy_spin_implementation.neighbours = no_neighbours;
  for (int i = 0; i < AT_GOOD_CONFIGS + 4; i++) {
    for (int j = 0; j < 3; j++) {
      ones[j] = (at_candidate){.implementation = &toy_spin_implementation, .state = AT_SCREENED, .count = 12};
      snprintf(ones[j].configuration.text, sizeof ones[j].configuration.text, "ns=%d,number=%d", j, j ? i / 2 : i);
      ones[j].speedup = j == 0 ? 2.0 : j == 1 ? 1.995 : 1.9; /* the last is behind */
    }
    at_good_configs_note(&timer, &race, &ones[0]);
    assert_string_equal(timer.favourites[0].configuration.text, ones[0].configuration.text);
    assert_string_equal(timer.favourites[1].configuration.text, ones[1].configuration.text);
    const int wanted = i + 1 + i / 2 + 1;
    assert_int_equal(timer.favourite_count, wanted < AT_GOOD_CONFIGS ? wanted : AT_GOOD_CONFIGS);
  }
  timer.favourite_count = 0;
  toy_spin_implementation.neighbours = NULL; /* its list is all it has */
  at_good_configs_note(&timer, &race, &ones[0]);
  assert_int_equal(timer.favourite_count, 0);
}

static int samples_of(const char *configuration) {
  for (int i = 0; i < result.trial_count; i++)
    if (strcmp(result.trials[i].configuration, configuration) == 0) return result.trials[i].samples;
  return -1;
}

/* Who is far behind at two placements is not measured at four. A few stay, whatever they do. */
TEST(who_is_far_behind_leaves_the_race_at_once) {
  static const char *const spins[] = {"ns=11000",       "ns=11000,far=1", "ns=10000", "ns=10000,far=1",
                                      "ns=10000,far=2", "ns=10010",       NULL};
  search(spins);
  assert_int_equal(samples_of("ns=11000"), 2);
  assert_int_equal(samples_of("ns=11000,far=1"), 2);
  static const char *const few[] = {"ns=11000", "ns=10000", "ns=10000,far=1", NULL};
  search(few);
  assert_true(samples_of("ns=11000") > 2);
}

/* A winner by half needs no error of a thousandth. */
TEST(a_settled_race_ends) {
  static const char *const spins[] = {"ns=10000,noise=900", NULL};
  search(spins);
  assert_int_equal(result.decision.samples, 12);
  assert_string_equal(result.decision.configuration, "ns=10000,noise=900");
}

/* The cost of starting a graph must not decide: programs capture more than one call. */
TEST(graphs_of_a_race_have_several_calls) {
  static const char *const spins[] = {"ns=100000", NULL};
  at_copy_text(toy_base, sizeof toy_base, "ns=140000");
  const uint64_t cache = gpu.properties.cache_bytes;
  gpu.properties.cache_bytes = 0; /* or cold inputs ask for more calls */
  search(spins);
  assert_int_equal(most_calls, 5);
  at_copy_text(toy_base, sizeof toy_base, "ns=20000");
  static const char *const short_ones[] = {"ns=12000", NULL};
  search(short_ones);
  gpu.properties.cache_bytes = cache;
  assert_in_range(most_calls, 23, 25);
}

static int make_gpu(void) {
  void *memory = NULL;
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  if (attune_alloc(&memory, attune_stream_default(host), 1024) != ATTUNE_OK) return -1; /* the allocator is made */
  attune_free(memory, attune_stream_default(host));
  gpu = *host;
  graph_calls = *host->backend.graph;
  graph_calls.capture_begin = capture_begin;
  graph_calls.capture_end = capture_end;
  graph_calls.launch = graph_launch;
  graph_calls.destroy = graph_destroy;
  stream_calls = *host->backend.stream;
  stream_calls.synchronize = synchronize;
  gpu.backend.graph = &graph_calls;
  gpu.backend.stream = &stream_calls;
  gpu.properties.kind = ATTUNE_DEVICE_CUDA;
  gpu.properties.cache_bytes = 1 << 14;
  gpu_stream = *attune_stream_default(host);
  gpu_stream.device = &gpu;
  timer = (at_timer){.device = &gpu, .stream = &gpu_stream};
  for (int i = 0; i <= AT_ROUND_TARGETS; i++)
    if (attune_event_create(&timer.events[i], &gpu, NULL) != ATTUNE_OK) return -1;
  return at_random_create(&timer.random, 7) == ATTUNE_OK ? 0 : -1;
}

int main(void) {
  virtual_clock_start();
  if (make_gpu() != 0) return 1;
  const int failed = RUN_TESTS_EACH(fresh, NULL, NULL, NULL);
  for (int i = 0; i <= AT_ROUND_TARGETS; i++) attune_event_destroy(timer.events[i]);
  at_random_destroy(timer.random);
  return failed;
}
