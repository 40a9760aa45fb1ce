/* SPDX-License-Identifier: Apache-2.0
 * random_cuda.c: calls on CUDA: picks the kernel, compiled for just this kind of call, and launches it. */
#include "src/cuda/random/random_cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/cuda/context/state.h"
#include "src/cuda/jit/jit.h"
#include "src/process/vendor.h"
#include "src/random/torch.h"

#include "permutation_cu.h"
#include "philox_h.h"
#include "random_call_h.h"
#include "random_cu.h"
#include "random_samples_h.h"
#include "torch_cu.h"
#include "transforms_h.h"

#define THREADS 256
#define TABLE_THREADS 1024
#define TABLE_BYTES (2 * AT_SLICES * sizeof(uint16_t))
#define UNROLL 2       /* chunks a thread and tile */
#define LARGE_UNROLL 6 /* of large calls where the samples cost most: their latencies hide each other */
#define LARGE_COUNT ((uint64_t)1 << 24)
#define TABLE_UNROLL 4                  /* as in random.cu */
#define TABLE_COUNT ((uint64_t)1 << 22) /* elements from which the table is worth its making */
#define MACROS 8
#define MACRO_CHARS 24

typedef enum entry { FILL, FILL_BY_TABLE, TORCH, RANK, PERMUTE, STATE } entry;

static const char *const entry_names[] = {"at_random_fill", "at_random_fill_by_table", "at_random_torch",
                                          "at_random_rank", "at_random_permute",       "at_random_state"};

/* All that a kernel is compiled for. */
typedef struct variant {
  uint8_t entry, kind, type, wide, plain, aligned, in_graph, unroll;
} variant;

/* A loaded kernel and how many of its blocks a multiprocessor holds. Made once, kept for ever; the list only grows. */
typedef struct loaded {
  struct loaded *next;
  const attune_device *device;
  variant v;
  at_jit_kernel *kernel;
  int blocks;
} loaded;

static _Atomic(loaded *) list;

/* The texts, each after the headers that it needs. */
static struct texts { char *random, *torch, *permutation; /* constant after texts_once; NULL: no memory */ } texts;
static pthread_once_t texts_once = PTHREAD_ONCE_INIT;

static char *with_headers(const char *samples, const char *text) {
  const char *parts[] = {"#define AT_EMBEDDED 1\n", at_philox_h, at_transforms_h, at_random_call_h, samples, text};
  size_t size = 1;
  for (size_t i = 0; i < AT_COUNT(parts); i++) size += strlen(parts[i]);
  char *all = calloc(1, size);
  for (size_t i = 0; all && i < AT_COUNT(parts); i++) strcat(all, parts[i]);
  return all;
}

static void make_texts(void) {
  texts.random = with_headers(at_random_samples_h, at_random_cu);
  texts.torch = with_headers("", at_torch_cu);
  texts.permutation = with_headers("", at_permutation_cu);
}

static loaded *find(const attune_device *device, const variant *v) {
  loaded *at = atomic_load_explicit(&list, memory_order_acquire);
  while (at && (at->device != device || memcmp(&at->v, v, sizeof *v) != 0)) at = at->next;
  return at;
}

static void define(char macros[MACROS][MACRO_CHARS], const variant *v) {
  const struct {
    const char *name;
    int value;
  } all[] = {{"KIND", v->kind},       {"TYPE", v->type},         {"WIDE", v->wide},    {"PLAIN", v->plain},
             {"ALIGNED", v->aligned}, {"IN_GRAPH", v->in_graph}, {"UNROLL", v->unroll}};
  for (size_t i = 0; i < AT_COUNT(all); i++) {
    size_t at = 0;
    (void)at_append(macros[i], MACRO_CHARS, &at, "%s=%d", all[i].name, all[i].value);
  }
}

static attune_status compile(at_jit_kernel **out, attune_device *device, const variant *v) {
  char macros[MACROS][MACRO_CHARS] = {""};
  const char *names[MACROS] = {NULL};
  pthread_once(&texts_once, make_texts);
  define(macros, v);
  for (int i = 0; i < MACROS - 1; i++) names[i] = macros[i];
  at_kernel_source source = {
      .file = "random.cu", .text = texts.random, .entry = entry_names[v->entry], .macros = names};
  if (v->entry == TORCH) source.file = "torch.cu", source.text = texts.torch;
  if (v->entry == RANK || v->entry == PERMUTE) source.file = "permutation.cu", source.text = texts.permutation;
  if (!source.text) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the text of a kernel");
  return at_jit_get(out, device, &source);
}

