/* SPDX-License-Identifier: Apache-2.0
 * file.c: files are opened and closed here, and made known to cuFile. */
#include "src/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/struct_size.h"
#include "src/file/cufile.h"
#include "src/process/fork.h"

static attune_status fail_open(const char *path, int error) {
  char shown[AT_SHOWN_CHARS];
  const attune_status status = error == ENOENT || error == ENXIO                              ? ATTUNE_NOT_FOUND
                               : error == EACCES || error == EPERM || error == EROFS          ? ATTUNE_PERMISSION
                               : error == EISDIR || error == ENOTDIR || error == ENAMETOOLONG ? ATTUNE_INVALID_ARGUMENT
                               : error == ENOMEM                                              ? ATTUNE_OUT_OF_MEMORY
                                                                                              : ATTUNE_IO_ERROR;
  return at_fail(status, "%s cannot be opened: %s", at_shown(shown, path), strerror(error));
}

static attune_status check_kind(const struct stat *found, const char *path) {
  char shown[AT_SHOWN_CHARS];
  if (S_ISREG(found->st_mode) || S_ISBLK(found->st_mode)) return ATTUNE_OK;
  return AT_INVALID("%s is %snot a regular file or block device", at_shown(shown, path),
                    S_ISDIR(found->st_mode) ? "a directory, " : "");
}

