
/* device_tile.cuh: a tile of a turned input in shared memory: a line for each column of the tile, in which its rows
 * lie. A line is longer than its TILE elements by one word, so that the lines' words at one row lie in different
 * banks. */
template <class D> struct at_tile {
  static constexpr int word = D::bytes < 4 ? 4 : D::bytes, line = TILE * D::bytes + word;
  static constexpr int access = D::bytes < 4 ? 4 : D::bytes;
  alignas(16) char bytes[TILE * line];

  /* VECTOR rows of a column. */
  template <int N> __device__ __forceinline__ void put(at_u32 column, at_u32 row, const at_vector<D, N> &v) {
    char *to = bytes + column * line + row * D::bytes;
    if constexpr (N * D::bytes % 4 != 0) {
#pragma unroll
      for (int k = 0; k < N; k++) {
        if constexpr (D::bytes == 2)
          *(unsigned short *)(to + 2 * k) = (unsigned short)(v.w[k / 2] >> k % 2 * 16);
        else
          *(unsigned char *)(to + k) = (unsigned char)(v.w[k / 4] >> k % 4 * 8);
      }
    } else if constexpr (D::bytes == 8) {
#pragma unroll
      for (int k = 0; k < N; k++) *(uint2 *)(to + 8 * k) = make_uint2(v.w[2 * k], v.w[2 * k + 1]);
    } else if constexpr (D::bytes == 16) {
#pragma unroll
      for (int k = 0; k < N; k++)
        *(uint4 *)(to + 16 * k) = make_uint4(v.w[4 * k], v.w[4 * k + 1], v.w[4 * k + 2], v.w[4 * k + 3]);
    } else {
#pragma unroll
      for (int k = 0; k < N * D::bytes / 4; k++) *(at_u32 *)(to + 4 * k) = v.w[k];
    }
  }

  /* G rows of a column. */
  template <int G> __device__ __forceinline__ void take(at_u32 column, at_u32 row, at_vector<D, G> &v) const {
    const char *from = bytes + column * line + row * D::bytes;
    if constexpr (G * D::bytes == 1) {
      v.w[0] = *(const unsigned char *)from;
    } else if constexpr (G * D::bytes == 2) {
      v.w[0] = *(const unsigned short *)from;
    } else if constexpr (D::bytes == 8) {
#pragma unroll
      for (int k = 0; k < G; k++) {
        const uint2 x = *(const uint2 *)(from + 8 * k);
        v.w[2 * k] = x.x, v.w[2 * k + 1] = x.y;
      }
    } else if constexpr (D::bytes == 16) {
#pragma unroll
      for (int k = 0; k < G; k++) {
        const uint4 x = *(const uint4 *)(from + 16 * k);
        v.w[4 * k] = x.x, v.w[4 * k + 1] = x.y, v.w[4 * k + 2] = x.z, v.w[4 * k + 3] = x.w;
      }
    } else {
#pragma unroll
      for (int k = 0; k < G * D::bytes / 4; k++) v.w[k] = *(const at_u32 *)(from + 4 * k);
    }
  }
};
