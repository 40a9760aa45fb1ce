/* SPDX-License-Identifier: Apache-2.0
 * ops.c: the table of all ops, and what is built from it. */
#include "ops/gemm/problem.h"
#include "tuning/fingerprint.h"
#include "tuning/tuner.h"
#include "tuning/workload.h"

static const at_op *const ops[AT_OP_COUNT] = {[AT_OP_GEMM] = &at_gemm_op};

attune_status attune_tuner_create(attune_tuner **out, const attune_tuner_options *options) {
  return at_tuner_create(out, options, ops, AT_OP_COUNT);
}

/* Files from before there were other operations name none: they are gemm's. */
attune_status attune_workload_read(attune_workload **out, const char *path) {
  static const at_workload_ops known = {ops, AT_OP_COUNT, &at_gemm_op};
  return at_workload_read(out, path, &known);
}

attune_status attune_device_fingerprint(attune_device *device, char *out, size_t size) {
  if (!device || !out) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", device ? "out" : "device");
  return at_fingerprint_whole(device, ops, AT_OP_COUNT, out, size);
}

attune_status attune_device_libraries(attune_device *device, attune_library_fn fn, void *user) {
  if (!device || !fn) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", device ? "fn" : "device");
  int end = 0;
  at_message kept; /* a library that is not here is no failure */
  at_message_keep(&kept);
  for (int i = 0; i < AT_OP_COUNT && end == 0; i++)
    if (ops[i]->each_library) end = ops[i]->each_library(device, fn, user);
  if (end == 0 && device->backend->each_library) (void)device->backend->each_library(fn, user);
  return at_message_settle(&kept, ATTUNE_OK);
}
