/* SPDX-License-Identifier: Apache-2.0
 * block.c: bytes of a file. What is read to where it belongs is read in slices by several threads: one does not empty
 * the system's cache at the speed of memory. It is written by one: the system lets one at a time write to a file.
 * Direct calls leave the edges to the cache. */
#include "src/file/file.h"

#include <errno.h>
#include <limits.h>

#include "src/base/file_limit.h"
#include "src/host/threads.h"

enum { SLICE_LEAST = 1 << 20, THREADS_MOST = 4 };

/* One run of bytes of the file. */
typedef struct run {
  int descriptor;
  bool writes, direct;
  char *memory;
  size_t bytes;
  uint64_t offset;
} run;

/* How many bytes were moved; fewer with *out_error 0: the file ends. */
static size_t move_run(const run *r, int *out_error) {
  size_t done = 0;
  at_file_limit limit;
  *out_error = 0;
  if (r->writes) at_file_limit_begin(&limit);
  while (done < r->bytes) {
    const size_t rest = r->bytes - done, most = rest < INT_MAX / 2 ? rest : INT_MAX / 2;
    const off_t at = (off_t)(r->offset + done);
    const ssize_t n = r->writes ? at_file_pwrite(r->descriptor, r->memory + done, most, at)
                                : at_file_pread(r->descriptor, r->memory + done, most, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) *out_error = errno;
    if (n == 0 && r->writes) *out_error = EIO;
    if (n <= 0) break;
    done += (size_t)n;
    if (r->direct && !r->writes && (size_t)n % AT_FILE_GRAIN) break; /* the end of the file, as a rule */
  }
  if (r->writes) at_file_limit_end(&limit);
  return done;
}

/* ---- slices ---- */

typedef struct slices {
  run whole;
  size_t each;
  size_t done[THREADS_MOST];
  int error[THREADS_MOST];
} slices;

static void move_slice(slices *s, int i) {
  run r = s->whole;
  const size_t from = s->each * (size_t)i;
  if (from >= r.bytes) return;
  r.memory += from;
  r.offset += from;
  r.bytes = r.bytes - from < s->each ? r.bytes - from : s->each;
  s->done[i] = move_run(&r, &s->error[i]);
}

static void move_share(void *arg, const at_team *team) {
  for (int i = team->rank; i < THREADS_MOST; i += team->size) move_slice(arg, i);
}

/* Only what arrived without a gap counts. */
static size_t move_slices(const run *r, int *out_error) {
  slices s = {.whole = *r, .each = (r->bytes / THREADS_MOST + AT_FILE_GRAIN) / AT_FILE_GRAIN * AT_FILE_GRAIN};
  const int cpus = at_cpu_count();
  size_t done = 0;
  *out_error = 0;
  at_parallel(cpus < THREADS_MOST ? cpus : THREADS_MOST, move_share, &s);
  for (int i = 0; i < THREADS_MOST && *out_error == 0; i++) {
    const size_t from = s.each * (size_t)i, whole = from >= r->bytes ? 0 : r->bytes - from;
    done += s.done[i];
    *out_error = s.error[i];
    if (s.done[i] < (whole < s.each ? whole : s.each)) break;
  }
  return done;
}

static size_t move_any(const run *r, int *out_error) {
  return r->bytes >= 2 * SLICE_LEAST && !r->writes ? move_slices(r, out_error) : move_run(r, out_error);
}

/* By the calling thread alone. */
static size_t read_alone(attune_file *file, char *to, size_t bytes, uint64_t offset, int *out_error) {
  const run r = {file->plain, false, false, to, bytes, offset};
  return move_run(&r, out_error);
}

size_t at_file_read_plain(attune_file *file, char *to, size_t bytes, uint64_t offset, int *out_error) {
  const run r = {file->plain, false, false, to, bytes, offset};
  return move_any(&r, out_error);
}

size_t at_file_write_plain(attune_file *file, const char *from, size_t bytes, uint64_t offset, int *out_error) {
  const run r = {file->plain, true, false, (char *)(uintptr_t)from, bytes, offset};
  return move_any(&r, out_error);
}

/* ---- direct ---- */

static size_t round_up(size_t n) {
  return (n + AT_FILE_GRAIN - 1) / AT_FILE_GRAIN * AT_FILE_GRAIN;
}

/* A direct call failed where another one did not: the file system has none after all. Where both fail, as beyond the
 * largest offset, that says nothing. */
static void refuse(attune_file *file) {
  atomic_store_explicit(&file->refuse, true, memory_order_relaxed);
}

/* All grains that hold some of the bytes are read. */
static size_t read_direct(attune_file *file, char *buffer, size_t bytes, uint64_t offset, int *out_error) {
  const size_t head = (size_t)(offset % AT_FILE_GRAIN);
  const run r = {file->direct, false, true, buffer, round_up(head + bytes), offset - head};
  const size_t got = move_run(&r, out_error), there = got > head ? got - head : 0;
  if (there >= bytes) *out_error = 0;
  return there < bytes ? there : bytes;
}

size_t at_file_read_block(attune_file *file, char *buffer, size_t bytes, uint64_t offset, int *out_error) {
  char *to = buffer + offset % AT_FILE_GRAIN;
  if (!at_file_is_direct(file)) return read_alone(file, to, bytes, offset, out_error);
  const size_t done = read_direct(file, buffer, bytes, offset, out_error);
  if (*out_error != EINVAL && *out_error != EOPNOTSUPP) {
    if (done == bytes || *out_error != 0) return done;
    /* The end of the file need not be one of a grain: a direct call after it says the end, or an error. */
    return done + read_alone(file, to + done, bytes - done, offset + done, out_error);
  }
  const size_t got = read_alone(file, to, bytes, offset, out_error);
  if (got > 0) refuse(file);
  return got;
}

/* Whole grains go direct, and what is before and after them through the cache; the system keeps the two in step. */
static size_t write_direct(attune_file *file, char *from, size_t bytes, uint64_t offset, int *out_error) {
  const size_t over = (size_t)(offset % AT_FILE_GRAIN), gap = over ? AT_FILE_GRAIN - over : 0;
  const size_t head = gap < bytes ? gap : bytes, middle = (bytes - head) / AT_FILE_GRAIN * AT_FILE_GRAIN;
  size_t done = at_file_write_plain(file, from, head, offset, out_error);
  if (done < head) return done;
  const run r = {file->direct, true, true, from + head, middle, offset + head};
  done += move_any(&r, out_error);
  if (done < head + middle) return done;
  return done + at_file_write_plain(file, from + done, bytes - done, offset + done, out_error);
}

size_t at_file_write_block(attune_file *file, char *buffer, size_t bytes, uint64_t offset, int *out_error) {
  char *from = buffer + offset % AT_FILE_GRAIN;
  if (!at_file_is_direct(file)) return at_file_write_plain(file, from, bytes, offset, out_error);
  const size_t done = write_direct(file, from, bytes, offset, out_error);
  if (*out_error != EINVAL && *out_error != EOPNOTSUPP) return done;
  const size_t put = at_file_write_plain(file, from + done, bytes - done, offset + done, out_error);
  if (put > 0) refuse(file);
  return done + put;
}
