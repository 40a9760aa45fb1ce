/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_edges.c: matrices whose memory ends with them: what lies behind is no memory, and no configuration of any
 * implementation of the host touches it. */
#include "tests/support/check.h"

#include <sys/mman.h>
#include <unistd.h>

#include <attune/attune.h>

#include "ops/gemm/problem/problem.h"
#include "src/base/support.h"
#include "tuning/op/registry.h"

extern const at_implementation at_gemm_host_reference, at_gemm_host_blocked, at_gemm_host_cblas, at_gemm_host_small;

#define ROOM ((size_t)1 << 18)
#define CONFIGURATIONS 512

static attune_device *host;
static char *rooms[3]; /* each with a page behind it that nobody may touch */

FIXTURE(open_rooms) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < 3; i++) {
    rooms[i] = mmap(NULL, ROOM + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rooms[i] == MAP_FAILED || mprotect(rooms[i], ROOM, PROT_READ | PROT_WRITE) != 0) return -1;
  }
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

/* The last `bytes` of a room. */
static void *at_the_end(int room, int64_t elements, size_t size) {
  const size_t bytes = (size_t)elements * size;
  assert_true(bytes <= ROOM);
  return rooms[room] + ROOM - bytes;
}

static void run(const at_implementation *implementation, const at_configuration *configuration, const at_gemm *g,
                const at_gemm_operands *o) {
  at_plan plan;
  memset(&plan, 0, sizeof plan);
  plan.launch = implementation->launch;
  plan.device = host;
  plan.implementation = implementation;
  plan.configuration = *configuration;
  plan.problem = (const uint64_t *)(const void *)g;
  if (implementation->prepare(&plan) != ATTUNE_OK)
    fail_msg("%s %s: %s", implementation->name, configuration->text, attune_last_message());
  assert_int_equal(plan.launch(&plan, o, attune_stream_default(host)), ATTUNE_OK);
  if (implementation->destroy) implementation->destroy(&plan);
}

static void try_problem(attune_dtype dtype, int trans, int64_t m, int64_t n, int64_t k) {
  static const at_implementation *const all[] = {&at_gemm_host_reference, &at_gemm_host_blocked, &at_gemm_host_cblas,
                                                 &at_gemm_host_small};
  static at_configuration list[CONFIGURATIONS];
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  const size_t size = attune_dtype_size(dtype);
  const at_gemm_operands o = {
      .alpha = 1.0, .a = at_the_end(0, m * k, size), .b = at_the_end(1, k * n, size), .d = at_the_end(2, m * n, size)};
  at_gemm g;
  bool swap = false;
  p.dtype = dtype;
  p.trans_a = trans & 1 ? ATTUNE_T : ATTUNE_N;
  p.trans_b = trans & 2 ? ATTUNE_T : ATTUNE_N;
  p.m = m, p.n = n, p.k = k;
  assert_int_equal(at_gemm_normalise(&p, (at_gemm_use){.c = AT_C_NONE, .alignment = (uint8_t)size}, &g, &swap),
                   ATTUNE_OK);
  for (size_t i = 0; i < AT_COUNT(all); i++) {
    if (!all[i]->supports(all[i], &g, host)) continue;
    const int count = all[i]->configurations(all[i], &g, host, list, CONFIGURATIONS);
    for (int c = 0; c < count; c++) run(all[i], &list[c], &g, &o);
  }
}

/* Sizes at which kernels of 6 x 16, 8 x 8 and the like have odd edges. */
TEST(nothing_behind_is_touched) {
  static const attune_dtype dtypes[] = {ATTUNE_F64, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16};
  static const int64_t ms[] = {1, 2, 3, 15, 16, 17, 31, 33, 63, 100}, ns[] = {1, 2, 4, 7, 10, 16, 40},
                       ks[] = {1, 3, 8, 17};
  for (size_t d = 0; d < AT_COUNT(dtypes); d++)
    for (int trans = 0; trans < 4; trans++)
      for (size_t m = 0; m < AT_COUNT(ms); m++)
        for (size_t n = 0; n < AT_COUNT(ns); n++)
          for (size_t k = 0; k < AT_COUNT(ks); k++) try_problem(dtypes[d], trans, ms[m], ns[n], ks[k]);
}

int main(void) {
  return RUN_TESTS(open_rooms, NULL);
}
