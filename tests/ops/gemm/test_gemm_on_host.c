/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_on_host.c: the text of attune's GEMM kernels, compiled by the C++ compiler with gemm_on_host.h and run on
 * the host: drawn problems, dtypes, transposes, leading dimensions, addresses, C; results as sums in long double,
 * nothing else written, barriers and waits where they are needed. What only a GPU shows is left: PTX, races, speed.
 * ATTUNE_TEST_PROBLEMS: problems of each family (4). */
#include "tests/support/check.h"

#include <dlfcn.h>
#include <unistd.h>

#include <attune/attune.h>

#include "ops/gemm/implementations.h"
#include "ops/gemm/kernels/kernel.h"
#include "tests/ops/gemm/kernel_epilogue.h"
#include "tests/support/child.h"
#include "tests/support/cuda_gemm.h"

#define FAMILY(NAME) at_gemm_kernels_of(&at_gemm_##NAME)

enum { MOST = 4000, ROOM = 64, MOST_THREADS = 512 };

typedef struct job {
  const at_gemm_kernels *family;
  shape s;
  at_configuration configuration;
  at_gemm_launch_spec spec;
  at_gemm followed; /* the problem, with its epilogue */
  bool pointers;    /* arrays of them say where the matrices are */
} job;

static attune_stream *stream;
static job jobs[MOST];
static int job_count, wrong, problems = 4;
static FILE *file;
static char folder[64];
static at_machine machine;

static shape common(int number) {
  static const attune_dtype kinds[][2] = {{ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F64, ATTUNE_F64},
                                          {ATTUNE_F16, ATTUNE_F16}, {ATTUNE_BF16, ATTUNE_BF16},
                                          {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}};
  shape s = {.dtype = kinds[number % 6][0], .dtype_out = kinds[number % 6][1], .ta = draw(2), .tb = draw(2)};
  s.gap = draw(2) ? 0 : 1 + draw(9);
  s.shift = draw(2) ? 0 : draw(9);
  s.c = (at_gemm_c)draw(3);
  s.alpha = draw(2) ? 1.0 : -1.5;
  s.beta = s.c == AT_C_NONE || draw(3) == 0 ? 0.0 : 0.75;
  s.data = draw(3);
  s.apart = draw(2); /* by pointers, if it is a batch of a family that takes them */
  return s;
}

static shape tiny_shape(int number) {
  shape s = common(number);
  s.m = 1 + draw(64), s.n = 1 + draw(64), s.k = 1 + draw(64);
  if (draw(2) == 0) s.m = s.n = s.k = 8 << draw(4);
  s.batch = 2 + draw(9);
  s.step = draw(2) ? 0 : draw(20);
  s.share_a = draw(6) == 0;
  s.share_c = draw(6) == 0;
  return s;
}

static shape complex_shape(int number) {
  shape s = tiny_shape(number);
  s.dtype = s.dtype_out = number % 2 ? ATTUNE_C128 : ATTUNE_C64;
  s.ta = draw(3), s.tb = draw(3);
  s.alpha_imag = draw(2) ? 0.0 : 0.5;
  s.beta_imag = s.c == AT_C_NONE || draw(2) ? 0.0 : -2.0;
  return s;
}

static shape direct_shape(int number) {
  shape s = tiny_shape(number);
  s.dtype = number % 2 ? ATTUNE_F16 : ATTUNE_BF16;
  s.dtype_out = number % 3 ? s.dtype : ATTUNE_F32;
  s.m = 16 * (1 + draw(4)), s.n = 16 * (1 + draw(4)), s.k = 16 * (1 + draw(4));
  if (draw(3) == 0) { /* cut along its long side */
    s.batch = 1, s.step = 0, s.share_a = s.share_b = s.share_c = false;
    *(draw(2) ? &s.m : &s.n) = 16 * (5 + draw(20));
  }
  return s;
}

