/* SPDX-License-Identifier: Apache-2.0
 * ops.c: what is built from the list of all operations. */
#include "ops/ops.h"

#include "ops/gemm/problem/problem.h"
#include "src/base/settings.h"
#include "tuning/store/fingerprint.h"
#include "tuning/tuner/tuner.h"
#include "tuning/workload/workload.h"

attune_status attune_skip_implementations(const char *names) {
  AT_REQUIRE_AS(names, "be names separated by commas, or empty");
  return at_registry_skip(names, "names", at_ops, at_op_count);
}

const char *attune_skipped_implementations(void) {
  return at_registry_skipped(NULL);
}

attune_status attune_tuner_create(attune_tuner **out, const attune_tuner_options *options) {
  if (at_settings_tf32()) at_gemm_least_accuracy[ATTUNE_F32] = ATTUNE_REDUCED;
  return at_tuner_create(out, options, at_ops, at_op_count);
}

/* Files from before there were other operations name none: they are gemm's. */
attune_status attune_workload_read(attune_workload **out, const char *path) {
  const at_workload_ops known = {at_ops, at_op_count, at_ops[AT_OP_GEMM]};
  return at_workload_read(out, path, &known);
}

attune_status attune_device_fingerprint(attune_device *device, char *out, size_t size) {
  AT_REQUIRE(device, out);
  return at_fingerprint_whole(device, at_ops, at_op_count, out, size);
}

attune_status attune_device_libraries(attune_device *device, attune_library_fn fn, void *user) {
  AT_REQUIRE(device, fn);
  int end = 0;
  const at_message kept = at_message_keep(); /* a library that is not here is no failure */
  for (int i = 0; i < at_op_count && end == 0; i++)
    if (at_ops[i]->each_library) end = at_ops[i]->each_library(device, fn, user);
  if (end == 0) (void)device->backend.device->each_library(fn, user);
  return at_message_settle(&kept, ATTUNE_OK);
}
