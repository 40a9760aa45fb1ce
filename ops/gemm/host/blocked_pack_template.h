/* SPDX-License-Identifier: Apache-2.0
 * blocked_pack_template.h: copying lines into panels, converted. Part of blocked_kernels_template.h. */

/* Lines contiguous: every k step is one run of `width` elements. */
AT_INSTANCE void FN(pack_runs)(const at_pack *p, int64_t first, int64_t width, int64_t padded,
                               const attune_dtype dtype) {
  E *to = (E *)p->to + first * p->depth;
  int64_t full = width / LANES * LANES;
  P(mask) rest = P(first)(width - full);
  P(mask) rest_padded = P(first)(padded - full < LANES ? padded - full : LANES);
  for (int64_t k = 0; k < p->depth; k++, to += padded) {
    int64_t at = first + k * p->depth_step;
    for (int64_t i = 0; i < full; i += LANES) P(store)(to + i, FN(load)(p->from, at + i, dtype));
    if (full < padded) P(store_part)(to + full, rest_padded, FN(load_part)(p->from, at + full, rest, dtype));
  }
}

/* Whole panels of COLUMNS lines of E, the common case for B: the compiler knows the size of a run. */
SIMD void FN(pack_columns)(const at_pack *p, int64_t first) {
  E *to = (E *)p->to + first * p->depth;
  const E *from = (const E *)p->from + first;
  for (int64_t k = 0; k < p->depth; k++, to += COLUMNS, from += p->depth_step) memcpy(to, from, COLUMNS * sizeof(E));
}

/* Depth contiguous: blocks are transposed in registers, the edges one by one. */
AT_INSTANCE void FN(pack_lines)(const at_pack *p, int64_t first, int64_t width, int64_t padded,
                                const attune_dtype dtype) {
  E *to = (E *)p->to + first * p->depth;
  int64_t whole = p->depth / BLOCK * BLOCK;
  if (width < padded) {
    int64_t last = padded - LANES; /* zeros first, lines over them */
    for (int64_t k = 0; k < p->depth; k++) P(store)(to + k * padded + last, P(zero)());
  }
  int64_t line = 0;
  for (; line + LANES <= width; line += LANES)
    for (int64_t k = 0; k < whole; k += BLOCK) FN(transpose_lanes)
  (to + k * padded + line, padded, p->from, (first + line) * p->line_step + k, p->line_step, dtype);
  for (; line + BLOCK <= width; line += BLOCK)
    for (int64_t k = 0; k < whole; k += BLOCK)
      FN(transpose)(to + k * padded + line, padded, p->from, (first + line) * p->line_step + k, p->line_step, dtype);
  for (int64_t i = 0; i < width; i++)
    for (int64_t k = i < line ? whole : 0; k < p->depth; k++)
      to[k * padded + i] = FN(load_one)(p->from, (first + i) * p->line_step + k, dtype);
}

SIMD void FN(pack_as)(const at_pack *p, const attune_dtype dtype) {
  for (int64_t first = 0; first < p->lines; first += p->panel) {
    int64_t width = p->lines - first < p->panel ? p->lines - first : p->panel;
    int64_t padded = (width + p->round - 1) / p->round * p->round;
    if (p->line_step != 1)
      FN(pack_lines)(p, first, width, padded, dtype);
    else if (width == COLUMNS && padded == COLUMNS && (dtype == ATTUNE_F32 || dtype == ATTUNE_F64))
      FN(pack_columns)(p, first);
    else
      FN(pack_runs)(p, first, width, padded, dtype);
  }
}

#if !HALVES
/* Whole complex numbers, depth contiguous; two numbers of two lines at a time. A c64 has the size of an f64. */
static AT_TARGET void FN(pack_pairs)(const at_pack *p) {
  for (int64_t first = 0; first < p->lines; first += p->panel) {
    const int64_t width = p->lines - first < p->panel ? p->lines - first : p->panel,
                  padded = (width + p->round - 1) / p->round * p->round, whole = width / 2 * 2, deep = p->depth / 2 * 2;
    const E *from = (const E *)p->from + 2 * first * p->line_step;
    E *to = (E *)p->to + 2 * first * p->depth;
    for (int64_t i = 0; i < whole; i += 2)
      for (int64_t k = 0; k < deep; k += 2)
        P(transpose_pairs)(to + 2 * (k * padded + i), 2 * padded, from + 2 * (i * p->line_step + k), 2 * p->line_step);
    for (int64_t i = 0; i < width; i++)
      for (int64_t k = i < whole ? deep : 0; k < p->depth; k++)
        memcpy(to + 2 * (k * padded + i), from + 2 * (i * p->line_step + k), 2 * sizeof *to);
    for (int64_t k = 0; k < p->depth && width < padded; k++)
      memset(to + 2 * (k * padded + width), 0, 2 * (size_t)(padded - width) * sizeof *to);
  }
}
#endif

static AT_TARGET void FN(pack)(const at_pack *p) {
#if HALVES
  if (p->dtype == ATTUNE_F16) {
    FN(pack_as)(p, ATTUNE_F16);
    return;
  }
  if (p->dtype == ATTUNE_BF16) {
    FN(pack_as)(p, ATTUNE_BF16);
    return;
  }
#endif
  FN(pack_as)(p, (attune_dtype)(HALVES ? ATTUNE_F32 : ATTUNE_F64));
}
