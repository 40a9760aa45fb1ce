/* SPDX-License-Identifier: Apache-2.0
 * fake_cufile.c: a cuFile for tests, on memory of the host. FAKE_CUFILE: nodriver (its kernel driver is not there),
 * broken (it does not start), picky (it takes no file), short (64 KiB a call), failing (calls fail with errno), strange
 * (with an error of cuFile's own), interrupted (a signal comes amid each other call), stuck (writes move nothing). What
 * was called is in fake_cufile_log. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKE __attribute__((visibility("default")))

typedef struct answer {
  int error, driver_error;
} answer;
typedef struct described {
  int type;
  union {
    int descriptor;
    void *other;
  } of;
  const void *operations;
} described;

extern char FAKE fake_cufile_log[4096];
char fake_cufile_log[4096];

static int mode(const char *word) {
  const char *set = getenv("FAKE_CUFILE");
  return set && strcmp(set, word) == 0;
}

static void tell(const char *what) {
  strncat(fake_cufile_log, what, sizeof fake_cufile_log - strlen(fake_cufile_log) - 1);
}

FAKE answer cuFileDriverOpen(void);
FAKE answer cuFileDriverGetProperties(unsigned int *out);
FAKE answer cuFileHandleRegister(void **out, described *file);
FAKE void cuFileHandleDeregister(void *handle);
FAKE answer cuFileBufRegister(const void *memory, size_t bytes, int flags);
FAKE answer cuFileBufDeregister(const void *memory);
FAKE ssize_t cuFileRead(void *handle, void *memory, size_t bytes, off_t offset, off_t within);
FAKE ssize_t cuFileWrite(void *handle, const void *memory, size_t bytes, off_t offset, off_t within);

answer cuFileDriverOpen(void) {
  return (answer){mode("broken") ? 5001 : 0, 0};
}

answer cuFileDriverGetProperties(unsigned int *out) {
  out[0] = mode("nodriver") ? 0 : 2;
  out[20] = 7; /* within what the real one writes */
  return (answer){0, 0};
}

answer cuFileHandleRegister(void **out, described *file) {
  if (mode("picky") || file->type != 1) return (answer){5027, 0};
  if (fcntl(file->of.descriptor, F_GETFL) & (O_NONBLOCK | O_APPEND)) return (answer){5019, 0}; /* as the real one */
  int *kept = malloc(sizeof *kept);
  *kept = file->of.descriptor;
  *out = kept;
  tell("file ");
  return (answer){0, 0};
}

void cuFileHandleDeregister(void *handle) {
  free(handle);
  tell("forget ");
}

answer cuFileBufRegister(const void *memory, size_t bytes, int flags) {
  char line[64];
  (void)memory;
  snprintf(line, sizeof line, "memory %zu %d ", bytes, flags);
  tell(line);
  return (answer){mode("strange") ? 5030 : 0, 0};
}

answer cuFileBufDeregister(const void *memory) {
  (void)memory;
  tell("drop ");
  return (answer){0, 0};
}

static ssize_t fails(void) {
  if (mode("strange")) return -5011;
  errno = EIO;
  return mode("failing") ? -1 : 0;
}

/* Direct descriptors want aligned memory: the real one has buffers of its own for the rest. */
static ssize_t move(void *handle, char *memory, size_t bytes, off_t offset, int writes) {
  static int calls;
  char path[64];
  if (fails() != 0) return fails();
  if (mode("stuck") && writes) return 0;
  if (mode("interrupted") && calls++ % 2 == 0) {
    errno = EINTR;
    return -1;
  }
  if (mode("short") && bytes > 65536) bytes = 65536;
  snprintf(path, sizeof path, "/proc/self/fd/%d", *(int *)handle);
  FILE *file = fopen(path, writes ? "r+" : "r");
  if (!file) return -1;
  fseeko(file, offset, SEEK_SET);
  const size_t n = writes ? fwrite(memory, 1, bytes, file) : fread(memory, 1, bytes, file);
  if (fclose(file) != 0) return -1;
  tell(writes ? "write " : "read ");
  return (ssize_t)n;
}

ssize_t cuFileRead(void *handle, void *memory, size_t bytes, off_t offset, off_t within) {
  return move(handle, (char *)memory + within, bytes, offset, 0);
}

ssize_t cuFileWrite(void *handle, const void *memory, size_t bytes, off_t offset, off_t within) {
  return move(handle, (char *)memory + within, bytes, offset, 1);
}
