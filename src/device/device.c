/* SPDX-License-Identifier: Apache-2.0
 * device.c: the table of devices, built once and never changed: cuda devices in their order, then the host. */
#include <attune/device.h>

#include "src/base/backend.h"
#include "src/base/struct_size.h"
#include "src/process/exit.h"
#include "src/trace/instrument.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define DEVICES_MAX 65

static pthread_once_t table_once = PTHREAD_ONCE_INIT;
static attune_device table[DEVICES_MAX]; /* constant after table_once, except default_stream (stream.c) */
static int table_count;
static atomic_int table_made;  /* 1 when build_table is done */
static char absence[256];      /* why there is no cuda device; "" when there is one; constant after table_once */
static char open_failure[256]; /* why the latest device that exists could not be opened; constant after table_once */

static void add_device(const at_backend *backend, int ordinal) {
  attune_device *device = &table[table_count];
  *device = (attune_device){.backend = *backend, .ordinal = ordinal, .index = table_count};
  device->properties.kind = backend->kind;
  device->alignment_mask = backend->kind == ATTUNE_DEVICE_HOST ? 15 : 127;
  if (backend->kind == ATTUNE_DEVICE_HOST)
    (void)at_copy_text(device->name, sizeof device->name, backend->name);
  else
    snprintf(device->name, sizeof device->name, "%s:%d", backend->name, ordinal);
  if (backend->device->open(device) == ATTUNE_OK)
    table_count++;
  else
    (void)at_copy_text(open_failure, sizeof open_failure, attune_last_message());
}

/* The host is added whatever happens to the others, so one place is kept for it. */
static void build_table(void) {
  const at_message kept = at_message_keep(); /* a device that cannot be opened is not a failure of the count */
  at_exit_watch();
#ifdef AT_WITH_CUDA
  int count = at_cuda_backend.device->count();
  if (count == 0) (void)at_copy_text(absence, sizeof absence, attune_last_message());
  for (int i = 0; i < count && table_count < DEVICES_MAX - 1; i++) add_device(&at_cuda_backend, i);
#else
  (void)at_copy_text(absence, sizeof absence, "this attune was built without CUDA");
#endif
  add_device(&at_host_backend, 0);
  at_instrument_start();
  at_trace_begin();
  (void)at_message_settle(&kept, ATTUNE_OK);
  atomic_store_explicit(&table_made, 1, memory_order_release);
}

int attune_is_initialized(void) {
  return atomic_load_explicit(&table_made, memory_order_acquire);
}

int attune_device_count(void) {
  pthread_once(&table_once, build_table);
  return table_count;
}

attune_status attune_device_at(attune_device **out, int index) {
  AT_REQUIRE_AS(out, "point to an attune_device *");
  *out = NULL;
  int count = attune_device_count();
  if (index < 0 || index >= count) return AT_INVALID("index is %d; should be from 0 to %d", index, count - 1);
  *out = &table[index];
  return ATTUNE_OK;
}

/* "cuda" or "cuda:N" to N; false for anything else. */
static bool parse_cuda(int64_t *ordinal, const char *name) {
  *ordinal = 0;
  if (strncmp(name, "cuda", 4) != 0) return false;
  if (name[4] == '\0') return true;
  return name[4] == ':' && name[5] >= '0' && name[5] <= '9' && at_parse_i64(ordinal, name + 5);
}

static attune_device *find(attune_device_kind kind, int64_t ordinal) {
  for (int i = 0; i < table_count; i++)
    if (table[i].backend.kind == kind && table[i].ordinal == ordinal) return &table[i];
  return NULL;
}

static attune_status not_here(int64_t ordinal) {
  char list[256] = "";
  size_t at = 0;
  for (int i = 0; i < table_count; i++)
    if (!at_append(list, sizeof list, &at, "%s%s", i ? ", " : "", table[i].name)) break;
  const char *why = absence[0] ? absence : open_failure;
  return at_fail(ATTUNE_NOT_FOUND, "there is no device cuda:%lld; devices: %s%s%s%s", (long long)ordinal, list,
                 *why ? " (" : "", why, *why ? ")" : "");
}

attune_status attune_device_get(attune_device **out, const char *name) {
  AT_REQUIRE_AS(out, "point to an attune_device *");
  *out = NULL;
  if (!name || strcmp(name, "best") == 0) return attune_device_at(out, 0);
  int64_t ordinal = 0;
  bool host = strcmp(name, "host") == 0;
  if (!host && !parse_cuda(&ordinal, name))
    return AT_INVALID("device is \"%.64s\"; should be host, cuda, cuda:N or best", name);
  (void)attune_device_count();
  *out = find(host ? ATTUNE_DEVICE_HOST : ATTUNE_DEVICE_CUDA, ordinal);
  return *out ? ATTUNE_OK : not_here(ordinal);
}