static shape skinny_shape(int number) {
  shape s = common(number);
  const int small = draw(2) ? 1 + draw(16) : 1 + draw(64), large = 65 + draw(150);
  s.k = draw(2) ? 1 + draw(300) : 16 * (1 + draw(30));
  const bool across = draw(2);
  s.m = across ? small : large;
  s.n = across ? large : small;
  s.batch = draw(3) ? 1 : 2;
  return s;
}

/* For copies of 16 bytes: both matrices along k, lines and matrices that begin at multiples of 16 bytes. */
static shape ring_shape(int number) {
  shape s = common(2 + number % 4);
  const int small = draw(2) ? 1 + draw(8) : 1 + draw(16), large = 64 + draw(150);
  s.k = 32 * (8 + draw(30));
  const bool across = draw(2);
  s.m = across ? small : large;
  s.n = across ? large : small;
  s.ta = 1, s.tb = 0;
  s.batch = draw(3) ? 1 : 2;
  s.gap = 8 * draw(3), s.shift = 8 * draw(2), s.step = 0;
  return s;
}

static shape mma_shape(int number) {
  shape s = common(number);
  s.accuracy = s.dtype == ATTUNE_F32 ? ATTUNE_REDUCED : ATTUNE_STRICT;
  s.m = draw(2) ? 1 + draw(90) : 8 * (1 + draw(12));
  s.n = draw(2) ? 4 + draw(60) : 8 * (1 + draw(8));
  s.k = draw(2) ? 65 + draw(100) : 16 * (5 + draw(10));
  if (draw(3) == 0) s.m = 1 + s.m / 4, s.n = 4 + s.n / 4, s.k = 600 + draw(900);
  s.batch = draw(3) ? 1 : 2;
  return s;
}

static shape simt_shape(int number) {
  shape s = mma_shape(number);
  s.dtype = s.dtype_out = ATTUNE_F32;
  s.accuracy = number % 3 ? ATTUNE_STRICT : ATTUNE_EQUIVALENT;
  if (s.n < 8) s.n += 8;
  if (s.m < 8) s.m += 8;
  return s;
}

/* f32 and f64 whose large factor lies along its rows. */
static shape rows_shape(int number) {
  shape s = common(number % 2);
  const int most = s.dtype == ATTUNE_F64 ? 8 : draw(4) ? 16 : 64, small = 1 + draw(most), large = 65 + draw(300);
  const bool across = draw(2);
  s.k = draw(2) ? 1 + draw(300) : 16 * (1 + draw(30));
  s.m = across ? small : large;
  s.n = across ? large : small;
  if (across)
    s.tb = 1;
  else
    s.ta = 0;
  s.batch = draw(3) ? 1 : 2;
  return s;
}

