/* SPDX-License-Identifier: Apache-2.0
 * fingerprint.c: the device, its driver and libraries in one line. */
#include "tuning/fingerprint.h"

#include <attune/device.h>

#include <string.h>

attune_status at_fingerprint(attune_device *device, const at_op *const *ops, int op_count, char *out, size_t size) {
  attune_device_properties p;
  at_message kept; /* a library that is not here is part of it */
  at_message_keep(&kept);
  const attune_status status = attune_device_get_properties(device, &p);
  if (status != ATTUNE_OK) return status;
  size_t at = 0;
  bool ok = at_append(out, size, &at, "%s; %s", p.name, p.features);
  if (p.kind == ATTUNE_DEVICE_CUDA) ok = ok && at_append(out, size, &at, "; %d processors", p.processors);
  ok = ok && at_append(out, size, &at, "; %llu KiB cache", (unsigned long long)(p.cache_bytes >> 10));
  if (p.kind == ATTUNE_DEVICE_CUDA)
    ok = ok &&
         at_append(out, size, &at, "; cc %d.%d; driver %d", p.capability_major, p.capability_minor, p.driver_version);
  for (int i = 0; i < op_count; i++) {
    char libraries[512] = "";
    if (ops[i]->libraries && ops[i]->libraries(device, libraries, sizeof libraries) > 0)
      ok = ok && at_append(out, size, &at, "; %s", libraries);
  }
  ok = ok && at_append(out, size, &at, "; attune %d", AT_CODEGEN_VERSION);
  return ok ? at_message_settle(&kept, ATTUNE_OK)
            : at_fail(ATTUNE_INVALID_ARGUMENT, "out is %zu bytes, too small for the fingerprint; give 1024", size);
}

/* ---- how two differ ---- */

typedef enum part_kind {
  PART_DEVICE,
  PART_FEATURES,
  PART_PROCESSORS,
  PART_CACHE,
  PART_CAPABILITY,
  PART_DRIVER,
  PART_CODE,
  PART_LIBRARIES,
  PART_KINDS
} part_kind;

/* What tells a part: how it begins, or how it ends. */
static const struct {
  const char *name, *begin, *end;
} parts[PART_KINDS] = {[PART_DEVICE] = {"device", NULL, NULL},
                       [PART_FEATURES] = {"features", NULL, NULL},
                       [PART_PROCESSORS] = {"processors", NULL, " processors"},
                       [PART_CACHE] = {"cache", NULL, " KiB cache"},
                       [PART_CAPABILITY] = {"compute capability", "cc ", NULL},
                       [PART_DRIVER] = {"driver", "driver ", NULL},
                       [PART_CODE] = {"attune's measuring", "attune ", NULL},
                       [PART_LIBRARIES] = {"libraries", NULL, NULL}};

static part_kind kind_of(int index, const char *part) {
  const size_t length = strlen(part);
  for (int kind = PART_PROCESSORS; kind < PART_LIBRARIES; kind++) {
    const char *begin = parts[kind].begin, *end = parts[kind].end;
    if (begin && strncmp(part, begin, strlen(begin)) == 0) return (part_kind)kind;
    if (end && length > strlen(end) && strcmp(part + length - strlen(end), end) == 0) return (part_kind)kind;
  }
  return index == 0 ? PART_DEVICE : index == 1 ? PART_FEATURES : PART_LIBRARIES;
}

/* A fingerprint's parts by kind; "" where it has none. The libraries of several operations are one part. */
typedef struct split {
  char text[PART_KINDS][1024];
} split;

static void split_fingerprint(const char *fingerprint, split *out) {
  char copy[1024];
  memset(out, 0, sizeof *out);
  (void)at_copy_text(copy, sizeof copy, fingerprint);
  int index = 0;
  for (char *part = copy, *next; part; part = next, index++) {
    next = strstr(part, "; ");
    if (next) {
      *next = '\0';
      next += 2;
    }
    const part_kind kind = kind_of(index, part);
    size_t at = strlen(out->text[kind]);
    const size_t skip = parts[kind].begin ? strlen(parts[kind].begin) : 0;
    size_t length = strlen(part);
    if (parts[kind].end) length -= strlen(parts[kind].end);
    (void)at_append(out->text[kind], sizeof out->text[kind], &at, "%s%.*s", at ? " " : "", (int)(length - skip),
                    part + skip);
  }
}

static bool has_word(const char *text, const char *word, size_t length) {
  for (const char *at = text; *at;) {
    const size_t chars = strcspn(at, " ");
    if (chars == length && memcmp(at, word, length) == 0) return true;
    at += chars + (at[chars] == ' ');
  }
  return false;
}

/* The words of `of` that `other` lacks. */
static void words_without(const char *of, const char *other, char *out, size_t size) {
  size_t at = 0;
  *out = '\0';
  while (*of) {
    const size_t chars = strcspn(of, " ");
    if (!has_word(other, of, chars)) (void)at_append(out, size, &at, "%s%.*s", at ? " " : "", (int)chars, of);
    of += chars + (of[chars] == ' ');
  }
}

int at_fingerprint_difference(const char *there, const char *here, char *out, size_t size) {
  split a, b;
  int differences = 0;
  size_t at = 0;
  *out = '\0';
  split_fingerprint(there, &a);
  split_fingerprint(here, &b);
  for (int kind = 0; kind < PART_KINDS; kind++) {
    char left[256], right[256];
    if (strcmp(a.text[kind], b.text[kind]) == 0) continue;
    const bool words = kind == PART_FEATURES || kind == PART_LIBRARIES;
    if (words) words_without(a.text[kind], b.text[kind], left, sizeof left);
    if (words) words_without(b.text[kind], a.text[kind], right, sizeof right);
    if (!words) (void)at_copy_text(left, sizeof left, a.text[kind]);
    if (!words) (void)at_copy_text(right, sizeof right, b.text[kind]);
    (void)at_append(out, size, &at, "%s%s %s there, %s here", differences ? "; " : "", parts[kind].name,
                    *left ? left : "none", *right ? right : "none");
    differences++;
  }
  return differences;
}
