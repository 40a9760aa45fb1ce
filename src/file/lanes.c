/* SPDX-License-Identifier: Apache-2.0
 * lanes.c: loads and saves in blocks, through pinned buffers. A lane is a thread with two buffers that takes every so many-th
 * block: while one is read, the copy of the other runs. Lanes do not wait for each other. The system's cache is read by several;
 * one writes: the system lets one thread at a time write to a file. */
#include "src/file/file.h"

#include <attune/pinned.h>

#include <pthread.h>

#include "src/host/threads.h"

enum { LANES_MOST = 4 };
#define MIB ((size_t)1 << 20)

typedef struct buffer {
  void *allocation;
  char *memory; /* aligned */
  attune_event *event;
} buffer;

typedef struct job {
  at_transfer *t;
  size_t block, blocks; /* bytes of one, and how many there are */
  int lanes;
  buffer buffers[LANES_MOST][2];
  pthread_mutex_t lock; /* of the stream, which one thread at a time may use, and of what follows */
  atomic_size_t failed; /* the first block that was not moved whole; `blocks`: none */
  size_t got;           /* bytes of it */
  int error;            /* errno, or 0: the file ends */
  attune_status status; /* not OK: something else failed, and this is the message */
  at_message message;
} job;

/* ---- buffers ---- */

static void close_buffer(const at_transfer *t, buffer *b) {
  if (b->allocation) {
    (void)attune_pinned_record_use(b->allocation, t->stream);
    (void)attune_pinned_free(b->allocation);
  }
  attune_event_destroy(b->event);
}

