/* SPDX-License-Identifier: Apache-2.0
 * io.c: the system's calls for files. */
#include "src/file/file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

ssize_t at_file_pread(int descriptor, void *out, size_t bytes, off_t offset) {
  return pread(descriptor, out, bytes, offset);
}

ssize_t at_file_pwrite(int descriptor, const void *in, size_t bytes, off_t offset) {
  return pwrite(descriptor, in, bytes, offset);
}

static attune_status fail(int error, const char *what, size_t done, size_t all, uint64_t offset) {
  return at_fail(ATTUNE_IO_ERROR, "%s the file at byte %" PRIu64 ": %s, after %zu of %zu bytes", what, offset + done,
                 strerror(error), done, all);
}

static attune_status fail_ended(size_t done, size_t all, uint64_t offset) {
  if (done == 0)
    return at_fail(ATTUNE_IO_ERROR, "the file ends before byte %" PRIu64 "; it should reach byte %" PRIu64, offset,
                   offset + all);
  return at_fail(ATTUNE_IO_ERROR,
                 "the file ends at byte %" PRIu64 ", after %zu of %zu bytes; it should reach byte %" PRIu64,
                 offset + done, done, all, offset + all);
}

attune_status at_file_fail_transfer(const at_transfer *t, int error) {
  const char *what = t->saves ? "writing" : "reading";
  return error ? fail(error, what, t->moved, t->bytes, t->offset)
               : fail_ended(t->moved, t->bytes, t->offset);
}
