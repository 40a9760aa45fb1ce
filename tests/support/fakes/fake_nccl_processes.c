/* SPDX-License-Identifier: Apache-2.0
 * fake_nccl_processes.c: an NCCL for tests whose ranks are processes: all-reduce of i32, through shared memory that the
 * id names. As with the real one nobody notices a process that is gone, or calls that do not match: they wait until
 * they are aborted. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAKE __attribute__((visibility("default")))
enum { RANKS = 4, ROOM = 1024, SUCCESS = 0, SYSTEM_ERROR = 2, REMOTE_ERROR = 6 };

typedef struct id {
  char bytes[128];
} id;

typedef struct shared {
  atomic_int joined, posted[RANKS], read[RANKS];
  size_t counts[RANKS];
  int numbers[RANKS][ROOM];
} shared;

typedef struct comm {
  shared *with;
  int rank, size, calls;
  atomic_int aborted;
} comm;

FAKE int ncclGetVersion(int *version);
FAKE int ncclGetUniqueId(id *out);
FAKE int ncclCommInitRank(void **out, int size, id name, int rank);
FAKE int ncclCommInitAll(void **out, int count, const int *devices);
FAKE int ncclCommDestroy(void *handle);
FAKE int ncclCommAbort(void *handle);
FAKE int ncclCommGetAsyncError(void *handle, int *error);
FAKE const char *ncclGetErrorString(int error);
FAKE int ncclGroupStart(void);
FAKE int ncclGroupEnd(void);
FAKE int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *handle, void *stream);
FAKE int ncclBroadcast(void);
FAKE int ncclReduce(void);
FAKE int ncclAllGather(void);
FAKE int ncclReduceScatter(void);
FAKE int ncclSend(void);
FAKE int ncclRecv(void);

int ncclGetVersion(int *version) {
  *version = 22809;
  return SUCCESS;
}

int ncclGetUniqueId(id *out) {
  memset(out, 0, sizeof *out);
  snprintf(out->bytes, sizeof out->bytes, "/tmp/attune-fake-nccl-XXXXXX");
  const int file = mkstemp(out->bytes);
  if (file < 0 || ftruncate(file, sizeof(shared)) != 0) return SYSTEM_ERROR;
  close(file);
  return SUCCESS;
}

int ncclCommInitRank(void **out, int size, id name, int rank) {
  const int file = open(name.bytes, O_RDWR);
  if (file < 0) return SYSTEM_ERROR;
  shared *with = mmap(NULL, sizeof *with, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  comm *c = calloc(1, sizeof *c);
  if (with == MAP_FAILED || !c) abort();
  c->with = with;
  c->rank = rank;
  c->size = size;
  atomic_fetch_add(&with->joined, 1);
  while (atomic_load(&with->joined) < size) usleep(100);
  *out = c;
  return SUCCESS;
}

int ncclCommInitAll(void **out, int count, const int *devices) {
  (void)out, (void)count, (void)devices;
  return SYSTEM_ERROR;
}

int ncclCommDestroy(void *handle) {
  comm *c = handle;
  munmap(c->with, sizeof *c->with);
  free(c);
  return SUCCESS;
}

/* The memory stays: a call may be on its way out. */
int ncclCommAbort(void *handle) {
  static comm *kept[8];
  static int count;
  comm *c = handle;
  kept[count++ % 8] = c;
  atomic_store(&c->aborted, 1);
  return SUCCESS;
}

int ncclCommGetAsyncError(void *handle, int *error) {
  (void)handle;
  *error = SUCCESS;
  return SUCCESS;
}

const char *ncclGetErrorString(int error) {
  return error == REMOTE_ERROR ? "remote process exited" : "unhandled system error";
}

int ncclGroupStart(void) {
  return SUCCESS;
}
int ncclGroupEnd(void) {
  return SUCCESS;
}

/* Until every rank has come to `number`. */
static int wait_for(comm *c, atomic_int *all, int number) {
  for (int r = 0; r < c->size; r++)
    while (atomic_load(&all[r]) < number) {
      if (atomic_load(&c->aborted)) return REMOTE_ERROR;
      usleep(100);
    }
  return SUCCESS;
}

static int match(const comm *c) {
  for (int r = 0; r < c->size; r++)
    if (c->with->counts[r] != c->with->counts[c->rank]) return 0;
  return 1;
}

int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *handle, void *stream) {
  comm *c = handle;
  shared *with = c->with;
  (void)stream;
  if (type != 2 || op != 0 || count > ROOM) abort();
  if (wait_for(c, with->read, c->calls) != SUCCESS) return REMOTE_ERROR;
  memcpy(with->numbers[c->rank], in, count * sizeof(int));
  with->counts[c->rank] = count;
  atomic_store(&with->posted[c->rank], ++c->calls);
  if (wait_for(c, with->posted, c->calls) != SUCCESS) return REMOTE_ERROR;
  while (!match(c) && !atomic_load(&c->aborted)) usleep(100);
  if (!match(c)) return REMOTE_ERROR;
  for (size_t i = 0; i < count; i++) {
    int sum = 0;
    for (int r = 0; r < c->size; r++) sum += with->numbers[r][i];
    ((int *)out)[i] = sum;
  }
  atomic_store(&with->read[c->rank], c->calls);
  return SUCCESS;
}

/* Functions that no test calls. */
int ncclBroadcast(void) {
  return SYSTEM_ERROR;
}
int ncclReduce(void) {
  return SYSTEM_ERROR;
}
int ncclAllGather(void) {
  return SYSTEM_ERROR;
}
int ncclReduceScatter(void) {
  return SYSTEM_ERROR;
}
int ncclSend(void) {
  return SYSTEM_ERROR;
}
int ncclRecv(void) {
  return SYSTEM_ERROR;
}
