/* SPDX-License-Identifier: Apache-2.0
 * canonical_order.c: keys of nodes, by colour refinement (Weisfeiler and Lehman 1968). A node's key is made of what it
 * does to its arguments' keys, and then of the keys of its users. Leaves that still look alike (a and b of a + b) are
 * told apart one at a time: where they can be exchanged, whichever comes first makes no difference. */
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/canonical.h"
#include "ops/elementwise/ir/keywords.h"

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  hash ^= hash >> 32;
  return hash * 0xD6E8FEB86659FD93u ^ hash >> 29;
}

static uint64_t bits(double x) {
  uint64_t out;
  memcpy(&out, &x, sizeof out);
  return out;
}

/* Leaves that are different although they look alike. */
static bool anonymous(const at_node *n) {
  return n->kind == AT_NODE_INPUT || n->kind == AT_NODE_SCALAR || n->kind == AT_NODE_UNIFORM ||
         n->kind == AT_NODE_NORMAL;
}

typedef struct refinement {
  at_graph *g;
  uint64_t *key, *leaf, *context; /* of each node: all that is known; what is known of it as a leaf; of its users */
  int *leaves;                    /* the anonymous ones */
  int leaf_count;
} refinement;

static bool commutes(const at_node *n) {
  return n->kind == AT_NODE_FUNCTION && at_function_commutes((at_function)n->function);
}

static uint64_t own_key(const refinement *r, int i) {
  const at_node *n = &r->g->nodes[i];
  uint64_t key = mix(mix(n->kind + 1u, n->dtype), n->function);
  if (anonymous(n)) return mix(key, r->leaf[i]);
  key = mix(key, n->index);
  if (n->kind == AT_NODE_CONSTANT)
    key = mix(mix(mix(key, bits(n->constant.re)), bits(n->constant.im)), (uint64_t)n->constant.integer);
  return key;
}

/* From the leaves up. A commuting function's key does not see the order of its arguments. */
static void go_up(refinement *r) {
  for (int i = 0; i < r->g->count; i++) {
    const at_node *n = &r->g->nodes[i];
    uint64_t key = own_key(r, i);
    if (commutes(n)) {
      const uint64_t a = r->key[n->argument[0]], b = r->key[n->argument[1]];
      key = mix(mix(key, a < b ? a : b), a < b ? b : a);
    } else {
      for (int k = 0; k < n->count; k++) key = mix(key, r->key[n->argument[k]]);
    }
    r->key[i] = key;
  }
}

/* From the outputs down: a sum, so that the order of users does not count. */
static void go_down(refinement *r) {
  const at_graph *g = r->g;
  memset(r->context, 0, (size_t)g->count * sizeof *r->context);
  for (int k = 0; k < g->output_count; k++) r->context[g->outputs[k]] += mix(0x6f7574, (uint64_t)k + 1);
  for (int i = g->count - 1; i >= 0; i--) {
    const at_node *n = &g->nodes[i];
    for (int k = 0; k < n->count; k++)
      r->context[n->argument[k]] += mix(mix(r->context[i], r->key[i]), commutes(n) ? 7u : 8u + (unsigned)k);
  }
}

/* One operand may be several leaves, a scalar in two dtypes: they are one in this. */
static bool same_operand(const at_node *a, const at_node *b) {
  return a->kind == b->kind && a->index == b->index;
}

static bool alike(const refinement *r, int a, int b) {
  const at_node *x = &r->g->nodes[a], *y = &r->g->nodes[b];
  return x->kind == y->kind && r->leaf[a] == r->leaf[b] && !same_operand(x, y);
}

