
/* form_rows.cuh: rows along the innermost dimension, in which every operand is contiguous or one element. `lanes`
 * threads stand side by side in a row, the others below; a thread has LOADS rows in flight at one place, for which what
 * all rows share is loaded once. */
template <int N>
AT_INLINE void at_place(const at_arguments &a, const at_once &once, at_u32 row, at_u32 step, at_u32 column) {
  at_sync_state<N> kept;
  at_keep(a, column, kept);
  if (row + (LOADS - 1) * step < (at_u32)a.rows) {
    at_batch<N> batch[LOADS];
    at_row at[LOADS];
#pragma unroll
    for (int l = 0; l < LOADS; l++) {
      at_locate(a, row + l * step, at[l]);
      at_fetch(a, at[l], column, batch[l]);
    }
#pragma unroll
    for (int l = 0; l < LOADS; l++) at_finish(a, once, at[l], column, kept, batch[l]);
    return;
  }
#pragma unroll 1
  for (; row < (at_u32)a.rows; row += step) {
    at_batch<N> batch;
    at_row at;
    at_locate(a, row, at);
    at_fetch(a, at, column, batch);
    at_finish(a, once, at, column, kept, batch);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) at_elementwise(const __grid_constant__ at_arguments a) {
  at_begin();
  const at_u32 shift = (at_u32)a.shift, step = BLOCK >> shift;
  const at_u32 band = at_divide(blockIdx.x, a.by_tiles), tile = blockIdx.x - band * (at_u32)a.tiles;
  const at_u32 lane = threadIdx.x & ((1u << shift) - 1u), row = band * (step * LOADS) + (threadIdx.x >> shift);
  const at_u32 column = (tile << shift | lane) * VECTOR, columns = (at_u32)a.columns;
  at_wait();
  at_once once;
  at_prepare(a, once);
  if (row >= (at_u32)a.rows) return;
  if (column + VECTOR <= columns) {
    at_place<VECTOR>(a, once, row, step, column);
  } else if (VECTOR > 1) {
#pragma unroll 1
    for (at_u32 c = column; c < columns; c++) at_place<1>(a, once, row, step, c);
  }
}
