/* SPDX-License-Identifier: Apache-2.0
 * snapshot_file.c: snapshots put together from their parts, and written into files. */
#include "src/memory/report/snapshot_file.h"

#include "src/base/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICES_MOST 65
#define TRIES 3 /* what is recorded between two looks at the history has frames without names */

typedef struct subjects {
  attune_device *devices[DEVICES_MOST];
  int numbers[DEVICES_MOST]; /* in the file */
  int count;
} subjects;

void at_snapshot_segment_open(const at_snapshot_segment *segment, at_json *out) {
  at_json_object(out, NULL);
  at_json_number(out, "device", segment->device);
  at_json_number(out, "address", (int64_t)segment->address);
  at_json_number(out, "total_size", (int64_t)segment->total);
  at_json_number(out, "allocated_size", (int64_t)segment->allocated);
  at_json_number(out, "active_size", (int64_t)segment->active);
  at_json_number(out, "requested_size", (int64_t)segment->requested);
  at_json_number(out, "stream", (int64_t)segment->stream);
  at_json_word(out, "segment_type", segment->type);
  at_json_pair(out, "segment_pool_id", (int64_t)segment->pool[0], (int64_t)segment->pool[1]);
  at_json_truth(out, "is_expandable", segment->expandable);
  at_json_list(out, "frames");
  at_json_list_end(out);
  at_json_list(out, "blocks");
}

void at_snapshot_segment_close(at_json *out) {
  at_json_list_end(out);
  at_json_object_end(out);
}

void at_snapshot_block_write(const at_snapshot_block *block, at_backtrace_names *names, at_json *out) {
  at_json_object(out, NULL);
  at_json_number(out, "address", (int64_t)block->address);
  at_json_number(out, "size", (int64_t)block->bytes);
  at_json_number(out, "requested_size", (int64_t)block->requested);
  at_json_word(out, "state", block->state);
  at_json_key(out, "frames");
  at_history_write_frames(block->history, block->recorded, block->address, names, out);
  at_json_object_end(out);
}

static attune_status find_subjects(subjects *out, const at_snapshot_source *source, attune_device *device) {
  *out = (subjects){.count = 0};
  if (device) {
    *out = (subjects){.devices = {device}, .numbers = {device->ordinal}, .count = 1};
    return source->prepare(device);
  }
  for (int i = 0; i < attune_device_count() && i < DEVICES_MOST; i++) {
    attune_device *one = NULL;
    if (attune_device_at(&one, i) != ATTUNE_OK || !source->is_there(one)) continue;
    out->devices[out->count] = one;
    out->numbers[out->count++] = i;
  }
  return ATTUNE_OK;
}

/* One list of history for each device up to the last one, as the visualiser expects to find it under the device's
 * number. Lock held. */
static void write_all(const at_snapshot_source *source, const subjects *of, const attune_pool *only,
                      at_backtrace_names *names, at_json *out) {
  at_json_object(out, NULL);
  at_json_list(out, "segments");
  for (int i = 0; i < of->count; i++) source->write_segments(of->devices[i], only, of->numbers[i], names, out);
  at_json_list_end(out);
  at_json_list(out, "device_traces");
  for (int i = 0, next = 0; i < of->count; i++) {
    for (; next < of->numbers[i]; next++) {
      at_json_list(out, NULL);
      at_json_list_end(out);
    }
    source->write_history(of->devices[i], names, out);
    next++;
  }
  at_json_list_end(out);
  at_json_key(out, "allocator_settings");
  if (of->count > 0) {
    source->write_settings(of->devices[0], out);
  } else {
    at_json_object(out, NULL);
    at_json_object_end(out);
  }
  at_json_list(out, "external_annotations");
  at_json_list_end(out);
  at_json_object_end(out);
}

/* The first try also leaves its mark in the histories. */
static void want_names(const at_snapshot_source *source, const subjects *of, at_backtrace_names *names, bool first) {
  source->lock(of->devices, of->count);
  for (int i = 0; first && i < of->count; i++) source->note(of->devices[i]);
  for (int i = 0; i < of->count; i++) source->want_names(of->devices[i], names);
  source->unlock(of->devices, of->count);
  at_backtrace_names_find(names);
}

attune_status at_snapshot_make(char **out, size_t *out_bytes, const at_snapshot_source *source, attune_device *device,
                               const attune_pool *only) {
  subjects of;
  AT_TRY(find_subjects(&of, source, device));
  at_backtrace_names *names = at_backtrace_names_make();
  if (!names) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the names of a snapshot");
  at_json values = {.depth = 0};
  for (int i = 0; i < TRIES; i++) {
    free(values.text.data);
    values = (at_json){.depth = 0};
    want_names(source, &of, names, i == 0);
    source->lock(of.devices, of.count);
    write_all(source, &of, only, names, &values);
    source->unlock(of.devices, of.count);
    if (at_backtrace_names_sufficed(names)) break;
  }
  at_backtrace_names_destroy(names);
  return at_json_end(&values, out, out_bytes);
}

static attune_status fail_file(const char *path, const char *what, int error) {
  const attune_status status = error == EACCES || error == EPERM || error == EROFS ? ATTUNE_PERMISSION
                               : error == ENOENT || error == ENOTDIR               ? ATTUNE_NOT_FOUND
                                                                                   : ATTUNE_IO_ERROR;
  return at_fail(status, "%.300s %s: %s", path, what, strerror(error));
}

attune_status at_snapshot_save(const char *path, const at_snapshot_source *source, attune_device *device) {
  char *bytes = NULL;
  size_t count = 0;
  if (!path || !*path) return AT_INVALID("path is %s; should name a file", path ? "empty" : "NULL");
  attune_status status = at_snapshot_make(&bytes, &count, source, device, NULL);
  if (status != ATTUNE_OK) return status;
  errno = 0;
  FILE *file = fopen(path, "we");
  int error = file ? 0 : errno;
  if (!file) status = fail_file(path, "cannot be written", error);
  if (file && fwrite(bytes, 1, count, file) != count) error = errno ? errno : EIO;
  if (file && fclose(file) != 0 && error == 0) error = errno ? errno : EIO;
  if (file && error != 0) {
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISREG(about.st_mode)) (void)unlink(path);
    status = fail_file(path, "could not be written completely", error);
  }
  free(bytes);
  return status;
}