static at_jit_config config_of(uint64_t blocks, unsigned threads, size_t shared) {
  return (at_jit_config){.grid = {(unsigned)blocks}, .block = {threads}, .shared_bytes = (unsigned)shared};
}

/* The device is current. */
static attune_status find_blocks(int *out, attune_device *device, at_jit_kernel *kernel, bool table) {
  const at_jit_config config = config_of(1, table ? TABLE_THREADS : THREADS, table ? TABLE_BYTES : 0);
  AT_TRY(at_jit_check(kernel, &config));
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(out, (const void *)at_jit_native(kernel),
                                                                          (int)config.block[0], config.shared_bytes);
  return at_cuda_check(device, error, "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}

/* The device is current. */
static attune_status make(const loaded **out, attune_device *device, const variant *v) {
  at_jit_kernel *kernel = NULL;
  int blocks = 0;
  AT_TRY(compile(&kernel, device, v));
  attune_status status = find_blocks(&blocks, device, kernel, v->entry == FILL_BY_TABLE);
  loaded *made = status == ATTUNE_OK ? malloc(sizeof *made) : NULL;
  if (!made) {
    at_jit_release(kernel);
    return status != ATTUNE_OK ? status : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a kernel");
  }
  at_jit_keep(kernel);
  at_jit_release(kernel);
  *made = (loaded){.device = device, .v = *v, .kernel = kernel, .blocks = blocks > 0 ? blocks : 1};
  made->next = atomic_load_explicit(&list, memory_order_acquire);
  while (!atomic_compare_exchange_weak_explicit(&list, &made->next, made, memory_order_acq_rel, memory_order_acquire)) {
  }
  *out = made;
  return ATTUNE_OK;
}

/* The device is current. */
static attune_status load(const loaded **out, attune_device *device, const variant *v) {
  *out = find(device, v);
  if (AT_LIKELY(*out != NULL)) return ATTUNE_OK;
  enum cudaStreamCaptureMode mode; /* no capture of another thread breaks by it */
  at_cuda_relax(&mode);
  const attune_status status = make(out, device, v);
  at_cuda_restore(mode);
  return status;
}

static attune_status launch(attune_stream *stream, const loaded *kernel, uint64_t blocks, unsigned threads,
                            size_t shared, const void *argument) {
  const at_jit_config config = config_of(blocks, threads, shared);
  return at_jit_launch(kernel->kernel, &config, argument, stream);
}

/* A grid that is resident at once and steps over `units`, one a thread and step. */
static uint64_t grid_of(const attune_device *device, const loaded *kernel, uint64_t units, unsigned threads) {
  const uint64_t most = (uint64_t)device->properties.processors * (uint64_t)kernel->blocks,
                 needed = units / threads + (units % threads != 0);
  return needed < 1 ? 1 : needed < most ? needed : most;
}

/* The samples cost more time than the memory: a grid that is resident at once and steps over the tiles. */
static bool is_resident(const at_random_call *call) {
  return call->distribution == AT_NORMAL || call->distribution == AT_LOG_NORMAL || call->distribution == AT_EXPONENTIAL;
}

/* As random.cu divides the work: if not resident, a block a tile and one for the rest. */
static uint64_t fill_grid(const attune_device *device, const loaded *kernel, const at_random_call *call,
                          uint64_t tile_chunks) {
  const uint64_t elements = 16 / attune_dtype_size((attune_dtype)call->dtype) * tile_chunks,
                 tiles = call->count / elements, rest = call->count % elements != 0,
                 most = (uint64_t)device->properties.processors * (uint64_t)kernel->blocks;
  if (!is_resident(call)) return tiles + rest;
  return tiles < 1 ? 1 : tiles < most ? tiles : most;
}

static bool is_half(int type) {
  return type == AT_F16 || type == AT_BF16;
}

/* Kernels with the parameters that most calls have are a little faster. */
static bool is_plain(const at_random_call *call) {
  if (call->distribution == AT_UNIFORM && call->dtype != AT_F64) return call->f[0] == 0.0f && call->f[2] == 1.0f;
  return (call->distribution == AT_NORMAL || call->distribution == AT_LOG_NORMAL) && call->dtype != AT_F64 &&
         call->f[0] == 0.0f && call->f[1] == 1.0f;
}

static bool has_table_room(attune_device *device) {
  int bytes = 0;
  const cudaError_t error = cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->ordinal);
  return at_cuda_check(device, error, "cudaDeviceGetAttribute") == ATTUNE_OK && (size_t)bytes >= TABLE_BYTES;
}

static unsigned unroll_of(const at_random_call *call) {
  if (!is_resident(call) || call->dtype == AT_F64 || call->count < LARGE_COUNT) return UNROLL;
  return is_half(call->dtype) ? LARGE_UNROLL / 2 : LARGE_UNROLL; /* a chunk of halves takes two Philox blocks */
}

static attune_status run_fill(attune_stream *stream, const at_random_call *call) {
  attune_device *device = stream->device;
  const loaded *kernel = NULL;
  variant v = {.entry = FILL,
               .kind = (uint8_t)call->distribution,
               .type = (uint8_t)call->dtype,
               .plain = is_plain(call),
               .in_graph = call->state != NULL};
  v.wide = at_random_wide(call->distribution, call->dtype, call->range) != 0;
  v.aligned = (uintptr_t)call->out % 16 == 0;
  v.unroll = (uint8_t)unroll_of(call);
  const bool table =
      is_half(call->dtype) && call->distribution == AT_NORMAL && call->count >= TABLE_COUNT && has_table_room(device);
  if (table) v.entry = FILL_BY_TABLE;
  AT_TRY(load(&kernel, device, &v));
  const unsigned threads = table ? TABLE_THREADS : THREADS, tile = threads * (table ? TABLE_UNROLL : v.unroll);
  const at_fill_call argument = {.call = *call, .keys = at_philox_key(call->seed)};
  return launch(stream, kernel, fill_grid(device, kernel, call, tile), threads, table ? TABLE_BYTES : 0, &argument);
}

static attune_status run_torch(attune_stream *stream, const at_random_call *call) {
  const loaded *kernel = NULL;
  const variant v = {.entry = TORCH,
                     .kind = (uint8_t)call->distribution,
                     .type = (uint8_t)call->dtype,
                     .unroll = (uint8_t)at_torch_unroll(call)};
  attune_status status = load(&kernel, stream->device, &v);
  return status == ATTUNE_OK ? launch(stream, kernel, call->threads / AT_TORCH_BLOCK, AT_TORCH_BLOCK, 0, call) : status;
}

static attune_status run_permutation(attune_stream *stream, const at_random_call *call) {
  const loaded *kernel = NULL;
  const bool rank = call->count <= AT_RANK_COUNT;
  const variant v = {.entry = rank ? RANK : PERMUTE, .kind = AT_PERMUTATION, .type = (uint8_t)call->dtype};
  AT_TRY(load(&kernel, stream->device, &v));
  if (rank) return launch(stream, kernel, 1, AT_RANK_COUNT, 0, call);
  return launch(stream, kernel, grid_of(stream->device, kernel, call->count, THREADS), THREADS, 0, call);
}

attune_status at_random_run_cuda(attune_stream *stream, const at_random_call *call) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  if (call->distribution == AT_PERMUTATION)
    status = run_permutation(stream, call);
  else
    status = call->threads ? run_torch(stream, call) : run_fill(stream, call);
  at_cuda_leave(&scope);
  return status;
}

typedef struct state_write {
  uint64_t *state, seed, offset;
} state_write;

/* By value in a kernel's argument: nothing to keep until the work has run. */
attune_status at_random_state_cuda(attune_stream *stream, uint64_t *state, uint64_t seed, uint64_t offset) {
  const loaded *kernel = NULL;
  const variant v = {.entry = STATE, .kind = AT_UNIFORM, .type = AT_F32};
  const state_write write = {state, seed, offset};
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter(&scope, stream->device));
  attune_status status = load(&kernel, stream->device, &v);
  if (status == ATTUNE_OK) status = launch(stream, kernel, 1, 1, 0, &write);
  at_cuda_leave(&scope);
  return status;
}

int at_random_threads_per_processor_cuda(const attune_device *device) {
  int threads = 0;
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return 2048;
  if (cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device->ordinal) != cudaSuccess)
    (void)cudaGetLastError();
  at_vendor_leave();
  return threads > 0 ? threads : 2048;
}
