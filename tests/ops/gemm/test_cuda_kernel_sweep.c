/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_kernel_sweep.c: attune's own GEMM kernels over sizes: each of 1 to 130 in turn as m, n and k, others up to
 * 8192; dtypes, transposes, strides, addresses, C, scalars and kinds of data, NaN and infinities among them, against
 * float64. Each batch of problems has one dtype, transpose and alignment, so that its problems share compiled kernels.
 * Usage: test_cuda_kernel_sweep [FAMILY [PART PARTS]]: all families, and all of the sweep, if not named; parts can run
 * beside each other. ATTUNE_TEST_SECONDS: for each family (2); ATTUNE_TEST_KERNELS: most kernels compiled for a batch
 * (8). Exits 77 where there is no GPU. */
#include <attune/attune.h>

#include "tests/support/check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ops/gemm/kernels/kernel.h"
#include "src/base/support.h"
#include "tests/ops/gemm/kernel_sweep_draw.h"
#include "tests/support/gpu.h"

enum { BATCH = 32, SWEPT = 130, ROOM = 256, SHARED = 8 };

static attune_device *device;
static uint64_t part, parts = 1;
static int64_t until;
static int64_t per_family_ns = 2000000000;
static int kernels_most = SHARED;

/* ---- kernels ---- */

/* A batch: problems, and kernels that were compiled for it, known by their texts. */
typedef struct batch {
  trial trials[BATCH];
  int shifts[BATCH][4];
  int count;
  at_configuration tried[BATCH];
  at_jit_request requests[2 * BATCH];
  uint64_t texts[2 * BATCH];
  int kernels, made;
} batch;

typedef struct tally {
  int problems, runs, kernels, wrong, special, misaligned, large;
  double worst;
  bool size_done[4][3][SWEPT + 1]; /* by transposes, then m, n, k */
  bool kind_done[AT_COUNT(kinds)][4];
} tally;

static uint64_t text_hash(const char *text) {
  return XXH3_64bits(text, strlen(text));
}

static bool has_text(const batch *b, uint64_t hash) {
  for (int i = 0; i < b->made; i++)
    if (b->texts[i] == hash) return true;
  return false;
}

/* Asks for the kernels of one of the problem's configurations. */
static void want_kernel(batch *b, const family *f, const trial *t) {
  static at_configuration list[ROOM];
  const at_machine machine = at_machine_of(device);
  at_gemm_launch_spec spec;
  const int count = at_gemm_kernels_of(f->implementation)->candidates(&t->g, &machine, list, ROOM, between(0, 1));
  assert_true(count > 0);
  const at_configuration *chosen = &list[between(0, 2) ? between(0, count - 1) : 0];
  assert_true(at_gemm_kernels_of(f->implementation)->spec(&spec, &t->g, &machine, chosen));
  b->tried[b->kernels++] = *chosen;
  for (int before = 0; before <= (int)at_gemm_has_before(at_gemm_kernels_of(f->implementation), &spec); before++) {
    char *text = NULL;
    OK(at_gemm_text(&text, at_gemm_kernels_of(f->implementation), &spec, before));
    const uint64_t hash = text_hash(text);
    if (has_text(b, hash)) {
      free(text);
      continue;
    }
    b->texts[b->made] = hash;
    b->requests[b->made++].source = (at_kernel_source){.file = at_gemm_kernels_of(f->implementation)->file,
                                                       .text = text,
                                                       .entry = at_gemm_kernels_of(f->implementation)->entry};
  }
}

/* All that the configuration needs for this problem is compiled. */
static bool can_run(const batch *b, const family *f, const trial *t, const at_configuration *configuration) {
  const at_machine machine = at_machine_of(device);
  at_gemm_launch_spec spec;
  if (!at_gemm_kernels_of(f->implementation)->spec(&spec, &t->g, &machine, configuration)) return false;
  bool all = true;
  for (int before = 0; before <= (int)at_gemm_has_before(at_gemm_kernels_of(f->implementation), &spec); before++) {
    char *text = NULL;
    OK(at_gemm_text(&text, at_gemm_kernels_of(f->implementation), &spec, before));
    all = all && has_text(b, text_hash(text));
    free(text);
  }
  return all;
}

