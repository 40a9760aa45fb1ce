/* SPDX-License-Identifier: Apache-2.0
 * io_workers.c: loads and saves in blocks, through pinned buffers. A lane is a thread with two buffers that takes one
 * block after the other: while one is read, the copy of the other runs. Lanes do not wait for each other. The system's
 * cache is read by several of the pool's threads. A direct load has threads of its own, more than CPUs: they wait for
 * the disk, which wants several requests at a time, above all where the pages of a buffer lie scattered in memory, so
 * that a request is short. One writes: the system lets one thread at a time write to a file. */
#include "src/file/file.h"

#include <attune/pinned.h>

#include <pthread.h>

#include "src/host/threads.h"
#include "src/process/floating.h"

enum { LANES_MOST = 4, DIRECT_LANES_MOST = 8 };
#define MIB ((size_t)1 << 20)

typedef struct buffer {
  char *memory; /* aligned */
  attune_event *event;
} buffer;

typedef struct job {
  at_transfer *t;
  size_t block, blocks; /* bytes of one, and how many there are */
  int lanes, each;      /* how many, and the buffers of one: where there are no more blocks than lanes one is enough */
  bool waits;           /* for the disk: the lanes are threads of their own */
  void *allocation;     /* of all buffers: large ones have large pages, which the disk is faster with */
  buffer buffers[DIRECT_LANES_MOST][2];
  atomic_size_t next;   /* the first block that no lane took */
  pthread_mutex_t lock; /* of the stream, which one thread at a time may use, and of what follows */
  atomic_size_t failed; /* the first block that was not moved whole; `blocks`: none */
  size_t got;           /* bytes of it */
  int error;            /* errno, or 0: the file ends */
  attune_status status; /* not OK: something else failed, and this is the message */
  at_message message;
} job;

/* ---- buffers ---- */

static void close_buffers(job *j) {
  if (j->allocation) {
    (void)attune_pinned_record_use(j->allocation, j->t->stream);
    (void)attune_pinned_free(j->allocation);
  }
  for (int i = 0; i < 2 * j->lanes; i++) attune_event_destroy(j->buffers[i / 2][i % 2].event);
}

/* Room for a block, or for all where that is less; whole grains. */
static size_t room_of(const job *j) {
  const at_transfer *t = j->t;
  const size_t all = (size_t)(t->offset % AT_FILE_GRAIN) + t->bytes;
  const size_t room = t->bytes < j->block && all < j->block ? all : j->block;
  return (room + AT_FILE_GRAIN - 1) / AT_FILE_GRAIN * AT_FILE_GRAIN;
}

static attune_status allocate(job *j, size_t bytes) {
  attune_device *device = j->t->stream->device;
  attune_status status = attune_pinned_alloc(&j->allocation, device, bytes);
  if (status != ATTUNE_OK || (uintptr_t)j->allocation % AT_FILE_GRAIN == 0) return status;
  (void)attune_pinned_free(j->allocation);
  return attune_pinned_alloc(&j->allocation, device, bytes + AT_FILE_GRAIN);
}

