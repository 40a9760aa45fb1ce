/* SPDX-License-Identifier: Apache-2.0
 * toy_command.c: the list of operations of a command that knows the toy operation too. Time passes where a launch says
 * so, so that what wins is known. */
#include "ops/gemm/problem.h"
#include "ops/ops.h"
#include "tests/toy_clock.h"

const at_op *const at_ops[] = {&at_gemm_op, &toy_op};
const int at_op_count = 2;

__attribute__((constructor)) static void begin(void) {
  static const char *const spins[] = {"ns=30000", "ns=20000,fault=second", "ns=90000", NULL};
  toy_reset();
  toy_spins = spins;
  virtual_clock_start();
}
