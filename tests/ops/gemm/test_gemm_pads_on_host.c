/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_pads_on_host.c: the kernel of sm90_wgmma_16b_pad.cuh, compiled by the C++ compiler with gemm_on_host.h and
 * run on the host: lines of any length, distance and address, of one factor or both, arrive where the tensor maps
 * expect them. */
#include "tests/support/check.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <attune/attune.h>

#include "ops/gemm/implementations.h"
#include "ops/gemm/kernels/sm90_tma_maps.h"
#include "tests/support/child.h"
#include "tests/support/cuda_gemm.h"

#define FAMILY(NAME) at_gemm_kernels_of(&at_gemm_##NAME)

typedef void (*run_function)(const void *, const unsigned *, unsigned, unsigned);

enum { ROOM = 64 };
static at_machine machine;

/* Those that are worth a copy are large, so batches of small ones. */
static const shape shapes[] = {
    {ATTUNE_BF16, .ta = 0, .tb = 0, .m = 999, .n = 101, .k = 1003, .batch = 1},
    {ATTUNE_F16, .ta = 1, .tb = 0, .m = 333, .n = 555, .k = 577, .gap = 3, .shift = 1},
    {ATTUNE_F16, .ta = 0, .tb = 1, .m = 65, .n = 72, .k = 129, .batch = 200, .step = 5, .shift = 5},
    {ATTUNE_BF16, .ta = 1, .tb = 1, .m = 120, .n = 131, .k = 136, .batch = 60, .share_a = true},
    {ATTUNE_BF16, .ta = 0, .tb = 0, .m = 1024, .n = 512, .k = 201},
    {ATTUNE_BF16, .ta = 1, .tb = 0, .m = 800, .n = 800, .k = 800, .gap = 4},
    {ATTUNE_F16, .ta = 1, .tb = 0, .m = 800, .n = 800, .k = 800, .shift = 4},
};

/* So many bytes of which nothing behind the last can be read. */
static unsigned char *at_the_edge(size_t bytes, void **pages, size_t *length) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  *length = (bytes + page - 1) / page * page + page;
  *pages = mmap(NULL, *length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(*pages != MAP_FAILED);
  assert_int_equal(mprotect((char *)*pages + *length - page, page, PROT_NONE), 0);
  return (unsigned char *)*pages + *length - page - bytes;
}

static void *open_kernel(const at_gemm_launch_spec *r, const char *folder, run_function *run) {
  char source[96], library[96], include[128], *text = NULL;
  static char output[1 << 16];
  snprintf(source, sizeof source, "%s/kernel.cc", folder);
  snprintf(library, sizeof library, "%s/kernel.so", folder);
  snprintf(include, sizeof include, "-I%s", AT_SOURCE_DIR);
  FILE *file = fopen(source, "w");
  assert_non_null(file);
  OK(at_gemm_text(&text, FAMILY(sm90_wgmma_16b), r, true));
  fprintf(file,
          "#include \"tests/support/gemm_on_host.h\"\n%s\nstatic void body(const void *a) { at_wgmma(*(const "
          "at_arguments *)a); }\n"
          "extern \"C\" void run(const void *a, const unsigned *grid, unsigned ranks, unsigned threads) {\n"
          "  host_run(body, a, grid, ranks, threads);\n}\n",
          text);
  free(text);
  assert_int_equal(fclose(file), 0);
  const char *const words[] = {CXX,  "-std=c++17", "-w",   "-O1", "-fno-strict-aliasing", "-fPIC", "-shared", include,
                               "-o", library,      source, NULL};
  output[0] = 0;
  if (run_program(words, output, sizeof output) != 0) fail_msg("%s: %.4000s", source, output);
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!opened) fail_msg("%s", dlerror());
  *(void **)run = dlsym(opened, "run");
  assert_non_null(*run);
  unlink(source), unlink(library);
  return opened;
}

