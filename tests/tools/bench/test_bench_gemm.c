/* SPDX-License-Identifier: Apache-2.0
 * test_bench_gemm.c: what bench_gemm makes of times that are made up: the ratios of each row, the best peer among them,
 * the last lines and the CSV. */
#include "tests/support/check.h"

#include "bench/common/tool.h"
#include "bench/gemm/gemm.h"

#include <unistd.h>

enum { PLAN = 2, OTHER = 3, WAYS = 4, ROUNDS = 3 };

/* Microseconds by problem, way and round; 0: the way cannot do the problem. The ratio of the medians of the first two
 * ways is 1.2, the median of their ratios 1.5. */
static const double times[3][WAYS][ROUNDS] = {
    {{100, 200, 400}, {150, 240, 600}, {50, 100, 200}, {120, 260, 440}},
    {{10, 10, 10}, {9, 9, 9}, {5, 5, 5}, {0}},
    {{10, 10, 10}, {0}, {5, 5, 5}, {0}},
};

typedef struct made {
  int problem, taken[WAYS];
} made;

static bool prepare(bench_platform *platform, bench_way *way, const bench_problem *problem, const bench_set *example) {
  const made *m = platform->state;
  (void)problem, (void)example;
  return times[m->problem][way - platform->ways][0] > 0;
}

static bool enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  (void)way;
  return attune_fill(platform->stream, set->d, 0, platform->problem->bytes_d) == ATTUNE_OK;
}

static bool ready(bench_platform *platform, int index, const bench_sets *sets, int calls) {
  made *m = platform->state;
  (void)sets, (void)calls;
  m->taken[index] = -1; /* one round warms up */
  return true;
}

static double sample(bench_platform *platform, int index) {
  made *m = platform->state;
  const int round = m->taken[index]++;
  return round < 0 ? 1.0 : 1e3 * times[m->problem][index][round];
}

static void unready(bench_platform *platform) {
  (void)platform;
}

static bench_platform made_platform(made *state) {
  bench_platform p = {
      .way_count = WAYS, .target_ns = 1.0, .min_calls = 1, .max_calls = 1, .floor_ratio = 0.98, .method = "made up"};
  static const char *const names[WAYS] = {"attune", "the default", "a plan", "another"};
  for (int w = 0; w < WAYS; w++)
    p.ways[w] = (bench_way){.name = names[w], .prepare = prepare, .enqueue = enqueue, .own = w == PLAN};
  OK(attune_device_get(&p.device, "host"));
  p.stream = attune_stream_default(p.device);
  p.ready = ready, p.sample = sample, p.unready = unready, p.state = state;
  return p;
}

/* The rows of these times, measured. */
static void measure_all(bench_platform *p, bench_row rows[3]) {
  static const char *const names[3] = {"first", "second", "alone"};
  attune_workload_entry entry = {.problem = "gemm f32 nn 4x4x4 strict"};
  memset(rows, 0, 3 * sizeof *rows);
  for (int i = 0; i < 3; i++) {
    ((made *)p->state)->problem = i;
    entry.name = names[i];
    bench_problem_read(&rows[i].problem, &entry);
    bench_measure(p, &rows[i].problem, ROUNDS, &rows[i]);
    rows[i].decision.source = i == 2 ? ATTUNE_SOURCE_DEFAULT : ATTUNE_SOURCE_STORED;
    strcpy(rows[i].decision.implementation, "made");
  }
}

TEST(a_best_peer_is_the_least_ratio) {
  made m = {0};
  bench_row rows[3];
  bench_platform p = made_platform(&m);
  measure_all(&p, rows);
  assert_true(rows[0].figures[BENCH_ATTUNE].ratio == 1.0);
  assert_true(rows[0].figures[BENCH_DEFAULT].ratio == 1.5);
  assert_true(rows[0].figures[OTHER].ratio == 1.2);
  assert_int_equal(rows[0].best, OTHER); /* the plan is faster, but attune's own */
  assert_int_equal(rows[1].best, BENCH_DEFAULT);
  assert_false(rows[1].figures[OTHER].present);
  assert_int_equal(rows[2].best, 0);
  assert_true(rows[2].figures[PLAN].present);
  bench_random_release(p.stream);
}

static char *contents(const char *path) {
  static char text[8192];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

static void has(const char *text, const char *words) {
  if (!strstr(text, words)) fail_msg("lacks: %s\n%s", words, text);
}

TEST(the_report_has_both_ratios) {
  made m = {0};
  bench_row rows[3];
  bench_summary summary = {0};
  char path[] = "test_bench_gemm_XXXXXX";
  bench_platform p = made_platform(&m);
  close(mkstemp(path));
  measure_all(&p, rows);
  bench_markdown_open(path);
  bench_report_head(&p, ROUNDS);
  for (int i = 0; i < 3; i++) {
    bench_report_row(&p, &rows[i]);
    bench_summary_add(&summary, &p, &rows[i]);
  }
  bench_report_summary(&p, &summary);
  bench_markdown_close();
  const char *text = contents(path);
  has(text, "| a plan | another | default / attune | best peer / attune | attune runs |\n"
            "|---|---|---:|---:|---:|---:|---:|---:|---|\n");
  has(text, " | 1.500 | 1.200 (another) | made |\n");
  has(text, " - | 0.900 | 0.900 (the default) | made |\n");
  has(text, " - | - | - | made (not tuned) |\n");
  has(text,
      "- the default / attune: geomean 1.1619 over 2 problems, least 0.900 (second), 1 below 0.98\n"
      "- best peer of each problem / attune: geomean 1.0392 over 2 problems, least 0.900 (second), 1 below 0.98\n");
  has(text, "- 1 problems had no stored winner\n");
  remove(path);
  bench_random_release(p.stream);
}

TEST(without_peers_the_report_says_so) {
  made m = {0};
  char path[] = "test_bench_gemm_XXXXXX";
  const bench_summary summary = {0};
  const bench_platform p = made_platform(&m);
  close(mkstemp(path));
  bench_markdown_open(path);
  bench_report_summary(&p, &summary);
  bench_markdown_close();
  const char *text = contents(path);
  has(text, "- no peer to compare with\n");
  assert_null(strstr(text, "geomean"));
  remove(path);
}

TEST(the_csv_has_the_best_peer) {
  made m = {0};
  bench_row rows[3];
  char path[] = "test_bench_gemm_XXXXXX";
  bench_platform p = made_platform(&m);
  FILE *file = fdopen(mkstemp(path), "w");
  assert_non_null(file);
  measure_all(&p, rows);
  bench_report_csv_head(file);
  bench_report_csv_row(file, &p, &rows[1]);
  bench_report_csv_row(file, &p, &rows[2]);
  fclose(file);
  assert_string_equal(contents(path),
                      "name,problem,way,us,spread,note,ratio\n"
                      "second,gemm f32 nn 4x4x4 strict,attune,10.0000,0.00000,\"made\",1.0000\n"
                      "second,gemm f32 nn 4x4x4 strict,the default,9.0000,0.00000,\"\",0.9000\n"
                      "second,gemm f32 nn 4x4x4 strict,a plan,5.0000,0.00000,\"\",0.5000\n"
                      "second,gemm f32 nn 4x4x4 strict,best peer,9.0000,0.00000,\"the default\",0.9000\n"
                      "alone,gemm f32 nn 4x4x4 strict,attune,10.0000,0.00000,\"made (not tuned)\",1.0000\n"
                      "alone,gemm f32 nn 4x4x4 strict,a plan,5.0000,0.00000,\"\",0.5000\n");
  remove(path);
  bench_random_release(p.stream);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
