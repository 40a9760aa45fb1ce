/* SPDX-License-Identifier: Apache-2.0
 * hot_path.c: what attune itself costs: a hit of attune_gemm, a plan run, both by number of threads, and opening a
 * database with 100,000 winners. The plan launches nothing, so that only attune is measured: for that this program
 * looks inside the library. */
#include "bench/hot_path.h"

#include "bench/tool.h"

#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ops/gemm/problem.h"
#include "tuning/tuner.h"

/* A run is about as long as a scheduler's time slice or shorter, so many are undisturbed on a busy machine. */
enum { CALLS = 100000, REPEATS = 41, MAX_THREADS = 64, MANY_PROBLEMS = 64, MANY_MASK = MANY_PROBLEMS - 1 };

/* The implementation that does nothing. */
static bool no_op_supports(const void *problem, attune_device *device) {
  (void)problem, (void)device;
  return true;
}

static int no_op_configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  (void)problem, (void)device;
  if (max > 0) out[0].text[0] = 0;
  return max > 0 ? 1 : 0;
}

static attune_status no_op_prepare(at_plan *plan) {
  (void)plan;
  return ATTUNE_OK;
}

static attune_status no_op_launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  (void)plan, (void)operands, (void)stream;
  return ATTUNE_OK;
}

static void no_op_destroy(at_plan *plan) {
  (void)plan;
}

static const at_implementation no_op = {.name = "no_op",
                                        .version = 1,
                                        .backend = "host",
                                        .supports = no_op_supports,
                                        .configurations = no_op_configurations,
                                        .prepare = no_op_prepare,
                                        .launch = no_op_launch,
                                        .destroy = no_op_destroy};

typedef enum path { PATH_LAUNCH, PATH_HIT, PATH_HIT_MANY, PATH_HIT_TWO, PATH_PLAN } path;

typedef struct scene {
  attune_tuner *tuner;
  attune_stream *stream;
  attune_plan *plan; /* as a caller has it */
  at_launch_fn volatile launch;
  attune_gemm_problem problems[MANY_PROBLEMS], pair[2]; /* the pair: nn and nt, else the same */
  attune_gemm_operands operands;
} scene;

static float data[96] __attribute__((aligned(128)));

/* Puts a plan that does nothing where attune_gemm will find it. */
static void plant(scene *s, const attune_gemm_problem *problem) {
  at_key key = {{0}};
  char text[AT_PROBLEM_CHARS];
  attune_device *device = attune_stream_device(s->stream);
  at_plan *plan = NULL;
  at_configuration configuration = {""};
  attune_decision decision = {.source = ATTUNE_SOURCE_TUNED};
  bench_check(attune_gemm_problem_format(text, sizeof text, problem, NULL), "attune_gemm_problem_format");
  bench_check(at_gemm_op.parse(text, at_key_problem(&key)), text);
  at_key_set(&key, &at_gemm_op, device);
  bench_check(at_plan_create(&plan, &at_gemm_op, &no_op, &configuration, at_key_problem(&key), device),
              "at_plan_create");
  bench_check(at_plan_table_put(&s->tuner->plans, &key, &plan, &decision, false), "at_plan_table_put");
}

static void open_scene(scene *s) {
  attune_device *host = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_check(attune_tuner_create(&s->tuner, &options), "attune_tuner_create");
  s->stream = attune_stream_default(host);
  s->launch = no_op_launch;
  s->operands = (attune_gemm_operands){1.0, data, data + 32, 0.0, NULL, data + 64};
  for (int i = 0; i < MANY_PROBLEMS; i++) {
    s->problems[i] = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
    s->problems[i].m = 64 + i;
    s->problems[i].n = s->problems[i].k = 64;
    plant(s, &s->problems[i]);
  }
  for (int i = 0; i < 2; i++) {
    s->pair[i] = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
    s->pair[i].m = s->pair[i].n = s->pair[i].k = 48;
    s->pair[i].trans_b = i ? ATTUNE_T : ATTUNE_N;
    plant(s, &s->pair[i]);
  }
  bench_check(attune_gemm_plan_create(&s->plan, s->tuner, s->stream, &s->problems[0], &s->operands),
              "attune_gemm_plan_create");
}

