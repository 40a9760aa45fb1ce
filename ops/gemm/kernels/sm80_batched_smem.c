/* SPDX-License-Identifier: Apache-2.0
 * sm80_batched_smem.c: the family of sm80_batched_smem.cuh: batches of products up to 64 x 64 x 64, complex ones
 * too. */
#include "ops/gemm/kernels/kernel.h"

#include "gemm_sm80_batched_smem_cuh.h"

enum {
  MOST = 64,
  MOST_TEAMS = 15,
  MOST_SHARE = 4,
  MOST_SHARE_COMPLEX = 8,
  SECTOR = 32,
  MOST_CHOICES = 64,
  MOST_FEW = 8
};

static const char *const grids[] = {"whole", "stays", NULL};

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                      \
  PAIR("tile", tm, "TM", 1, MOST, tn, "TN", 1, MOST, 0,                                                         \
       "rows and columns of D that one thread computes (a warp makes several "                                  \
       "matrices where these are few); of halves: one warp, by tensor cores")                                   \
  NUMBER("teams", teams, "TEAMS", 1, MOST_TEAMS, 0, "teams of warps in a block, each with a matrix of its own") \
  NUMBER("stages", stages, "STAGES", 1, 4, 0, "matrices that a team has in shared memory or on the way there")  \
  WORD("grid", stays, "STAYS", grids, 0,                                                                        \
       "`stays`: as many blocks as the device holds, which step over the batch; "                               \
       "`whole`: blocks for all of it")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
  double cost; /* cycles of a processor that a matrix takes, by the model */
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

/* A problem in the sizes that the kernel is made for. */
typedef struct shape {
  int m, n, k; /* rounded up */
  int in, out; /* bytes of an element */
  int parts;   /* of an element */
  bool half;
} shape;

static int round_up(int64_t size, int unit) {
  return (int)((size + unit - 1) / unit * unit);
}

static shape shape_of(const at_gemm *g) {
  const bool half = g->dtype == ATTUNE_F16 || g->dtype == ATTUNE_BF16;
  const bool complex = at_gemm_complex(g->dtype);
  const int unit = half ? 16 : complex ? 4 : 8;
  return (shape){.m = round_up(g->m, unit),
                 .n = round_up(g->n, unit),
                 .k = round_up(g->k, unit),
                 .in = (int)attune_dtype_size((attune_dtype)g->dtype),
                 .out = (int)attune_dtype_size((attune_dtype)g->dtype_out),
                 .parts = complex ? 2 : 1,
                 .half = half};
}

static int tiles_of(const shape *s, const choice *c) {
  return (s->m / c->tm) * (s->n / c->tn);
}

/* Of a team. */
static int warps_of(const shape *s, const choice *c) {
  return s->half ? tiles_of(s, c) : (tiles_of(s, c) + 31) / 32;
}

/* Matrices that a team makes at once: as many as a warp has threads for. Of complex ones a few threads may be idle. */
static int share_of(const shape *s, const choice *c) {
  if (s->parts == 2) return tiles_of(s, c) > 32 ? 1 : at_lesser_int(32 / tiles_of(s, c), MOST_SHARE_COMPLEX);
  const int tiles = tiles_of(s, c), share = s->half || 32 % tiles != 0 ? 1 : 32 / tiles;
  return share < MOST_SHARE ? share : MOST_SHARE;
}

/* D goes from registers straight to where it belongs: the threads have pieces of it that, side by side, fill
 * sectors. */
static bool is_straight(const at_gemm *g, const shape *s, const choice *c) {
  const int wide = 16 / s->in, piece = (c->tm < wide ? c->tm : wide) * s->out;
  return !s->half && !g->trans_a && g->m == s->m && g->n == s->n && s->m / c->tm * piece >= SECTOR &&
         at_gemm_grain(g, (size_t)s->out, g->n, g->ldd, g->stride_d) >= piece;
}

/* As at_pitch of sm80_batched_smem.cuh. */
static int pitch(int bytes, bool spread) {
  return ((bytes + 15) / 16 | (spread ? 1 : 0)) * 16;
}

