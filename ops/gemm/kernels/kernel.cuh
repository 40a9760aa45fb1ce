/* SPDX-License-Identifier: Apache-2.0
 * kernel.cuh: what every GEMM kernel of attune begins with: the argument, element types as they lie in memory and as
 * they are added up, copies into shared memory, tensor core instructions, clusters, and the one place where a sum
 * becomes an element of D. IN and OUT are dtypes: 0 f32, 1 f64, 2 f16, 3 bf16, 4 c64, 5 c128. Compiled at run time; a test compiles
 * the same text for the host, where tests/support/gemm_on_host.h has what is PTX here. */
#ifndef IN
#define IN 0
#endif
#ifndef OUT
#define OUT IN
#endif
#ifndef EPILOGUE
#define EPILOGUE 0
#endif

typedef unsigned int at_u32;
typedef unsigned short at_u16;
typedef long long at_i64;
typedef unsigned long long at_u64;

#define AT_INLINE static __device__ __forceinline__

/* at_gemm_arguments of kernel.h. Leading dimensions and strides in bytes. */
struct at_arguments {
  const char *a, *b, *c;
  char *d;
  at_i64 lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d;
  double alpha, beta;
  int m, n, k, batch;
  char *sums; /* in the workspace */
  int phase, zero;
  double alpha_imag, beta_imag;
  const char *bias; /* of an epilogue */
  double clamp_min, clamp_max;
};

/* ---- elements ---- */

template <class T> struct alignas(2 * sizeof(T)) at_complex {
  typedef T part;
  T re, im;
};

#if IN == 4
typedef at_complex<float> at_in;
typedef at_in at_sum;
#elif IN == 5
typedef at_complex<double> at_in;
typedef at_in at_sum;
#elif IN == 1
typedef double at_in;
typedef double at_sum;
#elif IN == 0
typedef float at_in;
typedef float at_sum;
#else
typedef at_u16 at_in;
typedef float at_sum;
#endif

#if OUT >= 4
typedef at_in at_out;
#elif OUT == 1
typedef double at_out;
#elif OUT == 0
typedef float at_out;
#else
typedef at_u16 at_out;
#endif

template <class T, int COUNT> struct alignas(sizeof(T) * COUNT) at_pack { T x[COUNT]; };

