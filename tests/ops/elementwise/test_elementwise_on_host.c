/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_on_host.c: the text of CUDA kernels, compiled by the C++ compiler with cuda_on_host.h and run on the
 * host: every form over every way in which operands can lie, functions of every dtype, random numbers. Results are
 * those of evaluate.h, and nothing else is written. What only a GPU shows is left: PTX, races, the device's own
 * functions. ATTUNE_TEST_ALL=1: every function with every dtype, and more random expressions. */
#include "tests/support/check.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops/elementwise/ir/promote.h"
#include "tests/ops/elementwise/elementwise_case.h"
#include "tests/ops/elementwise/elementwise_forms.h"
#include "tests/ops/elementwise/evaluate_views.h"
#include "tests/ops/elementwise/random_graph.h"
#include "tests/ops/elementwise/raw_function.h"
#include "tests/support/child.h"

enum { MOST = 400 };

/* A kernel of the file that is being written. */
typedef struct job {
  at_expression *raw; /* a function in C computes what the graph does; NULL: the graph's own kernel */
  graph *g;
  ecase c;
  at_cuda_launch launch;
  at_cuda_choice choice;
  double allowed[AT_EXPRESSION_OUTPUTS];
  bool random; /* of random_graph.h: what is allowed depends on the output */
  char name[96];
} job;

static job *jobs;
static int job_count;
static FILE *file;
static char folder[64];

static void begin(void) {
  char path[96];
  jobs = calloc(MOST, sizeof *jobs);
  job_count = 0;
  snprintf(folder, sizeof folder, "/tmp/attune_kernels_XXXXXX");
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/kernels.cc", folder);
  file = fopen(path, "w");
  assert_non_null(file);
  fputs("#include \"tests/support/cuda_on_host.h\"\n#include \"src/random/philox.h\"\n#include "
        "\"src/random/transforms.h\"\n"
        "#include \"ops/elementwise/cuda/device.cuh\"\n#include \"ops/elementwise/cuda/device_single.cuh\"\n"
        "#include \"ops/elementwise/cuda/device_double.cuh\"\n#include \"ops/elementwise/cuda/device_gamma.cuh\"\n"
        "#include \"ops/elementwise/cuda/device_math.cuh\"\n#include \"ops/elementwise/cuda/device_neural.cuh\"\n"
        "#include \"ops/elementwise/cuda/device_complex.cuh\"\n#include \"ops/elementwise/cuda/device_random.cuh\"\n",
        file);
}

/* The common beginning of all kernels stands once, in front; then each text's tunables and its own part. */
static void write_kernel(const char *text, int number, bool syncs) {
  static const char *const defined[] = {"AT_EMBEDDED", "BLOCK", "LOADS",  "VECTOR",   "PERSISTENT",
                                        "LOAD",        "STORE", "TILE",   "WIDE",     "GROUP",
                                        "STAGE_BYTES", "UNITS", "PIECES", "DEPENDENT"};
  const char *own = strstr(text, "\n#undef AT_EMBEDDED"), *rest = text;
  if (!own) own = strstr(text, "\nstruct at_arguments {");
  assert_non_null(own);
  for (size_t i = 0; i < AT_COUNT(defined); i++) fprintf(file, "#undef %s\n", defined[i]);
  while (strncmp(rest, "#define ", 8) == 0) rest = strchr(rest, '\n') + 1;
  fprintf(file, "%.*s#define at_elementwise kernel_%d\nnamespace n%d {\n%s\n", (int)(rest - text), text, number, number,
          own);
  fprintf(
      file,
      "static void body(const void *a) { kernel_%d(*(const at_arguments *)a); }\n}\nextern \"C\" unsigned long "
      "run_%d(const void *a, unsigned blocks, unsigned threads) {\n  run_grid(n%d::body, a, blocks, threads, %d);\n  "
      "return sizeof(n%d::at_arguments);\n}\n#undef at_elementwise\n",
      number, number, number, syncs, number);
}