static int stage_bytes(const at_gemm *g, const shape *s) {
  const int a = g->trans_a ? pitch(s->k * s->in, true) * s->m : pitch(s->m * s->in, s->half) * s->k;
  const int b = g->trans_b ? pitch(s->n * s->in, s->half) * s->k : pitch(s->k * s->in, true) * s->n;
  return a + b + (g->c != AT_C_NONE ? pitch(s->m * s->out, true) * s->n : 0);
}

/* One matrix of D in shared memory. */
static int result_bytes(const shape *s) {
  return pitch(s->m * s->out, true) * s->n;
}

static bool supports(const at_gemm *g, const at_machine *machine) {
  if (machine->capability < 80 || g->m > MOST || g->n > MOST || g->k > MOST || g->batch < 2 || g->batch > INT32_MAX / 2)
    return false;
  const shape s = shape_of(g);
  return stage_bytes(g, &s) + result_bytes(&s) <= machine->shared_bytes;
}

static int shared_bytes(const at_gemm *g, const shape *s, const choice *c) {
  const int result = is_straight(g, s, c) ? 0 : result_bytes(s);
  return c->teams * share_of(s, c) * (c->stages * stage_bytes(g, s) + result);
}

static bool fits(const at_gemm *g, const shape *s, const choice *c, const at_machine *machine) {
  if (s->m % c->tm || s->n % c->tn || c->teams > MOST_TEAMS) return false;
  const int most = s->half ? 64 * 32 : 256 / s->in; /* of D in registers, of a warp or a thread */
  if (c->tm * c->tn > most || (s->half && (c->tm % 16 || c->tn % 16)) || (!s->half && (c->tm > 8 || c->tn > 8)))
    return false;
  const int warps = warps_of(s, c);
  return warps * c->teams <= 16 && warps <= 8 && shared_bytes(g, s, c) <= machine->shared_bytes;
}

/* Its part of the memory's rate, and how much of what memory wants on the way it needs. */
static const double RATE = 0.9768, FLIGHT = 1.2;

/* Cycles of a processor for one matrix: memory, shared memory at 128 bytes a cycle, and sums. Too little in flight
 * makes memory slow. The numbers are the kernel's, fitted to its times (gemm_kernel_times.c). */
static double cost_of(const at_gemm *g, const shape *s, const choice *c, const at_machine *machine) {
  const double in = (double)((g->m + g->n) * g->k * s->in), out = (double)(g->m * g->n * s->out);
  const double memory = (in + out * (g->c == AT_C_NONE ? 1.0 : 2.0)) / (RATE * at_machine_memory_cycle(machine));
  const int warps = warps_of(s, c), shared = shared_bytes(g, s, c);
  int blocks = machine->shared_bytes / (shared + 1024);
  if (blocks * warps * c->teams > 48) blocks = 48 / (warps * c->teams);
  const int share = share_of(s, c);
  const double flight =
      (double)blocks * c->teams * share * in * (c->stages > 1 ? c->stages - 0.5 : 0.9) / (FLIGHT * machine->wanted);
  const double volume = (double)s->m * s->n * s->k;
  double loads, sums;
  if (s->half) {
    loads = volume * 2.0 * (1.0 / c->tm + 1.0 / c->tn) / 128.0;
    sums = volume / machine->mma_f16;
  } else {
    loads = (double)warps * s->k * (c->tm + c->tn) * s->in / 16.0 * 3.0 / share;
    const double fma = s->in / s->parts == 8 ? machine->fma_f64 : machine->fma_f32;
    sums = (double)warps * s->k * c->tm * c->tn * (s->parts * s->parts) / (fma / 32.0) * 1.3 / share;
  }
  const double copies = (2.0 * in + (is_straight(g, s, c) ? 1.0 : 2.0) * out) / 128.0,
               work = loads + copies > sums ? loads + copies : sums;
  const double slow = flight < 1.0 ? memory / flight : memory;
  const double few = blocks > 0 ? 0.6 / (blocks * warps * c->teams) : 1.0; /* warps: one waits while another works */
  return (slow > work ? slow + 0.25 * work : work + 0.25 * slow) * ((c->stays ? 1.04 : 1.0) + few);
}