const char *attune_device_name(const attune_device *device) {
  return device ? device->name : "none";
}

attune_status attune_device_get_properties(const attune_device *device, attune_device_properties *out) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_AS(out, "point to an attune_device_properties");
  return AT_GIVE(out, &device->properties);
}

attune_status attune_device_initialize(attune_device *device) {
  AT_REQUIRE_DEVICE(device);
  return device->backend.device->initialize(device);
}

int attune_device_is_initialized(const attune_device *device) {
  return device && device->backend.device->is_initialized(device);
}

bool at_device_runs_here(const attune_device *device) {
  return device->backend.stream->runs_here(NULL);
}

attune_status at_device_check_waits(const attune_device *device) {
  if (AT_LIKELY(!at_device_runs_here(device))) return ATTUNE_OK;
  return AT_INVALID(
      "this call waits for a stream of %s, but is made by a function that this stream runs; should be called elsewhere",
      device->name);
}

attune_status attune_device_synchronize(attune_device *device) {
  AT_REQUIRE_DEVICE(device);
  if (__atomic_load_n(&device->captures, __ATOMIC_ACQUIRE) != 0)
    return at_fail(ATTUNE_CAPTURING, "a stream of %s is being captured; end the capture first", device->name);
  attune_status status = at_device_check_waits(device);
  if (status == ATTUNE_OK) status = device->backend.device->synchronize(device);
  if (at_instrumented_races() && status == ATTUNE_OK) at_instrument_device_idle(device);
  return status;
}

attune_status attune_device_memory_info(attune_device *device, uint64_t *out_free, uint64_t *out_total) {
  uint64_t available = 0, total = 0;
  AT_REQUIRE_DEVICE(device);
  AT_TRY(device->backend.memory->info(device, &available, &total));
  if (out_free) *out_free = available;
  if (out_total) *out_total = total;
  return ATTUNE_OK;
}

attune_status attune_cuda_check(attune_device *device, int error, const char *what) {
  AT_REQUIRE_DEVICE(device);
  AT_TRY(at_needs(device, runtime));
  return device->backend.runtime->check_error(device, error, what ? what : "a call of the program");
}

static attune_status check_peers(const attune_device *device, const attune_device *peer) {
  AT_REQUIRE_DEVICE(device);
  AT_REQUIRE_DEVICE(peer);
  return ATTUNE_OK;
}

attune_status attune_device_can_access_peer(int *out, attune_device *device, attune_device *peer) {
  AT_REQUIRE_AS(out, "point to an int");
  *out = 0;
  AT_TRY(check_peers(device, peer));
  *out = device == peer;
  if (device == peer || device->backend.kind != peer->backend.kind || !device->backend.peer) return ATTUNE_OK;
  return device->backend.peer->query(out, device, peer);
}

attune_status attune_device_enable_peer(attune_device *device, attune_device *peer) {
  int can = 0;
  attune_status status = check_peers(device, peer);
  if (status == ATTUNE_OK) status = attune_device_can_access_peer(&can, device, peer);
  if (status != ATTUNE_OK || device == peer) return status;
  if (!can) return at_fail(ATTUNE_UNSUPPORTED, "%s cannot access the memory of %s", device->name, peer->name);
  return device->backend.peer->enable(device, peer);
}

attune_status attune_device_disable_peer(attune_device *device, attune_device *peer) {
  AT_TRY(check_peers(device, peer));
  if (device == peer)
    return AT_INVALID("device and peer are both %s, which can always access its own memory; should be two devices",
                      device->name);
  if (device->backend.kind != peer->backend.kind || !device->backend.peer)
    return at_fail(ATTUNE_UNSUPPORTED, "%s cannot access the memory of %s", device->name, peer->name);
  return device->backend.peer->disable(device, peer);
}

attune_status at_device_lacks(const attune_device *device, at_backend_table lacking) {
#define AT_BACKEND_TABLE(name, what) what,
  static const char *const lacks[] = {AT_BACKEND_TABLES(AT_BACKEND_TABLE)};
#undef AT_BACKEND_TABLE
  return at_unsupported(device, lacks[lacking]);
}

attune_status at_unsupported(const attune_device *device, const char *what) {
  return at_fail(ATTUNE_UNSUPPORTED, "device %s has no %s", device->name, what);
}
