/* SPDX-License-Identifier: Apache-2.0
 * operand_set.c: lays buffers out in one arena, fills them with random data.
 *
 * Random data is made once on the host (a prime number of elements, so that no row length divides it) and copied to the
 * first buffer of each dtype and range; device copies do the rest, which takes a memory-bandwidth's time and no kernel.
 *
 * Where operands lie moves a time by up to a fifth: a time taken at one placement does not hold at another. So a buffer
 * that is timed has a slot with slack; the whole slot is filled, and a placement is nothing but other pointers into it.
 */
#include "tuning/measure/operand_set.h"

#include <attune/memory.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/splitmix64.h"
#include "src/process/limit.h"

static const size_t COPY_PART = (size_t)64 << 20; /* a few hundredths of a second */

/* The slack of a slot, and what all slots of a set may have together: cold inputs of small problems have many. */
static const size_t PAGE = 4096;
static const size_t SLACK_MOST = (size_t)1 << 20, SLACK_LEAST = (size_t)1 << 12;
static const size_t ALL_SLACK_CUDA = (size_t)512 << 20, ALL_SLACK_HOST = (size_t)64 << 20;
#define SLOT_ALIGNMENT 4096u
#define SHIFT_PART 8u    /* a copy as a whole is shifted by up to this part of the slack */
#define SHIFT_GRAIN 512u /* in multiples of this, which no alignment class sees */
/* How often operands are held at once: to be timed, to be verified and, in the host's memory, as they came back, as
 * they were and by the reference. */
static const double HELD_CUDA = 2.0, HELD_HOST = 5.0;
static const double ALWAYS_TRIED = 64e6; /* bytes: not worth a look at what is free */
#define LEAST_REACH 512u                 /* the nearest of the distances that are drawn */

static size_t align_up(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

/* Where guarded buffer i starts in a copy that starts at `base`: guard, then exactly the alignment class; returns the
 * end. */
static size_t place_guarded(const at_buffer *buffer, size_t base, size_t *start) {
  *start = align_up(base, 256) + AT_GUARD_BYTES + (buffer->alignment < 256 ? buffer->alignment : 0);
  return *start + buffer->bytes + AT_GUARD_BYTES;
}

static size_t guarded_bytes(const at_buffer *buffers, int count) {
  size_t end = 0, start = 0;
  for (int i = 0; i < count; i++) end = place_guarded(&buffers[i], end, &start);
  return align_up(end, 256);
}

static size_t plain_bytes(const at_buffer *buffers, int count) {
  size_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += align_up(buffers[i].bytes, 256);
  return bytes;
}

static size_t slot_bytes(const at_operand_set *set, int buffer) {
  return align_up(set->buffers[buffer].bytes + set->slack + set->slack / SHIFT_PART, SLOT_ALIGNMENT);
}

attune_status at_operand_bytes(const at_op *op, const void *problem, size_t *out) {
  at_buffer buffers[AT_MAX_BUFFERS];
  int count = 0;
  const attune_status status = op->operands->buffers(problem, buffers, &count);
  if (status == ATTUNE_OK) *out = plain_bytes(buffers, count);
  return status;
}

/* --- is there room? --- */

#define BYTES_CHARS 16

static const char *bytes_text(char out[BYTES_CHARS], double bytes) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (; bytes >= 1000.0 && unit + 1 < AT_COUNT(units); unit++) bytes /= 1000.0;
  snprintf(out, BYTES_CHARS, "%.3g %s", bytes, units[unit]);
  return out;
}

/* Free memory, including what attune has cached; 0: not known. */
static double free_bytes(attune_device *device, double wanted) {
  uint64_t available = 0, all = 0;
  if (device->backend.memory->info(device, &available, &all) != ATTUNE_OK) return 0.0;
  if ((double)available >= wanted) return (double)available;
  (void)attune_memory_empty_cache(device);
  return device->backend.memory->info(device, &available, &all) == ATTUNE_OK ? (double)available : 0.0;
}

