/* SPDX-License-Identifier: Apache-2.0
 * file.h: an open file, and its blocks. */
#ifndef AT_FILE_H
#define AT_FILE_H

#include <attune/file.h>

#include <stdatomic.h>
#include <sys/types.h>

#include "src/base/backend.h"

/* A block is what lies between two multiples of its size in the file: so only the first and the last have edges that
 * direct calls cannot do. */
#define AT_FILE_GRAIN ((size_t)4096) /* alignment of direct calls: of address, offset and size */

struct attune_file {
  int plain;          /* descriptor */
  int direct;         /* the same file with O_DIRECT; -1: none */
  atomic_bool refuse; /* the file system takes no direct calls after all */
  bool writable;
  void *cufile; /* its handle; NULL: copies */
  unsigned generation;
};

/* Arguments of a call. */
typedef struct at_transfer {
  attune_file *file;
  attune_stream *stream;
  char *memory;
  size_t bytes;
  uint64_t offset;
  bool saves;
  size_t moved;
} at_transfer;

/* file.c: what became of it: errno, or 0: the file ends. */
attune_status at_file_fail_transfer(const at_transfer *t, int error);

/* io_workers.c: in blocks, through pinned buffers. */
attune_status at_file_move_blocks(at_transfer *t);

static inline bool at_file_is_direct(const attune_file *file) {
  return file->direct >= 0 && !atomic_load_explicit(&file->refuse, memory_order_relaxed);
}

/* file.c: the system's calls, again when a signal interrupts them. */
ssize_t at_file_pread(int descriptor, void *out, size_t bytes, off_t offset);
ssize_t at_file_pwrite(int descriptor, const void *in, size_t bytes, off_t offset);

/* block.c: `bytes` bytes of one block at `offset`. The buffer is aligned to AT_FILE_GRAIN and has room for a block; the
 * byte of `offset` lies at buffer + offset % AT_FILE_GRAIN. *out_moved: how many are there; less than asked with OK:
 * the file ends. Else *out_error is errno. */
size_t at_file_read_block(attune_file *file, char *buffer, size_t bytes, uint64_t offset, int *out_error);
size_t at_file_write_block(attune_file *file, char *buffer, size_t bytes, uint64_t offset, int *out_error);

/* The same by any address, through the system's cache. */
size_t at_file_read_plain(attune_file *file, char *to, size_t bytes, uint64_t offset, int *out_error);
size_t at_file_write_plain(attune_file *file, const char *from, size_t bytes, uint64_t offset, int *out_error);

#endif
