/* SPDX-License-Identifier: Apache-2.0
 * test_bench_serve.c: the worker's side of a benchmark, asked by hand: what it lists, opens, times and closes; cases
 * that fail. Time passes where a case says so. */
#include "tests/tools/bench/bench_work.h"

#include "src/base/backend.h"
#include "tools/bench/caches.h"

static attune_device *host(void) {
  attune_device *device = NULL;
  OK(attune_device_get(&device, "host"));
  return device;
}

/* ---- what there is ---- */

TEST(cases_are_listed) {
  work w = {.ns = 1000};
  attune_bench_case cases[] = {case_of("a\\b c", &w), case_of("\xc3\xbc", &w), case_of("graph", &w)};
  cases[0].bytes = 4e6;
  cases[1].flops = 2.5e15;
  cases[1].dtype = ATTUNE_BF16;
  cases[1].flags = ATTUNE_BENCH_COLD;
  cases[2].device = host();
  cases[2].flags = ATTUNE_BENCH_COLD | ATTUNE_BENCH_GRAPH;
  attune_bench *bench = bench_of(cases, 3);
  bench_client c;
  bench_client_start(&c, bench);
  bench_client_ask(&c, "list\n");
  bench_client_expect(&c, "case\t0\ta\\\\b c\t-\thot\t4000000\t0\t-");
  bench_client_expect(&c, "case\t1\t\xc3\xbc\t-\tcold\t0\t2500000000000000\tbf16");
  bench_client_expect(&c, "case\t2\tgraph\thost\tcold+graph\t0\t0\t-");
  bench_client_expect(&c, "end");
  bench_client_ask(&c, "quit\n");
  assert_null(bench_client_line(&c));
  OK(bench_client_end(&c));
  attune_bench_destroy(bench);
  assert_int_equal(w.set_ups + w.runs + w.tear_downs, 0);
}

/* ---- times ---- */

TEST(samples_tell_the_time_of_a_call) {
  enum { COUNT = 3 };
  work w = {.ns = 1000};
  const attune_bench_case one = case_of("one", &w);
  attune_bench *bench = bench_of(&one, 1);
  bench_client c;
  bench_client_sample samples[COUNT];
  bench_client_start(&c, bench);
  const long long calls = bench_client_open(&c, 0, 1000000);
  near((double)calls, 1000.0, 0.1);
  assert_int_equal(w.set_ups, 1);
  const int before = w.runs;
  bench_client_samples(&c, COUNT, samples, "end\t0\t0");
  assert_int_equal(w.runs - before, COUNT * (calls + 1)); /* one goes before each, untimed */
  for (int i = 0; i < COUNT; i++) {
    near(samples[i].ns, 1000.0, 1e-3);
    near(samples[i].cpu_ns, 2000.0, 1e-3);
    if (i > 0) assert_true(samples[i].start >= samples[i - 1].start + 1000 * calls);
  }
  bench_client_close(&c);
  assert_int_equal(w.tear_downs, 1);
  bench_client_ask(&c, "quit\n");
  OK(bench_client_end(&c));
  assert_null(w.stream);
  attune_bench_destroy(bench);
}

/* Times are of one of the repeats in a call. */
TEST(repeats_are_counted) {
  work w = {.ns = 1000}, other = {.ns = 1000};
  attune_bench_case cases[] = {case_of("many", &w), case_of("peer", &other)};
  cases[0].repeats = 50;
  cases[1].peer_of = "many";
  attune_bench *bench = bench_of(cases, 2);
  bench_client c;
  bench_client_sample samples[2];
  bench_client_start(&c, bench);
  bench_client_ask(&c, "list\n");
  bench_client_expect(&c, "case\t0\tmany\t-\thot\t0\t0\t-");
  bench_client_expect(&c, "case\t1\tpeer\t-\thot\t0\t0\t-\tmany");
  bench_client_expect(&c, "end");
  const long long calls = bench_client_open(&c, 0, 1000000);
  near((double)calls, 50 * 1000.0, 0.1);
  assert_int_equal(calls % 50, 0);
  const int before = w.runs;
  bench_client_samples(&c, 2, samples, "end\t0\t0");
  assert_int_equal(w.runs - before, 2 * (calls / 50 + 1));
  near(samples[0].ns, 20.0, 1e-3);
  near(samples[1].cpu_ns, 40.0, 1e-3);
  bench_client_close(&c);
  OK(bench_client_end(&c));
  attune_bench_destroy(bench);
}

