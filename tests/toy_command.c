/* SPDX-License-Identifier: Apache-2.0
 * toy_command.c: the list of operations of a command that knows the toy and the wide operation too. Time passes
 * where a launch says so, so that what wins is known. */
#include "ops/gemm/problem.h"
#include "ops/ops.h"
#include "tests/toy_clock.h"
#include "tests/wide_op.h"

const at_op *const at_ops[] = {&at_gemm_op, &toy_op, &wide_op};
const int at_op_count = 3;

__attribute__((constructor)) static void begin(void) {
  static const char *const spins[] = {"ns=30000", "ns=20000,fault=second", "ns=90000", NULL};
  toy_reset();
  toy_spins = wide_spins = spins;
  virtual_clock_start();
}
