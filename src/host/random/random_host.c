/* SPDX-License-Identifier: Apache-2.0
 * random_host.c: calls on the host: in stream order, large ones by several threads. */
#include "src/host/random/random_host.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/host.h"
#include "src/host/random/fill.h"
#include "src/host/threads.h"
#include "src/random/torch.h"

#define THREAD_BYTES ((size_t)256 << 10) /* less is not worth another thread */

_Static_assert(sizeof(at_random_call) <= AT_HOST_ARGS_BYTES, "a call travels by value");

static uint64_t divide_up(uint64_t a, uint64_t b) {
  return a / b + (a % b != 0);
}

/* One thread's share of `units`, in whole groups of 16: first and count. */
static uint64_t share(const at_team *team, uint64_t units, uint64_t *count) {
  const uint64_t each = divide_up(divide_up(units, (uint64_t)team->size), 16) * 16, first = each * (uint64_t)team->rank;
  *count = first >= units ? 0 : units - first < each ? units - first : each;
  return first;
}

/* Whole blocks go to memory directly; of the last one the part that is asked for is copied. */
static void fill_share(void *arg, const at_team *team) {
  const at_random_call *call = arg;
  const uint64_t each = at_random_per_block(call->distribution, call->dtype, call->range),
                 size = attune_dtype_size((attune_dtype)call->dtype);
  const uint64_t whole = call->count / each, rest = call->count % each;
  uint64_t count;
  const uint64_t first = share(team, whole, &count);
  char *out = call->out;
  if (count > 0) at_fill_best()->fill(call, first, count, out + first * each * size);
  if (rest == 0 || team->rank != 0) return;
  _Alignas(16) char last[32];
  at_fill_best()->fill(call, whole, 1, last);
  memcpy(out + whole * each * size, last, rest * size);
}

static void torch_share(void *arg, const at_team *team) {
  const at_random_call *call = arg;
  const uint64_t per_pass = call->threads * (uint64_t)at_torch_unroll(call);
  uint64_t count;
  const uint64_t first = share(team, divide_up(call->count, per_pass) * call->threads, &count);
  at_torch_fill_host(call, first, count);
}

static void put_index(const at_random_call *call, uint64_t i, uint64_t value) {
  if (call->dtype == AT_I32)
    ((int32_t *)call->out)[i] = (int32_t)value;
  else
    ((int64_t *)call->out)[i] = (int64_t)value;
}

typedef struct permutation {
  const at_random_call *call;
  uint64_t keys[AT_PERMUTATION_ROUNDS];
} permutation;

static void permute_share(void *arg, const at_team *team) {
  const permutation *p = arg;
  const int bits = at_permutation_bits(p->call->count);
  uint64_t count;
  const uint64_t first = share(team, p->call->count, &count);
  for (uint64_t i = first; i < first + count; i++) put_index(p->call, i, at_permute(i, p->call->count, bits, p->keys));
}

typedef struct ranked {
  uint64_t key, index;
} ranked;

static int by_key(const void *x, const void *y) {
  const ranked *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

/* Keys are 64-bit samples; the element that comes k-th goes to place k. */
static void rank_all(const at_random_call *call) {
  ranked all[AT_RANK_COUNT];
  for (uint64_t i = 0; i < call->count; i++) {
    const at_philox_block block = at_philox(call->seed, call->offset / 4 + i / 2, 0);
    all[i] = (ranked){at_join64(block.w[2 * (i % 2)], block.w[2 * (i % 2) + 1]), i};
  }
  qsort(all, call->count, sizeof *all, by_key);
  for (uint64_t k = 0; k < call->count; k++) put_index(call, k, all[k].index);
}

static int wanted_threads(const at_random_call *call) {
  const uint64_t most = (uint64_t)at_cpu_count(), bytes = call->count * attune_dtype_size((attune_dtype)call->dtype);
  const uint64_t useful = bytes / THREAD_BYTES;
  return useful <= 1 ? 1 : (int)(useful < most ? useful : most);
}

static void run_call(const void *args) {
  at_random_call call = *(const at_random_call *)args;
  if (call.state) {
    call.seed = call.state[0];
    call.offset += call.state[1];
  }
  const int threads = wanted_threads(&call);
  if (call.distribution != AT_PERMUTATION) {
    at_parallel(threads, call.threads ? torch_share : fill_share, &call);
  } else if (call.count <= AT_RANK_COUNT) {
    rank_all(&call);
  } else {
    permutation p = {.call = &call};
    at_u32 words[AT_PERMUTATION_WORDS];
    at_fill_best()->philox(words, call.seed, call.offset / 4, 0, AT_PERMUTATION_WORDS / 4);
    for (int i = 0; i < AT_PERMUTATION_ROUNDS; i++) p.keys[i] = at_join64(words[2 * i], words[2 * i + 1]);
    at_parallel(threads, permute_share, &p);
  }
}

attune_status at_random_run_host(attune_stream *stream, const at_random_call *call) {
  return at_host_submit(stream, run_call, call, sizeof *call);
}

typedef struct state_write {
  uint64_t *state, seed, offset;
} state_write;

static void write_state(const void *args) {
  const state_write *w = args;
  w->state[0] = w->seed;
  w->state[1] = w->offset;
}

attune_status at_random_state_host(attune_stream *stream, uint64_t *state, uint64_t seed, uint64_t offset) {
  const state_write w = {state, seed, offset};
  return at_host_submit(stream, write_state, &w, sizeof w);
}
