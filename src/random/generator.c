/* SPDX-License-Identifier: Apache-2.0
 * generator.c: seed, offset and state of generators, and their part in graphs. */
#include "src/random/generator.h"

#include "src/process/fork.h"
#include "src/stream/capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define OFFSET_MAX INT64_MAX

struct attune_generator {
  pthread_mutex_t lock; /* guards all fields, and the increments of the graphs that the generator has joined */
  uint64_t seed, offset;
  attune_random_mode mode;
  int processors, threads;
  int references;         /* the program's and one for each graph */
  int captures;           /* under way, of graphs that it has joined */
  atomic_uint generation; /* at_fork_generation() of the process that made `lock` */
};

static pthread_mutex_t renewal = PTHREAD_MUTEX_INITIALIZER; /* guards renew(); held over fork */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void watch_fork(void) {
  static at_fork_watch watch = {.lock = &renewal};
  at_fork_watch_add(&watch);
}

/* In a child of fork the lock may be held by a thread that stayed in the parent: the first user makes it again. */
static void renew(attune_generator *generator, unsigned generation) {
  pthread_mutex_lock(&renewal);
  if (atomic_load(&generator->generation) != generation) {
    pthread_mutex_init(&generator->lock, NULL);
    atomic_store_explicit(&generator->generation, generation, memory_order_release);
  }
  pthread_mutex_unlock(&renewal);
}

static void lock(const attune_generator *constant) {
  attune_generator *generator = (attune_generator *)(uintptr_t)constant;
  const unsigned generation = at_fork_generation();
  if (AT_UNLIKELY(atomic_load_explicit(&generator->generation, memory_order_acquire) != generation))
    renew(generator, generation);
  pthread_mutex_lock(&generator->lock);
}

static void unlock(const attune_generator *generator) {
  pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&generator->lock);
}

static attune_status check(const attune_generator *generator, const void *pointer, const char *name) {
  AT_REQUIRE_AS(generator, "be a generator from attune_generator_create");
  if (!pointer) return AT_INVALID("%s is NULL; should point to memory", name);
  return ATTUNE_OK;
}

static attune_status check_offset(uint64_t offset) {
  if (offset % 4 == 0 && offset <= OFFSET_MAX) return ATTUNE_OK;
  return AT_INVALID("offset is %llu; should be a multiple of 4 below 2^63", (unsigned long long)offset);
}

/* Locks for a change; fails unlocked. */
static attune_status begin_change(attune_generator *generator) {
  AT_REQUIRE_AS(generator, "be a generator from attune_generator_create");
  lock(generator);
  if (generator->captures == 0) return ATTUNE_OK;
  unlock(generator);
  return at_fail(ATTUNE_CAPTURING,
                 "a graph that uses the generator is being captured; set the generator before or after the capture");
}

attune_status attune_generator_create(attune_generator **out, uint64_t seed) {
  AT_REQUIRE_AS(out, "point to a handle");
  *out = NULL;
  attune_generator *generator = calloc(1, sizeof *generator);
  if (!generator) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a generator");
  pthread_once(&fork_once, watch_fork);
  pthread_mutex_init(&generator->lock, NULL);
  atomic_init(&generator->generation, at_fork_generation());
  generator->seed = seed;
  generator->references = 1;
  *out = generator;
  return ATTUNE_OK;
}

static void drop(attune_generator *generator) {
  lock(generator);
  const int left = --generator->references;
  unlock(generator);
  if (left > 0) return;
  pthread_mutex_destroy(&generator->lock);
  free(generator);
}

void attune_generator_destroy(attune_generator *generator) {
  if (generator) drop(generator);
}

attune_status attune_generator_set_seed(attune_generator *generator, uint64_t seed) {
  AT_TRY(begin_change(generator));
  generator->seed = seed;
  generator->offset = 0;
  unlock(generator);
  return ATTUNE_OK;
}

attune_status attune_generator_get_seed(const attune_generator *generator, uint64_t *out) {
  AT_TRY(check(generator, out, "out"));
  lock(generator);
  *out = generator->seed;
  unlock(generator);
  return ATTUNE_OK;
}

attune_status attune_generator_set_offset(attune_generator *generator, uint64_t offset) {
  AT_TRY(check_offset(offset));
  AT_TRY(begin_change(generator));
  generator->offset = offset;
  unlock(generator);
  return ATTUNE_OK;
}

attune_status attune_generator_get_offset(const attune_generator *generator, uint64_t *out) {
  AT_TRY(check(generator, out, "out"));
  lock(generator);
  *out = generator->offset;
  unlock(generator);
  return ATTUNE_OK;
}

static attune_status fail_exhausted(uint64_t words, uint64_t offset) {
  return AT_INVALID("%llu more words at offset %llu exceed 2^63; set a new seed", (unsigned long long)words,
                    (unsigned long long)offset);
}

attune_status attune_generator_jump(attune_generator *generator, uint64_t words) {
  if (words % 4) return AT_INVALID("words is %llu; should be a multiple of 4", (unsigned long long)words);
  AT_TRY(begin_change(generator));
  const uint64_t offset = generator->offset;
  const bool fits = words <= OFFSET_MAX - offset;
  if (fits) generator->offset += words;
  unlock(generator);
  return fits ? ATTUNE_OK : fail_exhausted(words, offset);
}

