
/* form_strided.cuh: any strides. A thread finds the coordinates of its elements by multiplication, and from them the
 * place of every operand's. */
extern "C" __global__ void __launch_bounds__(BLOCK) at_elementwise(const __grid_constant__ at_arguments a) {
  at_begin();
  at_once once;
  const at_number count = (at_number)a.count;
#if PERSISTENT
  at_wait();
  at_prepare(a, once);
#pragma unroll 1
  for (at_u64 tile = blockIdx.x; tile * (BLOCK * LOADS) < a.count; tile += gridDim.x) {
#else
  const at_u64 tile = blockIdx.x;
  {
#endif
    const at_number first = (at_number)(tile * (BLOCK * LOADS) + threadIdx.x);
    at_batch batch[LOADS];
#pragma unroll
    for (int l = 0; l < LOADS; l++)
      if (first + l * BLOCK < count) at_find(a, first + l * BLOCK, batch[l]);
#if !PERSISTENT
    at_wait();
    at_prepare(a, once);
#endif
#pragma unroll
    for (int l = 0; l < LOADS; l++)
      if (first + l * BLOCK < count) at_fetch(a, batch[l]);
#pragma unroll
    for (int l = 0; l < LOADS; l++)
      if (first + l * BLOCK < count) at_finish(a, once, batch[l]);
  }
}
