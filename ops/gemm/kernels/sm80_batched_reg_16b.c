/* SPDX-License-Identifier: Apache-2.0
 * sm80_batched_reg_16b.c: the family of sm80_batched_reg_16b.cuh: batches of products of halves, sizes multiples of 16
 * up to 64, and single products with one long side, which is cut. */
#include "ops/gemm/kernels/kernel.h"

#include "gemm_sm80_batched_reg_16b_cuh.h"

enum { MOST = 64, UNIT = 16, MOST_TEAMS = 8, MOST_BLOCKS = 16, MOST_CHOICES = 64, MOST_FEW = 5 };

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                            \
  PAIR("tile", tm, "TM", UNIT, MOST, tn, "TN", UNIT, MOST, AT_POWERS, "rows and columns of D that one warp computes") \
  NUMBER("teams", teams, "TEAMS", 1, MOST_TEAMS, 0, "matrices of a block")                                            \
  NUMBER("blocks", blocks, "BLOCKS", 1, MOST_BLOCKS, 0, "blocks of a multiprocessor that registers are left for")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
  double cost;
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

/* The largest size that a side may be cut into; 0: none. */
static int64_t piece_of(int64_t size) {
  for (int64_t piece = MOST; piece >= UNIT; piece -= UNIT)
    if (size % piece == 0) return piece;
  return 0;
}

/* One product with a long side is a batch of pieces of that side, which share the other matrix. Others are as they
 * are. */
static at_gemm cut(const at_gemm *g) {
  at_gemm s = *g;
  if (g->batch > 1 || g->pointers) return s;
  if (g->m > MOST && g->n <= MOST && piece_of(g->m) > 0) {
    s.m = piece_of(g->m), s.batch = g->m / s.m;
    s.stride_a = g->trans_a ? s.m * g->lda : s.m;
    s.stride_d = s.stride_c = s.m;
  } else if (g->n > MOST && g->m <= MOST && piece_of(g->n) > 0) {
    s.n = piece_of(g->n), s.batch = g->n / s.n;
    s.stride_b = g->trans_b ? s.n : s.n * g->ldb;
    s.stride_d = s.n * g->ldd, s.stride_c = s.n * g->ldc;
  }
  if (g->c == AT_C_NONE) s.stride_c = 0;
  return s;
}

static bool can(const at_gemm *g, const at_machine *machine) {
  const bool half = g->dtype == ATTUNE_F16 || g->dtype == ATTUNE_BF16;
  return half && machine->capability >= 80 && g->m <= MOST && g->n <= MOST && g->k <= MOST && g->m % UNIT == 0 &&
         g->n % UNIT == 0 && g->k % UNIT == 0 && g->batch >= 2 && g->batch <= INT32_MAX / 2;
}

static bool supports(const at_gemm *g, const at_machine *machine) {
  const at_gemm s = cut(g);
  return can(&s, machine);
}

static int warps_of(const at_gemm *g, const choice *c) {
  return (int)(g->m / c->tm * (g->n / c->tn));
}

/* A thread's: its parts of A, B and D, and what addresses take. */
static int registers_of(const at_gemm *g, const choice *c) {
  return ((c->tm + c->tn) * (int)g->k / 64 + c->tm * c->tn / 32 + 28 + 7) / 8 * 8;
}

static bool fits(const at_gemm *g, const choice *c) {
  if (g->m % c->tm || g->n % c->tn) return false;
  const int warps = warps_of(g, c) * c->teams, registers = registers_of(g, c);
  if (warps > 16 || registers > 184 || c->blocks > MOST_BLOCKS) return false;
  /* It may be told to do with a fifth less than that; with less still it would spill. */
  return c->blocks == 1 || c->blocks * 32 * warps * registers * 4 <= AT_PROCESSOR_REGISTERS * 5;
}

/* Its part of the memory's rate, and how much of what memory wants on the way it needs. */
static const double RATE = 0.9768, FLIGHT = 1.2;

/* Of one processor, cycles a matrix: memory at what a stream reaches, if enough is on its way; what passes through L1,
 * in which warps of a matrix meet again; and a little for every warp. The numbers are the kernel's, fitted to its times
 * (gemm_kernel_times.c). */
