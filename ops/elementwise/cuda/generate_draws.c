/* SPDX-License-Identifier: Apache-2.0
 * generate_draws.c: random numbers in a kernel's text: made for all elements of a vector at once where these follow
 * each other, else for each alone. */
#include "ops/elementwise/cuda/cuda_source.h"

static const char *kind_of(const at_expression *e, int draw) {
  return draw < e->uniform_count ? "false" : "true";
}

static int draw_count(const at_expression *e) {
  return e->uniform_count + e->normal_count;
}

void at_generate_draw_members(at_writer *s, const at_expression *e) {
  for (int d = 0; d < draw_count(e); d++) at_write(s, "  at_u32 r%d;\n", d);
}

void at_generate_draw_row(at_writer *s, const at_expression *e, const char *element, const char *first) {
  if (draw_count(e) > 0) at_write(s, "  const at_u32 skip = (at_u32)(N %% 4 == 0 ? %s : %s) & 3u;\n", first, element);
  for (int d = 0; d < draw_count(e); d++)
    at_write(s, "  at_u32 r%d[N];\n  at_draw_row<%s>(r%d, once.draws, a.blocks, %d, (at_u64)(%s), skip);\n", d,
             kind_of(e, d), d, d, element);
}

void at_generate_draw_take(at_writer *s, const at_expression *e) {
  for (int d = 0; d < draw_count(e); d++) at_write(s, "    x.r%d = r%d[k];\n", d, d);
}

void at_generate_draw_one(at_writer *s, const at_expression *e, const char *x) {
  int list[AT_CUDA_INDICES], number = 0;
  const int count = at_cuda_indices(e, list);
  while (number < count && list[number] != -1) number++;
  for (int d = 0; d < draw_count(e); d++)
    at_write(s,
             "  {\n    at_u32 r[1];\n    at_draw_row<%s>(r, once.draws, a.blocks, %d, (at_u64)%s.p%d, (at_u32)%s.p%d & "
             "3u);\n"
             "    %s.r%d = r[0];\n  }\n",
             kind_of(e, d), d, x, number, x, number, x, d);
}

/* Whether `node` is rand() and the other one the same for all elements. */
static bool is_bounded(const at_expression *e, int node, int bound) {
  const at_node *b = &e->nodes[bound];
  return e->nodes[node].kind == AT_NODE_UNIFORM && b->dtype == ATTUNE_F32 &&
         (b->kind == AT_NODE_SCALAR || b->kind == AT_NODE_CONSTANT);
}

bool at_generate_draw_below(at_writer *s, const at_expression *e, const at_node *node) {
  const bool less = node->function == AT_FN_LESS, greater = node->function == AT_FN_GREATER;
  const int draw = node->argument[less ? 0 : 1], bound = node->argument[less ? 1 : 0];
  if ((!less && !greater) || !is_bounded(e, draw, bound)) return false;
  at_write(s, "at_is_below(x.r%d, v%d)", e->nodes[draw].index, bound);
  return true;
}
