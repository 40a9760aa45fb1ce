
/* form_bulk.cuh: as form_vector.cuh, but one thread has the copy engine bring tiles of a vector a thread into shared
 * memory, LOADS tiles ahead, so that what is in flight takes no registers. Needs capability 9.0. */
#ifdef __CUDA_ARCH__
AT_INLINE at_u32 at_shared_address(const void *p) {
  return (at_u32)__cvta_generic_to_shared(p);
}
AT_INLINE void at_barrier_start(at_u64 *barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at_shared_address(barrier)) : "memory");
}
AT_INLINE void at_barrier_ready() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
AT_INLINE void at_barrier_expect(at_u64 *barrier, at_u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at_shared_address(barrier)), "r"(bytes)
               : "memory");
}
AT_INLINE void at_bulk_copy(char *to, const char *from, at_u32 bytes, at_u64 *barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   at_shared_address(to)),
               "l"(from), "r"(bytes), "r"(at_shared_address(barrier))
               : "memory");
}
AT_INLINE void at_barrier_wait(at_u64 *barrier, at_u32 phase) {
  asm volatile(
      "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }" ::"r"(
          at_shared_address(barrier)),
      "r"(phase)
      : "memory");
}
#else
AT_INLINE void at_barrier_start(at_u64 *) {}
AT_INLINE void at_barrier_ready() {}
AT_INLINE void at_barrier_expect(at_u64 *, at_u32) {}
AT_INLINE void at_bulk_copy(char *to, const char *from, at_u32 bytes, at_u64 *) {
  __builtin_memcpy(to, from, bytes);
}
AT_INLINE void at_barrier_wait(at_u64 *, at_u32) {}
#endif

AT_INLINE void at_start(const at_arguments &a, at_u64 tile, at_stage &stage, at_u64 *barrier) {
  at_barrier_expect(barrier, STAGE_BYTES);
  at_order(a, a.head + tile * (BLOCK * VECTOR), stage, barrier);
}

extern "C" __global__ void __launch_bounds__(BLOCK) at_elementwise(const __grid_constant__ at_arguments a) {
  __shared__ at_stage stages[LOADS];
  __shared__ at_u64 full[LOADS];
  at_begin();
  at_wait();
  at_once once;
  at_prepare(a, once);
  at_still still;
  at_hold(a, still);
  const at_u64 tiles = a.vectors / BLOCK;
  if (threadIdx.x == 0) {
#pragma unroll
    for (int s = 0; s < LOADS; s++) at_barrier_start(&full[s]);
    at_barrier_ready();
    for (int s = 0; s < LOADS; s++)
      if (blockIdx.x + (at_u64)s * gridDim.x < tiles)
        at_start(a, blockIdx.x + (at_u64)s * gridDim.x, stages[s], &full[s]);
  }
  __syncthreads();
  at_u32 s = 0, phase = 0;
#pragma unroll 1
  for (at_u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const at_u64 next = tile + (at_u64)LOADS * gridDim.x;
    at_batch<VECTOR> batch;
    at_barrier_wait(&full[s], phase);
    at_unload(stages[s], batch);
    __syncthreads();
    if (threadIdx.x == 0 && next < tiles) at_start(a, next, stages[s], &full[s]);
    at_finish(a, once, still, a.head + (tile * BLOCK + threadIdx.x) * VECTOR, batch);
    if (++s == LOADS) s = 0, phase ^= 1u;
  }
  if (blockIdx.x > 0) return;
  const at_u64 done = tiles * BLOCK;
  if (done + threadIdx.x < a.vectors) {
    at_batch<VECTOR> batch;
    at_fetch(a, a.head + (done + threadIdx.x) * VECTOR, batch);
    at_finish(a, once, still, a.head + (done + threadIdx.x) * VECTOR, batch);
  }
  const at_u64 left = a.count - a.vectors * VECTOR;
#pragma unroll 1
  for (at_u64 i = threadIdx.x; VECTOR > 1 && i < left; i += BLOCK) {
    const at_u64 element = i < a.head ? i : i + a.vectors * VECTOR;
    at_batch<1> batch;
    at_fetch(a, element, batch);
    at_finish(a, once, still, element, batch);
  }
}
