/* SPDX-License-Identifier: Apache-2.0
 * fill.cu: fills with elements of one or two words of 8 bytes, in rows. The blocks of one y take rows in turn, those of
 * one x the words of a row. Compiled at run time; fill.h has the arguments. It is also C, so that a test can run it on
 * the host. */
struct at_fill_arguments {
  unsigned long long *to;
  unsigned long long words;              /* of a row */
  unsigned long long pitch, slice_pitch; /* in words */
  unsigned long long rows, all_rows;     /* of a slice; of all slices */
  unsigned long long element[2];         /* twice the same where it is one word */
};

#ifdef __cplusplus
extern "C"
#endif
    __global__ void
    __launch_bounds__(256) at_fill(const __grid_constant__ struct at_fill_arguments a) {
  const unsigned long long own = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
  const unsigned long long word = a.element[own % 2]; /* a row's threads are even in number */
  for (unsigned long long r = blockIdx.y; r < a.all_rows; r += gridDim.y) {
    unsigned long long *row = a.to + r / a.rows * a.slice_pitch + r % a.rows * a.pitch;
    for (unsigned long long i = own; i < a.words; i += threads) row[i] = word;
  }
}