/* As many calls as a sample has room for, one at least; what is slow at first is waited for. */
TEST(calls_fit_into_a_sample) {
  const struct {
    int64_t ns;
    int slow_runs;
    double least, most;
  } costs[] = {
      {10, 0, 60e3, 101e3}, {100, 0, 9e3, 10.5e3}, {700000, 0, 1, 1}, {50000000, 0, 1, 1}, {1000, 20, 900, 1100}};
  for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
    work w = {.ns = costs[i].ns, .slow_runs = costs[i].slow_runs};
    const attune_bench_case one = case_of("one", &w);
    attune_bench *bench = bench_of(&one, 1);
    bench_client c;
    bench_client_sample sample;
    bench_client_start(&c, bench);
    const double calls = (double)bench_client_open(&c, 0, 1000000);
    if (calls < costs[i].least || calls > costs[i].most) fail_msg("%g calls of %lld ns", calls, (long long)costs[i].ns);
    bench_client_samples(&c, 1, &sample, "end\t0\t0");
    near(sample.ns, (double)costs[i].ns, 0.01);
    OK(bench_client_end(&c));
    assert_int_equal(w.tear_downs, 1);
    attune_bench_destroy(bench);
  }
}

/* Threads spin on after a sample: so many naps long. */
static int spinning, naps;
int __wrap_nanosleep(const struct timespec *length, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *length, struct timespec *rest) {
  (void)rest;
  naps++;
  virtual_clock_pass(length->tv_nsec, spinning > 0 ? 2.0 : 1.0);
  spinning--;
  return 0;
}

static attune_status spend_alone(void *arg, attune_stream *stream) {
  (void)stream;
  virtual_clock_pass(((work *)arg)->ns, 1.0);
  return ATTUNE_OK;
}

TEST(threads_that_spin_on_are_waited_for) {
  work w = {.ns = 1000};
  attune_bench_case cases[] = {case_of("team", &w), case_of("alone", &w)};
  cases[1].run = spend_alone;
  attune_bench *bench = bench_of(cases, 2);
  bench_client c;
  bench_client_sample sample;
  bench_client_start(&c, bench);
  naps = spinning = 0;
  (void)bench_client_open(&c, 0, 1000000);
  assert_int_equal(naps, 1);
  naps = 0;
  spinning = 7;
  bench_client_samples(&c, 1, &sample, "end\t0\t0");
  assert_int_equal(naps, 8);
  near(sample.ns, 1000.0, 1e-3);
  naps = 0;
  spinning = 1000000; /* for ever */
  bench_client_samples(&c, 1, &sample, "end\t0\t0");
  assert_true(naps > 8 && naps < 1000);
  bench_client_close(&c);
  naps = 0;
  (void)bench_client_open(&c, 1, 1000000);
  bench_client_samples(&c, 1, &sample, "end\t0\t0");
  assert_int_equal(naps, 0);
  OK(bench_client_end(&c));
  attune_bench_destroy(bench);
}

/* Emptying the caches takes time; it is not in the samples. */
static int emptied; /* also by a stream's work */
static size_t emptied_bytes;
void __wrap_at_caches_empty(void *memory, size_t bytes);
void __real_at_caches_empty(void *memory, size_t bytes);
void __wrap_at_caches_empty(void *memory, size_t bytes) {
  if (emptied++ == 0) __real_at_caches_empty(memory, bytes);
  emptied_bytes = bytes;
  virtual_clock_pass(9000, 1.0);
}