attune_status at_operand_room(attune_device *device, size_t operand_bytes) {
  const bool host = device->properties.kind == ATTUNE_DEVICE_HOST;
  const double need = (double)operand_bytes * (host ? HELD_HOST : HELD_CUDA),
               all = (double)device->properties.memory_bytes;
  char operands[BYTES_CHARS], needed[BYTES_CHARS], has[BYTES_CHARS];
  const bool fits = all <= 0.0 || need <= all;
  double left = all;
  if (fits && (!host || need < ALWAYS_TRIED)) return ATTUNE_OK;
  if (fits) {
    left = free_bytes(device, need);
    if (left <= 0.0 || need <= left) return ATTUNE_OK;
  }
  return at_fail(ATTUNE_OUT_OF_MEMORY,
                 "it is too large to be measured on %s: its operands are %s, measuring and verifying it needs about "
                 "%s, and %s %s; %s. Until it is measured, its calls run the default",
                 device->name, bytes_text(operands, (double)operand_bytes), bytes_text(needed, need),
                 fits ? "the free memory there is" : "the memory there is", bytes_text(has, left),
                 fits ? "free some, or tune it on a device with more"
                      : "tune it on a device with more, or tune a smaller problem");
}

/* --- placements --- */

static size_t draw(uint64_t *state, size_t count) {
  return (size_t)(at_splitmix64(state) % count);
}

/* A multiple of `grain` below a reach that is itself drawn, by powers of two from LEAST_REACH to the slack: near and
 * far are equally likely. */
static size_t draw_offset(const at_operand_set *set, uint64_t *state, size_t grain) {
  int powers = 1;
  while ((size_t)LEAST_REACH << powers <= set->slack) powers++;
  const size_t reach = (size_t)LEAST_REACH << draw(state, (size_t)powers);
  return draw(state, reach / grain) * grain;
}

/* How far each buffer is moved from its slot's start. */
static void draw_offsets(const at_operand_set *set, uint64_t *state, size_t offsets[AT_MAX_BUFFERS]) {
  const size_t best = (size_t)at_device_alignment(set->stream->device);
  size_t class = best;
  int exact = 0, at_class = 0;
  for (int i = 0; i < set->buffer_count; i++)
    if (set->buffers[i].alignment < class) class = set->buffers[i].alignment;
  for (int i = 0; i < set->buffer_count; i++) /* one of those that the class is of, each as likely */
    if (set->buffers[i].alignment <= class && draw(state, (size_t)++at_class) == 0) exact = i;
  const bool all_exact = draw(state, 2) == 0; /* most programs that are below the best class have all at one offset */
  const bool round = draw(state, all_exact && class < best ? 2 : 4) == 0;
  const size_t better = draw(state, 3); /* the best class: addresses of programs are multiples of more, too */
  for (int i = 0; i < set->buffer_count; i++) {
    const size_t own = set->buffers[i].alignment < best ? set->buffers[i].alignment : best;
    if (class == best)
      offsets[i] = round ? 0 : draw_offset(set, state, best << better);
    else if (i == exact || all_exact)
      offsets[i] = own + (round ? 0 : draw_offset(set, state, 2 * own));
    else
      offsets[i] = draw_offset(set, state, own);
  }
}

void at_operand_set_bind(const at_operand_set *set, int copy, const double *scalars, void *operands) {
  void *bound[AT_MAX_BUFFERS];
  memcpy(bound, set->pointers[copy], sizeof bound);
  for (int i = 0; set->on_host && i < set->buffer_count; i++)
    if (set->on_host[copy][i]) bound[i] = set->on_host[copy][i];
  set->op->operands->bind(set->problem, bound, scalars, operands);
}

/* The pointers of a buffer of them, in stream order. Nothing that was launched still reads those in host memory. */
static attune_status write_addresses(at_operand_set *set, int copy, int buffer) {
  const at_buffer *b = &set->buffers[buffer];
  const size_t count = b->bytes / sizeof(char *);
  const char *first = set->pointers[copy][b->address_of];
  const char **all = malloc(b->bytes);
  if (!all) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu pointers", count);
  for (size_t i = 0; i < count; i++) all[i] = first + i * b->address_step;
  attune_status status = attune_copy(set->stream, set->pointers[copy][buffer], all, b->bytes);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(set->stream);
  if (status == ATTUNE_OK && set->on_host && set->on_host[copy][buffer])
    memcpy(set->on_host[copy][buffer], all, b->bytes);
  free(all);
  return status;
}

static attune_status write_all_addresses(at_operand_set *set) {
  attune_status status = ATTUNE_OK;
  for (int copy = 0; copy < set->copies; copy++)
    for (int i = 0; i < set->buffer_count && status == ATTUNE_OK; i++)
      if (set->buffers[i].addresses) status = write_addresses(set, copy, i);
  return status;
}

