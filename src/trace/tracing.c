/* SPDX-License-Identifier: Apache-2.0
 * tracing.c: whether attune's calls are named for a profiler, and the profiler's own start and stop. */
#include <attune/trace.h>

#include "src/base/backend.h"
#include "src/trace/instrument.h"

attune_status attune_set_trace(int on) {
  (void)attune_device_count(); /* what the environment asks for comes first */
  if (!at_trace_built() && on)
    return at_fail(ATTUNE_UNSUPPORTED, "this build of attune has no NVTX; build it with the CUDA toolkit");
  if (on)
    (void)atomic_fetch_or(&at_instrumented_bits, AT_INSTRUMENT_NAMES);
  else
    (void)atomic_fetch_and(&at_instrumented_bits, ~(unsigned)AT_INSTRUMENT_NAMES);
  return ATTUNE_OK;
}

int attune_get_trace(void) {
  (void)attune_device_count();
  return (at_instrumented() & AT_INSTRUMENT_NAMES) != 0;
}

static attune_status profile(bool start) {
  attune_device *device = NULL;
  attune_status status = attune_device_at(&device, 0);
  if (status == ATTUNE_OK) status = at_needs(device, runtime);
  return status == ATTUNE_OK ? device->backend.runtime->profiler(device, start) : status;
}

attune_status attune_profiler_start(void) {
  return profile(true);
}

attune_status attune_profiler_stop(void) {
  return profile(false);
}