/* Room for a block, or for all where that is less. */
static attune_status open_buffer(const job *j, buffer *b) {
  static const attune_event_options options = {.no_timing = 1};
  const at_transfer *t = j->t;
  const size_t all = (size_t)(t->offset % AT_FILE_GRAIN) + t->bytes + AT_FILE_GRAIN;
  const size_t room = all < j->block ? all : j->block;
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

/* ---- blocks ---- */

typedef struct piece {
  size_t number, from, bytes; /* `from`: in memory */
  uint64_t offset;            /* in the file */
} piece;

static piece piece_of(const job *j, size_t number) {
  const at_transfer *t = j->t;
  const uint64_t begin = (t->offset / j->block + number) * j->block, end = begin + j->block;
  piece p = {.number = number, .offset = begin > t->offset ? begin : t->offset};
  p.from = (size_t)(p.offset - t->offset);
  const uint64_t room = end - p.offset;
  p.bytes = t->bytes - p.from < room ? t->bytes - p.from : (size_t)room;
  return p;
}

/* The first block counts: what came before it is all there. */
static void fail_at(job *j, const piece *p, size_t got, int error, attune_status status) {
  pthread_mutex_lock(&j->lock);
  if (p->number < j->failed) {
    j->failed = p->number;
    j->got = got;
    j->error = error;
    j->status = status;
    if (status != ATTUNE_OK) at_message_keep(&j->message);
  }
  pthread_mutex_unlock(&j->lock);
}

static attune_status wait_for(attune_event *event) {
  return event->device->backend->event_synchronize(event);
}

/* `bytes` of the piece, between the buffer and memory of the device. */
static attune_status copy(job *j, const piece *p, size_t bytes, buffer *b) {
  const at_transfer *t = j->t;
  const at_backend *backend = t->stream->device->backend;
  char *near = b->memory + p->offset % AT_FILE_GRAIN, *far = t->memory + p->from;
  pthread_mutex_lock(&j->lock);
  attune_status status = backend->copy(t->stream, t->saves ? near : far, t->saves ? far : near, bytes);
  if (status == ATTUNE_OK) status = backend->event_record(b->event, t->stream);
  pthread_mutex_unlock(&j->lock);
  return status;
}

/* A buffer is read into when the copy of what it had is done. */
static bool load_piece(job *j, const piece *p, buffer *b, bool used) {
  int error = 0;
  attune_status status = used ? wait_for(b->event) : ATTUNE_OK;
  size_t got = 0;
  if (status == ATTUNE_OK) got = at_file_read_block(j->t->file, b->memory, p->bytes, p->offset, &error);
  if (status == ATTUNE_OK && got > 0) status = copy(j, p, got, b);
  if (status != ATTUNE_OK) got = 0;
  if (got < p->bytes) fail_at(j, p, got, error, status);
  return got == p->bytes;
}

static bool write_piece(job *j, const piece *p, buffer *b) {
  int error = 0;
  const attune_status status = wait_for(b->event);
  size_t put = 0;
  if (status == ATTUNE_OK) put = at_file_write_block(j->t->file, b->memory, p->bytes, p->offset, &error);
  if (put < p->bytes) fail_at(j, p, put, error, status);
  return put == p->bytes;
}

/* ---- lanes ---- */

static void load_lane(job *j, int rank, int size) {
  bool good = true;
  int turn = 0;
  for (size_t k = (size_t)rank; k < j->failed && good; k += (size_t)size, turn++) {
    const piece p = piece_of(j, k);
    good = load_piece(j, &p, &j->buffers[rank][turn % 2], turn > 1);
  }
}

/* While a block is written the next one is copied. */
static void save_lane(job *j, int rank, int size) {
  bool good = true;
  int turn = 0;
  piece last = {0};
  for (size_t k = (size_t)rank; k < j->failed && good; k += (size_t)size, turn++) {
    const piece p = piece_of(j, k);
    const attune_status status = copy(j, &p, p.bytes, &j->buffers[rank][turn % 2]);
    if (turn > 0) good = write_piece(j, &last, &j->buffers[rank][(turn - 1) % 2]);
    if (status != ATTUNE_OK) fail_at(j, &p, 0, 0, status);
    if (status != ATTUNE_OK) return;
    last = p;
  }
  if (turn > 0 && good) (void)write_piece(j, &last, &j->buffers[rank][(turn - 1) % 2]);
}

static void run_lane(void *arg, const at_team *team) {
  job *j = arg;
  if (j->t->saves)
    save_lane(j, team->rank, team->size);
  else
    load_lane(j, team->rank, team->size);
}

/* A direct load or save is one thread's: large calls one after the other are what a disk is fastest with. What goes through
 * the system's cache is best still in the CPU's. What is read from there is cut so that each lane has a block for each of
 * its buffers. */
static size_t block_of(const at_transfer *t, int lanes) {
  if (at_file_is_direct(t->file)) return 8 * MIB;
  return t->saves || MIB * 2 * (size_t)lanes >= t->bytes ? MIB : 2 * MIB;
}

static void plan(job *j, at_transfer *t) {
  const int cpus = at_cpu_count();
  j->t = t;
  j->lanes = t->saves || at_file_is_direct(t->file) ? 1 : cpus < LANES_MOST ? cpus : LANES_MOST;
  j->block = block_of(t, j->lanes);
  j->blocks = (size_t)((t->offset + t->bytes - 1) / j->block - t->offset / j->block) + 1;
  if ((size_t)j->lanes > j->blocks) j->lanes = (int)j->blocks;
  j->failed = j->blocks;
}

static attune_status finish(job *j) {
  at_transfer *t = j->t;
  if (j->failed == j->blocks) {
    t->moved = t->bytes;
    return ATTUNE_OK;
  }
  t->moved = piece_of(j, j->failed).from + j->got;
  if (j->status == ATTUNE_OK) return at_file_fail_transfer(t, j->error);
  return at_fail(j->status, "%s", j->message.text);
}

attune_status at_file_move_blocks(at_transfer *t) {
  job j = {.lock = PTHREAD_MUTEX_INITIALIZER};
  attune_status status = ATTUNE_OK;
  plan(&j, t);
  for (int i = 0; i < 2 * j.lanes && status == ATTUNE_OK; i++) status = open_buffer(&j, &j.buffers[i / 2][i % 2]);
  if (status == ATTUNE_OK) {
    at_parallel(j.lanes, run_lane, &j);
    status = finish(&j);
  }
  at_message kept;
  at_message_keep(&kept);
  for (int i = 0; i < 2 * j.lanes; i++) close_buffer(t, &j.buffers[i / 2][i % 2]);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}
