/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_16b_tile.cuh: the sizes of sm90_wgmma_16b.cuh's kernels; how tiles of X and Y come into shared memory by
 * tensor maps, and how a warpgroup multiplies them from there. A tile lies in lines of 128 bytes, 64 elements along k
 * or along its rows, whose 16-byte pieces change places from line to line as the hardware wants it. kernel.cuh stands
 * in front of it. */
#ifndef TM
#define TM 128
#define TN 128
#define DEEP 1 /* of 64 of k in a step */
#define STAGES 4
#define GROUPS 2  /* warpgroups that multiply, TM / GROUPS rows each */
#define SPLIT 1   /* blocks of a cluster that share k */
#define PARTS 1   /* such clusters that share k further */
#define ALONG_M 1 /* blocks of a cluster side by side along m: they have the same tile of Y */
#define ALONG_N 1 /* and along n: they have the same tile of X */
#define X_K 1     /* X lies along k */
#define Y_K 1
#define MANY_X 0 /* each matrix of the batch has its own X */
#define MANY_Y 0
#define BYTES_D 16 /* that a store may have; of C too */
#define TURNED 0   /* D lies along n */
#define READS_C 0
#define RAGGED_M 0 /* m is no multiple of what a cluster makes */
#define RAGGED_N 0
#define BAND 8  /* clusters' tiles along m that are taken together along n */
#define EARLY 0 /* steps that are asked for before what comes first is done */
#define LATE 0  /* what comes behind may start when the last copies are on their way; else at once */
#define BLOCKS 1
#define KEPT_X 0 /* in the L2 cache: 1 no longer than needed, 2 longer than other things */
#define KEPT_Y 0
#define PADDED 0 /* 256 bytes of the workspace that copies of X and Y take, in front of the parts' sums */
#define BARRIERS 160000 /* where they are: behind all else in shared memory */
#endif

#define BK (64 * DEEP)
#define KEEPS_X (KEPT_X == 1 ? ONCE : KEPT_X == 2 ? AGAIN : PLAIN)
#define KEEPS_Y (KEPT_Y == 1 ? ONCE : KEPT_Y == 2 ? AGAIN : PLAIN)
#define MAKERS (128 * GROUPS)
/* Many sums: the warps that copy are a warpgroup too, which leaves its registers to the others. */
#define LEAVES (GROUPS >= 2 && TM / GROUPS * TN > (GROUPS == 2 ? 64 * 192 : 64 * 96))
#define COPIERS (LEAVES ? 128 : 32)
#define THREADS (MAKERS + COPIERS)
#define SIZE_D ((int)sizeof(at_out))
#define ROWS (TM / GROUPS)
#define FM (ROWS / 64)
/* A gated product's tile has, for each warpgroup, 64 rows of g and then 64 of u, and makes as many rows of D. */
#define TM_D (GATED ? TM / 2 : TM)
#define AROUND (ALONG_M * ALONG_N)
#define CLUSTER (SPLIT * AROUND)
#define PEERS (ALONG_M + ALONG_N - 1) /* blocks whose copies come here, this one among them */
#define OWN (TN / SPLIT) /* columns that a block finishes of what the cluster's blocks have added up */
#define INBOX_BYTES ((SPLIT - 1) * TM * OWN * 4)
#define SLICE_X (TM * 128) /* bytes of 64 of k */
#define SLICE_Y (Y_K ? TN * 128 : (TN + 63) / 64 * 8192)
#define STAGE_BYTES (DEEP * (SLICE_X + SLICE_Y))

/* An argument of the driver's making. */
struct alignas(64) at_tensor_map { char x[128]; };
struct at_wgmma_arguments {
  at_arguments a;
  at_tensor_map x, y;
};

/* Arrives at the same barrier of block `rank` of the cluster. It tells of nothing that was written: a wider scope would
 * wait for all of that. */
AT_INLINE void at_barrier_arrive_at(at_u32 barrier, at_u32 rank) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
               "r"(rank)
               : "memory");
}

/* ---- copies ---- */

/* How long the L2 cache shall keep what is copied: as ever, no longer than needed, longer than other things. */
constexpr at_u64 PLAIN = 0, ONCE = 0x12f0000000000000, AGAIN = 0x14f0000000000000;

