/* SPDX-License-Identifier: Apache-2.0
 * gemm_on_host.h: the PTX of kernel.cuh as C++ of the host, for a test that compiles GEMM kernels with it and runs
 * them. A thread is a fiber; barriers of warps, teams, blocks and clusters wait for whom they should and nobody else.
 * Copies into shared memory come when they are waited for, not before. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#include "src/base/float8.h"
#include "tests/support/cuda_on_host.h"

#undef __shared__
#undef int64_t
#undef uint64_t

enum { HOST_THREADS = 2048, HOST_STACK = 65536, HOST_ROOM = 232448, HOST_RANKS = 8 };

struct host_barrier {
  unsigned come, generation;
};
struct host_copy {
  char *to;
  const char *from;
  int bytes, valid;
};

/* Copies that a thread starts before it arrives at a barrier: they complete when the barrier is waited for. */
struct host_coming {
  unsigned long long *barrier;
  std::vector<host_copy> copies;
};

struct host_thread {
  ucontext_t context;
  jmp_buf place; /* once begun: without the system calls of swapcontext */
  bool begun;
  char *stack;
  bool done;
  unsigned generation;   /* of the cluster's barrier, when it arrived */
  bool met;              /* knows that the others of the cluster have begun */
  unsigned rank, thread; /* block of the cluster, thread of the block */
  std::vector<std::vector<host_copy>> groups;
  std::vector<host_copy> open, ring;
};

static host_thread host_threads[HOST_THREADS];
static host_thread *host_me;
static ucontext_t host_main;
static jmp_buf host_back;
static unsigned host_count, host_block, host_ranks;
static uint4 host_rooms[HOST_RANKS][HOST_ROOM / 16];
static host_barrier host_warps[HOST_THREADS / 32], host_teams[HOST_RANKS][16], host_blocks[HOST_RANKS], host_cluster,
    host_begun;
static unsigned long long host_slots[HOST_THREADS][8]; /* what a lane shows the others of its warp */
static std::vector<host_coming> host_coming_copies;
static place host_first; /* block */
static void (*host_body)(const void *);
static const void *host_argument;

#define at_room host_rooms[host_me->rank]

static void host_yield() {
  if (_setjmp(host_me->place) == 0) _longjmp(host_back, 1);
}

static void host_wait(host_barrier *b, unsigned count) {
  const unsigned generation = b->generation;
  if (++b->come == count) {
    b->come = 0;
    b->generation++;
    return;
  }
  while (b->generation == generation) host_yield();
}

static unsigned host_index() {
  return host_me->rank * host_block + host_me->thread;
}
static void host_warp_wait() {
  host_wait(&host_warps[host_index() / 32], 32);
}
static void host_block_wait() {
  host_wait(&host_blocks[host_me->rank], host_block);
}
#define __syncthreads host_block_wait
#define __syncwarp host_warp_wait
static void at_cluster_wait() {
  host_wait(&host_cluster, host_block * host_ranks);
  host_me->met = true;
}
/* The second step waits for those that take the first: a barrier like the other. */
static void at_cluster_arrive() {
  host_me->generation = host_begun.generation;
  if (++host_begun.come == host_block * host_ranks) host_begun.come = 0, host_begun.generation++;
}
static void at_cluster_await() {
  while (host_begun.generation == host_me->generation) host_yield();
  host_me->met = true;
}
template <int THREADS_> static void at_team_wait(int team) {
  if (THREADS_ == 32)
    host_warp_wait();
  else
    host_wait(&host_teams[host_me->rank][team], THREADS_);
}

template <class T> static T host_of_lane(T x, unsigned lane) {
  T y;
  memcpy(host_slots[host_index()], &x, sizeof x);
  host_warp_wait();
  memcpy(&y, host_slots[host_index() - host_me->thread % 32 + lane], sizeof y);
  host_warp_wait();
  return y;
}
template <class T> static T __shfl_xor_sync(unsigned, T x, int far) {
  return host_of_lane(x, (host_me->thread % 32) ^ (unsigned)far);
}
template <class T> static T __shfl_sync(unsigned, T x, int lane) {
  return host_of_lane(x, (unsigned)lane);
}