attune_status attune_generator_set_mode(attune_generator *generator, attune_random_mode mode) {
  if ((unsigned)mode > ATTUNE_RANDOM_TORCH)
    return AT_INVALID("mode is %d; should be portable (0) or torch (1)", (int)mode);
  AT_TRY(begin_change(generator));
  generator->mode = mode;
  unlock(generator);
  return ATTUNE_OK;
}

attune_status attune_generator_get_mode(const attune_generator *generator, attune_random_mode *out) {
  AT_TRY(check(generator, out, "out"));
  lock(generator);
  *out = generator->mode;
  unlock(generator);
  return ATTUNE_OK;
}

attune_status attune_generator_set_torch_grid(attune_generator *generator, int processors, int threads) {
  const bool given = processors > 0 && processors <= 65536 && threads >= 256 && threads <= 65536;
  if (!given && (processors != 0 || threads != 0))
    return AT_INVALID("processors is %d, threads %d; should be 1 to 65536 and 256 to 65536, or both 0", processors,
                      threads);
  AT_TRY(begin_change(generator));
  generator->processors = processors;
  generator->threads = threads;
  unlock(generator);
  return ATTUNE_OK;
}

static void put64(unsigned char *out, uint64_t value) {
  for (int i = 0; i < 8; i++) out[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get64(const unsigned char *in) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value |= (uint64_t)in[i] << (8 * i);
  return value;
}

attune_status attune_generator_get_state(const attune_generator *generator, void *state, size_t bytes) {
  AT_TRY(check(generator, state, "state"));
  if (bytes < ATTUNE_GENERATOR_STATE_BYTES)
    return AT_INVALID("bytes is %zu; should be at least %d", bytes, ATTUNE_GENERATOR_STATE_BYTES);
  lock(generator);
  put64(state, generator->seed);
  put64((unsigned char *)state + 8, generator->offset);
  unlock(generator);
  return ATTUNE_OK;
}

attune_status attune_generator_set_state(attune_generator *generator, const void *state, size_t bytes) {
  AT_TRY(check(generator, state, "state"));
  if (bytes != 8 && bytes != ATTUNE_GENERATOR_STATE_BYTES)
    return AT_INVALID("bytes is %zu; should be 16 (seed and offset) or 8 (seed)", bytes);
  const uint64_t seed = get64(state), offset = bytes == 8 ? 0 : get64((const unsigned char *)state + 8);
  AT_TRY(check_offset(offset));
  AT_TRY(begin_change(generator));
  generator->seed = seed;
  generator->offset = offset;
  unlock(generator);
  return ATTUNE_OK;
}

void at_generator_look(attune_generator *generator, at_generator_view *out) {
  lock(generator);
  *out = (at_generator_view){generator->mode, generator->processors, generator->threads};
  unlock(generator);
}

static at_graph_generator *find_joined(const attune_generator *generator, const attune_stream *stream) {
  at_graph_generator *joined = stream->capture->generators;
  while (joined && joined->generator != generator) joined = joined->next;
  return joined;
}

attune_status at_generator_take(attune_generator *generator, attune_stream *stream, uint64_t words,
                                at_random_call *call) {
  at_graph_generator *joined = stream->capture ? find_joined(generator, stream) : NULL;
  if (!joined && (stream->capture || at_stream_capturing(stream)))
    return at_fail(ATTUNE_CAPTURING, "every replay would draw the same numbers; register the generator with the graph "
                                     "(attune_graph_register_generator)");
  lock(generator);
  uint64_t *position = joined ? &joined->increment : &generator->offset;
  const uint64_t offset = *position;
  const bool fits = words <= OFFSET_MAX - offset;
  if (fits) *position += words;
  call->seed = generator->seed;
  call->offset = offset;
  call->state = joined ? (const at_u64 *)joined->state : NULL;
  unlock(generator);
  return fits ? ATTUNE_OK : fail_exhausted(words, offset);
}

/* ---- graphs ---- */

attune_status at_generator_join(attune_generator *generator, attune_device *device, at_graph_generator *out) {
  *out = (at_graph_generator){.generator = generator, .device = device};
  AT_REQUIRE_AS(generator, "be a generator from attune_generator_create");
  AT_TRY(at_needs(device, random));
  AT_TRY(at_graph_state_take(&out->state, device));
  lock(generator);
  generator->references++;
  unlock(generator);
  return ATTUNE_OK;
}

/* The state goes to the device by value, in stream order: several replays may be under way. */
attune_status at_generator_replay(at_graph_generator *joined, attune_stream *stream) {
  attune_generator *generator = joined->generator;
  lock(generator);
  const uint64_t seed = generator->seed, offset = generator->offset;
  const bool fits = joined->increment <= OFFSET_MAX - offset;
  if (fits) generator->offset += joined->increment;
  unlock(generator);
  if (!fits) return fail_exhausted(joined->increment, offset);
  return joined->device->backend.random->state(stream, joined->state, seed, offset);
}

void at_generator_leave(at_graph_generator *joined) {
  if (joined->state) at_graph_state_give(joined->state);
  if (joined->state) drop(joined->generator);
  joined->state = NULL;
  joined->generator = NULL;
}

void at_generator_capturing(at_graph_generator *joined, int change) {
  lock(joined->generator);
  joined->generator->captures += change;
  unlock(joined->generator);
}