/* A copy's lines are the operand's, as its map says they lie. */
static void check_lines(const unsigned char *copy, const unsigned char *from, const at_gemm *g, bool b, int number) {
  const at_tensor_shape s = at_wgmma_tensor(g, b, 64);
  const int64_t ld = (b ? g->ldb : g->lda) * 2, stride = (b ? g->stride_b : g->stride_a) * 2;
  for (int64_t i = 0; i < s.count; i++)
    for (int64_t l = 0; l < s.lines; l++)
      if (memcmp(copy + i * s.matrix_bytes + l * s.line_bytes, from + i * stride + l * ld, (size_t)s.length * 2) != 0)
        fail_msg("number %d: line %lld of matrix %lld of %c differs", number, (long long)l, (long long)i,
                 b ? 'B' : 'A');
}

/* False: neither side can be halved. */
static bool gate(at_gemm *g) {
  const bool m = g->m % 2 == 0 && g->m > 64;
  if (!m && (g->n % 2 || g->n <= 64)) return false;
  g->gated = m ? ATTUNE_GATED_M : ATTUNE_GATED_N;
  g->c = AT_C_NONE, g->ldc = g->stride_c = 0;
  return true;
}

static bool one_copy(int number, bool gated) {
  static at_configuration list[ROOM];
  char folder[] = "/tmp/attune_pads_XXXXXX";
  at_gemm g;
  at_gemm_launch_spec r;
  run_function run = NULL;
  void *pages[2];
  size_t lengths[2];
  unsigned char *operands[2];
  set_problem(&g, &shapes[number]);
  if (gated && !(gate(&g) && FAMILY(sm90_wgmma_16b)->supports(&g, &machine))) return false;
  assert_true(FAMILY(sm90_wgmma_16b)->supports(&g, &machine));
  assert_true(FAMILY(sm90_wgmma_16b)->candidates(&g, &machine, list, ROOM, false) > 0);
  assert_true(FAMILY(sm90_wgmma_16b)->spec(&r, &g, &machine, &list[0]));
  assert_non_null(mkdtemp(folder));
  void *opened = open_kernel(&r, folder, &run);
  for (int i = 0; i < 2; i++) {
    const at_tensor_shape s = at_wgmma_tensor(&g, i, 64);
    const int64_t ld = i ? g.ldb : g.lda, stride = i ? g.stride_b : g.stride_a;
    const size_t bytes = (size_t)((s.count - 1) * stride + (s.lines - 1) * ld + s.length) * 2;
    /* Its address has the alignment that the problem says. */
    const size_t more = (size_t)(g.alignment < 16 ? 16 - bytes % 16 + 16 - g.alignment : 16 - bytes % 16) % 16;
    operands[i] = at_the_edge(bytes + more, &pages[i], &lengths[i]);
    for (size_t e = 0; e < bytes; e++) operands[i][e] = (unsigned char)(random_bits() >> 30);
  }
  at_gemm_arguments a = r.arguments;
  const at_gemm_operands o = {.a = operands[0], .b = operands[1]};
  at_gemm_bind(&a, &g, r.swapped, &o);
  a.phase = 2;
  a.sums = aligned_alloc(256, r.workspace_bytes + 256);
  assert_non_null(a.sums);
  memset(a.sums, 0xa5, r.workspace_bytes + 256);
  run(&a, (unsigned[]){r.before.grid[0], 1, 1}, 1, r.before.block[0]);
  for (int i = 0; i < 2; i++)
    if (r.copied[i])
      check_lines((const unsigned char *)a.sums + r.places[i], operands[r.swapped ? !i : i], &g, r.swapped ? !i : i,
                  number);
  for (size_t i = 0; i < 256; i++) assert_int_equal(((unsigned char *)a.sums)[r.workspace_bytes + i], 0xa5);
  free(a.sums);
  for (int i = 0; i < 2; i++) munmap(pages[i], lengths[i]);
  dlclose(opened);
  rmdir(folder);
  return true;
}

TEST(copies_are_the_operands) {
  for (size_t i = 0; i < AT_COUNT(shapes); i++) one_copy((int)i, false);
}

/* The kernel behind has half of the rows, the copy all of them. */
TEST(copies_of_gated_products) {
  int done = 0;
  for (size_t i = 0; i < AT_COUNT(shapes); i++) done += one_copy((int)i, true);
  assert_true(done > 1);
}

int main(void) {
  if (access(CXX, X_OK) != 0) return skip_all("no C++ compiler");
  machine = at_machine_make(90, 132, "NVIDIA H200");
  return RUN_TESTS(NULL, NULL);
}