#ifndef AT_ON_HOST
AT_INLINE float at_from_f16(at_u16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
AT_INLINE float at_from_bf16(at_u16 x) {
  return __uint_as_float((at_u32)x << 16);
}
AT_INLINE at_u16 at_to_f16(float x) {
  at_u16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
AT_INLINE at_u16 at_to_bf16(float x) {
  at_u16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
#endif

/* An element as it is computed with. */
AT_INLINE at_sum at_widen(at_in x) {
#if IN == 2
  return at_from_f16(x);
#elif IN == 3
  return at_from_bf16(x);
#else
  return x;
#endif
}

AT_INLINE at_sum at_widen_c(at_out x) {
#if OUT == 2
  return at_from_f16(x);
#elif OUT == 3
  return at_from_bf16(x);
#else
  return (at_sum)x;
#endif
}

AT_INLINE at_out at_narrow(at_sum x) {
#if OUT == 2
  return at_to_f16(x);
#elif OUT == 3
  return at_to_bf16(x);
#else
  return (at_out)x;
#endif
}

AT_INLINE float at_multiply_add(float x, float y, float z) {
  return __fmaf_rn(x, y, z);
}
AT_INLINE double at_multiply_add(double x, double y, double z) {
  return __fma_rn(x, y, z);
}
template <class T> AT_INLINE at_complex<T> at_multiply_add(at_complex<T> x, at_complex<T> y, at_complex<T> z) {
  return at_complex<T>{at_multiply_add(-x.im, y.im, at_multiply_add(x.re, y.re, z.re)),
                       at_multiply_add(x.im, y.re, at_multiply_add(x.re, y.im, z.im))};
}

/* ---- the epilogue: what a sum becomes. C is not read where beta is 0. ---- */

AT_INLINE bool at_adds_c(const at_arguments &a) {
  return a.beta != 0.0 || (IN >= 4 && a.beta_imag != 0.0);
}

#if IN >= 4
/* A scalar times x, with z. A real scalar leaves a part alone where the other one is not finite. */
AT_INLINE at_sum at_scale_add(double re, double im, at_sum x, at_sum z) {
  typedef at_sum::part part;
  const at_sum y = {at_multiply_add((part)re, x.re, z.re), at_multiply_add((part)re, x.im, z.im)};
  if ((part)im == 0) return y;
  return at_sum{at_multiply_add(-(part)im, x.im, y.re), at_multiply_add((part)im, x.re, y.im)};
}

AT_INLINE at_out at_finish(const at_arguments &a, at_sum sum) {
  return at_scale_add(a.alpha, a.alpha_imag, sum, at_sum{0, 0});
}

AT_INLINE at_out at_finish(const at_arguments &a, at_sum sum, at_out c) {
  return at_scale_add(a.beta, a.beta_imag, c, at_finish(a, sum));
}
#else
AT_INLINE at_out at_finish(const at_arguments &a, at_sum sum) {
  return at_narrow((at_sum)a.alpha * sum);
}

AT_INLINE at_out at_finish(const at_arguments &a, at_sum sum, at_out c) {
  return at_narrow(at_multiply_add((at_sum)a.beta, at_widen_c(c), (at_sum)a.alpha * sum));
}
#endif

#if EPILOGUE
AT_INLINE at_sum at_followed(const at_arguments &a, int m, int n, at_sum z); /* epilogue.cuh */
#endif

/* The same of the sum that element (m, n) of D gets; it may lie outside of D. */
AT_INLINE at_out at_finish_at(const at_arguments &a, int m, int n, at_sum sum) {
#if EPILOGUE
  return at_narrow(at_followed(a, m, n, (at_sum)a.alpha * sum));
#else
  return at_finish(a, sum);
#endif
}

AT_INLINE at_out at_finish_at(const at_arguments &a, int m, int n, at_sum sum, at_out c) {
#if EPILOGUE
  return at_narrow(at_followed(a, m, n, at_multiply_add((at_sum)a.beta, at_widen_c(c), (at_sum)a.alpha * sum)));
#else
  return at_finish(a, sum, c);
#endif
}

/* A sum into its place in D; TURNED: D lies along n. READS_C: there may be a C. */
template <bool TURNED_, bool READS_C_>
AT_INLINE void at_put(const at_arguments &a, int m, int n, at_i64 matrix, at_sum sum) {
  if (m >= a.m || n >= a.n) return;
  const at_i64 line = TURNED_ ? m : n, at = (at_i64)(TURNED_ ? n : m) * (at_i64)sizeof(at_out);
  at_out *d = (at_out *)(a.d + matrix * a.stride_d + line * a.ldd + at);
  if (READS_C_ && a.beta != 0.0)
    *d = at_finish_at(a, m, n, sum, *(const at_out *)(a.c + matrix * a.stride_c + line * a.ldc + at));
  else
    *d = at_finish_at(a, m, n, sum);
}

/* COUNT sums side by side. */
template <int COUNT> struct at_row { at_sum x[COUNT]; };

/* Elements of D, COUNT side by side from (line, at) on; a store may have EACH. Of a family whose macros say how D lies:
 * at_write<AT_WRITE>. */
#define AT_FINISH_HERE(...) at_finish_at(a, TURNED_ ? line : at + i + e, TURNED_ ? at + i + e : line, __VA_ARGS__)
template <int EACH, bool TURNED_, bool ENDS, bool FEWER, bool READS_C_, int COUNT>
AT_INLINE void at_write(const at_arguments &a, at_i64 matrix, int line, int at, const at_row<COUNT> &sum) {
  constexpr int STORE = EACH < COUNT ? EACH : COUNT, SIZE_OUT = (int)sizeof(at_out);
  const int lines = TURNED_ ? a.m : a.n, length = TURNED_ ? a.n : a.m;
  if (FEWER && line >= lines) return;
  char *d = a.d + matrix * a.stride_d + line * a.ldd + (at_i64)at * SIZE_OUT;
  const char *c = READS_C_ ? a.c + matrix * a.stride_c + line * a.ldc + (at_i64)at * SIZE_OUT : 0;
  const bool with_c = READS_C_ && a.beta != 0.0;
#pragma unroll
  for (int i = 0; i < COUNT; i += STORE) {
    at_pack<at_out, STORE> out;
    if (!ENDS || at + i + STORE <= length) {
      if (with_c) {
        const at_pack<at_out, STORE> old = *(const at_pack<at_out, STORE> *)(c + i * SIZE_OUT);
#pragma unroll
        for (int e = 0; e < STORE; e++) out.x[e] = AT_FINISH_HERE(sum.x[i + e], old.x[e]);
      } else {
#pragma unroll
        for (int e = 0; e < STORE; e++) out.x[e] = AT_FINISH_HERE(sum.x[i + e]);
      }
      *(at_pack<at_out, STORE> *)(d + i * SIZE_OUT) = out;
    } else {
#pragma unroll
      for (int e = 0; e < STORE; e++)
        if (at + i + e < length)
          *(at_out *)(d + (i + e) * SIZE_OUT) =
              with_c ? AT_FINISH_HERE(sum.x[i + e], *(const at_out *)(c + (i + e) * SIZE_OUT))
                     : AT_FINISH_HERE(sum.x[i + e]);
    }
  }
}
#undef AT_FINISH_HERE
#define AT_WRITE EACH_D, TURNED, TURNED ? RAGGED_N : RAGGED_M, TURNED ? RAGGED_M : RAGGED_N, READS_C

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