TEST(cold_calls_follow_empty_caches) {
  const uint64_t cache = host()->properties.cache_bytes;
  work w = {.ns = 1000};
  attune_bench_case one = case_of("one", &w);
  one.flags = ATTUNE_BENCH_COLD;
  attune_bench *bench = bench_of(&one, 1);
  bench_client c;
  bench_client_sample samples[2];
  bench_client_start(&c, bench);
  const long long calls = bench_client_open(&c, 0, 1000000);
  near((double)calls, 100.0, 0.1);
  emptied = w.runs = 0;
  bench_client_samples(&c, 2, samples, "end\t0\t0");
  assert_int_equal(emptied, 2 * calls);
  assert_int_equal(w.runs, 2 * calls);
  assert_true(emptied_bytes >= 2 * cache && cache > 0);
  for (int i = 0; i < 2; i++) {
    near(samples[i].ns, 1000.0, 0.05);
    near(samples[i].cpu_ns, 2000.0, 0.05);
  }
  OK(bench_client_end(&c));
  attune_bench_destroy(bench);
}

/* ---- work of a device ---- */

/* A stream's thread looks at the clock while it waits for work, for a time that is short beside these. */
enum { LONG_NS = 5000000, LONG_SAMPLE_NS = 100 * LONG_NS };

static void pass_in_stream(void *user) {
  virtual_clock_pass(((work *)user)->ns, 1.0);
}

static attune_status give(void *arg, attune_stream *stream) {
  work *w = arg;
  w->runs++;
  w->stream = stream;
  return attune_stream_call(stream, pass_in_stream, w);
}

static void pass_as_fill(void *user) {
  (void)user;
  emptied++;
  virtual_clock_pass(4 * LONG_NS, 1.0);
}

attune_status __wrap_attune_fill(attune_stream *stream, void *destination, int value, size_t bytes);
attune_status __wrap_attune_fill(attune_stream *stream, void *destination, int value, size_t bytes) {
  (void)destination;
  (void)value;
  emptied_bytes = bytes;
  return attune_stream_call(stream, pass_as_fill, NULL);
}

static void check_stream_work(unsigned flags, double least) {
  work w = {.ns = LONG_NS};
  attune_bench_case one = case_of("one", &w);
  one.run = give;
  one.device = host();
  one.flags = flags;
  attune_bench *bench = bench_of(&one, 1);
  bench_client c;
  bench_client_sample samples[2];
  bench_client_start(&c, bench);
  const long long calls = bench_client_open(&c, 0, LONG_SAMPLE_NS);
  if ((double)calls < least || calls > 105) fail_msg("%lld calls", calls);
  assert_non_null(w.stream);
  assert_ptr_not_equal(w.stream, attune_stream_default(host()));
  const int before = w.runs;
  emptied = 0;
  bench_client_samples(&c, 2, samples, "end\t0\t0");
  assert_int_equal(emptied, flags & ATTUNE_BENCH_COLD ? 2 * calls : 0);
  assert_int_equal(w.runs > before, !(flags & ATTUNE_BENCH_GRAPH)); /* a graph has the calls since it was opened */
  for (int i = 0; i < 2; i++) near(samples[i].ns, LONG_NS, 0.05);
  bench_client_close(&c);
  OK(bench_client_end(&c));
  assert_int_equal(w.tear_downs, 1);
  attune_bench_destroy(bench);
}

TEST(streams_are_timed_by_events) {
  check_stream_work(0, 90);
  check_stream_work(ATTUNE_BENCH_GRAPH, 90);
  check_stream_work(ATTUNE_BENCH_COLD, 1);
  check_stream_work(ATTUNE_BENCH_COLD | ATTUNE_BENCH_GRAPH, 1);
}