static void place(at_operand_set *set, uint64_t seed) {
  size_t offsets[AT_MAX_BUFFERS] = {0};
  draw_offsets(set, &seed, offsets);
  for (int copy = 0; copy < set->copies; copy++) {
    size_t slot = (size_t)copy * set->stride;
    const size_t shift = draw(&seed, set->slack / SHIFT_PART / SHIFT_GRAIN) * SHIFT_GRAIN;
    for (int i = 0; i < set->buffer_count; i++) {
      set->pointers[copy][i] = set->arena + slot + shift + offsets[i];
      slot += slot_bytes(set, i);
    }
    at_operand_set_bind(set, copy, set->usual, at_operand_set_operands(set, copy));
  }
}

/* Where pointers cannot be written, those of the placement before stay, and the next launch fails with the device. */
void at_operand_set_place(at_operand_set *set, uint64_t seed) {
  if (!set->slack) return;
  place(set, seed);
  (void)write_all_addresses(set);
}

static void place_guards(at_operand_set *set) {
  size_t end = 0, start = 0;
  for (int i = 0; i < set->buffer_count; i++) {
    end = place_guarded(&set->buffers[i], end, &start);
    set->pointers[0][i] = set->arena + start;
  }
  at_operand_set_bind(set, 0, set->usual, set->operands);
}

/* --- contents --- */

/* In parts, for a limit may end it between two. */
static attune_status copy_parts(attune_stream *stream, char *to, const char *from, size_t bytes) {
  attune_status status = at_limit_look();
  for (size_t done = 0; status == ATTUNE_OK && done < bytes;) {
    const size_t part = bytes - done < COPY_PART ? bytes - done : COPY_PART;
    status = attune_copy(stream, to + done, from + done, part);
    done += part;
    if (status == ATTUNE_OK) status = at_limit_look();
  }
  return status;
}

/* Fills bytes with one buffer's numbers: the pool once from the host, then copies of what is there. */
static attune_status fill_bytes(at_operand_set *set, char *to, size_t bytes, const at_buffer *like, at_random *random,
                                size_t skip) {
  const void *pool = NULL;
  size_t pool_bytes = 0;
  attune_status status = at_random_data(random, like->dtype, like->range, &pool, &pool_bytes);
  size_t done = 0;
  if (status == ATTUNE_OK) skip = skip * attune_dtype_size(like->dtype) % pool_bytes;
  while (status == ATTUNE_OK && done < bytes && done < pool_bytes) { /* one turn of the pool, from `skip` */
    const size_t from = (skip + done) % pool_bytes;
    size_t chunk = pool_bytes - from;
    if (chunk > pool_bytes - done) chunk = pool_bytes - done;
    if (chunk > bytes - done) chunk = bytes - done;
    status = attune_copy(set->stream, to + done, (const char *)pool + from, chunk);
    done += chunk;
  }
  while (status == ATTUNE_OK && done < bytes) { /* then doubling */
    const size_t chunk = done < bytes - done ? done : bytes - done;
    status = copy_parts(set->stream, to + done, to, chunk);
    done += chunk;
  }
  return status;
}

static attune_status fill(at_operand_set *set, at_random *random, bool guarded) {
  attune_status status = ATTUNE_OK;
  char *slot = set->arena;
  if (guarded) status = attune_fill(set->stream, set->arena, AT_GUARD_BYTE, set->set_bytes);
  for (int i = 0; i < set->buffer_count && status == ATTUNE_OK; i++) {
    const size_t bytes = guarded ? set->buffers[i].bytes : slot_bytes(set, i);
    status =
        fill_bytes(set, guarded ? set->pointers[0][i] : slot, bytes, &set->buffers[i], random, (size_t)i * 1048583u);
    slot += bytes;
  }
  for (int copy = 1; copy < set->copies && status == ATTUNE_OK; copy++)
    status = copy_parts(set->stream, set->arena + (size_t)copy * set->stride, set->arena, set->stride);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(set->stream);
  return status;
}

/* How many copies with how much slack: the slack gives way to the copies, both to the bytes there are. */
static void size_up(at_operand_set *set, int copies, size_t most_bytes) {
  const bool host = set->stream->device->properties.kind == ATTUNE_DEVICE_HOST;
  size_t all = host ? ALL_SLACK_HOST : ALL_SLACK_CUDA;
  if (all > most_bytes / 4) all = most_bytes / 4;
  set->copies = copies < 1 ? 1 : copies > AT_MAX_COPIES ? AT_MAX_COPIES : copies;
  set->slack = SLACK_MOST;
  while (set->slack > SLACK_LEAST && set->slack * (size_t)(set->copies * set->buffer_count) > all) set->slack /= 2;
  set->set_bytes = plain_bytes(set->buffers, set->buffer_count);
  set->stride = 0;
  for (int i = 0; i < set->buffer_count; i++) set->stride += slot_bytes(set, i);
  while (set->copies > 1 && set->stride > most_bytes / (size_t)set->copies) set->copies--;
}

