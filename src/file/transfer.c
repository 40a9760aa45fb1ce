/* SPDX-License-Identifier: Apache-2.0
 * transfer.c: loads and saves: block after block through two buffers, or at once where the device's memory is the host's,
 * or by cuFile. */
#include "src/file/file.h"

#include <attune/pinned.h>

#include <string.h>

#include "src/file/cufile.h"
#include "src/fork.h"
#include "src/watch.h"

/* What a call is asked for. */
typedef struct transfer {
  attune_file *file;
  attune_stream *stream;
  char *memory;
  size_t bytes;
  uint64_t offset;
  bool saves;
  size_t moved;
} transfer;

static attune_status fail(const transfer *t, int error) {
  const char *what = t->saves ? "writing" : "reading";
  return error ? at_file_fail(error, what, t->moved, t->bytes, t->offset)
               : at_file_ended(t->moved, t->bytes, t->offset);
}

/* ---- at once ---- */

static attune_status wait_for_stream(const transfer *t) {
  return t->stream->device->backend->stream_synchronize(t->stream);
}

static attune_status move_plain(transfer *t) {
  int error = 0;
  attune_status status = wait_for_stream(t);
  if (status != ATTUNE_OK) return status;
  t->moved = t->saves ? at_file_write_plain(t->file, t->memory, t->bytes, t->offset, &error)
                      : at_file_read_plain(t->file, t->memory, t->bytes, t->offset, &error);
  return t->moved == t->bytes ? ATTUNE_OK : fail(t, error);
}

static attune_status move_by_cufile(transfer *t) {
  attune_device *device = t->stream->device;
  at_entered entered;
  int error = 0;
  attune_status status = wait_for_stream(t);
  if (status == ATTUNE_OK && device->backend->enter) status = device->backend->enter(device, &entered);
  if (status != ATTUNE_OK) return status;
  while (t->moved < t->bytes && status == ATTUNE_OK) {
    const off_t at = (off_t)(t->offset + t->moved);
    const size_t rest = t->bytes - t->moved;
    const ssize_t n = t->saves ? at_cufile_write(t->file->cufile, t->memory + t->moved, rest, at, &error)
                               : at_cufile_read(t->file->cufile, t->memory + t->moved, rest, at, &error);
    if (n > 0)
      t->moved += (size_t)n;
    else
      status = n < 0 && error == 0 ? ATTUNE_DEVICE_ERROR : fail(t, error);
  }
  if (device->backend->leave) device->backend->leave(&entered);
  return status;
}

/* ---- through two buffers ---- */

typedef struct buffer {
  void *allocation;
  char *memory; /* aligned */
  attune_event *event;
  size_t bytes; /* of the block in it that is not moved yet, and where in the file */
  uint64_t offset;
} buffer;

static void close_buffer(const transfer *t, buffer *b) {
  if (b->allocation) {
    (void)attune_pinned_record_use(b->allocation, t->stream);
    (void)attune_pinned_free(b->allocation);
  }
  attune_event_destroy(b->event);
}

/* Room for a block, or for all where that is less. */
static attune_status open_buffer(const transfer *t, buffer *b) {
  static const attune_event_options options = {.no_timing = 1};
  const size_t all = (size_t)(t->offset % AT_FILE_GRAIN) + t->bytes + AT_FILE_GRAIN;
  const size_t room = all < AT_FILE_BLOCK ? all : AT_FILE_BLOCK;
  attune_device *device = t->stream->device;
  *b = (buffer){.allocation = NULL};
  attune_status status = attune_pinned_alloc(&b->allocation, device, room);
  if (status == ATTUNE_OK && (uintptr_t)b->allocation % AT_FILE_GRAIN) {
    (void)attune_pinned_free(b->allocation);
    status = attune_pinned_alloc(&b->allocation, device, room + AT_FILE_GRAIN);
  }
  if (status == ATTUNE_OK) status = attune_event_create_with(&b->event, device, &options);
  if (status != ATTUNE_OK) return status;
  b->event->unwatched = true;
  const uintptr_t at = (uintptr_t)b->allocation, over = at % AT_FILE_GRAIN;
  b->memory = (char *)b->allocation + (over ? AT_FILE_GRAIN - over : 0);
  return ATTUNE_OK;
}

/* What is written to the system's cache is best still in the CPU's. */
static size_t block_of(const transfer *t) {
  return t->saves && !at_file_is_direct(t->file) ? AT_FILE_BLOCK / 4 : AT_FILE_BLOCK;
}

/* The block at `at` ends where the next multiple of a block begins, or the call. */
static size_t block_at(const transfer *t, size_t at) {
  const uint64_t begin = t->offset + at;
  const size_t block = block_of(t), to_edge = block - (size_t)(begin % block), rest = t->bytes - at;
  return rest < to_edge ? rest : to_edge;
}

static attune_status wait_for(attune_event *event) {
  return event->device->backend->event_synchronize(event);
}

static attune_status copy(const transfer *t, void *to, const void *from, size_t bytes, buffer *b) {
  attune_status status = t->stream->device->backend->copy(t->stream, to, from, bytes);
  return status == ATTUNE_OK ? t->stream->device->backend->event_record(b->event, t->stream) : status;
}