/* One more kernel, if the operands can lie so for the choice. `raw` is the job's from then on. */
static bool add_with(at_expression *raw, graph *g, const at_shape *shape, const lie *ways, const attune_dtype *outputs,
                     const at_cuda_choice *choice, const double *allowed, bool reduced, bool tame, const char *name) {
  assert_true(job_count < MOST);
  job *j = &jobs[job_count];
  j->choice = *choice;
  memcpy(j->allowed, allowed, (size_t)g->e.output_count * sizeof *allowed);
  snprintf(j->name, sizeof j->name, "%s", name);
  OK(case_make(&j->c, g, shape, ways, outputs, reduced, tame, (uint64_t)job_count + 3));
  if (!at_cuda_supports(&j->c.problem, choice, 90)) {
    case_free(&j->c);
    return false;
  }
  j->g = malloc(sizeof *g);
  *j->g = *g;
  j->g->e.nodes = j->g->nodes;
  j->c.g = j->g;
  j->raw = raw;
  j->c.problem.expression = raw ? raw : &j->g->e;
  char *text = NULL;
  OK(at_cuda_generate(&text, &j->c.problem, choice));
  write_kernel(text, job_count++, choice->form == AT_FORM_TRANSPOSE || choice->form == AT_FORM_BULK);
  free(text);
  return true;
}

/* Each output may be off as much. */
static bool add_raw(at_expression *raw, graph *g, const at_shape *shape, const lie *ways, const attune_dtype *outputs,
                    const at_cuda_choice *choice, double allowed, bool reduced, bool tame, const char *name) {
  double each[AT_EXPRESSION_OUTPUTS];
  for (int k = 0; k < AT_EXPRESSION_OUTPUTS; k++) each[k] = allowed;
  return add_with(raw, g, shape, ways, outputs, choice, each, reduced, tame, name);
}

static bool add(graph *g, const at_shape *shape, const lie *ways, const attune_dtype *outputs,
                const at_cuda_choice *choice, double allowed, bool reduced, bool tame, const char *name) {
  return add_raw(NULL, g, shape, ways, outputs, choice, allowed, reduced, tame, name);
}

static void compile(char *library, size_t size) {
  char source[96], include[64];
  static char output[1 << 16];
  assert_int_equal(fclose(file), 0);
  snprintf(source, sizeof source, "%s/kernels.cc", folder);
  snprintf(library, size, "%s/kernels.so", folder);
  snprintf(include, sizeof include, "-I%s", AT_SOURCE_DIR);
  const char *const words[] = {CXX,  "-std=c++17", "-w",   "-O0", "-ffp-contract=off", "-fPIC", "-shared", include,
                               "-o", library,      source, NULL};
  output[0] = 0;
  if (run_program(words, output, sizeof output) != 0) fail_msg("%s: %.4000s", source, output);
}

static void check_job(job *j, void *library, int number) {
  char name[24];
  unsigned long (*run)(const void *, unsigned, unsigned) = NULL;
  at_cuda_launch launch;
  void *tensors[AT_CUDA_TENSORS];
  snprintf(name, sizeof name, "run_%d", number);
  *(void **)&run = dlsym(library, name);
  assert_non_null(run);
  const at_cuda_problem *p = &j->c.problem;
  OK(at_cuda_plan(&launch, p, &j->choice, 2, 2));
  for (int k = 0; k < p->expression->output_count + p->expression->input_count; k++)
    tensors[k] = (char *)(uintptr_t)j->c.operands[k].view.data +
                 p->layout.operands[k].offset * (int64_t)attune_dtype_size(j->c.operands[k].view.dtype);
  at_cuda_bind_tensors(&launch, p, tensors);
  at_cuda_bind_scalars(&launch, p->expression, j->c.scalars);
  at_cuda_bind_random(&launch, j->c.draws.seed, j->c.draws.offset, NULL);
  if (launch.config.grid[0] > 0)
    assert_int_equal(run(launch.words, launch.config.grid[0], launch.config.block[0]), 8 * launch.word_count);
  double allowed[AT_EXPRESSION_OUTPUTS];
  unsigned char *outputs[AT_EXPRESSION_OUTPUTS];
  for (int k = 0; k < p->expression->output_count; k++) {
    outputs[k] = j->c.operands[k].memory;
    allowed[k] = j->allowed[k];
  }
  if (j->random) random_expect(&j->c, outputs, allowed);
  for (int k = 0; k < p->expression->output_count; k++) {
    int64_t place = 0;
    const double worst = case_compare(&j->c, k, j->c.operands[k].memory, &place);
    at_configuration text;
    assert_true(at_cuda_choice_format(&text, &j->choice));
    if (worst > allowed[k]) {
      const at_view *v = &j->c.expected[k].view;
      const size_t at = CASE_EDGE + (size_t)place * attune_dtype_size(v->dtype);
      fail_msg("%s %s (number %d): output %d (%s), element %lld is off by %g units, allowed %g: %.17g, should be "
               "%.17g; see %s",
               j->random ? random_tell(&j->c, k, j->c.operands[k].memory, place) : j->name, text.text, number, k,
               functions_name(j->c.g, k), (long long)place, worst, allowed[k],
               case_double(v->dtype, j->c.operands[k].memory + at), case_double(v->dtype, j->c.expected[k].memory + at),
               folder);
    }
  }
}