/* The macros that one kernel defines and the next defines anew. */
static const char *const undefined[] = {"IN",         "OUT",
                                        "M",          "N",
                                        "K",          "TM",
                                        "TN",         "WARPS",
                                        "TEAMS",      "STAGES",
                                        "SHARE",      "STRAIGHT",
                                        "TRANS_A",    "TRANS_B",
                                        "BYTES_A",    "BYTES_B",
                                        "BYTES_C",    "BYTES_D",
                                        "READS_C",    "EXACT",
                                        "STAYS",      "PACKED_A",
                                        "PACKED_B",   "PACKED_D",
                                        "THREADS",    "SIZE",
                                        "SIZE_D",     "INNER_A",
                                        "OUTER_A",    "INNER_B",
                                        "OUTER_B",    "FORM",
                                        "COLS",       "PER",
                                        "WARPS_M",    "WARPS_K",
                                        "SPLIT",      "AHEAD",
                                        "BLOCKS",     "BOUNDS",
                                        "CHUNK",      "BYTES_L",
                                        "BYTES_S",    "SMALL_K",
                                        "TURNED",     "RAGGED",
                                        "TAIL",       "STEP",
                                        "ALONG_K",    "PITCH",
                                        "LINES",      "CHUNK_ELEMENTS",
                                        "WARP_ROWS",  "LOADS",
                                        "BLOCK_ROWS", "STRIDE_K",
                                        "UNIT_K",     "WIDE",
                                        "AT_INLINE",  "at_load_large",
                                        "BK",         "WARPS_N",
                                        "PARTS",      "X_K",
                                        "Y_K",        "BYTES_X",
                                        "BYTES_Y",    "RAGGED_M",
                                        "RAGGED_N",   "RAGGED_K",
                                        "WHOLE",      "ORDERED",
                                        "WM",         "WN",
                                        "LINE_D",     "LINES_D",
                                        "PITCH_D",    "SUMS",
                                        "PACK",       "EACH_D",
                                        "UNIT_D",     "PART_UNIT",
                                        "LANES",      "ROOMS",
                                        "GROUPS",     "STEPS",
                                        "WARP_COUNT", "PART",
                                        "KERNEL",     "OWN_LOOP",
                                        "GAP_TURNED", "LANES_M",
                                        "LANES_N",    "RM",
                                        "RN",         "PAD_X",
                                        "PAD_Y",      "EARLY",
                                        "SHIFTS",     "HELD",
                                        "ROOM",       "WARP_ROOM",
                                        "TILES_N",    "SPAN",
                                        "STRIDE_S",   "LINE_BYTES",
                                        "BYTES",      "PIECES",
                                        "BOUND",      "SUMS_BY_PAIRS",
                                        "STAGED",     "LARGE",
                                        "ALL_ROOMS",  "SWAP",
                                        "AT_ONCE",    "LINES_S",
                                        "ROWS",       "PLACE_L",
                                        "PLACE_S",    "RING_L",
                                        "RING_S",     "COUNT",
                                        "HALVES",     "EPILOGUE",
                                        "BIAS",       "BIAS_TYPE",
                                        "ACTIVATION", "CLAMP",
                                        "MATRICES",   "SWAPPED",
                                        "AUX",        "GRADIENT",
                                        "RESIDUAL",   "BYTES_BIAS",
                                        "BYTES_AUX",  "BYTES_RESIDUAL",
                                        "SCALE_D",    "GATED",
                                        "AT_EXP",     "AT_ERF",
                                        "AT_TANH",    "AT_RECIPROCAL",
                                        "POINTERS",   "ELEMENT",
                                        "BLOCKED",    "SCALES_L",
                                        "SCALES_S"};

static void write_kernel(const job *j, int number) {
  char *text = NULL;
  OK(at_gemm_text(&text, j->family, &j->spec, false));
  for (size_t i = 0; i < AT_COUNT(undefined); i++) fprintf(file, "#undef %s\n", undefined[i]);
  fprintf(file, "#define %s kernel_%d\nnamespace n%d {\n%s\n", j->family->entry, number, number, text);
  fprintf(file,
          "static void body(const void *a) { kernel_%d(*(const at_arguments *)a); }\n}\n#undef %s\n"
          "extern \"C\" void run_%d(const void *a, const unsigned *grid, unsigned ranks, unsigned threads) {\n"
          "  host_run(n%d::body, a, grid, ranks, threads);\n}\n",
          number, j->family->entry, number, number);
  free(text);
}