template <class T> static T *host_there(const T *p, unsigned rank) {
  if (!host_me->met) abort();
  return (T *)((char *)host_rooms[rank] + ((const char *)p - (const char *)host_rooms[host_me->rank]));
}
template <class T> static T at_of_block(const T *p, unsigned rank) {
  return *host_there(p, rank);
}

/* An inbox counts the bytes that are still to come. */
static void at_inbox_open(unsigned long long *inbox, int bytes) {
  *inbox = (unsigned long long)bytes;
}
static void at_send(void *to, const uint4 &x, unsigned long long *inbox, unsigned rank) {
  if ((uintptr_t)to % 16) abort();
  *host_there((uint4 *)to, rank) = x;
  *host_there(inbox, rank) -= 16;
}
static void at_inbox_wait(unsigned long long *inbox) {
  while (*inbox != 0) host_yield();
}

/* A barrier: arrivals of a phase, those still to come, the phase's parity. */
struct host_phases {
  unsigned short arrivals, left;
  unsigned char parity, started;
};
static void at_barrier_start(unsigned long long *barrier, int arrivals) {
  *(host_phases *)barrier = host_phases{(unsigned short)arrivals, (unsigned short)arrivals, 0, 1};
}
static void at_barrier_arrive(unsigned long long *barrier) {
  host_phases *b = (host_phases *)barrier;
  if (b->started != 1 || b->left == 0) abort();
  if (--b->left > 0) return;
  b->left = b->arrivals;
  b->parity ^= 1;
}
template <bool AGAIN_> static void at_ring_copy(char *to, const char *from) {
  if ((uintptr_t)to % 16 || (uintptr_t)from % 16) abort();
  memset(to, 0xff, 16); /* whoever still reads what was there has lost it */
  host_me->ring.push_back(host_copy{to, from, 16, 16});
}
static void at_barrier_arrive_with_copies(unsigned long long *barrier) {
  host_coming_copies.push_back(host_coming{barrier, host_me->ring});
  host_me->ring.clear();
}
/* Copies come one thread's after the other, the last ordered first. */
static void at_barrier_wait(unsigned long long *barrier, int parity) {
  const host_phases *b = (const host_phases *)barrier;
  if (b->started != 1) abort();
  while (b->parity == parity) {
    size_t i = host_coming_copies.size();
    while (i > 0 && host_coming_copies[i - 1].barrier != barrier) i--;
    if (i == 0) { /* others have not arrived yet */
      host_yield();
      continue;
    }
    for (const host_copy &c : host_coming_copies[i - 1].copies) memcpy(c.to, c.from, (size_t)c.bytes);
    host_coming_copies.erase(host_coming_copies.begin() + (long)(i - 1));
    at_barrier_arrive(barrier);
  }
}
static void at_ring_copy_scale(char *to, const float *from) {
  if ((uintptr_t)to % 4 || (uintptr_t)from % 4) abort();
  memset(to, 0xff, 4);
  host_me->ring.push_back(host_copy{to, (const char *)from, 4, 4});
}
static void at_early_line(const char *p) {
  static volatile char sink;
  sink = *p; /* an operand's */
}

template <class T> static void at_pack_of_block(T *out, const T *p, unsigned rank) {
  if ((uintptr_t)p % 16) abort();
  for (size_t i = 0; i < 16 / sizeof(T); i++) out[i] = at_of_block(p + i, rank);
}

static void at_begin() {}
static void at_let_next() {}
static void at_wait_for_last() {}
static void at_wait_for_pointers() {}
static void at_early(const char *p, int bytes) {
  if ((uintptr_t)p % 16 || bytes <= 0 || bytes % 16) abort();
  static volatile char sink;
  sink = p[0], sink = p[bytes - 1]; /* all of it is the operand's */
}

template <int BYTES> static void at_copy(char *to, const char *from, int valid) {
  if ((uintptr_t)to % BYTES || (valid && (uintptr_t)from % BYTES)) abort();
  if (BYTES == 2)
    memset(to, 0, 2), memcpy(to, from, (size_t)valid);
  else
    host_me->open.push_back(host_copy{to, from, BYTES, valid});
}
template <int BYTES> static void at_copy_again(char *to, const char *from, int valid) {
  at_copy<BYTES>(to, from, valid);
}
static void at_copies_commit() {
  host_me->groups.push_back(host_me->open);
  host_me->open.clear();
}
template <int LATER> static void at_copies_wait() {
  while (host_me->groups.size() > LATER) {
    for (const host_copy &c : host_me->groups.front()) {
      memset(c.to, 0, (size_t)c.bytes);
      memcpy(c.to, c.from, (size_t)c.valid);
    }
    host_me->groups.erase(host_me->groups.begin());
  }
}