static void finish(void) {
  char path[96];
  compile(path, sizeof path);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  for (int i = 0; i < job_count; i++) check_job(&jobs[i], library, i);
  print_message("%d kernels\n", job_count);
  for (int i = 0; i < job_count; i++) {
    case_free(&jobs[i].c);
    at_expression_destroy(jobs[i].raw);
    free(jobs[i].g);
  }
  free(jobs);
  dlclose(library);
  (void)unlink(path);
  path[strlen(path) - 2] = 0;
  memcpy(path + strlen(path), "cc", 3);
  (void)unlink(path);
  (void)rmdir(folder);
}

/* ---- forms ---- */

TEST(forms) {
  static graph g;
  begin();
  for (size_t i = 0; i < AT_COUNT(form_cases); i++) {
    const form_case *f = &form_cases[i];
    char name[32];
    snprintf(name, sizeof name, "form case %zu", i);
    three(&g, f->dtypes[1], f->dtypes[2], f->dtypes[3], f->dtypes[0]);
    if (!add(&g, &f->shape, f->ways, f->dtypes, &f->choice, 1, false, true, name))
      fail_msg("%s is not supported", name);
  }
  finish();
}

/* The same by a function in C, whose words the C++ compiler takes as well: every form, one output and three, names that
 * are also names of the kernel's text, macros of its tunables. */
TEST(raw_forms) {
  static graph g;
  static const char *const sources[] = {
      "template <typename T> T twice(T x) { return x + x; }\ntemplate <typename T> T a(T x, T y, T once) { /* x y + "
      "once */ "
      "return twice(x) * y / 2 + once; }",
      "float a(float BLOCK, float LOADS, float TILE) { return BLOCK * LOADS + TILE; }"};
  int count = 0;
  begin();
  for (size_t i = 0; i < AT_COUNT(form_cases); i++) {
    const form_case *f = &form_cases[i];
    at_expression *e = NULL;
    char name[32];
    bool halves = true;
    snprintf(name, sizeof name, "form case %zu in C", i);
    three(&g, f->dtypes[1], f->dtypes[2], f->dtypes[3], f->dtypes[0]);
    for (int k = 1; k < 4; k++) halves = halves && at_compute_dtype(f->dtypes[k]) == ATTUNE_F32;
    const attune_status status = raw_expression(&e, sources[!halves || i % 2], "a", f->dtypes + 1, 3, 0, 1);
    if (status == ATTUNE_INVALID_ARGUMENT) continue; /* an 8-bit float has no common dtype with another one */
    OK(status);
    if (!add_raw(e, &g, &f->shape, f->ways, f->dtypes, &f->choice, 1, false, true, name))
      fail_msg("%s is not supported", name);
    count++;
  }
  assert_true(count >= 20);
  finish();
}

