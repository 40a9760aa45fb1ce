
/* form_transpose.cuh: tiles of TILE columns, along the innermost dimension, by TILE rows, along the one in which the
 * turned inputs are contiguous. These are read along their own direction into shared memory, where each column of the
 * tile has a line of its own, one word longer than a power of two; the rest goes its straight way. A thread then has
 * VECTOR columns of GROUP rows, so that it takes small elements from shared memory by the word. */
#define UNITS (TILE / VECTOR * (TILE / GROUP))
#define PIECES (TILE * TILE / VECTOR)

extern "C" __global__ void __launch_bounds__(BLOCK) at_elementwise(const __grid_constant__ at_arguments a) {
  __shared__ at_turned turned;
  at_begin();
  const at_u32 rest = at_divide(blockIdx.x, a.by_across), across = blockIdx.x - rest * (at_u32)a.across;
  const at_u32 batch_number = at_divide(rest, a.by_down), down = rest - batch_number * (at_u32)a.down;
  const at_u32 column0 = across * TILE, row0 = down * TILE;
  at_origin origin;
  at_locate(a, batch_number, origin);
  at_wait();
  at_once once;
  at_prepare(a, once);
  if (column0 + TILE <= (at_u32)a.columns && row0 + TILE <= (at_u32)a.rows) {
    at_lines lines[PIECES / BLOCK];
    at_batch<VECTOR> batch[UNITS / BLOCK][GROUP];
#pragma unroll
    for (int i = 0; i < PIECES / BLOCK; i++) {
      const at_u32 piece = threadIdx.x + i * BLOCK, column = piece / (TILE / VECTOR),
                   row = piece % (TILE / VECTOR) * VECTOR;
      at_read(a, origin, column0 + column, row0 + row, lines[i]);
    }
#pragma unroll
    for (int i = 0; i < UNITS / BLOCK; i++) {
      const at_u32 unit = threadIdx.x + i * BLOCK, row = unit / (TILE / VECTOR) * GROUP,
                   column = unit % (TILE / VECTOR) * VECTOR;
#pragma unroll
      for (int g = 0; g < GROUP; g++) at_fetch(a, origin, column0 + column, row0 + row + g, batch[i][g]);
    }
#pragma unroll
    for (int i = 0; i < PIECES / BLOCK; i++) {
      const at_u32 piece = threadIdx.x + i * BLOCK, column = piece / (TILE / VECTOR),
                   row = piece % (TILE / VECTOR) * VECTOR;
      at_put(turned, column, row, lines[i]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < UNITS / BLOCK; i++) {
      const at_u32 unit = threadIdx.x + i * BLOCK, row = unit / (TILE / VECTOR) * GROUP,
                   column = unit % (TILE / VECTOR) * VECTOR;
      at_group<VECTOR> group;
      at_take(turned, column, row, group);
#pragma unroll
      for (int g = 0; g < GROUP; g++)
        at_finish(a, once, origin, column0 + column, row0 + row + g, group, g, batch[i][g]);
    }
    return;
  }
#pragma unroll 1
  for (at_u32 i = threadIdx.x; i < TILE * TILE; i += BLOCK)
    if (column0 + i / TILE < (at_u32)a.columns && row0 + i % TILE < (at_u32)a.rows)
      at_carry(a, origin, column0 + i / TILE, row0 + i % TILE, turned, i / TILE, i % TILE);
  __syncthreads();
#pragma unroll 1
  for (at_u32 i = threadIdx.x; i < TILE * TILE; i += BLOCK) {
    const at_u32 column = i % TILE, row = i / TILE;
    if (column0 + column >= (at_u32)a.columns || row0 + row >= (at_u32)a.rows) continue;
    at_batch<1> batch;
    at_single<1> single;
    at_fetch(a, origin, column0 + column, row0 + row, batch);
    at_pick(turned, column, row, single);
    at_finish(a, once, origin, column0 + column, row0 + row, single, 0, batch);
  }
}
