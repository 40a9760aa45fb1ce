/* SPDX-License-Identifier: Apache-2.0
 * form_bulk.c: kernels for contiguous operands that come through shared memory by the copy engine: what form_bulk.cuh
 * calls in addition to those of the vector form, and its numbers. */
#include "ops/elementwise/cuda/form_contiguous.h"

#include "form_bulk_cuh.h"

#define SHARED_BYTES 48128 /* beside the barriers, in what every device gives a block without asking */

static bool is_staged(const at_cuda_problem *p, int k) {
  return k >= p->expression->output_count && at_cuda_moves(p, k);
}

static int64_t stage_bytes(const at_cuda_problem *p, const at_cuda_choice *c) {
  int64_t sum = 0;
  for (int k = 0; k < at_cuda_tensor_count(p); k++)
    if (is_staged(p, k)) sum += (int64_t)at_cuda_operand_of(p, k).bytes * at_cuda_width(p, c->bytes) * c->block;
  return sum;
}

static bool supports(const at_cuda_problem *p, const at_cuda_choice *c) {
  if (!c->persistent || c->loads < 2 || c->load || !at_contiguous_supports(p, c)) return false;
  const int64_t bytes = stage_bytes(p, c);
  for (int k = 0; k < at_cuda_tensor_count(p); k++) /* the engine copies 16 bytes at a time */
    if (is_staged(p, k) && p->alignment[k] < 16) return false;
  return bytes > 0 && bytes * c->loads <= SHARED_BYTES;
}

static void functions(at_writer *s, const at_cuda_problem *p, const at_cuda_choice *c) {
  at_contiguous_functions(s, p, c);
  at_write(s, "#define STAGE_BYTES %lld\nstruct at_stage {\n", (long long)stage_bytes(p, c));
  for (int step = 0; step < 3; step++) {
    for (int k = 0; k < at_cuda_tensor_count(p); k++) {
      const at_cuda_operand o = at_cuda_operand_of(p, k);
      const int i = o.number, bytes = (int)o.bytes;
      if (!is_staged(p, k)) continue;
      if (step == 0) at_write(s, "  alignas(16) char i%d[BLOCK * VECTOR * %d];\n", i, bytes);
      if (step == 1)
        at_write(s, "  at_bulk_copy(stage.i%d, a.i%d + element * %d, BLOCK * VECTOR * %d, barrier);\n", i, i, bytes,
                 bytes);
      if (step == 2) at_write(s, "  batch.i%d.load_shared(stage.i%d + threadIdx.x * (VECTOR * %d));\n", i, i, bytes);
    }
    if (step == 0)
      at_write(s,
               "};\nAT_INLINE void at_bulk_copy(char *to, const char *from, at_u32 bytes, at_u64 *barrier);\n"
               "AT_INLINE void at_order(const at_arguments &a, at_u64 element, at_stage &stage, at_u64 *barrier) {\n");
    if (step == 1) at_write(s, "}\nAT_INLINE void at_unload(const at_stage &stage, at_batch<VECTOR> &batch) {\n");
  }
  at_write(s, "}\n");
}

static uint64_t blocks(const at_cuda_problem *p, const at_cuda_choice *c) {
  const uint64_t tile = (uint64_t)at_cuda_width(p, c->bytes) * c->block, tiles = (uint64_t)p->layout.count / tile;
  return tiles < 1 ? 1 : tiles;
}

static int candidates(const at_cuda_problem *p, at_cuda_choice *out, int max) {
  static const at_cuda_choice best[] = {{.bytes = 16, .loads = 4, .block = 256}}; /* never the best on an H200 */
  int count = 0;
  if (p->layout.count < 1 << 22) return 0;
  for (size_t i = 0; i < AT_COUNT(best) && count < max; i++) {
    out[count] = best[i];
    out[count].form = AT_FORM_BULK;
    out[count++].persistent = 1;
  }
  return count;
}

const at_cuda_form_type at_form_bulk = {
    .skeleton = at_form_bulk_cuh,
    .supports = supports,
    .candidates = candidates,
    .fields = at_contiguous_fields,
    .functions = functions,
    .blocks = blocks,
    .capability = 90,
};