static void close_scene(scene *s) {
  attune_plan_destroy(s->plan);
  attune_tuner_destroy(s->tuner);
}

static int run_launch(const scene *s, const attune_gemm_operands *operands) {
  int failed = 0;
  for (int i = 0; i < CALLS; i++) failed |= (int)s->launch(s->plan, operands, s->stream);
  return failed;
}

static int run_hit(const scene *s, const attune_gemm_operands *operands, const attune_gemm_problem *problem) {
  int failed = 0;
  for (int i = 0; i < CALLS; i++) failed |= (int)attune_gemm(s->tuner, s->stream, problem, operands);
  return failed;
}

static int run_hit_many(const scene *s, const attune_gemm_operands *operands) {
  int failed = 0;
  for (int i = 0; i < CALLS; i++)
    failed |= (int)attune_gemm(s->tuner, s->stream, &s->problems[i * 37 & MANY_MASK], operands);
  return failed;
}

static int run_hit_two(const scene *s, const attune_gemm_operands *operands) {
  int failed = 0;
  for (int i = 0; i < CALLS; i++) failed |= (int)attune_gemm(s->tuner, s->stream, &s->pair[i & 1], operands);
  return failed;
}

static int run_plan(const scene *s, const attune_gemm_operands *operands) {
  int failed = 0;
  for (int i = 0; i < CALLS; i++) failed |= (int)attune_gemm_plan_run(s->plan, s->stream, operands);
  return failed;
}

/* Nanoseconds a call in this thread. */
static double run_path(const scene *s, path which) {
  attune_gemm_operands operands = s->operands;
  attune_gemm_problem problem = s->problems[0];
  int64_t start = at_now_ns();
  int failed = which == PATH_LAUNCH     ? run_launch(s, &operands)
               : which == PATH_HIT      ? run_hit(s, &operands, &problem)
               : which == PATH_HIT_MANY ? run_hit_many(s, &operands)
               : which == PATH_HIT_TWO  ? run_hit_two(s, &operands)
                                        : run_plan(s, &operands);
  double took = (double)(at_now_ns() - start);
  if (failed != 0) bench_die("a call failed: %s", attune_last_message());
  return took / CALLS;
}

typedef struct worker {
  const scene *scene;
  path which;
  int cpu;
  pthread_barrier_t *barrier;
  double ns;
} worker;

static void *work(void *argument) {
  worker *w = argument;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)w->cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  pthread_barrier_wait(w->barrier);
  w->ns = run_path(w->scene, w->which);
  return NULL;
}

/* The CPUs that this process may use. */
static int find_cpus(int cpus[MAX_THREADS]) {
  cpu_set_t set;
  int count = 0;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && count < MAX_THREADS; cpu++)
    if (CPU_ISSET((size_t)cpu, &set)) cpus[count++] = cpu;
  return count;
}

/* Million calls a second of `threads` threads at once, each on a CPU of its own, spread evenly over those there are
 * (neighbours may share a core's hardware): the sum of the threads' own rates, the median of several runs or the best.
 */
static double rate_of_threads(const scene *s, path which, int threads, const int *cpus, int cpu_count, bool best) {
  double runs[REPEATS];
  for (int run = -1; run < REPEATS; run++) {
    pthread_barrier_t barrier;
    pthread_t ids[MAX_THREADS];
    worker workers[MAX_THREADS];
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
      workers[t] = (worker){s, which, cpus[t * cpu_count / threads], &barrier, 0.0};
      if (pthread_create(&ids[t], NULL, work, &workers[t]) != 0) bench_die("a thread could not start");
    }
    double rate = 0.0;
    for (int t = 0; t < threads; t++) {
      pthread_join(ids[t], NULL);
      rate += 1e3 / workers[t].ns;
    }
    pthread_barrier_destroy(&barrier);
    if (run >= 0) runs[run] = rate;
  }
  double highest = runs[0];
  for (int run = 1; run < REPEATS; run++) highest = runs[run] > highest ? runs[run] : highest;
  return best ? highest : bench_median(runs, REPEATS);
}

static double time_one(const scene *s, path which, const int *cpus) {
  return 1e3 / rate_of_threads(s, which, 1, cpus, 1, true);
}