static int candidates(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide) {
  static const int fma[][2] = {{2, 2}, {4, 2}, {2, 4}, {4, 4}, {8, 4}, {4, 8}, {8, 8}, {2, 1}},
                   mma[][2] = {{16, 16}, {32, 16}, {16, 32}, {32, 32}, {64, 16}, {64, 32}, {48, 16}, {48, 32}};
  static const int stages[] = {1, 2, 3}, threads[] = {128, 256};
  const int most = wide ? MOST_CHOICES : MOST_FEW;
  const shape s = shape_of(g);
  const int(*tiles)[2] = s.half ? mma : fma;
  choice list[MOST_CHOICES];
  int count = 0;
  for (size_t t = 0; t < AT_COUNT(fma); t++)
    for (size_t i = 0; i < AT_COUNT(stages); i++) {
      int last = 0; /* teams */
      for (size_t h = 0; h < AT_COUNT(threads); h++) {
        choice c = {.tm = tiles[t][0], .tn = tiles[t][1], .stages = stages[i], .stays = stages[i] > 1};
        if (s.m % c.tm || s.n % c.tn) continue;
        c.teams = threads[h] / (32 * warps_of(&s, &c));
        if (c.teams < 1) c.teams = 1;
        if (c.teams > 8) c.teams = 8;
        if (h > 0 && c.teams == last) continue;
        last = c.teams;
        if (!fits(g, &s, &c, machine)) continue;
        if (!wide && (c.stages > 2 || (h > 0 && (c.stages > 1 || !s.half)))) continue;
        c.cost = cost_of(g, &s, &c, machine);
        count = AT_GEMM_INSERT(list, count, most, &c);
      }
    }
  return AT_GEMM_OFFER(out, max, list, count, 0.0);
}

static bool spec(at_gemm_launch_spec *out, const at_gemm *g, const at_machine *machine, const at_configuration *text) {
  const shape s = shape_of(g);
  choice c;
  if (!at_tunables_parse(&tunables, &c, text) || !fits(g, &s, &c, machine)) return false;
  if (!c.stays && c.stages > 1) return false; /* a team has one matrix */
  const int warps = warps_of(&s, &c);
  at_gemm_launch_spec_start(out, g);
  at_gemm_define_add(out, "M", s.m);
  at_gemm_define_add(out, "N", s.n);
  at_gemm_define_add(out, "K", s.k);
  at_gemm_define_tunables(out, &tunables, &c);
  at_gemm_define_add(out, "WARPS", warps);
  at_gemm_define_add(out, "SHARE", share_of(&s, &c));
  at_gemm_define_add(out, "STRAIGHT", is_straight(g, &s, &c));
  at_gemm_define_matrices(out, g);
  const bool exact = g->m == s.m && g->n == s.n && g->k == s.k;
  at_gemm_define_add(out, "EXACT", exact);
  at_gemm_define_add(out, "PACKED_A", exact && g->lda == at_gemm_rows_a(g));
  at_gemm_define_add(out, "PACKED_B", exact && g->ldb == at_gemm_rows_b(g));
  at_gemm_define_add(out, "PACKED_D", exact && g->ldd == g->m);
  const int64_t matrices = (int64_t)c.teams * share_of(&s, &c); /* of a block */
  at_gemm_launch_spec_grid(out, at_gemm_parts(g->batch, matrices), 1, 0, 0, 32 * warps * c.teams,
                           shared_bytes(g, &s, &c));
  out->stays = c.stays;
  return true;
}

static const at_gemm_kernels family = {
    .file = "sm80_batched_smem.cu",
    .entry = "at_tiny",
    .text = at_gemm_sm80_batched_smem_cuh,
    .complex = true,
    .pointers = true,
    .supports = supports,
    .candidates = candidates,
    .spec = spec,
};

const at_implementation at_gemm_sm80_batched_smem = {
    .name = "sm80_batched_smem", .version = 2, AT_GEMM_KERNEL_SLOTS(family, tunables)};