/* A box into shared memory; SHARED: to the same place in all `blocks` of the cluster, a bit for each. */
template <bool SHARED, at_u64 KEPT>
AT_INLINE void at_box(at_u32 to, const at_tensor_map *map, int x, int y, int z, at_u32 barrier, at_u16 blocks) {
#define AT_BOX "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
  if constexpr (SHARED && KEPT != PLAIN)
    asm volatile(AT_BOX ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(blocks), "l"(KEPT)
                 : "memory");
  else if constexpr (SHARED)
    asm volatile(AT_BOX ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to), "l"(map), "r"(x), "r"(y),
                 "r"(z), "r"(barrier), "h"(blocks)
                 : "memory");
  else if constexpr (KEPT != PLAIN)
    asm volatile(AT_BOX ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to), "l"(map), "r"(x), "r"(y),
                 "r"(z), "r"(barrier), "l"(KEPT)
                 : "memory");
  else
    asm volatile(AT_BOX " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
                 : "memory");
}
/* A box towards the L2 cache. */
AT_INLINE void at_box_early(const at_tensor_map *map, int x, int y, int z) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(map), "r"(x), "r"(y), "r"(z)
               : "memory");
}
AT_INLINE void at_map_early(const at_tensor_map *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* A tile of LINES rows: 64 of k of it, or the share of block `mine` of the OF blocks that have the same one. EARLY_:
 * only towards the L2 cache. */
template <int LINES, bool ALONG_K, int OF, at_u64 KEPT, bool EARLY_>
AT_INLINE void at_tile_copy(at_u32 to, const at_tensor_map *map, int row, int k, int matrix, at_u32 barrier, int mine,
                            at_u16 blocks) {
  if constexpr (ALONG_K) {
    const int first = mine * (LINES / OF);
    if (EARLY_)
      at_box_early(map, k, row + first, matrix);
    else
      at_box<(OF > 1), KEPT>(to + first * 128, map, k, row + first, matrix, barrier, blocks);
  } else {
    const int first = mine * (64 / OF);
#pragma unroll
    for (int i = 0; i < (LINES + 63) / 64; i++)
      if (EARLY_)
        at_box_early(map, row + 64 * i, k + first, matrix);
      else
        at_box<(OF > 1), KEPT>(to + i * 8192 + first * 128, map, row + 64 * i, k + first, matrix, barrier, blocks);
  }
}

/* ---- tensor cores ---- */

/* Registers of the threads that copy, and of those that multiply: 512 in all of a thread of each of 4 warpgroups. */
AT_INLINE void at_leave_registers() {
#if LEAVES && GROUPS == 2
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#elif LEAVES
  asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
#endif
}
AT_INLINE void at_take_registers() {
#if LEAVES && GROUPS == 2
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
#elif LEAVES
  asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
#endif
}

#if IN == 3
#define AT_KIND "bf16"
#else
#define AT_KIND "f16"
#endif
#if X_K
#define AT_TURNS_X "0"
#else
#define AT_TURNS_X "1"
#endif
#if Y_K
#define AT_TURNS_Y "0"
#else
#define AT_TURNS_Y "1"
#endif

#define AT_D16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define AT_D32 AT_D16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define AT_D48 AT_D32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define AT_D64 AT_D48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define AT_D96 AT_D64 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define AT_D112 AT_D96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define AT_D128 AT_D112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define AT_D192 AT_D128 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define AT_D224 AT_D192 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define AT_D256 AT_D224 ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define AT_E8(i)                                                                                                    \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), \
      "+f"(c[i + 7])
#define AT_E16(i) AT_E8(i), AT_E8(i + 8)
#define AT_E32(i) AT_E16(i), AT_E16(i + 16)
#define AT_E64(i) AT_E32(i), AT_E32(i + 32)

/* c (64 x TN) += x y, 16 of k; without `adds` c = x y. In flight until at_sums_wait. */
AT_INLINE void at_multiply16(float (&c)[TN / 2], at_u64 x, at_u64 y, int adds) {
#define AT_WGMMA(N, D, X, Y, P, ...)                                                                       \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.mma_async.sync.aligned.m64n" N           \
               "k16.f32." AT_KIND "." AT_KIND " {" D "}, " X ", " Y ", p, 1, 1, " AT_TURNS_X ", " AT_TURNS_Y \
               ";\n}"                                                                                      \
               : __VA_ARGS__                                                                               \
               : "l"(x), "l"(y), "r"(adds))
#if TN == 16
  AT_WGMMA("16", AT_D16, "%8", "%9", "%10", AT_E8(0));
#elif TN == 32
  AT_WGMMA("32", AT_D32, "%16", "%17", "%18", AT_E16(0));
#elif TN == 48
  AT_WGMMA("48", AT_D48, "%24", "%25", "%26", AT_E16(0), AT_E8(16));
#elif TN == 64
  AT_WGMMA("64", AT_D64, "%32", "%33", "%34", AT_E32(0));
#elif TN == 96
  AT_WGMMA("96", AT_D96, "%48", "%49", "%50", AT_E32(0), AT_E16(32));
#elif TN == 112
  AT_WGMMA("112", AT_D112, "%56", "%57", "%58", AT_E32(0), AT_E16(32), AT_E8(48));
#elif TN == 128
  AT_WGMMA("128", AT_D128, "%64", "%65", "%66", AT_E64(0));
#elif TN == 192
  AT_WGMMA("192", AT_D192, "%96", "%97", "%98", AT_E64(0), AT_E32(64));
#elif TN == 224
  AT_WGMMA("224", AT_D224, "%112", "%113", "%114", AT_E64(0), AT_E32(64), AT_E16(96));
#else
  AT_WGMMA("256", AT_D256, "%128", "%129", "%130", AT_E64(0), AT_E64(64));
#endif
}

typedef float at_sums[FM][TN / 2];

AT_INLINE void at_sums_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
AT_INLINE void at_sums_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int LATER> AT_INLINE void at_sums_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LATER) : "memory");
}

/* Where a tile lies, as the instruction wants it: groups of 8 lines are 1,024 bytes apart, of 64 rows 8,192. */
AT_INLINE at_u64 at_place_of(at_u32 shared) {
  return (at_u64)((shared & 0x3ffff) >> 4) | (at_u64)(8192 >> 4) << 16 | (at_u64)(1024 >> 4) << 32 | (at_u64)1 << 62;
}

/* A step of warpgroup `group`. */
AT_INLINE void at_multiply(at_sums &sum, at_u32 stage, int group, int adds) {
  const at_u64 x = at_place_of(stage + group * (ROWS * 128)), y = at_place_of(stage + DEEP * SLICE_X);
  at_sums_begin();
#pragma unroll
  for (int k = 0; k < BK / 16; k++)
#pragma unroll
    for (int i = 0; i < FM; i++)
      at_multiply16(sum[i], x + k / 4 * (SLICE_X / 16) + k % 4 * (X_K ? 2 : 128) + i * 512,
                    y + k / 4 * (SLICE_Y / 16) + k % 4 * (Y_K ? 2 : 128), k == 0 ? adds : 1);
  at_sums_commit();
}