/* Scalars and several outputs. */
TEST(raw_outputs) {
  static graph g;
  static const char source[] =
      "#define TIMES *\ntemplate <typename T> void f(T x, T y, T s, T t, T &sum, T &product, T "
      "&scaled) {\n  sum = x + y, product = x TIMES y, scaled = x TIMES s + t;\n}\n#undef TIMES";
  static const at_cuda_choice choices[] = {{.form = V, .bytes = 16, .loads = 2, .block = 64},
                                           {.form = R, .bytes = 16, .loads = 2, .block = 64},
                                           {.form = S, .loads = 2, .block = 64}};
  static const lie ways[][5] = {{PACKED, PACKED, PACKED, PACKED, ONE},
                                {PACKED, PACKED, PACKED, PACKED, BIAS},
                                {SPREAD, PACKED, PACKED, BACKWARD, COLUMN}};
  begin();
  for (size_t i = 0; i < AT_COUNT(choices); i++) {
    const attune_dtype inputs[] = {ATTUNE_F32, ATTUNE_F16};
    at_expression *e = NULL;
    graph_begin(&g);
    const int x = graph_input(&g, ATTUNE_F32), y = graph_input(&g, ATTUNE_F16),
              s = graph_scalar(&g, ATTUNE_F64, ATTUNE_F32), t = graph_scalar(&g, ATTUNE_F64, ATTUNE_F32);
    graph_output(&g, graph_apply(&g, AT_FN_ADD, ATTUNE_F32, x, y, 0));
    graph_output(&g, graph_apply(&g, AT_FN_MULTIPLY, ATTUNE_F32, x, y, 0));
    const int scaled = graph_apply(&g, AT_FN_MULTIPLY, ATTUNE_F32, x, s, 0);
    graph_output(&g, graph_apply(&g, AT_FN_ADD, ATTUNE_F32, scaled, t, 0));
    OK(raw_expression(&e, source, "f", inputs, 2, 2, 3));
    assert_true(add_raw(e, &g, &(at_shape){2, {21, 36}}, ways[i], NULL, &choices[i], 0, false, true, "outputs in C"));
  }
  finish();
}

/* ---- functions ---- */

TEST(functions) {
  static graph g;
  const bool all = getenv("ATTUNE_TEST_ALL") != NULL;
  const lie ways[AT_CUDA_TENSORS] = {PACKED};
  int number = 0;
  begin();
  for (int d = 1; d <= AT_DTYPE_LAST; d++)
    for (int tame = 0; tame < 2; tame++)
      for (int f = 0; f < AT_FN_COUNT;) {
        char name[64];
        double allowed[AT_EXPRESSION_OUTPUTS];
        f = functions_take(&g, f, (attune_dtype)d, tame != 0, allowed);
        if (!all && d != ATTUNE_F32 && d != ATTUNE_F64 && (d + f) % 9) continue;
        if (g.e.output_count == 0) continue;
        snprintf(name, sizeof name, "functions of %s", attune_dtype_name((attune_dtype)d));
        assert_true(
            add_with(NULL, &g, &(at_shape){1, {777}}, ways, NULL, &functions_choice, allowed, false, tame != 0, name));
        number += g.e.output_count;
      }
  print_message("%d functions of a dtype\n", number);
  assert_true(number > (all ? 1300 : 200));
  finish();
}

/* At the difficult arguments, of either sign. */
TEST(hard_arguments) {
  static graph g;
  static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_BF16, ATTUNE_F64};
  const lie ways[AT_CUDA_TENSORS] = {PACKED};
  begin();
  for (size_t d = 0; d < AT_COUNT(dtypes); d++)
    for (int tame = 0; tame < 2; tame++)
      for (int f = 0; f < AT_FN_COUNT;) {
        double allowed[AT_EXPRESSION_OUTPUTS];
        const size_t size = attune_dtype_size(dtypes[d]);
        f = functions_take(&g, f, dtypes[d], tame != 0, allowed);
        if (g.e.output_count == 0) continue;
        assert_true(add_with(NULL, &g, &(at_shape){1, {2 * AT_COUNT(hard_places)}}, ways, NULL, &functions_choice,
                             allowed, false, tame != 0, attune_dtype_name(dtypes[d])));
        ecase *c = &jobs[job_count - 1].c;
        at_view expected[AT_EXPRESSION_OUTPUTS], inputs[3];
        for (int k = 0; k < g.e.output_count; k++) expected[k] = c->expected[k].view;
        for (int k = 0; k < g.e.input_count; k++) {
          inputs[k] = c->operands[g.e.output_count + k].view;
          for (size_t i = 0; k == 0 && i < 2 * AT_COUNT(hard_places); i++)
            at_wide_value_store(dtypes[d], (char *)inputs[k].data + i * size,
                                (at_wide_value){.re = (i % 2 ? -1 : 1) * (long double)hard_places[i / 2]});
        }
        OK(at_evaluate_views(&c->g->e, expected, inputs, c->scalars, &c->draws, AT_ROUND_NODES));
      }
  finish();
}