/* A buffer is read into when the copy of what it had is done; meanwhile the other one's runs. */
static attune_status load_blocks(transfer *t, buffer buffers[2]) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; t->moved < t->bytes && status == ATTUNE_OK; i++) {
    buffer *b = &buffers[i % 2];
    const size_t bytes = block_at(t, t->moved);
    const uint64_t offset = t->offset + t->moved;
    int error = 0;
    if (i > 1) status = wait_for(b->event);
    if (status != ATTUNE_OK) return status;
    const size_t got = at_file_read_block(t->file, b->memory, bytes, offset, &error);
    if (got > 0) status = copy(t, t->memory + t->moved, b->memory + offset % AT_FILE_GRAIN, got, b);
    if (status != ATTUNE_OK) return status;
    t->moved += got;
    if (got < bytes) return fail(t, error);
  }
  return status;
}

static attune_status write_out(transfer *t, buffer *b) {
  int error = 0;
  attune_status status = wait_for(b->event);
  if (status != ATTUNE_OK) return status;
  const size_t put = at_file_write_block(t->file, b->memory, b->bytes, b->offset, &error);
  t->moved += put;
  return put == b->bytes ? ATTUNE_OK : fail(t, error);
}

/* While a block is written the next one is copied. */
static attune_status save_blocks(transfer *t, buffer buffers[2]) {
  attune_status status = ATTUNE_OK;
  size_t copied = 0;
  for (int i = 0; copied < t->bytes && status == ATTUNE_OK; i++) {
    buffer *b = &buffers[i % 2];
    b->bytes = block_at(t, copied);
    b->offset = t->offset + copied;
    status = copy(t, b->memory + b->offset % AT_FILE_GRAIN, t->memory + copied, b->bytes, b);
    copied += b->bytes;
    if (status == ATTUNE_OK && i > 0) status = write_out(t, &buffers[(i - 1) % 2]);
    if (status == ATTUNE_OK && copied == t->bytes) status = write_out(t, b);
  }
  return status;
}

static attune_status move_blocks(transfer *t) {
  buffer buffers[2] = {{0}, {0}};
  attune_status status = open_buffer(t, &buffers[0]);
  if (status == ATTUNE_OK) status = open_buffer(t, &buffers[1]);
  if (status == ATTUNE_OK) status = t->saves ? save_blocks(t, buffers) : load_blocks(t, buffers);
  at_message kept;
  at_message_keep(&kept);
  for (int i = 0; i < 2; i++) close_buffer(t, &buffers[i]);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}

/* ---- the calls ---- */

static attune_status check_place(const transfer *t) {
  if (!t->file) return at_fail(ATTUNE_INVALID_ARGUMENT, "file is NULL; should be one of attune_file_open");
  if (!t->stream)
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "stream is NULL; should be one of attune_stream_create or attune_stream_default");
  if (t->saves && !t->file->writable)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "file was opened for reading; should be opened with options.write");
  if (t->bytes > 0 && !t->memory)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should point to %zu bytes",
                   t->saves ? "source" : "destination", t->bytes);
  if (t->bytes > PTRDIFF_MAX || (uintptr_t)t->memory > UINTPTR_MAX - t->bytes)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "bytes is %zu; should be what fits into memory", t->bytes);
  if (t->offset > (uint64_t)INT64_MAX - t->bytes)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "offset is %llu; should be below 2^63 less bytes",
                   (unsigned long long)t->offset);
  if (at_stream_capturing(t->stream))
    return at_fail(ATTUNE_CAPTURING, "files are read and written during the call; should be outside of captures");
  if (t->file->cufile && t->file->generation != at_fork_generation())
    return at_fail(ATTUNE_DEVICE_ERROR, "file was opened before fork; should be opened again in the child");
  return ATTUNE_OK;
}

static attune_status move(transfer *t) {
  const at_backend *backend = t->stream->device->backend;
  if (t->file->cufile && backend->cufile) return move_by_cufile(t);
  if (backend->kind == ATTUNE_DEVICE_HOST && !at_file_is_direct(t->file)) return move_plain(t);
  return move_blocks(t);
}

/* A save has seen all of the stream's work done. */
static void tell(const transfer *t, const char *name) {
  const at_touch use = at_watch_bytes(t->saves ? "source" : "destination", t->memory, t->bytes, !t->saves);
  at_watch_use(t->stream, name, &use, 1);
  if (t->saves) at_watch_idle(t->stream);
}

static attune_status run(transfer *t, size_t *out_moved) {
  const char *name = t->saves ? "attune_file_save" : "attune_file_load";
  if (out_moved) *out_moved = 0;
  attune_status status = check_place(t);
  if (status != ATTUNE_OK || t->bytes == 0) return status;
  const bool named = at_watched() && at_watch_name("%s %zu bytes", name, t->bytes);
  status = move(t);
  if (out_moved) *out_moved = t->moved;
  if (AT_LIKELY(!at_watched())) return status;
  status = at_watch_end(named, t->stream, status);
  if (at_watched_races() && status == ATTUNE_OK) tell(t, name);
  return status;
}

attune_status attune_file_load(attune_file *file, attune_stream *stream, void *destination, size_t bytes,
                               uint64_t offset, size_t *out_moved) {
  transfer t = {file, stream, destination, bytes, offset, false, 0};
  return run(&t, out_moved);
}

attune_status attune_file_save(attune_file *file, attune_stream *stream, const void *source, size_t bytes,
                               uint64_t offset, size_t *out_moved) {
  transfer t = {file, stream, (char *)(uintptr_t)source, bytes, offset, true, 0};
  return run(&t, out_moved);
}
