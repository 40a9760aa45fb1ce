/* SPDX-License-Identifier: Apache-2.0
 * elementwise_sleef.c: attune's vector math beside SLEEF's and glibc's libmvec, function by function and in fused
 * expressions: time in the cache, the ways in turns, and the worst error in units in the last place.
 * elementwise_sleef [--count N] [--rounds N] [--only FUNCTIONS] [--markdown FILE]. Both libraries are opened at run
 * time; a column of one that is not here has dashes. */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/tool.h"
#include "bench/common/turns.h"
#include "bench/elementwise/elementwise_peers.h"
#include "bench/elementwise/elementwise_ulp.h"
#include "ops/elementwise/host/interpret.h"
#include "ops/elementwise/ir/evaluate.h"
#include "ops/elementwise/language/compile.h"
#include "src/base/splitmix64.h"
#include "src/host/threads.h"
#include "src/process/library.h"

/* ---- what is compared ---- */

typedef struct subject {
  const char *text;              /* of x, or of x and y */
  int function;                  /* AT_FN_COUNT: an expression of several, without an error */
  int arguments;                 /* 1 or 2 */
  double low, high;              /* of x while it is timed; y is between 0.1 and 4 */
  peer_form form;                /* of the libraries */
  const char *f[PEER_FUNCTIONS]; /* their functions' names */
  const char *sleef;             /* the more exact variant's suffix */
  bool libmvec_f64;              /* attune itself calls libmvec for f64 */
} subject;

