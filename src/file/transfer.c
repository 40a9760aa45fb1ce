/* SPDX-License-Identifier: Apache-2.0
 * transfer.c: loads and saves: in blocks through buffers, or at once where the device's memory is the host's, or by
 * cuFile. */
#include "src/file/file.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "src/base/file_limit.h"
#include "src/file/cufile.h"
#include "src/process/cancel.h"
#include "src/process/fork.h"
#include "src/trace/instrument.h"

/* ---- at once ---- */

static attune_status wait_for_stream(const at_transfer *t) {
  return t->stream->device->backend.stream->synchronize(t->stream);
}

static attune_status move_plain(at_transfer *t) {
  int error = 0;
  AT_TRY(wait_for_stream(t));
  t->moved = t->saves ? at_file_write_plain(t->file, t->memory, t->bytes, t->offset, &error)
                      : at_file_read_plain(t->file, t->memory, t->bytes, t->offset, &error);
  return t->moved == t->bytes ? ATTUNE_OK : at_file_fail_transfer(t, error);
}

/* One call of cuFile's; again when a signal interrupts it. It may write in the calling thread. */
static ssize_t step_by_cufile(const at_transfer *t, int *out_error) {
  const off_t at = (off_t)(t->offset + t->moved);
  const size_t rest = t->bytes - t->moved;
  at_file_limit limit;
  ssize_t n;
  if (t->saves) at_file_limit_begin(&limit);
  do
    n = t->saves ? at_cufile_write(t->file->cufile, t->memory + t->moved, rest, at, out_error)
                 : at_cufile_read(t->file->cufile, t->memory + t->moved, rest, at, out_error);
  while (n < 0 && *out_error == EINTR);
  if (t->saves) at_file_limit_end(&limit);
  if (n == 0 && t->saves) *out_error = EIO;
  return n;
}

static attune_status move_by_cufile(at_transfer *t) {
  attune_device *device = t->stream->device;
  at_entered entered;
  int error = 0;
  attune_status status = wait_for_stream(t);
  if (status == ATTUNE_OK) status = device->backend.device->enter(device, &entered);
  if (status != ATTUNE_OK) return status;
  while (t->moved < t->bytes && status == ATTUNE_OK) {
    const ssize_t n = step_by_cufile(t, &error);
    if (n > 0)
      t->moved += (size_t)n;
    else
      status = n < 0 && error == 0 ? ATTUNE_DEVICE_ERROR : at_file_fail_transfer(t, error);
  }
  device->backend.device->leave(&entered);
  return status;
}

/* ---- the calls ---- */

static attune_status check_place(const at_transfer *t) {
  if (!t->file) return AT_INVALID("file is NULL; should be a file from attune_file_open");
  if (!t->stream)
    return AT_INVALID("stream is NULL; should be a stream from attune_stream_create or attune_stream_default");
  if (t->saves && !t->file->writable)
    return AT_INVALID("file was opened for reading; should be opened with options.write");
  if (t->bytes > 0 && !t->memory)
    return AT_INVALID("%s is NULL; should point to %zu bytes", t->saves ? "source" : "destination", t->bytes);
  if (t->bytes > PTRDIFF_MAX || (uintptr_t)t->memory > UINTPTR_MAX - t->bytes)
    return AT_INVALID("bytes is %zu; should be a size that fits into memory", t->bytes);
  if (t->offset > (uint64_t)INT64_MAX - t->bytes)
    return AT_INVALID("offset is %llu; should be below 2^63 minus bytes", (unsigned long long)t->offset);
  if (at_stream_capturing(t->stream))
    return at_fail(ATTUNE_CAPTURING,
                   "files are read and written during the call, which cannot be captured; call it outside of captures");
  if (t->file->cufile && t->file->generation != at_fork_generation())
    return at_fail(ATTUNE_DEVICE_ERROR, "file was opened before fork; should be opened again in the child");
  return ATTUNE_OK;
}

static attune_status move(at_transfer *t) {
  const at_backend *backend = &t->stream->device->backend;
  if (t->file->cufile && backend->cufile) return move_by_cufile(t);
  if (backend->kind == ATTUNE_DEVICE_HOST && !at_file_is_direct(t->file)) return move_plain(t);
  return at_file_move_blocks(t);
}

/* A save has seen all of the stream's work done. */
static void tell(const at_transfer *t, const char *name) {
  const at_operand_access use =
      at_instrument_bytes(t->saves ? "source" : "destination", t->memory, t->bytes, !t->saves);
  at_instrument_use(t->stream, name, &use, 1);
  if (t->saves) at_instrument_idle(t->stream);
}

static attune_status run(at_transfer *t, size_t *out_moved) {
  const char *name = t->saves ? "attune_file_save" : "attune_file_load";
  if (out_moved) *out_moved = 0;
  attune_status status = check_place(t);
  if (status != ATTUNE_OK || t->bytes == 0) return status;
  const bool named = at_instrumented() && at_instrument_name("%s %zu bytes", name, t->bytes);
  const int cancel = at_cancel_hold(); /* other threads use what is on this one's stack */
  status = move(t);
  at_cancel_let(cancel);
  if (out_moved) *out_moved = t->moved;
  if (AT_LIKELY(!at_instrumented())) return status;
  status = at_instrument_end(named, t->stream, status);
  if (at_instrumented_races() && status == ATTUNE_OK) tell(t, name);
  return status;
}

attune_status attune_file_load(attune_file *file, attune_stream *stream, void *destination, size_t bytes,
                               uint64_t offset, size_t *out_moved) {
  at_transfer t = {file, stream, destination, bytes, offset, false, 0};
  return run(&t, out_moved);
}

attune_status attune_file_save(attune_file *file, attune_stream *stream, const void *source, size_t bytes,
                               uint64_t offset, size_t *out_moved) {
  at_transfer t = {file, stream, (char *)(uintptr_t)source, bytes, offset, true, 0};
  return run(&t, out_moved);
}
