/* SPDX-License-Identifier: Apache-2.0
 * file.h: from a file to memory of a device, and back. GPUDirect Storage (cuFile, opened at run time) carries the bytes
 * where the file asks for it and the machine has it; else attune reads and writes with the system's calls through
 * pinned buffers, up to 16 MiB a call, so that the disk and the copies work at the same time. From the system's cache
 * up to four threads of the host's pool read; a `direct` load keeps up to eight requests under way, each by a thread of
 * the call's own, which waits for the disk (ATTUNE_THREADS does not count those). On the host device what comes from
 * the system's cache is read to where it belongs, without buffers.
 *
 * Order. A call comes after all that its stream was given before, and what the stream is given later comes after it:
 * that is said of the memory. A load may read the file before the stream's earlier work is done. It returns when all
 * was read from the file: the copies of the last blocks may still run. A save returns when all was written (to the
 * system's cache, or if `direct` past it; attune_file_flush makes it durable), so it waits for the stream's work. Both
 * take the calling thread's time; that is why they can tell what fails. Not in captures.
 *
 * What fails in the middle is told: the status, a message with the place, and how many bytes were moved. Calls that a
 * signal interrupts go on; a thread that is cancelled ends after the load or save. Sizes and offsets have 64 bits. */
#ifndef ATTUNE_FILE_H
#define ATTUNE_FILE_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A file that is open. */
typedef struct attune_file attune_file;

/* How bytes get from the file to a GPU. */
typedef enum attune_file_way {
  ATTUNE_FILE_ANY = 0,    /* cuFile for a `direct` file where the machine has its driver, else copies */
  ATTUNE_FILE_CUFILE = 1, /* cuFile in whatever mode it works in, or UNSUPPORTED */
  ATTUNE_FILE_COPIES = 2  /* the system's calls and pinned buffers */
} attune_file_way;

/* How a file is opened; start from ATTUNE_FILE_OPTIONS_INIT. */
typedef struct attune_file_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  int write;    /* nonzero: attune_file_save may write to it */
  int create;   /* nonzero, with write: made if it is not there, with rights 0666 less the umask */
  int truncate; /* nonzero, with write: emptied */
  int direct; /* nonzero: past the system's cache (O_DIRECT) where the file system can; any offset, size and address do */
  attune_file_way way;
} attune_file_options;

/* Reading, through the system's cache. */
#define ATTUNE_FILE_OPTIONS_INIT \
  { sizeof(attune_file_options), 0, 0, 0, 0, ATTUNE_FILE_ANY }

/* Opens `path`, a regular file or a block device, into *out; options NULL: the defaults. The caller closes it. Errors:
 * INVALID_ARGUMENT (also: what is no file, a directory, a FIFO, a socket; it is not opened), NOT_FOUND, PERMISSION,
 * IO_ERROR (also: no descriptor left; a file takes one, a `direct` one two), OUT_OF_MEMORY, UNSUPPORTED (way is
 * ATTUNE_FILE_CUFILE and there is none; the message says why). Where it fails the file keeps what it has. Any
 * thread. */
ATTUNE_API attune_status attune_file_open(attune_file **out, const char *path, const attune_file_options *options);

/* Closes it. No call may be under way. NULL does nothing. */
ATTUNE_API void attune_file_close(attune_file *file);

/* The file's size now, in bytes, into *out. Errors: INVALID_ARGUMENT, IO_ERROR. Any thread. */
ATTUNE_API attune_status attune_file_size(uint64_t *out, const attune_file *file);

/* "cufile", "copies" or "copies, direct"; "" for NULL. A file system that turns out not to take direct calls makes
 * "copies" of the last. Borrowed. Any thread. */
ATTUNE_API const char *attune_file_describe(const attune_file *file);

/* Reads `bytes` bytes at `offset` of the file into `destination`, memory of the stream's device or of the host.
 * *out_moved, if not NULL, is how many came, also after an error; they are in their place in stream order, and what
 * lies after them may have changed too. 0 bytes: nothing is done, and `destination` may be NULL. Errors:
 * INVALID_ARGUMENT, IO_ERROR (also: the file ends before, or was shortened meanwhile), CAPTURING, OUT_OF_MEMORY,
 * DEVICE_ERROR. Several threads, each with its stream, may use one file. */
ATTUNE_API attune_status attune_file_load(attune_file *file, attune_stream *stream, void *destination, size_t bytes,
                                          uint64_t offset, size_t *out_moved);

/* Writes `bytes` bytes from `source` to `offset` of the file, which grows if need be. *out_moved as above: how many
 * bytes from the start are surely in the file. Errors: as above; IO_ERROR also for a full disk and for the limit on the
 * size of files, for which no signal is raised. */
ATTUNE_API attune_status attune_file_save(attune_file *file, attune_stream *stream, const void *source, size_t bytes,
                                          uint64_t offset, size_t *out_moved);

/* Returns when what was saved is on the disk (fdatasync). Errors: INVALID_ARGUMENT, IO_ERROR. */
ATTUNE_API attune_status attune_file_flush(attune_file *file);

/* Tells cuFile, which is opened for it, of memory of `device` that files will often be loaded to or saved from, which
 * then needs no buffers of cuFile; does nothing where there is no cuFile. Forget it before it is freed. Errors:
 * INVALID_ARGUMENT, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_file_register_memory(attune_device *device, void *pointer, size_t bytes);

/* Undoes attune_file_register_memory. Errors as there. */
ATTUNE_API attune_status attune_file_forget_memory(attune_device *device, void *pointer);

#ifdef __cplusplus
}
#endif
#endif