/* Any configuration at all: most are none for a problem. */
static void draw_configuration(at_configuration *out, const at_gemm_kernels *family) {
  size_t at = 0;
  if (family == FAMILY(sm80_batched_smem))
    assert_true(at_append(out->text, sizeof out->text, &at, "tile=%dx%d,teams=%d,stages=%d,grid=%s", 1 << draw(7),
                          1 << draw(7), 1 + draw(8), 1 + draw(4), draw(2) ? "stays" : "whole"));
  else if (family == FAMILY(sm80_batched_reg_16b))
    assert_true(at_append(out->text, sizeof out->text, &at, "tile=%dx%d,teams=%d,blocks=%d", 16 << draw(3),
                          16 << draw(3), 1 + draw(8), 1 + draw(4)));
  else if (family == FAMILY(sm90_skinny_ring_16b))
    assert_true(at_append(out->text, sizeof out->text, &at, "rows=%d,warps=%dx%d,step=%d,stages=%d,splitk=%d,early=%d",
                          16 << draw(2), 1 << draw(4), 1 << draw(4), 64 << draw(4), 2 + draw(4), 1 << draw(4),
                          draw(3)));
  else if (family == FAMILY(sm80_mma))
    assert_true(at_append(out->text, sizeof out->text, &at,
                          "tile=%dx%d,step=%d,warps=%dx%d,along=%d,stages=%d,splitk=%d,parts=%d,pads=%d,early=%d",
                          16 << draw(4), 8 << draw(5), 8 << draw(5), 1 << draw(4), 1 << draw(3), 1 << draw(3),
                          2 + draw(5), 1 << draw(4), draw(2) ? 1 : 1 + draw(4), draw(2), draw(9)));
  else if (family == FAMILY(sm80_simt_f32))
    assert_true(at_append(out->text, sizeof out->text, &at,
                          "tile=%dx%d,step=%d,warps=%dx%d,along=%d,lanes=%d,stages=%d,splitk=%d,parts=%d,bound=%d",
                          16 << draw(4), 16 << draw(4), 8 << draw(3), 1 << draw(3), 1 << draw(3), 1 << draw(3),
                          4 << draw(2), 1 + draw(5), 1 << draw(3), draw(2) ? 1 : 1 + draw(4), draw(2)));
  else if (family == FAMILY(sm80_skinny_mmajor))
    assert_true(at_append(out->text, sizeof out->text, &at,
                          "lanes=%d,columns=%d,warps=%dx%d,splitk=%d,ahead=%d,chunk=%d,rooms=%d", 8 << draw(3),
                          1 << draw(5), 1 << draw(3), 1 << draw(5), 1 << draw(4), 1 << draw(5), 8 << draw(6),
                          draw(2) ? 0 : 4 << draw(2)));
  else
    assert_true(at_append(out->text, sizeof out->text, &at, "form=%s,columns=%d,per=%d,warps=%dx%d,splitk=%d,ahead=%d",
                          draw(3) == 0   ? "rows"
                          : draw(2) == 0 ? "depth"
                                         : "tensor",
                          1 << draw(7), 1 << draw(4), 1 << draw(4), 1 << draw(5), 1 << draw(4), 1 << draw(4)));
}

static void add(const at_gemm_kernels *family, const shape *s) {
  static at_configuration list[ROOM];
  job *j = &jobs[job_count];
  at_gemm g;
  set_problem(&g, s);
  if (family->has_epilogue && draw(2)) draw_epilogue(&g);
  j->followed = g;
  if (family->pointers && s->apart && !at_gemm_has_epilogue(&g)) g.pointers = ATTUNE_POINTERS_DEVICE;
  j->pointers = g.pointers != ATTUNE_POINTERS_NONE;
  if (!family->supports(&g, &machine)) return;
  const int count = family->candidates(&g, &machine, list, ROOM, draw(2));
  assert_true(count > 0);
  const bool any = draw(2);
  for (int tries = 0; tries < 500; tries++) {
    j->family = family;
    j->s = *s;
    j->configuration = list[draw(count)];
    if (any && tries < 400) draw_configuration(&j->configuration, family);
    if (!at_gemm_launch_spec_of(&j->spec, family, &g, &machine, &j->configuration)) {
      assert_true(any && tries < 400);
      continue;
    }
    const unsigned ranks = j->spec.config.cluster[0] ? j->spec.config.cluster[0] : 1;
    if (ranks * j->spec.config.block[0] > MOST_THREADS) continue;
    write_kernel(j, job_count++);
    return;
  }
}

/* ---- arrays of pointers ---- */

