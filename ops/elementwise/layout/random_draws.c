/* SPDX-License-Identifier: Apache-2.0
 * random_draws.c: random numbers of a stretch of elements, by the host's filler of whole Philox blocks. */
#include "ops/elementwise/layout/random_draws.h"

#include <string.h>

#include "src/host/random/fill.h"

void at_draw_row(float *out, const at_random_draws *draws, int64_t count, int draw, int normal, int64_t first,
                 int64_t n) {
  at_random_call call = {.seed = draws->seed, .distribution = normal ? AT_NORMAL : AT_UNIFORM, .dtype = AT_F32};
  call.offset = draws->offset + 4 * at_draw_blocks(count) * (uint64_t)draw;
  call.f[0] = 0.0f, call.f[1] = 1.0f, call.f[2] = 1.0f; /* from, extent, to; mean, deviation */
  call.count = (at_u64)count;
  const at_fill_isa *isa = at_fill_best();
  while (n > 0) {
    const int64_t skip = first % 4;
    if (skip == 0 && n >= 4) {
      const int64_t blocks = n / 4;
      isa->fill(&call, (at_u64)(first / 4), (size_t)blocks, out);
      out += 4 * blocks;
      first += 4 * blocks;
      n -= 4 * blocks;
      continue;
    }
    float block[4];
    isa->fill(&call, (at_u64)(first / 4), 1, block);
    const int64_t part = n < 4 - skip ? n : 4 - skip;
    memcpy(out, block + skip, (size_t)part * sizeof *out);
    out += part;
    first += part;
    n -= part;
  }
}