/* ---- the element's place, scalars, random numbers, casts ---- */

TEST(places) {
  static graph g;
  static const at_cuda_choice choices[] = {{.form = V, .bytes = 16, .loads = 2, .block = 32},
                                           {.form = R, .bytes = 16, .loads = 2, .block = 32},
                                           {.form = S, .loads = 2, .block = 32},
                                           {.form = T, .bytes = 4, .tile = 32, .block = 64},
                                           {.form = B, .bytes = 16, .loads = 2, .block = 32, .persistent = 1}};
  static const lie ways[][2] = {
      {PACKED, PACKED}, {PACKED, BIAS}, {SPREAD, BACKWARD}, {PACKED, TURNED}, {PACKED, PACKED}};
  begin();
  for (size_t i = 0; i < AT_COUNT(choices); i++) {
    graph_begin(&g); /* a * (rand() + randn()) + number */
    const int a = graph_input(&g, ATTUNE_F32), u = graph_node(&g, AT_NODE_UNIFORM, ATTUNE_F32, 0),
              n = graph_node(&g, AT_NODE_NORMAL, ATTUNE_F32, 0), w = graph_node(&g, AT_NODE_UNIFORM, ATTUNE_F32, 1);
    g.e.uniform_count = 2, g.e.normal_count = 1, g.e.element = true;
    const int number = graph_cast(&g, ATTUNE_F32, graph_node(&g, AT_NODE_ELEMENT, ATTUNE_I64, 0));
    int sum = graph_apply(&g, AT_FN_ADD, ATTUNE_F32, u, n, 0);
    sum = graph_apply(&g, AT_FN_ADD, ATTUNE_F32, sum, w, 0);
    sum = graph_apply(&g, AT_FN_MULTIPLY, ATTUNE_F32, a, sum, 0);
    graph_output(&g, graph_apply(&g, AT_FN_ADD, ATTUNE_F32, sum, number, 0));
    assert_true(add(&g, &(at_shape){2, {47, 36}}, ways[i], NULL, &choices[i], 2, false, true, "draws"));
    if (i == 0 || i == 4) continue; /* coordinates do not fit one dimension */
    graph_begin(&g);                /* column > row ? scalar : a, also in f16 */
    const int b = graph_input(&g, ATTUNE_F32), s = graph_scalar(&g, ATTUNE_F64, ATTUNE_F32);
    g.e.max_position = 1;
    const int p0 = graph_node(&g, AT_NODE_POSITION, ATTUNE_I64, 0),
              p1 = graph_node(&g, AT_NODE_POSITION, ATTUNE_I64, 1);
    const int above = graph_apply(&g, AT_FN_GREATER, ATTUNE_I64, p0, p1, 0);
    const int chosen = graph_apply(&g, AT_FN_SELECT, ATTUNE_F32, above, s, b);
    graph_output(&g, chosen);
    assert_true(add(&g, &(at_shape){2, {47, 36}}, ways[i], NULL, &choices[i], 0, false, false, "mask"));
  }
  finish();
}