/* The addresses of the matrices, the last one first. */
static const void **array_of(const gemm_case *t, const void *first, int64_t stride, size_t element) {
  const int64_t batch = t->g.batch;
  const void **all = malloc((size_t)batch * sizeof *all);
  assert_non_null(all);
  for (int64_t i = 0; i < batch; i++) all[i] = (const char *)first + (size_t)((batch - 1 - i) * stride) * element;
  return all;
}

/* The case's operands as arrays, to be freed. */
static at_gemm_operands arrays_of(const gemm_case *t) {
  const at_gemm *g = &t->g;
  at_gemm_operands o = t->operands;
  o.a = array_of(t, o.a, g->stride_a, t->a.element);
  o.b = array_of(t, o.b, g->stride_b, t->b.element);
  o.d = array_of(t, o.d, g->stride_d, t->d.element);
  if (g->c == AT_C_SEPARATE) o.c = array_of(t, o.c, g->stride_c, t->c.element);
  return o;
}

static void free_arrays(const at_gemm *g, const at_gemm_operands *o) {
  const void *const all[] = {o->a, o->b, o->d, g->c == AT_C_SEPARATE ? o->c : NULL};
  for (size_t i = 0; i < AT_COUNT(all); i++) free((void *)(uintptr_t)all[i]);
}

/* ---- runs ---- */

typedef void (*run_function)(const void *, const unsigned *, unsigned, unsigned);

static void run_phase(run_function run, const at_jit_config *c, at_gemm_arguments *arguments, int phase) {
  const unsigned grid[3] = {c->grid[0], c->grid[1] ? c->grid[1] : 1, 1};
  arguments->phase = phase;
  if (grid[0]) run(arguments, grid, 1, c->block[0]);
}

static void check_job(const job *j, void *library, int number) {
  char name[24];
  gemm_case t;
  run_function run = NULL;
  snprintf(name, sizeof name, "run_%d", number);
  *(void **)&run = dlsym(library, name);
  assert_non_null(run);
  assert_true(make_case(&t, &j->s, stream));
  assert_true(reset_output(&t));
  OK(attune_stream_synchronize(stream));
  t.g = j->followed;
  extras more = follow(&t);
  at_gemm_arguments arguments = j->spec.arguments;
  at_gemm_operands operands = j->pointers ? arrays_of(&t) : t.operands;
  at_gemm_bind(&arguments, &t.g, j->spec.swapped, &operands);
  const at_jit_config *c = &j->spec.config;
  unsigned grid[3] = {c->grid[0], c->grid[1] ? c->grid[1] : 1, c->grid[2] ? c->grid[2] : 1};
  if (j->spec.stays && grid[0] > 2) grid[0] = 2;
  arguments.sums = malloc(j->spec.workspace_bytes + 1);
  assert_non_null(arguments.sums);
  memset(arguments.sums, 0xff, j->spec.workspace_bytes);
  if (getenv("ATTUNE_TEST_VERBOSE"))
    print_message("number %d: \"%s\", %ux%ux%u blocks of %u\n", number, j->configuration.text, grid[0], grid[1],
                  grid[2], c->block[0]);
  run_phase(run, &j->spec.before, &arguments, 2);
  arguments.phase = 0;
  run(&arguments, grid, c->cluster[0] ? c->cluster[0] : 1, c->block[0]);
  run_phase(run, &j->spec.after, &arguments, 1);
  free(arguments.sums);
  if (j->pointers) free_arrays(&t.g, &operands);
  const double error = aux_is_right(&t, &more) ? output_error(&t) : INFINITY;
  if (!(error <= 1.0)) wrong++;
  if (!(error <= 1.0) || getenv("ATTUNE_TEST_VERBOSE"))
    print_message("number %d of %s, %s:%s %c%c %lldx%lldx%lld batch %lld ld %lld,%lld,%lld align %d c %d alpha %g beta "
                  "%g epilogue %d%d%d%d%d%d%s \"%.192s\": "
                  "error %g of what is allowed\n",
                  number, folder, attune_dtype_name((attune_dtype)t.g.dtype),
                  attune_dtype_name((attune_dtype)t.g.dtype_out), t.g.trans_a ? 't' : 'n', t.g.trans_b ? 't' : 'n',
                  (long long)t.g.m, (long long)t.g.n, (long long)t.g.k, (long long)t.g.batch, (long long)t.g.lda,
                  (long long)t.g.ldb, (long long)t.g.ldd, t.g.alignment, t.g.c, t.s.alpha, t.s.beta, t.g.epilogue.bias,
                  t.g.epilogue.activation, t.g.epilogue.aux, t.g.epilogue.gradient, t.g.epilogue.residual,
                  t.g.epilogue.clamp, j->pointers ? " by pointers" : "", j->configuration.text, error);
  free_extras(&more);
  free_case(&t);
}

