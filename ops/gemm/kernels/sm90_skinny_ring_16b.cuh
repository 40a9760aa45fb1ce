/* SPDX-License-Identifier: Apache-2.0
 * sm90_skinny_ring_16b.cuh: sums of halves, for sm90_skinny_ring.cuh: a lane's 8 elements along k are those of two
 * instructions. */
/* 32 of k, from `at` bytes on within their lines. */
AT_INLINE void at_add(at_sums &sum, const char *l, const char *s, int lane) {
  uint4 x[2 * PER];
#pragma unroll
  for (int i = 0; i < 2 * PER; i++) x[i] = *(const uint4 *)(l + i * (8 * PITCH));
#pragma unroll
  for (int j = 0; j < COLS / 8; j++) {
    const uint4 y = *(const uint4 *)(s + j * (8 * PITCH));
#pragma unroll
    for (int i = 0; i < PER; i++) {
      const uint4 low = x[2 * i], high = x[2 * i + 1];
      const at_u32 first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
      at_mma16(sum[i][j], first, y.x, y.y);
      at_mma16(sum[i][j], second, y.z, y.w);
    }
  }
}

AT_INLINE void at_multiply(at_sums &sum, const char *l, const char *s, int bytes, int lane) {
  l += lane / 4 * PITCH + lane % 4 * 16;
  s += lane / 4 % LINES_S * PITCH + lane % 4 * 16;
  if (bytes == STEP * 2) {
#pragma unroll 4
    for (int at = 0; at < STEP * 2; at += 64) at_add(sum, l + at, s + at, lane);
  } else {
#pragma unroll 1
    for (int at = 0; at < bytes; at += 64) at_add(sum, l + at, s + at, lane);
  }
}

AT_INLINE void at_ring_put(const at_ring_arguments &a, int m, int n, at_i64 matrix, at_total sum, float &most) {
  at_put<TURNED, READS_C>(a, m, n, matrix, sum);
}

AT_INLINE void at_ring_end(const at_ring_arguments &a, float most) {}