static attune_status open_buffers(job *j) {
  static const attune_event_options options = {.no_timing = 1};
  const int count = j->each * j->lanes;
  const size_t room = room_of(j);
  attune_status status = allocate(j, room * (size_t)count);
  const size_t over = (uintptr_t)j->allocation % AT_FILE_GRAIN;
  for (int i = 0; i < count && status == ATTUNE_OK; i++) {
    buffer *b = &j->buffers[i / j->each][i % j->each];
    b->memory = (char *)j->allocation + (over ? AT_FILE_GRAIN - over : 0) + room * (size_t)i;
    status = attune_event_create(&b->event, j->t->stream->device, &options);
    if (status == ATTUNE_OK) b->event->unwatched = true;
  }
  return status;
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

/* The next block; false: there is none, or one before it failed. */
static bool take_piece(job *j, piece *out) {
  const size_t number = atomic_fetch_add(&j->next, 1);
  if (number >= j->failed) return false;
  *out = piece_of(j, number);
  return true;
}

/* The first block counts: what came before it is all there. */
static void fail_at(job *j, const piece *p, size_t got, int error, attune_status status) {
  pthread_mutex_lock(&j->lock);
  if (p->number < j->failed) {
    j->failed = p->number;
    j->got = got;
    j->error = error;
    j->status = status;
    if (status != ATTUNE_OK) j->message = at_message_keep();
  }
  pthread_mutex_unlock(&j->lock);
}

static attune_status wait_for(attune_event *event) {
  return event->device->backend.event->synchronize(event);
}

/* `bytes` of the piece, between the buffer and memory of the device. */
static attune_status copy(job *j, const piece *p, size_t bytes, buffer *b) {
  const at_transfer *t = j->t;
  const at_backend *backend = &t->stream->device->backend;
  char *near = b->memory + p->offset % AT_FILE_GRAIN, *far = t->memory + p->from;
  pthread_mutex_lock(&j->lock);
  attune_status status = backend->memory->copy(t->stream, t->saves ? near : far, t->saves ? far : near, bytes);
  if (status == ATTUNE_OK) status = backend->event->record(b->event, t->stream);
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

static void load_lane(job *j, int rank) {
  piece p;
  for (int turn = 0; take_piece(j, &p); turn++)
    if (!load_piece(j, &p, &j->buffers[rank][turn % j->each], turn >= j->each)) return;
}

/* While a block is written the next one is copied. */
static void save_lane(job *j, int rank) {
  bool good = true;
  int turn = 0;
  piece p, last = {0};
  for (; good && take_piece(j, &p); turn++) {
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
    save_lane(j, team->rank);
  else
    load_lane(j, team->rank);
}

typedef struct own_thread {
  job *j;
  pthread_t id;
  int rank;
} own_thread;

static void *run_thread(void *arg) {
  const own_thread *own = arg;
  run_lane(own->j, &(at_team){own->rank, own->j->lanes});
  return NULL;
}

/* The caller is the first. Where a thread cannot be had the others do its work. */
static void run_threads(job *j) {
  own_thread own[DIRECT_LANES_MOST] = {{.j = j}};
  int count = 1;
  for (; count < j->lanes; count++) {
    own[count] = (own_thread){.j = j, .rank = count};
    if (at_thread_start(&own[count].id, run_thread, &own[count]) != 0) break;
  }
  (void)run_thread(&own[0]);
  while (--count > 0) (void)pthread_join(own[count].id, NULL);
}

/* A direct save is one thread's, with large calls. What goes through the system's cache is best still in the CPU's.
 * What is read from there is cut so that each lane has a block for each of its buffers. All buffers of a call are at
 * most 16 MiB. */
static size_t block_of(const at_transfer *t, int lanes) {
  if (at_file_is_direct(t->file)) return t->saves ? 8 * MIB : MIB;
  return t->saves || MIB * 2 * (size_t)lanes >= t->bytes ? MIB : 2 * MIB;
}

static void plan(job *j, at_transfer *t) {
  const int cpus = at_cpu_count();
  j->t = t;
  j->waits = !t->saves && at_file_is_direct(t->file);
  j->lanes = j->waits ? DIRECT_LANES_MOST : t->saves ? 1 : cpus < LANES_MOST ? cpus : LANES_MOST;
  j->block = block_of(t, j->lanes);
  j->blocks = (size_t)((t->offset + t->bytes - 1) / j->block - t->offset / j->block) + 1;
  if ((size_t)j->lanes > j->blocks) j->lanes = (int)j->blocks;
  j->each = j->blocks > (size_t)j->lanes ? 2 : 1;
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
  plan(&j, t);
  attune_status status = open_buffers(&j);
  if (status == ATTUNE_OK) {
    if (j.waits)
      run_threads(&j);
    else
      at_parallel(j.lanes, run_lane, &j);
    status = finish(&j);
  }
  const at_message kept = at_message_keep();
  close_buffers(&j);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}
