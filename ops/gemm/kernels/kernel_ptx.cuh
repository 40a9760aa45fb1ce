/* SPDX-License-Identifier: Apache-2.0
 * kernel_ptx.cuh: the instructions of GEMM kernels that C++ has no words for: copies into shared memory, barriers, tensor
 * cores, clusters. Behind kernel.cuh. A test compiles the kernels for the host, where tests/support/gemm_on_host.h has
 * what is PTX here. */
/* ---- memory ---- */

#ifndef AT_ON_HOST
/* The kernel may have been started before the one in front of it was done, and lets the next one start. */
AT_INLINE void at_let_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/* What came before is done. */
AT_INLINE void at_wait_for_last() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
AT_INLINE void at_begin() {
  at_let_next();
  at_wait_for_last();
}
/* Arrays of pointers may be the work of what came before. */
AT_INLINE void at_wait_for_pointers() {
  if (POINTERS) at_wait_for_last();
}

/* BYTES from p on, both multiples of 16, towards the L2 cache. That is where all writes go, so it may be asked for
 * before what came before is done. */
AT_INLINE void at_early(const char *p, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes) : "memory");
#endif
}

/* The line of the L2 cache that p lies in, likewise. */
AT_INLINE void at_early_line(const char *p) {
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory");
#endif
}

AT_INLINE at_u32 at_shared(const void *p) {
  return (at_u32)__cvta_generic_to_shared(p);
}
AT_INLINE at_u32 at_shared(at_u32 there) {
  return there;
}

/* BYTES into shared memory, the first `valid` of them from `from`, the rest zeros. Done when at_copies_wait says so. */
template <int BYTES> AT_INLINE void at_copy(char *to, const char *from, int valid) {
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at_shared(to)), "l"(from), "r"(valid)
                 : "memory");
  else if constexpr (BYTES >= 4)
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at_shared(to)), "l"(from), "n"(BYTES), "r"(valid)
                 : "memory");
  else
    *(at_u16 *)to = valid ? *(const at_u16 *)from : (at_u16)0;
}
/* The same of what other blocks of the processor read too: by way of its L1 cache. */
template <int BYTES> AT_INLINE void at_copy_again(char *to, const char *from, int valid) {
  if constexpr (BYTES == 16)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(at_shared(to)), "l"(from), "r"(valid) : "memory");
  else
    at_copy<BYTES>(to, from, valid);
}
AT_INLINE void at_copies_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/* All but the newest LATER groups of copies are there, for the thread that ordered them. */
template <int LATER> AT_INLINE void at_copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}

/* 16 bytes that are needed once: past L1. */
AT_INLINE uint4 at_stream16(const char *p) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(p));
  return x;
}

extern __shared__ uint4 at_room[]; /* dynamic shared memory */

/* ---- barriers in shared memory: pointers to one, or where it lies there ---- */

template <class P> AT_INLINE void at_barrier_start(P barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at_shared(barrier)), "r"(arrivals) : "memory");
}
template <class P> AT_INLINE void at_barrier_expect(P barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at_shared(barrier)), "r"(bytes)
               : "memory");
}
template <class P> AT_INLINE void at_barrier_arrive(P barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at_shared(barrier)) : "memory");
}
/* Until the phase of this parity is over. */
template <class P> AT_INLINE void at_barrier_wait(P barrier, int parity) {
  at_u32 done = 0;
  while (!done)
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(at_shared(barrier)), "r"(parity)
                 : "memory");
}

/* ---- warps and tensor cores ---- */

template <int THREADS> AT_INLINE void at_team_wait(int team) {
  if constexpr (THREADS == 32)
    __syncwarp();
  else
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(THREADS) : "memory");
}

AT_INLINE void at_matrices(at_u32 out[4], const char *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(at_shared(p))
               : "memory");
}
AT_INLINE void at_matrices_turned(at_u32 out[4], const char *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(at_shared(p))
               : "memory");
}
/* Half as many: lanes 0 to 15 say where. */
AT_INLINE void at_matrices_two(at_u32 out[2], const char *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(at_shared(p))
               : "memory");
}
AT_INLINE void at_matrices_two_turned(at_u32 out[2], const char *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(at_shared(p))
               : "memory");
}

/* c += x y for 16 x 16 x and 16 x 8 y, halves. */
AT_INLINE void at_mma16(float c[4], const at_u32 x[4], at_u32 y0, at_u32 y1) {
#if IN == 3
#define AT_HALF "bf16"
#else
#define AT_HALF "f16"
#endif
  asm("mma.sync.aligned.m16n8k16.row.col.f32." AT_HALF "." AT_HALF
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y0), "r"(y1));
}

#if IN < 2
/* As tensor cores take it: f32 with 10 bits behind the first. */
AT_INLINE at_in at_rounded(at_in x) {
#if IN == 1
  return x;
#else
  at_u32 y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return __uint_as_float(y);
#endif
}

/* c += x y for 16 x 8 x and 8 x 8 y. Lane 4 g + t has x[h][u]: row g + 8 h, and y[u]: column g, of step 2 t + u, in
 * whatever order the steps are taken. */
AT_INLINE void at_mma8(at_sum c[4], const at_in x[2][2], const at_in y[2]) {
#if IN == 1
#pragma unroll
  for (int u = 0; u < 2; u++) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(x[0][u]), "d"(x[1][u]), "d"(y[u]));
