/* SPDX-License-Identifier: Apache-2.0
 * file.h: loads from a file to device memory, and saves back. GPUDirect Storage (cuFile, opened at run time) is used if
 * the file asks for it and the machine has it; otherwise attune reads and writes with system calls through pinned
 * buffers, up to 16 MiB per call, so that disk and copies overlap. Reads from the page cache use up to four threads of
 * the host's pool; a `direct` load keeps up to eight requests in flight, each in a thread of the call's own, which
 * waits for the disk (ATTUNE_THREADS does not count those). On the host device, reads from the page cache go directly
 * to the destination, without buffers.
 *
 * Order. For the memory, a call comes after all earlier work of its stream and before all later work. A load may read
 * the file before the stream's earlier work is done. It returns when everything was read from the file: the copies of
 * the last blocks may still run. A save returns when everything was written (to the page cache, or past it if `direct`;
 * attune_file_flush makes it durable), so it waits for the stream's work. Both run in the calling thread, so they can
 * report failures. Not in captures.
 *
 * A failure partway is reported by the status, a message with the position, and the number of bytes moved. Calls
 * interrupted by a signal are continued; cancellation of a thread is deferred until the load or save is done. Sizes and
 * offsets have 64 bits. */
#ifndef ATTUNE_FILE_H
#define ATTUNE_FILE_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open file. */
typedef struct attune_file attune_file;

/* How bytes are moved between the file and a GPU. */
typedef enum attune_file_way {
  ATTUNE_FILE_ANY = 0,    /* cuFile for a `direct` file if the machine has its driver, otherwise copies */
  ATTUNE_FILE_CUFILE = 1, /* cuFile in any mode, or UNSUPPORTED */
  ATTUNE_FILE_COPIES = 2  /* system calls and pinned buffers */
} attune_file_way;

/* Options for opening a file; start from ATTUNE_FILE_OPTIONS_INIT. */
typedef struct attune_file_options {
  size_t size;  /* sizeof this struct, or 0 (types.h) */
  int write;    /* nonzero: attune_file_save may write to it */
  int create;   /* nonzero, with write: created if missing, with mode 0666 less the umask */
  int truncate; /* nonzero, with write: truncated to 0 bytes */
  int direct;   /* nonzero: bypass the page cache (O_DIRECT) where the file system can; any offset, size and address is
                 allowed */
  attune_file_way way;
} attune_file_options;

/* The defaults: reading, through the page cache. */
#define ATTUNE_FILE_OPTIONS_INIT \
  { sizeof(attune_file_options), 0, 0, 0, 0, ATTUNE_FILE_ANY }

/* Opens `path`, a regular file or a block device, into *out; options NULL: the defaults. The caller closes it. Errors,
 * after which the file's content is as before: INVALID_ARGUMENT (also: a directory, FIFO, socket or the like, which is
 * not opened), NOT_FOUND, PERMISSION, IO_ERROR (also: no file descriptor left; a file takes one, a `direct` one two),
 * OUT_OF_MEMORY, UNSUPPORTED (way is ATTUNE_FILE_CUFILE and cuFile is not available; the message says why). Any
 * thread. */
ATTUNE_API attune_status attune_file_open(attune_file **out, const char *path, const attune_file_options *options);

/* Closes the file. No call may be using it. NULL does nothing. */
ATTUNE_API void attune_file_close(attune_file *file);

/* Stores the file's current size, in bytes, in *out. Errors: INVALID_ARGUMENT, IO_ERROR. Any thread. */
ATTUNE_API attune_status attune_file_size(uint64_t *out, const attune_file *file);

/* Returns "cufile", "copies" or "copies, direct": how bytes are moved; "" for NULL. "copies, direct" becomes "copies"
 * if the file system turns out not to support direct calls. Borrowed. Any thread. */
ATTUNE_API const char *attune_file_describe(const attune_file *file);

/* Reads `bytes` bytes at `offset` of the file into `destination`, memory of the stream's device or of the host.
 * *out_moved, if not NULL, is the number of bytes read, also after an error; they are in place in stream order, and the
 * bytes after them may have changed too. 0 bytes: does nothing, and `destination` may be NULL. Errors:
 * INVALID_ARGUMENT, IO_ERROR (also: the file is too short, or was shortened during the call), CAPTURING, OUT_OF_MEMORY,
 * DEVICE_ERROR. Several threads, each with its own stream, may use one file. */
ATTUNE_API attune_status attune_file_load(attune_file *file, attune_stream *stream, void *destination, size_t bytes,
                                          uint64_t offset, size_t *out_moved);

/* Writes `bytes` bytes from `source` to `offset` of the file, which grows as needed. *out_moved as above: the number of
 * bytes from the start that are known to be in the file. Errors: as above; IO_ERROR also for a full disk and for the
 * file size limit (RLIMIT_FSIZE), for which no signal is raised. Threads as above. */
ATTUNE_API attune_status attune_file_save(attune_file *file, attune_stream *stream, const void *source, size_t bytes,
                                          uint64_t offset, size_t *out_moved);

/* Flushes saved data to the disk (fdatasync). Errors: INVALID_ARGUMENT, IO_ERROR. Any thread. */
ATTUNE_API attune_status attune_file_flush(attune_file *file);

/* Registers memory of `device` with cuFile, which is opened for it, so that frequent loads to and saves from it need no
 * buffers of cuFile; does nothing if there is no cuFile. Call attune_file_forget_memory before freeing it. Errors:
 * INVALID_ARGUMENT, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_file_register_memory(attune_device *device, void *pointer, size_t bytes);

/* Undoes attune_file_register_memory. Errors and threads as above. */
ATTUNE_API attune_status attune_file_forget_memory(attune_device *device, void *pointer);

#ifdef __cplusplus
}
#endif
#endif