static uint4 at_stream16(const char *p) {
  if ((uintptr_t)p % 16) abort();
  return *(const uint4 *)p;
}

static float at_from_f16(unsigned short x) {
  return at_f16_to_f32(x);
}
static float at_from_bf16(unsigned short x) {
  return at_bf16_to_f32(x);
}
static unsigned short at_to_f16(float x) {
  return at_f64_to_f16(x);
}
static unsigned short at_to_bf16(float x) {
  return at_f64_to_bf16(x);
}

static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (bits & 31));
}

/* Lane 8 j + r shows where row r of matrix j of COUNT begins. */
template <unsigned COUNT> static void host_matrices(unsigned *out, const char *p, bool turned) {
  const unsigned lane = host_me->thread % 32, first = host_index() - lane;
  if (lane < 8 * COUNT && (uintptr_t)p % 16) abort();
  host_slots[host_index()][0] = (unsigned long long)(uintptr_t)p;
  host_warp_wait();
  for (unsigned j = 0; j < COUNT; j++)
    for (unsigned h = 0; h < 2; h++) {
      const unsigned row = turned ? lane % 4 * 2 + h : lane / 4, col = turned ? lane / 4 : lane % 4 * 2 + h;
      const unsigned short *line = (const unsigned short *)(uintptr_t)host_slots[first + 8 * j + row][0];
      memcpy((char *)&out[j] + 2 * h, &line[col], 2);
    }
  host_warp_wait();
}
static void at_matrices(unsigned out[4], const char *p) {
  host_matrices<4>(out, p, false);
}
static void at_matrices_turned(unsigned out[4], const char *p) {
  host_matrices<4>(out, p, true);
}
static void at_matrices_two(unsigned out[2], const char *p) {
  host_matrices<2>(out, p, false);
}
static void at_matrices_two_turned(unsigned out[2], const char *p) {
  host_matrices<2>(out, p, true);
}

static float host_half(unsigned long long word, unsigned h, bool bf16) {
  const unsigned short x = (unsigned short)(word >> 16 * h);
  return bf16 ? at_bf16_to_f32(x) : at_f16_to_f32(x);
}

static void host_mma16(float c[4], const unsigned x[4], unsigned y0, unsigned y1, bool bf16) {
  const unsigned lane = host_me->thread % 32, first = host_index() - lane;
  for (int i = 0; i < 4; i++) host_slots[host_index()][i] = x[i];
  host_slots[host_index()][4] = y0;
  host_slots[host_index()][5] = y1;
  host_warp_wait();
  for (unsigned e = 0; e < 4; e++) {
    const unsigned row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 16; k++) {
      const unsigned long long *a = host_slots[first + row % 8 * 4 + k % 8 / 2],
                               *b = host_slots[first + col * 4 + k % 8 / 2];
      c[e] += host_half(a[row / 8 + k / 8 * 2], k % 2, bf16) * host_half(b[4 + k / 8], k % 2, bf16);
    }
  }
  host_warp_wait();
}
/* Steps 2 t, 2 t + 1 of lane 4 g + t. */
static double at_rounded(double x) {
  return x;
}
static float at_rounded(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & ~0x1fffu;
  memcpy(&x, &bits, 4);
  return x;
}
template <class T> static void at_mma8(T c[4], const T x[2][2], const T y[2]) {
  const unsigned lane = host_me->thread % 32, first = host_index() - lane;
  for (int i = 0; i < 6; i++) memcpy(&host_slots[host_index()][i], i < 4 ? &x[i / 2][i % 2] : &y[i - 4], sizeof(T));
  host_warp_wait();
  for (unsigned e = 0; e < 4; e++) {
    const unsigned row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 8; k++) {
      T a, b;
      memcpy(&a, &host_slots[first + row % 8 * 4 + k / 2][row / 8 * 2 + k % 2], sizeof(T));
      memcpy(&b, &host_slots[first + col * 4 + k / 2][4 + k % 2], sizeof(T));
      c[e] += a * b;
    }
  }
  host_warp_wait();
}