#else
#pragma unroll
    for (int h = 0; h < 2; h++)
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(c[2 * h]), "+d"(c[2 * h + 1])
          : "d"(x[h][u]), "d"(y[u]));
#endif
  }
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(x[0][0])), "r"(__float_as_uint(x[1][0])), "r"(__float_as_uint(x[0][1])),
        "r"(__float_as_uint(x[1][1])), "r"(__float_as_uint(y[0])), "r"(__float_as_uint(y[1])));
#endif
}
#endif

/* ---- clusters ---- */

/* All threads of the cluster have come, and what they wrote to shared memory is there for all of them. */
AT_INLINE void at_cluster_wait() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/* The same in two steps, without what they wrote: all threads of the cluster have begun. */
AT_INLINE void at_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
AT_INLINE void at_cluster_await() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

/* An inbox in shared memory: the cluster's blocks send `bytes` in all to this one. One thread opens it, before it
 * arrives at the barrier that the senders wait for. */
AT_INLINE void at_inbox_open(at_u64 *inbox, int bytes) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(at_shared(inbox))
               : "memory");
  at_barrier_expect(inbox, bytes);
}
/* Sends 16 bytes to block `rank`, to the same place in its shared memory. */
AT_INLINE void at_send(void *to, const uint4 &x, at_u64 *inbox, at_u32 rank) {
  at_u32 there, theirs;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at_shared(to)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(at_shared(inbox)), "r"(rank));
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(there),
      "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(theirs)
      : "memory");
}
/* All that was to come has come. */
AT_INLINE void at_inbox_wait(at_u64 *inbox) {
  at_u32 done = 0;
  while (!done)
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, "
                 "1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(at_shared(inbox))
                 : "memory");
}

#if IN < 4
/* A sum at the same place in the shared memory of block `rank` of the cluster. */
AT_INLINE at_sum at_of_block(const at_sum *p, at_u32 rank) {
  at_sum x;
  at_u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at_shared(p)), "r"(rank));
#if IN == 1
  asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(x) : "r"(there) : "memory");
#else
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(there) : "memory");
#endif
  return x;
}

/* 16 bytes of sums likewise. */
AT_INLINE void at_pack_of_block(at_sum *out, const at_sum *p, at_u32 rank) {
  at_u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at_shared(p)), "r"(rank));
#if IN == 1
  asm volatile("ld.shared::cluster.v2.f64 {%0, %1}, [%2];" : "=d"(out[0]), "=d"(out[1]) : "r"(there) : "memory");
#else
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
               : "r"(there)
               : "memory");
#endif
}
#endif
#endif

/* ---- 16 bytes that are needed once, at any address ---- */

/* Of which only BYTES are sure to lie together. */
template <int BYTES> AT_INLINE uint4 at_load16(const char *p) {
  if constexpr (BYTES == 16) {
    return at_stream16(p);
  } else {
    typedef at_pack<char, BYTES> piece;
    union {
      uint4 whole;
      piece pieces[16 / BYTES];
    } x;
#pragma unroll
    for (int i = 0; i < 16 / BYTES; i++) x.pieces[i] = *(const piece *)(p + i * BYTES);
    return x.whole;
  }
}

/* Of which only the first `count` elements are there; zeros for the others. */
AT_INLINE uint4 at_load_part(const char *p, int count) {
  union {
    uint4 whole;
    at_in x[16 / sizeof(at_in)];
  } u;
  u.whole = make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int i = 0; i < (int)(16 / sizeof(at_in)); i++)
    if (i < count) u.x[i] = ((const at_in *)p)[i];
  return u.whole;
}

/* ---- 16 bytes at an address that is only an element's ---- */

/* 16 bytes of a matrix at a multiple of 16; those outside it are not read. */
AT_INLINE uint4 at_word(const char *p, const char *begin, const char *end) {
  if (p >= begin && p + 16 <= end) return *(const uint4 *)p;
  union {
    uint4 whole;
    at_u16 x[8];
  } u;
  u.whole = make_uint4(0, 0, 0, 0);
#pragma unroll 1
  for (int i = 0; i < 8; i++)
    if (p + 2 * i >= begin && p + 2 * i < end) u.x[i] = *(const at_u16 *)(p + 2 * i);
  return u.whole;
}

AT_INLINE at_u32 at_first(at_u32 x, int count) {
  return count >= 4 ? x : count >= 2 ? x & 0xffffu : 0u;
}

/* 16 bytes from byte `off` of two words on; zeros from byte `count` on. */
AT_INLINE uint4 at_shifted(uint4 low, uint4 high, int off, int count) {
  const bool two = off & 8, one = off & 4;
  const at_u32 a = two ? low.z : low.x, b = two ? low.w : low.y, c = two ? high.x : low.z, d = two ? high.y : low.w,
               e = two ? high.z : high.x, f = two ? high.w : high.y;
  const at_u32 v = one ? b : a, w = one ? c : b, x = one ? d : c, y = one ? e : d, z = one ? f : e,
               bits = off & 2 ? 16u : 0u;
  return make_uint4(at_first(__funnelshift_r(v, w, bits), count), at_first(__funnelshift_r(w, x, bits), count - 4),
                    at_first(__funnelshift_r(x, y, bits), count - 8),
                    at_first(__funnelshift_r(y, z, bits), count - 12));
}
