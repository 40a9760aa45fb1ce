/* SPDX-License-Identifier: Apache-2.0
 * toy_command.c: the list of operations of a command that knows the toy and the wide operation too. Time passes
 * where a launch says so, so that what wins is known. */
#include <stdlib.h>

#include "ops/gemm/problem.h"
#include "ops/ops.h"
#include "tests/toy_clock.h"
#include "tests/wide_op.h"

const at_op *const at_ops[] = {&at_gemm_op, &toy_op, &wide_op};
const int at_op_count = 3;

/* Until then others take half of each launch's time, and a CPU: TOY_DISTURBED_MS of virtual time. */
static int64_t disturbed_ns;

static void pass_disturbed(int64_t start, int64_t ns, int64_t cpus) {
  toy_pass_virtual(start, ns, cpus);
  if (virtual_ns < disturbed_ns) virtual_clock_take(ns / 2 + ns * (virtual_ns % 7), 1.0);
}

__attribute__((constructor)) static void begin(void) {
  static const char *const spins[] = {"ns=30000", "ns=20000,fault=second", "ns=90000", NULL};
  toy_reset();
  toy_spins = wide_spins = spins;
  virtual_clock_start();
  const char *disturbed = getenv("TOY_DISTURBED_MS");
  if (!disturbed) return;
  disturbed_ns = 1000000 * strtoll(disturbed, NULL, 10);
  toy_pass = pass_disturbed;
}