/* Two f8 of a word, as f16. DTYPE as in types.h. */
template <int DTYPE> static unsigned host_two_halves(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 2; i++) {
    const unsigned char byte = (unsigned char)(x >> 8 * i);
    y |= (unsigned)at_f64_to_f16(DTYPE == 14 ? at_f8e4m3_to_f32(byte) : at_f8e5m2_to_f32(byte)) << 16 * i;
  }
  return y;
}
template <int DTYPE> static uint2 at_to_halves(unsigned x) {
  return make_uint2(host_two_halves<DTYPE>(x), host_two_halves<DTYPE>(x >> 16));
}
/* Element k of 32 lies in byte k % 4 of lane 4 g + k / 4 % 4. */
static void at_mma_i8(int c[4], const unsigned x[4], unsigned y0, unsigned y1) {
  const unsigned lane = host_me->thread % 32, first = host_index() - lane;
  for (int i = 0; i < 6; i++) host_slots[host_index()][i] = i < 4 ? x[i] : i == 4 ? y0 : y1;
  host_warp_wait();
  for (unsigned e = 0; e < 4; e++) {
    const unsigned row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 32; k++) {
      const unsigned long long *a = host_slots[first + row % 8 * 4 + k / 4 % 4],
                               *b = host_slots[first + col * 4 + k / 4 % 4];
      c[e] += (int)(signed char)(a[row / 8 + k / 16 * 2] >> k % 4 * 8) * (int)(signed char)(b[4 + k / 16] >> k % 4 * 8);
    }
  }
  host_warp_wait();
}
static void at_raise(float *amax, float most) {
  if (most > *amax) *amax = most;
}

#define at_mma16(c, x, y0, y1) host_mma16(c, x, y0, y1, IN == 3)

static void host_start() {
  host_body(host_argument);
  if (!host_me->open.empty() || !host_me->ring.empty()) abort();
  host_me->done = true;
  _longjmp(host_back, 1);
}

/* On until it waits or is done. */
static __attribute__((noinline)) void host_go_on() {
  if (_setjmp(host_back) != 0) return;
  if (host_me->begun) _longjmp(host_me->place, 1);
  host_me->begun = true;
  setcontext(&host_me->context);
}

/* All threads of `ranks` blocks, from block `first` on. */
static void host_run_cluster(place first, unsigned ranks, unsigned threads) {
  host_count = ranks * threads, host_block = threads, host_ranks = ranks;
  if (host_count > HOST_THREADS) abort();
  memset(host_rooms, 0xff, sizeof host_rooms);
  host_coming_copies.clear();
  for (unsigned t = 0; t < host_count; t++) {
    host_thread *h = &host_threads[t];
    if (!h->stack) h->stack = (char *)malloc(HOST_STACK);
    getcontext(&h->context);
    h->context.uc_stack.ss_sp = h->stack;
    h->context.uc_stack.ss_size = HOST_STACK;
    h->context.uc_link = &host_main;
    makecontext(&h->context, host_start, 0);
    h->done = h->begun = h->met = false;
    h->groups.clear();
    h->rank = t / threads, h->thread = t % threads;
  }
  for (bool more = true; more;) {
    more = false;
    for (unsigned t = 0; t < host_count; t++) {
      host_me = &host_threads[t];
      if (host_me->done) continue;
      threadIdx.x = host_me->thread;
      blockIdx = place{first.x + host_me->rank, first.y, first.z};
      host_go_on();
      more = more || !host_me->done;
    }
  }
}

static void host_run(void (*body)(const void *), const void *argument, const unsigned grid[3], unsigned ranks,
                     unsigned threads) {
  host_body = body, host_argument = argument;
  gridDim = place{grid[0], grid[1], grid[2]}, blockDim = place{threads, 1, 1};
  for (unsigned z = 0; z < grid[2]; z++)
    for (unsigned y = 0; y < grid[1]; y++)
      for (unsigned x = 0; x < grid[0]; x += ranks) host_run_cluster(place{x, y, z}, ranks, threads);
}
