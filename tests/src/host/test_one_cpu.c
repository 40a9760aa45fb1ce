/* SPDX-License-Identifier: Apache-2.0
 * test_one_cpu.c: a process that may use a single CPU: attune's own host implementation still offers configurations. */
#include "tests/support/check.h"

#include <sched.h>

#include <attune/attune.h>

#include "ops/gemm/problem/problem.h"
#include "src/host/threads.h"
#include "tuning/op/op.h"
#include "tuning/op/registry.h"

extern const at_op at_gemm_op;
extern const at_implementation at_gemm_host_blocked;

TEST(large_products_have_configurations) {
  static const char *const texts[] = {"gemm f32 nn 64x64x64 strict", "gemm f32 nn 1024x1024x1024 strict",
                                      "gemm f64 nn 2000x2000x2000 strict"};
  attune_device *host = NULL;
  assert_int_equal(at_cpu_count(), 1);
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    at_configuration list[256];
    at_gemm g;
    assert_int_equal(at_gemm_op.problem->parse(texts[i], &g), ATTUNE_OK);
    const int count = at_gemm_host_blocked.configurations(&at_gemm_host_blocked, &g, host, list, 256);
    assert_true(count > 0);
    for (int c = 0; c < count; c++) {
      int64_t threads = 0;
      assert_true(at_configuration_get(&list[c], "threads", &threads));
      assert_int_equal(threads, 1);
    }
  }
}

int main(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  const int here = sched_getcpu();
  CPU_SET(here < 0 ? 0u : (size_t)here, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return 1;
  return RUN_TESTS(NULL, NULL);
}
