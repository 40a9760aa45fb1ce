/* SPDX-License-Identifier: Apache-2.0
 * node_table.c: the table of nodes: equal ones are one; leaves and constants. */
#include "ops/elementwise/ir/node_table.h"

#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/fold.h"

enum { MOST_NODES = 60000 }; /* in the making, most of them dead later; below 2^16 */

void at_node_table_free(at_node_table *b) {
  free(b->nodes);
  free(b->slots);
  *b = (at_node_table){0};
}

/* ---- the table of nodes ---- */

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

static uint64_t bits(double x) {
  uint64_t out;
  memcpy(&out, &x, sizeof out);
  return out;
}

static uint64_t hash_of(const at_node *n) {
  uint64_t hash = mix(mix(n->kind, n->dtype), (uint64_t)n->function << 16 | n->index);
  for (int i = 0; i < n->count; i++) hash = mix(hash, n->argument[i]);
  if (n->kind == AT_NODE_CONSTANT)
    hash = mix(mix(mix(hash, bits(n->constant.re)), bits(n->constant.im)), (uint64_t)n->constant.integer);
  return hash ^ (hash >> 32);
}

static bool same(const at_node *a, const at_node *b) {
  return a->kind == b->kind && a->dtype == b->dtype && a->function == b->function && a->count == b->count &&
         a->index == b->index && memcmp(a->argument, b->argument, sizeof a->argument) == 0 &&
         bits(a->constant.re) == bits(b->constant.re) && bits(a->constant.im) == bits(b->constant.im) &&
         a->constant.integer == b->constant.integer;
}

/* The slot that has the node or where it belongs. */
static int slot_of(const at_node_table *b, const at_node *node) {
  const int mask = b->slot_count - 1;
  int at = (int)(hash_of(node) & (uint64_t)mask);
  while (b->slots[at] >= 0 && !same(&b->nodes[b->slots[at]], node)) at = (at + 1) & mask;
  return at;
}

static bool grow(at_node_table *b) {
  const int room = b->room ? 2 * b->room : 128;
  at_node *nodes = realloc(b->nodes, (size_t)room * sizeof *nodes);
  if (nodes) b->nodes = nodes;
  int *slots = nodes ? malloc(2 * (size_t)room * sizeof *slots) : NULL;
  if (!slots) return false;
  free(b->slots);
  b->slots = slots;
  b->room = room;
  b->slot_count = 2 * room;
  for (int i = 0; i < b->slot_count; i++) slots[i] = -1;
  for (int i = 0; i < b->count; i++) slots[slot_of(b, &b->nodes[i])] = i;
  return true;
}

int at_build_add(at_node_table *b, const at_node *node) {
  if (b->count == b->room && !grow(b)) {
    b->no_memory = true;
    return AT_NO_NODE;
  }
  const int slot = slot_of(b, node);
  if (b->slots[slot] >= 0) return b->slots[slot];
  if (b->count == MOST_NODES) {
    b->full = true;
    return AT_NO_NODE;
  }
  b->nodes[b->count] = *node;
  return b->slots[slot] = b->count++;
}

/* ---- kinds of nodes ---- */

int at_build_leaf(at_node_table *b, at_node_kind kind, attune_dtype dtype, int index) {
  return at_build_add(b, &(at_node){.kind = (uint8_t)kind, .dtype = (uint8_t)dtype, .index = (uint16_t)index});
}

int at_build_constant(at_node_table *b, attune_dtype dtype, at_constant value) {
  return at_build_add(b, &(at_node){.kind = AT_NODE_CONSTANT, .dtype = (uint8_t)dtype, .constant = value});
}

int at_build_integer(at_node_table *b, attune_dtype dtype, int64_t value) {
  at_constant constant = {.integer = value};
  at_fold_cast(ATTUNE_I64, dtype, &constant);
  return at_build_constant(b, dtype, constant);
}
