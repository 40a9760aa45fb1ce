
/* form_vector.cuh: all tensors contiguous, or one element. A block takes tiles of LOADS vectors a thread, whose loads
 * are all in flight before the first is used. The first block also does what is left before and after the vectors. */
extern "C" __global__ void __launch_bounds__(BLOCK) at_elementwise(const __grid_constant__ at_arguments a) {
  at_begin();
#if !PERSISTENT
  const at_u64 first = (at_u64)blockIdx.x * (BLOCK * LOADS), vector = first + threadIdx.x;
  const bool whole = first + BLOCK * LOADS <= a.vectors;
#endif
  at_wait();
  at_once once;
  at_prepare(a, once);
  at_still still;
  at_hold(a, still);
#if PERSISTENT
#pragma unroll 1
  for (at_u64 first = (at_u64)blockIdx.x * (BLOCK * LOADS); first < a.vectors;
       first += (at_u64)gridDim.x * (BLOCK * LOADS)) {
    const at_u64 vector = first + threadIdx.x;
    const bool whole = first + BLOCK * LOADS <= a.vectors;
#else
  {
#endif
    if (whole) {
      at_batch<VECTOR> batch[LOADS];
#pragma unroll
      for (int l = 0; l < LOADS; l++) at_fetch(a, a.head + (vector + l * BLOCK) * VECTOR, batch[l]);
#if defined(AT_RANDOM_DRAWS) && LOADS > 1
      at_loads_begun();
#endif
#pragma unroll
      for (int l = 0; l < LOADS; l++)
        at_finish(a, once, still, a.head + (vector + l * BLOCK) * VECTOR, batch[l]);
    } else {
#pragma unroll 1
      for (at_u64 v = vector; v < a.vectors; v += BLOCK) {
        at_batch<VECTOR> batch;
        at_fetch(a, a.head + v * VECTOR, batch);
        at_finish(a, once, still, a.head + v * VECTOR, batch);
      }
    }
  }
  if (VECTOR > 1 && blockIdx.x == 0) {
    const at_u64 left = a.count - a.vectors * VECTOR;
#pragma unroll 1
    for (at_u64 i = threadIdx.x; i < left; i += BLOCK) {
      const at_u64 element = i < a.head ? i : i + a.vectors * VECTOR;
      at_batch<1> batch;
      at_fetch(a, element, batch);
      at_finish(a, once, still, element, batch);
    }
  }
}