static void describe(char *out, size_t size, const trial *t) {
  const at_gemm *g = &t->g;
  const size_t used = (size_t)snprintf(
      out, size,
      "%s:%s %c%c %lldx%lldx%lld batch %lld ld %lld,%lld,%lld,%lld strides %lld,%lld,%lld,%lld align %d c %d",
      attune_dtype_name((attune_dtype)g->dtype), attune_dtype_name((attune_dtype)g->dtype_out), g->trans_a ? 't' : 'n',
      g->trans_b ? 't' : 'n', (long long)g->m, (long long)g->n, (long long)g->k, (long long)g->batch, (long long)g->lda,
      (long long)g->ldb, (long long)g->ldc, (long long)g->ldd, (long long)g->stride_a, (long long)g->stride_b,
      (long long)g->stride_c, (long long)g->stride_d, g->alignment, g->c);
  snprintf(out + used, size - used, " accuracy %d alpha %g beta %g data %d", g->accuracy, t->alpha, t->beta, t->data);
}

static void run_one(const family *f, trial *t, const at_configuration *configuration, tally *n) {
  at_plan *plan = NULL;
  char what[512];
  describe(what, sizeof what, t);
  if (getenv("ATTUNE_TEST_VERBOSE")) { /* the last line is of the run that does not end */
    printf("%s %s \"%s\"\n", f->implementation->name, what, configuration->text);
    fflush(stdout);
  }
  attune_status status = at_plan_create(&plan, &at_gemm_op, f->implementation, configuration, &t->g, device);
  if (status == ATTUNE_OK) status = attune_copy(sweep_stream, t->d.device, t->old, t->d.bytes);
  if (status == ATTUNE_OK) status = plan->launch(plan, &t->operands, sweep_stream);
  if (status != ATTUNE_OK) fail_msg("%s \"%s\": %s", what, configuration->text, attune_last_message());
  const double error = trial_error(t);
  n->runs++;
  n->worst = fmax(n->worst, error);
  if (!(error <= 1.0) && n->wrong++ < 10)
    print_message("%s %s \"%s\": error %g of what is allowed\n", f->implementation->name, what, configuration->text,
                  error);
  at_plan_destroy(plan);
}

/* ---- the sweep ---- */

/* The next problem of a batch that the family takes. */
static bool next_problem(batch *b, const family *f, const class *of, unsigned *next) {
  const at_machine machine = at_machine_of(device);
  const int most = (f->own ? 64 : SWEPT) + 1 - f->least;
  for (int attempt = 0; attempt < 50; attempt++) {
    trial *t = &b->trials[b->count];
    sizes s;
    f->draw(s);
    const bool sweeps = between(0, 3) != 0;
    const int role = (int)(*next / (unsigned)most % 3), size = (int)(*next % (unsigned)most) + f->least;
    if (sweeps) s[role] = size, *next += attempt % 8 == 7 || f->own; /* one that nothing goes with is left out */
    const int64_t batches = f->own ? between(2, 24) : between(0, 2) ? 1 : between(2, 4);
    if (!set_up(t, of, s, batches)) continue;
    shift(t, of, b->shifts[b->count]);
    if (!at_gemm_kernels_of(f->implementation)->supports(&t->g, &machine)) continue;
    if (sweeps && !f->own && attempt % 8 != 7) ++*next;
    b->count++;
    return true;
  }
  return false;
}

static void count_problem(const class *of, const trial *t, tally *n) {
  const int64_t sides[] = {t->g.m, t->g.n, t->g.k};
  n->problems++;
  for (int i = 0; i < 3; i++)
    if (sides[i] <= SWEPT) n->size_done[of->ta + 2 * of->tb][i][sides[i]] = true;
  n->special += t->data == DATA_SPECIAL;
  n->misaligned += t->g.alignment < WIDEST || of->lines[0] < WIDEST || of->lines[1] < WIDEST || of->lines[2] < WIDEST;
  n->large += t->g.m > SWEPT || t->g.n > SWEPT || t->g.k > SWEPT;
  for (size_t k = 0; k < AT_COUNT(kinds); k++)
    if (kinds[k][0] == of->in && kinds[k][1] == of->out) n->kind_done[k][of->ta + 2 * of->tb] = true;
}