static void run_family(const at_gemm_kernels *family, shape (*next)(int)) {
  char source[96], library_path[96], include[128];
  static char output[1 << 16];
  job_count = 0;
  snprintf(folder, sizeof folder, "/tmp/attune_gemm_XXXXXX");
  assert_non_null(mkdtemp(folder));
  snprintf(source, sizeof source, "%s/kernels.cc", folder);
  snprintf(library_path, sizeof library_path, "%s/kernels.so", folder);
  snprintf(include, sizeof include, "-I%s", AT_SOURCE_DIR);
  file = fopen(source, "w");
  assert_non_null(file);
  fputs("#include \"tests/support/gemm_on_host.h\"\n", file);
  for (int i = 0; i < problems; i++)
    for (int before = job_count, tries = 0; job_count == before && tries < 10; tries++) { /* till one is supported */
      const shape s = next(i);
      add(family, &s);
    }
  assert_int_equal(fclose(file), 0);
  const char *const words[] = {CXX,     "-std=c++17", "-w",    "-O0", "-fno-strict-aliasing", "-ffp-contract=off",
                               "-fPIC", "-shared",    include, "-o",  library_path,           source,
                               NULL};
  output[0] = 0;
  if (run_program(words, output, sizeof output) != 0) fail_msg("%s: %.4000s", source, output);
  void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  for (int i = 0; i < job_count; i++) check_job(&jobs[i], library, i);
  print_message("%s: %d kernels, %d wrong\n", family->file, job_count, wrong);
  assert_int_equal(wrong, 0);
  assert_true(job_count > problems / 2);
  dlclose(library);
  unlink(source), unlink(library_path), rmdir(folder);
}

TEST(tiny_kernels) {
  run_family(FAMILY(sm80_batched_smem), tiny_shape);
}

TEST(complex_tiny_kernels) {
  run_family(FAMILY(sm80_batched_smem), complex_shape);
}

TEST(direct_kernels) {
  run_family(FAMILY(sm80_batched_reg_16b), direct_shape);
}

TEST(rows_kernels) {
  run_family(FAMILY(sm80_skinny_mmajor), rows_shape);
}

TEST(skinny_kernels) {
  run_family(FAMILY(sm80_skinny_reg), skinny_shape);
}

TEST(ring_kernels) {
  run_family(FAMILY(sm90_skinny_ring_16b), ring_shape);
}

TEST(mma_kernels) {
  run_family(FAMILY(sm80_mma), mma_shape);
}

TEST(simt_kernels) {
  run_family(FAMILY(sm80_simt_f32), simt_shape);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  attune_device *host = NULL;
  machine = at_machine_make(90, 132, "NVIDIA H200");
  if (getenv("ATTUNE_TEST_PROBLEMS")) problems = atoi(getenv("ATTUNE_TEST_PROBLEMS"));
  if (access(CXX, X_OK) != 0) return skip_all("no C++ compiler");
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&stream, host) != ATTUNE_OK) return 1;
  const int failures = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  return failures;
}