/* rand() < s without the number, and rows of random numbers that begin within a Philox block. */
TEST(draws_off_their_blocks) {
  static graph g;
  static const at_cuda_choice choices[] = {
      {.form = V, .bytes = 16, .loads = 2, .block = 32}, {.form = V, .bytes = 8, .loads = 1, .block = 32},
      {.form = V, .bytes = 4, .loads = 1, .block = 32},  {.form = V, .bytes = 16, .loads = 1, .block = 32},
      {.form = R, .bytes = 4, .loads = 2, .block = 32},  {.form = R, .bytes = 16, .loads = 1, .block = 32}};
  static const lie ways[][2] = {{SHIFTED, SHIFTED}, {SHIFTED, SHIFTED}, {SHIFTED, SHIFTED},
                                {PACKED, PACKED},   {PACKED, BIAS},     {PITCHED, PITCHED}};
  begin();
  for (size_t i = 0; i < AT_COUNT(choices); i++)
    for (int half = 0; half < 2; half++) {
      const attune_dtype d = half ? ATTUNE_BF16 : ATTUNE_F32;
      graph_begin(&g); /* rand() < 0.375 ? a + randn() : 0 */
      const int a = graph_input(&g, d), u = graph_node(&g, AT_NODE_UNIFORM, ATTUNE_F32, 0),
                n = graph_node(&g, AT_NODE_NORMAL, ATTUNE_F32, 0), s = graph_scalar(&g, ATTUNE_F64, ATTUNE_F32);
      g.e.uniform_count = 1, g.e.normal_count = 1, g.e.element = true;
      const int sum = graph_apply(&g, AT_FN_ADD, ATTUNE_F32, a, n, 0);
      const int kept = graph_apply(&g, AT_FN_LESS, ATTUNE_F32, u, s, 0);
      const int chosen = graph_apply(&g, AT_FN_SELECT, ATTUNE_F32, kept, sum, graph_constant(&g, ATTUNE_F32, 0));
      graph_output(&g, graph_cast(&g, d, chosen));
      const bool added = add(&g, &(at_shape){2, {47, 37}}, ways[i], NULL, &choices[i], 2, false, true, "dropout");
      assert_true(added || (half && i == 4));
    }
  finish();
}

/* From each dtype to each, as nodes and as stores; scalars of each kind in each dtype. */
TEST(casts) {
  static graph g;
  const bool all = getenv("ATTUNE_TEST_ALL") != NULL;
  const lie ways[] = {PACKED, PACKED, PACKED};
  const at_cuda_choice c = {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 1, .block = 64};
  static const attune_dtype kinds[] = {ATTUNE_F64, ATTUNE_I64, ATTUNE_BOOL, ATTUNE_C128};
  begin();
  for (int from = 1; from <= AT_DTYPE_LAST; from++)
    for (int to = 1; to <= AT_DTYPE_LAST; to++) {
      char name[64];
      if (!all && (from * 5 + to) % 9 != 0) continue;
      graph_begin(&g);
      const int x = graph_input(&g, (attune_dtype)from);
      const int cast = graph_cast(&g, (attune_dtype)to, x);
      const int s = graph_scalar(&g, kinds[(from + to) % 4], (attune_dtype)to);
      graph_output(&g, x);
      graph_output(&g, graph_apply(&g, AT_FN_SELECT, ATTUNE_F64, graph_constant(&g, ATTUNE_BOOL, 1),
                                   graph_cast(&g, ATTUNE_F64, cast), graph_cast(&g, ATTUNE_F64, s)));
      graph_output(&g, s);
      const attune_dtype outputs[] = {(attune_dtype)to, ATTUNE_F64, (attune_dtype)to};
      snprintf(name, sizeof name, "%s to %s", attune_dtype_name((attune_dtype)from),
               attune_dtype_name((attune_dtype)to));
      const lie four[] = {PACKED, PACKED, PACKED, PACKED};
      (void)ways;
      assert_true(add(&g, &(at_shape){1, {500}}, four, outputs, &c, 0, false, false, name));
    }
  finish();
}

/* Random expressions, each function against the reference's of what the kernel had as arguments. */
TEST(random_expressions) {
  static graph g;
  const int count = getenv("ATTUNE_TEST_ALL") ? 100 : 6;
  begin();
  for (int i = 0; i < count; i++) {
    static const lie ways[RANDOM_TENSORS] = {PACKED};
    ecase c;
    at_cuda_choice choice;
    random_case(&c, &g, &choice, 90, (uint64_t)i);
    case_free(&c);
    assert_true(add(&g, &(at_shape){2, {15, 20}}, ways, NULL, &choice, 0, false, false, "random"));
    jobs[job_count - 1].random = true;
  }
  finish();
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
