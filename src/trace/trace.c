/* SPDX-License-Identifier: Apache-2.0
 * trace.c: NVTX's ranges, the program's and attune's own. The toolkit's header finds the profiler at run time; without
 * one every call is a jump over nothing. */
#include <attune/trace.h>

#include "src/base/backend.h"
#include "src/base/settings.h"
#include "src/trace/instrument.h"

#include <pthread.h>
#include <stdio.h>

#if defined(AT_WITH_CUDA) && defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define AT_NVTX
#include <nvtx3/nvToolsExt.h>
#endif
#endif

#ifdef AT_NVTX

void attune_trace_mark(const char *text) {
  if (text) nvtxMarkA(text);
}

int attune_trace_push(const char *text) {
  return text ? nvtxRangePushA(text) : ATTUNE_TRACE_NOBODY;
}

int attune_trace_pop(void) {
  return nvtxRangePop();
}

uint64_t attune_trace_start(const char *text) {
  return text ? nvtxRangeStartA(text) : 0;
}

void attune_trace_end(uint64_t range) {
  if (range) nvtxRangeEnd(range);
}

static pthread_once_t domain_once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain; /* constant after domain_once */

static void make_domain(void) {
  domain = nvtxDomainCreateA("attune");
}

static void push(const char *text) {
  nvtxEventAttributes_t event = {
      .version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE, .messageType = NVTX_MESSAGE_TYPE_ASCII};
  event.message.ascii = text;
  pthread_once(&domain_once, make_domain);
  (void)nvtxDomainRangePushEx(domain, &event);
}

static void pop(void) {
  (void)nvtxDomainRangePop(domain);
}

static const bool built = true;

#else

void attune_trace_mark(const char *text) {
  (void)text;
}

int attune_trace_push(const char *text) {
  (void)text;
  return ATTUNE_TRACE_NOBODY;
}

int attune_trace_pop(void) {
  return ATTUNE_TRACE_NOBODY;
}

uint64_t attune_trace_start(const char *text) {
  (void)text;
  return 0;
}

void attune_trace_end(uint64_t range) {
  (void)range;
}

static void push(const char *text) {
  (void)text;
}

static void pop(void) {}

static const bool built = false;

#endif

bool at_instrument_name(const char *format, ...) {
  char text[640];
  if (!(at_instrumented() & AT_INSTRUMENT_NAMES)) return false;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  push(text);
  return true;
}

attune_status at_instrument_end(bool named, attune_stream *stream, attune_status status) {
  if (named) pop();
  if (status != ATTUNE_OK || !(at_instrumented() & AT_INSTRUMENT_BLOCKING) || at_stream_capturing(stream))
    return status;
  return stream->device->backend.stream->synchronize(stream);
}

attune_status attune_set_launch_blocking(int on) {
  if (on)
    (void)atomic_fetch_or(&at_instrumented_bits, AT_INSTRUMENT_BLOCKING);
  else
    (void)atomic_fetch_and(&at_instrumented_bits, ~(unsigned)AT_INSTRUMENT_BLOCKING);
  return ATTUNE_OK;
}

int attune_get_launch_blocking(void) {
  return (at_instrumented() & AT_INSTRUMENT_BLOCKING) != 0;
}

bool at_trace_built(void) {
  return built;
}

void at_trace_begin(void) {
  if (built && at_settings_nvtx()) (void)atomic_fetch_or(&at_instrumented_bits, AT_INSTRUMENT_NAMES);
}

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