#define ONE(name, F, low, high) \
  { #name "(x)", AT_FN_##F, 1, low, high, PEER_ONE, {#name }, "u10", false }
#define MADE(name, F, form, ...) \
  { #name "(x)", AT_FN_##F, 1, -8, 8, PEER_##form, {__VA_ARGS__ }, "u10", false }
static const subject subjects[] = {
    ONE(exp, EXP, -20, 20),
    {"exp2(x)", AT_FN_EXP2, 1, -20, 20, PEER_ONE, {"exp2"}, "u10", true},
    ONE(expm1, EXPM1, -8, 8),
    {"log(x)", AT_FN_LOG, 1, 0.001, 1000, PEER_ONE, {"log"}, "u10", true},
    ONE(log2, LOG2, 0.001, 1000),
    ONE(log10, LOG10, 0.001, 1000),
    ONE(log1p, LOG1P, -0.9, 100),
    {"x ** y", AT_FN_POWER, 2, 0.01, 10, PEER_TWO, {"pow"}, "u10", true},
    ONE(cbrt, CBRT, -100, 100),
    {"hypot(x, y)", AT_FN_HYPOT, 2, -10, 10, PEER_TWO, {"hypot"}, "u05", true},
    ONE(sin, SIN, -20, 20),
    ONE(cos, COS, -20, 20),
    ONE(tan, TAN, -20, 20),
    ONE(asin, ASIN, -1, 1),
    {"acos(x)", AT_FN_ACOS, 1, -1, 1, PEER_ONE, {"acos"}, "u10", true},
    ONE(atan, ATAN, -10, 10),
    {"atan2(x, y)", AT_FN_ATAN2, 2, -10, 10, PEER_TWO, {"atan2"}, "u10", false},
    ONE(sinh, SINH, -8, 8),
    ONE(cosh, COSH, -8, 8),
    ONE(tanh, TANH, -8, 8),
    ONE(asinh, ASINH, -100, 100),
    ONE(acosh, ACOSH, 1, 100),
    ONE(atanh, ATANH, -1, 1),
    ONE(erf, ERF, -4, 4),
    {"erfc(x)", AT_FN_ERFC, 1, -4, 4, PEER_ONE, {"erfc"}, "u15", false},
    MADE(sigmoid, SIGMOID, SIGMOID, "exp"),
    MADE(silu, SILU, SILU, "exp"),
    {"gelu(x)", AT_FN_GELU, 1, -8, 8, PEER_GELU, {"erfc"}, "u15", false},
    MADE(gelu_tanh, GELU_TANH, GELU_TANH, "exp"),
    MADE(softplus, SOFTPLUS, SOFTPLUS, "exp", "log1p"),
    MADE(mish, MISH, MISH, "exp"),
    {"logit(x)", AT_FN_LOGIT, 1, 0.001, 0.999, PEER_LOGIT, {"log"}, "u10", false},
    {"elu(x, y)", AT_FN_ELU, 2, -8, 8, PEER_ELU, {"expm1"}, "u10", false},
    {"tanh(x) * exp(y) + log(y)", AT_FN_COUNT, 2, -8, 8, PEER_CHAIN, {"tanh", "exp", "log"}, "u10", false},
    {"sin(x) * cos(y) + atan(y)", AT_FN_COUNT, 2, -8, 8, PEER_CHAIN, {"sin", "cos", "atan"}, "u10", false},
    {"exp(sin(x)) * log1p(y)", AT_FN_COUNT, 2, -8, 8, PEER_NESTED, {"exp", "sin", "log1p"}, "u10", false},
};

/* ---- the ways ---- */

enum way_index { OWN, SLEEF_BEST, SLEEF_FAST, LIBMVEC, WAYS };
enum { TIMED = 1024, CALLS = 8 }; /* elements of a call, which the L1 cache holds, and calls of a sample */

typedef struct way {
  bool there;
  const peer_run *runs; /* NULL: attune's own */
  peer functions;
  double worst; /* of the finite results */
  bool wrong;   /* a NaN, an infinity or a special value is not right */
} way;

typedef struct work {
  const subject *s;
  const at_interpret_isa *isa;
  attune_dtype dtype;
  const char *whose; /* the way that attune goes */
  at_kernel kernel;  /* attune's; NULL: the program below, for expressions */
  at_interpreter *program;
  at_layout layout;
  way ways[WAYS];
  int64_t n;
  unsigned char *x, *y, *out[WAYS];
  double part_worst[64][WAYS];
  bool part_wrong[64][WAYS];
  bench_turns turns;
} work;

static void *libraries[2]; /* SLEEF and libmvec; NULL: not here */

static bool is_wide(const work *w) {
  return strcmp(at_interpret_isa_name(w->isa), "avx512") == 0;
}

/* The names are made as sleef.org and the vector ABI of x86-64 say: Sleef_expf8_u10avx2, _ZGVdN8v_expf. */
static void name_of(char *out, size_t size, const work *w, int k, const char *function) {
  const bool f64 = w->dtype == ATTUNE_F64, wide = is_wide(w);
  const int lanes = (wide ? 2 : 1) * (f64 ? 4 : 8);
  if (k == LIBMVEC)
    snprintf(out, size, "_ZGV%cN%d%s_%s%s", wide ? 'e' : 'd', lanes, w->s->form == PEER_TWO ? "vv" : "v", function,
             f64 ? "" : "f");
  else
    snprintf(out, size, "Sleef_%s%c%d_%s%s", function, f64 ? 'd' : 'f', lanes, k == SLEEF_BEST ? w->s->sleef : "u35",
             wide ? "avx512f" : "avx2");
}

static bool find_way(work *w, int index) {
  way *it = &w->ways[index];
  void *library = libraries[index == LIBMVEC];
  for (int i = 0; i < PEER_FUNCTIONS && w->s->f[i]; i++) {
    char name[64];
    name_of(name, sizeof name, w, index, w->s->f[i]);
    void *address = library ? dlsym(library, name) : NULL;
    if (!address) return false;
    memcpy(&it->functions.f[i], &address, sizeof address);
  }
  it->runs = is_wide(w) ? (w->dtype == ATTUNE_F64 ? peer_avx512_f64 : peer_avx512_f32)
                        : (w->dtype == ATTUNE_F64 ? peer_avx2_f64 : peer_avx2_f32);
  return true;
}

static void make_program(work *w) {
  const at_operand_name names[2] = {{.name = "x", .dtype = (uint8_t)w->dtype},
                                    {.name = "y", .dtype = (uint8_t)w->dtype}};
  const at_signature signature = {.tensors = names, .tensor_count = w->s->arguments};
  const at_shape shape = {1, {TIMED}};
  const at_view view = at_view_packed(NULL, w->dtype, &shape), views[2] = {view, view};
  at_expression *e = NULL;
  bench_check(at_expression_create(&e, w->s->text, strlen(w->s->text), &signature), w->s->text);
  bench_check(at_interpreter_create(&w->program, e, NULL, w->isa), w->s->text);
  bench_check(at_interpreter_layout(&w->layout, w->program, &view, views), w->s->text);
  at_expression_destroy(e);
}

static void find_ways(work *w) {
  memset(w->ways, 0, sizeof w->ways);
  w->program = NULL;
  w->kernel = NULL;
  w->whose = "own";
  if (w->s->function == AT_FN_COUNT) {
    make_program(w);
  } else {
    w->kernel = w->isa->function((at_function)w->s->function, w->dtype);
    if (!w->kernel) w->whose = "libm";
    if (!w->kernel) w->kernel = at_libm_kernel((at_function)w->s->function, w->dtype);
    if (w->kernel && w->dtype == ATTUNE_F64 && w->s->libmvec_f64) w->whose = "libmvec";
  }
  for (int k = 0; k < WAYS; k++) w->ways[k].there = k == OWN || find_way(w, k);
}

static void run_way(const work *w, int k, int64_t n) {
  if (w->ways[k].runs)
    w->ways[k].runs[w->s->form](&w->ways[k].functions, w->out[k], w->x, w->y, (size_t)n);
  else if (w->kernel)
    w->kernel(w->out[k], w->x, w->s->arguments == 2 ? w->y : w->x, w->x, (size_t)n);
  else
    at_interpreter_run(w->program, &w->layout,
                       &(at_interpreter_call){.outputs = {w->out[k]}, .inputs = {w->x, w->y}, .threads = 1});
}

/* ---- time ---- */

static double sample(void *arg, int index, int round) {
  const work *w = arg;
  int k = 0;
  (void)round;
  for (int left = index; !w->ways[k].there || left-- > 0;) k++;
  run_way(w, k, TIMED);
  const double start = bench_now_ns();
  for (int i = 0; i < CALLS; i++) run_way(w, k, TIMED);
  return (bench_now_ns() - start) / ((double)CALLS * TIMED);
}

static void put_real(const work *w, unsigned char *to, int64_t i, double value) {
  at_wide_value_store(w->dtype, to + (size_t)i * attune_dtype_size(w->dtype), (at_wide_value){.re = value});
}

static void time_ways(work *w, int rounds) {
  uint64_t state = 1;
  int ways = 0;
  for (int64_t i = 0; i < TIMED; i++) {
    const double u = (double)(at_splitmix64(&state) >> 11) * 0x1p-53,
                 v = (double)(at_splitmix64(&state) >> 11) * 0x1p-53;
    put_real(w, w->x, i, w->s->low + u * (w->s->high - w->s->low));
    put_real(w, w->y, i, 0.1 + 3.9 * v);
  }
  for (int k = 0; k < WAYS; k++) ways += w->ways[k].there;
  bench_take_turns(&w->turns, ways, 2, rounds, BENCH_DRAWN, sample, w);
}

/* ---- errors ---- */

static void compare_part(void *arg, const at_team *team) {
  work *w = arg;
  const size_t size = attune_dtype_size(w->dtype);
  const int64_t each = (w->n + team->size - 1) / team->size, from = each * team->rank,
                to = from + each < w->n ? from + each : w->n;
  for (int64_t i = from; i < to; i++) {
    const at_wide_value v[3] = {at_wide_value_load(w->dtype, w->x + (size_t)i * size),
                                at_wide_value_load(w->dtype, w->y + (size_t)i * size)};
    const long double exact = at_evaluate_real((at_function)w->s->function, w->dtype, v).re;
    for (int k = 0; k < WAYS; k++) {
      if (!w->ways[k].there) continue;
      const double off = ulp_units(w->dtype, at_wide_value_load(w->dtype, w->out[k] + (size_t)i * size).re, exact);
      if (isinf(off))
        w->part_wrong[team->rank][k] = true;
      else if (off > w->part_worst[team->rank][k])
        w->part_worst[team->rank][k] = off;
    }
  }
}

static void find_errors(work *w) {
  const size_t size = attune_dtype_size(w->dtype);
  const int threads = at_cpu_count() < 64 ? at_cpu_count() : 64;
  uint64_t state = 1;
  for (int64_t i = 0; i < w->n; i++) {
    ulp_put_number(w->dtype, w->s->arguments, w->x + (size_t)i * size, i, at_splitmix64(&state));
    ulp_put_number(w->dtype, w->s->arguments, w->y + (size_t)i * size, i, at_splitmix64(&state));
  }
  static const double special[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 0.5};
  for (int64_t i = 0; i < 64; i++) put_real(w, w->x, i, special[i / 8]), put_real(w, w->y, i, special[i % 8]);
  for (int k = 0; k < WAYS; k++)
    if (w->ways[k].there) run_way(w, k, w->n);
  memset(w->part_worst, 0, sizeof w->part_worst);
  memset(w->part_wrong, 0, sizeof w->part_wrong);
  at_parallel(threads, compare_part, w);
  for (int k = 0; k < WAYS; k++)
    for (int t = 0; t < threads; t++) {
      if (w->part_worst[t][k] > w->ways[k].worst) w->ways[k].worst = w->part_worst[t][k];
      w->ways[k].wrong |= w->part_wrong[t][k];
    }
}

/* ---- the page ---- */

static void put_introduction(attune_device *host, int count) {
  char text[400], sleef[AT_LIBRARY_PATH] = "", file[PATH_MAX] = "none", method[900];
  if (libraries[0]) at_library_of(dlsym(libraries[0], "Sleef_expf8_u10avx2"), sleef, sizeof sleef);
  if (*sleef && !realpath(sleef, file)) file[0] = '\0';
  snprintf(text, sizeof text, "SLEEF %s, %s of glibc %s, compiler %s",
           strrchr(file, '/') ? strrchr(file, '/') + 1 : file, libraries[1] ? "libmvec.so.1" : "no libmvec",
           gnu_get_libc_version(), __VERSION__);
  snprintf(
      method, sizeof method,
      "one thread, %d elements in the L1 cache, ways in turns in a drawn order, nanoseconds an element and medians "
      "of the rounds' ratios: above 1 attune is faster. attune's way is its loop over an array, or the whole "
      "expression; a library's is a loop that calls its function for each vector, what it lacks made of what it has. "
      "`via`: own code, or the library that attune itself calls. ulp: the worst of %d inputs against long double, "
      "any bit pattern, everyday numbers and special values; `!`: a special or extreme result is wrong, and the "
      "figure is of the others. Rival: the fastest that is right and within 2 ulp, as `strict` asks, and that attune "
      "does not call itself",
      TIMED, count);
  bench_head("Vector math, attune beside SLEEF and libmvec", host, text, method);
}

static void put_table(const work *w) {
  bench_line("## %s, %s\n", attune_dtype_name(w->dtype), at_interpret_isa_name(w->isa));
  bench_table("| %s | via | attune ns >| SLEEF u10 / attune >| SLEEF u35 / attune >| libmvec / attune >| ulp attune >| "
              "ulp u10 >| ulp u35 >| ulp libmvec >| rival | rival / attune >|",
              attune_dtype_name(w->dtype));
}

static void append_errors(char *row, size_t size, size_t *at, const work *w) {
  for (int k = 0; k < WAYS; k++)
    if (!w->ways[k].there || w->s->function == AT_FN_COUNT)
      (void)at_append(row, size, at, " - |");
    else
      (void)at_append(row, size, at, w->ways[k].worst < 1e4 ? " %.2f%s |" : " %.1e%s |", w->ways[k].worst,
                      w->ways[k].wrong ? "!" : "");
}

/* In an expression all functions of the more exact variant are; what attune itself calls is no rival. */
static bool is_rival(const work *w, int k) {
  if (w->s->function == AT_FN_COUNT) return k == SLEEF_BEST;
  if (k == LIBMVEC && strcmp(w->whose, "libmvec") == 0) return false;
  return w->ways[k].worst <= 2.0 && !w->ways[k].wrong;
}

/* Whether a rival that attune could use is not beaten by 5 %. */
static bool put_row(const work *w) {
  static const char *const names[] = {"", "SLEEF u10", "SLEEF u35", "libmvec"};
  char row[256];
  size_t at = 0;
  int index = 1, rival = 0;
  double least = INFINITY;
  (void)at_append(row, sizeof row, &at, "| `%s` | %s | %.3f |", w->s->text, w->whose,
                  bench_turns_median(&w->turns, OWN));
  for (int k = 1; k < WAYS; k++) {
    if (!w->ways[k].there) {
      (void)at_append(row, sizeof row, &at, " - |");
      continue;
    }
    const double ratio = bench_turns_ratio(&w->turns, index++, OWN);
    (void)at_append(row, sizeof row, &at, " %.2f |", ratio);
    if (is_rival(w, k) && ratio < least) least = ratio, rival = k;
  }
  append_errors(row, sizeof row, &at, w);
  if (rival)
    bench_line("%s %s | %.2f%s |", row, names[rival], least, least < 1.05 ? " **" : "");
  else
    bench_line("%s none | - |", row);
  return rival && least < 1.05;
}

/* ---- */

static bool is_named(const char *names, const char *text) {
  for (const char *at = names; at; at = strchr(at, ','), at += at != NULL)
    if (strncmp(text, at, strcspn(at, ",")) == 0) return true;
  return false;
}

static int put_rows(work *w, int rounds, const char *only) {
  int lost = 0;
  put_table(w);
  for (size_t i = 0; i < AT_COUNT(subjects); i++) {
    if (only && !is_named(only, subjects[i].text)) continue;
    w->s = &subjects[i];
    find_ways(w);
    if (w->s->function != AT_FN_COUNT) find_errors(w);
    time_ways(w, rounds);
    lost += put_row(w);
    if (w->program) at_interpreter_destroy(w->program);
  }
  bench_line("%s", "");
  return lost;
}

static void open_libraries(void) {
  libraries[0] = dlopen("libsleef.so.3", RTLD_NOW | RTLD_LOCAL);
  libraries[1] = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!libraries[0]) fprintf(stderr, "no SLEEF here (Debian, Ubuntu: libsleef3): its columns stay empty\n");
}

int main(int argc, char **argv) {
  int count = 1 << 20, rounds = 101, lost = 0;
  const char *markdown = NULL, *only = NULL;
  static work w;
  const bench_option table[] = {{"count", BENCH_WHOLE, &count, TIMED, 1e8},
                                {"rounds", BENCH_WHOLE, &rounds, 5, BENCH_TURN_ROUNDS},
                                {"markdown", BENCH_TEXT, &markdown, 0, 0},
                                {"only", BENCH_TEXT, &only, 0, 0},
                                {NULL, BENCH_FLAG, NULL, 0, 0}};
  static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_F64};
  const at_interpret_isa *isas[5] = {NULL};
  attune_device *host = NULL;
  (void)bench_read_options(
      argc, argv, table,
      "usage: bench_elementwise_sleef [--count N] [--rounds N] [--only FUNCTIONS] [--markdown FILE]\n", NULL, 0);
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_markdown_open(markdown);
  open_libraries();
  at_interpret_isas(isas);
  w.n = count / 64 * 64;
  w.x = malloc((size_t)w.n * 8), w.y = malloc((size_t)w.n * 8);
  for (int k = 0; k < WAYS; k++)
    if (!w.x || !w.y || !(w.out[k] = malloc((size_t)w.n * 8))) bench_die("no memory for %d elements", count);
  put_introduction(host, count);
  for (int i = 0; isas[i]; i++)
    for (size_t d = 0; d < AT_COUNT(dtypes) && strcmp(at_interpret_isa_name(isas[i]), "portable") != 0; d++) {
      w.isa = isas[i], w.dtype = dtypes[d];
      lost += put_rows(&w, rounds, only);
    }
  bench_line("%d rows have a rival that attune does not beat by 5 %% (**).", lost);
  bench_markdown_close();
  free(w.x), free(w.y);
  for (int k = 0; k < WAYS; k++) free(w.out[k]);
}