static double cost_of(const at_gemm *g, const choice *c, const at_machine *machine) {
  const double size = (double)attune_dtype_size((attune_dtype)g->dtype);
  const double in = (double)((g->m + g->n) * g->k) * size,
               out = (double)(g->m * g->n) * (double)attune_dtype_size((attune_dtype)g->dtype_out);
  const int warps = warps_of(g, c), together = warps * c->teams * 32;
  int blocks = AT_PROCESSOR_REGISTERS / (registers_of(g, c) * together);
  if (c->blocks > blocks) blocks = c->blocks;
  const double memory = (in + out * (g->c == AT_C_NONE ? 1.0 : 2.0)) / (RATE * at_machine_memory_cycle(machine));
  const double flight = (double)blocks * c->teams * in / (FLIGHT * machine->wanted);
  const double passing = (double)warps * (c->tm + c->tn) * (double)g->k * size / 64.0;
  const double parallel = machine->processors * c->teams > g->batch ? 1.5 : 1.0; /* processors stay idle */
  return (memory / (flight < 1.0 ? flight : 1.0) + 0.3 * passing + 2.0 * warps) * parallel;
}

/* With `wide` every tile; otherwise blocks of 128 threads, with the registers that the kernel is thought to need and a
 * fifth less. */
static int candidates(const at_gemm *whole, const at_machine *machine, at_configuration *out, int max, bool wide) {
  const at_gemm s = cut(whole), *g = &s;
  choice list[MOST_CHOICES];
  int count = 0;
  for (int tm = UNIT; tm <= MOST; tm *= 2)
    for (int tn = UNIT; tn <= MOST; tn *= 2) {
      int last = 0; /* teams */
      for (int warps = wide ? 1 : 4; warps <= (wide ? 8 : 4); warps *= 2) {
        choice c = {.tm = tm, .tn = tn, .teams = 1, .blocks = 1};
        if (!fits(g, &c)) continue;
        if (warps > warps_of(g, &c)) c.teams = warps / warps_of(g, &c);
        if (c.teams == last) continue;
        last = c.teams;
        const int room = AT_PROCESSOR_REGISTERS / (32 * warps_of(g, &c) * c.teams * registers_of(g, &c));
        for (int more = 0; more < 2; more++) {
          c.blocks = room + more < 1 ? 1 : room + more;
          if (!fits(g, &c)) continue;
          c.cost = cost_of(g, &c, machine) + 0.01 * more;
          count = AT_GEMM_INSERT(list, count, wide ? MOST_CHOICES : MOST_FEW, &c);
        }
      }
    }
  return AT_GEMM_OFFER(out, max, list, count, 0.0);
}

static bool spec(at_gemm_launch_spec *out, const at_gemm *whole, const at_machine *machine,
                 const at_configuration *text) {
  const at_gemm s = cut(whole), *g = &s;
  choice c;
  if (!can(g, machine) || !at_tunables_parse(&tunables, &c, text) || !fits(g, &c)) return false;
  const int warps = warps_of(g, &c);
  at_gemm_launch_spec_start(out, g);
  at_gemm_define_add(out, "M", (int)g->m);
  at_gemm_define_add(out, "N", (int)g->n);
  at_gemm_define_add(out, "K", (int)g->k);
  at_gemm_define_tunables(out, &tunables, &c);
  at_gemm_define_add(out, "WARPS", warps);
  at_gemm_define_matrices(out, g);
  at_gemm_launch_spec_grid(out, at_gemm_parts(g->batch, c.teams), 1, 0, 0, 32 * warps * c.teams, 0);
  return true;
}

static const at_gemm_kernels family = {
    .file = "sm80_batched_reg_16b.cu",
    .entry = "at_direct",
    .text = at_gemm_sm80_batched_reg_16b_cuh,
    .pointers = true,
    .supports = supports,
    .candidates = candidates,
    .spec = spec,
};

const at_implementation at_gemm_sm80_batched_reg_16b = {
    .name = "sm80_batched_reg_16b", .version = 1, AT_GEMM_KERNEL_SLOTS(family, tunables)};
