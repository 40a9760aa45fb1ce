/* SPDX-License-Identifier: Apache-2.0
 * toy_command.c: the list of operations of a command that knows the toy and the wide operation too. Time passes
 * where a launch says so, so that what wins is known. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ops/gemm/problem/problem.h"
#include "ops/ops.h"
#include "tests/support/toy/toy_clock.h"
#include "tests/support/toy/wide_op.h"

const at_op *const at_ops[] = {&at_gemm_op, &toy_op, &wide_op};
const int at_op_count = 3;

/* Until then others take half of each launch's time, and a CPU: TOY_DISTURBED_MS of virtual time. */
static int64_t disturbed_ns;

static void pass_disturbed(int64_t start, int64_t ns, int64_t cpus) {
  toy_pass_virtual(start, ns, cpus);
  if (virtual_ns < disturbed_ns) virtual_clock_take(ns / 2 + ns * (virtual_ns % 7), 1.0);
}

/* Each row of a problem makes a launch longer by TOY_ROW_NS of virtual time. */
static int64_t row_ns;

static attune_status launch_by_rows(const at_plan *plan, const void *operands, attune_stream *stream) {
  virtual_clock_pass(row_ns * toy_of(plan->problem)->rows, 1.0);
  return toy_launch(plan, operands, stream);
}

/* The command's own clock, as far as other files of it look at it. */
double __wrap_cli_now_s(void);
double __wrap_cli_now_s(void) {
  return 1e-9 * (double)at_now_ns();
}

/* A compiler whose kernels are empty files in the folder TOY_KERNELS. */
static attune_status compile(const at_implementation *self, const void *problem, attune_device *device,
                             const at_configuration *c, bool *made) {
  (void)self;
  char path[512];
  (void)problem, (void)device;
  snprintf(path, sizeof path, "%s/%s", getenv("TOY_KERNELS"), c->text);
  const bool there = access(path, F_OK) == 0;
  if (!made) return there ? ATTUNE_OK : at_fail(ATTUNE_NOT_FOUND, "%s is not compiled", c->text);
  *made = !there;
  FILE *file = there ? NULL : fopen(path, "w");
  if (!there && !file) return at_fail(ATTUNE_IO_ERROR, "%s cannot be kept", c->text);
  if (file) fclose(file);
  return ATTUNE_OK;
}

__attribute__((constructor)) static void begin(void) {
  static const char *const spins[] = {"ns=30000", "ns=20000,fault=second", "ns=90000", NULL};
  toy_reset();
  toy_spins = wide_spins = spins;
  if (getenv("TOY_KERNELS")) toy_spin_implementation.compile = compile;
  virtual_clock_start();
  const char *rows = getenv("TOY_ROW_NS");
  if (rows) {
    row_ns = strtoll(rows, NULL, 10);
    toy_base_implementation.launch = toy_spin_implementation.launch = launch_by_rows;
  }
  const char *disturbed = getenv("TOY_DISTURBED_MS");
  if (!disturbed) return;
  disturbed_ns = 1000000 * strtoll(disturbed, NULL, 10);
  toy_pass = pass_disturbed;
}
