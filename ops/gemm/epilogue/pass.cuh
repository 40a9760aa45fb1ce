/* SPDX-License-Identifier: Apache-2.0
 * pass.cuh: an epilogue's pass over D: at_pass changes its elements, at_sums makes the vector of a bias gradient.
 * Behind kernel.cuh and epilogue.cuh. Macros: WIDTH, elements of D that a thread has side by side, 8 with a mask;
 * UNALIGNED 1: they are not loaded at once; SUMS 1: at_sums; SUM_TYPE, the dtype of what is added up (0 f32, 1 f64, 2 f16, 3 bf16). */

struct at_pass_arguments {
  at_epilogue epilogue;
  const char *z; /* the product; 0: it is 0 */
  char *d;
  at_i64 ldz, stride_z, ldd, stride_d, half; /* elements; half: from g to u of a gated product */
  int m, n, batch, pieces; /* of D; pieces: of WIDTH elements, that a column has, the last one perhaps not whole */
  int bias_m, bias_n;      /* rows and columns from g to u */
};

#if !SUMS
template <bool ALL> AT_INLINE void at_load_wide(at_sum (&z)[WIDTH], const at_out *from, int count) {
  at_out x[WIDTH] = {};
  at_side_load<BYTES_D, ALL>(x, from, count);
#pragma unroll
  for (int i = 0; i < WIDTH; i++) z[i] = at_widen_c(x[i]);
}

template <bool ALL>
AT_INLINE void at_pass_some(const at_pass_arguments &a, at_out *d, int m, at_i64 n, at_i64 matrix, int count) {
  const at_out *from = (const at_out *)a.z + matrix * a.stride_z + n * a.ldz + m;
  at_out x[WIDTH];
  at_sum z[WIDTH] = {};
  if (!GATED || a.z) at_load_wide<ALL>(z, from, count);
#if GATED
  at_sum up[WIDTH] = {};
  if (a.z) at_load_wide<ALL>(up, from + a.half, count);
  at_gate<WIDTH, ALL>(a.epilogue, m, n, m + a.bias_m, n + a.bias_n, count, z, up);
#endif
  at_epilogue_apply<WIDTH, ALL>(a.epilogue, m, n, matrix, count, z);
#pragma unroll
  for (int i = 0; i < WIDTH; i++) x[i] = at_narrow(z[i]);
  at_side_store<BYTES_D, ALL>(d + m, x, count);
}

/* Blocks of x threads along m and y along n, over columns of all matrices. */
extern "C" __global__ void __launch_bounds__(256) at_pass(const at_pass_arguments a) {
  const at_i64 columns = (at_i64)a.n * a.batch;
  for (at_i64 column = (at_i64)blockIdx.y * blockDim.y + threadIdx.y; column < columns;
       column += (at_i64)gridDim.y * blockDim.y) {
    const at_i64 matrix = column / a.n, n = column % a.n;
    at_out *const d = (at_out *)a.d + matrix * a.stride_d + n * a.ldd;
    for (int piece = (int)(blockIdx.x * blockDim.x + threadIdx.x); piece < a.pieces; piece += (int)(gridDim.x * blockDim.x)) {
      const int m = piece * WIDTH;
      if (!UNALIGNED && m + WIDTH <= a.m)
        at_pass_some<true>(a, d, m, n, matrix, WIDTH);
      else
        at_pass_some<false>(a, d, m, n, matrix, a.m - m < WIDTH ? a.m - m : WIDTH);
    }
  }
}
#else

#if SUM_TYPE == 1
typedef double at_term;
#elif SUM_TYPE == 0
typedef float at_term;
#else
typedef at_u16 at_term;
#endif

AT_INLINE at_sum at_term_of(at_term x) {
#if SUM_TYPE == 2
  return at_from_f16(x);
#elif SUM_TYPE == 3
  return at_from_bf16(x);
#else
  return (at_sum)x;
#endif
}

AT_INLINE at_bias at_narrow_bias(at_sum x) {
#if BIAS_TYPE == 2
  return at_to_f16(x);
#elif BIAS_TYPE == 3
  return at_to_bf16(x);
#else
  return (at_bias)x;
#endif
}

/* Sum number i is of data[i * stride + x * step], x below `length`; one of stride and step is 1. */
struct at_sums_arguments {
  const at_term *data;
  at_bias *out;
  at_i64 count, length, stride, step;
};

/* Blocks of 32 x 8 threads. Sums that lie side by side: one a lane, eight rows of threads share its terms. Others: one a
 * warp, whose lanes share them. Always in the same order: the result does not depend on timing. */
extern "C" __global__ void __launch_bounds__(256) at_sums(const at_sums_arguments a) {
  __shared__ at_sum shared[8][33];
  const int lane = (int)threadIdx.x, row = (int)threadIdx.y;
  at_sum sum = 0;
  if (a.stride == 1) {
    const at_i64 i = (at_i64)blockIdx.x * 32 + lane;
    if (i < a.count)
      for (at_i64 x = row; x < a.length; x += 8) sum += at_term_of(a.data[i + x * a.step]);
    shared[row][lane] = sum;
    __syncthreads();
    if (row != 0 || i >= a.count) return;
    sum = 0;
#pragma unroll
    for (int r = 0; r < 8; r++) sum += shared[r][lane];
    a.out[i] = at_narrow_bias(sum);
    return;
  }
  const at_i64 i = (at_i64)blockIdx.x * 8 + row;
  if (i >= a.count) return;
  for (at_i64 x = lane; x < a.length; x += 32) sum += at_term_of(a.data[i * a.stride + x * a.step]);
#pragma unroll
  for (int down = 16; down > 0; down /= 2) sum += __shfl_down_sync(0xffffffffu, sum, down);
  if (lane == 0) a.out[i] = at_narrow_bias(sum);
}
#endif