/* However few calls a sample has, one runs before it, so that the stream is busy while they are queued. */
TEST(a_stream_is_busy_before_a_sample) {
  work w = {.ns = LONG_NS};
  attune_bench_case one = case_of("one", &w);
  one.run = give;
  one.device = host();
  attune_bench *bench = bench_of(&one, 1);
  bench_client c;
  bench_client_sample samples[3];
  bench_client_start(&c, bench);
  const long long calls = bench_client_open(&c, 0, 2 * LONG_NS);
  assert_in_range(calls, 1, 3);
  const int before = w.runs;
  bench_client_samples(&c, 3, samples, "end\t0\t0");
  assert_int_equal(w.runs - before, 3 * (calls + 1));
  bench_client_close(&c);
  OK(bench_client_end(&c));
  attune_bench_destroy(bench);
}

/* ---- what fails ---- */

TEST(a_case_that_fails_is_told) {
  work fine = {.ns = 1000}, no_set_up = {.ns = 1000, .no_set_up = true}, at_once = {.ns = 1000, .fails_at = 1},
       later = {.ns = 1000};
  const attune_bench_case cases[] = {case_of("no set-up", &no_set_up), case_of("at once", &at_once),
                                     case_of("later", &later), case_of("fine", &fine)};
  attune_bench *bench = bench_of(cases, 4);
  bench_client c;
  bench_client_sample sample;
  bench_client_start(&c, bench);
  bench_client_ask(&c, "open\t0\t1000000\n");
  bench_client_expect(&c, "failed\tset_up: invalid argument: stream is NULL; should be a stream from "
                          "attune_stream_create or attune_stream_default");
  assert_int_equal(no_set_up.runs + no_set_up.tear_downs, 0);
  bench_client_ask(&c, "open\t1\t1000000\n");
  bench_client_begins(&c, "failed\trun: device error");
  assert_int_equal(at_once.tear_downs, 1);
  (void)bench_client_open(&c, 2, 1000000);
  later.fails_at = later.runs + 1500;
  bench_client_ask(&c, "sample\t5\n");
  bench_client_begins(&c, "sample\t");
  bench_client_begins(&c, "failed\trun: device error");
  assert_int_equal(later.tear_downs, 1);
  bench_client_ask(&c, "sample\t1\n");
  bench_client_expect(&c, "failed\tno case is open; the runner should open one first");
  bench_client_ask(&c, "close\n");
  bench_client_begins(&c, "failed\tno case is open");
  (void)bench_client_open(&c, 3, 1000000);
  bench_client_samples(&c, 1, &sample, "end\t0\t0");
  bench_client_ask(&c, "open\t3\t1000000\n");
  bench_client_begins(&c, "failed\tcase 3 is still open");
  assert_int_equal(fine.tear_downs, 1);
  bench_client_ask(&c, "open\t4\t1000000\n");
  bench_client_begins(&c, "failed\tcase 4 does not exist; should be below 4");
  OK(bench_client_end(&c));
  attune_bench_destroy(bench);
}

static attune_status speak(void *arg) {
  attune_workload *workload = NULL;
  (void)arg;
  return attune_workload_read(&workload, "/nowhere\\at/all.csv");
}

/* A backslash comes as two. */
TEST(messages_are_escaped) {
  work w = {.ns = 1000};
  attune_bench_case one = case_of("one", &w);
  one.set_up = speak;
  attune_bench *bench = bench_of(&one, 1);
  bench_client c;
  bench_client_start(&c, bench);
  bench_client_ask(&c, "open\t0\t1000\n");
  const char *line = bench_client_begins(&c, "failed\tset_up: ");
  if (!strstr(line, "/nowhere\\\\at/all.csv")) fail_msg("%s", line);
  OK(bench_client_end(&c));
  attune_bench_destroy(bench);
}

int main(void) {
  virtual_clock_start();
  attune_device *device = NULL;
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  device->properties.cache_bytes = (uint64_t)6 << 20; /* soon emptied */
  return RUN_TESTS(NULL, NULL);
}
