/* SPDX-License-Identifier: Apache-2.0
 * ops.c: the table of all ops, and what is built from it. */
#include <string.h>

#include "ops/gemm/problem.h"
#include "tuning/fingerprint.h"
#include "tuning/tuner.h"

static const at_op *const ops[] = {&at_gemm_op};

const at_op *at_op_find(const char *name) {
  for (size_t i = 0; i < AT_COUNT(ops); i++)
    if (strcmp(ops[i]->name, name) == 0) return ops[i];
  return NULL;
}

attune_status attune_tuner_create(attune_tuner **out, const attune_tuner_options *options) {
  return at_tuner_create(out, options, ops, (int)AT_COUNT(ops));
}

attune_status attune_device_fingerprint(attune_device *device, char *out, size_t size) {
  if (!device || !out) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", device ? "out" : "device");
  return at_fingerprint_whole(device, ops, (int)AT_COUNT(ops), out, size);
}

attune_status attune_device_libraries(attune_device *device, attune_library_fn fn, void *user) {
  if (!device || !fn) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", device ? "fn" : "device");
  int end = 0;
  at_message kept; /* a library that is not here is no failure */
  at_message_keep(&kept);
  for (size_t i = 0; i < AT_COUNT(ops) && end == 0; i++)
    if (ops[i]->each_library) end = ops[i]->each_library(device, fn, user);
  if (end == 0 && device->backend->each_library) (void)device->backend->each_library(fn, user);
  return at_message_settle(&kept, ATTUNE_OK);
}