/* Memory as a program has it. attune's own on the host asks for huge pages, which a program's need not have: kernels
 * that step through memory by pages were measured up to 1.6 times as fast there, some of them alone. */
static attune_status take_arena(at_operand_set *set, bool guarded) {
  const size_t bytes = set->stride * (size_t)set->copies;
  void *arena = NULL;
  set->plain = !guarded && set->stream->device->properties.kind == ATTUNE_DEVICE_HOST;
  if (!set->plain) {
    const attune_status status = attune_alloc(&arena, set->stream, bytes);
    set->arena = arena;
    return status;
  }
  set->arena = bytes <= PTRDIFF_MAX - PAGE ? aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE) : NULL;
  if (!set->arena) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory on host for %zu bytes of operands", bytes);
  return ATTUNE_OK;
}

static void drop_arena(at_operand_set *set) {
  if (!set->plain) {
    if (set->arena) attune_free(set->arena, set->stream);
    return;
  }
  if (set->arena) (void)attune_stream_synchronize(set->stream); /* what was launched may still read it */
  free(set->arena);
}

/* Host memory for the buffers that launches want there, where the arena is the device's. */
static attune_status take_host_memory(at_operand_set *set) {
  bool wanted = false;
  for (int i = 0; i < set->buffer_count; i++) wanted = wanted || set->buffers[i].on_host;
  if (!wanted || set->stream->device->properties.kind == ATTUNE_DEVICE_HOST) return ATTUNE_OK;
  set->on_host = calloc((size_t)set->copies, sizeof *set->on_host);
  for (int copy = 0; set->on_host && copy < set->copies; copy++)
    for (int i = 0; i < set->buffer_count; i++) {
      if (!set->buffers[i].on_host) continue;
      set->on_host[copy][i] = calloc(1, set->buffers[i].bytes);
      if (!set->on_host[copy][i]) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for operands in host memory");
    }
  return set->on_host ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %d operand sets", set->copies);
}

static void drop_host_memory(at_operand_set *set) {
  if (!set->on_host) return;
  (void)attune_stream_synchronize(set->stream); /* what was launched may still read it */
  for (int copy = 0; copy < set->copies; copy++)
    for (int i = 0; i < set->buffer_count; i++) free(set->on_host[copy][i]);
  free(set->on_host);
}

attune_status at_operand_set_create(at_operand_set **out, const at_op *op, const void *problem, attune_stream *stream,
                                    at_random *random, int copies, size_t most_bytes, bool guarded) {
  *out = NULL;
  at_operand_set *set = calloc(1, sizeof *set);
  if (!set) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an operand set");
  set->op = op;
  set->problem = problem;
  set->stream = stream;
  attune_status status = op->operands->buffers(problem, set->buffers, &set->buffer_count);
  set->scalar_count = status == ATTUNE_OK && op->operands->scalars ? op->operands->scalars(problem, set->scalars) : 0;
  assert(set->buffer_count <= AT_MAX_BUFFERS && set->scalar_count <= AT_MAX_SCALARS);
  for (int i = 0; i < set->scalar_count; i++) set->usual[i] = set->scalars[i].usual;
  set->copies = 1;
  if (status == ATTUNE_OK && guarded)
    set->stride = set->set_bytes = guarded_bytes(set->buffers, set->buffer_count);
  else if (status == ATTUNE_OK)
    size_up(set, copies, most_bytes);
  if (status == ATTUNE_OK) status = take_arena(set, guarded);
  if (status == ATTUNE_OK) status = take_host_memory(set);
  set->pointers = calloc((size_t)set->copies, sizeof *set->pointers);
  set->operands_stride = (op->operands_bytes + 7) / 8 * 8;
  set->operands = calloc((size_t)set->copies, set->operands_stride);
  if (status == ATTUNE_OK && (!set->pointers || !set->operands))
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %d operand sets", set->copies);
  if (status == ATTUNE_OK && guarded) place_guards(set);
  if (status == ATTUNE_OK && !guarded) place(set, 0);
  if (status == ATTUNE_OK) status = fill(set, random, guarded);
  if (status == ATTUNE_OK) status = write_all_addresses(set);
  if (status != ATTUNE_OK) {
    at_operand_set_destroy(set);
    return status;
  }
  *out = set;
  return ATTUNE_OK;
}

void at_operand_set_destroy(at_operand_set *set) {
  if (!set) return;
  drop_host_memory(set);
  drop_arena(set);
  free(set->pointers);
  free(set->operands);
  free(set);
}