static void run_batch(const family *f, const class *of, unsigned *next, tally *n) {
  static batch b;
  memset(&b, 0, sizeof b);
  while (b.count < BATCH && next_problem(&b, f, of, next)) continue;
  if (b.count == 0) return;
  const int most = f->own ? b.count : kernels_most < b.count ? kernels_most : b.count;
  for (int i = 0; i < most; i++) want_kernel(&b, f, &b.trials[i * b.count / most]);
  at_jit_get_all(b.requests, b.made, device);
  for (int i = 0; i < b.made; i++)
    if (!b.requests[i].kernel) fail_msg("%s: %s", f->implementation->name, b.requests[i].message);
  for (int i = 0; i < b.count && (n->runs == 0 || at_now_ns() < until); i++) {
    trial *t = &b.trials[i];
    bool opened = false;
    for (int j = f->own ? i : 0; j < (f->own ? i + 1 : b.kernels); j++) {
      if (!can_run(&b, f, t, &b.tried[j])) continue;
      if (!opened) trial_open(t, b.shifts[i]);
      opened = true;
      run_one(f, t, &b.tried[j], n);
    }
    if (!opened) continue;
    if (!inputs_are_unchanged(t)) fail_msg("%s writes A or B", f->implementation->name);
    count_problem(of, t, n);
    trial_close(t);
  }
  n->kernels += b.made;
  for (int i = 0; i < b.made; i++) {
    at_jit_release(b.requests[i].kernel);
    free((char *)(uintptr_t)b.requests[i].source.text);
  }
}

static void tell(const family *f, const tally *n) {
  int done = 0, of_kinds = 0;
  for (int i = 0; i < 4; i++) {
    for (int role = 0; role < 3; role++)
      for (int size = 1; size <= SWEPT; size++) done += n->size_done[i][role][size];
    for (size_t k = 0; k < AT_COUNT(kinds); k++) of_kinds += n->kind_done[k][i];
  }
  print_message(
      "%s: %d problems, %d runs of %d kernels, %d wrong, worst %.3f of what is allowed; swept sizes %d, dtypes x "
      "transposes %d; NaN and infinities %d, lines or addresses below 16 bytes %d, beyond %d %d\n",
      f->implementation->name, n->problems, n->runs, n->kernels, n->wrong, n->worst, done, of_kinds, n->special,
      n->misaligned, SWEPT, n->large);
}

static void sweep(const family *f) {
  static tally n;
  unsigned next[4];
  n = (tally){0};
  for (int i = 0; i < 4; i++) next[i] = (unsigned)(part * 3 * SWEPT / parts);
  until = at_now_ns() + per_family_ns;
  for (uint64_t turn = 0; n.runs == 0 || at_now_ns() < until; turn++) {
    if (turn > 400 && n.runs == 0) fail_msg("%s takes nothing that is drawn", f->implementation->name);
    *random_state() = 88172645463325252u + (turn * parts + part) * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 8; i++) (void)random_bits();
    const class of = class_at(f, turn);
    run_batch(f, &of, &next[of.ta + 2 * of.tb], &n);
  }
  tell(f, &n);
  assert_int_equal(n.wrong, 0);
}

static void a_family(void **state) {
  const family *f = *state;
  if (f->implementation == &at_gemm_sm90_wgmma_16b && device->properties.capability_major != 9) skip();
  if (f->implementation == &at_gemm_sm90_wgmma_bf16x6 && device->properties.capability_major != 9) skip();
  sweep(f);
}

int main(int argc, char **argv) {
  struct CMUnitTest tests[AT_COUNT(families)];
  size_t count = 0;
  if (argc != 1 && argc != 2 && argc != 4) {
    fputs("usage: test_cuda_kernel_sweep [FAMILY [PART PARTS]]; PART: 0 to PARTS - 1\n", stderr);
    return 2;
  }
  for (size_t i = 0; i < AT_COUNT(families); i++)
    if (argc == 1 || strcmp(argv[1], families[i].implementation->name) == 0)
      tests[count++] =
          (struct CMUnitTest){families[i].implementation->name, a_family, NULL, NULL, (void *)(uintptr_t)&families[i]};
  if (count == 0) {
    fprintf(stderr, "no family is called %s\n", argv[1]);
    return 2;
  }
  if (argc == 4) part = strtoull(argv[2], NULL, 10), parts = strtoull(argv[3], NULL, 10);
  if (parts == 0 || part >= parts) return 2;
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  const char *seconds = getenv("ATTUNE_TEST_SECONDS"), *kernels = getenv("ATTUNE_TEST_KERNELS");
  if (seconds) per_family_ns = strtoll(seconds, NULL, 10) * 1000000000;
  if (kernels && atoi(kernels) > 0) kernels_most = atoi(kernels) < BATCH ? atoi(kernels) : BATCH;
  if (attune_stream_create(&sweep_stream, device) != ATTUNE_OK) return 1;
  const int failures = _cmocka_run_group_tests("sweep", tests, count, NULL, NULL);
  attune_stream_destroy(sweep_stream);
  return failures;
}