/* A leaf's key takes in what its users are. The number of leaves that are like an earlier one. */
static int spread(refinement *r) {
  int ties = 0;
  uint64_t *sums = r->key; /* made again by go_up */
  for (int i = 0; i < r->leaf_count; i++) {
    uint64_t sum = 0;
    for (int j = 0; j < r->leaf_count; j++) {
      const at_node *other = &r->g->nodes[r->leaves[j]];
      if (same_operand(&r->g->nodes[r->leaves[i]], other)) sum += mix(r->context[r->leaves[j]], other->dtype);
    }
    sums[i] = sum;
  }
  for (int i = 0; i < r->leaf_count; i++) r->leaf[r->leaves[i]] = mix(r->leaf[r->leaves[i]], sums[i]);
  for (int i = 0; i < r->leaf_count; i++) {
    bool tie = false;
    for (int j = 0; j < i && !tie; j++) tie = alike(r, r->leaves[i], r->leaves[j]);
    ties += tie;
  }
  return ties;
}

static int colour_of(const refinement *r, int leaf) {
  const at_node *n = &r->g->nodes[leaf];
  return n->kind == AT_NODE_INPUT ? r->g->signature->tensors[n->index].colour : 0;
}

/* Should leaf a be distinguished rather than b? By the groups' keys; within a group by colour, then the first. */
static bool is_rather(const refinement *r, int a, int b) {
  if (r->leaf[a] != r->leaf[b]) return r->leaf[a] < r->leaf[b];
  return alike(r, a, b) && colour_of(r, a) < colour_of(r, b);
}

/* One leaf of the group with the least key becomes one of its own. Which one is no matter to the graph, for they can
 * change places. */
static void tell_apart(refinement *r) {
  int chosen = -1;
  for (int i = 0; i < r->leaf_count; i++) {
    bool tied = false;
    for (int j = 0; j < r->leaf_count; j++) tied = tied || (j != i && alike(r, r->leaves[i], r->leaves[j]));
    if (tied && (chosen < 0 || is_rather(r, r->leaves[i], chosen))) chosen = r->leaves[i];
  }
  const at_node *n = &r->g->nodes[chosen];
  for (int i = 0; i < r->leaf_count; i++)
    if (same_operand(n, &r->g->nodes[r->leaves[i]])) r->leaf[r->leaves[i]] = mix(r->leaf[r->leaves[i]], 0x66697273);
}

static void refine(refinement *r) {
  int ties = INT32_MAX;
  for (;;) {
    go_up(r);
    go_down(r);
    const int left = spread(r);
    if (left == 0) break;
    if (left == ties) tell_apart(r);
    ties = left;
  }
  go_up(r);
}

/* Is argument b to stand before a? The deeper one is first, so that a long sum is a row and not a nest; constants
 * last. */
static bool stands_before(const refinement *r, int b, int a) {
  const at_graph *g = r->g;
  if (g->height[a] != g->height[b]) return g->height[b] > g->height[a];
  const bool constant_a = g->nodes[a].kind == AT_NODE_CONSTANT, constant_b = g->nodes[b].kind == AT_NODE_CONSTANT;
  if (constant_a != constant_b) return constant_a;
  if (g->nodes[a].kind != g->nodes[b].kind) return g->nodes[b].kind < g->nodes[a].kind;
  return r->key[b] < r->key[a];
}

static void order(const refinement *r) {
  for (int i = 0; i < r->g->count; i++) {
    at_node *n = &r->g->nodes[i];
    if (!commutes(n) || !stands_before(r, n->argument[1], n->argument[0])) continue;
    const uint16_t first = n->argument[0];
    n->argument[0] = n->argument[1];
    n->argument[1] = first;
  }
}

attune_status at_canonical_order(at_graph *graph) {
  const size_t count = (size_t)graph->count;
  refinement r = {.g = graph, .key = calloc(3 * count, sizeof *r.key), .leaves = malloc(count * sizeof *r.leaves)};
  attune_status status = ATTUNE_OK;
  if (r.key && r.leaves) {
    r.leaf = r.key + count;
    r.context = r.leaf + count;
    for (int i = 0; i < graph->count; i++) {
      const at_node *n = &graph->nodes[i];
      if (!anonymous(n)) continue;
      r.leaf[i] = n->kind == AT_NODE_SCALAR ? graph->scalar_dtypes[n->index] : n->dtype;
      r.leaves[r.leaf_count++] = i;
    }
    refine(&r);
    order(&r);
  } else {
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression");
  }
  free(r.key);
  free(r.leaves);
  return status;
}