static int open_again(const char *path, int flags) {
  int descriptor;
  do descriptor = open(path, flags, 0666);
  while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

/* Anything but a file is refused before it is opened: opening alone would wake the peer that waits on a FIFO, or start
 * a device. The open does not block, because by then the path may lead to a FIFO; only where a process has a lease on
 * the file it waits until that ends. What stays open is as others open files: cuFile takes no descriptor that does not
 * block. */
static attune_status open_plain(attune_file *file, const char *path, const attune_file_options *o) {
  struct stat found;
  const int flags = (o->write ? O_RDWR : O_RDONLY) | (o->write && o->create ? O_CREAT : 0) | O_CLOEXEC | O_NOCTTY;
  if (stat(path, &found) == 0) AT_TRY(check_kind(&found, path));
  file->plain = open_again(path, flags | O_NONBLOCK);
  if (file->plain < 0 && errno == EWOULDBLOCK) file->plain = open_again(path, flags);
  if (file->plain < 0 || fstat(file->plain, &found) != 0) return fail_open(path, errno);
  AT_TRY(check_kind(&found, path));
  return fcntl(file->plain, F_SETFL, fcntl(file->plain, F_GETFL) & ~O_NONBLOCK) == 0 ? ATTUNE_OK
                                                                                     : fail_open(path, errno);
}

/* By the descriptor, so that it is the same file whatever the path leads to by now. Where the file system has no such
 * calls the file has none; where the process has no descriptor left, that is told. */
static attune_status open_direct(attune_file *file, const char *name) {
  char path[64];
  size_t at = 0;
  (void)at_append(path, sizeof path, &at, "/proc/self/fd/%d", file->plain);
  file->direct = open_again(path, (file->writable ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC);
  if (file->direct >= 0 || (errno != EMFILE && errno != ENFILE && errno != ENOMEM)) return ATTUNE_OK;
  return fail_open(name, errno);
}

/* When nothing else can fail: a file that cannot be opened keeps what it has. */
static attune_status empty(const attune_file *file, const char *path) {
  struct stat found;
  if (fstat(file->plain, &found) != 0) return fail_open(path, errno);
  return S_ISREG(found.st_mode) && ftruncate(file->plain, 0) != 0 ? fail_open(path, errno) : ATTUNE_OK;
}

static attune_status open_cufile(attune_file *file, const attune_file_options *o) {
  if (o->way == ATTUNE_FILE_COPIES || (o->way == ATTUNE_FILE_ANY && file->direct < 0)) return ATTUNE_OK;
  const at_message kept = at_message_keep();
  attune_status status = at_cufile_open();
  if (status == ATTUNE_OK && (o->way == ATTUNE_FILE_CUFILE || at_cufile_has_driver()))
    status = at_cufile_register(&file->cufile, file->direct >= 0 ? file->direct : file->plain);
  return o->way == ATTUNE_FILE_CUFILE ? status : at_message_settle(&kept, ATTUNE_OK);
}

static attune_status check_options(const char *path, const attune_file_options *o) {
  if (!path || !*path) return AT_INVALID("path is %s; should name a file", path ? "empty" : "NULL");
  if (!o->write && (o->create || o->truncate))
    return AT_INVALID("options.%s is set without options.write; should be set together",
                      o->create ? "create" : "truncate");
  if ((int)o->way >= ATTUNE_FILE_ANY && o->way <= ATTUNE_FILE_COPIES) return ATTUNE_OK;
  return AT_INVALID("options.way is %d; should be any (0), cufile (1) or copies (2)", (int)o->way);
}

attune_status attune_file_open(attune_file **out, const char *path, const attune_file_options *options) {
  attune_file_options full, *o = &full;
  AT_REQUIRE_AS(out, "point to an attune_file *");
  *out = NULL;
  AT_TRY(AT_TAKE(o, options));
  AT_TRY(check_options(path, o));
  attune_file *file = calloc(1, sizeof *file);
  if (!file) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a file");
  file->plain = file->direct = -1;
  file->writable = o->write != 0;
  file->generation = at_fork_generation();
  attune_status status = o->way == ATTUNE_FILE_CUFILE ? at_cufile_open() : ATTUNE_OK;
  if (status == ATTUNE_OK) status = open_plain(file, path, o);
  if (status == ATTUNE_OK && o->direct) status = open_direct(file, path);
  if (status == ATTUNE_OK) status = open_cufile(file, o);
  if (status == ATTUNE_OK && o->truncate) status = empty(file, path);
  if (status == ATTUNE_OK)
    *out = file;
  else
    attune_file_close(file);
  return status;
}

void attune_file_close(attune_file *file) {
  if (!file) return;
  if (file->cufile && file->generation == at_fork_generation()) at_cufile_forget(file->cufile);
  if (file->direct >= 0) (void)close(file->direct);
  if (file->plain >= 0) (void)close(file->plain);
  free(file);
}

attune_status attune_file_size(uint64_t *out, const attune_file *file) {
  AT_REQUIRE_AS(out, "point to a uint64_t");
  AT_REQUIRE_AS(file, "be a file from attune_file_open");
  const off_t end = lseek(file->plain, 0, SEEK_END); /* of a block device too; no read uses this position */
  if (end < 0) return at_fail(ATTUNE_IO_ERROR, "the size of the file cannot be read: %s", strerror(errno));
  *out = (uint64_t)end;
  return ATTUNE_OK;
}

const char *attune_file_describe(const attune_file *file) {
  return !file ? "" : file->cufile ? "cufile" : at_file_is_direct(file) ? "copies, direct" : "copies";
}

attune_status attune_file_flush(attune_file *file) {
  AT_REQUIRE_AS(file, "be a file from attune_file_open");
  int failed;
  do failed = fdatasync(file->plain);
  while (failed && errno == EINTR);
  if (!failed) return ATTUNE_OK;
  return at_fail(ATTUNE_IO_ERROR, "the file cannot be flushed: %s", strerror(errno));
}

/* ---- memory that cuFile knows ---- */

static attune_status check_memory(const attune_device *device, const void *pointer) {
  AT_REQUIRE_DEVICE(device);
  if (pointer) return ATTUNE_OK;
  return AT_INVALID("pointer is NULL; should be memory of %s", device->name);
}

/* Opens it: else memory would be known or not depending on whether a file was opened before. */
static bool has_cufile(const attune_device *device) {
  if (!device->backend.cufile) return false;
  const at_message kept = at_message_keep();
  (void)at_cufile_open();
  (void)at_message_settle(&kept, ATTUNE_OK);
  return at_cufile_is_open();
}

attune_status attune_file_register_memory(attune_device *device, void *pointer, size_t bytes) {
  at_entered entered;
  AT_TRY(check_memory(device, pointer));
  if (bytes == 0) return AT_INVALID("bytes is 0; should be the size of the memory at pointer");
  if (!has_cufile(device)) return ATTUNE_OK;
  AT_TRY(device->backend.device->enter(device, &entered));
  attune_status status = at_cufile_register_memory(pointer, bytes);
  device->backend.device->leave(&entered);
  return status;
}

attune_status attune_file_forget_memory(attune_device *device, void *pointer) {
  at_entered entered;
  attune_status status = check_memory(device, pointer);
  if (status != ATTUNE_OK || !device->backend.cufile || !at_cufile_is_open()) return status;
  status = device->backend.device->enter(device, &entered);
  if (status != ATTUNE_OK) return status;
  status = at_cufile_forget_memory(pointer);
  device->backend.device->leave(&entered);
  return status;
}

ssize_t at_file_pread(int descriptor, void *out, size_t bytes, off_t offset) {
  return pread(descriptor, out, bytes, offset);
}

ssize_t at_file_pwrite(int descriptor, const void *in, size_t bytes, off_t offset) {
  return pwrite(descriptor, in, bytes, offset);
}

attune_status at_file_fail_transfer(const at_transfer *t, int error) {
  const uint64_t at = t->offset + t->moved, end = t->offset + t->bytes;
  if (error)
    return at_fail(ATTUNE_IO_ERROR, "%s the file at byte %" PRIu64 ": %s, after %zu of %zu bytes",
                   t->saves ? "writing" : "reading", at, strerror(error), t->moved, t->bytes);
  if (t->moved == 0)
    return at_fail(ATTUNE_IO_ERROR, "the file ends before byte %" PRIu64 "; it should reach byte %" PRIu64, at, end);
  return at_fail(ATTUNE_IO_ERROR,
                 "the file ends at byte %" PRIu64 ", after %zu of %zu bytes; it should reach byte %" PRIu64, at,
                 t->moved, t->bytes, end);
}
