/* SPDX-License-Identifier: Apache-2.0
 * fingerprint.c: makes fingerprints and takes them apart. */
#include "tuning/store/fingerprint.h"

#include <attune/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/threads.h"

static const char WITH[] = "; with ";

static attune_status fail_room(size_t size) {
  return AT_INVALID("out has %zu bytes, too few for the fingerprint; should have %d", size, AT_FINGERPRINT_CHARS);
}

attune_status at_fingerprint(attune_device *device, char *out, size_t size) {
  attune_device_properties p = {0};
  AT_TRY(attune_device_get_properties(device, &p));
  size_t at = 0;
  bool ok = at_append(out, size, &at, "%s; %s", p.name, p.features);
  if (p.kind == ATTUNE_DEVICE_CUDA) ok = ok && at_append(out, size, &at, "; %d processors", p.processors);
  ok = ok && at_append(out, size, &at, "; %llu KiB cache", (unsigned long long)(p.cache_bytes >> 10));
  if (p.kind == ATTUNE_DEVICE_CUDA)
    ok = ok &&
         at_append(out, size, &at, "; cc %d.%d; driver %d", p.capability_major, p.capability_minor, p.driver_version);
  ok = ok && at_append(out, size, &at, "; attune %d", AT_MEASURE_VERSION);
  return ok ? ATTUNE_OK : fail_room(size);
}

/* Operations may have an implementation of one name: is it there already, alike? */
static bool is_told(const char *entries, const char *entry) {
  const size_t chars = strlen(entry);
  for (const char *at = entries; *at;) {
    const char *end = strstr(at, "; ");
    const size_t length = end ? (size_t)(end - at) : strlen(at);
    if (length == chars && memcmp(at, entry, chars) == 0) return true;
    at += end ? length + 2 : length;
  }
  return false;
}

/* "; with NAME VERSION WORDS; NAME ..." */
static bool append_op(attune_device *device, const at_op *op, char *out, size_t size, size_t *at, int *count) {
  for (size_t i = 0; i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    char words[AT_DIFFERENCE_CHARS] = "", entry[AT_DIFFERENCE_CHARS + 128];
    if (strcmp(implementation->backend, device->backend.name) != 0) continue;
    if (implementation->depends && !implementation->depends(implementation, NULL, device, words, sizeof words))
      return false;
    snprintf(entry, sizeof entry, "%s %d%s%s", implementation->name, implementation->version, *words ? " " : "", words);
    if (!is_told(at_fingerprint_implementations(out), entry) &&
        !at_append(out, size, at, "%s%s", (*count)++ ? "; " : WITH, entry))
      return false;
  }
  return true;
}

attune_status at_fingerprint_whole(attune_device *device, const at_op *const *ops, int op_count, char *out,
                                   size_t size) {
  const at_message kept = at_message_keep(); /* a library that is not here is part of it */
  attune_status status = at_fingerprint(device, out, size);
  size_t at = status == ATTUNE_OK ? strlen(out) : 0;
  int count = 0;
  if (status == ATTUNE_OK && device->properties.kind == ATTUNE_DEVICE_HOST) {
    count++;
    if (!at_append(out, size, &at, "%s%s%d", WITH, AT_FINGERPRINT_THREADS, at_cpu_count())) status = fail_room(size);
  }
  for (int i = 0; i < op_count && status == ATTUNE_OK; i++)
    if (!append_op(device, ops[i], out, size, &at, &count)) status = fail_room(size);
  return at_message_settle(&kept, status);
}

size_t at_fingerprint_device_chars(const char *fingerprint) {
  const char *with = strstr(fingerprint, WITH);
  return with ? (size_t)(with - fingerprint) : strlen(fingerprint);
}

const char *at_fingerprint_implementations(const char *fingerprint) {
  const char *with = strstr(fingerprint, WITH);
  return with ? with + sizeof WITH - 1 : "";
}

int at_fingerprint_threads(const char *fingerprint) {
  const char *first = at_fingerprint_implementations(fingerprint);
  const size_t chars = sizeof AT_FINGERPRINT_THREADS - 1;
  return strncmp(first, AT_FINGERPRINT_THREADS, chars) == 0 ? (int)strtol(first + chars, NULL, 10) : 0;
}

bool at_fingerprint_join(char *fingerprint, size_t size, const char *implementations) {
  size_t at = strlen(fingerprint);
  return !*implementations || at_append(fingerprint, size, &at, "%s%s", WITH, implementations);
}

void at_fingerprint_own(const char *fingerprint, const attune_decision *winner, char *out, size_t size) {
  const size_t chars = strlen(winner->implementation);
  size_t at = 0;
  int count = 0;
  (void)at_append(out, size, &at, "%.*s", (int)at_fingerprint_device_chars(fingerprint), fingerprint);
  for (const char *entry = at_fingerprint_implementations(fingerprint); *entry;) {
    const char *end = strstr(entry, "; ");
    const size_t length = end ? (size_t)(end - entry) : strlen(entry);
    const bool threads = strncmp(entry, AT_FINGERPRINT_THREADS, sizeof AT_FINGERPRINT_THREADS - 1) == 0;
    if (threads || (strncmp(entry, winner->implementation, chars) == 0 && entry[chars] == ' '))
      (void)at_append(out, size, &at, "%s%.*s", count++ ? "; " : WITH, (int)length, entry);
    entry += end ? length + 2 : length;
  }
}