static void report_threads(const scene *s, path which, const char *name, const int *cpus, int cpu_count) {
  static const int counts[] = {1, 2, 4, 8, 16};
  double alone = 0.0;
  bench_line("%s", "");
  bench_line("| %s: threads | ns a call of a thread | million calls/s in all | scaling |", name);
  bench_line("|---:|---:|---:|---:|");
  for (size_t i = 0; i < AT_COUNT(counts) && counts[i] <= cpu_count; i++) {
    const double rate = rate_of_threads(s, which, counts[i], cpus, cpu_count, false);
    if (i == 0) alone = rate;
    bench_line("| %d | %.1f | %.1f | %.2f |", counts[i], 1e3 * counts[i] / rate, rate, rate / alone);
  }
}

static void report_calls(void) {
  static scene s;
  int cpus[MAX_THREADS], cpu_count = find_cpus(cpus);
  open_scene(&s);
  const struct {
    path which;
    const char *name;
  } rows[] = {{PATH_HIT_MANY, "attune_gemm, a hit, 64 problems in turn"},
              {PATH_HIT_TWO, "attune_gemm, a hit, nn and nt in turn"},
              {PATH_HIT, "attune_gemm, a hit, one problem"},
              {PATH_PLAN, "attune_gemm_plan_run"},
              {PATH_LAUNCH, "the launch alone, through its pointer"}};
  const double launch = time_one(&s, PATH_LAUNCH, cpus);
  bench_line("| one thread, an implementation that does nothing | ns a call | above the launch |");
  bench_line("|---|---:|---:|");
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    const double took = time_one(&s, rows[i].which, cpus);
    bench_line("| %s | %.1f | %.1f |", rows[i].name, took, took - launch);
  }
  hot_report_small();
  report_threads(&s, PATH_HIT, "attune_gemm, a hit", cpus, cpu_count);
  report_threads(&s, PATH_PLAN, "attune_gemm_plan_run", cpus, cpu_count);
  report_threads(&s, PATH_LAUNCH, "the launch alone (what the machine's cores allow)", cpus, cpu_count);
  close_scene(&s);
}

static void report_machine(int argc, char **argv) {
  attune_device *host = NULL;
  attune_device_properties cpu;
  char date[32], command[512];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_check(attune_device_get_properties(host, &cpu), "attune_device_get_properties");
  size_t at = 0;
  at_append(command, sizeof command, &at, "bench_hot_path");
  for (int i = 1; i < argc; i++) at_append(command, sizeof command, &at, " %s", argv[i]);
  bench_line("# The cost of attune itself\n");
  bench_line("- CPU: %s, %d CPUs (%s)", cpu.name, cpu.processors, cpu.features);
  bench_line("- attune %s", attune_version());
  bench_line("- command: %s", command);
  bench_line("- date: %s", date);
  bench_line(
      "- method: runs of %d calls in pinned threads; one thread: the best of %d runs, more: the median, the sum of "
      "the threads' rates\n",
      CALLS, REPEATS);
}

static const char usage[] =
    "usage: bench_hot_path [--winners N] [--markdown FILE]\n"
    "Times a hit of attune_gemm, small products beside the libraries that are here, a hit and a plan run by number of\n"
    "threads, opening a database of N winners (default 100000) "
    "with\n"
    "the first look-up and, where there is a CUDA device, enqueuing a small GEMM beside cuBLAS.\n";

int main(int argc, char **argv) {
  static const struct option names[] = {{"winners", required_argument, NULL, 'w'},
                                        {"markdown", required_argument, NULL, 'm'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  int64_t winners = 100000;
  for (int letter; (letter = getopt_long(argc, argv, "h", names, NULL)) != -1;) {
    if (letter == 'h') {
      fputs(usage, stdout);
      return 0;
    }
    if (letter == 'm') bench_markdown_open(optarg);
    if (letter == '?' || (letter == 'w' && (!at_parse_i64(&winners, optarg) || winners < 1))) {
      fputs(usage, stderr);
      return 2;
    }
  }
  report_machine(argc, argv);
  report_calls();
  hot_report_database(winners);
#ifdef BENCH_WITH_CUDA
  hot_report_cuda();
#endif
  bench_markdown_close();
  return 0;
}
