/* SPDX-License-Identifier: Apache-2.0
 * copy_arrays.cu: matrices that one array of pointers names into those that another one names. What lies between their
 * columns is left alone. */
typedef long long at_i64;

/* copy_arguments of copy_arrays.c */
struct copy_arguments {
  const char *const *from;
  char *const *to;
  at_i64 ld_from, ld_to, bytes, columns, batch; /* bytes: of a column */
  int grain, unused;                            /* all addresses and sizes are multiples of it */
};

template <class WORD> static __device__ void at_copy(const copy_arguments &a) {
  const at_i64 words = a.bytes / (at_i64)sizeof(WORD), all = words * a.columns;
  for (at_i64 matrix = blockIdx.y; matrix < a.batch; matrix += gridDim.y) {
    const char *const from = a.from[matrix];
    char *const to = a.to[matrix];
    for (at_i64 i = (at_i64)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (at_i64)gridDim.x * blockDim.x) {
      const at_i64 column = i / words, at = i % words * (at_i64)sizeof(WORD);
      *(WORD *)(to + column * a.ld_to + at) = *(const WORD *)(from + column * a.ld_from + at);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) at_copy_arrays(const copy_arguments a) {
  switch (a.grain) {
  case 16: at_copy<uint4>(a); break;
  case 8: at_copy<uint2>(a); break;
  case 4: at_copy<unsigned int>(a); break;
  default: at_copy<unsigned short>(a); break;
  }
}
